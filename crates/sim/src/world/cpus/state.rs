//! What the sentinel and a script know, as data.

use crate::script::{ScriptOccurrence, ScriptStep};
use std::collections::VecDeque;

/// When a lane last moved the stall deadline, and whether the sentinel looks.
#[derive(Debug, Default)]
pub(crate) struct SentinelState {
    /// When a lane that is awake last said so.
    pub(super) held: u64,
    /// It will look.
    pub(super) is_set: bool,
}

/// What is left to do, and what happened.
#[derive(Debug, Default)]
pub(crate) struct ScriptState {
    /// By CPU, in the order of their times.
    pub(crate) steps: Vec<VecDeque<ScriptStep>>,
    /// The world's number of timer 0.
    pub(crate) first_timer: u32,
    pub(crate) happened: Vec<ScriptOccurrence>,
}
