//! The grammar of `tc`: from a line that somebody typed to plain data, and back.
//!
//! [`parse`] reads one line, [`parse_script`] several. What comes out is what was typed: defaults are the
//! business of who carries a [`Command`] out, and so is what exists. [`TcError`] shows the line, marks the
//! word, and says what may stand there. A command's text ([`Display`](core::fmt::Display)) is canonical:
//! full names, the largest unit without a fraction.
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
//! Deliberately absent: quotes, variables and loops of a shell; `ingress`; everything that asks a device.
//! Source: iproute2's manual, tc(8) and the page of each kind, by behaviour; deviations are told in each
//! file.

mod classful;
mod command;
mod error;
mod filter;
mod kinds;
mod line;
mod netem;
mod number;
mod parent;
mod plain;
mod scalar;
mod script;
mod table;
#[cfg(test)]
mod tests;
mod units;
mod value;
mod words;

pub use classful::{
    CbqBorrow, CbqClassOptions, CbqOptions, CbqShare, Curve, HfscClassOptions, HfscOptions, HtbClassOptions,
    HtbOptions,
};
pub use command::{ClassCommand, Command, Estimation, Object, QdiscCommand, ShowCommand, Verb};
pub use error::{Problem, TcError};
pub use filter::{Classifier, FilterCommand, FilterVerb, Match, Protocol};
pub use kinds::{ClassOptions, QdiscOptions};
pub use line::parse;
pub use netem::{Chance, Delay, Distribution, Ecn, LinkRate, Loss, NetemOptions, Slot, SlotTiming};
pub use parent::Place;
pub use plain::{
    BeyondHorizon, BfifoOptions, Burst, FqOptions, MqOptions, Pacing, PfifoOptions, Priomap, TbfOptions,
    Weights,
};
pub use script::{ScriptError, parse_script};
pub use units::{BitRate, Bytes, Minor, Percent};
