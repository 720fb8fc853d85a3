//! What the world knows of a lane without asking the core.

use quietcore_core::Nanos;
use std::cell::Cell;

/// A wait of a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneWait {
    pub(super) since: Nanos,
    pub(super) until: Option<Nanos>,
}

/// Of one CPU.
#[derive(Debug, Default)]
pub(super) struct LaneSigns {
    /// The last moment at which it told the core that it turns, or wakes up; set when that call has returned.
    pub(super) lived: Cell<u64>,
    /// It told the core that it blocks.
    pub(super) blocks: Cell<bool>,
    /// It was marked when it was last looked at.
    pub(super) was_marked: Cell<bool>,
    /// While it waits: since when, and until when without a kick.
    pub(super) waits: Cell<Option<LaneWait>>,
    /// A thread drives it, which knows that.
    pub(super) is_driven: Cell<bool>,
    /// When it last looked for an item.
    pub(super) looked_at: Cell<u64>,
    /// Since when it is in the middle of an item.
    pub(super) item_since: Cell<Option<u64>>,
}
