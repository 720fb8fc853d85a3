//! The model of `fq`: written from the description of the kernel's, all packets in one `Vec` and all flows
//! in another, both searched from end to end.
//!
//! What is first is what has the smallest ticket; tickets are drawn from one counter.

use crate::Datagram;
use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, Enqueued, FqSettings, FqStatistics, Horizon, Packet, Statistics};

/// Where a flow is; those in a list with their ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Idle { since: u64 },
    New(u64),
    Old(u64),
    Throttled(u64),
}

#[derive(Debug)]
struct Flow {
    name: u64,
    band: usize,
    credit: i64,
    /// 0: it was never paced.
    time_next_packet: u64,
    place: Place,
}

#[derive(Debug)]
struct Queued {
    packet: Datagram,
    /// `None`: the short way.
    flow: Option<u64>,
    band: usize,
    time_to_send: u64,
    ticket: u64,
}

#[derive(Debug)]
pub(crate) struct Model {
    settings: FqSettings,
    packets: Vec<Queued>,
    flows: Vec<Flow>,
    credits: [i64; 3],
    band: usize,
    tickets: u64,
    counted: FqStatistics,
    statistics: Statistics,
}

impl Model {
    pub(crate) fn new(settings: FqSettings) -> Self {
        Self {
            settings,
            packets: vec![],
            flows: vec![],
            credits: settings.weights.map(i64::from),
            band: 0,
            tickets: 0,
            counted: FqStatistics::default(),
            statistics: Statistics::default(),
        }
    }

