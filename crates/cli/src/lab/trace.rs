//! What ran where in the last round of a variant, as a Perfetto trace.
//!
//! A row says of each callback who armed it where, and which thread ran it from when to when; the same of
//! polls of tasks and of softirqs' handlers. The file is made by the writer that shows recordings of the
//! kernel, so a callback that ran on another lane than the one that armed it is a pull there, too. Tasks are
//! on the track of the timers of their CPU, where a lane runs one or the other. The variants come one after
//! the other on one time axis, as they ran.

use super::plan::Bench;
use crate::error::CliError;
use crate::output::AtomicFile;
use quietcore_core::{CpuId, Nanos};
use quietcore_live::{Machine, Run, SoftirqRun};
use quietcore_trace::{Event, PerfettoWriter, Record, SoftirqStep, Task, TimerStart};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// What one variant can show; the rest is left out, and that is said.
const SLICES_MAX: usize = 50_000;

/// What it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A timer's callback: which, and the lane that armed it, where that is known.
    Timer { number: u64, armed: Option<CpuId> },
    /// Part of a task, or of one of several.
    Task { number: Option<u64> },
    /// A softirq's handler, by its vector.
    Softirq { vector: u8 },
}

/// Something that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    pub(super) cpu: CpuId,
    /// The thread that ran it.
    pub(super) tid: i32,
    pub(super) began: Nanos,
    pub(super) ended: Nanos,
}

/// Takes down what ran, if somebody wants to see it.
#[derive(Clone)]
pub(super) struct Note(Option<Arc<Mutex<Vec<Ran>>>>);

impl Note {
    pub(super) fn of(bench: &Bench) -> Self {
        Self(bench.trace.clone())
    }

    /// At the end of a callback: it ran until now.
    pub(super) fn ran(&self, number: u64, name: &'static str, armed: Option<CpuId>, run: &Run<'_>) {
        let machine = run.timer().machine();
        self.take(machine, Kind::Timer { number, armed }, (name, run.cpu()), run.now());
    }

    /// At the end of a handler that began then.
    pub(super) fn handled(&self, run: &SoftirqRun<'_>, began: Nanos) {
        let kind = Kind::Softirq { vector: run.vector().index() as u8 };
        self.take(run.machine(), kind, (run.vector().name(), run.cpu()), began);
    }

    /// Runs a part of a task, on a thread that is bound to its lane's CPU.
    pub(super) fn around(
        &self,
        machine: &Machine,
        name: &'static str,
        number: Option<u64>,
        part: impl FnOnce(),
    ) {
        let began = self.0.as_ref().map(|_| machine.now());
        part();
        let cpu = CpuId::new(rustix::thread::sched_getcpu() as u64);
        if let (Some(began), Ok(cpu)) = (began, cpu) {
            self.take(machine, Kind::Task { number }, (name, cpu), began);
        }
    }

