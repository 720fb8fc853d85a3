//! Runs: when the run of a bucket is over, and what must have happened by then.
//!
//! A run is over when its CPU writes a line outside of softirqs, or expires a timer of another bucket; in a
//! thread that can be preempted, the line must be the thread's own (`between.rs`). All that our wheel
//! collected must have expired or been cancelled, and no bucket may be due: the kernel's loop goes on while
//! one is.

use crate::base::{BaseName, BucketRun, TimerBase};
use crate::between::Between;
use crate::mismatch::{Check, MismatchText};
use crate::replay::TimerReplay;
use quietcore_core::CpuId;
use quietcore_trace::{Record, counted};
use quietcore_wheel::Tick;
use std::mem;

impl TimerReplay {
    /// The run on `cpu`, if there is one, is over at `line`, and the CPU goes on with `next`.
    pub(crate) fn end_run(&mut self, cpu: CpuId, line: u64, next: Option<BaseName>) {
        let Some(cpu_of_run) = self.cpus.get_mut(&cpu) else { return };
        cpu_of_run.is_preempted = false;
        let Some((name, begun)) = cpu_of_run.running.take() else { return };
        let run = self.bases.get(&name).and_then(|base| base.run.as_ref());
        if !run.is_some_and(|run| run.cpu == cpu && run.line == begun) {
            return; // another CPU has begun a later run of the base
        }
        self.settle_taken(name);
        let left = self.drain(name);
        let Some(base) = self.bases.get_mut(&name) else { return };
        let Some(run) = base.run.take() else { return };
        let first = base.wheel.next_expiry();
        let due = run.more.filter(|more| next != Some(name) && first == Some(*more));
        let (expected, why) = match due {
            _ if left > 0 => {
                (counted(left, "more expiry", "more expiries"), "a run takes every timer of its tick")
            }
            Some(due) => {
                (format!("a run of bucket expiry {}", due.0), "a softirq goes on while a bucket is due")
            }
            None => return,
        };
        self.counts.mismatch(line, Check::Run, || MismatchText {
            event: format!("run of bucket expiry {} of the {name}, begun at line {begun}", run.expiry.0),
            expected,
            recorded: "the end of the run".to_owned(),
            why,
        });
    }

    /// `expiry` of the base is run, from this line on. Returns how many timers a run before it left.
    pub(crate) fn open_run(&mut self, record: &Record<'_>, name: BaseName, expiry: Tick) -> u64 {
        self.end_run(record.cpu, record.line, Some(name));
        self.settle_taken(name);
        let left = self.drain(name);
        let run = TimerBase::run(record.cpu, record.line, expiry);
        self.skip_to(name, &run);
        if let Some(base) = self.bases.get_mut(&name) {
            base.collect(run);
        }
        self.cpus.entry(record.cpu).or_default().running = Some((name, record.line));
        self.counts.runs.total += 1;
        left
    }

    /// A timer of the run on `cpu` expired at `now`: notes what else is due if it was the last.
    pub(crate) fn note_more(&mut self, cpu: CpuId, now: Tick) {
        let running = self.cpus.get(&cpu).and_then(|cpu| cpu.running);
        let Some(base) = running.and_then(|(name, _)| self.bases.get_mut(&name)) else { return };
        base.note_more(now);
    }

    /// A timer expired on `cpu`, and lines of `between` stood before its expiry: counts what explains them.
    pub(crate) fn note_between(&mut self, cpu: CpuId, between: Option<Between>) {
        let Some(cpu) = self.cpus.get_mut(&cpu) else { return };
        let of_run = mem::take(&mut cpu.is_preempted).then_some(Between::Preemption);
        let notes = &mut self.counts.notes;
        match between.or(of_run) {
            Some(Between::InterruptExit) => notes.interrupt_exit += 1,
            Some(Between::Preemption) => notes.preempted += 1,
            None => {}
        }
    }

    /// When the next timer that `cpu` has to expire was due, if it is in a run.
    pub(crate) fn front_of_run(&mut self, cpu: CpuId) -> Option<Tick> {
        let (name, begun) = self.cpus.get(&cpu)?.running?;
        let base = self.bases.get_mut(&name)?;
        base.run.as_ref().filter(|run| run.cpu == cpu && run.line == begun)?;
        Some(base.front()?.place.expiry)
    }

    /// Forgets the collected timers that did not expire; returns how many there were.
    pub(crate) fn drain(&mut self, name: BaseName) -> u64 {
        let Some(base) = self.bases.get_mut(&name) else { return 0 };
        let mut left = 0;
        while let Some(pending) = base.pop_left() {
            self.armed.remove(&pending.timer);
            left += 1;
        }
        left
    }

    /// Whether a bucket of the base comes before `expiry`.
    pub(crate) fn is_due_before(&mut self, name: BaseName, expiry: Tick) -> bool {
        let first = self.bases.get_mut(&name).and_then(|base| base.wheel.next_expiry());
        first.is_some_and(|first| first.is_before(expiry))
    }

    /// Drops the buckets before that of `run`, which a contradicted base still has.
    pub(crate) fn skip_to(&mut self, name: BaseName, run: &BucketRun) {
        while self.is_due_before(name, run.expiry) {
            let Some(base) = self.bases.get_mut(&name) else { return };
            let Some(first) = base.wheel.next_expiry() else { return };
            base.collect(TimerBase::run(run.cpu, run.line, first));
            self.drain(name);
        }
    }
}
