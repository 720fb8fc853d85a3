//! `fq`: each flow has its queue, its fair share and its pace.
//!
//! Packets wait in the queue of their flow, in order of the moment at which they may leave. Flows take turns
//! by deficit round robin; those that woke go before those that had a turn. A flow whose first packet may not
//! leave yet waits for its time and is in no other flow's way. After a packet its flow waits for as long as
//! the packet takes at the flow's rate.
//!
//! A packet that may leave at once while nothing else could takes a short way past all that, as long as no
//! rate paces it. A packet that says when it departs has been paced by its sender: only `maxrate`, which no
//! flow may exceed, makes its flow wait behind it. `overlimits` stays 0: a wait is counted in
//! [`FqStatistics`].
//!
//! Invariants (tests/fq): no packet leaves before its departure time or before its flow's pace allows;
//! a flow that waits does not hold up others; the moment that `Throttled` names is the earliest at which a
//! flow is due, and then one sends.
//!
//! Not here: timer slack (the watchdog may be armed so late, see [`FqSettings::timer_slack`]),
//! offload of pacing to a device.
//!
//! Source: Linux net/sched/sch_fq.c, by behaviour. Deviations: a packet's flow is a number and is taken for
//! a socket's, so `orphan_mask` is off unless asked for and then holds for all; idle flows are forgotten
//! longest first, not as a hash bucket has them; a flow stays in the band of the packet that woke it until
//! it is idle; times are nanoseconds, not jiffies; packets of control priority have no queue of their own;
//! what is marked is counted, not what should have been.

mod bands;
mod flows;
mod settings;
mod statistics;
pub(crate) mod tc;

pub use settings::{FqError, FqSettings, Horizon};
pub use statistics::FqStatistics;

use crate::sorted::SortedSet;
use crate::{Dequeued, Enqueued, Packet, Qdisc, Statistics};
use alloc::collections::VecDeque;
use bands::{Bands, FlowList, FlowTurn};
use core::fmt::Debug;
use flows::{FlowPlace, Flows};
use quietcore_core::Nanos;

/// So many packets may be on the short way while flows wait.
const FAST_PATH_LIMIT: usize = 8;

/// Fair queueing with pacing.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Dequeued, Fq, FqSettings, Qdisc};
///
/// let settings = FqSettings { maxrate: Some(50_000), ..FqSettings::default() }; // 20 us per byte
/// let mut queue = Fq::new(settings).expect("settings that can be");
/// for _ in 0..2 {
///     assert!(queue.enqueue(Nanos(0), vec![0; 1_000]).is_accepted());
/// }
/// assert!(queue.dequeue(Nanos(0)).packet().is_some());
/// assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Throttled(Nanos(20_000_000)));
/// assert!(queue.dequeue(Nanos(20_000_000)).packet().is_some());
/// assert_eq!(queue.dequeue(Nanos(20_000_000)), Dequeued::Empty);
/// ```
#[derive(Debug)]
pub struct Fq<P> {
    settings: FqSettings,
    /// The short way.
    internal: VecDeque<P>,
    flows: Flows<P>,
    /// Flows that hold packets.
    occupied: usize,
    bands: Bands,
    /// Flows that wait, by their moment; equal ones in the order in which they began to.
    throttled: SortedSet<(Nanos, u64, usize)>,
    statistics: Statistics,
    /// What is held is filled in when it is asked for, but for `band_packets`.
    counted: FqStatistics,
}

impl<P: Packet> Fq<P> {
    /// An empty one.
    ///
    /// # Errors
    /// [`FqError`] names the setting that cannot be.
    pub fn new(settings: FqSettings) -> Result<Self, FqError> {
        settings.check()?;
        Ok(Self {
            settings,
            internal: VecDeque::new(),
            flows: Flows::new(),
            occupied: 0,
            bands: Bands::new(settings.weights),
            throttled: SortedSet::new(),
            statistics: Statistics::default(),
            counted: FqStatistics::default(),
        })
    }

