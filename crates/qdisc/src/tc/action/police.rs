//! `police`: its options, and what they are told.
//!
//! Source: tc-police(8); iproute2 6.1 by behaviour. As there, the longest packet that conforms has 2040
//! bytes where there is a rate and no `mtu` is typed (255 cells of the table that `tc` makes), and what
//! exceeds is reclassified where no action is typed.

use super::super::burst::Burst;
use super::super::error::{TcError, TcProblem};
use super::super::tick::told;
use super::super::told::{LinkCosts, rate_of};
use super::super::units::{BitRate, Bytes};
use super::super::words::{LineWords, OptionName};
use super::{CONTROLS, control, control_here, take_index};
use crate::LinkLayer;
use crate::action::{ControlAction, PoliceRate, PoliceSettings};
use crate::refusal::TcRefusal;
use core::fmt::{self, Formatter};

/// What was typed of a `police`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoliceOptions {
    /// How fast its bucket fills.
    pub rate: Option<BitRate>,
    /// How much that holds.
    pub burst: Option<Burst>,
    /// The longest packet that conforms.
    pub mtu: Option<Burst>,
    /// How fast a burst may pass.
    pub peakrate: Option<BitRate>,
    /// Bytes that any packet counts at least.
    pub mpu: Option<Bytes>,
    /// Bytes more per packet.
    pub overhead: Option<u16>,
    /// How packets are packed.
    pub linklayer: Option<LinkLayer>,
    /// What becomes of packets that exceed.
    pub exceed: Option<ControlAction>,
    /// What becomes of those that conform.
    pub conform: Option<ControlAction>,
    /// What it is called; one that is there is meant, whatever else is said.
    pub index: Option<u32>,
}

const NAMES: &[OptionName] = &[
    ("rate", "rate"),
    ("burst", "burst"),
    ("buffer", "burst"),
    ("maxburst", "burst"),
    ("mtu", "mtu"),
    ("minburst", "mtu"),
    ("peakrate", "peakrate"),
    ("mpu", "mpu"),
    ("overhead", "overhead"),
    ("linklayer", "linklayer"),
    ("conform-exceed", "conform-exceed"),
    ("index", "index"),
    ("avrate", "avrate"),
    ("pkts_rate", "pkts_rate"),
    ("pkts_burst", "pkts_rate"),
];
const EXPECTED: &[&str] = &["rate", "burst", "mtu", "peakrate", "conform-exceed", "index"];
/// The cells of a table that `tc` makes: so many, each of 8 bytes unless told otherwise.
const CELLS: u32 = 255;
const CELL: u32 = 8;

/// Takes the value of an option that is there once.
macro_rules! once {
    ($options:ident.$field:ident, $name:literal, $words:ident) => {{
        $words.first_time($options.$field.as_ref(), $name)?;
        $options.$field = Some($words.scalar($name)?);
    }};
}

impl PoliceOptions {
    /// Takes what stands behind `police`; a word that is none of it ends it.
    pub(in super::super) fn take(words: &mut LineWords<'_>) -> Result<Self, TcError> {
        let mut options = Self::default();
        if words.is_empty() {
            return Err(words.at_end(TcProblem::MissingValue("police"), EXPECTED));
        }
        while let Some(word) = words.peek() {
            if let Some(control) = control(word) {
                words.take();
                words.first_time(options.exceed.as_ref(), "conform-exceed")?;
                options.exceed = Some(control);
                continue;
            }
            let Some((_, name)) = NAMES.iter().find(|(name, _)| *name == word) else { break };
            words.take();
            options.take_option(name, words)?;
        }
        match options.lacks() {
            Some(problem) => Err(words.at_end(problem, EXPECTED)),
            None => Ok(options),
        }
    }

    fn take_option(&mut self, name: &'static str, words: &mut LineWords<'_>) -> Result<(), TcError> {
        match name {
            "rate" => once!(self.rate, "rate", words),
            "burst" => once!(self.burst, "burst", words),
            "mtu" => once!(self.mtu, "mtu", words),
            "peakrate" => once!(self.peakrate, "peakrate", words),
            "mpu" => once!(self.mpu, "mpu", words),
            "overhead" => once!(self.overhead, "overhead", words),
            "linklayer" => once!(self.linklayer, "linklayer", words),
            "index" => take_index(words, &mut self.index)?,
            "conform-exceed" => self.take_both(words)?,
            "avrate" => {
                let why = "what passes is not estimated; use `rate`";
                return Err(words.here(TcProblem::NotSupported(why), &[]));
            }
            _ => {
                let why = "bytes are policed, not packets; use `rate`";
                return Err(words.here(TcProblem::NotSupported(why), &[]));
            }
        }
        Ok(())
    }

