//! Network namespaces of an instance: made, entered for a moment, configured and removed.
//!
//! `ip` (iproute2) makes them, so that `ip netns exec` finds them; only those that a record names are ever
//! removed. Settings are written inside of them, never outside.

use crate::error::CliError;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// A network namespace that we made; a drop removes it.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one; there must be none of that name.
    pub(crate) fn create(name: &str) -> Result<Self, CliError> {
        if path(name).exists() {
            return Err(CliError::Live(format!(
                "the network namespace {name} is there already and is not ours; give this instance another \
                 --name, or remove it: ip netns del {name}"
            )));
        }
        ip(&["netns", "add", name], "")?;
        Ok(Self { name: name.to_owned() })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs lines of `ip -batch` in it.
    pub(crate) fn configure(&self, lines: &str) -> Result<(), CliError> {
        ip(&["-netns", &self.name, "-batch", "-"], lines)
    }

    /// Runs `act` on a thread of its own inside; what it opens stays there.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, CliError> {
        let failed = |error: std::io::Error| {
            CliError::Live(format!("the network namespace {} cannot be entered: {error}", self.name))
        };
        let file = File::open(path(&self.name)).map_err(failed)?;
        let enter = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(act())
        };
        let entered = thread::scope(|scope| scope.spawn(enter).join());
        match entered {
            Ok(result) => result.map_err(|error: rustix::io::Errno| failed(error.into())),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.name) {
            crate::output::say(&error.to_string());
        }
    }
}

/// Removes a namespace by name, if there is one. Programs that run in it keep it, without a name.
pub(crate) fn remove(name: &str) -> Result<(), CliError> {
    if path(name).exists() { ip(&["netns", "del", name], "") } else { Ok(()) }
}

fn path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

/// Runs `ip` with `input`.
fn ip(arguments: &[&str], input: &str) -> Result<(), CliError> {
    let mut command = Command::new("ip");
    // Ctrl-C is ours: what we set up or take down is not to be cut short.
    command.process_group(0);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| {
        let remedy = "it is part of iproute2, which has to be installed";
        CliError::Live(format!("ip {} cannot be run: {error}; {remedy}", arguments.join(" ")))
    };
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it ends early, its words say why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(CliError::Live(format!("ip {} failed: {}", arguments.join(" "), words.trim())))
}
