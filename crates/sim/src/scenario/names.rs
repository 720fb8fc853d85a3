//! The words that settings of a machine are chosen by, and what they mean to the core.

use quietcore_core::place::{Exclusion, Policy};
use quietcore_core::realtime::Awareness;
use quietcore_core::softirq::TimerRaise;
use serde::Deserialize;

/// Where the numbers of hardware threads of a core lie.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Siblings {
    Neighbours,
    Apart,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExclusionName {
    Off,
    V2,
    Merged,
}

impl ExclusionName {
    pub(crate) const fn rule(self) -> Exclusion {
        match self {
            Self::Off => Exclusion::Off,
            Self::V2 => Exclusion::V2,
            Self::Merged => Exclusion::Merged,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScenarioPolicy {
    Pull,
    /// Pull, and no CPU looks whether another one is stalled.
    PullUnwatched,
    Push,
    Stay,
}

impl ScenarioPolicy {
    pub(crate) const fn policy(self) -> Policy {
        match self {
            Self::Pull | Self::PullUnwatched => Policy::Pull,
            Self::Push => Policy::Push,
            Self::Stay => Policy::Stay,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::PullUnwatched => "pull-unwatched",
            other => other.policy().name(),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AwarenessName {
    None,
    Place,
    Defer,
    Both,
}

impl AwarenessName {
    pub(crate) const fn rule(self) -> Awareness {
        match self {
            Self::None => Awareness::None,
            Self::Place => Awareness::Place,
            Self::Defer => Awareness::Defer,
            Self::Both => Awareness::Both,
        }
    }
}

/// When a real-time task runs in the place of ksoftirqd.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KsoftirqdRule {
    /// At once: a kernel whose softirqs are threads, or a program's.
    #[default]
    Preempted,
    /// When its pass is over, as in the kernel otherwise.
    Whole,
}

impl KsoftirqdRule {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::Whole => "whole",
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RaiseName {
    Unconditional,
    Bitmap,
    NextExpiry,
}

impl RaiseName {
    pub(crate) const fn rule(self) -> TimerRaise {
        match self {
            Self::Unconditional => TimerRaise::Unconditional,
            Self::Bitmap => TimerRaise::Bitmap,
            Self::NextExpiry => TimerRaise::NextExpiry,
        }
    }
}

/// What sends packets.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SenderName {
    /// Who receives a stream: its softirq sends an acknowledgement for what came.
    #[default]
    Stream,
    /// A task that sends whenever there is room.
    Datagram,
}

/// Whether a queue's watchdog stays where it is armed.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WatchdogName {
    #[default]
    Pinned,
    Movable,
}

impl WatchdogName {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Movable => "movable",
        }
    }
}

/// Where a task runs that a timer wakes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WakePlace {
    /// Where the timer ran.
    Here,
    /// Where it ran before, as the fair scheduler prefers.
    Last,
}

/// What a timer may interrupt.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Preempt {
    /// A kernel: the tick interrupts tasks, timers run on top.
    Tick,
    /// Lanes: a task runs to its end, then timers do.
    Cooperative,
}
