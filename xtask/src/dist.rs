//! `cargo xtask dist`: the binary that others are given, and what must be so of it.
//!
//! The profile `dist` of Cargo.toml ends the program where a number overflows, and has no debug information.
//! Added here is what a profile cannot say: zstd's C code has the stack protector and checked functions of
//! the C library, and paths of this machine are named by what they are, so the binary tells nothing of the
//! place where it was built.
//! Invariant: a binary that holds such a path, or no stack protector, is refused.

use crate::workspace::{Failure, Workspace, capture, exit_code, run};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// For the compiler of C; what a distribution sets by itself is set anew.
const C_FLAGS: &str = "-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2";

/// The symbol that code with a stack protector needs.
const STACK_PROTECTOR: &[u8] = b"__stack_chk_fail";

pub(crate) fn command() -> ExitCode {
    exit_code("dist", build())
}

fn build() -> Result<(), Failure> {
    let workspace = Workspace::open()?;
    let hidden = hidden_paths(&workspace)?;
    let flags: Vec<String> =
        hidden.iter().map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display())).collect();
    let mut cargo = workspace.cargo(&["build", "--profile", "dist", "--locked", "-p", "quietcore-cli"]);
    // Separated as cargo wants it: a path may have spaces.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")).env("CFLAGS", C_FLAGS);
    run(&mut cargo, "mend what the compiler names")?;
    let binary = workspace.target.join("dist").join("quietcore");
    let failed = |error| Failure::new(format!("{}: {error}", binary.display()), "look at what cargo says");
    let content = fs::read(&binary).map_err(failed)?;
    check(&content, &hidden)?;
    println!("{}: {:.1} MB, without a path of this machine", binary.display(), content.len() as f64 / 1e6);
    Ok(())
}

/// The folders that things are built from and in, and what they are called in the binary. The last one that
/// fits a path counts.
fn hidden_paths(workspace: &Workspace) -> Result<Vec<(PathBuf, &'static str)>, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = capture(workspace.program(rustc).args(["--print", "sysroot"]))?;
    let home = std::env::var_os("HOME").unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty());
    let cargo = cargo.map_or_else(|| Path::new(&home).join(".cargo"), PathBuf::from);
    Ok(vec![
        (workspace.root.clone(), "quietcore"),
        (workspace.target.clone(), "target"),
        (cargo, "cargo"),
        (PathBuf::from(sysroot.trim()), "rust"),
    ])
}

/// Refuses a binary that tells where it was built, or whose C code has no stack protector.
fn check(binary: &[u8], hidden: &[(PathBuf, &'static str)]) -> Result<(), Failure> {
    for (path, _) in hidden {
        let mut folder = OsString::from(path);
        folder.push("/");
        let found = binary.windows(folder.len()).filter(|window| *window == folder.as_bytes()).count();
        if found > 0 {
            let what = format!("the binary holds {found} paths below {}", path.display());
            return Err(Failure::new(what, "add what names it to the flags in xtask/src/dist.rs"));
        }
    }
    if !binary.windows(STACK_PROTECTOR.len()).any(|window| window == STACK_PROTECTOR) {
        let remedy = "use a compiler of C that has -fstack-protector-strong";
        return Err(Failure::new("the C code in the binary has no stack protector", remedy));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;
    use std::path::PathBuf;

    /// Goal: a path of the builder is found wherever it is, and a missing protector, too. Method: binaries of
    /// a few bytes.
    #[test]
    fn a_path_of_the_builder_is_refused() {
        let hidden = [(PathBuf::from("/one/.cargo"), "cargo"), (PathBuf::from("/build"), "quietcore")];
        let refused = |binary: &[u8]| check(binary, &hidden).err().map(|failure| failure.what);
        assert_eq!(refused(b"\0__stack_chk_fail\0cargo/registry/src/a.rs\0/buildings"), None);
        let told = refused(b"\0__stack_chk_fail\xff/one/.cargo/registry/a.rs\0/one/.cargo/b");
        assert_eq!(told.as_deref(), Some("the binary holds 2 paths below /one/.cargo"));
        assert!(
            refused(b"/build/__stack_chk_fail").is_some_and(|what| what.contains("1 paths below /build"))
        );
        assert!(refused(b"nothing").is_some_and(|what| what.contains("stack protector")));
    }
}
