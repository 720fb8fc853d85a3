//! Options of `cake` that are told with several words: the later of two that contradict holds, and what link
//! layers add is added up, as `tc` does.

use super::settings::{CakeCells, CakeFraming, MPU_MAX, OVERHEAD};
use crate::tc::TcError;
use crate::tc::error::TcProblem;
use crate::tc::units::BitRate;
use crate::tc::value::OptionValue;
use crate::tc::words::{LineWords, OptionName};
use alloc::format;
use core::fmt::{self, Formatter};
use quietcore_core::Nanos;

/// Names that stand for themselves.
macro_rules! names {
    ($($name:literal),*) => { &[$(($name, $name)),*] };
}

const RATE_NAMES: &[OptionName] = names!["bandwidth", "unlimited", "autorate-ingress"];
const LINK_NAMES: &[OptionName] = names![
    "overhead",
    "mpu",
    "atm",
    "ptm",
    "noatm",
    "raw",
    "conservative",
    "via-ethernet",
    "ipoa-vcmux",
    "ipoa-llcsnap",
    "bridged-vcmux",
    "bridged-llcsnap",
    "pppoa-vcmux",
    "pppoa-llc",
    "pppoe-vcmux",
    "pppoe-llcsnap",
    "pppoe-ptm",
    "bridged-ptm",
    "ethernet",
    "ether-vlan",
    "docsis"
];
const RTT_NAMES: &[(&str, u64)] = &[
    ("datacentre", 100_000),
    ("lan", 1_000_000),
    ("metro", 10_000_000),
    ("regional", 30_000_000),
    ("internet", 100_000_000),
    ("oceanic", 300_000_000),
    ("satellite", 1_000_000_000),
    // 1000 seconds, where the manual has 3600.
    ("interplanetary", 1_000_000_000_000),
];

/// What was typed of the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CakeRate {
    /// Bits per second; 0 is `unlimited`.
    pub bandwidth: Option<BitRate>,
    /// Whether it follows what arrives: not if a rate was typed behind it.
    pub autorate: bool,
}

impl CakeRate {
    fn add(&mut self, words: &mut LineWords<'_>) -> Result<(), TcError> {
        match words.full_name(RATE_NAMES, "option")? {
            "bandwidth" => {
                let rate: BitRate = words.scalar("bandwidth")?;
                self.autorate = false;
                // Nothing per second says nothing.
                self.bandwidth = Some(rate).filter(|rate| rate.bytes_per_second() > 0).or(self.bandwidth);
            }
            "unlimited" => *self = Self { bandwidth: Some(BitRate(0)), autorate: false },
            _ => self.autorate = true,
        }
        Ok(())
    }
}

impl OptionValue for CakeRate {
    fn take(words: &mut LineWords<'_>, _: &'static str) -> Result<Self, TcError> {
        let mut read = Self::default();
        read.add(words)?;
        Ok(read)
    }

    fn take_again(&self, words: &mut LineWords<'_>) -> Option<Result<Self, TcError>> {
        let mut read = *self;
        Some(read.add(words).map(|()| read))
    }

    fn put(&self, _: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        match self.bandwidth {
            Some(BitRate(0)) => out.write_str(" unlimited")?,
            Some(rate) => write!(out, " bandwidth {rate}")?,
            None if !self.autorate => out.write_str(" bandwidth 0bit")?,
            None => {}
        }
        out.write_str(if self.autorate { " autorate-ingress" } else { "" })
    }
}

/// The round trip time: a time, or the name of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CakeRtt(
    /// The time, in whole microseconds; 0 says nothing.
    pub Nanos,
);

impl OptionValue for CakeRtt {
    fn take(words: &mut LineWords<'_>, _: &'static str) -> Result<Self, TcError> {
        let mut names = [("rtt", "rtt"); 9];
        names.iter_mut().zip(RTT_NAMES).for_each(|(name, (known, _))| *name = (known, known));
        names[RTT_NAMES.len()] = ("rtt", "rtt");
        let name = words.full_name(&names, "option")?;
        if let Some((_, nanos)) = RTT_NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(Self(Nanos(*nanos)));
        }
        let Nanos(typed) = words.scalar("rtt")?;
        let most = u64::from(u32::MAX);
        if typed / 1_000 > most {
            let problem = TcProblem::OutOfRange { low: "0".into(), high: format!("{most}us") };
            return Err(words.here(problem, &[]));
        }
        Ok(Self(Nanos(typed / 1_000 * 1_000)))
    }

    fn put(&self, _: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " rtt {}us", self.0.0 / 1_000)
    }
}

/// What was typed of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CakeLink {
    /// Whether the link header is to count.
    pub raw: bool,
    /// Bytes that are added.
    pub overhead: Option<i32>,
    /// Bytes that a packet counts at least; 0 says nothing.
    pub mpu: Option<u32>,
    /// In which units packets are carried.
    pub cells: Option<CakeCells>,
}