    fn take(&self, machine: &Machine, kind: Kind, (name, cpu): (&'static str, CpuId), began: Nanos) {
        let Some(all) = &self.0 else { return };
        let ended = machine.now();
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() <= SLICES_MAX {
            all.push(Ran { kind, name, cpu, tid, began, ended });
        }
    }
}

/// What ran in a variant.
pub(super) struct Shown {
    pub(super) row: &'static str,
    pub(super) variant: &'static str,
    pub(super) ran: Vec<Ran>,
}

/// Writes all of them to `path`; says what did not fit.
pub(super) fn write(path: &Path, file: AtomicFile, all: &[Shown]) -> Result<Option<String>, CliError> {
    let failed = |error| CliError::Write(path.to_owned(), error);
    perfetto(file, all).map_err(failed)?.finish()?;
    let cut = all.iter().filter(|shown| shown.ran.len() > SLICES_MAX);
    let cut: Vec<String> = cut.map(|shown| format!("{} {}", shown.row, shown.variant)).collect();
    Ok((!cut.is_empty()).then(|| {
        format!("the trace has the first {SLICES_MAX} callbacks and polls only of: {}", cut.join(", "))
    }))
}

fn perfetto<W: io::Write>(out: W, all: &[Shown]) -> io::Result<W> {
    let mut writer = PerfettoWriter::new(out);
    for (number, shown) in all.iter().enumerate() {
        let mut steps: Vec<(Nanos, bool, &Ran)> = Vec::new();
        for ran in shown.ran.iter().take(SLICES_MAX) {
            steps.push((ran.began, true, ran));
            steps.push((ran.ended, false, ran));
        }
        // What a lane runs ends before the next thing begins; at equal times the end is first.
        steps.sort_by_key(|(at, is_begin, ran)| (*at, *is_begin && ran.began != ran.ended));
        for (line, (at, is_begin, ran)) in (1..).zip(steps) {
            let mut take = |event| {
                let task = Task { comm: b"lane", pid: ran.tid };
                writer.take(&Record { line, task, cpu: ran.cpu, context: None, at, event })
            };
            // What has the same number in two variants is not the same.
            let variant = (number as u64 + 1) << 32;
            let (timer, armed, which) = match ran.kind {
                Kind::Timer { number, armed } => (variant | number, armed, String::new()),
                Kind::Task { number } => {
                    let which = number.map(|number| format!(" {number}")).unwrap_or_default();
                    (variant | 1 << 31 | number.unwrap_or_default(), None, which)
                }
                Kind::Softirq { vector } => {
                    let step = if is_begin { SoftirqStep::Entry } else { SoftirqStep::Exit };
                    take(Event::Softirq { step, vector })?;
                    continue;
                }
            };
            if !is_begin {
                take(Event::TimerExpireExit { timer })?;
                continue;
            }
            let name = format!("{}{which} ({} {}, tid {})", ran.name, shown.row, shown.variant, ran.tid);
            if let Some(armed) = armed {
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
    use super::{Kind, Ran, Shown, perfetto};
    use quietcore_core::{CpuId, Nanos};

    fn cpu(number: u64) -> CpuId {
        CpuId::new(number).expect("a CPU")
    }

    fn ran(kind: Kind, on: u64, at: u64) -> Ran {
        let (began, ended) = (Nanos(at), Nanos(at + 500));
        Ran { kind, name: "work", cpu: cpu(on), tid: 4000 + on as i32, began, ended }
    }

    /// Goal: a callback that ran elsewhere is a pull, with its thread in its name; variants are told apart.
    /// Method: one at home and one away, of two variants.
    #[test]
    fn a_callback_that_ran_elsewhere_is_a_pull() {
        let timer = Kind::Timer { number: 1, armed: Some(cpu(0)) };
        let all = [
            Shown { row: "oslat", variant: "off", ran: vec![ran(timer, 1, 1_000)] },
            Shown { row: "oslat", variant: "on", ran: vec![ran(timer, 0, 9_000)] },
        ];
        let file = perfetto(Vec::new(), &all).expect("memory takes all");
        let has = |text: &str| file.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(has("pull work (oslat off, tid 4001) from CPU 0"));
        assert!(has("work (oslat on, tid 4000)") && !has("pull work (oslat on"));
        assert!(perfetto(Vec::new(), &[]).is_ok());
    }

    /// Goal: tasks and softirqs are slices, too. Method: one of each.
    #[test]
    fn tasks_and_handlers_are_shown() {
        let kinds =
            [Kind::Task { number: Some(3) }, Kind::Task { number: None }, Kind::Softirq { vector: 3 }];
        let ran = (1..).zip(kinds).map(|(at, kind)| ran(kind, 0, at * 1_000)).collect();
        let all = [Shown { row: "cyclictest", variant: "both", ran }];
        let file = perfetto(Vec::new(), &all).expect("memory takes all");
        for text in ["work 3 (cyclictest both, tid 4000)", "work (cyclictest both, tid 4000)", "NET_RX"] {
            assert!(file.windows(text.len()).any(|bytes| bytes == text.as_bytes()), "{text}");
        }
    }
}
