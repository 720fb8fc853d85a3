//! `ets`: enhanced transmission selection: bands that are served strictly in order, and bands that share what
//! those leave, by deficit round robin.
//!
//! A packet's priority chooses its band by a map of 16 entries; one that names a class of this discipline
//! (`major:minor`), or a filter, chooses a band directly, `major:1` the first. A strict band that is
//! throttled does not hold back those behind it; a band that shares and makes its packet wait makes all wait
//! that share.
//!
//! Invariants (tests/ets.rs): a packet leaves only while no strict band before its own has one that may
//! leave; what two bands that share sent while both had packets differs, over their quanta, by less than what
//! the longest packets take. Source: IEEE 802.1Q-2018, 8.6.8 and 37 (802.1Qaz); tc-ets(8) and Linux 6.12
//! net/sched/sch_ets.c, by behaviour. Absent: credit-based shaping, offload.

mod inner;
mod settings;
pub(crate) mod tc;

pub use settings::{EtsError, EtsSettings};

use crate::classful::{end_inner_delays, inner_delays};
use crate::round::DeficitRound;
use crate::{ClassId, DelayTimer, Dequeued, Enqueued, InnerQdisc, Packet, Qdisc, Statistics};
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// Strict bands, and bands that share.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{ClassId, Ets, EtsSettings, Qdisc};
///
/// let mut quanta = [1_000; 16];
/// quanta[1] = 2_000;
/// let mut queue = Ets::new(EtsSettings { quanta, ..EtsSettings::new(3, 1) })?;
/// for number in 0..4_u8 {
///     for (minor, name) in [(3, b'c'), (2, b'b'), (1, b'a')] {
///         assert!(queue.enqueue_to(Nanos(0), ClassId::new(1, minor), vec![name; 1_000]).is_accepted());
///     }
/// }
/// let order: Vec<u8> = (0..12).filter_map(|_| queue.dequeue(Nanos(0)).packet()).map(|p| p[0]).collect();
/// assert_eq!(order, b"aaaacbbcbbcc", "`c` was there first");
/// # Ok::<(), quietcore_qdisc::EtsError>(())
/// ```
#[derive(Debug)]
pub struct Ets<P> {
    settings: EtsSettings,
    bands: Vec<InnerQdisc<P>>,
    /// Of the bands that share, those that hold something.
    round: DeficitRound<usize>,
    /// What was sent, and what was dropped with disciplines that are gone.
    counted: Statistics,
}

impl<P: Packet + Debug + Send> Ets<P> {
    /// Bands with a `pfifo` of 1,000 packets each.
    ///
    /// # Errors
    /// [`EtsError`] names the setting that cannot be.
    pub fn new(settings: EtsSettings) -> Result<Self, EtsError> {
        settings.check()?;
        let bands = (0..settings.bands).map(|_| InnerQdisc::first()).collect();
        Ok(Self { settings, bands, round: DeficitRound::new(), counted: Statistics::default() })
    }

    /// Other settings. Bands that stay keep what they hold; what those hold that go is dropped. A band that
    /// shares as it did before keeps what is left of its turn.
    ///
    /// # Errors
    /// [`EtsError`] names the setting that cannot be: then nothing has changed.
    pub fn change(&mut self, settings: EtsSettings) -> Result<(), EtsError> {
        settings.check()?;
        self.settings = settings;
        let count = usize::from(settings.bands);
        for gone in self.bands.drain(count.min(self.bands.len())..) {
            let held = gone.statistics();
            self.counted.dropped += held.dropped + held.qlen;
        }
        self.bands.resize_with(count, InnerQdisc::first);
        (0..usize::from(settings::BANDS_MAX)).for_each(|band| self.settle(band));
        Ok(())
    }

    /// Another quantum for a band that shares, from 0, from its next turn on.
    ///
    /// # Errors
    /// Of a band that does not share, or a quantum of 0: then nothing has changed.
    pub fn set_quantum(&mut self, band: usize, quantum: u32) -> Result<(), EtsError> {
        if !self.shares(band) {
            return Err(EtsError::NotSharing { band });
        }
        if quantum == 0 {
            return Err(EtsError::Quantum { band });
        }
        self.settings.quanta[band] = quantum;
        Ok(())
    }

