//! The options of `netem`: delay, loss, duplication, reordering, corruption, a rate, slots.
//!
//! Values that may be left out are taken as long as the next word begins with a digit. Source: tc-netem(8);
//! the aliases `latency` and `drop` are those of `tc` itself.

use crate::tc::error::{TcError, TcProblem};
use crate::tc::scalar::{Scalar, Show};
use crate::tc::table::{Complete, options, switch};
use crate::tc::units::{BitRate, Bytes, Percent};
use crate::tc::value::OptionValue;
use crate::tc::words::LineWords;
use alloc::boxed::Box;
use core::fmt::{self, Formatter};
use quietcore_core::Nanos;

options! {
    /// What was typed behind `netem`.
    pub struct NetemOptions of "netem" {
        /// Packets that it holds at most.
        limit: u32 = "limit",
        /// How long packets are delayed.
        delay: TypedDelay = "delay" | "latency",
        /// How jitter is distributed.
        distribution: DistributionName = "distribution",
        /// What is lost.
        loss: TypedLoss = "loss" | "drop",
        /// What would be lost is marked, where it can be.
        ecn: Ecn = "ecn",
        /// What gets a wrong bit.
        corrupt: TypedChance = "corrupt",
        /// What is sent twice.
        duplicate: TypedChance = "duplicate",
        /// What is not delayed.
        reorder: TypedChance = "reorder",
        /// Every so many packets one is not delayed.
        gap: u32 = "gap",
        /// What the link carries.
        rate: LinkRate = "rate",
        /// Packets leave in bursts.
        slot: TypedSlot = "slot",
        /// Where its random numbers begin.
        seed: u64 = "seed",
    }
}

impl Complete for NetemOptions {
    fn lacks(&self) -> Option<TcProblem> {
        let jitter = self.delay.is_some_and(|delay| delay.jitter.is_some());
        let needs = [
            (self.distribution.is_some(), jitter, "distribution", "`delay` with a jitter"),
            (self.reorder.is_some(), self.delay.is_some(), "reorder", "`delay`"),
            (self.gap.is_some(), self.delay.is_some(), "gap", "`delay`"),
            (self.ecn.is_some(), self.loss.is_some(), "ecn", "`loss`"),
        ];
        let unmet = needs.into_iter().find(|(given, met, ..)| *given && !met);
        unmet.map(|(_, _, option, needs)| TcProblem::Needs { option, needs })
    }
}

impl NetemOptions {
    /// `duplicate` as `tc` tells the kernel: its correlation only goes with one of delay or loss.
    pub(super) fn told_duplicate(&self) -> Option<TypedChance> {
        let is_some = |percent: Option<Percent>| percent.is_some_and(|percent| percent.share() > 0);
        let delay = is_some(self.delay.and_then(|delay| delay.correlation));
        let loss = matches!(self.loss, Some(TypedLoss::Random(loss)) if is_some(loss.correlation));
        let correlation = |typed: TypedChance| typed.correlation.filter(|_| delay || loss);
        self.duplicate.map(|typed| TypedChance { correlation: correlation(typed), ..typed })
    }
}

switch! {
    /// What happens to what would be lost.
    pub enum Ecn {
        /// `ecn`: it is marked as having met congestion.
        Mark = "ecn",
    }
}

/// `delay TIME [JITTER [CORRELATION]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedDelay {
    /// How long.
    pub time: Nanos,
    /// How much more or less it may be.
    pub jitter: Option<Nanos>,
    /// How much a delay is like the one before; only with a jitter.
    pub correlation: Option<Percent>,
}

impl OptionValue for TypedDelay {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let time = words.scalar(name)?;
        let jitter = words.optional(name)?;
        let correlation = if jitter.is_some() { words.optional(name)? } else { None };
        Ok(Self { time, jitter, correlation })
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        self.time.show(out)?;
        self.jitter.show(out)?;
        self.correlation.show(out)
    }
}

/// The name of a distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DistributionName {
    /// Every value between the edges is as likely.
    Uniform,
    /// Gauss's.
    Normal,
    /// Pareto's: a long tail.
    Pareto,
    /// A quarter of it normal, the rest Pareto's.
    ParetoNormal,
    /// A table that the control finds by that name: of a file, mostly.
    Table(Box<str>),
}

impl DistributionName {
    /// Those that are no table of a file.
    const OWN: [Self; 4] = [Self::Uniform, Self::Normal, Self::Pareto, Self::ParetoNormal];

    /// As it is typed.
    #[must_use]
    pub const fn name(&self) -> &str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::Pareto => "pareto",
            Self::ParetoNormal => "paretonormal",
            Self::Table(name) => name,
        }
    }
}

impl Show for DistributionName {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {}", self.name())
    }
}

impl Scalar for DistributionName {
    const ALLOWED: &'static [&'static str] =
        &["uniform", "normal", "pareto", "paretonormal", "experimental", "FILE.dist"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let known = Self::OWN.into_iter().find(|known| known.name() == word);
        Ok(known.unwrap_or_else(|| Self::Table(word.into())))
    }
}

/// `PERCENT [CORRELATION]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedChance {
    /// Of how many packets.
    pub percent: Percent,
    /// How much a decision is like the one before.
    pub correlation: Option<Percent>,
}

