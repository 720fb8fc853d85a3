//! The names of what a recorded placement can follow from.
//!
//! A placement is a pure function of the timer's expiry and the base's clock, so explaining it means
//! naming the clock. `exact` is jiffies itself; each class is another clock that the replay arrives at
//! from the lines before, never from the line that is to be explained.
//! `docs/reference/verify.md` explains them.

use serde::Serialize;

/// Which clock explains a placement that jiffies do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockClass {
    /// Jiffies + 1: the bucket of this jiffy was run already.
    AheadRun,
    /// Jiffies + 1: the bucket of this jiffy had been emptied, and was run without an event.
    AheadEmpty,
    /// The base's first bucket, which is due and was not run yet.
    BehindDue,
    /// A next expiry whose timers were all cancelled, which the kernel has not looked at again.
    BehindDeleted,
    /// The base's own clock: jiffies moved on between forwarding and the event.
    TickBetween,
    /// The base's state is not known, because lines are missing; the placement is right for some clock.
    AfterLoss,
}

impl ClockClass {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AheadRun => "ahead_run",
            Self::AheadEmpty => "ahead_empty",
            Self::BehindDue => "behind_due",
            Self::BehindDeleted => "behind_deleted",
            Self::TickBetween => "tick_between",
            Self::AfterLoss => "after_loss",
        }
    }
}

/// How many starts are explained by each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClockClasses {
    /// Clock = jiffies + 1: the bucket of this jiffy was run already, its expiries were seen.
    pub ahead_run: u64,
    /// Clock = jiffies + 1: the due bucket had been emptied by cancels, the softirq ran it without an event.
    pub ahead_empty: u64,
    /// Clock = the base's first bucket: due, not run yet.
    pub behind_due: u64,
    /// Clock = a next expiry whose timers were all cancelled, and that the kernel had not recomputed.
    pub behind_deleted: u64,
    /// Clock = the base's clock as it was: jiffies moved on between forwarding the base and the event.
    pub tick_between: u64,
    /// The base's state is not known since lines were lost; the placement is right for a possible clock.
    pub after_loss: u64,
}

impl ClockClasses {
    pub(crate) fn add(&mut self, class: ClockClass) {
        *match class {
            ClockClass::AheadRun => &mut self.ahead_run,
            ClockClass::AheadEmpty => &mut self.ahead_empty,
            ClockClass::BehindDue => &mut self.behind_due,
            ClockClass::BehindDeleted => &mut self.behind_deleted,
            ClockClass::TickBetween => &mut self.tick_between,
            ClockClass::AfterLoss => &mut self.after_loss,
        } += 1;
    }

    /// Every class with its name and its count, in the order of `docs/reference/verify.md`.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            (ClockClass::AheadRun.name(), self.ahead_run),
            (ClockClass::AheadEmpty.name(), self.ahead_empty),
            (ClockClass::BehindDue.name(), self.behind_due),
            (ClockClass::BehindDeleted.name(), self.behind_deleted),
            (ClockClass::TickBetween.name(), self.tick_between),
            (ClockClass::AfterLoss.name(), self.after_loss),
        ]
    }

    /// All classes together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{ClockClass, ClockClasses};

    /// Goal: a class is counted under its own name. Method: each alone.
    #[test]
    fn each_class_counts_under_its_name() {
        use ClockClass::{AfterLoss, AheadEmpty, AheadRun, BehindDeleted, BehindDue, TickBetween};
        for class in [AheadRun, AheadEmpty, BehindDue, BehindDeleted, TickBetween, AfterLoss] {
            let mut classes = ClockClasses::default();
            classes.add(class);
            let counted: Vec<_> = classes.named().into_iter().filter(|(_, count)| *count == 1).collect();
            assert_eq!(counted, [(class.name(), 1)]);
            assert_eq!(classes.total(), 1);
        }
    }
}
