//! The grammar of `tc`: from a line as it is typed to plain data, and back.
//!
//! [`parse`] reads one line, [`parse_script`] several. What comes out is what was typed: defaults, and what
//! exists, are up to the program that carries a [`Command`] out. [`TcError`] shows the line, marks the word,
//! and says what may stand there. A command's text ([`Display`](core::fmt::Display)) is canonical: full
//! names, the largest unit without a fraction.
//!
//! ```
//! use quietcore_qdisc::tc::{Command, QdiscOptions, parse};
//!
//! let Ok(Command::Qdisc(typed)) = parse("tc q a dev lo root netem delay 100ms 10ms 25% loss 0.1%") else {
//!     panic!("a discipline")
//! };
//! let Some(QdiscOptions::Netem(netem)) = &typed.options else { panic!("netem") };
//! assert_eq!(netem.delay.and_then(|delay| delay.jitter), Some(quietcore_core::Nanos(10_000_000)));
//! assert_eq!(netem.limit, None, "nothing was typed");
//! ```
//!
//! Deliberately absent: quotes, variables and loops of a shell; everything that asks a device.
//! Source: iproute2's manual, tc(8) and the page of each kind, by behaviour; deviations are told in each
//! file.

mod action;
pub(crate) mod burst;
mod clsact;
mod command;
pub(crate) mod error;
mod filter;
mod json;
mod kinds;
mod line;
mod mq;
pub(crate) mod number;
mod parent;
mod property;
pub(crate) mod scalar;
mod script;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod text;
pub(crate) mod tick;
pub(crate) mod told;
pub(crate) mod units;
pub(crate) mod value;
mod verb;
pub(crate) mod words;

pub use crate::cake::tc::{
    CakeAckWord, CakeDirection, CakeIsolationWord, CakeNat, CakeOptions, CakeSplit, CakeTinsWord, CakeWash,
};
pub use crate::cake::typed::{CakeLink, CakeRate, CakeRtt};
pub use crate::cbq::tc::{CbqBorrow, CbqClassOptions, CbqOptions, CbqShare};
pub use crate::classful::TcDescription;
pub use crate::codel::tc::{CodelEcn, CodelOptions};
pub use crate::drr::tc::{DrrClassOptions, DrrOptions};
pub use crate::ets::tc::{EtsClassOptions, EtsOptions, EtsQuanta};
pub use crate::fifo::tc::{BfifoOptions, PfifoOptions};
pub use crate::fq::tc::{BeyondHorizon, FqOptions, Pacing, Priomap, Weights};
pub use crate::fq_codel::tc::{FqCodelOptions, TrafficClassMatch};
pub use crate::hfsc::tc::{Curve, HfscClassOptions, HfscOptions};
pub use crate::htb::tc::{HtbClassOptions, HtbOptions};
pub use crate::kind::{QdiscContext, RandomWords, SeedUse};
pub use crate::multiq::tc::MultiqOptions;
pub use crate::netem::options::{
    DistributionName, Ecn, LinkRate, NetemOptions, SlotTiming, TypedChance, TypedDelay, TypedLoss, TypedSlot,
};
pub use crate::noqueue::tc::NoqueueOptions;
pub use crate::pfifo_fast::tc::PfifoFastOptions;
pub use crate::prio::tc::{PrioBands, PrioOptions};
pub use crate::red::tc::{RedAdaptive, RedHardDrop, RedMarks, RedNoDrop, RedOptions};
pub use crate::red::typed::MarkProbability;
pub use crate::refusal::TcRefusal;
pub use crate::sfq::tc::{SfqHardDrop, SfqHeadDrop, SfqMarks, SfqOptions};
pub use crate::tbf::tc::TbfOptions;
pub use action::{
    ActionUse, FilterAction, FilterActions, GactOptions, MirredDirection, MirredKind, MirredOptions,
    PoliceOptions, describe_actions,
};
pub use burst::Burst;
pub use clsact::{CLSACT, CLSACT_EGRESS, CLSACT_INGRESS, ClsactOptions, IngressOptions};
pub use command::{ClassCommand, Command, Estimation, QdiscCommand, ShowCommand, TcObject};
pub use error::{TcError, TcProblem};
pub use filter::{
    BasicOptions, Classifier, FilterCommand, FilterHandle, FilterOffload, FlowerOptions, FwOptions,
    MatchAllOptions, Protocol, U32Options, describe_basic, describe_flower, describe_fw, describe_match_all,
};
pub use json::{JsonLayout, JsonWriter, TcJson};
pub use kinds::{ClassOptions, QdiscOptions};
pub use line::parse;
pub use mq::MqOptions;
pub use parent::TcParent;
pub use property::{TcProperties, TcStyle, TcValue};
pub use script::{ScriptError, parse_script};
pub use text::{rate_text, size_text, time_text};
pub use units::{BitRate, Bytes, Minor, Percent};
pub use verb::TcVerb;
