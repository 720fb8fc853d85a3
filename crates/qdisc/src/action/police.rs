//! `police`: which packets keep to a rate.
//!
//! Two buckets hold time: that of the rate up to its burst, that of the peak rate as much as a packet of
//! `mtu` bytes takes. A packet that is not longer than `mtu`, and for which both hold enough, conforms and
//! takes its time from both; another one exceeds and takes nothing. Buckets fill as time passes, and are full
//! to begin with.
//!
//! Source: Linux 6.12 net/sched/act_police.c, by behaviour; tc-police(8). As there, both fill by the time
//! since the last packet that conformed, of which no more than the burst counts, for the peak rate's, too.
//! Deviations: times are exact, where the kernel multiplies by a reciprocal (`Rate`); what a `police` without
//! a rate drops though it conforms is counted. Absent: `avrate`, rates of packets.

use super::ControlAction;
use crate::{PacketSize, Rate};
use quietcore_core::Nanos;

/// A rate, and how much may pass at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoliceRate {
    /// How fast the bucket fills.
    pub rate: Rate,
    /// How much it holds, as the time that it takes to fill.
    pub burst: Nanos,
}

/// What a [`Police`] is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoliceSettings {
    /// What may pass in the long run; anything, if there is none.
    pub rate: Option<PoliceRate>,
    /// How fast a burst may pass; of no effect without a rate.
    pub peak: Option<Rate>,
    /// Bytes of the longest packet that conforms.
    pub mtu: u32,
    /// What is said of packets that conform.
    pub conform: ControlAction,
    /// What is said of others.
    pub exceed: ControlAction,
}

/// What a [`Police`] says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoliceVerdict {
    /// What becomes of it.
    pub control: ControlAction,
    /// Whether it exceeds.
    pub exceeds: bool,
}

/// Two buckets and what is said of packets.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::Rate;
/// use quietcore_qdisc::action::{ControlAction, Police, PoliceRate, PoliceSettings};
///
/// let rate = Rate::bytes_per_second(1_000_000).map(|rate| PoliceRate { rate, burst: Nanos(2_500_000) });
/// let (conform, exceed) = (ControlAction::Pass, ControlAction::Drop);
/// let mut police = Police::new(PoliceSettings { rate, peak: None, mtu: 1500, conform, exceed }, Nanos(0));
/// let mut exceeds = |now, bytes: u32| police.ask(Nanos(now), bytes, bytes).exceeds;
/// assert!(!exceeds(0, 1000) && !exceeds(0, 1000) && exceeds(0, 1000), "1 ms each, of 2.5 ms");
/// assert!(!exceeds(500_000, 1000) && exceeds(500_000, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Police {
    settings: PoliceSettings,
    /// When a packet last conformed.
    filled: Nanos,
    /// What the bucket of the rate held then, in nanoseconds; not below 0.
    held: i64,
    /// What that of the peak rate held.
    peak_held: i64,
}

/// Nanoseconds of at most 292 years.
fn signed(span: Nanos) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}

impl Police {
    /// One with full buckets.
    #[must_use]
    pub fn new(settings: PoliceSettings, now: Nanos) -> Self {
        let held = settings.rate.map_or(0, |rate| signed(rate.burst));
        let peak_held = settings.peak.map_or(0, |peak| signed(peak.time(settings.mtu)));
        Self { settings, filled: now, held, peak_held }
    }

    /// What it was told.
    #[must_use]
    pub const fn settings(&self) -> &PoliceSettings {
        &self.settings
    }

    /// What it says at `now` of a packet of that size, which has `longest` bytes on the link, or of which
    /// each has so many if it stands for several. They differ where a packet comes in: buckets count it
    /// without the header of the link, and `mtu` is that of the link.
    pub fn ask(&mut self, now: Nanos, size: impl Into<PacketSize>, longest: u32) -> PoliceVerdict {
        let PoliceSettings { rate, peak, mtu, conform, exceed } = self.settings;
        let size = size.into();
        let conforms = longest <= mtu
            && rate.is_none_or(|PoliceRate { rate, burst }| {
                let burst = signed(burst);
                let passed = signed(now.since(self.filled)).min(burst);
                let held = passed.saturating_add(self.held).min(burst);
                let held = held.saturating_sub(signed(rate.time(size.bytes)));
                let peak_held = peak.map_or(0, |peak| {
                    let full = signed(peak.time(mtu));
                    let held = passed.saturating_add(self.peak_held).min(full);
                    held.saturating_sub(signed(peak.time(size.bytes)))
                });
                let is_enough = held >= 0 && peak_held >= 0;
                if is_enough {
                    (self.filled, self.held, self.peak_held) = (now, held, peak_held);
                }
                is_enough
            });
        let control = if conforms { conform } else { exceed };
        PoliceVerdict { control, exceeds: !conforms }
    }
}
