//! One class: its queue, and the estimate of how idle it is.
//!
//! After each packet, idle time is what passed since the last one less what the packet takes at the class's
//! rate; the estimate is its weighted average. The moment at which a packet has left is not measured but
//! assumed from the link's bandwidth, hence imprecise.

use super::settings::{CbqClass, CbqClassStatistics, CbqSettings};
use crate::{ClassId, InnerQdisc, Packet};
use core::fmt::Debug;
use quietcore_core::Nanos;

/// After a pause as long as this, all idle time that may be saved is.
const LONG: u64 = 134_217_728_000;

/// Any class may lend.
pub(super) const ALL_LEVELS: u8 = 8;

/// The least by which a class is delayed.
pub(super) const TICK: i64 = 1_024;

#[derive(Debug)]
pub(super) struct CbqNode<P> {
    pub(super) settings: CbqClass,
    pub(super) parent: Option<ClassId>,
    pub(super) children: u32,
    /// 0 without classes below it, else above the highest of them.
    pub(super) level: u8,
    pub(super) queue: InnerQdisc<P>,
    /// It is above its rate before that.
    pub(super) under_time: Option<Nanos>,
    /// It was delayed, and has not been under its rate since.
    pub(super) is_delayed: bool,
    pub(super) deficit: i64,
    pub(super) quantum: i64,
    pub(super) counted: CbqClassStatistics,
    /// When its last packet has left.
    last: Nanos,
    max_idle: i64,
    min_idle: i64,
    off_time: i64,
}

impl<P: Packet + Debug> CbqNode<P> {
    pub(super) fn new(
        parent: Option<ClassId>,
        queue: InnerQdisc<P>,
        class: CbqClass,
        all: &CbqSettings,
    ) -> Self {
        let mut node = Self {
            settings: class,
            parent,
            children: 0,
            level: 0,
            queue,
            under_time: None,
            is_delayed: false,
            deficit: 0,
            quantum: 0,
            counted: CbqClassStatistics::default(),
            last: Nanos(0),
            max_idle: 0,
            min_idle: 0,
            off_time: 0,
        };
        node.tell(class, all);
        node.counted.average_idle = node.max_idle;
        node
    }

    pub(super) fn tell(&mut self, class: CbqClass, all: &CbqSettings) {
        self.settings = class;
        self.max_idle = class.max_idle(all);
        self.off_time = class.off_time(all);
        let least = class.min_idle.map_or(i64::MAX, |idle| i64::try_from(idle.0).unwrap_or(i64::MAX));
        self.min_idle = least.saturating_mul(1 << class.shift()).saturating_neg();
    }

    pub(super) fn begin(&mut self, now: Nanos) {
        (self.under_time, self.is_delayed, self.deficit) = (None, false, 0);
        (self.last, self.counted.average_idle) = (now, self.max_idle);
        self.queue.reset(now);
    }

    /// The band of its priority, from 0.
    pub(super) fn band(&self) -> usize {
        usize::from(self.settings.prio.clamp(1, 8)) - 1
    }

    pub(super) fn weight(&self) -> u128 {
        u128::from(self.settings.weight.unwrap_or(self.settings.rate.get()).max(1))
    }

    pub(super) fn is_under_limit(&self, now: Nanos) -> bool {
        self.under_time.is_none_or(|under| under <= now)
    }

    /// A packet of it or from below it will have left at `end`, having taken `taken` on the link.
    pub(super) fn sent(&mut self, bytes: u32, end: Nanos, taken: Nanos) {
        self.counted.queue.count_sent(bytes);
        let own = signed(self.settings.rate.time(bytes));
        let passed = end.since(self.last);
        let average = self.counted.average_idle;
        let average = if passed.0 > LONG {
            self.max_idle
        } else {
            let idle = signed(passed).saturating_sub(own);
            average.saturating_add(idle.saturating_sub(average >> self.settings.shift()))
        };
        self.counted.average_idle = average.clamp(self.min_idle, self.max_idle);
        self.under_time = (average <= 0).then(|| {
            let wait = self.owed().saturating_sub(signed(taken)).saturating_add(own);
            Nanos(end.0.saturating_add_signed(wait))
        });
        self.last = self.last.max(end);
    }

    /// What the estimate of a class above its rate is below 0, as it will be counted next time.
    fn owed(&self) -> i64 {
        let below = self.counted.average_idle.saturating_neg();
        below - (below >> self.settings.shift())
    }

    /// It is above its rate: until when is it to wait? The first time, by `offtime` more.
    pub(super) fn delay(&mut self, now: Nanos) -> Nanos {
        let under = self.under_time.unwrap_or(now).max(now);
        if self.is_delayed {
            return under;
        }
        // Waiting works its debt off, so it is forgiven.
        let delay =
            signed(under.since(now)).saturating_add(self.off_time).saturating_sub(self.owed()).max(TICK);
        let until = Nanos(now.0.saturating_add_signed(delay));
        (self.under_time, self.is_delayed) = (Some(until), true);
        self.counted.overactions += 1;
        until
    }

    pub(super) fn statistics(&self) -> CbqClassStatistics {
        let mut queue = self.counted.queue;
        queue.include(&self.queue.statistics());
        CbqClassStatistics { queue, ..self.counted }
    }
}

fn signed(span: Nanos) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}
