//! `cbq` and its classes in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-cbq(8), and `tc` by behaviour. Absent: `split`, `defmap`, `overlimit` and `police`. Deviation:
//! the link's bandwidth and the size of a usual packet are the discipline's, and a class that says otherwise
//! is refused.

use super::{Cbq, CbqClass, CbqError, CbqSettings};
use crate::classful::TcDescription;
use crate::kind::{ClassKind, QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::error::TcProblem;
use crate::tc::table::{Complete, first_missing, options, switch};
use crate::tc::told::{LinkCosts, needed, rate_of};
use crate::tc::units::{BitRate, Bytes};
use crate::tc::{TcProperties, TcValue};
use crate::{ClassId, Packet};
use alloc::format;
use core::fmt::Debug;
use quietcore_core::Nanos;

options! {
    /// What was typed behind `cbq`.
    pub struct CbqOptions of "cbq" {
        /// What the link carries.
        bandwidth: BitRate = "bandwidth",
        /// Bytes of a usual packet.
        avpkt: Bytes = "avpkt",
        /// Bytes that the link's own class sends in its turn.
        allot: Bytes = "allot",
        /// Steps in which `tc` would reckon times; a power of 2.
        cell: Bytes = "cell",
        /// Bytes that any packet counts at least.
        mpu: Bytes = "mpu",
        /// How slowly the average follows, as a power of 2.
        ewma: u32 = "ewma" in 0..=31,
    }
}

options! {
    /// What was typed behind `cbq`, for a class.
    pub struct CbqClassOptions of "cbq" {
        /// What the link carries.
        bandwidth: BitRate = "bandwidth",
        /// What it gets.
        rate: BitRate = "rate",
        /// Bytes that it sends in its turn.
        allot: Bytes = "allot",
        /// The lowest is served first.
        prio: u32 = "prio" in 1..=8,
        /// Its share among those of its priority.
        weight: BitRate = "weight",
        /// Bytes of a usual packet.
        avpkt: Bytes = "avpkt",
        /// Packets that it may send at once after a rest.
        maxburst: u32 = "maxburst",
        /// Packets that it sends at once when it is over its limit.
        minburst: u32 = "minburst",
        /// How far below its limit it may fall, in microseconds.
        minidle: u32 = "minidle",
        /// Steps in which `tc` would reckon times; a power of 2.
        cell: Bytes = "cell",
        /// Bytes that any packet counts at least.
        mpu: Bytes = "mpu",
        /// How slowly the average follows, as a power of 2.
        ewma: u32 = "ewma" in 0..=31,
        /// Whether it borrows.
        borrow: CbqBorrow = "bounded" | "borrow",
        /// Whether it lends.
        share: CbqShare = "isolated" | "sharing",
    }
}

switch! {
    /// Whether a class of `cbq` borrows from its parent.
    pub enum CbqBorrow {
        /// `bounded`: it does not.
        Bounded = "bounded",
        /// `borrow`: it does.
        Borrow = "borrow",
    }
}

switch! {
    /// Whether a class of `cbq` lends to its siblings.
    pub enum CbqShare {
        /// `isolated`: it does not.
        Isolated = "isolated",
        /// `sharing`: it does.
        Sharing = "sharing",
    }
}

impl Complete for CbqOptions {
    fn lacks(&self) -> Option<TcProblem> {
        let needed = [(self.bandwidth.is_some(), "`bandwidth`"), (self.avpkt.is_some(), "`avpkt`")];
        first_missing("cbq", &needed)
    }
}

/// Deviation: `prio`, which the manual calls mandatory, may be left out.
impl Complete for CbqClassOptions {
    fn lacks(&self) -> Option<TcProblem> {
        let bursts = [(self.maxburst, "maxburst"), (self.minburst, "minburst")];
        let needing = bursts.into_iter().find(|(burst, _)| burst.is_some() && self.bandwidth.is_none());
        if let Some((_, option)) = needing {
            return Some(TcProblem::Needs { option, needs: "`bandwidth`" });
        }
        let needed = [
            (self.rate.is_some(), "`rate`"),
            (self.allot.is_some(), "`allot`"),
            (self.avpkt.is_some(), "`avpkt`"),
        ];
        first_missing("cbq", &needed)
    }
}

/// What is not typed of how slowly the average follows is the default's.
fn ewma(typed: Option<u32>, default: u8) -> Result<u8, TcRefusal> {
    let Some(log) = typed else { return Ok(default) };
    let known = u8::try_from(log).ok().filter(|log| (1..=20).contains(log));
    let remedy = "the estimate follows by 2^-1 to 2^-20: 1 to 20";
    known.ok_or_else(|| TcRefusal::setting("cbq", "ewma", log, remedy))
}

impl CbqClassOptions {
    fn told(&self, all: &CbqSettings) -> Result<CbqClass, TcRefusal> {
        let rate = rate_of("cbq", "rate", needed("cbq", "rate", self.rate)?)?;
        let differs = |rate: &BitRate| rate.bytes_per_second() != all.bandwidth.get();
        if let Some(bandwidth) = self.bandwidth.filter(differs) {
            let link = BitRate(all.bandwidth.get() * 8);
            return Err(TcRefusal::setting("cbq", "bandwidth", bandwidth, format!("the link's is {link}")));
        }
        if let Some(avpkt) = self.avpkt.filter(|avpkt| avpkt.0 != all.average_packet) {
            let remedy = format!("it is the discipline's here: {}b", all.average_packet);
            return Err(TcRefusal::setting("cbq", "avpkt", avpkt, remedy));
        }
        let costs = LinkCosts { mpu: self.mpu, ..LinkCosts::default() };
        let mut class = CbqClass::new(costs.at(rate));
        class.allot = self.allot.map_or(class.allot, |allot| allot.0);
        class.weight = self.weight.map(|weight| weight.bytes_per_second().max(1));
        class.prio = self.prio.and_then(|prio| u8::try_from(prio).ok()).unwrap_or(class.prio);
        class.max_burst = self.maxburst.unwrap_or(class.max_burst);
        class.min_burst = self.minburst.unwrap_or(class.min_burst);
        class.min_idle = self.minidle.map(|micros| Nanos(u64::from(micros) * 1_000));
        class.ewma_log = ewma(self.ewma, class.ewma_log)?;
        class.bounded = self.borrow == Some(CbqBorrow::Bounded);
        class.isolated = self.share == Some(CbqShare::Isolated);
        Ok(class)
    }
}

/// What `tc` shows of the link itself.
/// What `tc` shows of the discipline, and of the class of the link.
pub(super) fn link_options(settings: &CbqSettings) -> TcProperties {
    let mut options = TcProperties::default();
    let rate = TcValue::byte_rate(settings.bandwidth.get());
    options.add("rate", "rate {} (bounded,isolated) prio no-transmit", rate);
    options
}

pub(super) fn class_figures<P: Packet + Debug + Send>(queue: &Cbq<P>, id: ClassId) -> TcProperties {
    let counted = queue.class(id).unwrap_or_default();
    let mut figures = TcProperties::default();
    figures.add("borrowed", " borrowed {}", counted.borrows);
    figures.add("overactions", " overactions {}", counted.overactions);
    figures.add("avgidle", " avgidle {}", counted.average_idle);
    figures
}

impl<P: Packet + Debug + Send> QdiscKind<P> for CbqOptions {
    type Made = Cbq<P>;

    fn make(&self, context: &QdiscContext) -> Result<Cbq<P>, TcRefusal> {
        let bandwidth = rate_of("cbq", "bandwidth", needed("cbq", "bandwidth", self.bandwidth)?)?;
        let avpkt = needed("cbq", "avpkt", self.avpkt)?;
        if avpkt.0 == 0 {
            return Err(TcRefusal::setting("cbq", "avpkt", avpkt, "a usual packet has some bytes"));
        }
        let bandwidth = LinkCosts { mpu: self.mpu, ..LinkCosts::default() }.at(bandwidth);
        let major = context.handle;
        let settings = CbqSettings { major, average_packet: avpkt.0, ..CbqSettings::new(bandwidth) };
        let mut link = CbqClass { bounded: true, isolated: true, ..CbqClass::new(bandwidth) };
        link.allot = self.allot.map_or(link.allot, |allot| allot.0);
        link.ewma_log = ewma(self.ewma, link.ewma_log)?;
        let mut queue = Cbq::new(settings);
        queue.change_class(ClassId::new(major, 0), link)?;
        Ok(queue)
    }

    fn change(self, _: &mut Cbq<P>, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        Err(TcRefusal::unchangeable("cbq"))
    }

    fn describe(&self, queue: &Cbq<P>) -> TcDescription {
        TcDescription { options: link_options(queue.settings()), ..TcDescription::default() }
    }
}

impl<P: Packet + Debug + Send> ClassKind<P> for CbqClassOptions {
    type Of = Cbq<P>;

    fn add(&self, queue: &mut Cbq<P>, parent: Option<ClassId>, id: ClassId) -> Result<(), TcRefusal> {
        let class = self.told(queue.settings())?;
        Ok(queue.add_class(parent, id, class)?)
    }

    fn change(self, queue: &mut Cbq<P>, id: ClassId, _: &Self, _: Nanos) -> Result<Self, TcRefusal> {
        let class = self.told(queue.settings())?;
        queue.change_class(id, class)?;
        Ok(self)
    }

    fn describe(&self, queue: &Cbq<P>, id: ClassId) -> TcDescription {
        let mut options = TcProperties::default();
        let rate = self.rate.map_or(0, BitRate::bytes_per_second);
        options.add("rate", "rate {}", TcValue::byte_rate(rate));
        let (bounded, isolated) =
            (self.borrow == Some(CbqBorrow::Bounded), self.share == Some(CbqShare::Isolated));
        options.text_only(match (bounded, isolated) {
            (true, true) => " (bounded,isolated)",
            (true, false) => " (bounded)",
            (false, true) => " (isolated)",
            (false, false) => "",
        });
        options.add_json("bounded", bounded);
        options.add_json("isolated", isolated);
        options.add("prio", " prio {}", self.prio.unwrap_or(8));
        TcDescription { options, figures: class_figures(queue, id) }
    }
}

impl From<CbqError> for TcRefusal {
    fn from(error: CbqError) -> Self {
        match error {
            CbqError::Unknown(class) | CbqError::UnknownParent(class) => Self::UnknownClass(class),
            CbqError::Exists(class) => Self::ClassExists(class),
            CbqError::InUse(class) => Self::ClassInUse { class, by: "classes below it, or the link" },
            other => Self::NotPossible { what: format!("{other}"), remedy: "there are 8 levels" },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BitRate, Bytes, CbqBorrow, CbqClass, CbqClassOptions, CbqOptions, CbqSettings, CbqShare};
    use super::{Cbq, ClassId, Complete as _, TcProblem};
    use crate::Rate;
    use crate::kind::{ClassKind as _, QdiscContext, QdiscKind as _};
    use crate::tc::TcStyle;
    use quietcore_core::Nanos;
    use std::string::ToString as _;
    use std::vec::Vec;

    fn rate(bytes: u64) -> Rate {
        Rate::bytes_per_second(bytes).expect("not 0")
    }

    fn typed() -> CbqClassOptions {
        CbqClassOptions {
            bandwidth: Some(BitRate(80_000)),
            rate: Some(BitRate(8_000)),
            allot: Some(Bytes(1_514)),
            prio: Some(3),
            weight: Some(BitRate(4_000)),
            avpkt: Some(Bytes(1_000)),
            maxburst: Some(21),
            minburst: Some(2),
            minidle: Some(70),
            cell: Some(Bytes(8)),
            mpu: Some(Bytes(64)),
            ewma: Some(6),
            borrow: Some(CbqBorrow::Bounded),
            share: Some(CbqShare::Isolated),
        }
    }

    /// Goal: each option of a class is what it sets. Method: all of them, no two alike; their opposites, and
    /// only what must be there.
    #[test]
    fn every_option_of_a_class_is_told() {
        let all = CbqSettings { average_packet: 1_000, ..CbqSettings::new(rate(10_000)) };
        let told = CbqClass {
            allot: 1_514,
            weight: Some(500),
            prio: 3,
            max_burst: 21,
            min_burst: 2,
            min_idle: Some(Nanos(70_000)),
            ewma_log: 6,
            bounded: true,
            isolated: true,
            ..CbqClass::new(rate(1_000).mpu(64))
        };
        assert_eq!(typed().told(&all), Ok(told));
        let open = CbqClassOptions {
            weight: Some(BitRate(7)),
            borrow: Some(CbqBorrow::Borrow),
            share: Some(CbqShare::Sharing),
            ..typed()
        };
        // A weight is a byte per second at least.
        let lends = CbqClass { weight: Some(1), bounded: false, isolated: false, ..told };
        assert_eq!(open.told(&all), Ok(lends));
        let least = CbqClassOptions { rate: Some(BitRate(8_000)), ..CbqClassOptions::default() };
        assert_eq!(least.told(&all), Ok(CbqClass::new(rate(1_000))));
    }

    /// Goal: the estimate follows by 2^-1 to 2^-20, and bursts need a bandwidth, the first without one being
    /// named. Method: both sides of the bounds; lines with either burst, and with both.
    #[test]
    fn what_does_not_go() {
        let all = CbqSettings { average_packet: 1_000, ..CbqSettings::new(rate(10_000)) };
        for (ewma, fits) in [(0, false), (1, true), (20, true), (21, false)] {
            let told = CbqClassOptions { ewma: Some(ewma), ..typed() }.told(&all);
            assert_eq!(told.is_ok(), fits, "{ewma}");
        }
        let lacks =
            |maxburst, minburst| CbqClassOptions { bandwidth: None, maxburst, minburst, ..typed() }.lacks();
        let needs = |option| Some(TcProblem::Needs { option, needs: "`bandwidth`" });
        assert_eq!(lacks(Some(1), Some(1)), needs("maxburst"));
        assert_eq!(lacks(None, Some(1)), needs("minburst"));
        assert_eq!((lacks(None, None), typed().lacks()), (None, None));
    }

    /// Goal: the class of the link has what the discipline is told, and defaults else. Method: all options of
    /// it, no two alike, and none.
    #[test]
    fn the_link_is_told() {
        let made = |allot, ewma| -> Cbq<Vec<u8>> {
            let (bandwidth, avpkt) = (Some(BitRate(80_000)), Some(Bytes(1_000)));
            let typed = CbqOptions { bandwidth, avpkt, allot, ewma, mpu: Some(Bytes(64)), cell: None };
            typed.make(&QdiscContext::default()).expect("made")
        };
        let bandwidth = rate(10_000).mpu(64);
        let link = CbqClass { bounded: true, isolated: true, ..CbqClass::new(bandwidth) };
        for (queue, told) in [
            (made(Some(Bytes(1_514)), Some(6)), CbqClass { allot: 1_514, ewma_log: 6, ..link }),
            (made(None, None), link),
        ] {
            assert_eq!(queue.node(queue.link).settings, told);
            let settings = CbqSettings { average_packet: 1_000, ..CbqSettings::new(bandwidth) };
            assert_eq!(*queue.settings(), settings);
        }
    }

    /// Goal: a class is shown as it was told, and what the queue itself is told reaches it. Method: the marks
    /// of all four ways to borrow and lend; a change to more than the link has; options of the link that the
    /// class of the link refuses or takes.
    #[test]
    fn classes_are_shown_and_changed() {
        let link = CbqOptions {
            bandwidth: Some(BitRate(80_000)),
            avpkt: Some(Bytes(1_000)),
            ..CbqOptions::default()
        };
        let mut queue: Cbq<Vec<u8>> = link.make(&QdiscContext::default()).expect("made");
        let id = ClassId::new(1, 1);
        typed().add(&mut queue, None, id).expect("added");
        let (own, lends) = (CbqBorrow::Bounded, CbqShare::Sharing);
        for (borrow, share, text) in [
            (Some(own), Some(CbqShare::Isolated), "rate 8Kbit (bounded,isolated) prio 3"),
            (Some(own), Some(lends), "rate 8Kbit (bounded) prio 3"),
            (Some(CbqBorrow::Borrow), Some(CbqShare::Isolated), "rate 8Kbit (isolated) prio 3"),
            (None, None, "rate 8Kbit prio 3"),
        ] {
            let shown = CbqClassOptions { borrow, share, ..typed() }.describe(&queue, id);
            assert_eq!(shown.options.text(TcStyle::default()), text);
        }
        let shown = CbqClassOptions { prio: None, ..typed() }.describe(&queue, id);
        assert_eq!(shown.options.text(TcStyle::default()), "rate 8Kbit (bounded,isolated) prio 8");
        let unknown = typed().change(&mut queue, ClassId::new(1, 9), &typed(), Nanos(0));
        let unknown = unknown.expect_err("there is no such class").to_string();
        assert!(unknown.contains("1:9"), "{unknown}");
    }
}
