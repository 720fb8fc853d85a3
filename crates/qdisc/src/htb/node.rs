//! One class: its two buckets, what they let it do, and what it counts.
//!
//! A bucket is kept in nanoseconds: what a packet takes at the class's rate is taken out, what passes is put
//! in, up to its depth. `tokens` is of `rate`, `ctokens` of `ceil`. Neither remembers a debt of a minute or
//! more, and no more than a minute is put in at once, so a bucket deeper than that takes several packets to
//! fill.

use super::round_robin::RoundRobin;
use super::settings::{HtbClass, HtbClassStatistics};
use crate::{ClassId, InnerQdisc, Packet, PacketSize, WHOLE_BYTES_MAX};
use core::fmt::Debug;
use quietcore_core::Nanos;

/// Levels of classes, and priorities of leaves.
pub(super) const LEVELS: usize = 8;
pub(super) const PRIORITIES: usize = 8;

/// What a bucket forgets, in nanoseconds.
const MINUTE: u64 = 60_000_000_000;

/// What a class may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HtbMode {
    /// Send, and lend to classes below it.
    CanSend,
    /// Send what a class above it lends.
    MayBorrow,
    /// Wait: it is above its ceil.
    CantSend,
}

#[derive(Debug)]
pub(super) struct HtbNode<P> {
    pub(super) settings: HtbClass,
    pub(super) parent: Option<ClassId>,
    pub(super) children: u32,
    /// 0 of a leaf.
    pub(super) level: u8,
    pub(super) mode: HtbMode,
    /// When the mode may be another: what it is in the wait tree by.
    pub(super) event: Option<Nanos>,
    /// Of a leaf, its priority's bit while it takes part; of others, a bit for each feed that is not empty.
    pub(super) activity: u8,
    /// A leaf whose queue is throttled does not take part before that.
    pub(super) throttled_until: Option<Nanos>,
    /// Those below it that want to borrow, by priority.
    pub(super) feeds: [RoundRobin; PRIORITIES],
    /// A leaf's queue.
    pub(super) queue: Option<InnerQdisc<P>>,
    /// What it may still send in its turn at each level, in bytes.
    pub(super) deficits: [i64; LEVELS],
    pub(super) quantum: u32,
    /// Times, sent, lends, borrows, giants, overlimits; and what queues dropped that it no longer has.
    pub(super) counted: HtbClassStatistics,
    /// When the buckets were last brought up to date.
    updated: Nanos,
    /// How long sending what `burst` and `cburst` are takes.
    depths: (i64, i64),
}

impl<P: Packet + Debug> HtbNode<P> {
    /// A leaf with full buckets.
    pub(super) fn new(settings: HtbClass, parent: Option<ClassId>, queue: InnerQdisc<P>) -> Self {
        let mut node = Self {
            settings,
            parent,
            children: 0,
            level: 0,
            mode: HtbMode::CanSend,
            event: None,
            activity: 0,
            throttled_until: None,
            feeds: Default::default(),
            queue: Some(queue),
            deficits: [0; LEVELS],
            quantum: 0,
            counted: HtbClassStatistics::default(),
            updated: Nanos(0),
            depths: depths(&settings),
        };
        node.fill(Nanos(0));
        node
    }

    /// Other settings; what is in its buckets stays.
    pub(super) fn set(&mut self, settings: HtbClass, quantum: u32) {
        (self.settings, self.quantum, self.depths) = (settings, quantum, depths(&settings));
    }

    /// Its buckets are full at `now`, and it takes no part.
    pub(super) fn fill(&mut self, now: Nanos) {
        (self.mode, self.event, self.throttled_until, self.activity) = (HtbMode::CanSend, None, None, 0);
        (self.counted.tokens, self.counted.ctokens) = self.depths;
        self.updated = now;
        self.deficits = [0; LEVELS];
        for feed in &mut self.feeds {
            feed.clear();
        }
    }

    /// The bit of its priority.
    pub(super) fn priority_bit(&self) -> u8 {
        1 << usize::from(self.settings.prio).min(PRIORITIES - 1)
    }

    /// What was put in since the last time.
    fn elapsed(&self, now: Nanos) -> i64 {
        signed(Nanos(now.since(self.updated).0.min(MINUTE)))
    }

    /// What it may do at `now`, and the first moment at which that may be another without a packet sent.
    pub(super) fn mode_at(&self, now: Nanos) -> (HtbMode, Option<Nanos>) {
        let elapsed = self.elapsed(now);
        let later = |short: i64| Some(Nanos(now.0.saturating_add(short.unsigned_abs())));
        let ctokens = self.counted.ctokens.saturating_add(elapsed);
        if ctokens < 0 {
            return (HtbMode::CantSend, later(ctokens));
        }
        let tokens = self.counted.tokens.saturating_add(elapsed);
        if tokens < 0 {
            return (HtbMode::MayBorrow, later(tokens));
        }
        (HtbMode::CanSend, None)
    }

