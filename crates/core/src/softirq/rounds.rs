//! Rounds of softirqs: what a lane, and its ksoftirqd, do next with what is pending.
//!
//! A lane's round runs passes until its budget is used, holds back what must not run now, and leaves the
//! rest: to ksoftirqd what may go there, the rest to its own next round. ksoftirqd's round runs what may
//! move. What either of them finds claimed by the other it leaves to that one, which looks again when it is
//! done. A world runs handlers between the steps, wakes the threads that are named, and tells real-time tasks
//! apart.
//!
//! Invariant: what is pending when a round ends has a thread that comes to it: the other runner, ksoftirqd as
//! soon as it was asked, or the lane's next round.

use super::{Budget, Claims, Deferral, Passes, Runner, Step, VectorSet};
use crate::Nanos;

/// What a lane remembers from one round to the next.
#[derive(Clone, Debug)]
pub struct LaneSoftirqs {
    deferral: Deferral,
    /// Left to ksoftirqd, and not done by it yet: the lane takes them back only at the limit.
    given: VectorSet,
    /// Of those that ksoftirqd runs: the lane has waited for them.
    donated: VectorSet,
}

/// What a lane does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what is claimed has to be run"]
pub enum LaneStep {
    /// ksoftirqd runs these and has been kept from it for too long: the lane lets it have the CPU, and asks
    /// again.
    Donate(VectorSet),
    /// The handlers of these, in ascending order; then [`finish`](LaneRound::finish).
    Run(VectorSet),
    /// The round is over.
    End(Left),
}

/// What a lane's round leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// ksoftirqd is asked to run something. Where there is none, the lane comes back to it.
    pub to_ksoftirqd: bool,
    /// Something that may not move, or that no other thread looks at: the lane comes back to it.
    pub to_lane: bool,
    /// Vectors that were held back, and not before.
    pub deferred: u32,
}

/// A lane's round.
#[derive(Debug)]
pub struct LaneRound<'a> {
    of: &'a mut LaneSoftirqs,
    claims: &'a Claims,
    passes: Passes,
    claimed: VectorSet,
}

impl LaneSoftirqs {
    /// Of a lane on which nothing is held back for longer than `limit`, in ns.
    #[must_use]
    pub const fn new(limit: Nanos) -> Self {
        Self { deferral: Deferral::new(limit), given: VectorSet::EMPTY, donated: VectorSet::EMPTY }
    }

    /// A round, if there is anything in `claims`; `clock` is read only then.
    pub fn begin<'a>(
        &'a mut self,
        claims: &'a Claims,
        clock: impl FnOnce() -> Nanos,
    ) -> Option<LaneRound<'a>> {
        if claims.pending().is_empty() && claims.active().is_empty() {
            (self.given, self.donated) = (VectorSet::EMPTY, VectorSet::EMPTY);
            self.deferral.release();
            return None;
        }
        let passes = Passes::begin(Runner::Lane, Budget::default(), clock());
        Some(LaneRound { of: self, claims, passes, claimed: VectorSet::EMPTY })
    }
}

impl LaneRound<'_> {
    /// The next step at `now`. `defers` says that a real-time task waits, or was interrupted by this round,
    /// and that long vectors have to wait for it.
    pub fn next(&mut self, defers: bool, now: Nanos) -> LaneStep {
        // What ksoftirqd has begun waits, too, until that is done.
        let begun = self.claims.active();
        let pending = self.claims.pending();
        let waiting = pending.union(begun);
        let of = &mut *self.of;
        of.given = of.given.intersection(waiting);
        let long = if defers { waiting.intersection(VectorSet::LONG) } else { VectorSet::EMPTY };
        let held = of.deferral.hold(long.union(of.given), now);
        of.donated = of.donated.intersection(begun);
        let overdue = begun.intersection(long.union(of.given)).difference(held).difference(of.donated);
        if !overdue.is_empty() {
            // Once for each run of theirs.
            of.donated = of.donated.union(overdue);
            return LaneStep::Donate(overdue);
        }
        match self.passes.next(pending, held, now) {
            Step::Run(vectors) => {
                self.claimed = self.claims.claim(Runner::Lane, vectors);
                if self.claimed.is_empty() {
                    // ksoftirqd runs them, and looks again when it is done.
                    return LaneStep::End(self.leave(pending.intersection(held), held));
                }
                LaneStep::Run(self.claimed)
            }
            Step::End { left } => LaneStep::End(self.leave(left, held)),
        }
    }

    /// The handlers of what was claimed have returned. `must_end_early`: something more urgent waits, and
    /// this round has no further pass.
    pub fn finish(&mut self, must_end_early: bool) {
        self.of.deferral.ran(self.claimed);
        let _ = self.claims.finish(Runner::Lane);
        if must_end_early {
            self.passes.end_early();
        }
    }

    /// What is left of the round, and `held` of that.
    fn leave(&mut self, left: VectorSet, held: VectorSet) -> Left {
        let movable = left.intersection(VectorSet::MOVABLE);
        let deferred = movable.intersection(held).difference(self.of.given).iter().count() as u32;
        self.of.given = self.of.given.union(movable);
        // ksoftirqd also if it was asked before: since then it may have run these and gone to sleep.
        Left { to_ksoftirqd: !movable.is_empty(), to_lane: left != movable, deferred }
    }
}

