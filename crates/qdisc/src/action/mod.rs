//! What filters do with packets besides choosing a class: `gact` and `police` of `tc`, without names, locks
//! and lists.
//!
//! An action says what becomes of a packet ([`ControlAction`]); the moment and random numbers are arguments.
//! Nothing is allocated per packet. Source: Linux 6.12 net/sched/act_api.c, act_gact.c, act_police.c, by
//! behaviour; tc-actions(8), tc-police(8).

mod gact;
mod police;

pub use gact::{Gact, GactChoice, GactRandom};
pub use police::{Police, PoliceRate, PoliceSettings, PoliceVerdict};

use core::fmt::{self, Formatter};

/// What an action says of a packet: `tc` calls it the control action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControlAction {
    /// `pass`, `ok`: the filter's class, and no more actions or filters.
    #[default]
    Pass,
    /// `reclassify`: all filters are asked anew.
    Reclassify,
    /// `drop`, `shot`: it is dropped and counted.
    Drop,
    /// `continue`: the next filter is asked.
    Continue,
    /// `pipe`: the next action of the filter is asked; behind the last one as `pass`.
    Pipe,
}

impl ControlAction {
    /// As `tc` shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Reclassify => "reclassify",
            Self::Drop => "drop",
            Self::Continue => "continue",
            Self::Pipe => "pipe",
        }
    }
}

impl fmt::Display for ControlAction {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