impl CakeLink {
    fn add(&mut self, words: &mut LineWords<'_>) -> Result<(), TcError> {
        let (more, cells) = match words.full_name(LINK_NAMES, "option")? {
            "overhead" => {
                self.overhead = Some(within(words, "overhead", &OVERHEAD)?);
                return Ok(());
            }
            "mpu" => {
                self.mpu = Some(within(words, "mpu", &(0..=MPU_MAX as i32))?.unsigned_abs());
                return Ok(());
            }
            "raw" => {
                *self = Self { raw: true, overhead: Some(0), cells: Some(CakeCells::Plain), ..*self };
                return Ok(());
            }
            "conservative" => {
                *self = Self { overhead: Some(48), cells: Some(CakeCells::Atm), ..*self };
                return Ok(());
            }
            "via-ethernet" => return Ok(()),
            "atm" => (None, Some(CakeCells::Atm)),
            "ptm" => (None, Some(CakeCells::Ptm)),
            "noatm" => (None, Some(CakeCells::Plain)),
            name => added(name),
        };
        if let Some((bytes, mpu)) = more {
            self.overhead = Some(self.overhead.unwrap_or(0) + bytes);
            self.mpu = mpu.or(self.mpu);
        }
        self.cells = cells.or(self.cells);
        Ok(())
    }

    /// What a link adds that was told this, and something else before.
    pub(super) fn told(self, before: CakeFraming) -> CakeFraming {
        CakeFraming {
            raw: self.raw || (before.raw && self.overhead.is_none()),
            overhead: self.overhead.unwrap_or(before.overhead),
            mpu: self.mpu.filter(|mpu| *mpu > 0).unwrap_or(before.mpu),
            cells: self.cells.unwrap_or(before.cells),
        }
    }
}

/// Bytes that a kind of link adds, what a packet counts at least there, and in which units it carries.
type LinkAddition = (Option<(i32, Option<u32>)>, Option<CakeCells>);

const fn added(name: &'static str) -> LinkAddition {
    let (bytes, mpu, cells) = match name.as_bytes() {
        b"ipoa-vcmux" => (8, None, Some(CakeCells::Atm)),
        b"ipoa-llcsnap" => (16, None, Some(CakeCells::Atm)),
        b"bridged-vcmux" => (24, None, Some(CakeCells::Atm)),
        b"bridged-llcsnap" => (32, None, Some(CakeCells::Atm)),
        b"pppoa-vcmux" => (10, None, Some(CakeCells::Atm)),
        b"pppoa-llc" => (14, None, Some(CakeCells::Atm)),
        b"pppoe-vcmux" => (32, None, Some(CakeCells::Atm)),
        b"pppoe-llcsnap" => (40, None, Some(CakeCells::Atm)),
        b"pppoe-ptm" => (30, None, Some(CakeCells::Ptm)),
        b"bridged-ptm" => (22, None, Some(CakeCells::Ptm)),
        b"ethernet" => (38, Some(84), Some(CakeCells::Plain)),
        b"docsis" => (18, Some(64), Some(CakeCells::Plain)),
        _ => (4, None, None), // ether-vlan
    };
    (Some((bytes, mpu)), cells)
}

/// Takes a number that is in a range; `tc` says so of what is none, too.
fn within(
    words: &mut LineWords<'_>,
    option: &'static str,
    range: &core::ops::RangeInclusive<i32>,
) -> Result<i32, TcError> {
    let number = words.scalar(option)?;
    if range.contains(&number) {
        return Ok(number);
    }
    let (low, high) = (format!("{}", range.start()), format!("{}", range.end()));
    Err(words.here(TcProblem::OutOfRange { low, high }, &[]))
}

impl OptionValue for CakeLink {
    fn take(words: &mut LineWords<'_>, _: &'static str) -> Result<Self, TcError> {
        let mut read = Self::default();
        read.add(words)?;
        Ok(read)
    }

    fn take_again(&self, words: &mut LineWords<'_>) -> Option<Result<Self, TcError>> {
        let mut read = *self;
        Some(read.add(words).map(|()| read))
    }

    fn put(&self, _: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return out.write_str(" via-ethernet");
        }
        out.write_str(if self.raw { " raw" } else { "" })?;
        if let Some(bytes) = self.overhead {
            write!(out, " overhead {bytes}")?;
        }
        if let Some(bytes) = self.mpu {
            write!(out, " mpu {bytes}")?;
        }
        out.write_str(match self.cells {
            Some(CakeCells::Plain) => " noatm",
            Some(CakeCells::Atm) => " atm",
            Some(CakeCells::Ptm) => " ptm",
            None => "",
        })
    }
}

#[cfg(test)]
mod random {
    use super::{BitRate, CakeCells, CakeLink, CakeRate, CakeRtt};
    use crate::tc::tests::random::Random;
    use proptest::option;
    use proptest::prelude::*;
    use quietcore_core::Nanos;

    impl Random for CakeRate {
        fn random() -> BoxedStrategy<Self> {
            let rates = prop_oneof![Just(0), 8..u64::from(u32::MAX)].prop_map(BitRate);
            (option::of(rates), any::<bool>())
                .prop_map(|(bandwidth, autorate)| Self { bandwidth, autorate })
                .boxed()
        }
    }

    impl Random for CakeRtt {
        fn random() -> BoxedStrategy<Self> {
            any::<u32>().prop_map(|micros| Self(Nanos(u64::from(micros) * 1_000))).boxed()
        }
    }

    impl Random for CakeLink {
        fn random() -> BoxedStrategy<Self> {
            let cells =
                option::of(prop_oneof![Just(CakeCells::Plain), Just(CakeCells::Atm), Just(CakeCells::Ptm)]);
            (any::<bool>(), option::of(-64..=256), option::of(0..=256_u32), cells)
                .prop_map(|(raw, overhead, mpu, cells)| Self {
                    raw,
                    overhead: if raw { overhead.or(Some(0)) } else { overhead },
                    mpu,
                    cells: if raw { cells.or(Some(CakeCells::Plain)) } else { cells },
                })
                .boxed()
        }
    }
}
