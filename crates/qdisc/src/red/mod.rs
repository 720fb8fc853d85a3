//! `red`: what comes is dropped, or marked, by chance as the queue grows, before it is full.
//!
//! The average length decides (`average`, which `sfq` has for each flow); what passes goes into the
//! discipline inside, a `bfifo` of `limit` bytes if no other was put there. With `adaptive` the probability
//! follows the average: more if that is above the middle of the limits, less if it is below.
//!
//! Invariants (tests/red): packets leave in the order of what is inside; below `min` on average nothing is
//! marked, from `max` on everything.
//!
//! Source: as `average`; Linux net/sched/sch_red.c, by behaviour: a change empties the queue, and puts the
//! `bfifo` back. Deviations: the probability is adapted with the first packet that comes or is asked for when
//! it is time, without a timer, and for 1,000 half seconds without either at most; an empty queue inside
//! of tbf is idle, which the kernel does not notice there. Absent: `qevent`.

pub(crate) mod average;
mod inner;
mod settings;
pub(crate) mod tc;
pub(crate) mod typed;

pub use average::{IdleDamping, RedCurve};
pub use settings::{RedError, RedSettings};

use crate::{DelayTimer, Dequeued, Enqueued, Fifo, FifoLimit, InnerQdisc, Packet, Qdisc, Statistics};
use average::{RedAverage, RedVerdict};
use core::fmt::{self, Debug};
use quietcore_core::Nanos;

/// How often the probability is adapted.
const ADAPT_PERIOD: u64 = 500_000_000;
/// So often at once, at most.
const ADAPTED_AT_ONCE: u32 = 1_000;

/// What a [`Red`] has counted besides what all disciplines count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedStatistics {
    /// Packets that were marked, by chance or because the average was too high.
    pub marks: u64,
    /// Packets that were dropped for these reasons.
    pub early_drops: u64,
    /// Packets that the discipline inside did not take.
    pub inner_drops: u64,
}

/// Random early detection. `R` draws random numbers.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{IdleDamping, Qdisc, Red, RedCurve, RedSettings};
///
/// // Averages of 5,000 to 15,000 bytes, a tenth of all packets just below that.
/// let idle = IdleDamping::new(3, 1_000, 1_250_000).expect("10 Mbit/s");
/// let curve = RedCurve { min: 5_000, max: 15_000, weight_log: 3, probability: u32::MAX / 10, idle };
/// let settings = RedSettings {
///     limit: 100_000,
///     curve,
///     ecn: false,
///     harddrop: false,
///     nodrop: false,
///     adaptive: false,
/// };
/// let mut queue = Red::new(settings, || 7, Nanos(0)).expect("settings that can be");
/// let taken = (0..100).filter(|_| queue.enqueue(Nanos(0), vec![0; 1_000]).is_accepted()).count();
/// assert_eq!(taken, 12, "then the average is above `min`, and random numbers this small drop");
/// ```
pub struct Red<P, R> {
    settings: RedSettings,
    /// The settings', but for the probability as it was adapted.
    curve: RedCurve,
    random: R,
    average: RedAverage,
    next_adapt: Nanos,
    inner: InnerQdisc<P>,
    /// What was sent, and dropped but for what the discipline inside has.
    own: Statistics,
    counted: RedStatistics,
}

