//! Packets that name their class, and what was dequeued without them.

use quietcore_core::Nanos;
use quietcore_qdisc::{ClassId, Dequeued, Packet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tagged {
    pub(crate) class: ClassId,
    pub(crate) number: usize,
    pub(crate) length: u32,
}

impl Packet for Tagged {
    fn len(&self) -> u32 {
        self.length
    }

    fn priority(&self) -> u32 {
        self.class.0
    }
}

/// The name of the class with this number.
pub(crate) fn name(class: usize) -> ClassId {
    ClassId::new(1, u16::try_from(class).expect("few classes"))
}

/// The moment of a throttled queue.
pub(crate) fn throttled(dequeued: Dequeued<Tagged>) -> Nanos {
    match dequeued {
        Dequeued::Throttled(until) => until,
        other => panic!("not throttled: {other:?}"),
    }
}
