//! What the kernel says about a process: context switches of its threads, and the memory it has.
//!
//! Read from outside, so that reading costs the process that is watched nothing. Source: proc_pid_status(5),
//! proc_pid_statm(5).

use std::collections::BTreeMap;
use std::{fs, io};

/// A thread, by number.
pub(crate) type ThreadId = u64;

/// What one thread has gone through so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Switches {
    pub(crate) name: String,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
}

impl Switches {
    pub(crate) fn total(&self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// Context switches of each thread of `process`.
///
/// # Errors
/// When there is no such process, or a thread of it ended meanwhile.
pub(crate) fn switches(process: u32) -> io::Result<BTreeMap<ThreadId, Switches>> {
    let folder = fs::read_dir(format!("/proc/{process}/task"))?;
    folder
        .map(|entry| {
            let path = entry?.path();
            let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            let number = number.ok_or_else(|| io::Error::other("a thread without a number"))?;
            Ok((number, parse_status(&fs::read_to_string(path.join("status"))?)?))
        })
        .collect()
}

fn parse_status(text: &str) -> io::Result<Switches> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).ok_or_else(|| io::Error::other(format!("no line {name}")))
    };
    let number = |name| field(name)?.parse().map_err(io::Error::other);
    Ok(Switches {
        name: field("Name")?.to_owned(),
        voluntary: number("voluntary_ctxt_switches")?,
        involuntary: number("nonvoluntary_ctxt_switches")?,
    })
}

/// Memory of this process that is in use, in KiB.
///
/// # Errors
/// When /proc is not to be read.
pub(crate) fn resident_kib() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| io::Error::other("no line VmRSS"))
}
