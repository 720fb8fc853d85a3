//! CoDel itself: which packets of a queue are dropped, or marked, as they leave.
//!
//! A packet that waited for less than the target is fine, and so is one behind which a packet's bytes or
//! less are queued. When none was fine for an interval, one is dropped, and while none is, further ones at
//! moments that come closer: the n-th gap is the interval divided by the square root of n. The root is kept
//! as its inverse, in 16 bits, and improved by one step of Newton's method each time that n grows.
//!
//! Invariant: between two drops of a queue in which no packet was fine lies at least the gap.
//!
//! Source: RFC 8289, sections 4 and 5; where Linux differs (include/net/codel_impl.h, by behaviour), it is as
//! there: time counts in units of 1024 ns, what is exactly at its time is not yet over it, `mtu` is the
//! device's and not the longest packet's. Deviation: times are of 64 bits and do not wrap.

use super::settings::{CeSelector, CodelLaw};
use crate::Packet;
use quietcore_core::Nanos;

/// Nanoseconds of a unit of time, as a power of 2.
const UNIT_SHIFT: u32 = 10;
/// A queue that is bad again before so many intervals are over goes on near the pace that it had.
const INTERVALS_REMEMBERED: u64 = 16;

/// A moment, or a span, in units of 1024 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CodelTime(u64);

impl CodelTime {
    pub(crate) const fn of(time: Nanos) -> Self {
        Self(time.0 >> UNIT_SHIFT)
    }

    /// In nanoseconds.
    pub(crate) const fn nanos(self) -> Nanos {
        Nanos(self.0 << UNIT_SHIFT)
    }

    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    const fn and(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// A packet that has just left its queue.
#[derive(Debug)]
pub(crate) struct Waited<P> {
    pub(crate) packet: P,
    pub(crate) arrived: CodelTime,
    /// Bytes that are queued now.
    pub(crate) backlog: u64,
}

/// What CoDel takes packets from.
pub(crate) trait CodelQueue<P> {
    /// The first one.
    fn take(&mut self) -> Option<Waited<P>>;

    /// It is to be dropped, and counted.
    fn discard(&mut self, packet: P);
}

/// What CoDel knows of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodelState {
    /// How often it has dropped since it began, or more: what a queue drops for want of room counts too.
    pub(crate) count: u32,
    /// The same as it began.
    pub(crate) last_count: u32,
    /// Of `count`: 65535 is about 1.
    inverse_root: u16,
    pub(crate) is_dropping: bool,
    /// When packets may be dropped, if none was fine until then; nothing as long as one is.
    first_above: Option<CodelTime>,
    /// When the next one is, while `is_dropping`.
    pub(crate) drop_next: CodelTime,
    /// How long the last packet waited.
    pub(crate) delay: CodelTime,
}

impl CodelState {
    pub(crate) const fn new() -> Self {
        Self {
            count: 0,
            last_count: 0,
            inverse_root: 0,
            is_dropping: false,
            first_above: None,
            drop_next: CodelTime(0),
            delay: CodelTime(0),
        }
    }

    /// Nanoseconds from `now` to the next drop, while it drops.
    pub(crate) fn until_next(&self, now: CodelTime) -> Option<i64> {
        let nanos = |time: CodelTime| i64::try_from(time.nanos().0).unwrap_or(i64::MAX);
        let (ahead, late) = (self.drop_next.since(now), now.since(self.drop_next));
        self.is_dropping.then(|| nanos(ahead) - nanos(late))
    }

    /// A step of Newton's method for the inverse root of `count`: x (3 - n x^2) / 2. It is exact enough when
    /// `count` has grown by one. As in the kernel, a count that has jumped so far that the step leads below 0
    /// wraps, and some steps later the root is right again.
    fn improve_root(&mut self) {
        let root = u64::from(self.inverse_root) << 16;
        let square = (root * root) >> 32;
        let rest = (3_u64 << 32).wrapping_sub(u64::from(self.count) * square);
        // Less a quarter before the product, so that it fits: of the half another half is left.
        let better = (rest >> 2).wrapping_mul(root) >> 31;
        // Never 0, which no step leads away from.
        self.inverse_root = ((better >> 16) as u16).max(1);
    }

    /// When the one after that at `last` is dropped.
    fn schedule(&mut self, last: CodelTime, interval: CodelTime) {
        let root = u128::from(self.inverse_root) << 16;
        let gap = (u128::from(interval.0) * root) >> 32;
        self.drop_next = last.and(CodelTime(gap as u64)); // not more than the interval
    }

