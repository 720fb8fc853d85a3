//! `sfq`: flows that are spread over buckets take turns.
//!
//! A bucket's flow has its queue, and sends a quantum in its turn. When there is no room, the last packet
//! (with `headdrop` the first) of the longest queue is dropped. With random early detection each queue drops,
//! or marks, what comes when its average length is too high.
//!
//! A packet's priority that names a class (`major:minor`), or a filter, chooses the bucket directly,
//! `major:1` the first; a filter that names a class that there is not drops. With `perturb` flows are spread
//! anew now and then, which orders packets of a flow as they were and drops what does not fit.
//!
//! Invariants (tests/sfq): within a bucket packets leave in order of arrival, if nothing perturbs it; a flow
//! is in the turns and in a bucket as long as it has packets.
//!
//! Source: McKenney, "Stochastic Fairness Queuing" (1990); Shreedhar and Varghese, "Efficient Fair Queuing
//! using Deficit Round Robin" (1995); Linux net/sched/sch_sfq.c, by behaviour. Like there, `redflowlimit`
//! itself limits nothing. Deviations: flows are spread anew with the first packet that comes or leaves when
//! it is time, without a timer; what is dropped then is counted; packets that no filter knows go by their
//! flow, where the kernel drops them as soon as there is a filter.

mod flows;
mod inner;
mod settings;
pub(crate) mod tc;

pub use settings::{SfqError, SfqRed, SfqSettings};

use crate::pooled::Pool;
use crate::red::average::RedVerdict;
use crate::{ClassId, Dequeued, Enqueued, Packet, Qdisc, Statistics};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Debug};
use flows::{NONE, SfqFlow, SfqFlows};
use quietcore_core::Nanos;

/// What random early detection has done, in all flows together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SfqStatistics {
    /// Packets that were marked by chance.
    pub early_marks: u64,
    /// Packets whose flow's first packet was marked for them, by chance.
    pub early_head_marks: u64,
    /// Packets that were dropped by chance.
    pub early_drops: u64,
    /// Packets that were marked because the average was too high.
    pub forced_marks: u64,
    /// Packets whose flow's first packet was marked for that reason.
    pub forced_head_marks: u64,
    /// Packets that were dropped for that reason.
    pub forced_drops: u64,
}

/// Stochastic fair queueing. `R` draws random numbers.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Enqueued, Packet, Qdisc, Sfq, SfqSettings};
///
/// #[derive(Debug)]
/// struct Datagram(u64);
///
/// impl Packet for Datagram {
///     fn len(&self) -> u32 {
///         1_000
///     }
///
///     fn flow(&self) -> u64 {
///         self.0
///     }
/// }
/// let settings = SfqSettings { quantum: 1_000, ..SfqSettings::default() };
/// let mut queue = Sfq::new(settings, || 7, Nanos(0)).expect("settings that can be");
/// for flow in [1, 1, 1, 2] {
///     assert_eq!(queue.enqueue(Nanos(0), Datagram(flow)), Enqueued::Queued);
/// }
/// let sent = core::iter::from_fn(|| queue.dequeue(Nanos(0)).packet());
/// assert_eq!(sent.map(|packet| packet.0).collect::<Vec<_>>(), [1, 2, 1, 1]);
/// ```
pub struct Sfq<P, R> {
    settings: SfqSettings,
    random: R,
    /// What flows are spread by.
    key: u64,
    /// When they are spread anew, if ever.
    next_perturb: Option<Nanos>,
    /// The flow of each bucket, or none.
    buckets: Vec<u32>,
    flows: SfqFlows,
    pool: Pool<P>,
    /// Flows with packets, the next one first.
    turns: VecDeque<u32>,
    /// Empty but while flows are spread anew.
    moving: VecDeque<P>,
    statistics: Statistics,
    counted: SfqStatistics,
}

impl<P: Debug, R> Debug for Sfq<P, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("Sfq");
        shown.field("settings", &self.settings).field("statistics", &self.statistics).finish_non_exhaustive()
    }
}

impl<P: Packet, R: FnMut() -> u32> Sfq<P, R> {
    /// An empty one.
    ///
    /// # Errors
    /// [`SfqError`] names the setting that cannot be.
    pub fn new(settings: SfqSettings, mut random: R, now: Nanos) -> Result<Self, SfqError> {
        settings.check()?;
        let key = draw_key(&mut random);
        let next_perturb = (settings.perturb.0 > 0).then(|| Nanos(now.0.saturating_add(settings.perturb.0)));
        let buckets = vec![NONE; settings.divisor as usize];
        Ok(Self {
            settings,
            random,
            key,
            next_perturb,
            buckets,
            flows: SfqFlows::new(),
            pool: Pool::new(),
            turns: VecDeque::new(),
            moving: VecDeque::new(),
            statistics: Statistics::default(),
            counted: SfqStatistics::default(),
        })
    }

