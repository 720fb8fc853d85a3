//! One recording: an instance from its making to its removal.

use super::instance;
use super::tracefs::{LiveError, Tracefs, own_name};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// Removing an instance fails while a process still reads it; a reader of ours closes in ms.
const REMOVE_ATTEMPTS: u32 = 20;

/// A running recording. Dropping it removes the instance.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    // Opened first of all: an instance with a reader cannot be removed by another process.
    pipe: Option<File>,
    switched_on: Vec<String>,
    missing: Vec<&'static str>,
    removed: bool,
}

impl Recording {
    /// Makes the instance and switches `tracepoints` on, in their order, with `buffer_kib` of
    /// kernel memory per CPU. When full, the oldest events are overwritten and counted as lost.
    ///
    /// # Errors
    /// [`LiveError`]; whatever was made is removed again.
    pub fn start(
        tracefs: &Tracefs,
        tracepoints: &[&'static str],
        buffer_kib: u32,
    ) -> Result<Self, LiveError> {
        let path = tracefs.instances().join(own_name());
        fs::create_dir(&path).map_err(|error| LiveError::at(&path, error))?;
        let mut recording =
            Self { path, pipe: None, switched_on: Vec::new(), missing: Vec::new(), removed: false };
        recording.pipe = Some(recording.open_pipe()?);
        recording.set("trace_clock", "mono")?;
        recording.set("buffer_size_kb", &buffer_kib.to_string())?;
        recording.set("tracing_on", "1")?;
        for &tracepoint in tracepoints {
            let event = format!("events/{tracepoint}/enable");
            if !recording.path.join(&event).exists() {
                recording.missing.push(tracepoint);
                continue;
            }
            recording.set(&event, "1")?;
            let name = tracepoint.rsplit('/').next().unwrap_or(tracepoint);
            recording.switched_on.push(name.to_owned());
        }
        if recording.switched_on.is_empty() {
            return Err(LiveError::NoTracepoints);
        }
        Ok(recording)
    }

    /// Names of the events that are on.
    #[must_use]
    pub fn switched_on(&self) -> &[String] {
        &self.switched_on
    }

    /// Tracepoints that were asked for and that this kernel does not have.
    #[must_use]
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// The stream of events as text; reading takes them out of the buffers and never blocks. There
    /// is one: later calls return `None`. Close it before the recording is dropped.
    pub fn pipe(&mut self) -> Option<File> {
        self.pipe.take()
    }

    fn open_pipe(&self) -> Result<File, LiveError> {
        let path = self.path.join("trace_pipe");
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::open(&path, flags, Mode::empty())
            .map(File::from)
            .map_err(|error| LiveError::at(&path, error.into()))
    }

    /// Stops recording; what is in the buffers can still be read.
    ///
    /// # Errors
    /// [`LiveError::Io`].
    pub fn stop(&self) -> Result<(), LiveError> {
        self.set("tracing_on", "0")
    }

    /// Events lost so far in all CPUs' buffers: overwritten before they were read, or dropped.
    ///
    /// # Errors
    /// [`LiveError::Io`].
    pub fn lost_events(&self) -> Result<u64, LiveError> {
        let folder = self.path.join("per_cpu");
        let failed = |error| LiveError::at(&folder, error);
        let mut lost = 0;
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let stats = fs::read_to_string(entry.map_err(failed)?.path().join("stats")).map_err(failed)?;
            lost += lost_in(&stats);
        }
        Ok(lost)
    }

    /// Removes the instance now, and says whether that worked.
    ///
    /// # Errors
    /// [`LiveError::Io`], when another process reads from the instance.
    pub fn remove(mut self) -> Result<(), LiveError> {
        self.remove_once().map_err(|error| LiveError::at(&self.path, error))
    }

    fn remove_once(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.removed, true) {
            return Ok(());
        }
        self.pipe = None;
        let mut result = instance::remove(&self.path);
        for _ in 1..REMOVE_ATTEMPTS {
            if result.as_ref().err().and_then(io::Error::raw_os_error)
                != Some(rustix::io::Errno::BUSY.raw_os_error())
            {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            result = instance::remove(&self.path);
        }
        result
    }

    fn set(&self, file: &str, value: &str) -> Result<(), LiveError> {
        let path = self.path.join(file);
        instance::write(&path, value).map_err(|error| LiveError::at(&path, error))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // A failure cannot be reported from here; the next start removes what is left.
        let _ = self.remove_once();
    }
}

/// The three ways to lose events in a `per_cpu/cpuN/stats` text.
fn lost_in(stats: &str) -> u64 {
    let value = |key| {
        let line = stats.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    value("overrun:") + value("commit overrun:") + value("dropped events:")
}

#[cfg(test)]
mod tests {
    use super::{Recording, lost_in};
    use std::fs;

    /// Goal: each kind of loss counts once, "commit overrun" not as "overrun".
    #[test]
    fn lost_events_are_summed_over_their_kinds() {
        let stats =
            "entries: 9\noverrun: 5\ncommit overrun: 20\nbytes: 99\nnow ts: 7.5\ndropped events: 300\n";
        assert_eq!(lost_in(stats), 325);
        assert_eq!(lost_in(""), 0);
    }

    /// Goal: what all CPUs have lost is summed. Method: an instance of three CPUs whose counts differ.
    #[test]
    fn lost_events_are_summed_over_cpus() {
        let path = std::env::temp_dir().join(format!("quietcore-lost-{}", std::process::id()));
        for (cpu, lost) in [5, 20, 300].into_iter().enumerate() {
            let folder = path.join(format!("per_cpu/cpu{cpu}"));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("stats"), format!("entries: 9\noverrun: {lost}\n")).expect("a file");
        }
        // It is not the kernel's: there is nothing to remove.
        let (switched_on, missing) = (Vec::new(), Vec::new());
        let recording = Recording { path, pipe: None, switched_on, missing, removed: true };
        assert_eq!(recording.lost_events().expect("three files"), 325);
        fs::remove_dir_all(&recording.path).expect("it is there");
        assert!(recording.lost_events().is_err(), "no CPUs are not no losses");
    }
}
