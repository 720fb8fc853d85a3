//! Ours: `quietcore-wheel` with caller-owned nodes, with the same at tick precision, and with keys.
//!
//! An expiry at tick `t` means "not before `t`", as for all peers here: the wheel hands a timer out at the
//! first tick after the one it is armed for, so it is armed for `t - 1`.

use crate::peers::peer::{Answer, Peer, Role};
use crate::peers::plan::Workload;
use quietcore_wheel::{IntrusiveWheel, Node, NodeRef, Precision, Slot, SlotKey, Tick, Timers};

/// A node with three words of the caller's, in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Line(Node<[usize; 3]>);

/// Caller-owned nodes, reached by address.
pub struct Intrusive {
    wheel: IntrusiveWheel<[usize; 3]>,
    /// Never reallocated, so nodes stay where they are.
    nodes: Box<[Line]>,
}

impl Intrusive {
    fn with_precision(capacity: usize, precision: Precision) -> Self {
        let line = |id| Line(Node::new([id; 3]).with_precision(precision));
        Self { wheel: IntrusiveWheel::new(Tick(0)), nodes: (0..capacity).map(line).collect() }
    }

    #[inline]
    fn node(&self, id: u32) -> NodeRef<Node<[usize; 3]>> {
        // SAFETY: the nodes are in a box that lives as long as the wheel and is never reallocated or
        // written to, and only this wheel gets their references.
        unsafe { NodeRef::new((&self.nodes[id as usize].0).into()) }
    }
}

/// Times are ticks, and a call is one call of the wheel.
macro_rules! intrusive {
    () => {
        const ANSWER: Answer = Answer::Approximate;

        type When = Tick;
        type Now = Tick;
        type Handle = ();

        fn when(&self, now: u64, delay: u64) -> Tick {
            Tick(now + delay - 1)
        }

        fn now(&self, tick: u64) -> Tick {
            Tick(tick)
        }

        fn tick(&self, now: Tick) -> u64 {
            now.0
        }
    };
}

impl Peer for Intrusive {
    const NAME: &'static str = "quietcore";
    const NOTE: &'static str = "IntrusiveWheel, coarse precision: a timer is late by up to one granule of its \
        level, an eighth of its delay at most, and never early; next_expiry is when the first bucket is due";
    intrusive!();

    fn new(capacity: usize) -> Self {
        Self::with_precision(capacity, Precision::Coarse)
    }

    #[inline]
    fn arm(&mut self, id: u32, when: Tick) {
        let _ = self.wheel.arm(self.node(id), when);
    }

    #[inline]
    fn cancel(&mut self, id: u32, _handle: &mut ()) -> bool {
        self.wheel.cancel(self.node(id))
    }

    #[inline]
    fn rearm(&mut self, id: u32, _handle: &mut (), when: Tick) {
        let _ = self.wheel.arm(self.node(id), when);
    }

    #[inline]
    fn advance(&mut self, now: Tick, expired: &mut Vec<u32>) {
        while let Some(node) = self.wheel.next_expired(now) {
            // SAFETY: as in `node`; the wheel hands out what it was given.
            let value = unsafe { node.as_ptr().as_ref() }.value;
            expired.push(value[0] as u32);
        }
        self.wheel.forward(now);
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Tick> {
        self.wheel.next_expiry()
    }

    fn pending(&self) -> usize {
        self.nodes.iter().filter(|line| line.0.is_pending()).count()
    }
}

/// The same at tick precision.
pub struct Precise(Intrusive);

impl Peer for Precise {
    const NAME: &'static str = "quietcore precise";
    const NOTE: &'static str = "as above at tick precision: on the tick, by moving at most once per level; \
        next_expiry is when the first timer is due or moves";
    const ROLE: Role = Role::Variant;
    intrusive!();

    fn absent(workload: Workload) -> Option<&'static str> {
        let asks = matches!(workload, Workload::NextRandom | Workload::NextFirst);
        asks.then_some("the same as the row above")
    }

    fn new(capacity: usize) -> Self {
        Self(Intrusive::with_precision(capacity, Precision::Tick))
    }

    #[inline]
    fn arm(&mut self, id: u32, when: Tick) {
        self.0.arm(id, when);
    }

    #[inline]
    fn cancel(&mut self, id: u32, handle: &mut ()) -> bool {
        self.0.cancel(id, handle)
    }

    #[inline]
    fn rearm(&mut self, id: u32, handle: &mut (), when: Tick) {
        self.0.rearm(id, handle, when);
    }

    #[inline]
    fn advance(&mut self, now: Tick, expired: &mut Vec<u32>) {
        self.0.advance(now, expired);
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Tick> {
        self.0.next_expiry()
    }

    fn pending(&self) -> usize {
        self.0.pending()
    }
}

/// Values and keys in a `Vec`: no `unsafe` anywhere.
pub struct Keyed(Timers<u32, Vec<Slot<u32>>>);

impl Peer for Keyed {
    const NAME: &'static str = "quietcore keyed";
    const NOTE: &'static str = "Timers in a Vec reserved beforehand: keys with generations, coarse precision";
    const ANSWER: Answer = Answer::Approximate;

    type When = Tick;
    type Now = Tick;
    type Handle = SlotKey;

    fn new(capacity: usize) -> Self {
        let mut timers = Timers::new(Tick(0), Vec::new());
        timers.reserve(capacity);
        Self(timers)
    }

    fn when(&self, now: u64, delay: u64) -> Tick {
        Tick(now + delay - 1)
    }

    fn now(&self, tick: u64) -> Tick {
        Tick(tick)
    }

    fn tick(&self, now: Tick) -> u64 {
        now.0
    }

    #[inline]
    fn arm(&mut self, id: u32, when: Tick) -> SlotKey {
        self.0.arm_growing(when, id)
    }

    #[inline]
    fn cancel(&mut self, id: u32, key: &mut SlotKey) -> bool {
        self.0.cancel(*key) == Ok(id)
    }

    #[inline]
    fn rearm(&mut self, _id: u32, key: &mut SlotKey, when: Tick) {
        let moved = self.0.re_arm(*key, when);
        debug_assert!(moved.is_ok());
    }

    #[inline]
    fn advance(&mut self, now: Tick, expired: &mut Vec<u32>) {
        while let Some(timer) = self.0.next_expired(now) {
            expired.push(timer.value);
        }
        self.0.forward(now);
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Tick> {
        self.0.next_expiry()
    }

    fn pending(&self) -> usize {
        self.0.len()
    }
}
