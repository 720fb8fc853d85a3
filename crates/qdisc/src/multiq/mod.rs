//! `multiq`: a band for each transmit queue of the device, served in turns, a packet each.
//!
//! A packet is of the band whose queue it would go through: its flow's, by the remainder of the flow's number
//! and the number of queues, as a device without a transmit map picks one. A band that is throttled does not
//! hold back the others. Filters may be added and change nothing, as in the kernel, where only an action
//! (`skbedit queue_mapping`) moves a packet.
//!
//! Invariants (tests/bands.rs): of bands that have packets none sends twice before each other has sent once.
//! Source: tc-multiq(8) (Linux Documentation/networking/multiqueue.rst) and Linux 6.12
//! net/sched/sch_multiq.c, by behaviour. Deviation: transmit maps of devices are not asked; a queue of the
//! device that is stopped does not pass its turn on, as here all bands leave through one.

pub(crate) mod tc;

use crate::classful::{Classful, end_inner_delays, inner_delays};
use crate::{ClassId, DelayTimer, Dequeued, Enqueued, InnerQdisc, Packet, Qdisc, Statistics};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// A band for each queue, in turns.
///
/// ```
/// use core::num::NonZeroU16;
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Multiq, Qdisc};
///
/// let mut queue = Multiq::new(1, NonZeroU16::new(4).expect("4"));
/// assert!(queue.enqueue(Nanos(0), vec![0; 60]).is_accepted());
/// assert_eq!(queue.dequeue(Nanos(0)).packet(), Some(vec![0; 60]));
/// ```
#[derive(Debug)]
pub struct Multiq<P> {
    major: u16,
    bands: Vec<InnerQdisc<P>>,
    /// The band that was asked last.
    last: usize,
    /// What was sent, and what was dropped with disciplines that are gone.
    counted: Statistics,
}

impl<P: Packet + Debug + Send> Multiq<P> {
    /// Bands with a `pfifo` of 1,000 packets each; the second is asked first, as in the kernel. `major` is
    /// the major number of its classes, of which `major:1` is the first band.
    #[must_use]
    pub fn new(major: u16, bands: core::num::NonZeroU16) -> Self {
        let bands = (0..bands.get()).map(|_| InnerQdisc::first()).collect();
        Self { major, bands, last: 0, counted: Statistics::default() }
    }

    /// How many bands there are.
    #[must_use]
    pub fn bands(&self) -> usize {
        self.bands.len()
    }

    /// The band that is called `class`.
    fn band_of(&self, class: ClassId) -> Option<usize> {
        usize::from(class.minor()).checked_sub(1).filter(|band| *band < self.bands.len())
    }
}

impl<P: Packet + Debug + Send> Qdisc<P> for Multiq<P> {
    fn kind(&self) -> &'static str {
        "multiq"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        let band = (packet.flow() % self.bands.len() as u64) as usize;
        self.bands[band].enqueue(now, packet)
    }

    fn head(&self) -> Option<u32> {
        let behind = (1..=self.bands.len()).map(|turns| &self.bands[(self.last + turns) % self.bands.len()]);
        behind.into_iter().find(|band| !band.is_empty())?.qdisc().head()
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        let mut first: Option<Nanos> = None;
        for _ in 0..self.bands.len() {
            self.last = (self.last + 1) % self.bands.len();
            match self.bands[self.last].dequeue(now) {
                Dequeued::Packet(packet) => {
                    self.counted.count_sent(packet.size());
                    return Dequeued::Packet(packet);
                }
                Dequeued::Throttled(until) => first = first.into_iter().chain([until]).min(),
                Dequeued::Empty => {}
            }
        }
        first.map_or(Dequeued::Empty, Dequeued::Throttled)
    }

    fn reset(&mut self, now: Nanos) {
        self.bands.iter_mut().for_each(|band| band.reset(now));
        self.last = 0;
    }

    fn is_empty(&self) -> bool {
        self.bands.iter().all(InnerQdisc::is_empty)
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.counted;
        self.bands.iter().for_each(|band| all.include(&band.statistics()));
        all
    }

    fn delays(&self) -> DelayTimer {
        inner_delays(self)
    }

    fn end_delays(&mut self, now: Nanos) {
        end_inner_delays(self, now);
    }
}

/// Its classes are its bands.
impl<P: Packet + Debug + Send> Classful<P> for Multiq<P> {
    fn classes(&self) -> Vec<ClassId> {
        (1..=self.bands.len()).map(|minor| ClassId::new(self.major, minor as u16)).collect() // 65535 at most
    }

    fn inner(&self, class: ClassId) -> Option<&InnerQdisc<P>> {
        self.bands.get(self.band_of(class)?)
    }

    fn change_inner(&mut self, _: Nanos, class: ClassId, change: &mut dyn FnMut(&mut InnerQdisc<P>)) {
        if let Some(band) = self.band_of(class) {
            change(&mut self.bands[band]);
        }
    }

    fn graft_inner(&mut self, _: Nanos, class: ClassId, inner: Option<Box<dyn Qdisc<P>>>) -> bool {
        let Some(band) = self.band_of(class) else { return false };
        self.counted.dropped += self.bands[band].graft(inner);
        true
    }

    fn has_filters(&self) -> bool {
        true
    }

    fn classes_have_filters(&self) -> bool {
        false
    }
}
