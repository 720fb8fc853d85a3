//! A thread that is no lane: it arms pinned timers on the isolated lane, and what becomes of them.

use crate::error::LabError;
use crate::harness::{stay_on, tick};
use crate::plan::TrialContext;
use crate::slice::SliceLog;
use quietcore_live::{CpuId, Machine, Nanos, TimerHandle};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Of the machine, in ns.
pub(super) const TICK: u64 = 1_000_000;
/// Timers that are armed from elsewhere, again and again. No eighth of them is a multiple of a turn's budget
/// (256): a turn that uses it up is followed by one that runs nothing.
const TIMERS: usize = 1000;
/// A burst begins up to so long before an edge; it takes about as long.
const LEAD: u64 = 250_000;
/// Where the moments of a burst lie, as seen from its edge.
const MOMENTS: [i64; 8] = [-1_000, -1, 0, 1, 1_000, 20_000, 999_999, 1_000_000];
/// How long a timer that is armed is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What became of what was armed from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Arms {
    pub(super) made: u64,
    pub(super) early: u64,
    /// Of each that ran, in ns.
    pub(super) late: Vec<u64>,
}

/// A timer's moment, and when the call that armed it had returned.
#[derive(Clone, Copy, Debug, Default)]
struct Armed {
    moment: Nanos,
    called: Nanos,
}

impl Arms {
    /// How many did not run.
    pub(super) fn never(&self) -> u64 {
        self.made - self.late.len() as u64
    }

    /// A timer that was armed so ran then.
    fn take(&mut self, armed: Armed, ran: Nanos) {
        self.early += u64::from(ran < armed.moment);
        self.late.push(ran.since(armed.moment.max(armed.called)).0);
    }
}

/// A thread that is no lane arms for `span`.
pub(super) fn arm_for(
    context: &TrialContext,
    machine: &'static Machine,
    span: Duration,
) -> Result<Arms, LabError> {
    let [sleeper, busy] = context.cpus;
    let (stop, slices) = (&context.stop, context.slices.clone());
    let go_on = |began: Instant| began.elapsed() < span && !stop.is_set();
    thread::scope(|scope| {
        let foreign = scope.spawn(move || {
            stay_on(sleeper).map_err(LabError::Trial)?;
            let mut armer = Armer::new(machine, busy, &slices);
            let began = Instant::now();
            while go_on(began) {
                armer.burst()?;
                armer.collect();
            }
            Ok(armer.end())
        });
        foreign.join().unwrap_or_else(|_| Err(LabError::Trial("the thread that arms panicked".to_owned())))
    })
}

/// Arms timers again as they report.
struct Armer {
    machine: &'static Machine,
    busy: CpuId,
    timers: Vec<TimerHandle>,
    free: Vec<usize>,
    /// By timer.
    due: Vec<Armed>,
    /// Which timer ran, and when.
    reports: Receiver<(usize, Nanos)>,
    arms: Arms,
}

impl Armer {
    fn new(machine: &'static Machine, busy: CpuId, slices: &SliceLog) -> Self {
        let (sender, reports) = channel();
        let timer = |number| {
            let (sender, slices) = (sender.clone(), slices.clone());
            machine.timer(tick().pinned(), move |run| {
                // The receiver is gone when the trial is over.
                let _ = sender.send((number, run.now()));
                slices.ran(number as u64, "armed from elsewhere", None, run);
            })
        };
        let timers = (0..TIMERS).map(timer).collect();
        let (free, due) = ((0..TIMERS).collect(), vec![Armed::default(); TIMERS]);
        Self { machine, busy, timers, free, due, reports, arms: Arms::default() }
    }

    /// Arms all that are free around the next edge. Without a sleep: the edge would be over.
    fn burst(&mut self) -> Result<(), LabError> {
        let made = self.arms.made;
        let edge = (self.machine.now().0 / TICK + 1) * TICK;
        // A number that shares no factor with the length: the beginnings cover it evenly.
        let begin = edge - made.wrapping_mul(7_919) % LEAD;
        while self.machine.now().0 < begin {
            std::hint::spin_loop();
        }
        for (at, number) in std::mem::take(&mut self.free).into_iter().enumerate() {
            let moment = edge.saturating_add_signed(MOMENTS[(at + made as usize) % MOMENTS.len()]);
            self.timers[number].arm_on(self.busy, Nanos(moment))?;
            self.due[number] = Armed { moment: Nanos(moment), called: self.machine.now() };
            self.arms.made += 1;
        }
        Ok(())
    }

    fn collect(&mut self) {
        while let Ok((number, ran)) = self.reports.try_recv() {
            self.arms.take(self.due[number], ran);
            self.free.push(number);
        }
    }

    /// Waits for those that are armed; those that do not come are what must not be.
    fn end(mut self) -> Arms {
        let end = Instant::now() + PATIENCE;
        while self.free.len() < TIMERS && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
            self.collect();
        }
        self.arms
    }
}

#[cfg(test)]
mod tests {
    use super::{Armed, Arms};
    use quietcore_live::Nanos;

    /// Goal: early is before its moment, and late is from the later of the moment and the end of the call.
    /// Method: both orders of the two, just before, at and after the moment.
    #[test]
    fn late_is_from_the_later_of_two() {
        let (before, after) = (Nanos(400), Nanos(650));
        let mut arms = Arms::default();
        for (called, ran) in [(before, 599), (before, 600), (before, 730), (after, 600), (after, 661)] {
            arms.take(Armed { moment: Nanos(600), called }, Nanos(ran));
        }
        arms.made = 7;
        assert_eq!((arms.never(), arms.early, arms.late), (2, 1, vec![0, 0, 130, 0, 11]));
    }
}
