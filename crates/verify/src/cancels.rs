//! `timer_cancel`: a timer is deleted, about to be started again, or about to expire.
//!
//! The line does not say which of the three. In a softirq the next line of the CPU tells: an expiry of the
//! same timer, or anything else. Interrupts in between do not count.

use crate::base::{ArmedTimer, WaitingTimer};
use crate::replay::{OutOfWheel, TakenTimer, TimerReplay};
use crate::swapped::Owed;
use quietcore_core::CpuId;
use quietcore_trace::{InterruptContext, Record};

impl TimerReplay {
    pub(crate) fn take_cancel(&mut self, record: &Record<'_>, timer: u64) {
        self.seen.cancel = true;
        self.counts.cancels.total += 1;
        let line = Owed { timer, cancels: -1, at: record.at, line: record.line };
        if self.swapped.balance(timer) > 0 {
            self.swapped.add(line); // its timer_start came before it, and took the timer out
            return;
        }
        if record.context != Some(InterruptContext::Softirq) {
            if self.take_out(timer).is_none() {
                self.swapped.add(line);
            }
            return;
        }
        let out = self.take_in_softirq(record.cpu, timer);
        self.cpus.entry(record.cpu).or_default().taken = Some(TakenTimer { out, line });
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
