//! Candidates for the exact queue, and what they share: the trait, the arena of nodes, the probe.
//!
//! An exact queue orders timers by hard expiry in nanoseconds, equal ones in the order they were
//! armed. The shipped queue links nodes that its callers own, by pointer. Here the same links are
//! 32-bit indices into one arena, so that every candidate is safe code and pays the same bounds
//! check for each node it follows. Every node has a cache line to itself, as it would if it were
//! part of a caller's larger structure; a candidate gains nothing by packing many small nodes.
//! Deliberately absent: locks, threads, callbacks, and reading a clock.

pub(crate) mod counted;
pub(crate) mod dary;
pub(crate) mod digital;
pub(crate) mod leftist;
pub(crate) mod load;
pub(crate) mod pairing;
pub(crate) mod radix;
pub(crate) mod rbtree;
pub(crate) mod report;
pub(crate) mod single;
pub(crate) mod steady;
#[cfg(test)]
mod tests;
pub(crate) mod thin;

use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::ops::{Index, IndexMut};

/// The link that leads nowhere.
pub(crate) const NIL: u32 = u32::MAX;
/// In the one link of a node that is never this while it is armed: the node is not armed.
pub(crate) const IDLE: u32 = u32::MAX - 1;

/// When a timer may and when it must expire, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) soft: u64,
    pub(crate) hard: u64,
}

/// One candidate: a queue of timers `0..count`, each of which is armed at most once.
pub(crate) trait Queue {
    type Probe: Probe;
    /// What one node stores, in bytes, with links of 32 bits (without what fills up the cache line).
    const NODE_BYTES: usize;
    /// The same for the shipped form: links are pointers, flags hide in their low bits where they can.
    const POINTER_NODE_BYTES: usize;
    /// What the queue stores per armed timer outside of the node.
    const OUTSIDE_BYTES: usize;

    fn with_nodes(count: usize) -> Self;
    fn probe(&self) -> &Self::Probe;
    /// Arms `id`, which is cancelled first if it was armed.
    fn arm(&mut self, id: u32, times: Times);
    /// Whether `id` was armed.
    fn cancel(&mut self, id: u32) -> bool;
    /// The armed timer with the earliest hard expiry; of several, the one armed first. Constant time.
    fn first(&self) -> Option<u32>;
    fn times(&self, id: u32) -> Times;
    /// Removes the first timer if its soft expiry is at or before `now`; never looks at a second one.
    fn pop_expired(&mut self, now: u64) -> Option<u32>;
    /// Asserts every invariant and counts the armed timers.
    #[cfg(test)]
    fn check(&self) -> usize;
}

/// Told of every node (and of every entry of an array beside them) that an operation looks at.
pub(crate) trait Probe: Default {
    fn touch(&self, place: usize);
}

/// The probe of a timed run: compiled to nothing.
#[derive(Debug, Default)]
pub(crate) struct Silent;

impl Probe for Silent {
    fn touch(&self, _place: usize) {}
}

/// Counts the distinct places touched since `begin`.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    /// Per place, the operation that touched it last.
    stamps: RefCell<Vec<u32>>,
    operation: Cell<u32>,
    count: Cell<u32>,
}

impl Counting {
    pub(crate) fn begin(&self) {
        self.operation.set(self.operation.get() + 1);
        self.count.set(0);
    }

    pub(crate) fn count(&self) -> u32 {
        self.count.get()
    }
}

impl Probe for Counting {
    fn touch(&self, place: usize) {
        let mut stamps = self.stamps.borrow_mut();
        if place >= stamps.len() {
            stamps.resize(place + 1, 0);
        }
        if stamps[place] != self.operation.get() {
            stamps[place] = self.operation.get();
            self.count.set(self.count.get() + 1);
        }
    }
}

/// A node that shares its cache line with nobody.
#[repr(align(64))]
#[derive(Clone, Debug)]
struct Line<N>(N);

/// The nodes of one queue; every access is bounds-checked and shown to the probe.
#[derive(Debug)]
pub(crate) struct Arena<N, P> {
    lines: Vec<Line<N>>,
    probe: P,
}

impl<N: Clone, P: Probe> Arena<N, P> {
    pub(crate) fn new(count: usize, idle: N) -> Self {
        const { assert!(size_of::<Line<N>>() == 64, "a node fits in a cache line") };
        assert!(count <= (IDLE / 2) as usize, "two bits of an index are left for tags");
        Self { lines: vec![Line(idle); count], probe: P::default() }
    }

    pub(crate) fn probe(&self) -> &P {
        &self.probe
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }
}

impl<N, P: Probe> Index<u32> for Arena<N, P> {
    type Output = N;
    #[inline(always)]
    fn index(&self, id: u32) -> &N {
        self.probe.touch(2 * id as usize);
        &self.lines[id as usize].0
    }
}

impl<N, P: Probe> IndexMut<u32> for Arena<N, P> {
    #[inline(always)]
    fn index_mut(&mut self, id: u32) -> &mut N {
        self.probe.touch(2 * id as usize);
        &mut self.lines[id as usize].0
    }
}

/// A side of a binary tree. An enum, so that indexing an array of two with it needs no check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left = 0,
    Right = 1,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// Which candidate, for loops over all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Pairing heap, two passes
    Pairing,
    /// Heap in an array, four children each
    Dary4,
    /// Heap in an array, eight children each
    Dary8,
    /// Red-black tree with the first node kept
    RedBlack,
    /// Lists by the highest bit that differs from the last expiry
    Radix,
    /// Leftist heap with links to the parents
    Leftist,
    /// Binary digital tree of (expiry, arm order)
    Digital,
    /// Thin heap, roots consolidated at once
    Thin,
}

pub(crate) const KINDS: [Kind; 8] = [
    Kind::Pairing,
    Kind::Dary4,
    Kind::Dary8,
    Kind::RedBlack,
    Kind::Radix,
    Kind::Leftist,
    Kind::Digital,
    Kind::Thin,
];

impl Kind {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Pairing => "pairing heap",
            Self::Dary4 => "4-ary heap",
            Self::Dary8 => "8-ary heap",
            Self::RedBlack => "red-black tree",
            Self::Radix => "radix lists",
            Self::Leftist => "leftist heap",
            Self::Digital => "digital tree",
            Self::Thin => "thin heap",
        }
    }
}

/// Calls a function generic over [`Queue`] with the type that `$kind` names and the probe `$probe`.
macro_rules! with_queue {
    ($kind:expr, $probe:ty, $run:ident ( $($with:expr),* )) => {
        {
            use $crate::exact;
            match $kind {
            exact::Kind::Pairing => $run::<exact::pairing::Pairing<$probe>>($($with),*),
            exact::Kind::Dary4 => $run::<exact::dary::Dary<$probe, 4>>($($with),*),
            exact::Kind::Dary8 => $run::<exact::dary::Dary<$probe, 8>>($($with),*),
            exact::Kind::RedBlack => $run::<exact::rbtree::RedBlack<$probe>>($($with),*),
            exact::Kind::Radix => $run::<exact::radix::Radix<$probe>>($($with),*),
            exact::Kind::Leftist => $run::<exact::leftist::Leftist<$probe>>($($with),*),
            exact::Kind::Thin => $run::<exact::thin::Thin<$probe>>($($with),*),
            exact::Kind::Digital => $run::<exact::digital::Digital<$probe>>($($with),*),
            }
        }
    };
}
pub(crate) use with_queue;
