//! What is known of each flow, and which idle ones are forgotten.
//!
//! Invariants: an idle flow holds no packet and is in `idle`; the packets of a flow are in order of the
//! moment at which they may leave, equal ones in order of arrival.
//! Not here: turns (`bands`), waiting flows (`mod`).

use super::FqSettings;
use crate::Packet;
use crate::sorted::SortedSet;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use quietcore_core::Nanos;

/// A flow that was idle for longer may be forgotten.
const IDLE_TO_FORGET: Nanos = Nanos(3_000_000_000);
/// How many may be forgotten when a packet looks for its flow.
const FORGOTTEN_AT_ONCE: usize = 8;
/// A flow waits for no longer behind one packet.
const SECOND: u64 = 1_000_000_000;

/// Where a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowPlace {
    /// In no list, without packets, since then.
    Idle(Nanos),
    /// In a list of its band; without packets until it is its turn.
    Listed,
    /// Waiting for its time.
    Throttled,
}

/// One flow.
#[derive(Debug)]
pub(super) struct Flow<P> {
    key: u64,
    /// Of the packet that woke it.
    pub(super) band: usize,
    /// Bytes that it may send before others have their turn.
    pub(super) credit: i64,
    /// Before that moment none of its packets leaves; none was ever paced or waited while `None`.
    pub(super) next: Option<Nanos>,
    pub(super) place: FlowPlace,
    packets: VecDeque<(Nanos, P)>,
}