    /// `EXCEED/CONFORM`, or the first alone.
    fn take_both(&mut self, words: &mut LineWords<'_>) -> Result<(), TcError> {
        words.first_time(self.exceed.as_ref(), "conform-exceed")?;
        let word = words.value("conform-exceed", CONTROLS)?;
        let (exceed, conform) = word.split_once('/').map_or((word, None), |(one, other)| (one, Some(other)));
        self.exceed = Some(control_here(exceed, words)?);
        self.conform = conform.map(|conform| control_here(conform, words)).transpose()?;
        Ok(())
    }

    fn lacks(&self) -> Option<TcProblem> {
        let of = "police";
        // As to `tc`: less than a byte per second is no rate.
        let is_rated = self.rate.is_some_and(|rate| rate.bytes_per_second() > 0);
        match self {
            Self { mtu: None, index: None, .. } if !is_rated => {
                Some(TcProblem::Missing { of, what: "`rate` or `mtu`" })
            }
            Self { rate: Some(_), burst: None, .. } => Some(TcProblem::Missing { of, what: "`burst`" }),
            Self { peakrate: Some(_), mtu: None, .. } => {
                Some(TcProblem::Needs { option: "peakrate", needs: "`mtu`" })
            }
            Self { peakrate: Some(_), rate: None, .. } => {
                Some(TcProblem::Needs { option: "peakrate", needs: "`rate`" })
            }
            _ => None,
        }
    }

    /// What a [`Police`](crate::action::Police) is told.
    ///
    /// # Errors
    /// [`TcRefusal`], where a rate is below a byte per second.
    pub fn settings(&self) -> Result<PoliceSettings, TcRefusal> {
        let costs = LinkCosts { overhead: self.overhead, mpu: self.mpu, layer: self.linklayer };
        let rated = |option, rate: Option<BitRate>| {
            rate.map(|rate| rate_of("police", option, rate).map(|rate| costs.at(rate))).transpose()
        };
        let (rate, peak) = (rated("rate", self.rate)?, rated("peakrate", self.peakrate)?);
        let burst = self.burst.map_or(0, |burst| u64::from(burst.size.0));
        let cell = self.burst.and_then(|burst| burst.cell).unwrap_or(CELL);
        let unbounded = if rate.is_some() { CELLS.saturating_mul(cell) } else { u32::MAX };
        Ok(PoliceSettings {
            rate: rate.map(|rate| PoliceRate { rate, burst: told(rate, burst) }),
            peak,
            mtu: self.mtu.map(|mtu| mtu.size.0).filter(|bytes| *bytes != 0).unwrap_or(unbounded),
            conform: self.conform.unwrap_or_default(),
            exceed: self.exceed.unwrap_or(ControlAction::Reclassify),
        })
    }
}

impl fmt::Display for PoliceOptions {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        use super::super::value::OptionValue as _;
        out.write_str("police")?;
        self.rate.iter().try_for_each(|rate| rate.put("rate", out))?;
        self.burst.iter().try_for_each(|burst| burst.put("burst", out))?;
        self.mtu.iter().try_for_each(|mtu| mtu.put("mtu", out))?;
        self.peakrate.iter().try_for_each(|rate| rate.put("peakrate", out))?;
        self.mpu.iter().try_for_each(|mpu| mpu.put("mpu", out))?;
        self.overhead.iter().try_for_each(|bytes| bytes.put("overhead", out))?;
        self.linklayer.iter().try_for_each(|layer| layer.put("linklayer", out))?;
        match (self.exceed, self.conform) {
            (Some(exceed), Some(conform)) => write!(out, " conform-exceed {exceed}/{conform}")?,
            (Some(exceed), None) => write!(out, " conform-exceed {exceed}")?,
            _ => {}
        }
        self.index.iter().try_for_each(|index| index.put("index", out))
    }
}
