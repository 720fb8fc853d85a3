//! Finding tracefs, and the instances that killed runs left behind.
//!
//! An instance of ours is named `quietcore-PID-STARTTIME`: the start time (field 22 of
//! `/proc/PID/stat`) tells a dead run from another process that got its number. A leftover that
//! another PID namespace still uses cannot be removed by mistake: its open pipe keeps it busy.

use super::instance;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
pub(super) const PREFIX: &str = "quietcore-";

/// Why the running kernel cannot be recorded. One sentence each, with what is needed.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// tracefs is not mounted.
    NotMounted,
    /// This user may not use it.
    NotPermitted {
        /// The directory that refused.
        path: PathBuf,
    },
    /// A file of the instance failed.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The kernel has none of the tracepoints that were asked for.
    NoTracepoints,
}

impl fmt::Display for LiveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMounted => write!(
                out,
                "recording the running kernel needs tracefs, which is not mounted: as root, \
                 mount -t tracefs nodev /sys/kernel/tracing"
            ),
            Self::NotPermitted { path } => {
                write!(out, "recording the running kernel needs root (write access to {})", path.display())
            }
            Self::Io { path, error } => write!(out, "recording failed at {}: {error}", path.display()),
            Self::NoTracepoints => write!(
                out,
                "this kernel has none of the tracepoints: it was built without event tracing \
                 (CONFIG_EVENT_TRACING)"
            ),
        }
    }
}

impl std::error::Error for LiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl LiveError {
    /// `error` at `path`: a refusal is [`LiveError::NotPermitted`].
    pub(super) fn at(path: &Path, error: io::Error) -> Self {
        let refused = matches!(error.kind(), io::ErrorKind::PermissionDenied)
            || error.raw_os_error() == Some(rustix::io::Errno::ROFS.raw_os_error());
        if refused {
            Self::NotPermitted { path: path.to_owned() }
        } else {
            Self::Io { path: path.to_owned(), error }
        }
    }
}

/// A mounted tracefs.
#[derive(Clone, Debug)]
pub struct Tracefs {
    root: PathBuf,
}

impl Tracefs {
    /// The mounted tracefs, if this process may make an instance in it. Changes nothing.
    ///
    /// # Errors
    /// [`LiveError::NotMounted`], [`LiveError::NotPermitted`].
    pub fn find() -> Result<Self, LiveError> {
        let mut refused = None;
        for root in PLACES.map(Path::new) {
            let instances = root.join("instances");
            match rustix::fs::access(&instances, rustix::fs::Access::WRITE_OK) {
                Ok(()) => return Ok(Self { root: root.to_owned() }),
                Err(rustix::io::Errno::NOENT) => {}
                Err(_) => refused = refused.or(Some(instances)),
            }
        }
        Err(refused.map_or(LiveError::NotMounted, |path| LiveError::NotPermitted { path }))
    }

    /// The directory of the instances.
    pub(super) fn instances(&self) -> PathBuf {
        self.root.join("instances")
    }

    /// Removes the instances of runs that were killed; returns their names.
    #[must_use]
    pub fn remove_leftovers(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.instances()) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let leftovers =
            names.filter(|name| owner(name).is_some_and(|(pid, start)| start_time(pid) != Some(start)));
        leftovers.filter(|name| instance::remove(&self.instances().join(name)).is_ok()).collect()
    }
}

/// The name of this process's instance, with the number that `/proc` knows it by: in a PID
/// namespace with the host's `/proc` that is not `getpid()`.
pub(super) fn own_name() -> String {
    let linked = fs::read_link("/proc/self").ok();
    let number = linked.and_then(|path| path.to_str().and_then(|pid| pid.parse().ok()));
    let pid = number.unwrap_or_else(std::process::id);
    format!("{PREFIX}{pid}-{}", start_time(pid).unwrap_or(0))
}

/// `quietcore-PID-STARTTIME`.
fn owner(name: &str) -> Option<(u32, u64)> {
    let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// When `pid` started, in clock ticks since boot; `None` when there is no such process.
fn start_time(pid: u32) -> Option<u64> {
    start_time_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The same, in the text of that file.
fn start_time_in(stat: &str) -> Option<u64> {
    // The name in parentheses may hold anything, so count the fields behind the last one.
    let after_name = stat.get(stat.rfind(')')? + 2..)?;
    after_name.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Tracefs, own_name, owner, start_time, start_time_in};
    use std::fs;

    /// Goal: this process recognises its own instance, and no other.
    #[test]
    fn an_instance_names_its_process() {
        let (pid, start) = owner(&own_name()).expect("our own name");
        assert_eq!(Some(start), start_time(pid));
        for other in ["trace-cmd-7", "quietcore-", "quietcore-1", "quietcore-x-1", "quietcore-1-x"] {
            assert_eq!(owner(other), None, "{other:?}");
        }
        assert_eq!(start_time(u32::MAX), None);
    }

    /// Goal: the start is field 22, whatever the name is; what is cut short has none. Method: fields that are
    /// their own numbers.
    #[test]
    fn the_start_is_field_22() {
        let fields: Vec<String> = (4..=30).map(|field| field.to_string()).collect();
        for name in ["a", "a b", "a) S 1 (b", ") "] {
            let stat = format!("1 ({name}) S {}\n", fields.join(" "));
            assert_eq!(start_time_in(&stat), Some(22), "{stat}");
        }
        for cut in ["", "1 (a", "1 (a)", "1 (a) S 4 5"] {
            assert_eq!(start_time_in(cut), None, "{cut}");
        }
    }

    /// Goal: what a killed run left is removed, and neither what still runs nor what is not ours. Method:
    /// folders with the names of a process that has ended, of one with this process's number that began at
    /// another moment, of this process, and another program's.
    #[test]
    fn only_leftovers_are_removed() {
        let folder = format!("quietcore-leftovers-{}", std::process::id());
        let tracefs = Tracefs { root: std::env::temp_dir().join(folder) };
        let own = own_name();
        let (pid, start) = owner(&own).expect("our own name");
        let (ended, other) = (format!("quietcore-{}-7", u32::MAX), format!("quietcore-{pid}-{}", start + 1));
        for name in [&own, &ended, &other, "trace-cmd-7"] {
            fs::create_dir_all(tracefs.instances().join(name)).expect("a folder");
        }
        let mut removed = tracefs.remove_leftovers();
        removed.sort_unstable();
        let mut expected = [ended, other];
        expected.sort_unstable();
        assert_eq!(removed, expected);
        let left = fs::read_dir(tracefs.instances()).expect("it is there").count();
        assert_eq!(left, 2);
        fs::remove_dir_all(&tracefs.root).expect("it is there");
    }
}
