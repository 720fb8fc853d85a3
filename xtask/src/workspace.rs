//! What every step needs: the repository, cargo, and a way to run a program that says what went wrong.
//!
//! The cargo is the one that runs us (`CARGO`), so a `+toolchain` on the command line holds for every
//! step; where it builds is asked of cargo itself, so `CARGO_TARGET_DIR` and configuration files hold.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Why a step failed, and what to do about it; both one sentence.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Failure {
        Failure { what: what.into(), remedy: remedy.into() }
    }
}

/// Says what failed, if anything did, and how `command` ends.
pub(crate) fn exit_code(command: &str, result: Result<(), Failure>) -> ExitCode {
    let Err(Failure { what, remedy }) = result else { return ExitCode::SUCCESS };
    eprintln!("{command}: {what}\n{command}: {remedy}");
    ExitCode::FAILURE
}

#[derive(Debug)]
pub(crate) struct Workspace {
    /// Root of the repository; every program runs here.
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    cargo: OsString,
}

impl Workspace {
    /// Finds the tools.
    ///
    /// # Errors
    /// When cargo cannot say where it builds.
    pub(crate) fn open() -> Result<Workspace, Failure> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
        let mut workspace = Workspace { root: root(), target: PathBuf::new(), cargo };
        let mut metadata = workspace.cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]);
        let text = capture(metadata.stderr(Stdio::inherit()))?;
        let folder = json_string(&text, "target_directory");
        let lost = || Failure::new("cargo metadata names no target_directory", "update cargo");
        workspace.target = PathBuf::from(folder.ok_or_else(lost)?);
        Ok(workspace)
    }

    /// Cargo with these arguments, not started yet.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.cargo);
        command.args(arguments).current_dir(&self.root);
        command
    }

    /// Any other program, in the root of the repository.
    pub(crate) fn program(&self, name: impl AsRef<Path>) -> Command {
        let mut command = Command::new(name.as_ref());
        command.current_dir(&self.root);
        command
    }
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    let remedy = "install it, or put its folder on PATH";
    Failure::new(format!("`{}` cannot be started: {error}", shown(command)), remedy)
}

/// Runs to the end with our output as its output, whatever the result is.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus, Failure> {
    command.status().map_err(|error| cannot_start(command, &error))
}

/// Runs to the end; anything but success is a failure with this remedy.
///
/// # Errors
/// When it cannot be started, or does not succeed.
pub(crate) fn run(command: &mut Command, remedy: &str) -> Result<(), Failure> {
    let status = status(command)?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("`{}` ended with {status}", shown(command)), remedy))
}

/// What a program that succeeds prints.
///
/// # Errors
/// When it cannot be started, or does not succeed.
pub(crate) fn capture(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|error| cannot_start(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let what = format!("`{}` ended with {}: {said}", shown(command), output.status);
    Err(Failure::new(what, "run this command by hand"))
}

/// Has rustup install Rust's standard library for `target`, unless it is there.
///
/// # Errors
/// When it cannot be had.
pub(crate) fn install_target(workspace: &Workspace, target: &str) -> Result<(), Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = workspace.program(rustc);
    command.args(["--print", "target-libdir", "--target", target]).stderr(Stdio::null());
    if capture(&mut command).is_ok_and(|folder| Path::new(folder.trim()).is_dir()) {
        return Ok(());
    }
    let remedy =
        "install Rust's standard library for that target; in `ci`, --skip targets leaves the step out";
    run(workspace.program("rustup").args(["target", "add", target]), remedy)
}

/// A program of that name is in a folder of `PATH`.
pub(crate) fn is_installed(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// The value of the first `"key":"..."` in JSON text; enough for what cargo prints about itself.
pub(crate) fn json_string(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("\"{key}\":\""))?;
    let mut value = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return Some(value),
            '\\' => match chars.next()? {
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    value.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                }
                'n' => value.push('\n'),
                't' => value.push('\t'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_json() {
        let text = r#"{"a":"x","target_directory":"C:\\b \"c\"\u0041","target_directory":"no"}"#;
        assert_eq!(json_string(text, "target_directory").as_deref(), Some("C:\\b \"c\"A"));
        assert_eq!(json_string(text, "b"), None);
        assert_eq!(json_string(r#"{"a":"never ends"#, "a"), None);
    }

    #[test]
    fn what_is_on_the_path_is_installed() {
        assert!(is_installed("sh") && !is_installed("no-such-program-here"));
    }

    /// Goal: a failure says which command and what to do. Method: a program that is nowhere.
    #[test]
    fn a_missing_program_is_one_sentence() {
        let mut command = Command::new("no-such-program-here");
        let failure = run(command.arg("--now"), "unused").expect_err("there is no such program");
        assert!(failure.what.starts_with("`no-such-program-here --now` cannot be started"), "{failure:?}");
        assert!(failure.remedy.contains("PATH"));
    }
}
