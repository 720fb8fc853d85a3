//! The unstable compiler, for checks that no stable one has: whether it is there, and how it is called.
//!
//! Decides nothing about the checks. They ask rustup for a toolchain and its components by name; where one is
//! missing they say the command that installs it. The build itself needs none of this.

use std::process::{Command, Stdio};

use crate::workspace::{Workspace, capture, is_installed};

/// The name that rustup knows it by.
const TOOLCHAIN: &str = "nightly";

/// The processor and system that the checks run on; the sanitizer's runtime must be told.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The test that has a race if the variable is set; both checks must report it.
pub(crate) const CANARY: (&str, &str) = ("words::lock::tests::canary", "QUIETCORE_CANARY");

/// What a check needs beside the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    /// The interpreter, which builds a library of its own from the sources.
    Miri,
    /// The sources of the standard library, to build it with other flags.
    Source,
}

/// Why a check that needs `component` cannot run here, and which command changes that.
pub(crate) fn lacks(component: Component) -> Option<&'static str> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Some("needs Linux on x86-64");
    }
    if !is_installed("rustup") {
        return Some("needs rustup, which has the nightly toolchain: https://rustup.rs");
    }
    let mut list = Command::new("rustup");
    list.args(["component", "list", "--installed", "--toolchain", TOOLCHAIN]).stderr(Stdio::null());
    obstacle(component, capture(&mut list).ok().as_deref())
}

/// The same for what rustup lists; `None`: it does not know the toolchain.
fn obstacle(component: Component, installed: Option<&str>) -> Option<&'static str> {
    let Some(installed) = installed else {
        return Some(match component {
            Component::Miri => {
                "needs Miri: rustup toolchain install nightly --profile minimal --component miri,rust-src"
            }
            Component::Source => {
                "needs a nightly toolchain: rustup toolchain install nightly --profile minimal --component rust-src"
            }
        });
    };
    // Components of a platform have its name behind theirs.
    let has = |name: &str| installed.lines().any(|line| line == name || line == format!("{name}-{TARGET}"));
    let has_source = has("rust-src");
    match component {
        Component::Miri if !(has("miri") && has_source) => {
            Some("needs Miri: rustup component add miri rust-src --toolchain nightly")
        }
        Component::Source if !has_source => {
            Some("needs the sources of std: rustup component add rust-src --toolchain nightly")
        }
        _ => None,
    }
}

/// The unstable cargo with these arguments, not started yet. What the cargo that runs us has set for its own
/// compiler does not reach it.
pub(crate) fn cargo(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = workspace.program("rustup");
    command.args(["run", TOOLCHAIN, "cargo"]).args(arguments);
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(name);
    }
    // Reports name lines, and need no more.
    command.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is missing is named with the command that installs it, and nothing else is asked for.
    /// Method: rustup's lists without a toolchain, without each component, and with all.
    #[test]
    fn what_is_missing_is_named_with_its_command() {
        let bare = "cargo-x86_64-unknown-linux-gnu\nrustc-x86_64-unknown-linux-gnu\n";
        let all = format!("{bare}miri-{TARGET}\nrust-src\n");
        let says = |component, list: Option<&str>, words: &str| {
            let text = obstacle(component, list).unwrap_or_default();
            assert!(text.contains(words), "{component:?}: {text}");
        };
        for component in [Component::Miri, Component::Source] {
            says(component, None, "rustup toolchain install nightly");
            says(component, Some(bare), "rustup component add");
            assert_eq!(obstacle(component, Some(&all)), None);
        }
        says(Component::Miri, Some(&format!("{bare}rust-src\n")), "add miri");
        assert_eq!(obstacle(Component::Source, Some(&format!("{bare}rust-src\n"))), None);
        says(Component::Source, Some(&format!("{bare}miri-{TARGET}\n")), "add rust-src");
    }

    /// Goal: the stable compiler that built this program is not passed on. Method: the environment of a
    /// command.
    #[test]
    fn no_other_compiler_is_passed_on() {
        let workspace = Workspace::open().expect("a workspace");
        let command = cargo(&workspace, &["miri", "test"]);
        assert_eq!(crate::workspace::shown(&command), "rustup run nightly cargo miri test");
        let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
        assert!(removed.iter().any(|(name, _)| *name == "RUSTC"), "{removed:?}");
    }
}