impl<P: Packet> Flow<P> {
    pub(super) fn qlen(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn push(&mut self, due: Nanos, packet: P) {
        if self.packets.back().is_none_or(|(last, _)| *last <= due) {
            self.packets.push_back((due, packet));
            return;
        }
        let behind = self.packets.partition_point(|(other, _)| *other <= due);
        self.packets.insert(behind, (due, packet));
    }

    pub(super) fn pop(&mut self) -> Option<P> {
        self.packets.pop_front().map(|(_, packet)| packet)
    }

    /// When its first packet may leave.
    pub(super) fn due(&self) -> Option<Nanos> {
        let (due, _) = self.packets.front()?;
        Some(self.next.map_or(*due, |next| next.max(*due)))
    }

    /// Says when the next packet may leave now that `packet` did; whether that would have been too far off.
    pub(super) fn pace(&mut self, settings: &FqSettings, now: Nanos, packet: &P) -> bool {
        if !settings.pacing {
            return false;
        }
        // A sender that says when a packet is to leave has paced it; only `maxrate` holds, which no flow may
        // exceed.
        let stamped = packet.departure().is_some();
        let wanted = if stamped { None } else { packet.pacing_rate() };
        let rates = [wanted, settings.maxrate];
        let Some(rate) = rates.into_iter().flatten().min() else { return false };
        let mut bytes = packet.len();
        if !stamped {
            if rate <= settings.low_rate_threshold {
                self.credit = 0;
            } else if self.credit > 0 {
                return false;
            } else {
                bytes = bytes.max(settings.quantum);
            }
        }
        let delay = (u64::from(bytes) * SECOND).checked_div(rate).unwrap_or(u64::MAX);
        let too_long = delay > SECOND;
        let delay = delay.min(SECOND);
        // A flow that was let go late catches up, with half of each delay at most.
        let late = self.next.map_or(Nanos(0), |due| now.since(due));
        self.next = Some(Nanos(now.0.saturating_add(delay - late.0.min(delay / 2))));
        too_long
    }
}

/// So many flows are found at once, if their numbers differ in these bits.
const RECENT: usize = 256;

/// All flows that are known.
#[derive(Debug)]
pub(super) struct Flows<P> {
    /// A place in `flows` for the last bits of a flow's number: the last such flow that was looked for, or
    /// nowhere. Numbers that agree there, by chance or for spite, are found in `by_key`.
    recent: [usize; RECENT],
    /// Those of `free` are in no use.
    flows: Vec<Flow<P>>,
    free: Vec<usize>,
    /// Numbers of flows that are known, with their places in `flows`.
    by_key: SortedSet<(u64, usize)>,
    /// By the time since when.
    idle: SortedSet<(Nanos, u64)>,
    pub(super) collected: u64,
}

impl<P: Packet> Flows<P> {
    pub(super) const fn new() -> Self {
        Self {
            recent: [usize::MAX; RECENT],
            flows: Vec::new(),
            free: Vec::new(),
            by_key: SortedSet::new(),
            idle: SortedSet::new(),
            collected: 0,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn get_mut(&mut self, flow: usize) -> &mut Flow<P> {
        &mut self.flows[flow]
    }

    /// The flow of that number that was looked for a while ago.
    fn recent(&self, key: u64) -> Option<usize> {
        let flow = self.recent[key as usize % RECENT];
        self.flows.get(flow).filter(|found| found.key == key).map(|_| flow)
    }

    fn known(&self, key: u64) -> Option<usize> {
        let (found, flow) = *self.by_key.at_or_above(&(key, 0))?;
        (found == key).then_some(flow)
    }

    /// The flow of that number, which begins idle.
    pub(super) fn find(&mut self, settings: &FqSettings, now: Nanos, key: u64) -> usize {
        self.collect(settings, now, key);
        if let Some(flow) = self.recent(key) {
            return flow;
        }
        if let Some(flow) = self.known(key) {
            self.recent[key as usize % RECENT] = flow;
            return flow;
        }
        let credit = i64::from(settings.initial_quantum);
        let place = FlowPlace::Idle(now);
        let fresh = Flow { key, band: 0, credit, next: None, place, packets: VecDeque::new() };
        let flow = match self.free.pop() {
            Some(flow) => {
                self.flows[flow] = fresh;
                flow
            }
            None => {
                self.flows.push(fresh);
                self.flows.len() - 1
            }
        };
        self.by_key.insert((key, flow));
        self.recent[key as usize % RECENT] = flow;
        self.idle.insert((now, key));
        flow
    }

    /// Forgets some of those that were idle the longest, if there are many; never the one of `key`.
    fn collect(&mut self, settings: &FqSettings, now: Nanos, key: u64) {
        let many = 2 * u64::from(settings.buckets);
        if (self.count() as u64) < many || self.idle.len() <= self.count() / 2 {
            return;
        }
        for _ in 0..FORGOTTEN_AT_ONCE {
            let oldest = self.idle.iter().find(|(_, other)| *other != key).copied();
            let Some((since, other)) = oldest.filter(|(since, _)| now.since(*since) > IDLE_TO_FORGET) else {
                return;
            };
            self.idle.remove(&(since, other));
            if let Some(flow) = self.known(other) {
                self.by_key.remove(&(other, flow));
                self.recent[other as usize % RECENT] = usize::MAX;
                self.free.push(flow);
            }
            self.collected += 1;
        }
    }

    /// A packet of `band` comes to the flow: says whether that woke it.
    pub(super) fn wake(&mut self, settings: &FqSettings, now: Nanos, flow: usize, band: usize) -> bool {
        let flow = &mut self.flows[flow];
        let FlowPlace::Idle(since) = flow.place else { return false };
        self.idle.remove(&(since, flow.key));
        if now.since(since) > settings.refill_delay {
            flow.credit = flow.credit.max(i64::from(settings.quantum));
        }
        flow.band = band;
        flow.place = FlowPlace::Listed;
        true
    }

    /// The flow had its turn, and nothing to send.
    pub(super) fn rest(&mut self, now: Nanos, flow: usize) {
        let flow = &mut self.flows[flow];
        flow.place = FlowPlace::Idle(now);
        self.idle.insert((now, flow.key));
    }

    /// What is queued, in no order.
    pub(super) fn packets(&self) -> impl Iterator<Item = &P> {
        // Those of `free` hold nothing: only idle flows are forgotten.
        self.flows.iter().flat_map(|flow| flow.packets.iter().map(|(_, packet)| packet))
    }

    /// Forgets all of them, not counted as collected.
    pub(super) fn clear(&mut self) {
        *self = Self { collected: self.collected, ..Self::new() };
    }
}
