//! One recording: an instance from its making to its removal.

use super::events::Tracepoint;
use super::instance;
use super::pages::{LiveText, per_cpu};
use super::tracefs::{LiveError, Tracefs, own_name};
use crate::buffer_counts::BufferCounts;
use quietcore_core::CpuId;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Removing an instance fails while a process still reads it; a reader of ours closes in ms.
const REMOVE_ATTEMPTS: u32 = 20;

/// A running recording. Dropping it removes the instance.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    // Opened first of all: an instance with a reader cannot be removed by another process.
    text: Option<LiveText>,
    switched_on: Vec<String>,
    missing: Vec<&'static str>,
    removed: bool,
}

/// What a trial came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferTrial {
    /// The CPUs whose buffers grew, with their KiB.
    pub grown: Vec<(CpuId, u32)>,
    /// Events were lost, so the recording begins after it.
    pub was_lossy: bool,
}

/// The largest buffer of one CPU.
pub const BUFFER_KIB_MAX: u32 = 1 << 20;

impl Recording {
    /// Makes the instance and switches `tracepoints` on, in their order, with `buffer_kib` of
    /// kernel memory per CPU. When full, the oldest events are overwritten and counted as lost.
    ///
    /// # Errors
    /// [`LiveError`]; whatever was made is removed again.
    pub fn start(tracefs: &Tracefs, tracepoints: &[Tracepoint], buffer_kib: u32) -> Result<Self, LiveError> {
        let path = tracefs.instances().join(own_name());
        fs::create_dir(&path).map_err(|error| LiveError::at(&path, error))?;
        let mut recording =
            Self { path, text: None, switched_on: Vec::new(), missing: Vec::new(), removed: false };
        let has = |tracepoint: &&Tracepoint| recording.event(tracepoint).exists();
        let (there, missing): (Vec<_>, Vec<_>) = tracepoints.iter().partition(has);
        recording.missing = missing.into_iter().map(|tracepoint| tracepoint.name).collect();
        if there.is_empty() {
            return Err(LiveError::NoTracepoints);
        }
        let names: Vec<_> = there.iter().map(|tracepoint| tracepoint.name).collect();
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        recording.text = Some(LiveText::open(&recording.path, &names, &symbols)?);
        recording.set("trace_clock", "mono")?;
        recording.set("buffer_size_kb", &buffer_kib.to_string())?;
        recording.set("tracing_on", "1")?;
        for tracepoint in there {
            let event = recording.event(tracepoint);
            if let Some(filter) = &tracepoint.filter {
                // A kernel that does not know it records more than is needed.
                let _ = instance::write(&event.join("filter"), filter);
            }
            let enable = event.join("enable");
            instance::write(&enable, "1").map_err(|error| LiveError::at(&enable, error))?;
            recording.switched_on.push(tracepoint.event().to_owned());
        }
        Ok(recording)
    }

