//! `timer_expire_entry`: a timer's callback begins, held against our wheel's order of expiry.
//!
//! A run is one bucket expiry of one base, on one CPU. Its first timer must come from the base's first
//! bucket; our wheel collects that bucket, and the timers must expire one by one in the order in which it
//! hands them out, unless they are cancelled, until none is left. The kernel writes `timer_cancel` before
//! each expiry: what matters of that moment is in its [`TakenFrom`]. When a run is over is in `runs.rs`.

use crate::base::{BaseName, TakenFrom, WaitingTimer};
use crate::mismatch::{Check, MismatchText};
use crate::replay::{LineBefore, OutOfWheel, RemovedTimer, TimerReplay};
use quietcore_trace::{Event, Record, counted};
use quietcore_wheel::Tick;

const ORDER: &str = "order: the coarsest level first, in a bucket the last armed first";

/// What does not agree.
pub(crate) struct Contradiction {
    expected: String,
    recorded: String,
    why: &'static str,
}

impl Contradiction {
    pub(crate) fn of_bucket(expected: Tick, recorded: Tick, why: &'static str) -> Self {
        Self { expected: format!("baseclk {}", expected.0), recorded: format!("baseclk {}", recorded.0), why }
    }

    fn of_collecting(timer: u64) -> Self {
        Self {
            expected: "a timer of the bucket that is being run".to_owned(),
            recorded: format!("timer {timer:x}"),
            why: "our wheel did not collect it with that bucket",
        }
    }

    fn of_order(expected: u64, recorded: u64) -> Self {
        let [expected, recorded] = [expected, recorded].map(|timer| format!("timer {timer:x} first"));
        Self { expected, recorded, why: ORDER }
    }
}

/// What an expiry that contradicts nothing is.
pub(crate) enum ExpiryAgreement {
    Exact,
    /// The timer's start is not in the input.
    StartUnseen,
}

impl TimerReplay {
    pub(crate) fn take_expiry(&mut self, record: &Record<'_>, before: LineBefore) {
        let Event::TimerExpireEntry { timer, now, .. } = record.event else { return };
        self.show(Tick(now));
        let taken = before.taken.filter(|taken| taken.line.timer == timer);
        let between = taken.as_ref().and_then(|taken| taken.between);
        let out = taken.map(|taken| taken.out);
        let checked = match out {
            Some(OutOfWheel::Waiting(name)) => self.begin_run(record, name),
            Some(OutOfWheel::Removed(removed)) => self.check_order(record, &removed),
            Some(OutOfWheel::Unknown) => Ok(None),
            None => self.check_untaken(timer, before.is_first),
        };
        if matches!(out, Some(OutOfWheel::Waiting(_) | OutOfWheel::Removed(_))) {
            self.note_more(record.cpu, Tick(now));
        }
        self.note_between(record.cpu, between);
        // A timer that was not pending here is of the bucket that is being run, if one is.
        let left = self.front_of_run(record.cpu);
        self.judge_expiry(record, |baseclk| {
            let (expiry, agreement) = match checked? {
                Some(expiry) => (Some(expiry), ExpiryAgreement::Exact),
                None => (left, ExpiryAgreement::StartUnseen),
            };
            match (expiry, baseclk) {
                (Some(expiry), Some(baseclk)) if expiry != baseclk => {
                    Err(Contradiction::of_bucket(expiry, baseclk, "the timer is in another bucket"))
                }
                _ => Ok(agreement),
            }
        });
    }

    /// Counts an expiry as what `check` finds, given its `baseclk`.
    pub(crate) fn judge_expiry(
        &mut self,
        record: &Record<'_>,
        check: impl FnOnce(Option<Tick>) -> Result<ExpiryAgreement, Contradiction>,
    ) {
        let Event::TimerExpireEntry { timer, function, now, baseclk } = record.event else { return };
        self.seen.expiry = true;
        self.seen.baseclk |= baseclk.is_some();
        self.counts.expiries.total += 1;
        let checked = check(baseclk.map(Tick));
        let verdict = match baseclk.filter(|baseclk| Tick(now).is_before(Tick(*baseclk))) {
            Some(baseclk) => Err(Contradiction {
                expected: format!("baseclk {now} at the latest"),
                recorded: format!("baseclk {baseclk}"),
                why: "the bucket is not due yet",
            }),
            None => checked,
        };
        match verdict {
            Ok(ExpiryAgreement::Exact) => self.counts.expiries.exact += 1,
            Ok(ExpiryAgreement::StartUnseen) => self.counts.expiries.classes.start_unseen += 1,
            Err(Contradiction { expected, recorded, why }) => {
                self.counts.mismatch(record.line, Check::TimerExpireEntry, || MismatchText {
                    event: format!(
                        "timer {timer:x} ({}) on CPU {}: now {now}",
                        String::from_utf8_lossy(function),
                        record.cpu
                    ),
                    expected,
                    recorded,
                    why,
                });
            }
        }
    }

