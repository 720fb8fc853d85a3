//! `tbf`: a token bucket: what passes, in any span of time, is a burst and what the rate allows.
//!
//! Tokens are time on the link. The bucket holds what `burst` bytes take at the rate, and fills as time
//! passes; a packet takes out what it takes. With a peak rate there is a second bucket, of `minburst` bytes
//! at the peak rate, and a packet needs both.
//!
//! Invariants (tests/tbf.rs): what left in a span took no longer, at the rate, than the span and the
//! bucket; the packet at the head never waits for a shorter one; the moment that `Throttled` names is the
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

use crate::{Child, Dequeued, Fifo, Limit, Packet, Qdisc, Rate, Statistics, Verdict};
use core::fmt::{self, Debug};
use quietcore_core::Nanos;

/// How much may wait in a [`Tbf`].
///
/// ```
/// use quietcore_core::Nanos;
/// assert_ne!(quietcore_qdisc::TbfLimit::Bytes(3_000), quietcore_qdisc::TbfLimit::Latency(Nanos(3_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TbfLimit {
    /// `limit`: so many bytes.
    Bytes(u64),
    /// `latency`: as many as pass in a burst and so long; with a peak rate as few as pass at either rate.
    Latency(Nanos),
}

/// What a [`Tbf`] is asked for.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Rate, TbfLimit, TbfSettings};
///
/// let rate = Rate::bytes_per_second(125_000).expect("not 0");
/// let settings = TbfSettings::new(rate, 5_000, TbfLimit::Latency(Nanos(8_000_000)));
/// assert_eq!(settings.limit_bytes(), 6_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TbfSettings {
    /// What passes in the long run.
    pub rate: Rate,
    /// Bytes that the bucket holds: no longer packet is taken.
    pub burst: u32,
    /// How much may wait.
    pub limit: TbfLimit,
    /// What passes within a burst.
    pub peak: Option<Peak>,
}

/// How fast a burst may pass.
///
/// ```
/// # use quietcore_qdisc::{Peak, Rate};
/// let rate = Rate::bytes_per_second(1_000_000).expect("not 0");
/// assert_eq!(Peak { rate, minburst: 1_514 }.minburst, 1_514);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// `peakrate`: more than the rate.
    pub rate: Rate,
    /// `minburst` or `mtu`: bytes that pass at once: no longer packet is taken.
    pub minburst: u32,
}

impl TbfSettings {
    /// Without a peak rate.
    ///
    /// ```
    /// # use quietcore_qdisc::{Rate, TbfLimit, TbfSettings};
    /// let rate = Rate::bytes_per_second(125_000).expect("not 0");
    /// assert_eq!(TbfSettings::new(rate, 5_000, TbfLimit::Bytes(3_000)).peak, None);
    /// ```
    #[must_use]
    pub const fn new(rate: Rate, burst: u32, limit: TbfLimit) -> Self {
        Self { rate, burst, limit, peak: None }
    }

    /// With one.
    ///
    /// ```
    /// # use quietcore_qdisc::{Rate, Tbf, TbfLimit, TbfSettings};
    /// let rate = |bytes| Rate::bytes_per_second(bytes).expect("not 0");
    /// let settings = TbfSettings::new(rate(125_000), 5_000, TbfLimit::Bytes(3_000)).peak(rate(250_000), 1_514);
    /// assert_eq!(settings.longest(), 1_514);
    /// ```
    #[must_use]
    pub const fn peak(self, rate: Rate, minburst: u32) -> Self {
        Self { peak: Some(Peak { rate, minburst }), ..self }
    }

    /// Bytes of the longest packet that is taken.
    ///
    /// ```
    /// # use quietcore_qdisc::{Rate, TbfLimit, TbfSettings};
    /// # let rate = Rate::bytes_per_second(125_000).expect("not 0");
    /// assert_eq!(TbfSettings::new(rate, 5_000, TbfLimit::Bytes(3_000)).longest(), 5_000);
    /// ```
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.peak.map_or(self.burst, |peak| self.burst.min(peak.minburst))
    }

    /// Bytes that may wait.
    ///
    /// ```
    /// # use quietcore_qdisc::{Rate, TbfLimit, TbfSettings};
    /// # let rate = Rate::bytes_per_second(125_000).expect("not 0");
    /// assert_eq!(TbfSettings::new(rate, 5_000, TbfLimit::Bytes(3_000)).limit_bytes(), 3_000);
    /// ```
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        let latency = match self.limit {
            TbfLimit::Bytes(bytes) => return bytes,
            TbfLimit::Latency(latency) => latency,
        };
        let within = |rate: Rate, burst: u32| rate.bytes_in(latency).saturating_add(u64::from(burst));
        let at_rate = within(self.rate, self.burst);
        self.peak.map_or(at_rate, |peak| at_rate.min(within(peak.rate, peak.minburst)))
    }

    fn check(&self) -> Result<(), TbfError> {
        if self.burst == 0 {
            return Err(TbfError::Burst { bytes: self.burst });
        }
        if self.limit_bytes() == 0 {
            return Err(TbfError::Limit { bytes: 0 });
        }
        let Some(peak) = self.peak else { return Ok(()) };
        if peak.minburst == 0 {
            return Err(TbfError::Minburst { bytes: peak.minburst });
        }
        let (rate, peak_rate) = (self.rate.get(), peak.rate.get());
        if peak_rate <= rate {
            return Err(TbfError::PeakRate { rate, peak: peak_rate });
        }
        let (time, bucket) = (peak.rate.time(self.longest()), self.rate.time(self.burst));
        if time > bucket {
            return Err(TbfError::PeakOverhead { time, bucket });
        }
        Ok(())
    }
}