    /// What it was told.
    #[must_use]
    pub const fn settings(&self) -> &SfqSettings {
        &self.settings
    }

    /// What random early detection has done.
    #[must_use]
    pub const fn sfq_statistics(&self) -> SfqStatistics {
        self.counted
    }

    /// The bucket that is called `class`.
    fn bucket_of(&self, class: ClassId) -> Option<u32> {
        u32::from(class.minor()).checked_sub(1).filter(|bucket| *bucket < self.settings.divisor)
    }

    /// The bucket that a packet's priority names.
    fn named_bucket(&self, packet: &P) -> Option<u32> {
        let named = ClassId(packet.priority());
        (named.major() == self.settings.major).then(|| self.bucket_of(named)).flatten()
    }

    /// The flow of a class, if it holds packets.
    fn flow(&self, class: ClassId) -> Option<&SfqFlow> {
        let flow = *self.buckets.get(self.bucket_of(class)? as usize)?;
        (flow != NONE).then(|| self.flows.get(flow))
    }

    /// Bytes that the flow of a class may send before others have their turn; nothing of one without packets.
    #[must_use]
    pub fn allot(&self, class: ClassId) -> Option<i64> {
        self.flow(class).map(|flow| flow.allot)
    }

    /// The bucket of a packet's flow.
    const fn spread(&self, flow: u64) -> u32 {
        // Two rounds of the finaliser of MurmurHash3, around the key.
        let mixed = (flow ^ (flow >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd) ^ self.key;
        let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        ((mixed ^ (mixed >> 33)) >> 32) as u32 & (self.settings.divisor - 1)
    }

    /// The flow of a bucket, which may begin now; nothing if there are too many.
    fn flow_of(&mut self, bucket: u32) -> Option<u32> {
        let flow = self.buckets[bucket as usize];
        if flow != NONE {
            return Some(flow);
        }
        if self.flows.used() >= self.settings.flows {
            return None;
        }
        let flow = self.flows.begin(bucket, self.settings.quantum.into());
        self.buckets[bucket as usize] = flow;
        Some(flow)
    }

    fn push(&mut self, flow: u32, packet: P) {
        let size = packet.size();
        let queue = self.flows.get_mut(flow);
        let before = queue.packets.len();
        queue.backlog += u64::from(size.bytes);
        self.pool.push(&mut queue.packets, packet);
        self.flows.moved(flow, before);
        self.statistics.arrived(size);
        if !core::mem::replace(&mut self.flows.get_mut(flow).is_listed, true) {
            self.turns.push_back(flow);
        }
    }

    /// Drops the first packet of a flow for one that comes: it is as long as before.
    fn replace_first(&mut self, flow: u32, packet: P) {
        let queue = self.flows.get_mut(flow);
        let Some(first) = self.pool.pop_first(&mut queue.packets) else { return self.push(flow, packet) };
        queue.backlog = queue.backlog - u64::from(first.len()) + u64::from(packet.len());
        self.statistics.left(first.size());
        self.statistics.arrived(packet.size());
        self.pool.push(&mut queue.packets, packet);
    }

    /// Takes a packet out of a flow: the first one, or the last.
    fn pop(&mut self, flow: u32, end: FlowEnd) -> Option<P> {
        let queue = self.flows.get_mut(flow);
        let before = queue.packets.len();
        let packet = match end {
            FlowEnd::First => self.pool.pop_first(&mut queue.packets),
            FlowEnd::Last => self.pool.pop_last(&mut queue.packets),
        }?;
        queue.backlog -= u64::from(packet.len());
        self.flows.moved(flow, before);
        self.statistics.left(packet.size());
        Some(packet)
    }

    /// A flow without packets, the first of the turns, is gone.
    fn end_first(&mut self) {
        if let Some(flow) = self.turns.pop_front() {
            self.buckets[self.flows.get(flow).bucket as usize] = NONE;
            self.flows.end(flow);
        }
    }

    const fn dropped_end(&self) -> FlowEnd {
        if self.settings.headdrop { FlowEnd::First } else { FlowEnd::Last }
    }

    /// Makes room for one packet; says which flow has lost one.
    fn drop_one(&mut self) -> u32 {
        let longest = self.flows.longest();
        let flow = longest.or_else(|| self.turns.front().copied()).unwrap_or(NONE);
        if self.pop(flow, self.dropped_end()).is_some() {
            self.statistics.dropped += 1;
        }
        if longest.is_none() {
            self.end_first();
        }
        flow
    }

    /// Whether random early detection lets the packet pass, which is marked then, or one ahead of it.
    fn passes(&mut self, now: Nanos, flow: u32, packet: &mut P) -> bool {
        let Some(red) = &self.settings.red else { return true };
        let queue = self.flows.get_mut(flow);
        let backlog = queue.backlog;
        let verdict = queue.average.arrive(&red.curve, now, backlog, &mut self.random);
        let counted = &mut self.counted;
        let (marks, head_marks, drops, is_marking) = match verdict {
            RedVerdict::Pass => return true,
            RedVerdict::Early => {
                let SfqStatistics { early_marks, early_head_marks, early_drops, .. } = counted;
                (early_marks, early_head_marks, early_drops, red.ecn)
            }
            RedVerdict::Forced => {
                let SfqStatistics { forced_marks, forced_head_marks, forced_drops, .. } = counted;
                (forced_marks, forced_head_marks, forced_drops, red.ecn && !red.harddrop)
            }
        };
        self.statistics.overlimits += 1;
        let mut head = if self.settings.headdrop { self.pool.first_mut(&queue.packets) } else { None };
        let count = if is_marking && head.as_mut().is_some_and(|head| head.mark_congestion()) {
            head_marks
        } else if is_marking && packet.mark_congestion() {
            marks
        } else {
            *drops += 1;
            return false;
        };
        *count += 1;
        true
    }

    /// Puts a packet into a bucket.
    fn put(&mut self, now: Nanos, bucket: u32, mut packet: P) -> Enqueued {
        let Some(flow) = self.flow_of(bucket) else {
            self.statistics.dropped += 1;
            return Enqueued::Dropped;
        };
        let fits =
            self.passes(now, flow, &mut packet) && self.flows.get(flow).packets.len() < self.settings.depth;
        if !fits {
            self.statistics.dropped += 1;
            // Of a flow that holds none the one that comes is the first.
            if self.settings.headdrop && self.flows.get(flow).packets.len() > 0 {
                self.replace_first(flow, packet);
                return Enqueued::Queued;
            }
            return Enqueued::Dropped;
        }
        self.push(flow, packet);
        if self.statistics.qlen <= u64::from(self.settings.limit) {
            return Enqueued::Queued;
        }
        let loser = self.drop_one();
        if loser == flow && !self.settings.headdrop { Enqueued::Dropped } else { Enqueued::Queued }
    }

    /// Spreads flows anew if it is time.
    fn perturb(&mut self, now: Nanos) {
        let Some(next) = self.next_perturb.filter(|next| *next <= now) else { return };
        let period = self.settings.perturb.0;
        let late = now.since(next).0 % period;
        self.next_perturb = Some(Nanos((now.0 - late).saturating_add(period)));
        self.key = draw_key(&mut self.random);
        while let Some(flow) = self.turns.front().copied() {
            while let Some(packet) = self.pop(flow, FlowEnd::First) {
                self.moving.push_back(packet);
            }
            self.end_first();
        }
        while let Some(packet) = self.moving.pop_front() {
            let bucket = self.named_bucket(&packet).unwrap_or_else(|| self.spread(packet.flow()));
            let flow = self.flow_of(bucket);
            let flow = flow.filter(|flow| self.flows.get(*flow).packets.len() < self.settings.depth);
            match flow {
                Some(flow) => self.push(flow, packet),
                None => self.statistics.dropped += 1,
            }
        }
    }
}

/// Which of a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowEnd {
    First,
    Last,
}

