//! Every sample of every run, in a file: one JSON object per line, the first says where and when.
//!
//! Written as runs end, so that what was measured before an interruption is there.

use super::child::Ran;
use crate::machine::Machine;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The file of one invocation.
#[derive(Debug)]
pub struct Raw {
    path: PathBuf,
    out: BufWriter<File>,
}

/// Which run it was.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub round: u32,
    pub measure: &'a str,
    pub arguments: &'a [String],
    pub peer: &'a str,
}

impl Raw {
    /// A new file in `folder`, named after the commit and the time.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(folder: &Path, machine: &Machine, versions: &Value) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let commit = machine.commit.as_deref().unwrap_or("unknown");
        let path = folder.join(format!("runtimes-{commit}-{seconds}.jsonl"));
        let mut raw = Self { out: BufWriter::new(File::create(&path)?), path };
        raw.line(&json!({ "machine": machine, "unix_time": seconds, "peers": versions }))?;
        Ok(raw)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a run.
    ///
    /// # Errors
    /// What the file system says.
    pub fn add(&mut self, place: Place<'_>, ran: &Ran) -> io::Result<()> {
        let window = ran.window.map(|window| {
            json!({
                "seconds": window.seconds, "cpu_ns": window.cpu_ns,
                "wake_ups": window.wake_ups, "preemptions": window.preemptions, "events": window.events,
            })
        });
        self.line(&json!({
            "round": place.round, "measure": place.measure, "arguments": place.arguments, "peer": place.peer,
            "figures": ran.figures, "window": window, "samples_us": ran.samples,
            "absent": ran.absent, "failed": ran.failed,
        }))
    }

    fn line(&mut self, value: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        writeln!(self.out)?;
        self.out.flush()
    }
}