impl OptionValue for TypedChance {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        Ok(Self { percent: words.scalar(name)?, correlation: words.optional(name)? })
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        self.percent.show(out)?;
        self.correlation.show(out)
    }
}

/// `loss [random] ...`, `loss state ...`, `loss gemodel ...`. Percentages that were left out may be followed
/// by none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedLoss {
    /// Each packet for itself.
    Random(TypedChance),
    /// Four states: `state P13 [P31 [P32 [P23 [P14]]]]`.
    State {
        /// From good to lost in a burst.
        p13: Percent,
        /// Back, and so on: p31, p32, p23, p14.
        others: [Option<Percent>; 4],
    },
    /// Gilbert's and Elliott's: `gemodel P [R [1-H [1-K]]]`.
    GeModel {
        /// From the good state to the bad one.
        p: Percent,
        /// Back, then how much is lost in the bad state (1-h), and in the good one (1-k).
        others: [Option<Percent>; 3],
    },
}

/// Takes values up to the first that is not there.
fn take_some<const N: usize>(
    words: &mut LineWords<'_>,
    name: &'static str,
) -> Result<[Option<Percent>; N], TcError> {
    let mut values = [None; N];
    for value in &mut values {
        *value = words.optional(name)?;
        if value.is_none() {
            break;
        }
    }
    Ok(values)
}

impl OptionValue for TypedLoss {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        if words.take_if("state") {
            return Ok(Self::State { p13: words.scalar("loss state")?, others: take_some(words, name)? });
        }
        if words.take_if("gemodel") {
            return Ok(Self::GeModel { p: words.scalar("loss gemodel")?, others: take_some(words, name)? });
        }
        if words.take_if("random") || words.peek().is_some_and(Percent::begins) {
            return TypedChance::take(words, name).map(Self::Random);
        }
        words.value(name, &["random", "state", "gemodel", "a percentage"])?;
        let form = "a model of loss";
        Err(words.here(TcProblem::Malformed(form), &["random", "state", "gemodel", "a percentage"]))
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        match self {
            Self::Random(chance) => chance.put("random", out),
            Self::State { p13, others } => {
                p13.put("state", out)?;
                others.iter().try_for_each(|value| value.show(out))
            }
            Self::GeModel { p, others } => {
                p.put("gemodel", out)?;
                others.iter().try_for_each(|value| value.show(out))
            }
        }
    }
}

/// `rate RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRate {
    /// How fast.
    pub rate: BitRate,
    /// Bytes more, or fewer, per packet.
    pub overhead: Option<i32>,
    /// Bytes of payload in a cell; only with an overhead.
    pub cell: Option<u32>,
    /// Bytes more, or fewer, per cell; only with cells.
    pub cell_overhead: Option<i32>,
}

impl OptionValue for LinkRate {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let rate = words.scalar(name)?;
        let overhead = words.optional(name)?;
        let cell = if overhead.is_some() { words.optional(name)? } else { None };
        let cell_overhead = if cell.is_some() { words.optional(name)? } else { None };
        Ok(Self { rate, overhead, cell, cell_overhead })
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        self.rate.show(out)?;
        self.overhead.show(out)?;
        self.cell.show(out)?;
        self.cell_overhead.show(out)
    }
}

/// When slots open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotTiming {
    /// `MIN [MAX]`: so long behind the one before.
    Between {
        /// At least.
        min: Nanos,
        /// At most; the same if it was left out.
        max: Option<Nanos>,
    },
    /// `distribution NAME DELAY JITTER`.
    Distributed {
        /// Which one.
        distribution: DistributionName,
        /// So long behind the one before.
        delay: Nanos,
        /// How much more or less it may be.
        jitter: Nanos,
    },
}

/// `slot MIN [MAX] [packets N] [bytes N]`, or with a distribution instead of the times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedSlot {
    /// When they open.
    pub timing: SlotTiming,
    /// Packets that leave in one.
    pub packets: Option<u32>,
    /// Bytes that leave in one.
    pub bytes: Option<Bytes>,
}

impl OptionValue for TypedSlot {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let timing = if words.take_if("distribution") {
            let (of, distribution) = ("slot distribution", words.scalar("slot distribution")?);
            SlotTiming::Distributed { distribution, delay: words.scalar(of)?, jitter: words.scalar(of)? }
        } else {
            SlotTiming::Between { min: words.scalar(name)?, max: words.optional(name)? }
        };
        let mut slot = Self { timing, packets: None, bytes: None };
        loop {
            if words.take_if("packets") {
                words.first_time(slot.packets.as_ref(), "packets")?;
                slot.packets = Some(words.scalar("packets")?);
            } else if words.take_if("bytes") {
                words.first_time(slot.bytes.as_ref(), "bytes")?;
                slot.bytes = Some(words.scalar("bytes")?);
            } else {
                return Ok(slot);
            }
        }
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        match &self.timing {
            SlotTiming::Between { min, max } => {
                min.show(out)?;
                max.show(out)?;
            }
            SlotTiming::Distributed { distribution, delay, jitter } => {
                distribution.put("distribution", out)?;
                delay.show(out)?;
                jitter.show(out)?;
            }
        }
        self.packets.iter().try_for_each(|packets| packets.put("packets", out))?;
        self.bytes.iter().try_for_each(|bytes| bytes.put("bytes", out))
    }
}