fn draw_key(random: &mut impl FnMut() -> u32) -> u64 {
    u64::from(random()) << 32 | u64::from(random())
}

impl<P: Packet + Debug + Send, R: FnMut() -> u32 + Send + 'static> Qdisc<P> for Sfq<P, R> {
    fn kind(&self) -> &'static str {
        "sfq"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        self.perturb(now);
        let bucket = self.named_bucket(&packet).unwrap_or_else(|| self.spread(packet.flow()));
        self.put(now, bucket, packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        self.perturb(now);
        loop {
            let Some(flow) = self.turns.front().copied() else { return Dequeued::Empty };
            let queue = self.flows.get_mut(flow);
            if queue.allot <= 0 {
                queue.allot += i64::from(self.settings.quantum);
                self.turns.rotate_left(1);
                continue;
            }
            let Some(packet) = self.pop(flow, FlowEnd::First) else { return Dequeued::Empty };
            let queue = self.flows.get_mut(flow);
            queue.allot -= i64::from(packet.len());
            if queue.packets.len() == 0 {
                self.end_first();
            }
            self.statistics.count_sent(packet.size());
            return Dequeued::Packet(packet);
        }
    }

    fn reset(&mut self, _: Nanos) {
        self.buckets.fill(NONE);
        self.flows = SfqFlows::new();
        self.pool.clear();
        self.turns.clear();
        self.statistics.emptied();
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn is_empty(&self) -> bool {
        self.statistics.qlen == 0
    }
}