    pub(crate) fn reset(&mut self) {
        let before = Self::new(self.settings);
        let (counted, statistics, tickets) = (self.counted, self.statistics, self.tickets);
        *self = Self { counted, statistics, tickets, ..before };
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    fn flow(&mut self, name: u64) -> &mut Flow {
        self.flows.iter_mut().find(|flow| flow.name == name).expect("a name that was just found")
    }

    fn qlen(&self, name: u64) -> usize {
        self.packets.iter().filter(|queued| queued.flow == Some(name)).count()
    }

    fn throttled(&self) -> Vec<&Flow> {
        self.flows.iter().filter(|flow| matches!(flow.place, Place::Throttled(_))).collect()
    }

    fn earliest(&self) -> Option<u64> {
        self.throttled().iter().map(|flow| flow.time_next_packet).min()
    }

    fn dropped(&mut self) -> Enqueued {
        self.statistics.dropped += 1;
        Enqueued::Dropped
    }

    pub(crate) fn enqueue(&mut self, now: u64, packet: Datagram) -> Enqueued {
        let band = usize::from(self.settings.priomap[(packet.priority() & 15) as usize]);
        let of_band = self.packets.iter().filter(|queued| queued.flow.is_some() && queued.band == band);
        if of_band.count() >= self.settings.limit as usize {
            self.counted.band_drops[band] += 1;
            return self.dropped();
        }
        let mut time_to_send = packet.departure().map_or(now, |departure| departure.0);
        match self.settings.horizon {
            Horizon::Drop(span) if time_to_send > now + span.0 => {
                self.counted.horizon_drops += 1;
                return self.dropped();
            }
            Horizon::Cap(span) if time_to_send > now + span.0 => {
                self.counted.horizon_caps += 1;
                time_to_send = now + span.0;
            }
            Horizon::Drop(_) | Horizon::Cap(_) => {}
        }
        let flow = if self.is_fast(now, time_to_send, &packet) {
            self.counted.fast_path_packets += 1;
            None
        } else {
            let name = packet.flow() & self.settings.orphan_mask.unwrap_or(u64::MAX);
            self.classify(now, name);
            if self.qlen(name) >= self.settings.flow_limit as usize {
                self.counted.flow_limit_drops += 1;
                return self.dropped();
            }
            self.wake(now, name, band);
            Some(name)
        };
        let ticket = self.ticket();
        self.packets.push(Queued { packet, flow, band, time_to_send, ticket });
        Enqueued::Queued
    }

    fn is_fast(&self, now: u64, time_to_send: u64, packet: &Datagram) -> bool {
        if time_to_send > now
            || self.settings.maxrate.is_some()
            || (self.settings.pacing && packet.pacing_rate().is_some())
        {
            return false;
        }
        let waits = |name: u64| {
            let flow = self.flows.iter().find(|flow| flow.name == name).expect("the flow of a packet");
            matches!(flow.place, Place::Throttled(_)) && flow.time_next_packet > now
        };
        let in_internal = self.packets.iter().filter(|queued| queued.flow.is_none()).count();
        let nobody = self.packets.iter().all(|queued| queued.flow.is_none_or(waits));
        self.packets.is_empty() || (nobody && in_internal < 8)
    }

    /// Makes room, and the flow if there is none.
    fn classify(&mut self, now: u64, name: u64) {
        let mut idle: Vec<(u64, u64)> = vec![];
        for flow in &self.flows {
            if let Place::Idle { since } = flow.place {
                idle.push((since, flow.name));
            }
        }
        let crowded = self.flows.len() as u64 >= 2 * u64::from(self.settings.buckets);
        if crowded && idle.len() > self.flows.len() / 2 {
            idle.sort_unstable();
            idle.retain(|(since, other)| now - since > 3_000_000_000 && *other != name);
            for (_, old) in idle.into_iter().take(8) {
                self.flows.retain(|flow| flow.name != old);
                self.counted.collected_flows += 1;
            }
        }
        if !self.flows.iter().any(|flow| flow.name == name) {
            let credit = i64::from(self.settings.initial_quantum);
            let place = Place::Idle { since: now };
            self.flows.push(Flow { name, band: 0, credit, time_next_packet: 0, place });
        }
    }

    fn wake(&mut self, now: u64, name: u64, band: usize) {
        let (ticket, settings) = (self.ticket(), self.settings);
        let flow = self.flow(name);
        if let Place::Idle { since } = flow.place {
            if now - since > settings.refill_delay.0 && flow.credit < i64::from(settings.quantum) {
                flow.credit = i64::from(settings.quantum);
            }
            (flow.band, flow.place) = (band, Place::New(ticket));
        }
    }

    pub(crate) fn dequeue(&mut self, now: u64) -> Dequeued<Datagram> {
        let internal = (0..self.packets.len()).filter(|at| self.packets[*at].flow.is_none());
        if let Some(at) = internal.min_by_key(|at| self.packets[*at].ticket) {
            return Dequeued::Packet(self.leave(at));
        }
        self.unthrottle(now);
        while let Some(name) = self.next_flow() {
            let (quantum, ticket) = (i64::from(self.settings.quantum), self.ticket());
            let head = self.head(name);
            let flow = self.flow(name);
            if flow.credit <= 0 {
                flow.credit += quantum;
                flow.place = Place::Old(ticket);
                continue;
            }
            let Some((at, time_to_send)) = head else {
                self.retire(now, name, ticket);
                continue;
            };
            let due = time_to_send.max(flow.time_next_packet);
            if due <= now {
                return Dequeued::Packet(self.send(now, name, at, due));
            }
            (flow.place, flow.time_next_packet) = (Place::Throttled(ticket), due);
            self.counted.throttled += 1;
        }
        self.earliest().map_or(Dequeued::Empty, |due| Dequeued::Throttled(Nanos(due)))
    }

    /// The first packet of a flow: where it is, and when it may leave.
    fn head(&self, name: u64) -> Option<(usize, u64)> {
        let own = (0..self.packets.len()).filter(|at| self.packets[*at].flow == Some(name));
        let first = own.min_by_key(|at| (self.packets[*at].time_to_send, self.packets[*at].ticket))?;
        Some((first, self.packets[first].time_to_send))
    }

    fn unthrottle(&mut self, now: u64) {
        let Some(earliest) = self.earliest().filter(|earliest| *earliest <= now) else { return };
        let average = self.counted.unthrottle_latency.0;
        self.counted.unthrottle_latency = Nanos(average - average / 8 + (now - earliest) / 8);
        let mut due: Vec<(u64, u64, u64)> = vec![];
        for flow in &self.flows {
            if let Place::Throttled(ticket) = flow.place
                && flow.time_next_packet <= now
            {
                due.push((flow.time_next_packet, ticket, flow.name));
            }
        }
        due.sort_unstable();
        for (_, _, name) in due {
            let ticket = self.ticket();
            self.flow(name).place = Place::Old(ticket);
        }
    }

    /// The flow whose turn it is: the present band's while it has credit, else around the bands until one
    /// that has credit has a flow; or none's after three in a row that only had credit.
    fn next_flow(&mut self) -> Option<u64> {
        let mut visited = vec![];
        loop {
            let first = self.first_of(self.band);
            if self.credits[self.band] > 0 && first.is_some() {
                return first;
            }
            if visited.len() >= 3 && visited[visited.len() - 3..] == [true; 3] {
                return None;
            }
            self.band = if self.band == 2 { 0 } else { self.band + 1 };
            let weight = i64::from(self.settings.weights[self.band]);
            self.credits[self.band] = weight.min(self.credits[self.band] + weight);
            visited.push(self.credits[self.band] > 0);
        }
    }

    fn first_of(&self, band: usize) -> Option<u64> {
        let mut best: Option<(u8, u64, u64)> = None;
        for flow in self.flows.iter().filter(|flow| flow.band == band) {
            let rank = match flow.place {
                Place::New(ticket) => (0, ticket, flow.name),
                Place::Old(ticket) => (1, ticket, flow.name),
                Place::Idle { .. } | Place::Throttled(_) => continue,
            };
            best = Some(best.map_or(rank, |best| best.min(rank)));
        }
        best.map(|(_, _, name)| name)
    }

    /// An empty flow had its turn.
    fn retire(&mut self, now: u64, name: u64, ticket: u64) {
        let band = self.flow(name).band;
        let old = |flow: &Flow| flow.band == band && matches!(flow.place, Place::Old(_));
        let others = self.flows.iter().any(old);
        let flow = self.flow(name);
        flow.place = match flow.place {
            Place::New(_) if others => Place::Old(ticket),
            _ => Place::Idle { since: now },
        };
    }

    fn send(&mut self, now: u64, name: u64, at: usize, due: u64) -> Datagram {
        let settings = self.settings;
        let mut packet = self.leave(at);
        let bytes = i64::from(packet.len());
        let flow = self.flow(name);
        flow.credit -= bytes;
        let band = flow.band;
        if settings.pacing {
            let too_long = flow.pace(&settings, now, &packet);
            self.counted.too_long_packets += u64::from(too_long);
        }
        self.credits[band] -= bytes;
        let late = settings.ce_threshold.is_some_and(|threshold| now - due > threshold.0);
        if late && packet.mark_congestion() {
            self.counted.ce_marks += 1;
        }
        packet
    }

    fn leave(&mut self, at: usize) -> Datagram {
        let packet = self.packets.remove(at).packet;
        self.statistics.sent_bytes += u64::from(packet.len());
        self.statistics.sent_packets += 1;
        packet
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let mut expected = self.statistics;
        expected.qlen = self.packets.len() as u64;
        expected.backlog = self.packets.iter().map(|queued| u64::from(queued.packet.len())).sum();
        expected
    }

    pub(crate) fn fq_statistics(&self) -> FqStatistics {
        let mut expected = self.counted;
        expected.flows = self.flows.len() as u64;
        expected.inactive_flows = self.flows.iter().filter(|flow| self.qlen(flow.name) == 0).count() as u64;
        expected.throttled_flows = self.throttled().len() as u64;
        expected.next_throttled = self.earliest().map(Nanos);
        for queued in self.packets.iter().filter(|queued| queued.flow.is_some()) {
            expected.band_packets[queued.band] += 1;
        }
        expected
    }
}

impl Flow {
    /// The pause behind a packet; whether it was cut to a second.
    fn pace(&mut self, settings: &FqSettings, now: u64, packet: &Datagram) -> bool {
        let none = u128::from(u64::MAX) + 1;
        let mut rate = settings.maxrate.map_or(none, u128::from);
        let mut bytes = u128::from(packet.len());
        if packet.departure().is_none() {
            rate = rate.min(packet.pacing_rate().map_or(none, u128::from));
            if rate <= u128::from(settings.low_rate_threshold) {
                self.credit = 0;
            } else if self.credit > 0 {
                return false;
            } else {
                bytes = bytes.max(u128::from(settings.quantum));
            }
        }
        if rate == none {
            return false;
        }
        let exact = (bytes * 1_000_000_000).checked_div(rate).unwrap_or(u128::MAX);
        let mut pause = u64::try_from(exact.min(1_000_000_000)).expect("a second at most");
        if self.time_next_packet != 0 {
            pause -= (pause / 2).min(now - self.time_next_packet);
        }
        self.time_next_packet = now + pause;
        exact > 1_000_000_000
    }
}
