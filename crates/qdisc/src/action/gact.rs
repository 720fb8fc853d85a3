//! `gact`: the same for every packet, or now and then something else.
//!
//! Source: Linux 6.12 net/sched/act_gact.c, by behaviour.

use super::ControlAction;

/// Which packets the other thing is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GactChoice {
    /// `netrand`: one of so many, at random.
    Random,
    /// `determ`: each so-many-th.
    Counted,
}

impl GactChoice {
    /// As it is typed and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "netrand",
            Self::Counted => "determ",
        }
    }
}

/// `random`: what is said now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GactRandom {
    /// Of which packets.
    pub choice: GactChoice,
    /// What is said of them.
    pub control: ControlAction,
    /// Of one in so many; of every one, if it is 0 or 1.
    pub one_in: u16,
}

/// What `gact` was told, and how many packets it has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gact {
    /// What it says.
    pub control: ControlAction,
    /// What it says now and then.
    pub random: Option<GactRandom>,
    /// Packets, if they are counted, of 2^32.
    seen: u32,
}

impl Gact {
    /// One that has seen no packet.
    #[must_use]
    pub const fn new(control: ControlAction, random: Option<GactRandom>) -> Self {
        Self { control, random, seen: 0 }
    }

    /// What it says of the next packet. `random` gives a number of 32 bits where one is needed.
    pub fn ask(&mut self, random: impl FnOnce() -> u32) -> ControlAction {
        let Some(GactRandom { choice, control, one_in }) = self.random else { return self.control };
        let one_in = u32::from(one_in.max(1));
        let is_usual = match choice {
            // The high half: of `one_in` numbers each as likely as the other, but for 2^-16.
            GactChoice::Random => (u64::from(random()) * u64::from(one_in)) >> 32 != 0,
            GactChoice::Counted => {
                self.seen = self.seen.wrapping_add(1);
                !self.seen.is_multiple_of(one_in)
            }
        };
        if is_usual { self.control } else { control }
    }
}

#[cfg(test)]
mod tests {
    use super::{ControlAction, Gact, GactChoice, GactRandom};

    fn now_and_then(choice: GactChoice, one_in: u16) -> Gact {
        Gact::new(ControlAction::Pass, Some(GactRandom { choice, control: ControlAction::Drop, one_in }))
    }

    fn dropped(mut gact: Gact, random: u32, count: usize) -> alloc::vec::Vec<usize> {
        (1..=count).filter(|_| gact.ask(|| random) == ControlAction::Drop).collect()
    }

    /// Goal: `determ` is for each so-many-th packet, of 0 as of 1. Method: which of ten.
    #[test]
    fn counted_packets() {
        assert_eq!(dropped(now_and_then(GactChoice::Counted, 3), 0, 10), [3, 6, 9]);
        assert_eq!(dropped(now_and_then(GactChoice::Counted, 0), 0, 3), [1, 2, 3]);
        assert_eq!(dropped(Gact::new(ControlAction::Drop, None), 0, 2), [1, 2]);
    }

    /// Goal: `netrand` is for one in so many. Method: the numbers on both sides of the bound.
    #[test]
    fn random_packets() {
        let bound = u32::MAX / 10;
        assert_eq!(dropped(now_and_then(GactChoice::Random, 10), bound, 1), [1]);
        assert_eq!(dropped(now_and_then(GactChoice::Random, 10), bound + 1, 1), [0_usize; 0]);
        assert_eq!(dropped(now_and_then(GactChoice::Random, 1), u32::MAX, 2), [1, 2]);
    }
}
