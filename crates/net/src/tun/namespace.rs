//! Network namespaces: made, entered for a moment, configured and removed.
//!
//! `ip` (iproute2) makes them, so that `ip netns exec` finds them. Settings are written inside of them, never
//! outside.

use super::error::TunError;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// A network namespace that this process made. A drop removes it; [`remove`](Self::remove) says whether that
/// worked.
#[derive(Debug)]
pub struct Namespace {
    /// `None` once it is removed.
    name: Option<String>,
}

impl Namespace {
    /// Makes one.
    ///
    /// # Errors
    /// [`TunError::NamespaceTaken`] if there is one of that name; else what `ip` said.
    pub fn create(name: &str) -> Result<Self, TunError> {
        check_free(name)?;
        ip(&["netns", "add", name], "")?;
        Ok(Self { name: Some(name.to_owned()) })
    }

    /// As `ip netns` lists it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Runs lines of `ip -batch` in it.
    ///
    /// # Errors
    /// What `ip` said.
    pub fn configure(&self, lines: &str) -> Result<(), TunError> {
        ip(&["-netns", self.name(), "-batch", "-"], lines)
    }

    /// Runs `act` inside, on a thread of its own. Sockets, interfaces and processes that it opens stay there.
    ///
    /// # Errors
    /// [`TunError::Namespace`] if it cannot be entered, which needs root.
    ///
    /// # Panics
    /// If `act` panics.
    pub fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, TunError> {
        let failed = |error: io::Error| TunError::Namespace { name: self.name().to_owned(), error };
        let file = File::open(path(self.name())).map_err(failed)?;
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

    /// Removes it. Programs that still run in it keep it, without a name.
    ///
    /// # Errors
    /// What `ip` said.
    pub fn remove(mut self) -> Result<(), TunError> {
        self.name.take().map_or(Ok(()), |name| remove(&name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let _ = remove(&name); // a drop cannot say why not
        }
    }
}

/// Refuses a name that is in use.
pub(crate) fn check_free(name: &str) -> Result<(), TunError> {
    if path(name).exists() { Err(TunError::NamespaceTaken { name: name.to_owned() }) } else { Ok(()) }
}

/// Removes a namespace by name, if there is one. Programs that run in it keep it, without a name.
pub(crate) fn remove(name: &str) -> Result<(), TunError> {
    if path(name).exists() { ip(&["netns", "del", name], "") } else { Ok(()) }
}

fn path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

/// Runs `ip` with `input`.
fn ip(arguments: &[&str], input: &str) -> Result<(), TunError> {
    let mut command = Command::new("ip");
    // A process group of its own, so that Ctrl-C does not cut it short.
    command.process_group(0);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |error: io::Error| TunError::NoIp { arguments: arguments.join(" "), error };
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it ends early, its words say why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TunError::Ip { arguments: arguments.join(" "), said })
}