    /// The folder of a tracepoint in the instance.
    fn event(&self, tracepoint: &Tracepoint) -> PathBuf {
        self.path.join("events").join(tracepoint.name)
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

    /// The stream of events as text. There is one: later calls return `None`. Close it before the recording
    /// is dropped.
    pub fn text(&mut self) -> Option<LiveText> {
        self.text.take()
    }

    /// Stops recording; what is in the buffers can still be read.
    ///
    /// # Errors
    /// [`LiveError::Io`].
    pub fn stop(&self) -> Result<(), LiveError> {
        self.set("tracing_on", "0")
    }

    /// What the kernel counted so far, by CPU.
    ///
    /// # Errors
    /// [`LiveError::Io`].
    pub fn counts(&self) -> Result<Vec<(CpuId, BufferCounts)>, LiveError> {
        let count = |(cpu, folder): (CpuId, PathBuf)| {
            let path = folder.join("stats");
            let stats = fs::read_to_string(&path).map_err(|error| LiveError::at(&path, error))?;
            Ok((cpu, BufferCounts::read(&stats)))
        };
        per_cpu(&self.path)?.into_iter().map(count).collect()
    }

    /// Makes the buffers of busy CPUs as large as a recording of `span` needs if nothing is read meanwhile,
    /// by what was recorded in `trial`, which just went by. All buffers together get `bytes_max` at most. If
    /// events were lost in the trial, what is left of it is thrown away.
    ///
    /// # Errors
    /// [`LiveError::Io`].
    pub fn size_buffers(
        &self,
        trial: Duration,
        span: Duration,
        buffer_kib: u32,
        bytes_max: u64,
    ) -> Result<BufferTrial, LiveError> {
        let counts = self.counts()?;
        let was_lossy = counts.iter().any(|(_, counts)| counts.lost > 0);
        let share_kib = bytes_max / 1024 / counts.len().max(1) as u64;
        let mut grown = Vec::new();
        for ((cpu, counts), (_, folder)) in counts.into_iter().zip(per_cpu(&self.path)?) {
            let kib = counts.needed_kib(trial, span).min(share_kib).min(u64::from(BUFFER_KIB_MAX));
            if let Some(kib) = u32::try_from(kib).ok().filter(|&kib| kib > buffer_kib) {
                let path = folder.join("buffer_size_kb");
                instance::write(&path, &kib.to_string()).map_err(|error| LiveError::at(&path, error))?;
                grown.push((cpu, kib));
            }
        }
        if was_lossy {
            let path = self.path.join("trace");
            instance::clear(&path).map_err(|error| LiveError::at(&path, error))?;
        }
        Ok(BufferTrial { grown, was_lossy })
    }

    /// The KiB of a CPU's buffer in which nothing would have been lost, if events were: what it has, and room
    /// for the lost ones, which are taken to be as long as those that are left. `counts` are those of when
    /// recording stopped.
    ///
    /// # Errors
    /// [`LiveError::Io`].
    pub fn lossless_kib(&self, counts: &[(CpuId, BufferCounts)]) -> Result<Option<u64>, LiveError> {
        let mut most = None;
        for ((_, counts), (_, folder)) in counts.iter().zip(per_cpu(&self.path)?) {
            if counts.lost > 0 {
                let path = folder.join("buffer_size_kb");
                let size = fs::read_to_string(&path).map_err(|error| LiveError::at(&path, error))?;
                most = most.max(Some(counts.lossless_kib(&size)));
            }
        }
        Ok(most)
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
        self.text = None;
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

#[cfg(test)]
mod tests {
    use super::{Duration, Recording};
    use std::fs;

    /// Goal: buffers of busy CPUs grow, as far as there is memory, and only what a lossy trial left is thrown
    /// away. Method: an instance of two CPUs, one of which is busy, and little memory; then with a loss.
    #[test]
    fn buffers_of_busy_cpus_grow() {
        let path = std::env::temp_dir().join(format!("quietcore-sizes-{}", std::process::id()));
        for (cpu, entries) in [(0, 10), (1, 100_000)] {
            let folder = path.join(format!("per_cpu/cpu{cpu}"));
            fs::create_dir_all(&folder).expect("a folder");
            let stats = format!("entries: {entries}\nbytes: {}\n", 64 * entries);
            fs::write(folder.join("stats"), stats).expect("a file");
            fs::write(folder.join("buffer_size_kb"), "4096").expect("a file");
        }
        fs::write(path.join("trace"), "of the trial").expect("a file");
        let (switched_on, missing) = (Vec::new(), Vec::new());
        let recording = Recording { path, text: None, switched_on, missing, removed: true };
        let second = Duration::from_secs(1);
        let size = |bytes_max| {
            let trial = recording.size_buffers(second, second * 10, 4096, bytes_max).expect("files");
            let grown = trial.grown.into_iter().map(|(cpu, kib)| (cpu.index(), kib));
            (grown.collect::<Vec<_>>(), trial.was_lossy)
        };
        assert_eq!(size(1 << 40), (vec![(1, 78_125)], false));
        let written = fs::read_to_string(recording.path.join("per_cpu/cpu1/buffer_size_kb")).expect("a file");
        assert_eq!(written, "78125");
        assert_eq!(size(2 << 23), (vec![(1, 8192)], false), "half of 16 MiB");
        assert_eq!(size(2 << 20), (vec![], false), "less than it has");
        let trace = || fs::read_to_string(recording.path.join("trace")).expect("a file");
        assert_eq!(trace(), "of the trial");
        let stats = recording.path.join("per_cpu/cpu0/stats");
        fs::write(stats, "entries: 10\nbytes: 640\noverrun: 1\n").expect("a file");
        assert!(size(2 << 20).1 && trace().is_empty());
        fs::remove_dir_all(&recording.path).expect("it is there");
    }

    /// Goal: each CPU has its own counts, in the order of their numbers. Method: an instance of three CPUs
    /// whose counts differ.
    #[test]
    fn every_cpu_has_its_counts() {
        let path = std::env::temp_dir().join(format!("quietcore-lost-{}", std::process::id()));
        for (cpu, lost) in [(10, 5), (0, 20), (2, 300)] {
            let folder = path.join(format!("per_cpu/cpu{cpu}"));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("stats"), format!("entries: 9\noverrun: {lost}\n")).expect("a file");
        }
        // It is not the kernel's: there is nothing to remove.
        let (switched_on, missing) = (Vec::new(), Vec::new());
        let recording = Recording { path, text: None, switched_on, missing, removed: true };
        let counts = recording.counts().expect("three files").into_iter();
        let lost: Vec<_> = counts.map(|(cpu, counts)| (cpu.index(), counts.lost)).collect();
        assert_eq!(lost, [(0, 20), (2, 300), (10, 5)]);
        fs::remove_dir_all(&recording.path).expect("it is there");
        assert!(recording.counts().is_err(), "no CPUs are not no losses");
    }
}
