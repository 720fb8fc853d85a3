//! Placement: which CPU gets a timer, work or a task.
//!
//! Pure functions from a snapshot to a CPU or a set of CPUs, one file per rule: `housekeeping.rs` the three
//! masks, `exclusion.rs` who is out of the hierarchy, `push.rs` and `exact.rs` where an armed timer goes,
//! `fallback.rs` who stands in for a CPU.
//! Invariant: no function looks at anything but its arguments, and none allocates but those that return a
//! set.
//! Not here: who is online, idle or isolated at the moment (the machine knows), and real-time tasks.

mod exact;
mod exclusion;
mod fallback;
mod housekeeping;
mod push;

pub use exact::{Caller, ExactMode, ExactOrigin, ExactPolicy, ExactStart, exact_target};
pub use exclusion::Exclusion;
pub use fallback::nearest_housekeeping;
pub use housekeeping::{Housekeeping, HousekeepingError, Isolation, Mask};
pub use push::{Arming, push_target};

/// Where an unpinned wheel timer goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// It stays where it is armed, and an awake CPU runs it when its own is idle (Linux from 6.9 on).
    #[default]
    Pull,
    /// A busy CPU is chosen when it is armed (Linux before 6.9): [`push_target`].
    Push,
    /// It stays where it is armed, and its CPU runs it.
    Stay,
}

impl Policy {
    /// All of them, for tables and command lines.
    pub const ALL: [Self; 3] = [Self::Pull, Self::Push, Self::Stay];

    /// The name on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "push",
            Self::Stay => "stay",
        }
    }
}
