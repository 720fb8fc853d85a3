//! `cake`: a shaper, fair queues, delay control and priorities in one.
//!
//! Packets go into tins by their DSCP, and in a tin into queues by their flow, whose turns are shared among
//! hosts first ([`CakeIsolation`]). COBALT keeps the delay of each queue low. The shaper needs no burst: it
//! counts when the link would be done with what was sent, and lets the next packet go then; a second count,
//! of sent packets alone and half as fast again, bounds how long dropped ones can hold it up. When packets
//! take too much memory, the longest queue of all drops from its head.
//!
//! A packet's mark (`fwmark`), or its priority `major:N`, names a tin; a filter names a queue (the second
//! number of its class) and a host (the first).
//!
//! Invariants (tests/cake): within a queue packets leave in order of arrival, but for acknowledgements that
//! are dropped; `backlog`, `qlen` and memory are sums over queues; without `ingress`, over any span no more
//! leaves than the rate and one packet.
//!
//! Source: tc-cake(8); Høiland-Jørgensen, Täht, Morton: "Piece of CAKE" (2018); Linux 6.12
//! net/sched/sch_cake.c, by behaviour. Deviations: flows are spread by one fixed function, where the kernel
//! draws one when it boots, and labels of IPv6 flows are no part of it; a packet takes the memory that the
//! kernel allocates for a datagram that a socket of its own sends; connections are not tracked, so `nat`
//! sees addresses as they are, as in a kernel that tracks none; with `split-gso`, pieces of a stream are
//! cut before they are queued, so the longest packet is one of the link.

mod ack;
mod cobalt;
mod estimate;
mod framing;
mod inner;
mod longest;
mod rotation;
mod serve;
mod settings;
mod spread;
mod statistics;
pub(crate) mod tc;
mod tin;
mod tins;
pub(crate) mod typed;

pub use settings::{CakeAckFilter, CakeCells, CakeError, CakeFraming, CakeIsolation, CakeSettings, CakeTins};
pub use statistics::{CakeFlow, CakeStatistics, CakeTinStatistics};

use crate::pooled::{Pool, PooledQueue};
use crate::{ClassId, Dequeued, Enqueued, Packet, Qdisc, Statistics};
use ack::{AckSearch, Acknowledgement};
use alloc::vec::Vec;
use core::fmt::{self, Debug};
use estimate::CapacityEstimate;
use framing::FramedSizes;
use longest::LongestQueues;
use quietcore_core::Nanos;
use spread::{PacketTags, QUEUES};
use tin::CakeTin;
use tins::{CakePace, TinLaw};

/// Most packets of the device's longest that memory is for, unless a limit is told.
const PACKETS_MAX: u64 = 10_240;
/// Memory that there is at least, unless a limit is told.
const MEMORY_MIN: u64 = 4 << 20;
/// What the kernel has besides the buffer of a packet.
const BUFFER_HEAD: u32 = 256;
/// Of the buffer itself: room for headers of the link, and what is known of its fragments.
const BUFFER_ROOM: u32 = 31 + 320;
/// The smallest buffer.
const BUFFER_MIN: u32 = 704;

/// Bytes that the kernel allocates for a datagram of its own: buffers are powers of two, but the smallest
/// one.
fn memory_of(packet: &impl Packet) -> u64 {
    let bytes = packet.len().saturating_sub(packet.link_header()).saturating_add(BUFFER_ROOM);
    let buffer = if bytes <= BUFFER_MIN { BUFFER_MIN } else { bytes.max(1_024).next_power_of_two() };
    u64::from(buffer) + u64::from(BUFFER_HEAD)
}

/// A packet that is queued.
#[derive(Debug)]
struct CakeHeld<P> {
    packet: P,
    arrived: u64,
    /// Bytes that it counts for the shaper.
    adjusted: u32,
    memory: u64,
}

/// A queue of all tins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QueueId {
    tin: usize,
    at: usize,
}

impl QueueId {
    const fn number(self) -> u32 {
        (self.tin * QUEUES + self.at) as u32
    }

