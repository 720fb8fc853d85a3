//! `tbf`: a token bucket: what passes, in any span of time, is a burst and what the rate allows.
//!
//! Tokens are time on the link. The bucket holds what `burst` bytes take at the rate, and fills as time
//! passes; a packet takes out what it takes. With a peak rate there is a second bucket, of `minburst` bytes
//! at the peak rate, and a packet needs both.
//!
//! Invariants (tests/tbf.rs): what left in a span took no longer, at the rate, than the span and the
//! bucket; no shorter packet passes the one at the head; the moment that `Throttled` names is the
//! earliest at which the head leaves, and there it does. Packets leave in the order of the inner
//! discipline.
//!
//! Times are rounded down to a nanosecond, so `n` packets may come to up to `n` bytes more than a burst and
//! the rate's for each 10^9 bytes per second of the rate.
//!
//! Source: Linux net/sched/sch_tbf.c, by behaviour. Deviations: a packet longer than the burst is dropped,
//! never cut into segments; one that a replaced inner discipline gives out is dropped then, for it could
//! never be sent; a peak rate whose overheads make a packet longer than the bucket is an error, for the same
//! reason.

mod inner;
mod settings;
pub(crate) mod tc;

pub use settings::{TbfError, TbfLimit, TbfPeak, TbfSettings};

use crate::{
    DelayTimer, Dequeued, Enqueued, Fifo, FifoLimit, InnerQdisc, Packet, Qdisc, Statistics, WHOLE_BYTES_MAX,
};
use core::fmt::Debug;
use quietcore_core::Nanos;

/// Time on the link that may be used now, up to a depth; nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    depth: u64,
    tokens: u64,
}

impl Bucket {
    const fn full(depth: Nanos) -> Self {
        Self { depth: depth.0, tokens: depth.0 }
    }

    /// What is left once `elapsed` has come in and `cost` gone out, or how much is short.
    fn after(&self, elapsed: u64, cost: Nanos) -> Result<u64, u64> {
        let filled = self.tokens.saturating_add(elapsed).min(self.depth);
        filled.checked_sub(cost.0).ok_or(cost.0.saturating_sub(filled))
    }
}

/// A token bucket filter.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Dequeued, Qdisc, Rate, Tbf, TbfLimit, TbfSettings};
///
/// let rate = Rate::bytes_per_second(125_000).expect("not 0"); // 8 us per byte
/// let settings = TbfSettings::new(rate, 1_500, TbfLimit::Bytes(10_000));
/// let mut queue = Tbf::new(settings, Nanos(0)).expect("settings that can be");
/// for _ in 0..2 {
///     assert!(queue.enqueue(Nanos(0), vec![0; 1_000]).is_accepted());
/// }
/// assert!(queue.dequeue(Nanos(0)).packet().is_some(), "the bucket is full");
/// assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Throttled(Nanos(4_000_000)), "500 bytes are short");
/// assert!(queue.dequeue(Nanos(4_000_000)).packet().is_some());
/// assert_eq!(queue.statistics().overlimits, 1);
/// ```
#[derive(Debug)]
pub struct Tbf<P> {
    settings: TbfSettings,
    inner: InnerQdisc<P>,
    at_rate: Bucket,
    at_peak: Option<Bucket>,
    /// When the buckets were last written: when a packet last left.
    checked: Nanos,
    /// What was sent, dropped here, and made to wait; the inner one knows the rest.
    own: Statistics,
}

