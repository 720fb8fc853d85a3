//! Settings of each lane that hosts a runtime.

use core::fmt;
use quietcore_live::lane::Pinning;
use std::sync::Arc;
use tokio::runtime as real;

/// Polls between two looks at the driver: with polls of 50 us less than a tick.
const EVENT_INTERVAL: u32 = 16;

trait ChangesBuilder: Fn(&mut real::Builder) + Send + Sync {}

impl<F: Fn(&mut real::Builder) + Send + Sync> ChangesBuilder for F {}

/// What is done to each builder of tokio, if anything.
#[derive(Clone, Default)]
pub(super) struct BuilderChange(Option<Arc<dyn ChangesBuilder>>);

impl BuilderChange {
    pub(super) fn new(change: impl Fn(&mut real::Builder) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(change)))
    }

    pub(super) fn apply(&self, builder: &mut real::Builder) {
        if let Some(change) = &self.0 {
            change(builder);
        }
    }
}

impl fmt::Debug for BuilderChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_some() { "a change" } else { "no change" })
    }
}

#[derive(Clone, Debug)]
pub(super) struct LaneSettings {
    pub(super) pinning: Pinning,
    pub(super) event_interval: u32,
    pub(super) change: BuilderChange,
}

impl Default for LaneSettings {
    fn default() -> Self {
        let (pinning, change) = (Pinning::default(), BuilderChange::default());
        Self { pinning, event_interval: EVENT_INTERVAL, change }
    }
}