    const fn of(number: u32) -> Self {
        Self { tin: number as usize / QUEUES, at: number as usize % QUEUES }
    }
}

/// What a filter or a priority has named.
#[derive(Clone, Copy, Debug, Default)]
struct NamedPlace {
    queue: Option<u32>,
    host: Option<u32>,
}

/// A shaper with fair queues, controlled delay and priorities.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Cake, CakeSettings, Dequeued, Qdisc};
///
/// let settings = CakeSettings { bandwidth: Some(125_000), ..CakeSettings::default() };
/// let mut queue = Cake::new(settings, || 4).expect("settings that can be");
/// for _ in 0..2 {
///     assert!(queue.enqueue(Nanos(0), vec![0; 1_250]).is_accepted());
/// }
/// assert!(matches!(queue.dequeue(Nanos(0)), Dequeued::Packet(_)));
/// let wait = queue.dequeue(Nanos(0));
/// assert!(matches!(wait, Dequeued::Throttled(until) if until.0.abs_diff(10_000_000) < 10), "1250 bytes");
/// ```
pub struct Cake<P, R> {
    settings: CakeSettings,
    /// Of the whole rate.
    pace: CakePace,
    pool: Pool<CakeHeld<P>>,
    /// As many as ever were used: the first ones are.
    tins: Vec<CakeTin>,
    /// The one whose turn it is.
    tin: usize,
    /// When the link is done with all that was sent or, with `ingress`, dropped.
    next_packet: u64,
    /// When it surely is, by what was sent alone.
    failsafe: u64,
    statistics: Statistics,
    memory: u64,
    memory_most: u64,
    memory_limit: u32,
    longest: LongestQueues,
    sizes: FramedSizes,
    estimate: CapacityEstimate,
    /// When it was last asked for a packet.
    now: Nanos,
    random: R,
}

/// Without its source of random numbers.
impl<P: Debug, R> fmt::Debug for Cake<P, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, statistics, memory, .. } = self;
        let mut shown = out.debug_struct("Cake");
        shown.field("settings", settings).field("statistics", statistics).field("memory", memory);
        shown.finish_non_exhaustive()
    }
}

impl<P: Packet, R: FnMut() -> u32> Cake<P, R> {
    /// An empty one; `random` gives random numbers of 32 bits.
    ///
    /// # Errors
    /// [`CakeError`] names the setting that cannot be.
    pub fn new(settings: CakeSettings, random: R) -> Result<Self, CakeError> {
        settings.check()?;
        let mut made = Self {
            settings,
            pace: CakePace::default(),
            pool: Pool::new(),
            tins: Vec::new(),
            tin: 0,
            next_packet: 0,
            failsafe: 0,
            statistics: Statistics::default(),
            memory: 0,
            memory_most: 0,
            memory_limit: 0,
            longest: LongestQueues::default(),
            sizes: FramedSizes::NONE,
            estimate: CapacityEstimate::new(settings.bandwidth.unwrap_or(0)),
            now: Nanos(0),
            random,
        };
        made.configure();
        Ok(made)
    }

    /// What it was told; with `autorate_ingress`, the bandwidth is what it has found.
    #[must_use]
    pub const fn settings(&self) -> &CakeSettings {
        &self.settings
    }

    /// Other settings from now on. What is queued in tins that are no longer there is dropped and counted;
    /// the kernel does not count it.
    ///
    /// # Errors
    /// [`CakeError`] names the setting that cannot be: then nothing has changed.
    pub fn change(&mut self, settings: CakeSettings) -> Result<(), CakeError> {
        settings.check()?;
        self.settings = settings;
        self.configure();
        Ok(())
    }

    /// Sizes of packets are counted anew.
    pub(crate) const fn restart_sizes(&mut self) {
        self.sizes.restart();
    }

