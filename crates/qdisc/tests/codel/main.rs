//! `codel` and `fq_codel` against models that are written from RFC 8289 and RFC 8290, and what they promise.

mod flows;
mod model;
mod recorded;
mod single;

use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{CeSelector, ClassId, CodelLaw, Packet};

const MILLISECOND: u64 = 1_000_000;

/// A packet that is only what is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) number: u32,
    /// The class that it names.
    pub(crate) class: u16,
    pub(crate) flow: u64,
    pub(crate) bytes: u32,
    pub(crate) traffic_class: Option<u8>,
    pub(crate) markable: bool,
    pub(crate) marks: u32,
}

impl Packet for Datagram {
    fn len(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn priority(&self) -> u32 {
        if self.class == 0 { 0 } else { ClassId::new(1, self.class).0 }
    }

    fn traffic_class(&self) -> Option<u8> {
        self.traffic_class
    }

    fn mark_congestion(&mut self) -> bool {
        self.marks += u32::from(self.markable);
        self.markable
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<S> {
    Wait(u64),
    Enqueue(Datagram),
    Dequeue,
    Drain,
    Reset,
    Change(S),
}

fn packets(classes: u16) -> impl Strategy<Value = Datagram> {
    let bytes = prop_oneof![4 => 40_u32..1_600, 1 => 1_u32..70_000];
    let traffic_class = proptest::option::of(0_u8..8);
    (1..=classes, bytes, traffic_class, any::<bool>()).prop_map(|(class, bytes, traffic_class, markable)| {
        Datagram { class, bytes, traffic_class, markable, ..Datagram::default() }
    })
}

/// More comes than leaves, and time passes in steps of about a millisecond.
pub(crate) fn steps<S: Clone + std::fmt::Debug + 'static>(
    classes: u16,
    change: impl Strategy<Value = S> + 'static,
) -> impl Strategy<Value = Vec<Step<S>>> {
    let wait = prop_oneof![
        2 => 0_u64..1_000,
        8 => 0_u64..3_000_000,
        2 => 0_u64..120_000_000,
        1 => 0_u64..4_000_000_000,
    ];
    let step = prop_oneof![
        60 => wait.prop_map(Step::Wait),
        70 => packets(classes).prop_map(Step::Enqueue),
        60 => Just(Step::Dequeue),
        2 => Just(Step::Drain),
        1 => Just(Step::Reset),
        2 => change.prop_map(Step::Change),
    ];
    proptest::collection::vec(step, 1..500)
}

pub(crate) fn laws() -> impl Strategy<Value = CodelLaw> {
    let target = prop_oneof![Just(5_000_000_u64), 0_u64..2_000_000].prop_map(Nanos);
    let interval = prop_oneof![Just(100_000_000_u64), 0_u64..5_000_000, Just(10_000_000)].prop_map(Nanos);
    let threshold = proptest::option::of((0_u64..10_000_000).prop_map(Nanos));
    let selector = prop_oneof![
        Just(CeSelector::default()),
        (0_u8..4, 0_u8..4).prop_map(|(value, mask)| CeSelector { value, mask }),
    ];
    let mtu = prop_oneof![Just(1_514_u32), 0_u32..5_000];
    (target, interval, any::<bool>(), threshold, selector, mtu).prop_map(
        |(target, interval, ecn, ce_threshold, ce_selector, mtu)| CodelLaw {
            target,
            interval,
            ecn,
            ce_threshold,
            ce_selector,
            mtu,
        },
    )
}
