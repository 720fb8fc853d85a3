//! `netem`: a queue that behaves as a network does: delay, loss, duplicates, corruption, reordering, a rate.
//!
//! All is decided when a packet arrives, in one order: whether it comes twice, is lost, has a bit flipped,
//! finds room, is delayed or overtakes; random numbers are drawn in that order, and only for what can happen,
//! so a seed and a script give the same packets at the same moments again. Then packets wait until their
//! moment; where jitter is larger than what lies between two packets, that alone reorders them.
//!
//! With a rate, a packet's transmission begins when the one before it has left: latency is paid once,
//! transmission times add up. The second of two duplicates goes through all of this again, before the first
//! is given its delay, except that it does not come twice.
//!
//! Source: Linux net/sched/sch_netem.c, by behaviour. Deviations: moments before 0 are 0; a duplicate enters
//! here again, and not at the root of the device's queue, which is the same unless a filter is random; a
//! packet that is marked instead of lost is not counted as dropped.

mod calendar;
mod chance;
mod inner;
mod loss;
pub(crate) mod options;
mod queue;
mod settings;
pub(crate) mod tc;
mod text;

pub use chance::{Chance, Probability};
pub use loss::NetemLoss;
pub use settings::{NetemDelay, NetemError, NetemRate, NetemSettings, NetemSlot, OnLoss, SlotSpacing};

use crate::distribution::SCALE;
use crate::packet::WHOLE_ONES_MIN;
use crate::{DelayTimer, Dequeued, Enqueued, InnerQdisc, Packet, Qdisc, Statistics, WHOLE_PACKETS_MAX};
use alloc::collections::VecDeque;
use chance::Correlated;
use core::fmt;
use loss::Chain;
use queue::TimeQueue;
use quietcore_core::Nanos;

/// A network, as a queue.
///
/// `random` gives uniformly distributed numbers; the same ones give the same network.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{NetemDelay, Dequeued, Netem, NetemSettings, Qdisc};
///
/// let delay = NetemDelay { latency: Nanos::from_micros(6_000), ..NetemDelay::default() };
/// let settings = NetemSettings { delay, limit: 70_000, ..NetemSettings::default() };
/// let mut netem = Netem::new(settings, || 0, Nanos(0))?;
/// assert!(netem.enqueue(Nanos(500), vec![0_u8; 60]).is_accepted());
/// assert_eq!(netem.dequeue(Nanos(500)), Dequeued::Throttled(Nanos(6_000_500)));
/// assert_eq!(netem.dequeue(Nanos(6_000_500)), Dequeued::Packet(vec![0; 60]));
/// # Ok::<(), quietcore_qdisc::NetemError>(())
/// ```
pub struct Netem<P, R> {
    settings: NetemSettings,
    random: R,
    chances: Chances,
    chain: Chain,
    /// Packets since the last one that was reordered.
    since_reordered: u32,
    /// They leave first.
    overtaking: VecDeque<P>,
    waiting: TimeQueue<P>,
    /// Packets of the link that those stand for, besides themselves.
    stood_for: u64,
    slot: Opening,
    inner: Option<InnerQdisc<P>>,
    /// Of what waits here, what was sent, and what was dropped here; the inner one knows the rest.
    statistics: Statistics,
    marked: u64,
}

/// The random numbers before, of each kind.
#[derive(Debug, Default)]
struct Chances {
    duplicate: Correlated,
    corrupt: Correlated,
    reorder: Correlated,
    delay: Correlated,
    slot: Correlated,
}

/// When the slot is open, and what it still lets through.
#[derive(Clone, Copy, Debug, Default)]
struct Opening {
    at: Option<Nanos>,
    packets: u64,
    bytes: u64,
}

/// Whether a packet may come twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copies {
    Allowed,
    /// It is one.
    Made,
}

