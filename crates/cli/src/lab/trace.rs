//! What ran where in the last round of a variant, as a Perfetto trace.
//!
//! A row that can show it says of each callback who armed it where, and which thread ran it from when to
//! when. The file is made by the writer that shows recordings of the kernel, so a callback that ran on
//! another lane than the one that armed it is a pull there, too. The variants come one after the other on
//! one time axis, as they ran.

use super::plan::Bench;
use crate::error::CliError;
use crate::output::AtomicFile;
use quietcore_core::{CpuId, Nanos};
use quietcore_live::Run;
use quietcore_trace::{Event, PerfettoWriter, Record, Task, TimerStart};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Callbacks that one variant can show; further ones are left out, and that is said.
const CALLBACKS_MAX: usize = 200_000;

/// One callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) timer: u64,
    pub(super) name: &'static str,
    /// The lane that armed it, where that is known.
    pub(super) armed: Option<CpuId>,
    pub(super) cpu: CpuId,
    /// The thread that ran it.
    pub(super) tid: i32,
    pub(super) began: Nanos,
    pub(super) ended: Nanos,
}

/// Takes down callbacks, if somebody wants to see them.
#[derive(Clone)]
pub(super) struct Note(Option<Arc<Mutex<Vec<Ran>>>>);

impl Note {
    pub(super) fn of(bench: &Bench) -> Self {
        Self(bench.trace.clone())
    }

    /// At the end of a callback: it ran until now.
    pub(super) fn ran(&self, timer: u64, name: &'static str, armed: Option<CpuId>, run: &Run<'_>) {
        let Some(all) = &self.0 else { return };
        let (began, ended) = (run.now(), run.timer().machine().now());
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() <= CALLBACKS_MAX {
            all.push(Ran { timer, name, armed, cpu: run.cpu(), tid, began, ended });
        }
    }
}

/// The callbacks of a variant.
pub(super) struct Shown {
    pub(super) variant: &'static str,
    pub(super) ran: Vec<Ran>,
}

/// Writes all of them to `path`; says what did not fit.
pub(super) fn write(path: &Path, file: AtomicFile, all: &[Shown]) -> Result<Option<String>, CliError> {
    let failed = |error| CliError::Write(path.to_owned(), error);
    perfetto(file, all).map_err(failed)?.finish()?;
    let cut = all.iter().filter(|shown| shown.ran.len() > CALLBACKS_MAX).map(|shown| shown.variant);
    let cut: Vec<&str> = cut.collect();
    Ok((!cut.is_empty())
        .then(|| format!("the trace has the first {CALLBACKS_MAX} callbacks only of: {}", cut.join(", "))))
}

fn perfetto<W: io::Write>(out: W, all: &[Shown]) -> io::Result<W> {
    let mut writer = PerfettoWriter::new(out);
    for (number, shown) in all.iter().enumerate() {
        let mut steps: Vec<(Nanos, bool, &Ran)> = Vec::new();
        for ran in shown.ran.iter().take(CALLBACKS_MAX) {
            steps.push((ran.began, true, ran));
            steps.push((ran.ended, false, ran));
        }
        // A callback ends before the next one of its lane begins; at equal times the end is first.
        steps.sort_by_key(|(at, is_begin, ran)| (*at, *is_begin && ran.began != ran.ended));
        for (line, (at, is_begin, ran)) in (1..).zip(steps) {
            let name = format!("{} ({}, tid {})", ran.name, shown.variant, ran.tid);
            // The timers of two variants are different ones.
            let timer = ((number as u64 + 1) << 32) | ran.timer;
            let mut take = |event| {
                let task = Task { comm: b"lane", pid: ran.tid };
                writer.take(&Record { line, task, cpu: ran.cpu, context: None, at, event })
            };
            if !is_begin {
                take(Event::TimerExpireExit { timer })?;
                continue;
            }
            if let Some(armed) = ran.armed {
                take(Event::TimerStart(start(timer, armed, name.as_bytes())))?;
            }
            take(Event::TimerExpireEntry { timer, function: name.as_bytes(), now: 0, baseclk: None })?;
        }
    }
    writer.finish()
}

/// Where a timer was armed; when it was due is not shown.
fn start(timer: u64, base: CpuId, function: &[u8]) -> TimerStart<'_> {
    TimerStart {
        timer,
        function,
        expires: 0,
        timeout: 0,
        bucket_expiry: None,
        base,
        bucket: None,
        deferrable: false,
        pinned: false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Ran, Shown, perfetto};
    use quietcore_core::{CpuId, Nanos};

    /// Goal: a callback that ran elsewhere is a pull, with its thread in its name; variants are told apart.
    /// Method: one at home and one away, of two variants.
    #[test]
    fn a_callback_that_ran_elsewhere_is_a_pull() {
        let cpu = |number| CpuId::new(number).expect("a CPU");
        let ran = |on: u64, at: u64| Ran {
            timer: 1,
            name: "work",
            armed: Some(cpu(0)),
            cpu: cpu(on),
            tid: 4000 + on as i32,
            began: Nanos(at),
            ended: Nanos(at + 500),
        };
        let all = [
            Shown { variant: "off", ran: vec![ran(1, 1_000)] },
            Shown { variant: "on", ran: vec![ran(0, 9_000)] },
        ];
        let file = perfetto(Vec::new(), &all).expect("memory takes all");
        let has = |text: &str| file.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(has("pull work (off, tid 4001) from CPU 0"));
        assert!(has("work (on, tid 4000)") && !has("pull work (on"));
        assert!(perfetto(Vec::new(), &[]).is_ok());
    }
}
