//! `timer_cancel`: a timer is deleted, about to be started again, or about to expire.
//!
//! The line does not say which of the three. In a softirq the next line of the CPU tells: an expiry of the
//! same timer, or anything else. Interrupts in between do not count, nor do the lines of `between.rs`.

use crate::base::{ArmedTimer, WaitingTimer};
use crate::between::timer_thread;
use crate::replay::{LineBefore, OutOfWheel, TakenTimer, TimerReplay};
use crate::swapped::Owed;
use quietcore_core::CpuId;
use quietcore_trace::{InterruptContext, Record};

impl TimerReplay {
    pub(crate) fn take_cancel(&mut self, record: &Record<'_>, timer: u64, before: &LineBefore) {
        self.seen.cancel = true;
        self.counts.cancels.total += 1;
        let line = Owed { timer, cancels: -1, at: record.at, line: record.line };
        if self.swapped.balance(timer) > 0 {
            self.swapped.add(line); // its timer_start came before it, and took the timer out
            return;
        }
        if record.context != Some(InterruptContext::Softirq) || before.between.is_some() {
            if self.take_out(timer).is_none() {
                self.swapped.add(line);
            }
            return;
        }
        let out = self.take_in_softirq(record.cpu, timer);
        let is_irq_safe = self.is_irq_safe(&out);
        let cpu = self.cpus.entry(record.cpu).or_default();
        cpu.taken = Some(TakenTimer { out, line, is_irq_safe, between: None });
        cpu.thread = timer_thread(&record.task, record.cpu);
    }

    /// Whether a taken timer expires with interrupts off; one that was not pending here may not.
    fn is_irq_safe(&self, out: &OutOfWheel) -> bool {
        match out {
            OutOfWheel::Unknown => false,
            OutOfWheel::Waiting(name) => {
                let waiting = self.bases.get(name).and_then(|base| base.wheel.get(base.waiting?.key));
                waiting.is_some_and(|pending| pending.is_irq_safe)
            }
            OutOfWheel::Removed(removed) => removed.pending.is_irq_safe,
        }
    }

    /// A timer of the first bucket may be the first of a run: it stays in our wheel until the next line.
    fn take_in_softirq(&mut self, cpu: CpuId, timer: u64) -> OutOfWheel {
        let Some(&ArmedTimer { base: name, key }) = self.armed.get(&timer) else {
            return OutOfWheel::Unknown;
        };
        self.settle_taken(name);
        if let Some(base) = self.bases.get_mut(&name)
            && base.is_in_first_bucket(key)
        {
            self.armed.remove(&timer);
            base.waiting = Some(WaitingTimer { key, timer, cpu });
            return OutOfWheel::Waiting(name);
        }
        self.take_out(timer).map_or(OutOfWheel::Unknown, OutOfWheel::Removed)
    }
}