impl<P, R> fmt::Debug for Netem<P, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("Netem");
        shown.field("settings", &self.settings).field("statistics", &self.statistics);
        shown.finish_non_exhaustive()
    }
}

impl<P: Packet + fmt::Debug + Send, R: FnMut() -> u32 + Send> Netem<P, R> {
    /// An empty one, at `now`.
    ///
    /// # Errors
    /// Of settings that do not go together, see [`NetemError`].
    pub fn new(settings: NetemSettings, random: R, now: Nanos) -> Result<Self, NetemError> {
        settings.check()?;
        let mut netem = Self {
            settings,
            random,
            chances: Chances::default(),
            chain: Chain::default(),
            since_reordered: 0,
            overtaking: VecDeque::new(),
            waiting: TimeQueue::new(),
            stood_for: 0,
            slot: Opening::default(),
            inner: None,
            statistics: Statistics::default(),
            marked: 0,
        };
        netem.open_slot(now);
        Ok(netem)
    }

    /// Other settings from `now` on; what waits keeps its moments.
    ///
    /// # Errors
    /// Of settings that do not go together: then nothing has changed.
    pub fn change(&mut self, settings: NetemSettings, now: Nanos) -> Result<(), NetemError> {
        settings.check()?;
        self.settings = settings;
        self.open_slot(now);
        Ok(())
    }

    /// What it does.
    pub const fn settings(&self) -> &NetemSettings {
        &self.settings
    }

    /// Packets that were marked instead of lost.
    pub const fn marked(&self) -> u64 {
        self.marked
    }

    /// Draws other numbers from now on: as if begun with another seed.
    pub fn set_random(&mut self, random: R) {
        self.random = random;
    }

    fn take(&mut self, now: Nanos, mut packet: P, copies: Copies) -> Enqueued {
        let Self { settings, random, chances, chain, .. } = self;
        let comes_twice = copies == Copies::Allowed && chances.duplicate.happens(settings.duplicate, random);
        let mut count = 1 + u32::from(comes_twice);
        if chain.loses(&settings.loss, random) {
            if settings.on_loss == OnLoss::Mark && packet.mark_congestion() {
                self.marked += 1;
            } else {
                count -= 1;
            }
        }
        if count == 0 {
            self.statistics.dropped += u64::from(packet.packets());
            return Enqueued::Lost;
        }
        let copy = if count > 1 { packet.duplicate() } else { None };
        if chances.corrupt.happens(settings.corrupt, random) {
            let (byte, bit) = (random(), random());
            packet.corrupt(byte, bit);
        }
        let waiting = self.waiting.len() as u64 + self.stood_for;
        if waiting + u64::from(packet.packets()) > u64::from(settings.limit) {
            self.statistics.dropped += u64::from(packet.packets());
            return Enqueued::Dropped;
        }
        if let Some(copy) = copy {
            // Its own fate is in the statistics.
            let _ = self.take(now, copy, Copies::Made);
        }
        self.statistics.arrived(packet.size());
        self.place(now, packet);
        Enqueued::Queued
    }

    /// Decides when it leaves.
    #[inline]
    fn place(&mut self, now: Nanos, packet: P) {
        let Self { settings, random, chances, .. } = self;
        let is_delayed = settings.gap == 0
            || self.since_reordered < settings.gap - 1
            || settings.reorder_share() < chances.reorder.draw(settings.reorder.correlation, random);
        if !is_delayed {
            self.since_reordered = 0;
            // As the kernel counts them: as if they had been back at the front.
            self.statistics.requeues += 1;
            self.overtaking.push_front(packet);
            return;
        }
        self.since_reordered = self.since_reordered.saturating_add(1);
        let mut delay = drawn(&settings.delay, &mut chances.delay, random);
        let mut from = now;
        if settings.rate.bytes_per_second > 0 {
            if let Some(last) = self.waiting.last() {
                // The link is busy until then, and that much of the latency has passed by then.
                delay = (delay - (i128::from(last.0) - i128::from(now.0))).max(0);
                from = last;
            }
            delay += i128::from(settings.rate.time(packet.len()).0);
        }
        let at = (i128::from(from.0) + delay).clamp(0, i128::from(u64::MAX));
        self.waiting.pass(now);
        self.stood_for += u64::from(packet.packets().saturating_sub(1));
        self.waiting.push(Nanos(at as u64), packet);
    }

