//! Plays a script on a wheel and on the oracle, and compares after every step.

use crate::oracle::{Measures, Oracle, Pending, tick};
use crate::subject::{Subject, precision_of};
use quietcore_wheel::{Precision, Tick};

/// One step. Times are relative to the present: the past is negative.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Arm(usize, i64),
    Reduce(usize, i64),
    ModPending(usize, i64),
    Cancel(usize),
    /// Time passes, and the clock is told.
    Forward(u64),
    /// Time passes, and what is due is taken out.
    Expire(u64),
    /// Time passes, and only so many of those due are taken out before the next step.
    ExpireSome(u64, usize),
    NextExpiry,
}

/// A wheel and its oracle at one moment.
pub(crate) struct Play<'a, S> {
    subject: &'a mut S,
    oracle: Oracle,
    /// The present, in the oracle's time.
    now: u128,
}

impl<'a, S: Subject> Play<'a, S> {
    pub(crate) fn new(subject: &'a mut S, measures: Measures) -> Self {
        let clock = Oracle::OFFSET + u128::from(subject.clock().0);
        Self { subject, oracle: Oracle::new(measures, clock), now: clock }
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Arm(id, delay) => self.arm(id, self.at(delay)),
            Step::Reduce(id, delay) => {
                let expires = self.at(delay);
                self.subject.reduce(id, tick(expires));
                if self.oracle.find(id).is_none_or(|timer| expires < timer.expires) {
                    self.oracle.arm(id, expires, precision_of(id));
                }
            }
            Step::ModPending(id, delay) => {
                let expires = self.at(delay);
                self.subject.mod_pending(id, tick(expires));
                if self.oracle.find(id).is_some() {
                    self.oracle.arm(id, expires, precision_of(id));
                }
            }
            Step::Cancel(id) => assert_eq!(self.subject.cancel(id), self.oracle.cancel(id), "cancel {id}"),
            Step::Forward(ticks) => {
                self.now += u128::from(ticks);
                self.subject.forward(tick(self.now));
                self.read_clock();
            }
            Step::Expire(ticks) => self.expire(ticks, usize::MAX),
            Step::ExpireSome(ticks, count) => self.expire(ticks, count),
            Step::NextExpiry => {
                assert_eq!(self.subject.next_expiry(), self.oracle.first_due().map(tick), "next expiry");
            }
        }
        self.subject.check();
    }

    /// Takes out everything that is left.
    pub(crate) fn drain(&mut self) {
        self.step(Step::Expire(0));
        while let Some(first) = self.oracle.first_due() {
            assert_eq!(self.subject.next_expiry(), Some(tick(first)), "next expiry while draining");
            let ticks = first.saturating_sub(self.now);
            self.step(Step::Expire(ticks as u64));
        }
        assert_eq!(self.subject.next_expiry(), None);
        assert_eq!(self.subject.next_expired(tick(self.now)), None);
    }

    fn at(&self, delay: i64) -> u128 {
        self.now.wrapping_add_signed(i128::from(delay))
    }

    fn arm(&mut self, id: usize, expires: u128) {
        let precision = precision_of(id);
        let place = self.oracle.measures.place(self.oracle.clock, expires, precision);
        assert_eq!(self.subject.place(tick(expires), precision), tick(place.1), "place of {id}");
        self.subject.arm(id, tick(expires));
        self.oracle.arm(id, expires, precision);
    }

    fn expire(&mut self, ticks: u64, count: usize) {
        self.now += u128::from(ticks);
        for _ in 0..count {
            let id = self.subject.next_expired(tick(self.now));
            let expected = self.oracle.next_due(self.now);
            assert_eq!(id, expected.as_ref().map(|timer| timer.id), "at {}", self.now);
            assert_eq!(self.subject.clock(), tick(self.oracle.clock), "clock at {}", self.now);
            match expected {
                Some(timer) => self.check_lateness(&timer),
                None => return,
            }
        }
    }

    /// The promise of the interface, once more and from outside: never early, and coarse timers late by 1
    /// tick to a granule. (How late tick precision is: see `precision`.)
    fn check_lateness(&self, timer: &Pending) {
        let measures = self.oracle.measures;
        let is_clipped = timer.level == measures.levels - 1 && timer.expires >= timer.due;
        match timer.precision {
            Precision::Tick => assert!(timer.expires < self.now, "{timer:?} is early at {}", self.now),
            Precision::Coarse if is_clipped => {}
            Precision::Coarse => {
                assert!(timer.due > timer.expires, "{timer:?} is early");
                let late = timer.due - timer.expires;
                assert!(timer.level == 0 || late <= measures.granularity(timer.level), "{timer:?} is late");
            }
        }
    }

    /// After a forward: the clock is the present, or waits for what is due (and, after a cancel, for
    /// what would have been due), or leads by the tick that was collected. It never goes back.
    fn read_clock(&mut self) {
        let seen = self.subject.clock();
        let ticks = seen.since(tick(self.oracle.clock));
        assert!(ticks >= 0, "the clock went back by {ticks} (W4)");
        let clock = self.oracle.clock + u128::from(ticks.unsigned_abs());
        assert!(ticks == 0 || clock <= self.now, "the clock passed the present (W4)");
        assert!(self.oracle.first_due().is_none_or(|first| clock <= first), "the clock passed a bucket (W4)");
        self.oracle.clock = clock;
    }
}

/// Plays all of `script` from the wheel's clock on, and drains. Returns how many steps that were.
pub(crate) fn play<S: Subject>(subject: &mut S, measures: Measures, script: &[Step]) -> usize {
    let mut play = Play::new(subject, measures);
    for step in script {
        play.step(*step);
    }
    play.drain();
    script.len()
}

/// A clock that wraps during the test, for any counter of `bits` bits.
pub(crate) fn shortly_before_wrap(bits: u32, ticks: u64) -> Tick {
    Tick((1_u128 << bits).wrapping_sub(u128::from(ticks)) as u64)
}
