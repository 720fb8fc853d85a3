//! What long softirqs wait for: a real-time task that runs or waits on their CPU. And no longer than a limit.
//!
//! Without a limit a task that never rests would keep its CPU from receiving anything at all, which is what
//! reviewers of the original held against it. So each vector has a clock that starts when it is first held
//! back, and ends when it has run, not when it might: a round may be over before its turn comes.
//!
//! Source: the softirq-aware series of 2022, by behaviour; the objection and the limit: KERNEL 5.3.

use super::VectorSet;
use crate::Nanos;

/// Since when each vector of a CPU waits. Kept by the CPU's own thread.
#[derive(Clone, Debug)]
pub struct Deferral {
    limit: Nanos,
    /// Their clocks run.
    waiting: VectorSet,
    held: VectorSet,
    since: [Nanos; 16],
}

impl Deferral {
    /// Nothing is held back; `limit` is for how long anything may be, in ns.
    #[must_use]
    pub const fn new(limit: Nanos) -> Self {
        Self { limit, waiting: VectorSet::EMPTY, held: VectorSet::EMPTY, since: [Nanos(0); 16] }
    }

    /// What of `pending` is held back at `now`, because a real-time task runs or waits.
    pub fn hold(&mut self, pending: VectorSet, now: Nanos) -> VectorSet {
        let long = pending.intersection(VectorSet::MOVABLE);
        for vector in long.difference(self.waiting).iter() {
            self.since[vector.index()] = now;
        }
        self.waiting = long;
        let is_over = |index: usize| now.since(self.since[index]) >= self.limit;
        self.held = long.iter().filter(|vector| !is_over(vector.index())).collect();
        self.held
    }

    /// These have run: if they are raised again, their clocks start anew.
    pub const fn ran(&mut self, vectors: VectorSet) {
        self.waiting = self.waiting.difference(vectors);
        self.held = self.held.difference(vectors);
    }

    /// Nothing is held back any more: no real-time task is there.
    pub const fn release(&mut self) {
        self.ran(self.waiting);
    }

    /// The moment at which the first of those that are held back has waited long enough.
    #[must_use]
    pub fn limit_at(&self) -> Option<Nanos> {
        let since = self.held.iter().map(|vector| self.since[vector.index()].0).min();
        since.map(|since| Nanos(since.saturating_add(self.limit.0)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Deferral;
    use crate::Nanos;
    use crate::softirq::{Vector, VectorSet};

    /// Goal: a vector that another thread has run, and that is raised again, waits anew. Method: one of two
    /// is not pending in between.
    #[test]
    fn what_was_run_elsewhere_waits_anew() {
        let (send, receive) = (VectorSet::from(Vector::NET_TX), VectorSet::from(Vector::NET_RX));
        let both = send.union(receive);
        let mut deferral = Deferral::new(Nanos(50));
        assert_eq!(deferral.hold(both, Nanos(10)), both);
        assert_eq!(deferral.hold(receive, Nanos(30)), receive);
        assert_eq!(deferral.hold(both, Nanos(62)), send, "the other one has waited long enough");
        assert_eq!(deferral.limit_at(), Some(Nanos(112)));
    }

    /// Goal: every vector has a clock of its own, that starts when it is first held back, and again when it
    /// has run, not when it might. Method: two that are raised at different moments, one of them again.
    #[test]
    fn each_waits_its_own_time() {
        let (send, receive) = (VectorSet::from(Vector::NET_TX), VectorSet::from(Vector::NET_RX));
        let both = send.union(receive);
        let mut deferral = Deferral::new(Nanos(50));
        assert_eq!(deferral.hold(send, Nanos(10)), send);
        assert_eq!(deferral.hold(both, Nanos(30)), both);
        assert_eq!(deferral.limit_at(), Some(Nanos(60)));
        for now in [60, 61] {
            assert_eq!(deferral.hold(both, Nanos(now)), receive, "one has waited long enough");
        }
        deferral.ran(send);
        assert_eq!(deferral.hold(both, Nanos(62)), both, "it has run, and waits anew");
        assert_eq!(deferral.hold(both, Nanos(80)), send);
        assert_eq!(deferral.limit_at(), Some(Nanos(112)));
    }

    /// Goal: no vector is held back longer than the limit, however often it is asked. Method: every
    /// nanosecond of several limits; one pending all the time, which runs some time after it may.
    #[test]
    fn nothing_waits_longer_than_the_limit() {
        for (limit, later) in (0..20).flat_map(|limit| [(limit, 0), (limit, 3)]) {
            let mut deferral = Deferral::new(Nanos(limit));
            let (mut since, mut free) = (0, 0);
            for now in 0..200 {
                if !deferral.hold(VectorSet::LONG, Nanos(now)).is_empty() {
                    assert!(now - since < limit, "{limit}: held since {since} at {now}");
                    assert_eq!(free, 0, "{limit}: it was free to run before");
                } else if free == later {
                    deferral.ran(VectorSet::LONG);
                    (since, free) = (now + 1, 0);
                } else {
                    free += 1;
                }
            }
        }
    }
}
