//! The two interfaces of the wheel as one: timers are small numbers, odd ones keep [`Precision::Tick`].

use quietcore_wheel::{IntrusiveWheel, Node, NodeRef, Precision, Slot, SlotKey, Tick, Timers};
use std::pin::Pin;

/// How exactly timer `id` is kept.
pub(crate) fn precision_of(id: usize) -> Precision {
    if id % 2 == 1 { Precision::Tick } else { Precision::Coarse }
}

/// A wheel under test.
pub(crate) trait Subject {
    fn arm(&mut self, id: usize, expires: Tick);
    fn reduce(&mut self, id: usize, expires: Tick);
    fn mod_pending(&mut self, id: usize, expires: Tick);
    /// Whether it was pending.
    fn cancel(&mut self, id: usize) -> bool;
    fn forward(&mut self, now: Tick);
    fn next_expiry(&mut self) -> Option<Tick>;
    /// The next timer due, and what it was armed for.
    fn next_expired(&mut self, now: Tick) -> Option<usize>;
    fn clock(&self) -> Tick;
    fn place(&self, expires: Tick, precision: Precision) -> Tick;
    fn check(&self);
}

/// Caller-owned nodes.
pub(crate) struct Intrusive<const LEVELS: usize, const BUCKETS: usize> {
    wheel: IntrusiveWheel<usize, LEVELS, BUCKETS>,
    nodes: Vec<Pin<Box<Node<usize>>>>,
}

impl<const LEVELS: usize, const BUCKETS: usize> Intrusive<LEVELS, BUCKETS> {
    pub(crate) fn new(clock: Tick, count: usize) -> Self {
        let node = |id| Box::pin(Node::new(id).with_precision(precision_of(id)));
        Self { wheel: IntrusiveWheel::with_shape(clock), nodes: (0..count).map(node).collect() }
    }

    fn node(&self, id: usize) -> NodeRef<Node<usize>> {
        // SAFETY: the nodes are pinned, live as long as the wheel, and only this wheel gets them.
        unsafe { NodeRef::new((&*self.nodes[id]).into()) }
    }
}

impl<const LEVELS: usize, const BUCKETS: usize> Subject for Intrusive<LEVELS, BUCKETS> {
    fn arm(&mut self, id: usize, expires: Tick) {
        let was_pending = self.nodes[id].is_pending();
        let before = self.wheel.next_expiry();
        let armed = self.wheel.arm(self.node(id), expires);
        assert_eq!(armed.was_pending, was_pending);
        assert_eq!(self.nodes[id].expires(), Some(expires));
        if armed.is_first {
            let after = self.wheel.next_expiry().expect("it became the first");
            // A move can have taken the old first away.
            assert!(was_pending || before.is_none_or(|before| after.is_before(before)));
        }
    }

    fn reduce(&mut self, id: usize, expires: Tick) {
        let _ = self.wheel.reduce(self.node(id), expires);
    }

    fn mod_pending(&mut self, id: usize, expires: Tick) {
        let was_pending = self.nodes[id].is_pending();
        assert_eq!(self.wheel.mod_pending(self.node(id), expires).is_some(), was_pending);
    }

    fn cancel(&mut self, id: usize) -> bool {
        let was_pending = self.wheel.cancel(self.node(id));
        assert!(!self.nodes[id].is_pending());
        was_pending
    }

    fn forward(&mut self, now: Tick) {
        self.wheel.forward(now);
    }

    fn next_expiry(&mut self) -> Option<Tick> {
        self.wheel.next_expiry()
    }

    fn next_expired(&mut self, now: Tick) -> Option<usize> {
        let node = self.wheel.next_expired(now)?;
        let id = self.nodes.iter().position(|own| std::ptr::eq(&**own, node.as_ptr().as_ptr()));
        assert!(id.is_some_and(|id| !self.nodes[id].is_pending()));
        id
    }

    fn clock(&self) -> Tick {
        self.wheel.clock()
    }

    fn place(&self, expires: Tick, precision: Precision) -> Tick {
        self.wheel.place(expires, precision).expiry
    }

    fn check(&self) {
        self.wheel.check();
    }
}

/// Values and keys in a growing storage.
pub(crate) struct Keyed<const LEVELS: usize, const BUCKETS: usize> {
    timers: Timers<usize, Vec<Slot<usize>>, LEVELS, BUCKETS>,
    keys: Vec<Option<SlotKey>>,
}

impl<const LEVELS: usize, const BUCKETS: usize> Keyed<LEVELS, BUCKETS> {
    pub(crate) fn new(clock: Tick, count: usize) -> Self {
        Self { timers: Timers::with_shape(clock, vec![]), keys: vec![None; count] }
    }

    fn living(&self, id: usize) -> Option<SlotKey> {
        self.keys[id].filter(|key| self.timers.get(*key) == Some(&id))
    }
}

impl<const LEVELS: usize, const BUCKETS: usize> Subject for Keyed<LEVELS, BUCKETS> {
    fn arm(&mut self, id: usize, expires: Tick) {
        match self.living(id) {
            Some(key) => self.timers.re_arm(key, expires).expect("it lives"),
            None => {
                if self.timers.len() == self.timers.capacity() {
                    self.timers.reserve(1);
                }
                let key = self.timers.arm_with(expires, precision_of(id), id).expect("there is room");
                self.keys[id] = Some(key);
            }
        }
        assert_eq!(self.keys[id].and_then(|key| self.timers.expires(key)), Some(expires));
    }

    fn reduce(&mut self, id: usize, expires: Tick) {
        match self.living(id) {
            Some(key) => self.timers.reduce(key, expires).expect("it lives"),
            None => self.arm(id, expires),
        }
    }

    fn mod_pending(&mut self, id: usize, expires: Tick) {
        if let Some(key) = self.living(id) {
            self.timers.re_arm(key, expires).expect("it lives");
        }
    }

    fn cancel(&mut self, id: usize) -> bool {
        self.keys[id].is_some_and(|key| self.timers.cancel(key) == Ok(id))
    }

    fn forward(&mut self, now: Tick) {
        self.timers.forward(now);
    }

    fn next_expiry(&mut self) -> Option<Tick> {
        self.timers.next_expiry()
    }

    fn next_expired(&mut self, now: Tick) -> Option<usize> {
        self.timers.next_expired(now).map(|expired| expired.value)
    }

    fn clock(&self) -> Tick {
        self.timers.clock()
    }

    fn place(&self, expires: Tick, precision: Precision) -> Tick {
        self.timers.place(expires, precision).expiry
    }

    fn check(&self) {
        self.timers.check();
    }
}
