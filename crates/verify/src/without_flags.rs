//! Text that allows no replay: what is checked of it.
//!
//! `trace-cmd report` leaves out the flags that tell a softirq from a task, and shows the same `flags=` for
//! every timer, so neither runs nor bases can be told apart there. What is left: a start's place against
//! clock = jiffies, or against any clock at all, and an expiry's bucket against its timer's last start.

use crate::class::ClockClass;
use crate::expiries::{Contradiction, ExpiryAgreement};
use crate::mismatch::{Check, MismatchText};
use crate::place::RecordedPlace;
use crate::replay::TimerReplay;
use crate::starts::describe;
use quietcore_trace::{Event, Record, TimerStart};
use quietcore_wheel::Tick;

impl TimerReplay {
    pub(crate) fn take_without_flags(&mut self, record: &Record<'_>) {
        match &record.event {
            Event::TimerStart(start) => self.start_without_flags(record.line, start),
            Event::TimerCancel { .. } => {
                self.seen.cancel = true;
                self.counts.cancels.total += 1;
            }
            Event::TimerExpireEntry { timer, .. } => {
                let due = self.due.as_mut().and_then(|due| due.remove(*timer)).map(Tick);
                self.judge_expiry(record, |baseclk| match (due, baseclk) {
                    (Some(due), Some(baseclk)) if due != baseclk => {
                        Err(Contradiction::of_bucket(due, baseclk, "the timer is in another bucket"))
                    }
                    (Some(_), Some(_)) => Ok(ExpiryAgreement::Exact),
                    _ => Ok(ExpiryAgreement::StartUnseen),
                });
            }
            _ => {}
        }
    }

    fn start_without_flags(&mut self, line: u64, start: &TimerStart<'_>) {
        let Some(recorded) = RecordedPlace::of(start) else {
            self.counts.notes.without_bucket += 1;
            return;
        };
        self.seen.bucket_expiry |= start.bucket_expiry.is_some();
        self.counts.starts += 1;
        if let (Some(due), Some(expiry)) = (&mut self.due, start.bucket_expiry) {
            due.insert(start.timer, expiry);
        }
        let jiffies = Tick(start.expires.wrapping_sub(start.timeout.cast_unsigned()));
        let place = self.levels.place(jiffies, Tick(start.expires));
        if recorded.is(place) {
            return self.count(None);
        }
        if recorded.is_possible(start, jiffies, self.levels) {
            return self.count(Some(ClockClass::AfterLoss));
        }
        self.counts.mismatch(line, Check::TimerStart, || MismatchText {
            event: describe(start, &format!("base of CPU {}", start.base), jiffies),
            expected: format!(
                "bucket {} due {} (clock {}, jiffies)",
                place.bucket, place.expiry.0, jiffies.0
            ),
            recorded: recorded.to_string(),
            why: "no clock gives this bucket",
        });
    }
}
