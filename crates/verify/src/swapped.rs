//! Two lines with equal time stamps on two CPUs may stand in the wrong order.
//!
//! A pending timer that is started again is taken out first: `timer_cancel`, then `timer_start`. When the
//! two events are of different CPUs and of the same microsecond, the text may show them the other way
//! round. Whichever comes first owes the other, which must have the same time stamp; a balance per timer,
//! because two pairs can be open at once.
//!
//! Invariant: all entries have the time stamp of the latest line, and there are at most [`OPEN_MAX`].

use quietcore_core::Nanos;

/// So many timers can owe a line at one moment; real recordings have one or two.
const OPEN_MAX: usize = 64;

/// A line that owes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owed {
    pub(crate) timer: u64,
    /// How many `timer_cancel` lines are to come; below 0, how many `timer_start` lines.
    pub(crate) cancels: i64,
    pub(crate) at: Nanos,
    pub(crate) line: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Swapped {
    open: Vec<Owed>,
    /// How many pairs of lines were swapped.
    pub(crate) pairs: u64,
}

impl Swapped {
    /// What `timer` owes; see [`Owed::cancels`].
    pub(crate) fn balance(&self, timer: u64) -> i64 {
        self.open.iter().find(|owed| owed.timer == timer).map_or(0, |owed| owed.cancels)
    }

    /// A line that owes, or that pays what an earlier one owes.
    pub(crate) fn add(&mut self, line: Owed) {
        let Some(place) = self.open.iter().position(|owed| owed.timer == line.timer) else {
            self.open.push(line);
            return;
        };
        let owed = &mut self.open[place];
        if owed.cancels.signum() * line.cancels.signum() < 0 {
            self.pairs += 1;
        }
        owed.cancels += line.cancels;
        if owed.cancels == 0 {
            self.open.remove(place);
        }
    }

    /// Those whose line did not come though the time stamp is now another one, `at`.
    pub(crate) fn overdue(&mut self, at: Nanos) -> Vec<Owed> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let surplus = self.open.len().saturating_sub(OPEN_MAX);
        let mut overdue: Vec<Owed> = self.open.drain(..surplus).collect();
        overdue.extend(self.open.extract_if(.., |owed| owed.at != at));
        overdue
    }

    pub(crate) fn forget(&mut self) {
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{OPEN_MAX, Owed, Swapped};
    use quietcore_core::Nanos;

    fn owed(timer: u64, cancels: i64, at: u64) -> Owed {
        Owed { timer, cancels, at: Nanos(at), line: 1 }
    }

    /// Goal: pairs cancel out in either order, several at once; what is left is overdue.
    #[test]
    fn pairs_cancel_out() {
        let mut swapped = Swapped::default();
        for cancels in [1, 1, -1, -1] {
            swapped.add(owed(7, cancels, 5));
        }
        swapped.add(owed(8, -1, 5));
        assert_eq!((swapped.pairs, swapped.balance(7), swapped.balance(8)), (2, 0, -1));
        assert_eq!(swapped.overdue(Nanos(5)), []);
        assert_eq!(swapped.overdue(Nanos(6)), [owed(8, -1, 5)]);
        assert_eq!(swapped.overdue(Nanos(6)), []);
    }

    /// Goal: one time stamp for ever does not make the list long.
    #[test]
    fn the_list_is_bounded() {
        let mut swapped = Swapped::default();
        for timer in 0..10_000 {
            swapped.add(owed(timer, 1, 5));
            swapped.overdue(Nanos(5));
            assert!(swapped.open.len() <= OPEN_MAX);
        }
    }
}