    /// Makes tins of the settings.
    fn configure(&mut self) {
        let (told, laws) = (&self.settings, TinLaw::all(&self.settings));
        let count = told.tins.count();
        for (number, law) in laws.into_iter().enumerate().take(count) {
            match self.tins.get_mut(number) {
                Some(tin) => tin.law = law,
                None => self.tins.push(CakeTin::new(law)),
            }
        }
        self.pace = laws[0].pace;
        let device = PACKETS_MAX * u64::from(told.mtu);
        let limit = match (told.memory_limit, told.bandwidth.filter(|rate| *rate > 0)) {
            (Some(limit), _) => limit.into(),
            (None, Some(rate)) => {
                let passes = u128::from(rate) * u128::from(told.interval.0 / 1_000) / 250_000;
                // The kernel keeps 32 bits of it.
                u64::from(passes as u32).max(MEMORY_MIN).min(device)
            }
            (None, None) => device,
        };
        self.memory_limit = u32::try_from(limit).unwrap_or(u32::MAX);
        self.longest.forget();
        for tin in count..self.tins.len() {
            for at in 0..QUEUES {
                while self.take_first(QueueId { tin, at }).is_some() {
                    self.statistics.dropped += 1;
                }
            }
        }
        self.tin = self.tin.min(count - 1);
    }

    /// Those that are used.
    fn active_tins(&self) -> usize {
        self.settings.tins.count()
    }

    /// What it has counted besides what all disciplines count.
    #[must_use]
    pub fn cake_statistics(&self) -> CakeStatistics {
        let tins = self.settings.tins;
        let header = (self.sizes.header + 0x8000) >> 16;
        CakeStatistics {
            memory_used: self.memory_most,
            memory_limit: self.memory_limit,
            capacity_estimate: self.estimate.bytes_per_second(),
            network_size: self.sizes.network,
            adjusted_size: self.sizes.adjusted,
            header: header as u32,
            tins: (0..tins.count()).map(|number| self.tins[tins.in_order(number)].statistics()).collect(),
        }
    }

    /// The queue that is called `class`, if it is in a list: `major:1` is the first one of the first tin.
    fn queue_of(&self, class: ClassId) -> Option<QueueId> {
        let id = QueueId::of(u32::from(class.minor()).checked_sub(1)?);
        let tin = self.settings.tins.in_order(id.tin);
        let is_there = id.tin < self.active_tins() && self.tins[tin].rotation.is_listed(id.at);
        is_there.then_some(QueueId { tin, ..id })
    }

    /// Queues that are in a list, by their classes.
    fn listed(&self) -> impl Iterator<Item = ClassId> {
        let (tins, major) = (self.settings.tins, self.settings.major);
        let all = (0..tins.count()).flat_map(move |number| (0..QUEUES).map(move |at| (number, at)));
        let listed =
            all.filter(move |(number, at)| self.tins[tins.in_order(*number)].rotation.is_listed(*at));
        listed.map(move |(number, at)| ClassId::new(major, (number * QUEUES + at + 1) as u16))
    }

    /// A flow that is in a list, by its class, as it was at `now`.
    #[must_use]
    pub fn flow(&self, now: Nanos, class: ClassId) -> Option<CakeFlow> {
        let id = self.queue_of(class)?;
        let queue = &self.tins[id.tin].queues[id.at];
        let mut statistics = Statistics::default();
        (statistics.backlog, statistics.qlen) = (queue.backlog, queue.packets.len().into());
        statistics.dropped = queue.dropped;
        let (now, cobalt) = (now.0 as i64, &queue.cobalt);
        Some(CakeFlow {
            statistics,
            deficit: queue.deficit,
            count: cobalt.count,
            drop_probability: cobalt.probability,
            blue_timer: Nanos(u64::try_from(now.saturating_sub(cobalt.blue_changed)).unwrap_or(0)),
            drop_next: cobalt.is_dropping.then(|| now.saturating_sub(cobalt.drop_next)),
        })
    }

    /// The tin of a packet.
    fn tin_of(&self, packet: &P, code_point: u8) -> usize {
        let CakeSettings { tins, fwmark, major, .. } = self.settings;
        let named = |number: u32| {
            let number = (number as usize).checked_sub(1).filter(|number| *number < tins.count());
            number.map(|number| tins.in_order(number))
        };
        let mark = (packet.mark() & fwmark) >> fwmark.trailing_zeros().min(31);
        let priority = ClassId(packet.priority());
        let by_priority = Some(priority).filter(|priority| priority.major() == major);
        named(mark)
            .or_else(|| named(u32::from(by_priority?.minor())))
            .unwrap_or_else(|| tins.of_code_point(code_point))
    }