/// What ksoftirqd does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what is claimed has to be run"]
pub enum KsoftirqdStep {
    /// The handlers of these, in ascending order; then [`finish`](KsoftirqdRound::finish).
    Run(VectorSet),
    /// The round is over, and more is pending: it takes another one when others had the CPU.
    Again,
    /// Nothing is left for it: it waits to be asked.
    Wait,
}

/// A round of ksoftirqd.
#[derive(Debug)]
pub struct KsoftirqdRound<'a> {
    claims: &'a Claims,
    passes: Passes,
}

impl<'a> KsoftirqdRound<'a> {
    /// One that begins at `now`.
    #[must_use]
    pub const fn begin(claims: &'a Claims, budget: Budget, now: Nanos) -> Self {
        Self { claims, passes: Passes::begin(Runner::Ksoftirqd, budget, now) }
    }

    /// The next step at `now`.
    pub fn next(&mut self, now: Nanos) -> KsoftirqdStep {
        match self.passes.next(self.claims.pending(), VectorSet::EMPTY, now) {
            Step::Run(vectors) => {
                let claimed = self.claims.claim(Runner::Ksoftirqd, vectors);
                // What the lane runs it looks at again when it is done.
                if claimed.is_empty() { KsoftirqdStep::Wait } else { KsoftirqdStep::Run(claimed) }
            }
            Step::End { left } if left.intersection(VectorSet::MOVABLE).is_empty() => KsoftirqdStep::Wait,
            Step::End { .. } => KsoftirqdStep::Again,
        }
    }

