//! `pfifo_fast`: three bands, of which the first that has a packet sends; what Linux's devices have if
//! nothing else is said.
//!
//! A packet's priority chooses its band, by a map that is not to be changed. It has no classes and no
//! filters. Each band is a ring of 1,000 places, as the kernel takes it from a device's queue length; what
//! finds none is dropped. Places come back 16 at a time (and at the ring's end), so a band may be full with
//! 985 packets.
//!
//! Invariants (tests/bands.rs): a packet leaves only while no band before its own has one; within a band
//! packets leave in the order in which they came. Source: tc-pfifo_fast(8) and Linux 6.12
//! net/sched/sch_generic.c and include/linux/ptr_ring.h, by behaviour (tests/order_recorded.rs).

pub(crate) mod tc;

use crate::classful::Classful;
use crate::{Dequeued, Enqueued, Fifo, FifoLimit, Packet, PrioSettings, Qdisc, Statistics};
use core::fmt::Debug;
use quietcore_core::Nanos;

/// Places of a band.
const PLACES: u32 = 1_000;
/// So many places come back together.
const BATCH: u32 = 16;

/// One band: its packets, and how many places have not come back.
#[derive(Debug)]
struct Ring<P> {
    packets: Fifo<P>,
    /// The place of the first packet.
    first: u32,
    /// Places before it that no packet can have yet.
    kept: u32,
}

impl<P: Packet + Debug + Send> Ring<P> {
    fn new() -> Self {
        Self { packets: Fifo::new(FifoLimit::Packets(PLACES)), first: 0, kept: 0 }
    }

    fn has_place(&self) -> bool {
        self.packets.statistics().qlen + u64::from(self.kept) < u64::from(PLACES)
    }

    fn take(&mut self, now: Nanos) -> Option<P> {
        let packet = self.packets.dequeue(now).packet()?;
        self.pass();
        Some(packet)
    }

    /// The first packet has left its place.
    const fn pass(&mut self) {
        self.first += 1;
        self.kept += 1;
        if self.kept == BATCH || self.first == PLACES {
            self.kept = 0;
        }
        self.first %= PLACES;
    }

    fn reset(&mut self, now: Nanos) {
        (0..self.packets.statistics().qlen).for_each(|_| self.pass());
        self.packets.reset(now);
    }
}

/// Three bands by priority.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{PfifoFast, Qdisc};
///
/// let mut queue = PfifoFast::new();
/// assert!(queue.enqueue(Nanos(0), vec![0; 60]).is_accepted());
/// assert_eq!(queue.dequeue(Nanos(0)).packet(), Some(vec![0; 60]));
/// ```
#[derive(Debug)]
pub struct PfifoFast<P> {
    bands: [Ring<P>; 3],
    /// Each priority's band.
    priomap: [u8; 16],
    /// Packets that found no place.
    dropped: u64,
}

impl<P: Packet + Debug + Send> PfifoFast<P> {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        // The bands that `prio` has if it is told nothing.
        let PrioSettings { priomap, .. } = PrioSettings::default();
        Self { bands: core::array::from_fn(|_| Ring::new()), priomap, dropped: 0 }
    }
}

impl<P: Packet + Debug + Send> Default for PfifoFast<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Packet + Debug + Send> Qdisc<P> for PfifoFast<P> {
    fn kind(&self) -> &'static str {
        "pfifo_fast"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        let band = self.priomap[packet.priority() as usize % self.priomap.len()];
        let band = &mut self.bands[usize::from(band)];
        if !band.has_place() {
            self.dropped += 1;
            return Enqueued::Dropped;
        }
        band.packets.enqueue(now, packet)
    }

    fn head(&self) -> Option<u32> {
        self.bands.iter().find_map(|band| band.packets.head())
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        let next = self.bands.iter_mut().find_map(|band| band.take(now));
        next.map_or(Dequeued::Empty, Dequeued::Packet)
    }

    fn reset(&mut self, now: Nanos) {
        self.bands.iter_mut().for_each(|band| band.reset(now));
    }

    fn is_empty(&self) -> bool {
        self.bands.iter().all(|band| band.packets.is_empty())
    }

    fn statistics(&self) -> Statistics {
        let mut all = Statistics { dropped: self.dropped, ..Statistics::default() };
        for band in &self.bands {
            let band = band.packets.statistics();
            all.include(&band);
            all.sent_bytes += band.sent_bytes;
            all.sent_packets += band.sent_packets;
        }
        all
    }
}

impl<P: Packet + Debug + Send> Classful<P> for PfifoFast<P> {}