    /// An expiry without a `timer_cancel` right before it: that is possible only where nothing was read.
    fn check_untaken(&mut self, timer: u64, is_first: bool) -> Result<Option<Tick>, Contradiction> {
        self.take_out(timer);
        if is_first || !self.seen.cancel {
            return Ok(None);
        }
        Err(Contradiction {
            expected: "a timer_cancel of the same timer on the line before of this CPU".to_owned(),
            recorded: "none".to_owned(),
            why: "a timer is taken out of the wheel before it expires",
        })
    }

    /// A run begins with the bucket of the timer that waits in `name`: our wheel must hand it out first.
    fn begin_run(&mut self, record: &Record<'_>, name: BaseName) -> Result<Option<Tick>, Contradiction> {
        let Some(base) = self.bases.get_mut(&name) else { return Ok(None) };
        let Some(WaitingTimer { key, timer, .. }) = base.waiting.take() else { return Ok(None) };
        let Some(expiry) = base.wheel.get(key).map(|pending| pending.place.expiry) else { return Ok(None) };
        let left = self.open_run(record, name, expiry);
        let Some(base) = self.bases.get_mut(&name) else { return Ok(None) };
        let position = base.take_out(key, timer).map(|(_, position)| position);
        self.counts.runs.of_several += u64::from(base.front().is_some());
        finished(left, expiry)?;
        match position {
            Some(TakenFrom::Front) => Ok(Some(expiry)),
            Some(TakenFrom::Behind { front }) => Err(Contradiction::of_order(front, timer)),
            _ => Err(Contradiction::of_collecting(timer)),
        }
    }

    /// An expiry of a timer that is out of our wheel: the next of a run, or one that begins a run where it
    /// should not. In the moment between the two lines another CPU may also have changed the base; then
    /// whether it is the first of its bucket is not compared.
    fn check_order(
        &mut self,
        record: &Record<'_>,
        removed: &RemovedTimer,
    ) -> Result<Option<Tick>, Contradiction> {
        let (name, expiry, timer) = (removed.base, removed.pending.place.expiry, removed.pending.timer);
        let running = self.cpus.get(&record.cpu).and_then(|cpu| cpu.running);
        let run = self.bases.get(&name).and_then(|base| base.run.as_ref());
        let goes_on = run.is_some_and(|run| {
            run.cpu == record.cpu && run.expiry == expiry && running == Some((name, run.line))
        });
        match removed.position {
            TakenFrom::Front if goes_on => return Ok(Some(expiry)),
            TakenFrom::Behind { front } if goes_on => return Err(Contradiction::of_order(front, timer)),
            TakenFrom::Bucket { .. } if goes_on => return Err(Contradiction::of_collecting(timer)),
            _ => {}
        }
        let first = match removed.position {
            TakenFrom::Bucket { next_expiry } => next_expiry,
            TakenFrom::Front | TakenFrom::Behind { .. } => None,
        };
        let is_first = first == Some(expiry)
            || (self.forget_boot_gap(name, expiry) && !self.is_due_before(name, expiry));
        let left = self.open_run(record, name, expiry);
        let front = self.bases.get_mut(&name).and_then(|base| base.front().copied());
        self.counts.runs.of_several += u64::from(front.is_some());
        finished(left, expiry)?;
        if is_first {
            return Ok(Some(expiry));
        }
        Err(Contradiction {
            expected: first.map_or("no run".to_owned(), |first| format!("bucket expiry {}", first.0)),
            recorded: format!("bucket expiry {}", expiry.0),
            why: "it is not the first bucket of its base",
        })
    }
}

/// The run of the bucket before left no timer.
fn finished(left: u64, expiry: Tick) -> Result<(), Contradiction> {
    match left {
        0 => Ok(()),
        left => Err(Contradiction {
            expected: format!("{} of the bucket before", counted(left, "more expiry", "more expiries")),
            recorded: format!("bucket expiry {}", expiry.0),
            why: "the base's last run is not over",
        }),
    }
}
