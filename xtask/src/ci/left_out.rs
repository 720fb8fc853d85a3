//! What tests and scripts could not do on this machine, for want of a tool or of rights.
//!
//! They add a line `WHAT: REASON` to the file that the environment variable [`VARIABLE`] names. Decides only
//! where that file is; `quietcore-testing` writes it from Rust, the scripts in `tests/` by themselves.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use crate::workspace::{Failure, Workspace};

const VARIABLE: &str = "QUIETCORE_LEFT_OUT";

fn file(workspace: &Workspace) -> PathBuf {
    workspace.target.join("xtask").join("left-out.txt")
}

fn failed(workspace: &Workspace, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", file(workspace).display()), "make that folder writable")
}

/// Removes what an earlier run left out.
pub(super) fn forget(workspace: &Workspace) -> Result<(), Failure> {
    let folder = workspace.target.join("xtask");
    let made = fs::create_dir_all(folder).and_then(|()| fs::remove_file(file(workspace)));
    match made {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(workspace, &error)),
        _ => Ok(()),
    }
}

/// Lets `command` and what it starts say what is left out.
pub(super) fn noted_by<'a>(workspace: &Workspace, command: &'a mut Command) -> &'a mut Command {
    command.env(VARIABLE, file(workspace))
}

/// What was left out in this run, each once, in the order of the names.
pub(super) fn lines(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    match fs::read_to_string(file(workspace)) {
        Ok(text) => {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines.dedup();
            Ok(lines)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(vec![]),
        Err(error) => Err(failed(workspace, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what a program leaves out is known once, and forgotten by the next run. Method: a shell that
    /// leaves out two things, one of them twice, in a target folder of this test.
    #[test]
    fn what_is_left_out_is_known_once() {
        let mut workspace = Workspace::open().expect("a workspace");
        workspace.target = std::env::temp_dir().join(format!("quietcore-left-out-{}", std::process::id()));
        forget(&workspace).expect("nothing is there");
        assert_eq!(lines(&workspace).expect("no file"), Vec::<String>::new());
        let script = format!("for what in b a b; do echo \"$what: why\" >>\"${VARIABLE}\"; done");
        let mut shell = workspace.program("sh");
        let status = noted_by(&workspace, shell.args(["-c", &script])).status().expect("a shell");
        assert!(status.success());
        assert_eq!(lines(&workspace).expect("it was written"), ["a: why", "b: why"]);
        forget(&workspace).expect("it is ours");
        assert!(lines(&workspace).expect("it is gone").is_empty());
        fs::remove_dir_all(&workspace.target).expect("it is ours");
    }
}
