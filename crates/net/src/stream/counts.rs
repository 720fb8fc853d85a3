//! What a proxy has done, as all its connections add to it.

use super::link::LinkCounts;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of one way of a proxy's connections: `came` is `went`, `dropped` and `held`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamWayCounts {
    /// Bytes that were read.
    pub came: u64,
    /// Bytes that were written.
    pub went: u64,
    /// Bytes that were thrown away: by a toxic, or with a connection that was closed or reset.
    pub dropped: u64,
    /// Bytes that are held now.
    pub held: u64,
    /// Times that a lost segment was waited for.
    pub stalls: u64,
}

/// What a proxy has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyCounts {
    /// Connections that were accepted.
    pub connections: u64,
    /// Those that are there now.
    pub open: u64,
    /// Those whose server could not be reached; they were reset.
    pub unreached: u64,
    /// Those that ended with a reset, for whatever other reason.
    pub resets: u64,
    /// What came from clients.
    pub upstream: StreamWayCounts,
    /// What came from servers.
    pub downstream: StreamWayCounts,
}

impl StreamWayCounts {
    const fn add(&mut self, new: LinkCounts, old: LinkCounts) {
        self.came += new.came - old.came;
        self.went += new.went - old.went;
        self.dropped += new.dropped - old.dropped;
        self.stalls += new.stalls - old.stalls;
        self.held = self.came - self.went - self.dropped;
    }
}

/// The counts of a proxy, in its connections' hands.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedCounts(Arc<Mutex<ProxyCounts>>);

impl SharedCounts {
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut ProxyCounts) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn get(&self) -> ProxyCounts {
        self.change(|counts| *counts)
    }

    /// Adds what both links of a connection did since they were `old`.
    pub(super) fn add(&self, new: [LinkCounts; 2], old: [LinkCounts; 2]) {
        self.change(|counts| {
            counts.upstream.add(new[0], old[0]);
            counts.downstream.add(new[1], old[1]);
        });
    }
}