impl<P: Packet + Debug + Send + 'static> Tbf<P> {
    /// One with full buckets, before a `bfifo` of its limit.
    ///
    /// # Errors
    /// [`TbfError`] names the setting that cannot be.
    pub fn new(settings: TbfSettings, now: Nanos) -> Result<Self, TbfError> {
        settings.check()?;
        let limit = settings.limit_bytes();
        Ok(Self {
            settings,
            inner: InnerQdisc::new(Fifo::new(FifoLimit::Bytes(limit))),
            at_rate: Bucket::full(settings.rate.time(settings.burst)),
            at_peak: settings.peak.map(|peak| Bucket::full(peak.rate.time(peak.minburst))),
            checked: now,
            own: Statistics::default(),
        })
    }

    /// Other settings from `now` on, with full buckets; what waits stays, and the limit of a `bfifo` inside
    /// becomes the new one. What is too long for the new bucket is dropped when its turn comes.
    ///
    /// # Errors
    /// [`TbfError`] names the setting that cannot be: then nothing has changed.
    pub fn change(&mut self, settings: TbfSettings, now: Nanos) -> Result<(), TbfError> {
        settings.check()?;
        self.settings = settings;
        self.fill(now);
        let inner: &mut dyn core::any::Any = self.inner.qdisc_mut();
        if let Some(fifo) = inner.downcast_mut::<Fifo<P>>()
            && matches!(fifo.limit(), FifoLimit::Bytes(_))
        {
            fifo.set_limit(FifoLimit::Bytes(settings.limit_bytes()));
        }
        Ok(())
    }

    /// Its buckets are full at `now`.
    fn fill(&mut self, now: Nanos) {
        self.at_rate = Bucket::full(self.settings.rate.time(self.settings.burst));
        self.at_peak = self.settings.peak.map(|peak| Bucket::full(peak.rate.time(peak.minburst)));
        self.checked = now;
    }

    /// What it was asked for.
    #[must_use]
    pub const fn settings(&self) -> &TbfSettings {
        &self.settings
    }

    /// Takes what a packet costs out of the buckets, or changes nothing and says how long to wait.
    fn take(&mut self, now: Nanos, bytes: u32) -> Result<(), Nanos> {
        let elapsed = now.since(self.checked).0.min(self.at_rate.depth);
        let rate_after = self.at_rate.after(elapsed, self.settings.rate.time(bytes));
        let peak_after = match (&self.at_peak, &self.settings.peak) {
            (Some(bucket), Some(peak)) => bucket.after(elapsed, peak.rate.time(bytes)),
            _ => Ok(0),
        };
        match (rate_after, peak_after) {
            (Ok(tokens), Ok(peak_tokens)) => {
                self.at_rate.tokens = tokens;
                if let Some(bucket) = &mut self.at_peak {
                    bucket.tokens = peak_tokens;
                }
                self.checked = now;
                Ok(())
            }
            // Neither bucket is clamped before it has enough (`check` saw to that), so after the longer of
            // both waits there is enough in both, and a nanosecond before there is not.
            (rate, peak) => Err(Nanos(rate.err().max(peak.err()).unwrap_or(0))),
        }
    }
}

impl<P: Packet + Debug + Send + 'static> Qdisc<P> for Tbf<P> {
    fn kind(&self) -> &'static str {
        "tbf"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        if packet.len() > self.settings.longest() {
            self.own.dropped += u64::from(packet.packets());
            return Enqueued::Dropped;
        }
        self.inner.enqueue(now, packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        loop {
            let bytes = match self.inner.peek(now) {
                Dequeued::Packet(bytes) => bytes,
                Dequeued::Throttled(until) => return Dequeued::Throttled(until),
                Dequeued::Empty => return Dequeued::Empty,
            };
            let passes = bytes <= self.settings.longest();
            if passes && let Err(wait) = self.take(now, bytes) {
                self.own.overlimits += 1;
                return Dequeued::Throttled(Nanos(now.0.saturating_add(wait.0)));
            }
            let leaving = self.inner.dequeue(now);
            let Dequeued::Packet(packet) = &leaving else { return leaving };
            if passes {
                self.own.count_sent(packet.size());
                return leaving;
            }
            self.own.dropped += u64::from(packet.packets());
        }
    }

    fn reset(&mut self, now: Nanos) {
        self.inner.reset(now);
        self.fill(now);
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.own;
        all.include(&self.inner.statistics());
        all
    }

    /// Whose buckets hold the longest, and whose rates count bytes as they are.
    fn keeps_whole(&self) -> bool {
        let TbfSettings { rate, peak, .. } = self.settings;
        let is_plain = rate.is_plain() && peak.is_none_or(|peak| peak.rate.is_plain());
        is_plain && self.settings.longest() >= WHOLE_BYTES_MAX && self.inner.keeps_whole()
    }

    fn delays(&self) -> DelayTimer {
        self.inner.delays()
    }

    fn end_delays(&mut self, now: Nanos) {
        self.inner.end_delays(now);
    }
}
