//! A lane's idle state: whether it waits, until when, and what the hierarchy was told.

use crate::Nanos;

/// Whether the lane waits, or is about to. While it does, its park word accepts kicks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Awake,
    /// For a tick at most.
    Dozing {
        until: Nanos,
        told: Told,
    },
    /// Idle in the hierarchy; `None` until a kick.
    Sleeping {
        until: Option<Nanos>,
    },
}

/// What a lane that dozes has told the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing: it is active there.
    Nothing,
    /// That it would sleep; the answer was that something is due within a tick. It is active there.
    StaysActive,
    /// That it is idle: it slept, and has found something since.
    Idle,
}

impl Waiting {
    #[inline]
    pub(super) fn is_awake(self) -> bool {
        matches!(self, Self::Awake)
    }

    /// What the hierarchy was told by a lane in this state.
    pub(super) fn told(self) -> Told {
        match self {
            Self::Awake => Told::Nothing,
            Self::Dozing { told, .. } => told,
            Self::Sleeping { .. } => Told::Idle,
        }
    }
}

/// How a lane looks at its neighbours at the next tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NextWatch {
    /// It marks a neighbour that is silent and has something overdue.
    #[default]
    Usual,
    /// It would sleep if no neighbour were silent: it marks a silent one whatever is due.
    BeforeSleep,
}