    /// What a packet is looked for by, where `named` does not say it.
    fn tags_of(&self, packet: &P, named: NamedPlace) -> PacketTags {
        let isolation = self.settings.isolation;
        if isolation == CakeIsolation::FlowBlind {
            return PacketTags::default();
        }
        let mut tags = PacketTags::of(packet);
        if let Some(host) = named.host {
            (tags.source, tags.destination) = (host, host);
        }
        tags.flow = match (named.queue, isolation) {
            (Some(queue), _) => queue,
            (None, _) if isolation.has_flows() => return tags,
            (None, _) => 0,
        };
        tags.flow ^= match isolation {
            CakeIsolation::SourceHost => tags.source,
            CakeIsolation::DestinationHost => tags.destination,
            CakeIsolation::Hosts => tags.source ^ tags.destination,
            _ => 0,
        };
        tags
    }

    /// A shaper that has had nothing to do has no claims.
    fn refresh(&mut self, now: u64, tin: usize) {
        if self.tins[tin].counts.backlog > 0 {
            return;
        }
        let next = &mut self.tins[tin].next_packet;
        *next = now.max(*next);
        if self.statistics.qlen > 0 {
            return;
        }
        if self.next_packet < now {
            (self.next_packet, self.failsafe) = (now, now);
        } else if self.next_packet > now && self.failsafe > now {
            self.statistics.overlimits += 1;
        }
    }

    /// Puts a packet into its queue; makes room if there is none for it.
    fn put(&mut self, now: Nanos, named: NamedPlace, mut packet: P) -> Enqueued {
        let code_point = packet.traffic_class().map_or(0, |class| class >> 2);
        let tin = self.tin_of(&packet, code_point);
        if self.settings.wash {
            packet.clear_code_point();
        }
        let tags = self.tags_of(&packet, named);
        let isolation = self.settings.isolation;
        let at = self.tins[tin].place(tags, isolation);
        let id = QueueId { tin, at };
        self.refresh(now.0, tin);
        let size = packet.size();
        let counts = &mut self.tins[tin].counts;
        counts.longest_packet = counts.longest_packet.max(size.bytes);
        counts.packets += 1;
        counts.bytes += u64::from(size.bytes);
        self.hold(now.0, id, packet);
        if self.settings.ack_filter != CakeAckFilter::Off {
            self.filter_acknowledgements(now.0, id);
        }
        let tins = &self.tins;
        self.longest.grown(id.number(), |queue| bytes_of(tins, queue));
        self.note_arrival(now.0, size.bytes);
        if self.tins[tin].wake(at, isolation) {
            let random = (self.random)();
            self.tins[tin].queues[at].deficit = self.tins[tin].turn(at, isolation, random);
        }
        self.memory_most = self.memory_most.max(self.memory);
        while self.memory > u64::from(self.memory_limit) && self.drop_of_longest(now.0) {}
        // The packet was behind all others of its queue.
        if self.tins[tin].queues[at].packets.len() == 0 { Enqueued::Dropped } else { Enqueued::Queued }
    }

    /// Puts a packet behind the others of a queue.
    fn hold(&mut self, now: u64, QueueId { tin, at }: QueueId, packet: P) {
        let adjusted = self.sizes.add(&self.settings.framing, &packet);
        let memory = memory_of(&packet);
        self.statistics.arrived(packet.size());
        self.memory += memory;
        let tin = &mut self.tins[tin];
        tin.counts.backlog += u64::from(packet.len());
        tin.queues[at].backlog += u64::from(packet.len());
        let held = CakeHeld { packet, arrived: now, adjusted, memory };
        self.pool.push(&mut tin.queues[at].packets, held);
    }

    /// A packet has left a queue, for wherever.
    fn released(&mut self, QueueId { tin, at }: QueueId, held: &CakeHeld<P>) {
        let bytes = u64::from(held.packet.len());
        self.statistics.left(held.packet.size());
        self.memory -= held.memory;
        self.tins[tin].counts.backlog -= bytes;
        self.tins[tin].queues[at].backlog -= bytes;
    }