    /// What it was asked for.
    #[must_use]
    pub const fn settings(&self) -> &FqSettings {
        &self.settings
    }

    /// Other settings from now on. What waits stays, and keeps its moments; nothing is dropped for a lower
    /// limit (the kernel drops what is above it).
    ///
    /// # Errors
    /// [`FqError`] names the setting that cannot be: then nothing has changed.
    pub fn change(&mut self, settings: FqSettings) -> Result<(), FqError> {
        settings.check()?;
        if settings.priomap != self.settings.priomap {
            self.counted.band_packets = Default::default();
            for packet in self.flows.packets() {
                self.counted.band_packets[settings.band_of(packet.priority())] += 1;
            }
        }
        self.bands.weigh(settings.weights);
        self.settings = settings;
        Ok(())
    }

    /// What it has done, and what it holds, of flows, bands and time.
    #[must_use]
    pub fn fq_statistics(&self) -> FqStatistics {
        let flows = self.flows.count() as u64;
        FqStatistics {
            flows,
            inactive_flows: flows - self.occupied as u64,
            throttled_flows: self.throttled.len() as u64,
            next_throttled: self.next_throttled(),
            collected_flows: self.flows.collected,
            ..self.counted
        }
    }

    fn next_throttled(&self) -> Option<Nanos> {
        self.throttled.first().map(|(due, ..)| *due)
    }

    fn dropped(&mut self) -> Enqueued {
        self.statistics.dropped += 1;
        Enqueued::Dropped
    }

    /// When the packet may leave; `None` if it asks for a moment that is too far off to keep it.
    fn due(&mut self, now: Nanos, packet: &P) -> Option<Nanos> {
        let Some(departure) = packet.departure() else { return Some(now) };
        let (Horizon::Drop(span) | Horizon::Cap(span)) = self.settings.horizon;
        let horizon = Nanos(now.0.saturating_add(span.0));
        if departure <= horizon {
            return Some(departure);
        }
        if matches!(self.settings.horizon, Horizon::Drop(_)) {
            self.counted.horizon_drops += 1;
            return None;
        }
        self.counted.horizon_caps += 1;
        Some(horizon)
    }

    /// Whether a packet may take the short way: no rate paces it, and nothing that is queued could leave now.
    fn is_fast(&self, now: Nanos, due: Nanos, packet: &P) -> bool {
        let paced = self.settings.pacing && packet.pacing_rate().is_some();
        if due > now || paced || self.settings.maxrate.is_some() {
            return false;
        }
        let all_wait =
            self.occupied == self.throttled.len() && self.next_throttled().is_none_or(|next| next > now);
        self.statistics.qlen == 0 || (all_wait && self.internal.len() < FAST_PATH_LIMIT)
    }

    /// Lets go the flows whose time has come.
    fn unthrottle(&mut self, now: Nanos) {
        if let Some(next) = self.next_throttled().filter(|next| *next <= now) {
            let latency = self.counted.unthrottle_latency.0;
            self.counted.unthrottle_latency = Nanos(latency - latency / 8 + now.since(next).0 / 8);
        }
        while let Some((due, _, flow)) = self.throttled.first().copied()
            && due <= now
        {
            self.throttled.pop_first();
            let waiting = self.flows.get_mut(flow);
            waiting.place = FlowPlace::Listed;
            self.bands.add_old(waiting.band, flow);
        }
    }

    fn throttle(&mut self, turn: FlowTurn, until: Nanos) {
        self.bands.remove(turn);
        let flow = self.flows.get_mut(turn.flow);
        flow.place = FlowPlace::Throttled;
        flow.next = Some(until);
        self.throttled.insert((until, self.counted.throttled, turn.flow));
        self.counted.throttled += 1;
    }

