//! Programs of the system, as they are run with privileges: found in folders that only root writes to, with
//! an environment that says nothing but where those are.

use std::io;
use std::path::Path;
use std::process::Command;

/// Where they are looked for, in this order; never in the caller's `PATH`.
const FOLDERS: [&str; 5] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/run/current-system/sw/bin"];

/// A command for the program of that name, from a fixed list of folders and with a clean environment: what
/// the caller of this process has in `PATH` or `LD_PRELOAD` has no part in it.
///
/// # Errors
/// If none of the folders has it.
pub fn system_program(name: &str) -> io::Result<Command> {
    let paths = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    let Some(path) = paths.into_iter().find(|path| path.is_file()) else {
        let sentence = format!("there is no {name} in {}", FOLDERS.join(", "));
        return Err(io::Error::new(io::ErrorKind::NotFound, sentence));
    };
    let mut command = Command::new(path);
    command.env_clear().env("PATH", FOLDERS.join(":")).env("LC_ALL", "C");
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::system_program;
    use std::os::unix::fs::PermissionsExt;

    /// Goal: a program is not taken from the caller's `PATH`, and gets nothing of the caller's environment.
    /// Method: `env`, which prints what it gets; and a program that is in no folder of the list.
    #[test]
    fn the_caller_has_no_part_in_a_program() {
        let mut env = system_program("env").unwrap();
        assert!(env.get_program().to_str().unwrap().starts_with('/'));
        let printed = String::from_utf8(env.output().unwrap().stdout).unwrap();
        let mut names: Vec<_> = printed.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["LC_ALL", "PATH"], "{printed}");
        assert!(std::env::vars_os().count() > 2, "the caller has more");

        let folder = std::env::temp_dir().join(format!("quietcore-program-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let planted = folder.join("quietcore-planted");
        std::fs::write(&planted, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(system_program("quietcore-planted").is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
