//! A packet that tells who it is.

use arbitrary::{Result, Unstructured};
use quietcore_core::Nanos;
use quietcore_qdisc::Packet;

/// A packet with all that disciplines ask about.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// The how manieth that was offered.
    pub name: usize,
    bytes: u32,
    flow: u64,
    departure: Option<Nanos>,
    pacing_rate: Option<u64>,
    priority: u32,
}

impl Parcel {
    /// The next one that arrives at `now`.
    pub fn arbitrary(name: usize, now: Nanos, u: &mut Unstructured<'_>) -> Result<Self> {
        let bytes = match u.int_in_range(0..=7_u8)? {
            0 => u.int_in_range(0..=1)?,
            1 => u.int_in_range(1_515..=100_000)?,
            _ => u.int_in_range(40..=1_514)?,
        };
        let departure = u.ratio(1, 4)?.then(|| u.int_in_range(0..=40_000_000_000_u64)).transpose()?;
        Ok(Self {
            name,
            bytes,
            flow: u.int_in_range(0..=5)?,
            // Some are in the past.
            departure: departure.map(|span| Nanos((now.0 + span).saturating_sub(5_000_000_000))),
            pacing_rate: u.ratio(1, 4)?.then(|| super::numbers::rate(u)).transpose()?.map(|rate| rate.get()),
            // Names a class of the classful ones in half of the cases.
            priority: u32::from(u.int_in_range(0..=4_u16)?) | if u.arbitrary()? { 1 << 16 } else { 0 },
        })
    }
}

impl Packet for Parcel {
    fn len(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn departure(&self) -> Option<Nanos> {
        self.departure
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pacing_rate
    }

    fn priority(&self) -> u32 {
        self.priority
    }

    fn duplicate(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn mark_congestion(&mut self) -> bool {
        self.flow.is_multiple_of(2)
    }
}
