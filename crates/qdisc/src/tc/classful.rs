//! The options of disciplines with classes, and of their classes: `htb`, `hfsc`, `cbq`.
//!
//! Source: tc-htb(8), tc-hfsc(8), tc-cbq(8). Absent: `split`, `defmap`, `overlimit` and `police` of `cbq`,
//! `offload` of `htb`.

use super::error::{Problem, TcError};
use super::plain::Burst;
use super::scalar::Show;
use super::table::{Complete, first_missing, options, switch};
use super::units::{BitRate, Bytes, Minor};
use super::value::OptionValue;
use super::words::LineWords;
use crate::LinkLayer;
use core::fmt::{self, Formatter};
use quietcore_core::Nanos;

options! {
    /// What was typed behind `htb`.
    ///
    /// ```
    /// use quietcore_qdisc::tc::{HtbOptions, Minor};
    ///
    /// let typed = HtbOptions { default: Some(Minor(0x30)), ..HtbOptions::default() };
    /// assert_eq!(typed.to_string(), "htb default 30");
    /// ```
    pub struct HtbOptions of "htb" {
        /// The class of what no filter knows.
        default: Minor = "default",
        /// What rates are divided by to get quanta.
        r2q: u32 = "r2q",
        /// Packets of no class that it holds at most.
        direct_qlen: u32 = "direct_qlen",
    }
}

options! {
    /// What was typed behind `htb`, for a class.
    ///
    /// ```
    /// use quietcore_qdisc::tc::{BitRate, HtbClassOptions};
    ///
    /// let typed = HtbClassOptions { rate: Some(BitRate(8_000)), prio: Some(7), ..Default::default() };
    /// assert_eq!(typed.to_string(), "htb rate 8kbit prio 7");
    /// ```
    pub struct HtbClassOptions of "htb" {
        /// What it is sure of.
        rate: BitRate = "rate",
        /// The most that it gets.
        ceil: BitRate = "ceil",
        /// Bytes above its rate.
        burst: Burst = "burst" | "buffer" | "maxburst",
        /// Bytes above its most.
        cburst: Burst = "cburst" | "cbuffer" | "cmaxburst",
        /// Who is served first: the lowest.
        prio: u32 = "prio" in 0..=7,
        /// Bytes that it sends in its turn.
        quantum: Bytes = "quantum",
        /// The longest packet.
        mtu: Bytes = "mtu",
        /// Bytes that any packet counts at least.
        mpu: Bytes = "mpu",
        /// Bytes more per packet.
        overhead: u16 = "overhead",
        /// How packets are packed.
        linklayer: LinkLayer = "linklayer",
    }
}

impl Complete for HtbOptions {}

impl Complete for HtbClassOptions {
    fn lacks(&self) -> Option<Problem> {
        first_missing("htb", &[(self.rate.is_some(), "`rate`")])
    }
}

options! {
    /// What was typed behind `hfsc`.
    ///
    /// ```
    /// # use quietcore_qdisc::tc::{HfscOptions, Minor};
    /// assert_eq!(HfscOptions { default: Some(Minor(16)) }.to_string(), "hfsc default 10");
    /// ```
    pub struct HfscOptions of "hfsc" {
        /// The class of what no filter knows.
        default: Minor = "default",
    }
}

options! {
    /// What was typed behind `hfsc`, for a class.
    ///
    /// ```
    /// use quietcore_qdisc::tc::{BitRate, Curve, HfscClassOptions};
    ///
    /// let rate = Curve::Work { umax: None, dmax: None, rate: BitRate(1_000_000) };
    /// let typed = HfscClassOptions { sc: Some(rate), ..HfscClassOptions::default() };
    /// assert_eq!(typed.to_string(), "hfsc sc rate 1mbit");
    /// ```
    pub struct HfscClassOptions of "hfsc" {
        /// What it gets in any case.
        rt: Curve = "rt",
        /// Its share of what is left.
        ls: Curve = "ls",
        /// Both at once.
        sc: Curve = "sc",
        /// The most that it gets.
        ul: Curve = "ul",
    }
}

impl Complete for HfscOptions {}

impl Complete for HfscClassOptions {
    fn lacks(&self) -> Option<Problem> {
        let Self { rt, ls, sc, ul } = self;
        match () {
            () if sc.is_some() && rt.is_some() => Some(Problem::Excludes { option: "rt", other: "sc" }),
            () if sc.is_some() && ls.is_some() => Some(Problem::Excludes { option: "ls", other: "sc" }),
            () if ul.is_some() && sc.is_none() && ls.is_none() => {
                Some(Problem::Needs { option: "ul", needs: "`ls` or `sc`" })
            }
            () => {
                let curve = rt.is_some() || ls.is_some() || sc.is_some();
                first_missing("hfsc", &[(curve, "a curve: `rt`, `ls` or `sc`")])
            }
        }
    }
}

/// A service curve of two pieces.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::tc::{BitRate, Curve};
///
/// let linear = Curve::Slopes { m1: None, d: None, m2: BitRate(8_000) };
/// assert_ne!(linear, Curve::Slopes { m1: None, d: Some(Nanos(1_000)), m2: BitRate(8_000) });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// `[[m1 RATE] d TIME] m2 RATE`: the first slope for so long, then the second.
    Slopes {
        /// The first slope; only with `d`.
        m1: Option<BitRate>,
        /// How long it lasts.
        d: Option<Nanos>,
        /// The second slope.
        m2: BitRate,
    },
    /// `[[umax BYTES] dmax TIME] rate RATE`: so much within so long, then the rate.
    Work {
        /// How much; only with `dmax`.
        umax: Option<Bytes>,
        /// How long it may take.
        dmax: Option<Nanos>,
        /// What follows.
        rate: BitRate,
    },
}