    /// It begins to drop, a packet at `now`.
    fn begin(&mut self, now: CodelTime, interval: CodelTime) {
        self.is_dropping = true;
        let paced = self.count.wrapping_sub(self.last_count);
        let remembered = interval.0.saturating_mul(INTERVALS_REMEMBERED);
        // A queue that has never dropped, but was cut short, has no pace yet.
        let is_first = self.inverse_root == 0;
        if paced > 1 && !is_first && now.since(self.drop_next).0 < remembered {
            self.count = paced;
            self.improve_root();
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.last_count = self.count;
        self.schedule(now, interval);
    }

    /// Whether a packet may be dropped that waited for `delay`, with `backlog` bytes behind it.
    fn may_drop(&mut self, law: &CodelLaw, now: CodelTime, backlog: u64) -> bool {
        if self.delay < CodelTime::of(law.target) || backlog <= u64::from(law.mtu) {
            self.first_above = None;
            return false;
        }
        let interval = CodelTime::of(law.interval);
        now > *self.first_above.get_or_insert_with(|| now.and(interval))
    }
}

/// What is counted for all queues together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CodelCounts {
    pub(crate) longest_packet: u32,
    pub(crate) ecn_marks: u64,
    pub(crate) ce_marks: u64,
}

/// CoDel at work on a queue.
#[derive(Debug)]
pub(crate) struct CodelRun<'a> {
    pub(crate) law: &'a CodelLaw,
    pub(crate) state: &'a mut CodelState,
    pub(crate) counts: &'a mut CodelCounts,
    pub(crate) now: CodelTime,
}

impl CodelRun<'_> {
    /// The packet that leaves; nothing if the queue is empty, or everything in it was dropped.
    pub(crate) fn next<P: Packet>(&mut self, queue: &mut impl CodelQueue<P>) -> Option<P> {
        let Some((packet, may_drop)) = self.take(queue) else {
            self.state.is_dropping = false;
            return None;
        };
        let mut packet = if !may_drop {
            self.state.is_dropping = false;
            packet
        } else if self.state.is_dropping {
            self.go_on(packet, queue)?
        } else {
            self.begin(packet, queue)?
        };
        self.mark_late(&mut packet);
        Some(packet)
    }

    /// The first packet, and whether it may be dropped.
    fn take<P: Packet>(&mut self, queue: &mut impl CodelQueue<P>) -> Option<(P, bool)> {
        let Some(Waited { packet, arrived, backlog }) = queue.take() else {
            self.state.first_above = None;
            return None;
        };
        self.state.delay = self.now.since(arrived);
        self.counts.longest_packet = self.counts.longest_packet.max(packet.len());
        let may_drop = self.state.may_drop(self.law, self.now, backlog);
        Some((packet, may_drop))
    }

    /// Marks the packet, if it is marked and not dropped.
    fn marks<P: Packet>(&mut self, packet: &mut P) -> bool {
        let is_marked = self.law.ecn && packet.mark_congestion();
        self.counts.ecn_marks += u64::from(is_marked);
        is_marked
    }

    /// The first drop: what is behind it leaves, good or bad.
    fn begin<P: Packet>(&mut self, mut packet: P, queue: &mut impl CodelQueue<P>) -> Option<P> {
        let next = if self.marks(&mut packet) {
            Some(packet)
        } else {
            queue.discard(packet);
            self.take(queue).map(|(packet, _)| packet)
        };
        self.state.begin(self.now, CodelTime::of(self.law.interval));
        next
    }

    /// Drops what is due, the first time with `packet`, as long as nothing is fine.
    fn go_on<P: Packet>(&mut self, mut packet: P, queue: &mut impl CodelQueue<P>) -> Option<P> {
        let interval = CodelTime::of(self.law.interval);
        while self.now >= self.state.drop_next {
            self.state.count = self.state.count.wrapping_add(1);
            self.state.improve_root();
            if self.marks(&mut packet) {
                self.state.schedule(self.state.drop_next, interval);
                break;
            }
            queue.discard(packet);
            let next = self.take(queue);
            self.state.is_dropping = matches!(next, Some((_, true)));
            packet = next?.0;
            if !self.state.is_dropping {
                break;
            }
            self.state.schedule(self.state.drop_next, interval);
        }
        Some(packet)
    }

    fn mark_late<P: Packet>(&mut self, packet: &mut P) {
        let CeSelector { value, mask } = self.law.ce_selector;
        let is_selected = mask == 0 || packet.traffic_class().is_some_and(|class| class & mask == value);
        let is_late = self.law.ce_threshold.is_some_and(|most| self.state.delay > CodelTime::of(most));
        if is_late && is_selected && packet.mark_congestion() {
            self.counts.ce_marks += 1;
        }
    }
}