/// Which setting a [`Tbf`] cannot have.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Rate, Tbf, TbfError, TbfLimit, TbfSettings};
///
/// let rate = Rate::bytes_per_second(125_000).expect("not 0");
/// let settings = TbfSettings::new(rate, 5_000, TbfLimit::Bytes(3_000)).peak(rate, 1_514);
/// let error = Tbf::<Vec<u8>>::new(settings, Nanos(0)).expect_err("a peak is more than the rate");
/// assert_eq!(error, TbfError::PeakRate { rate: 125_000, peak: 125_000 });
/// assert_eq!(error.to_string(), "peak rate of 125000 bytes/s is not above the rate of 125000 bytes/s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TbfError {
    /// No packet would ever pass.
    Burst {
        /// Of the bucket.
        bytes: u32,
    },
    /// No packet could ever wait.
    Limit {
        /// That may wait.
        bytes: u64,
    },
    /// No packet would ever pass.
    Minburst {
        /// Of the bucket of the peak rate.
        bytes: u32,
    },
    /// The peak rate is not above the rate.
    PeakRate {
        /// Bytes per second.
        rate: u64,
        /// Bytes per second.
        peak: u64,
    },
    /// With its overhead the longest packet needs more of the peak rate than the bucket has.
    PeakOverhead {
        /// That the packet takes at the peak rate.
        time: Nanos,
        /// What the bucket of the rate holds.
        bucket: Nanos,
    },
}

impl fmt::Display for TbfError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Burst { bytes } => write!(out, "burst of {bytes} bytes lets no packet pass"),
            Self::Limit { bytes } => write!(out, "limit of {bytes} bytes lets no packet wait"),
            Self::Minburst { bytes } => write!(out, "minburst of {bytes} bytes lets no packet pass"),
            Self::PeakRate { rate, peak } => {
                write!(out, "peak rate of {peak} bytes/s is not above the rate of {rate} bytes/s")
            }
            Self::PeakOverhead { time, bucket } => {
                write!(out, "longest packet takes {time} at the peak rate, more than the bucket's {bucket}")
            }
        }
    }
}

impl core::error::Error for TbfError {}

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
    inner: Child<P>,
    /// Bytes that may wait in the default inner one, the packet that was looked at included: that one has left
    /// the fifo, which could not count it. A replaced one has its own limit.
    limit: Option<u64>,
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
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{Rate, Tbf, TbfError, TbfLimit, TbfSettings};
    /// let rate = Rate::bytes_per_second(125_000).expect("not 0");
    /// let settings = TbfSettings::new(rate, 0, TbfLimit::Bytes(3_000));
    /// assert_eq!(Tbf::<Vec<u8>>::new(settings, Nanos(0)).err(), Some(TbfError::Burst { bytes: 0 }));
    /// ```
    pub fn new(settings: TbfSettings, now: Nanos) -> Result<Self, TbfError> {
        settings.check()?;
        let limit = settings.limit_bytes();
        Ok(Self {
            settings,
            inner: Child::new(Fifo::new(Limit::Bytes(limit))),
            limit: Some(limit),
            at_rate: Bucket::full(settings.rate.time(settings.burst)),
            at_peak: settings.peak.map(|peak| Bucket::full(peak.rate.time(peak.minburst))),
            checked: now,
            own: Statistics::default(),
        })
    }

    /// The same before another discipline, whose own limit holds; what the one before held is dropped.
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{Child, Fifo, Limit, Qdisc, Rate, Tbf, TbfLimit, TbfSettings, Verdict};
    /// # let rate = Rate::bytes_per_second(125_000).expect("not 0");
    /// # let settings = TbfSettings::new(rate, 1_500, TbfLimit::Bytes(10_000));
    /// # let queue = Tbf::new(settings, Nanos(0)).expect("settings that can be");
    /// let mut queue = queue.with_inner(Child::new(Fifo::new(Limit::Packets(0))));
    /// assert_eq!(queue.enqueue(Nanos(0), vec![0; 60]), Verdict::Dropped);
    /// ```
    #[must_use]
    pub fn with_inner(mut self, inner: Child<P>) -> Self {
        let before = self.inner.statistics();
        self.own.dropped += before.dropped + before.qlen;
        Self { inner, limit: None, ..self }
    }

    /// What it was asked for.
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{Rate, Tbf, TbfLimit, TbfSettings};
    /// # let rate = Rate::bytes_per_second(125_000).expect("not 0");
    /// # let settings = TbfSettings::new(rate, 1_500, TbfLimit::Bytes(10_000));
    /// let queue = Tbf::<Vec<u8>>::new(settings, Nanos(0)).expect("settings that can be");
    /// assert_eq!(queue.settings().burst, 1_500);
    /// ```
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

    fn enqueue(&mut self, now: Nanos, packet: P) -> Verdict {
        let backlog = self.inner.statistics().backlog.saturating_add(u64::from(packet.len()));
        if packet.len() > self.settings.longest() || self.limit.is_some_and(|limit| backlog > limit) {
            self.own.dropped += 1;
            return Verdict::Dropped;
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
            if passes {
                self.own.sent_bytes += u64::from(bytes);
                self.own.sent_packets += 1;
                return leaving;
            }
            self.own.dropped += 1;
        }
    }

    fn reset(&mut self, now: Nanos) {
        self.inner.reset(now);
        self.at_rate.tokens = self.at_rate.depth;
        if let Some(bucket) = &mut self.at_peak {
            bucket.tokens = bucket.depth;
        }
        self.checked = now;
    }

    fn statistics(&self) -> Statistics {
        let inner = self.inner.statistics();
        let dropped = self.own.dropped + inner.dropped;
        Statistics { dropped, backlog: inner.backlog, qlen: inner.qlen, ..self.own }
    }
}