    /// The handlers of what was claimed have returned.
    pub fn finish(&self) {
        let _ = self.claims.finish(Runner::Ksoftirqd);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{KsoftirqdRound, KsoftirqdStep, LaneSoftirqs, LaneStep, Left};
    use crate::Nanos;
    use crate::softirq::{Budget, Claims, Raise, Runner, Vector, VectorSet};

    const LIMIT: Nanos = Nanos(1_000);

    fn raised(vectors: VectorSet) -> Claims {
        let claims = Claims::new();
        assert_eq!(claims.raise(vectors), Raise::News);
        claims
    }

    /// Goal: what may move is left to ksoftirqd once the budget is used, also if it was left before; what may
    /// not, to the lane. Method: two vectors that are raised again by each pass, in two rounds.
    #[test]
    fn what_is_left_has_a_runner() {
        let both = VectorSet::from_iter([Vector::TASKLET, Vector::BLOCK]);
        let claims = raised(both);
        let mut lane = LaneSoftirqs::new(LIMIT);
        for _ in 0..2 {
            let mut round = lane.begin(&claims, || Nanos(0)).expect("something is pending");
            let left = loop {
                match round.next(false, Nanos(1)) {
                    LaneStep::Run(_) => {
                        assert_eq!(claims.raise(both), Raise::News);
                        round.finish(false);
                    }
                    LaneStep::End(left) => break left,
                    LaneStep::Donate(vectors) => panic!("{vectors}"),
                }
            };
            assert_eq!(left, Left { to_ksoftirqd: true, to_lane: true, deferred: 0 });
        }
    }

    /// Goal: what a real-time task holds back goes to ksoftirqd, and comes back at the limit; if ksoftirqd is
    /// at it then, it gets the CPU, once in each run. Method: one long vector, twice.
    #[test]
    fn the_limit_brings_it_back() {
        let packets = VectorSet::from(Vector::NET_RX);
        let claims = raised(packets);
        let mut lane = LaneSoftirqs::new(LIMIT);
        let mut round = lane.begin(&claims, || Nanos(0)).expect("it is pending");
        let left = Left { to_ksoftirqd: true, to_lane: false, deferred: 1 };
        assert_eq!(round.next(true, Nanos(0)), LaneStep::End(left));
        assert_eq!(claims.claim(Runner::Ksoftirqd, packets), packets);
        let mut round = lane.begin(&claims, || Nanos(10)).expect("ksoftirqd runs it");
        assert_eq!(round.next(false, Nanos(10)), LaneStep::End(Left::default()));
        let mut round = lane.begin(&claims, || LIMIT).expect("it still does");
        assert_eq!(round.next(false, LIMIT), LaneStep::Donate(packets));
        assert_eq!(round.next(false, LIMIT), LaneStep::End(Left::default()), "once");
        assert_eq!(claims.raise(packets), Raise::News);
        assert!(claims.finish(Runner::Ksoftirqd).contains(Vector::NET_RX));
        let mut round = lane.begin(&claims, || LIMIT).expect("it is pending");
        assert_eq!(round.next(false, LIMIT), LaneStep::Run(packets));
        round.finish(false);
        assert!(lane.begin(&claims, || LIMIT).is_none());
        // Another run of ksoftirqd, another time.
        assert_eq!(claims.raise(packets), Raise::News);
        let (held, limit) = (Nanos(LIMIT.0 + 1), Nanos(2 * LIMIT.0 + 1));
        let mut round = lane.begin(&claims, || held).expect("it is pending");
        assert!(matches!(round.next(true, held), LaneStep::End(_)));
        assert_eq!(claims.claim(Runner::Ksoftirqd, packets), packets);
        let mut round = lane.begin(&claims, || limit).expect("ksoftirqd runs it");
        assert_eq!(round.next(false, limit), LaneStep::Donate(packets));
    }

    /// Goal: what is held back is left to ksoftirqd and counted, also where that runs all else. Method: it
    /// has claimed one vector, which is raised again; a long one is pending behind a real-time task.
    #[test]
    fn what_is_held_back_beside_ksoftirqd_is_left() {
        let [packets, user] = [Vector::NET_RX, Vector::user(0).expect("the first")].map(VectorSet::from);
        let claims = raised(user);
        assert_eq!(claims.claim(Runner::Ksoftirqd, user), user);
        assert_eq!(claims.raise(user.union(packets)), Raise::News);
        let mut lane = LaneSoftirqs::new(LIMIT);
        let mut round = lane.begin(&claims, || Nanos(0)).expect("they are pending");
        let left = Left { to_ksoftirqd: true, to_lane: false, deferred: 1 };
        assert_eq!(round.next(true, Nanos(0)), LaneStep::End(left));
        let mut round = lane.begin(&claims, || Nanos(1)).expect("they are pending");
        assert_eq!(round.next(false, Nanos(1)), LaneStep::End(Left { deferred: 0, ..left }), "it was given");
    }

    /// Goal: each run of ksoftirqd gets the CPU at the limit, also one that begins before the lane has
    /// looked. Method: two runs of it, and a round between them with nothing pending.
    #[test]
    fn each_run_of_ksoftirqd_is_donated_to() {
        let packets = VectorSet::from(Vector::NET_RX);
        let claims = Claims::new();
        let mut lane = LaneSoftirqs::new(LIMIT);
        for start in [0, 10_000] {
            assert!(lane.begin(&claims, || Nanos(start)).is_none());
            assert_eq!(claims.raise(packets), Raise::News);
            assert_eq!(claims.claim(Runner::Ksoftirqd, packets), packets);
            for (now, is_donated) in [(start, false), (start + LIMIT.0, true)] {
                let mut round = lane.begin(&claims, || Nanos(now)).expect("ksoftirqd runs it");
                let step = round.next(true, Nanos(now));
                assert_eq!(step == LaneStep::Donate(packets), is_donated, "{now}: {step:?}");
            }
            let _ = claims.finish(Runner::Ksoftirqd);
        }
    }

    /// Goal: that is so where there is no quiet moment between two runs of it, either. Method: the vector is
    /// raised again whenever it runs.
    #[test]
    fn each_run_of_ksoftirqd_is_donated_to_under_load() {
        let packets = VectorSet::from(Vector::NET_RX);
        let claims = raised(packets);
        let mut lane = LaneSoftirqs::new(LIMIT);
        for start in [0, 10 * LIMIT.0] {
            let mut next =
                |now| lane.begin(&claims, || Nanos(now)).expect("it is due").next(true, Nanos(now));
            assert!(matches!(next(start), LaneStep::End(Left { to_ksoftirqd: true, .. })), "{start}");
            assert_eq!(claims.claim(Runner::Ksoftirqd, packets), packets);
            assert_eq!(next(start + LIMIT.0), LaneStep::Donate(packets), "{start}");
            assert_eq!(claims.raise(packets), Raise::News);
            let _ = claims.finish(Runner::Ksoftirqd);
            let over = Nanos(start + LIMIT.0);
            let mut round = lane.begin(&claims, || over).expect("it is pending");
            assert_eq!(round.next(true, over), LaneStep::Run(packets), "{start}");
            assert_eq!(claims.raise(packets), Raise::News);
            round.finish(false);
        }
    }

    /// Goal: how long a vector was held back ends when all of them have run, elsewhere too: the next time it
    /// is held back for as long again. Method: held back, run by ksoftirqd, and raised again after the limit.
    #[test]
    fn a_quiet_round_ends_what_was_held_back() {
        let packets = VectorSet::from(Vector::NET_RX);
        let claims = raised(packets);
        let mut lane = LaneSoftirqs::new(LIMIT);
        let held = LaneStep::End(Left { to_ksoftirqd: true, to_lane: false, deferred: 1 });
        let mut round = lane.begin(&claims, || Nanos(0)).expect("it is pending");
        assert_eq!(round.next(true, Nanos(0)), held);
        assert_eq!(claims.claim(Runner::Ksoftirqd, packets), packets);
        let _ = claims.finish(Runner::Ksoftirqd);
        assert!(lane.begin(&claims, || Nanos(10)).is_none());
        assert_eq!(claims.raise(packets), Raise::News);
        let mut round = lane.begin(&claims, || LIMIT).expect("it is pending");
        assert_eq!(round.next(true, LIMIT), held);
    }

    /// Goal: ksoftirqd runs what may move, leaves to the lane what that runs, and takes another round when
    /// its budget is used. Method: passes that raise again.
    #[test]
    fn rounds_of_ksoftirqd() {
        let packets = VectorSet::from(Vector::NET_RX);
        let claims = raised(packets.union(Vector::TIMER.into()));
        let budget = Budget { passes: 2, ..Budget::default() };
        let mut round = KsoftirqdRound::begin(&claims, budget, Nanos(0));
        for _ in 0..2 {
            assert_eq!(round.next(Nanos(0)), KsoftirqdStep::Run(packets));
            assert_eq!(claims.raise(packets), Raise::News);
            round.finish();
        }
        assert_eq!(round.next(Nanos(0)), KsoftirqdStep::Again);
        let mut round = KsoftirqdRound::begin(&claims, budget, Nanos(0));
        assert_eq!(claims.claim(Runner::Lane, packets), packets);
        assert_eq!(claims.raise(packets), Raise::News);
        assert_eq!(round.next(Nanos(0)), KsoftirqdStep::Wait, "the lane looks again");
        assert!(claims.finish(Runner::Lane).contains(Vector::NET_RX));
        assert_eq!(round.next(Nanos(0)), KsoftirqdStep::Run(packets));
        round.finish();
        assert_eq!(round.next(Nanos(0)), KsoftirqdStep::Wait);
    }

    /// Goal: a vector that had to run at its limit is held back anew, for as long again. Method: its handler
    /// raises it each time; real-time tasks wait all the time; when it runs.
    #[test]
    fn what_has_run_is_held_back_anew() {
        let net = VectorSet::from_iter([Vector::NET_RX]);
        let (mut softirqs, claims) = (LaneSoftirqs::new(Nanos(50)), Claims::new());
        let _ = claims.raise(net);
        let mut ran = alloc::vec::Vec::new();
        for now in (10..=160).map(Nanos) {
            let mut round = softirqs.begin(&claims, || now).expect("it is pending");
            while let LaneStep::Run(vectors) = round.next(true, now) {
                assert_eq!(vectors, net);
                ran.push(now.0);
                assert!(ran.len() < 100, "{ran:?}");
                let _ = claims.raise(net);
                round.finish(false);
            }
        }
        assert_eq!(ran, [60, 110, 160]);
    }
}