impl<P: Debug, R> Debug for Red<P, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("Red");
        shown.field("settings", &self.settings).field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<P: Packet + Debug + Send, R: FnMut() -> u32> Red<P, R> {
    /// An empty one.
    ///
    /// # Errors
    /// [`RedError`] names the setting that cannot be.
    pub fn new(settings: RedSettings, random: R, now: Nanos) -> Result<Self, RedError> {
        settings.check()?;
        let mut average = RedAverage::new();
        average.rest(now);
        Ok(Self {
            curve: settings.curve.clone(),
            random,
            average,
            next_adapt: Nanos(now.0.saturating_add(ADAPT_PERIOD)),
            inner: fifo(settings.limit),
            own: Statistics::default(),
            counted: RedStatistics::default(),
            settings,
        })
    }

    /// Other settings from now on: what is held is dropped, and a `bfifo` is inside.
    ///
    /// # Errors
    /// [`RedError`] names the setting that cannot be: then nothing has changed.
    pub fn change(&mut self, settings: RedSettings, now: Nanos) -> Result<(), RedError> {
        settings.check()?;
        self.curve = settings.curve.clone();
        self.settings = settings;
        self.average = RedAverage::new();
        self.average.rest(now);
        self.next_adapt = Nanos(now.0.saturating_add(ADAPT_PERIOD));
        self.set_inner(None);
        Ok(())
    }

    /// Another discipline inside, or a `bfifo` of its limit; what the one before held is dropped.
    pub fn set_inner(&mut self, inner: Option<InnerQdisc<P>>) {
        let before = self.inner.statistics();
        self.own.dropped += before.dropped + before.qlen;
        self.inner = inner.unwrap_or_else(|| fifo(self.settings.limit));
    }

    /// What it was told.
    #[must_use]
    pub const fn settings(&self) -> &RedSettings {
        &self.settings
    }

    /// What it goes by now: what it was told, with the probability that it has adapted.
    #[must_use]
    pub const fn curve(&self) -> &RedCurve {
        &self.curve
    }

    /// What it has counted besides what all disciplines count.
    #[must_use]
    pub const fn red_statistics(&self) -> RedStatistics {
        self.counted
    }

    fn adapt(&mut self, now: Nanos) {
        if !self.settings.adaptive {
            return;
        }
        for _ in 0..ADAPTED_AT_ONCE {
            if self.next_adapt > now {
                return;
            }
            self.average.adapt(&mut self.curve, self.next_adapt);
            self.next_adapt.0 = self.next_adapt.0.saturating_add(ADAPT_PERIOD);
        }
        self.next_adapt = Nanos(now.0.saturating_add(ADAPT_PERIOD));
    }

    /// Whether the packet passes, which may be marked then.
    fn passes(&mut self, now: Nanos, packet: &mut P) -> bool {
        let backlog = self.inner.statistics().backlog;
        let RedSettings { ecn, harddrop, nodrop, .. } = self.settings;
        let is_marking = match self.average.arrive(&self.curve, now, backlog, &mut self.random) {
            RedVerdict::Pass => return true,
            RedVerdict::Early => ecn,
            RedVerdict::Forced => ecn && !harddrop,
        };
        self.own.overlimits += 1;
        if is_marking && packet.mark_congestion() {
            self.counted.marks += 1;
            return true;
        }
        let passes = is_marking && nodrop;
        self.counted.early_drops += u64::from(!passes);
        passes
    }
}

fn fifo<P: Packet + Debug + Send>(limit: u32) -> InnerQdisc<P> {
    InnerQdisc::new(Fifo::new(FifoLimit::Bytes(limit.into())))
}

impl<P: Packet + Debug + Send, R: FnMut() -> u32 + Send + 'static> Qdisc<P> for Red<P, R> {
    fn kind(&self) -> &'static str {
        "red"
    }

    fn enqueue(&mut self, now: Nanos, mut packet: P) -> Enqueued {
        self.adapt(now);
        if !self.passes(now, &mut packet) {
            self.own.dropped += 1;
            return Enqueued::Dropped;
        }
        let verdict = self.inner.enqueue(now, packet);
        self.counted.inner_drops += u64::from(verdict == Enqueued::Dropped);
        verdict
    }

    fn head(&self) -> Option<u32> {
        self.inner.qdisc().head()
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        self.adapt(now);
        let next = self.inner.dequeue(now);
        match &next {
            Dequeued::Packet(packet) => self.own.count_sent(packet.size()),
            // As in the kernel, a queue that gives nothing is idle though packets may wait in it.
            Dequeued::Throttled(_) | Dequeued::Empty => self.average.rest(now),
        }
        next
    }

    fn reset(&mut self, now: Nanos) {
        self.inner.reset(now);
        self.average = RedAverage::new();
        self.average.rest(now);
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.own;
        all.include(&self.inner.statistics());
        all
    }

    fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    fn delays(&self) -> DelayTimer {
        self.inner.delays()
    }

    fn end_delays(&mut self, now: Nanos) {
        self.inner.end_delays(now);
    }
}