    /// A packet leaves from it or from below it, on tokens of `lender`'s level: those of a class below that
    /// pay their ceil only.
    pub(super) fn charge(&mut self, lender: u8, size: PacketSize, now: Nanos) {
        let PacketSize { bytes, packets } = size;
        let elapsed = self.elapsed(now);
        let (depth, cdepth) = self.depths;
        let cost = if self.level >= lender { self.settings.rate.time(bytes) } else { Nanos(0) };
        let pay = |tokens: i64, depth: i64, cost: Nanos| {
            let filled = tokens.saturating_add(elapsed).min(depth);
            filled.saturating_sub(signed(cost)).max(1 - signed(Nanos(MINUTE)))
        };
        self.counted.tokens = pay(self.counted.tokens, depth, cost);
        self.counted.ctokens = pay(self.counted.ctokens, cdepth, self.settings.ceil.time(bytes));
        self.updated = now;
        self.counted.queue.count_sent(size);
        let count = |counts: bool| if counts { u64::from(packets) } else { 0 };
        self.counted.lends += count(self.level == lender);
        self.counted.borrows += count(self.level < lender);
        self.counted.giants += count(size.each() > self.settings.mtu);
    }

    /// Takes its queue away or gives it another one; what is in the old one is dropped.
    pub(super) fn replace_queue(&mut self, queue: Option<InnerQdisc<P>>) {
        let gone = self.statistics().queue;
        self.counted.queue.dropped = gone.dropped + gone.qlen;
        self.queue = queue;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.as_ref().is_none_or(InnerQdisc::is_empty)
    }

    /// Whether its buckets and its queue take the longest as one.
    pub(super) fn keeps_whole(&self) -> bool {
        let HtbClass { rate, ceil, .. } = self.settings;
        let least = self.settings.burst_bytes().min(self.settings.cburst_bytes());
        let is_plain = rate.is_plain() && ceil.is_plain();
        is_plain
            && least >= u64::from(WHOLE_BYTES_MAX)
            && self.queue.as_ref().is_none_or(InnerQdisc::keeps_whole)
    }

    /// All of it but what only the whole knows.
    pub(super) fn statistics(&self) -> HtbClassStatistics {
        let mut queue = self.counted.queue;
        self.queue.iter().for_each(|own| queue.include(&own.statistics()));
        HtbClassStatistics { queue, level: self.level, quantum: self.quantum, ..self.counted }
    }
}

fn depths(settings: &HtbClass) -> (i64, i64) {
    let tokens = settings.rate.time_of(settings.burst_bytes());
    let ctokens = settings.ceil.time_of(settings.cburst_bytes());
    (signed(tokens), signed(ctokens))
}

fn signed(span: Nanos) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{HtbMode, HtbNode};
    use crate::{Fifo, FifoLimit, HtbClass, InnerQdisc, Rate};
    use alloc::vec::Vec;
    use quietcore_core::Nanos;

    /// A class of 1,000 bytes per second with a burst of 100 bytes, and a ceil of twice that.
    fn node() -> HtbNode<Vec<u8>> {
        let rate = |bytes| Rate::bytes_per_second(bytes).expect("not 0");
        let (burst, cburst) = (Some(100), Some(200));
        let settings = HtbClass { ceil: rate(2_000), burst, cburst, ..HtbClass::new(rate(1_000)) };
        HtbNode::new(settings, None, InnerQdisc::new(Fifo::new(FifoLimit::Packets(1))))
    }

    /// Goal: modes change at the nanosecond that is named. Method: both edges of both buckets.
    #[test]
    fn modes_change_when_said() {
        let mut node = node();
        assert_eq!(node.mode_at(Nanos(0)), (HtbMode::CanSend, None));
        node.charge(0, 100.into(), Nanos(0));
        assert_eq!(node.mode_at(Nanos(0)), (HtbMode::CanSend, None), "an empty bucket is not in debt");
        node.charge(0, 110.into(), Nanos(0));
        // 110 bytes in debt at 1,000 a second; of its ceil, 10 at 2,000.
        assert_eq!(node.mode_at(Nanos(0)), (HtbMode::CantSend, Some(Nanos(5_000_000))));
        assert_eq!(node.mode_at(Nanos(4_999_999)), (HtbMode::CantSend, Some(Nanos(5_000_000))));
        assert_eq!(node.mode_at(Nanos(5_000_000)), (HtbMode::MayBorrow, Some(Nanos(110_000_000))));
        assert_eq!(node.mode_at(Nanos(110_000_000)), (HtbMode::CanSend, None));
    }

    /// Goal: a borrower pays its ceil only. Method: the same packet on its own and on another's tokens.
    #[test]
    fn borrowers_keep_their_tokens() {
        for (lender, tokens) in [(0, 50_000_000), (1, 100_000_000)] {
            let mut node = node();
            node.charge(lender, 50.into(), Nanos(0));
            let statistics = node.statistics();
            assert_eq!((statistics.tokens, statistics.ctokens), (tokens, 75_000_000), "lender {lender}");
            assert_eq!((statistics.lends, statistics.borrows), (1 - u64::from(lender), u64::from(lender)));
        }
    }

    /// Goal: a debt is forgotten after a minute. Method: a packet of 18 hours.
    #[test]
    fn debts_end() {
        let mut node = node();
        node.charge(0, u32::MAX.into(), Nanos(7));
        assert_eq!(node.mode_at(Nanos(60_000_000_006)), (HtbMode::CanSend, None));
        assert_eq!(node.mode_at(Nanos(60_000_000_005)).1, Some(Nanos(60_000_000_006)));
        assert_eq!(node.mode_at(Nanos(u64::MAX)), (HtbMode::CanSend, None));
    }
}