    /// A slot opens at `now`, if there are slots.
    fn open_slot(&mut self, now: Nanos) {
        self.slot = Opening { at: self.settings.slot.is_some().then_some(now), packets: 0, bytes: 0 };
        if let Some(slot) = &self.settings.slot {
            (self.slot.packets, self.slot.bytes) = slot.room();
        }
    }

    /// The next slot opens some time after `now`.
    fn next_slot(&mut self, now: Nanos) {
        let Some(slot) = &self.settings.slot else { return };
        let spacing = match &slot.spacing {
            SlotSpacing::Between { min, max } => {
                let share = u128::from((self.random)());
                i128::from(min.0) + ((u128::from(max.0 - min.0) * share) >> 32) as i128
            }
            SlotSpacing::Distributed(delay) => drawn(delay, &mut self.chances.slot, &mut self.random),
        };
        let at = (i128::from(now.0) + spacing).clamp(0, i128::from(u64::MAX));
        let (packets, bytes) = slot.room();
        self.slot = Opening { at: Some(Nanos(at as u64)), packets, bytes };
    }

    /// The first that waits, if its moment has come; if not, when it comes.
    #[inline]
    fn due(&mut self, now: Nanos) -> Dequeued<P> {
        let Some(first) = self.waiting.first() else { return Dequeued::Empty };
        if self.slot.at.is_some_and(|at| at < first) {
            // It was open while nothing could leave.
            self.next_slot(now);
        }
        let open = self.slot.at.unwrap_or_default();
        if first > now || open > now {
            return Dequeued::Throttled(first.max(open));
        }
        let packet = self.waiting.pop().expect("it was there");
        self.stood_for -= u64::from(packet.packets().saturating_sub(1));
        if self.slot.at.is_some() {
            self.slot.packets = self.slot.packets.saturating_sub(u64::from(packet.packets()));
            self.slot.bytes = self.slot.bytes.saturating_sub(u64::from(packet.len()));
            if self.slot.packets == 0 || self.slot.bytes == 0 {
                self.next_slot(now);
            }
        }
        Dequeued::Packet(packet)
    }

    /// Moves all that is due into the inner discipline, which then chooses; gives what that lets go.
    fn through_inner(&mut self, now: Nanos) -> Dequeued<P> {
        let due = loop {
            match self.due(now) {
                Dequeued::Packet(packet) => {
                    let size = packet.size();
                    let inner = self.inner.as_mut().expect("there is one");
                    self.statistics.left(size);
                    // What it does not take, it counts as dropped.
                    let _ = inner.enqueue(now, packet);
                }
                Dequeued::Throttled(until) => break Some(until),
                Dequeued::Empty => break None,
            }
        };
        let inner = self.inner.as_mut().expect("there is one");
        let mut next = inner.dequeue(now);
        // While a packet waits, the kernel asks again, which shows in what a bucket counts.
        if due.is_some() && !matches!(next, Dequeued::Packet(_)) {
            next = inner.dequeue(now);
        }
        match (next, due) {
            (Dequeued::Packet(packet), _) => Dequeued::Packet(packet),
            (Dequeued::Throttled(until), due) => Dequeued::Throttled(due.map_or(until, |due| due.min(until))),
            (Dequeued::Empty, Some(due)) => Dequeued::Throttled(due),
            (Dequeued::Empty, None) => Dequeued::Empty,
        }
    }
}

