//! What a netem is asked for, in the words of `tc`.

use super::chance::{Chance, Probability};
use super::loss::NetemLoss;
use crate::Distribution;
use core::fmt;
use quietcore_core::Nanos;

/// How long packets are delayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetemDelay {
    /// The mean.
    pub latency: Nanos,
    /// Without a distribution the most by which a delay differs from the mean; with one its standard
    /// deviation.
    pub jitter: Nanos,
    /// The weight of the random number before. Of a delay it is without effect, here as in the kernel, unless
    /// the jitter is about a second or longer and there is no distribution: a delay is made of the number's
    /// remainder, which keeps nothing of what two numbers have in common.
    pub correlation: Probability,
    /// `None`: all delays within the jitter are as likely.
    pub distribution: Option<Distribution>,
}

/// The rate of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetemRate {
    /// Bytes per second; 0 is no limit.
    pub bytes_per_second: u64,
    /// Bytes that each packet counts more, or less.
    pub overhead: i32,
    /// Packets are packed into cells of so many bytes; 0 is none.
    pub cell: u32,
    /// Bytes that each cell counts more, or less.
    pub cell_overhead: i32,
}

impl NetemRate {
    /// How long a packet of `bytes` takes; 0 without a limit.
    #[must_use]
    pub fn time(&self, bytes: u32) -> Nanos {
        // Bytes, cells and what each counts are below 2^34: products fit, the nanoseconds of them, too.
        let mut bytes = (i128::from(bytes) + i128::from(self.overhead)).max(0);
        if self.cell > 0 {
            let cells = bytes.unsigned_abs().div_ceil(u128::from(self.cell)) as i128;
            bytes = (cells * (i128::from(self.cell) + i128::from(self.cell_overhead))).max(0);
        }
        let nanos = bytes.unsigned_abs() * 1_000_000_000;
        let time = nanos.checked_div(u128::from(self.bytes_per_second));
        Nanos(time.map_or(0, |time| u64::try_from(time).unwrap_or(u64::MAX)))
    }
}

/// Packets leave in bursts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetemSlot {
    /// From one opening to the next.
    pub spacing: SlotSpacing,
    /// Packets that one slot lets through; 0 is any number.
    pub packets: u32,
    /// Bytes, likewise.
    pub bytes: u64,
}

/// From one opening of a slot to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotSpacing {
    /// All between these are as likely.
    Between {
        /// The shortest.
        min: Nanos,
        /// The longest.
        max: Nanos,
    },
    /// `slot distribution`.
    Distributed(NetemDelay),
}

/// What becomes of a packet that would be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// It is lost.
    #[default]
    Drop,
    /// `ecn`: it is marked as having met congestion if it can be, and lost only if not.
    Mark,
}

/// What a [`Netem`](crate::Netem) does.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{NetemDelay, Distribution, NetemLoss, NetemSettings, Probability};
///
/// let percent = |percent| Probability::percent(percent).expect("0 to 100");
/// let settings = NetemSettings {
///     delay: NetemDelay {
///         latency: Nanos::from_micros(10_000),
///         jitter: Nanos::from_micros(3_000),
///         distribution: Some(Distribution::normal()),
///         ..NetemDelay::default()
///     },
///     loss: NetemLoss::gilbert(percent(1.0), percent(10.0)),
///     ..NetemSettings::default()
/// };
/// assert_eq!(settings.limit, 1000);
/// assert_eq!(settings.check(), Ok(()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetemSettings {
    /// Packets that wait at most; 1000 by default, which drops at 1 Gbit/s and 20 ms already.
    pub limit: u32,
    /// How long they wait.
    pub delay: NetemDelay,
    /// Which are lost.
    pub loss: NetemLoss,
    /// What becomes of those.
    pub on_loss: OnLoss,
    /// Which come twice.
    pub duplicate: Chance,
    /// Which have a bit flipped.
    pub corrupt: Chance,
    /// Which of every `gap`-th packet leave at once, before those that wait. Never: with a gap all of them.
    pub reorder: Chance,
    /// After how many packets one may be reordered; 0 is never.
    pub gap: u32,
    /// How fast the link is.
    pub rate: NetemRate,
    /// Whether packets leave in bursts.
    pub slot: Option<NetemSlot>,
}

impl Default for NetemSettings {
    fn default() -> Self {
        Self {
            limit: 1000,
            delay: NetemDelay::default(),
            loss: NetemLoss::None,
            on_loss: OnLoss::Drop,
            duplicate: Chance::default(),
            corrupt: Chance::default(),
            reorder: Chance::default(),
            gap: 0,
            rate: NetemRate::default(),
            slot: None,
        }
    }
}

/// Which settings do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetemError {
    /// What leaves at once overtakes nothing if nothing waits.
    ReorderWithoutDelay,
    /// A slot's shortest spacing is longer than its longest.
    SlotSpacing {
        /// The shortest.
        min: Nanos,
        /// The longest.
        max: Nanos,
    },
    /// A span longer than 100 years.
    TooLong(Nanos),
}

impl fmt::Display for NetemError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReorderWithoutDelay => out.write_str("packets overtake nothing without a delay"),
            Self::SlotSpacing { min, max } => write!(out, "a slot of at least {min} and at most {max}"),
            Self::TooLong(span) => write!(out, "{span} is longer than 100 years"),
        }
    }
}

impl core::error::Error for NetemError {}

/// 100 years: whatever is added to a moment stays one.
const LONGEST: Nanos = Nanos(100 * 365 * 86_400 * 1_000_000_000);

impl NetemSettings {
    /// Whether the settings go together.
    ///
    /// # Errors
    /// See [`NetemError`].
    pub fn check(&self) -> Result<(), NetemError> {
        let slots = match &self.slot {
            Some(NetemSlot { spacing: SlotSpacing::Between { min, max }, .. }) => {
                if min > max {
                    return Err(NetemError::SlotSpacing { min: *min, max: *max });
                }
                [*min, *max]
            }
            Some(NetemSlot { spacing: SlotSpacing::Distributed(delay), .. }) => [delay.latency, delay.jitter],
            None => [Nanos(0); 2],
        };
        let spans = [self.delay.latency, self.delay.jitter].into_iter().chain(slots);
        if let Some(span) = spans.into_iter().find(|span| *span > LONGEST) {
            return Err(NetemError::TooLong(span));
        }
        let waits = self.delay.latency > Nanos(0) || self.delay.jitter > Nanos(0);
        if self.gap > 0 && !waits && self.rate.bytes_per_second == 0 {
            return Err(NetemError::ReorderWithoutDelay);
        }
        Ok(())
    }
}