    /// Takes the first packet of a queue.
    fn take_first(&mut self, id: QueueId) -> Option<CakeHeld<P>> {
        let held = self.pool.pop_first(&mut self.tins[id.tin].queues[id.at].packets)?;
        self.released(id, &held);
        let tins = &self.tins;
        self.longest.shrunk(id.number(), |queue| bytes_of(tins, queue));
        Some(held)
    }

    /// Where the acknowledgement is that the last packet of a queue says again, if there is one.
    fn redundant(&self, packets: &PooledQueue) -> Option<u32> {
        let earlier = packets.len().checked_sub(1)?;
        let (next, last) = self.pool.last(packets)?;
        let later = Acknowledgement::of(last.packet.network_bytes()).filter(Acknowledgement::triggers)?;
        let mut search = AckSearch::new(&later);
        let mut earlier = self.pool.iter(packets).take(earlier as usize);
        let found = earlier.find_map(|(place, held)| search.look(place, held.packet.network_bytes()));
        let is_aggressive = self.settings.ack_filter == CakeAckFilter::Aggressive;
        found.or_else(|| search.only(next).filter(|_| is_aggressive))
    }

    /// Drops an acknowledgement that the last packet of a queue says again.
    fn filter_acknowledgements(&mut self, now: u64, id: QueueId) {
        let Some(place) = self.redundant(&self.tins[id.tin].queues[id.at].packets) else { return };
        let packets = &mut self.tins[id.tin].queues[id.at].packets;
        let Some(held) = self.pool.remove(packets, place) else { return };
        self.released(id, &held);
        self.tins[id.tin].counts.ack_drops += 1;
        self.statistics.dropped += 1;
        if self.settings.ingress {
            self.advance(now, id.tin, held.adjusted, false);
        }
    }

    /// Follows what arrives, if it is to.
    fn note_arrival(&mut self, now: u64, bytes: u32) {
        if !self.settings.autorate_ingress {
            self.estimate.skip(now);
        } else if let Some(rate) = self.estimate.arrived(now, bytes) {
            self.settings.bandwidth = Some(rate);
            self.configure();
        }
    }

    /// Drops the first packet of the longest queue; says whether there was one.
    fn drop_of_longest(&mut self, now: u64) -> bool {
        let (tins, count) = (&self.tins, self.active_tins() * QUEUES);
        let longest = self.longest.first(count, |queue| bytes_of(tins, queue)).map(QueueId::of);
        let Some(id) = longest else { return false };
        let Some(held) = self.take_first(id) else { return false };
        let tin = &mut self.tins[id.tin];
        let queue = &mut tin.queues[id.at];
        tin.counts.unresponsive_flows += u64::from(queue.cobalt.overflow(now as i64, &tin.law.cobalt));
        queue.dropped += 1;
        tin.counts.drops += 1;
        self.statistics.dropped += 1;
        if self.settings.ingress {
            self.advance(now, id.tin, held.adjusted, false);
        }
        true
    }
}

/// Bytes of a queue, by its number.
fn bytes_of(tins: &[CakeTin], queue: u32) -> u64 {
    let QueueId { tin, at } = QueueId::of(queue);
    tins[tin].queues[at].backlog
}

impl<P: Packet + Debug + Send, R: FnMut() -> u32 + Send + 'static> Qdisc<P> for Cake<P, R> {
    fn kind(&self) -> &'static str {
        "cake"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        self.put(now, NamedPlace::default(), packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        self.now = now;
        self.next(now.0)
    }

    fn reset(&mut self, _: Nanos) {
        self.pool.clear();
        self.tins.iter_mut().for_each(CakeTin::empty_queues);
        self.statistics.emptied();
        self.memory = 0;
        self.longest.forget();
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn is_empty(&self) -> bool {
        self.statistics.qlen == 0
    }

    fn keeps_whole(&self) -> bool {
        !self.settings.split_gso
    }
}