/// How much later than now; may be before it.
fn drawn(delay: &NetemDelay, last: &mut Correlated, random: &mut impl FnMut() -> u32) -> i128 {
    let (latency, jitter) = (i128::from(delay.latency.0), i128::from(delay.jitter.0));
    if jitter == 0 {
        return latency;
    }
    let number = last.draw(delay.correlation, random);
    let Some(distribution) = &delay.distribution else {
        // A span beyond 32 bits is beyond the number, too.
        let span = delay.jitter.0.saturating_mul(2);
        return latency - jitter + i128::from(u64::from(number) % span);
    };
    let product = jitter * i128::from(distribution.draw(number));
    // Rounded to the nearest, half away from zero.
    let half = i128::from(SCALE / 2) * product.signum();
    latency + (product + half) / i128::from(SCALE)
}

impl NetemSettings {
    /// Whether packets of a stream that come together leave together, whatever happens.
    fn keeps_whole(&self) -> bool {
        let chances = [&self.duplicate, &self.corrupt, &self.reorder];
        let is_drawn = self.loss != NetemLoss::None
            || self.delay.jitter != Nanos(0)
            || chances.iter().any(|chance| chance.probability != Probability::NEVER);
        let is_paced = self.rate.bytes_per_second > 0 || self.slot.is_some() || self.gap > 0;
        !is_drawn && !is_paced && self.limit >= WHOLE_ONES_MIN * WHOLE_PACKETS_MAX
    }

    /// A gap alone reorders every packet that it lets.
    fn reorder_share(&self) -> u32 {
        match self.reorder.probability {
            Probability::NEVER => u32::MAX,
            probability => probability.share(),
        }
    }
}

impl NetemSlot {
    /// What it lets through, packets and bytes.
    fn room(&self) -> (u64, u64) {
        let packets = if self.packets == 0 { u64::MAX } else { u64::from(self.packets) };
        (packets, if self.bytes == 0 { u64::MAX } else { self.bytes })
    }
}

impl<P, R> Qdisc<P> for Netem<P, R>
where
    P: Packet + fmt::Debug + Send + 'static,
    R: FnMut() -> u32 + Send + 'static,
{
    fn kind(&self) -> &'static str {
        "netem"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        self.take(now, packet, Copies::Allowed)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        let next = match self.overtaking.pop_front() {
            Some(packet) => Dequeued::Packet(packet),
            None if self.inner.is_some() => {
                let next = self.through_inner(now);
                if let Dequeued::Packet(packet) = &next {
                    self.statistics.count_sent(packet.size());
                }
                return next;
            }
            None => self.due(now),
        };
        if let Dequeued::Packet(packet) = &next {
            self.statistics.sent(packet.size());
        }
        next
    }

    fn reset(&mut self, now: Nanos) {
        self.overtaking.clear();
        self.waiting.clear();
        self.stood_for = 0;
        if let Some(inner) = &mut self.inner {
            inner.reset(now);
        }
        self.since_reordered = 0;
        self.statistics.emptied();
        self.open_slot(now);
    }

    fn is_empty(&self) -> bool {
        self.statistics.qlen == 0 && self.inner.as_ref().is_none_or(InnerQdisc::is_empty)
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.statistics;
        if let Some(inner) = &self.inner {
            let inner = inner.statistics();
            all.backlog += inner.backlog;
            all.qlen += inner.qlen;
            all.dropped += inner.dropped;
        }
        all
    }

    /// Delays all by as much, draws nothing, and has a limit with room for some.
    fn keeps_whole(&self) -> bool {
        self.settings.keeps_whole() && self.inner.as_ref().is_none_or(InnerQdisc::keeps_whole)
    }

    fn delays(&self) -> DelayTimer {
        self.inner.as_ref().map_or(DelayTimer::Absent, InnerQdisc::delays)
    }

    fn end_delays(&mut self, now: Nanos) {
        if let Some(inner) = &mut self.inner {
            inner.end_delays(now);
        }
    }
}
