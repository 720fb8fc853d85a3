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
use crate::tc::text::byte_rate_text;
use crate::tc::told::{LinkCosts, needed, rate_of};
use crate::tc::units::{BitRate, Bytes};
use crate::{ClassId, Packet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
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
pub(super) fn link_text(settings: &CbqSettings) -> String {
    format!("rate {} (bounded,isolated) prio no-transmit", byte_rate_text(settings.bandwidth.get()))
}

/// What it has counted of a class besides what all disciplines count.
pub(super) fn class_notes<P: Packet + Debug + Send>(queue: &Cbq<P>, id: ClassId) -> Vec<String> {
    let counted = queue.class(id).unwrap_or_default();
    vec![format!(
        "borrowed {} overactions {} avgidle {}",
        counted.borrows, counted.overactions, counted.average_idle
    )]
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
        TcDescription { options: link_text(queue.settings()), ..TcDescription::default() }
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
        let rate = self.rate.map_or_else(String::new, |rate| byte_rate_text(rate.bytes_per_second()));
        let marks = match (self.borrow == Some(CbqBorrow::Bounded), self.share == Some(CbqShare::Isolated)) {
            (true, true) => " (bounded,isolated)",
            (true, false) => " (bounded)",
            (false, true) => " (isolated)",
            (false, false) => "",
        };
        let options = format!("rate {rate}{marks} prio {}", self.prio.unwrap_or(8));
        TcDescription { options, notes: class_notes(queue, id), ..TcDescription::default() }
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
