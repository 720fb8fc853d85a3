//! The kinds of disciplines, and of classes, each with its options.

use super::error::{Problem, TcError};
use super::table::{Demand, OptionTable, take};
use super::words::LineWords;
use super::{
    BfifoOptions, CbqClassOptions, CbqOptions, FqOptions, HfscClassOptions, HfscOptions, HtbClassOptions,
    HtbOptions, MqOptions, NetemOptions, PfifoOptions, TbfOptions,
};
use alloc::boxed::Box;
use core::fmt::{self, Formatter};

/// A kind of discipline, and what was typed behind it.
///
/// ```
/// use quietcore_qdisc::tc::{MqOptions, QdiscOptions};
///
/// let mq = QdiscOptions::Mq(MqOptions {});
/// assert_eq!((mq.kind(), mq.to_string().as_str()), ("mq", "mq"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QdiscOptions {
    /// First in, first out, counted in packets.
    Pfifo(PfifoOptions),
    /// First in, first out, counted in bytes.
    Bfifo(BfifoOptions),
    /// One discipline per queue of the device.
    Mq(MqOptions),
    /// An emulated network.
    Netem(Box<NetemOptions>),
    /// A token bucket.
    Tbf(Box<TbfOptions>),
    /// Fair queueing, paced.
    Fq(Box<FqOptions>),
    /// A hierarchy of token buckets.
    Htb(HtbOptions),
    /// Fair service curves in a hierarchy.
    Hfsc(HfscOptions),
    /// Classes by estimated idle time.
    Cbq(Box<CbqOptions>),
}

/// The names of all kinds.
pub(super) const QDISC_KINDS: &[&str] = &["pfifo", "bfifo", "mq", "netem", "tbf", "fq", "htb", "hfsc", "cbq"];
/// The kinds that have classes.
pub(super) const CLASS_KINDS: &[&str] = &["htb", "hfsc", "cbq"];

impl QdiscOptions {
    /// Takes what stands behind `kind`, if that is one.
    pub(super) fn take(
        kind: &str,
        words: &mut LineWords<'_>,
        demand: Demand,
    ) -> Option<Result<Self, TcError>> {
        Some(match kind {
            "pfifo" => take(words, demand).map(Self::Pfifo),
            "bfifo" => take(words, demand).map(Self::Bfifo),
            "mq" => take(words, demand).map(Self::Mq),
            "netem" => take(words, demand).map(|options| Self::Netem(Box::new(options))),
            "tbf" => take(words, demand).map(|options| Self::Tbf(Box::new(options))),
            "fq" => take(words, demand).map(|options| Self::Fq(Box::new(options))),
            "htb" => take(words, demand).map(Self::Htb),
            "hfsc" => take(words, demand).map(Self::Hfsc),
            "cbq" => take(words, demand).map(|options| Self::Cbq(Box::new(options))),
            _ => return None,
        })
    }

    /// The name of its kind.
    ///
    /// ```
    /// # use quietcore_qdisc::tc::{PfifoOptions, QdiscOptions};
    /// assert_eq!(QdiscOptions::Pfifo(PfifoOptions::default()).kind(), "pfifo");
    /// ```
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Pfifo(_) => PfifoOptions::KIND,
            Self::Bfifo(_) => BfifoOptions::KIND,
            Self::Mq(_) => MqOptions::KIND,
            Self::Netem(_) => NetemOptions::KIND,
            Self::Tbf(_) => TbfOptions::KIND,
            Self::Fq(_) => FqOptions::KIND,
            Self::Htb(_) => HtbOptions::KIND,
            Self::Hfsc(_) => HfscOptions::KIND,
            Self::Cbq(_) => CbqOptions::KIND,
        }
    }
}

/// Its kind, and what was typed behind it.
impl fmt::Display for QdiscOptions {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pfifo(options) => options.fmt(out),
            Self::Bfifo(options) => options.fmt(out),
            Self::Mq(options) => options.fmt(out),
            Self::Netem(options) => options.fmt(out),
            Self::Tbf(options) => options.fmt(out),
            Self::Fq(options) => options.fmt(out),
            Self::Htb(options) => options.fmt(out),
            Self::Hfsc(options) => options.fmt(out),
            Self::Cbq(options) => options.fmt(out),
        }
    }
}

/// A kind of class, and what was typed behind it.
///
/// ```
/// use quietcore_qdisc::tc::{BitRate, ClassOptions, HtbClassOptions};
///
/// let options = HtbClassOptions { rate: Some(BitRate(1_000)), ..HtbClassOptions::default() };
/// assert_eq!(ClassOptions::Htb(Box::new(options)).to_string(), "htb rate 1kbit");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassOptions {
    /// Of a hierarchy of token buckets.
    Htb(Box<HtbClassOptions>),
    /// Of fair service curves.
    Hfsc(Box<HfscClassOptions>),
    /// By estimated idle time.
    Cbq(Box<CbqClassOptions>),
}

impl ClassOptions {
    /// Takes what stands behind `kind`, if that has classes.
    pub(super) fn take(
        kind: &str,
        words: &mut LineWords<'_>,
        demand: Demand,
    ) -> Option<Result<Self, TcError>> {
        Some(match kind {
            "htb" => take(words, demand).map(|options| Self::Htb(Box::new(options))),
            "hfsc" => take(words, demand).map(|options| Self::Hfsc(Box::new(options))),
            "cbq" => take(words, demand).map(|options| Self::Cbq(Box::new(options))),
            _ if QDISC_KINDS.contains(&kind) => {
                Err(words.here(Problem::NotSupported { why: "it has no classes" }, CLASS_KINDS))
            }
            _ => return None,
        })
    }

    /// The name of its kind.
    ///
    /// ```
    /// # use quietcore_qdisc::tc::{ClassOptions, HfscClassOptions};
    /// assert_eq!(ClassOptions::Hfsc(Box::default()).kind(), "hfsc");
    /// ```
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Htb(_) => HtbClassOptions::KIND,
            Self::Hfsc(_) => HfscClassOptions::KIND,
            Self::Cbq(_) => CbqClassOptions::KIND,
        }
    }
}

/// Its kind, and what was typed behind it.
impl fmt::Display for ClassOptions {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Htb(options) => options.fmt(out),
            Self::Hfsc(options) => options.fmt(out),
            Self::Cbq(options) => options.fmt(out),
        }
    }
}