/// Takes `name VALUE`, if that is what comes.
fn take_named<T: OptionValue>(words: &mut LineWords<'_>, name: &'static str) -> Result<Option<T>, TcError> {
    if words.take_if(name) { T::take(words, name).map(Some) } else { Ok(None) }
}

/// Takes `name VALUE`, which has to come.
fn take_last(words: &mut LineWords<'_>, name: &'static str, of: &'static str) -> Result<BitRate, TcError> {
    if let Some(rate) = take_named(words, name)? {
        return Ok(rate);
    }
    if words.is_empty() {
        return Err(words.at_end(Problem::MissingValue { option: of }, &[name]));
    }
    Err(words.ahead(Problem::Unknown { role: "part of a curve" }, &[name]))
}

impl OptionValue for Curve {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let allowed = ["m1", "d", "m2", "umax", "dmax", "rate"];
        match words.peek() {
            Some("m1" | "d" | "m2") => {
                let m1 = take_named(words, "m1")?;
                let d = take_named(words, "d")?;
                if m1.is_some() && d.is_none() {
                    return Err(words.ahead(Problem::Needs { option: "m1", needs: "`d` behind it" }, &["d"]));
                }
                Ok(Self::Slopes { m1, d, m2: take_last(words, "m2", name)? })
            }
            Some("umax" | "dmax" | "rate") => {
                let umax = take_named(words, "umax")?;
                let dmax = take_named(words, "dmax")?;
                if umax.is_some() && dmax.is_none() {
                    let problem = Problem::Needs { option: "umax", needs: "`dmax` behind it" };
                    return Err(words.ahead(problem, &["dmax"]));
                }
                Ok(Self::Work { umax, dmax, rate: take_last(words, "rate", name)? })
            }
            Some(_) => Err(words.ahead(Problem::Unknown { role: "part of a curve" }, &allowed)),
            None => Err(words.at_end(Problem::MissingValue { option: name }, &allowed)),
        }
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        fn some(value: Option<&impl Show>, name: &str, out: &mut Formatter<'_>) -> fmt::Result {
            value.map_or(Ok(()), |value| {
                write!(out, " {name}")?;
                value.show(out)
            })
        }
        write!(out, " {name}")?;
        match self {
            Self::Slopes { m1, d, m2 } => {
                some(m1.as_ref(), "m1", out)?;
                some(d.as_ref(), "d", out)?;
                m2.put("m2", out)
            }
            Self::Work { umax, dmax, rate } => {
                some(umax.as_ref(), "umax", out)?;
                some(dmax.as_ref(), "dmax", out)?;
                rate.put("rate", out)
            }
        }
    }
}

options! {
    /// What was typed behind `cbq`.
    ///
    /// ```
    /// use quietcore_qdisc::tc::{BitRate, Bytes, CbqOptions};
    ///
    /// let (bandwidth, avpkt) = (Some(BitRate(10_000_000)), Some(Bytes(1_000)));
    /// let typed = CbqOptions { bandwidth, avpkt, ..CbqOptions::default() };
    /// assert_eq!(typed.to_string(), "cbq bandwidth 10mbit avpkt 1000b");
    /// ```
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
    ///
    /// ```
    /// use quietcore_qdisc::tc::{CbqBorrow, CbqClassOptions};
    ///
    /// let typed = CbqClassOptions { borrow: Some(CbqBorrow::Bounded), ..CbqClassOptions::default() };
    /// assert_eq!(typed.to_string(), "cbq bounded");
    /// ```
    pub struct CbqClassOptions of "cbq" {
        /// What the link carries.
        bandwidth: BitRate = "bandwidth",
        /// What it gets.
        rate: BitRate = "rate",
        /// Bytes that it sends in its turn.
        allot: Bytes = "allot",
        /// Who is served first: the lowest.
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
    ///
    /// ```
    /// assert_ne!(quietcore_qdisc::tc::CbqBorrow::Bounded, quietcore_qdisc::tc::CbqBorrow::Borrow);
    /// ```
    pub enum CbqBorrow {
        /// `bounded`: it does not.
        Bounded = "bounded",
        /// `borrow`: it does.
        Borrow = "borrow",
    }
}

switch! {
    /// Whether a class of `cbq` lends to its siblings.
    ///
    /// ```
    /// assert_ne!(quietcore_qdisc::tc::CbqShare::Isolated, quietcore_qdisc::tc::CbqShare::Sharing);
    /// ```
    pub enum CbqShare {
        /// `isolated`: it does not.
        Isolated = "isolated",
        /// `sharing`: it does.
        Sharing = "sharing",
    }
}

impl Complete for CbqOptions {
    fn lacks(&self) -> Option<Problem> {
        let needed = [(self.bandwidth.is_some(), "`bandwidth`"), (self.avpkt.is_some(), "`avpkt`")];
        first_missing("cbq", &needed)
    }
}

/// Deviation: `prio`, which the manual calls mandatory, may be left out.
impl Complete for CbqClassOptions {
    fn lacks(&self) -> Option<Problem> {
        let bursts = [(self.maxburst, "maxburst"), (self.minburst, "minburst")];
        let needing = bursts.into_iter().find(|(burst, _)| burst.is_some() && self.bandwidth.is_none());
        if let Some((_, option)) = needing {
            return Some(Problem::Needs { option, needs: "`bandwidth`" });
        }
        let needed = [
            (self.rate.is_some(), "`rate`"),
            (self.allot.is_some(), "`allot`"),
            (self.avpkt.is_some(), "`avpkt`"),
        ];
        first_missing("cbq", &needed)
    }
}
