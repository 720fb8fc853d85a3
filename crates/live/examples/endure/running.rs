//! How long this process has been running: time in which it was stopped, or had no CPU, does not count.
//!
//! The thread that holds it looks often. What passed between two looks counts in full only up to a bound; the
//! rest is taken for a disturbance from outside. So "10 s late" means ten seconds in which the runtime could
//! have run the timer and did not.

use quietcore_live::Nanos;

/// Most that counts between two looks.
const LOOK_MAX: Nanos = Nanos(50_000_000);

/// For how long what is due may wait, in running time, before it counts as lost.
pub(crate) const PATIENCE: Nanos = Nanos(10_000_000_000);

/// One thread's look at the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    looked: Nanos,
    sum: Nanos,
}

impl Running {
    pub(crate) const fn new(now: Nanos) -> Self {
        Self { looked: now, sum: Nanos(0) }
    }

    /// Running time so far.
    pub(crate) fn advance(&mut self, now: Nanos) -> Nanos {
        let passed = now.since(self.looked).min(LOOK_MAX);
        self.looked = now;
        self.sum = Nanos(self.sum.0 + passed.0);
        self.sum
    }
}

/// How long something has been overdue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overdue {
    /// What is overdue, and the running time at which that was noticed.
    since: Option<(Nanos, Nanos)>,
}

/// How late something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lateness {
    /// It is not due, or has hardly been.
    None,
    /// It is left alone, so that it shows whether it ever runs.
    Late,
    /// No thread will run it any more.
    Lost,
}

/// From when on something overdue is left alone: acting on it would hide that it was lost.
const LEFT_ALONE: Nanos = Nanos(50_000_000);

impl Overdue {
    /// `due` is what comes next, if anything does.
    pub(crate) fn look(&mut self, due: Option<Nanos>, now: Nanos, running: Nanos) -> Lateness {
        let Some(due) = due.filter(|due| *due < now) else {
            self.since = None;
            return Lateness::None;
        };
        let since = match self.since {
            Some((same, since)) if same == due => since,
            _ => running,
        };
        self.since = Some((due, since));
        match running.since(since) {
            late if late > PATIENCE => Lateness::Lost,
            late if late > LEFT_ALONE => Lateness::Late,
            _ => Lateness::None,
        }
    }
}