    /// The flow whose turn it is has no packets: one that had no turn yet goes behind those that had, lest
    /// a flow that sends now and then is always before them.
    fn retire(&mut self, now: Nanos, turn: FlowTurn) {
        if turn.list == FlowList::New && self.bands.has_old(turn.band) {
            self.bands.rotate(turn);
        } else {
            self.bands.remove(turn);
            self.flows.rest(now, turn.flow);
        }
    }

    /// Sends the first packet of the flow whose turn it is, which could leave from `due` on.
    fn send(&mut self, now: Nanos, turn: FlowTurn, due: Nanos) -> Option<P> {
        let flow = self.flows.get_mut(turn.flow);
        let mut packet = flow.pop()?;
        let bytes = packet.len();
        flow.credit -= i64::from(bytes);
        let too_long = flow.pace(&self.settings, now, &packet);
        self.counted.too_long_packets += u64::from(too_long);
        self.occupied -= usize::from(flow.qlen() == 0);
        self.bands.charge(turn.band, bytes);
        self.counted.band_packets[self.settings.band_of(packet.priority())] -= 1;
        let late = self.settings.ce_threshold.is_some_and(|threshold| now.since(due) > threshold);
        if late && packet.mark_congestion() {
            self.counted.ce_marks += 1;
        }
        Some(packet)
    }

    /// The next packet of a flow that may send.
    fn next_of_flows(&mut self, now: Nanos) -> Option<P> {
        self.unthrottle(now);
        while let Some(turn) = self.bands.next() {
            let flow = self.flows.get_mut(turn.flow);
            if flow.credit <= 0 {
                flow.credit += i64::from(self.settings.quantum);
                self.bands.rotate(turn);
                continue;
            }
            match flow.due() {
                None => self.retire(now, turn),
                Some(due) if due > now => self.throttle(turn, due),
                Some(due) => return self.send(now, turn, due),
            }
        }
        None
    }
}

impl<P: Packet + Debug + Send + 'static> Qdisc<P> for Fq<P> {
    fn kind(&self) -> &'static str {
        "fq"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        let band = self.settings.band_of(packet.priority());
        if self.counted.band_packets[band] >= u64::from(self.settings.limit) {
            self.counted.band_drops[band] += 1;
            return self.dropped();
        }
        let Some(due) = self.due(now, &packet) else { return self.dropped() };
        let size = packet.size();
        if self.is_fast(now, due, &packet) {
            self.counted.fast_path_packets += 1;
            self.statistics.arrived(size);
            self.internal.push_back(packet);
            return Enqueued::Queued;
        }
        let key = packet.flow() & self.settings.orphan_mask.unwrap_or(u64::MAX);
        let flow = self.flows.find(&self.settings, now, key);
        let qlen = self.flows.get_mut(flow).qlen();
        if qlen as u64 >= u64::from(self.settings.flow_limit) {
            self.counted.flow_limit_drops += 1;
            return self.dropped();
        }
        if self.flows.wake(&self.settings, now, flow, band) {
            self.bands.add_new(band, flow);
        }
        self.occupied += usize::from(qlen == 0);
        self.counted.band_packets[band] += 1;
        self.statistics.arrived(size);
        self.flows.get_mut(flow).push(due, packet);
        Enqueued::Queued
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        let fast = self.internal.pop_front();
        let Some(packet) = fast.or_else(|| self.next_of_flows(now)) else {
            return self.next_throttled().map_or(Dequeued::Empty, Dequeued::Throttled);
        };
        self.statistics.sent(packet.size());
        Dequeued::Packet(packet)
    }

    fn reset(&mut self, _: Nanos) {
        self.internal.clear();
        self.flows.clear();
        self.occupied = 0;
        self.bands = Bands::new(self.settings.weights);
        self.throttled.clear();
        self.counted.band_packets = Default::default();
        self.statistics.emptied();
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn is_empty(&self) -> bool {
        self.statistics.qlen == 0
    }
}
