//! `prio`: bands, of which the first that has a packet sends.
//!
//! A packet's priority chooses its band by a map of 16 entries; one that names a class of this discipline
//! (`major:minor`), or a filter, chooses a band directly, `major:1` the first. A band that is throttled does
//! not hold back those behind it.
//!
//! Invariants (tests/prio.rs): a packet leaves only while no band before its own has one that may leave;
//! within a band packets leave in the order of the discipline inside. Absent: `multiqueue`, which current
//! kernels have not. Source: Linux net/sched/sch_prio.c, by behaviour.

mod inner;
mod settings;
pub(crate) mod tc;

pub use settings::{PrioError, PrioSettings};

use crate::classful::{end_inner_delays, inner_delays};
use crate::{ClassId, DelayTimer, Dequeued, Enqueued, InnerQdisc, Packet, Qdisc, Statistics};
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// Strict priorities.
#[derive(Debug)]
pub struct Prio<P> {
    settings: PrioSettings,
    bands: Vec<InnerQdisc<P>>,
    /// What was sent, and what was dropped with disciplines that are gone.
    counted: Statistics,
}

impl<P: Packet + Debug + Send> Prio<P> {
    /// Bands with a `pfifo` of 1,000 packets each.
    ///
    /// # Errors
    /// [`PrioError`] names the setting that cannot be.
    pub fn new(settings: PrioSettings) -> Result<Self, PrioError> {
        settings.check()?;
        let bands = (0..settings.bands).map(|_| InnerQdisc::first()).collect();
        Ok(Self { settings, bands, counted: Statistics::default() })
    }

    /// Other settings. Bands that stay keep what they hold; what those hold that go is dropped.
    ///
    /// # Errors
    /// [`PrioError`] names the setting that cannot be: then nothing has changed.
    pub fn change(&mut self, settings: PrioSettings) -> Result<(), PrioError> {
        settings.check()?;
        self.settings = settings;
        let count = usize::from(settings.bands);
        for gone in self.bands.drain(count.min(self.bands.len())..) {
            let held = gone.statistics();
            self.counted.dropped += held.dropped + held.qlen;
        }
        self.bands.resize_with(count, InnerQdisc::first);
        Ok(())
    }

    /// What it was told.
    #[must_use]
    pub const fn settings(&self) -> &PrioSettings {
        &self.settings
    }

    /// Takes a packet for a class, as if a filter had named it; where there is none, for the band of
    /// priority 0.
    pub fn enqueue_to(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        let band = self.band_of(class).unwrap_or(usize::from(self.settings.priomap[0]));
        self.bands[band].enqueue(now, packet)
    }

    /// The band that is called `class`.
    fn band_of(&self, class: ClassId) -> Option<usize> {
        usize::from(class.minor()).checked_sub(1).filter(|band| *band < self.bands.len())
    }

    /// The class that a priority names, if it is of this discipline.
    fn named_class(&self, priority: u32) -> Option<ClassId> {
        Some(ClassId(priority)).filter(|class| class.major() == self.settings.major)
    }
}

impl<P: Packet + Debug + Send> Qdisc<P> for Prio<P> {
    fn kind(&self) -> &'static str {
        "prio"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        let priority = packet.priority();
        if let Some(class) = self.named_class(priority) {
            return self.enqueue_to(now, class, packet);
        }
        // A class of another discipline says nothing here.
        let priority = if priority >> 16 == 0 { priority } else { 0 };
        let band = self.settings.priomap[priority as usize % self.settings.priomap.len()];
        self.bands[usize::from(band)].enqueue(now, packet)
    }

    fn head(&self) -> Option<u32> {
        self.bands.iter().find(|band| !band.is_empty())?.qdisc().head()
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        let mut first: Option<Nanos> = None;
        for band in &mut self.bands {
            match band.dequeue(now) {
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
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.counted;
        self.bands.iter().for_each(|band| all.include(&band.statistics()));
        all
    }

    fn keeps_whole(&self) -> bool {
        self.bands.iter().all(InnerQdisc::keeps_whole)
    }

    fn delays(&self) -> DelayTimer {
        inner_delays(self)
    }

    fn end_delays(&mut self, now: Nanos) {
        end_inner_delays(self, now);
    }
}