    /// What it was told.
    #[must_use]
    pub const fn settings(&self) -> &EtsSettings {
        &self.settings
    }

    /// Takes a packet for a class, as if a filter had named it; where there is none, for the band of
    /// priority 0.
    pub fn enqueue_to(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        let band = self.band_of(class).unwrap_or(usize::from(self.settings.priomap[0]));
        self.enqueue_band(now, band, packet)
    }

    fn enqueue_band(&mut self, now: Nanos, band: usize, packet: P) -> Enqueued {
        let was_empty = self.bands[band].is_empty();
        let enqueued = self.bands[band].enqueue(now, packet);
        // It may also have dropped all that it held, to make room.
        if self.bands[band].is_empty() != was_empty {
            self.settle(band);
        }
        enqueued
    }

    /// Whether a band is there and shares.
    const fn shares(&self, band: usize) -> bool {
        band >= self.settings.strict as usize && band < self.settings.bands as usize
    }

    /// Brings a band into the round or out of it, as it has to be there.
    fn settle(&mut self, band: usize) {
        let takes_part = self.shares(band) && !self.bands[band].is_empty();
        match (takes_part, self.round.contains(band)) {
            (false, true) => self.round.remove(band),
            (true, false) => self.round.wake(band, self.settings.quanta[band]),
            _ => {}
        }
    }

    /// The band that is called `class`.
    fn band_of(&self, class: ClassId) -> Option<usize> {
        usize::from(class.minor()).checked_sub(1).filter(|band| *band < self.bands.len())
    }

    /// The class that a priority names, if it is of this discipline.
    fn named_class(&self, priority: u32) -> Option<ClassId> {
        Some(ClassId(priority)).filter(|class| class.major() == self.settings.major)
    }

    /// The next packet of the bands that share.
    fn dequeue_shared(&mut self, now: Nanos) -> Dequeued<P> {
        while let Some(band) = self.round.first() {
            let queue = &mut self.bands[band];
            let bytes = match queue.peek(now) {
                Dequeued::Packet(bytes) => bytes,
                Dequeued::Throttled(until) => return Dequeued::Throttled(until),
                // It has dropped what it held.
                Dequeued::Empty => {
                    self.round.remove(band);
                    continue;
                }
            };
            if !self.round.pay(bytes) {
                self.round.pass(self.settings.quanta[band]);
                continue;
            }
            let next = queue.dequeue(now);
            if queue.is_empty() {
                self.round.remove(band);
            }
            return next;
        }
        Dequeued::Empty
    }

    /// The next packet, which is not counted yet.
    fn next(&mut self, now: Nanos) -> Dequeued<P> {
        let mut first: Option<Nanos> = None;
        for queue in &mut self.bands[..usize::from(self.settings.strict)] {
            match queue.dequeue(now) {
                Dequeued::Throttled(until) => first = first.into_iter().chain([until]).min(),
                Dequeued::Empty => {}
                packet @ Dequeued::Packet(_) => return packet,
            }
        }
        match self.dequeue_shared(now) {
            Dequeued::Throttled(until) => Dequeued::Throttled(first.map_or(until, |first| first.min(until))),
            Dequeued::Empty => first.map_or(Dequeued::Empty, Dequeued::Throttled),
            packet @ Dequeued::Packet(_) => packet,
        }
    }
}

impl<P: Packet + Debug + Send> Qdisc<P> for Ets<P> {
    fn kind(&self) -> &'static str {
        "ets"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        let priority = packet.priority();
        if let Some(class) = self.named_class(priority) {
            return self.enqueue_to(now, class, packet);
        }
        // A class of another discipline says nothing here.
        let priority = if priority >> 16 == 0 { priority } else { 0 };
        let band = self.settings.priomap[priority as usize % self.settings.priomap.len()];
        self.enqueue_band(now, band.into(), packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        let next = self.next(now);
        if let Dequeued::Packet(packet) = &next {
            self.counted.count_sent(packet.size());
        }
        next
    }

    fn reset(&mut self, now: Nanos) {
        self.bands.iter_mut().for_each(|band| band.reset(now));
        self.round.clear();
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
