//! Guarantees: which leaf must send now, lest it miss a deadline.
//!
//! A packet's deadline is when its leaf's deadline curve reaches the packet's end; it is eligible, may use
//! the guarantee, once the eligible curve has reached its beginning. Of the eligible ones the earliest
//! deadline is first. A concave curve is its own eligible curve. A convex one gives late what it can then not
//! make up for at once, so its eligible curve is the line of its second rate, which builds up what is needed
//! (Stoica, Zhang, Ng 1997, sections IV and V).

use super::ServiceCurve;
use super::settings::HfscKey;
use super::shifted::{ShiftedCurve, moment};
use crate::sorted::SortedSet;
use quietcore_core::Nanos;

/// A leaf's guarantee.
#[derive(Debug)]
pub(super) struct RealTime {
    deadline_curve: ShiftedCurve,
    /// Where it is another one.
    eligible_curve: Option<ShiftedCurve>,
    /// Of its next packet, while it is in the agenda.
    eligible: Nanos,
    deadline: Nanos,
    /// For what these two are: bytes that were sent, and the packet's.
    told: Option<(u64, u32)>,
}

impl RealTime {
    pub(super) fn new(curve: ServiceCurve) -> Self {
        let eligible = (!curve.is_concave()).then_some(ServiceCurve::linear(curve.m2));
        Self {
            deadline_curve: ShiftedCurve::new(curve),
            eligible_curve: eligible.map(ShiftedCurve::new),
            eligible: Nanos(0),
            deadline: Nanos(0),
            told: None,
        }
    }

    /// Whether that is what its moments are for, and nothing has begun anew since.
    pub(super) fn is_told(&self, bytes: u64, length: u32) -> bool {
        self.told == Some((bytes, length))
    }

    /// Becomes backlogged, having had `bytes` by its guarantee.
    pub(super) fn begin(&mut self, now: Nanos, bytes: u64) {
        self.told = None;
        self.deadline_curve.begin(now.0.into(), bytes);
        if let Some(curve) = &mut self.eligible_curve {
            curve.begin(now.0.into(), bytes);
        }
    }

    /// Its next packet has `length` bytes, after `bytes` that were sent.
    pub(super) fn next(&mut self, bytes: u64, length: u32) {
        self.told = Some((bytes, length));
        let eligible_curve = self.eligible_curve.as_ref().unwrap_or(&self.deadline_curve);
        self.eligible = moment(eligible_curve.reaches(bytes));
        self.deadline = moment(self.deadline_curve.reaches(bytes + u64::from(length)));
    }
}

/// The leaves with guarantees that hold packets.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// Not yet eligible, by when they are, with their deadlines.
    waiting: SortedSet<(Nanos, HfscKey, Nanos)>,
    /// Eligible, by deadline.
    ready: SortedSet<(Nanos, HfscKey)>,
}

impl Agenda {
    pub(super) fn insert(&mut self, key: HfscKey, realtime: &RealTime, now: Nanos) {
        if realtime.eligible <= now {
            self.ready.insert((realtime.deadline, key));
        } else {
            self.waiting.insert((realtime.eligible, key, realtime.deadline));
        }
    }

    /// Takes it out; nothing if it is not in.
    pub(super) fn remove(&mut self, key: HfscKey, realtime: &RealTime) {
        if !self.ready.remove(&(realtime.deadline, key)) {
            self.waiting.remove(&(realtime.eligible, key, realtime.deadline));
        }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.ready.clear();
    }

    /// The leaf that must send now.
    pub(super) fn choose(&mut self, now: Nanos) -> Option<HfscKey> {
        while let Some(first) = self.waiting.first().filter(|first| first.0 <= now) {
            let (_, key, deadline) = *first;
            self.waiting.pop_first();
            self.ready.insert((deadline, key));
        }
        self.ready.first().map(|(_, key)| *key)
    }

    /// When the next leaf is eligible, none being so now; `None` if there is none.
    pub(super) fn next_eligible(&self) -> Option<Nanos> {
        self.waiting.first().map(|(eligible, ..)| *eligible)
    }
}
