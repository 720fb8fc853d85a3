//! `red` in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-red(8), and `tc` by behaviour: a change is told all of it, as a line that makes one.

use super::average::RedCurve;
use super::typed::{MarkProbability, TypedCurve, shown_probability};
use super::{Red, RedError, RedSettings, RedStatistics};
use crate::Packet;
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind, RandomWords};
use crate::refusal::TcRefusal;
use crate::tc::error::TcProblem;
use crate::tc::table::{Complete, first_missing, options, switch};
use crate::tc::units::{BitRate, Bytes};
use crate::tc::{TcProperties, TcValue};
use alloc::format;
use alloc::string::ToString as _;
use core::fmt::Debug;

options! {
    /// What was typed behind `red`.
    pub struct RedOptions of "red" {
        /// Bytes that it holds at most.
        limit: Bytes = "limit",
        /// The average from which on packets are marked.
        min: Bytes = "min",
        /// The average from which on all are.
        max: Bytes = "max",
        /// Bytes that packets have, about.
        avpkt: Bytes = "avpkt",
        /// Packets that may come at once.
        burst: u32 = "burst",
        /// The probability of a mark at the upper limit.
        probability: MarkProbability = "probability",
        /// The rate at which packets would leave an empty queue.
        bandwidth: BitRate = "bandwidth",
        /// Whether it marks instead of dropping.
        ecn: RedMarks = "ecn",
        /// Whether above the upper limit it drops nonetheless.
        harddrop: RedHardDrop = "harddrop",
        /// Whether what cannot be marked passes.
        nodrop: RedNoDrop = "nodrop",
        /// Whether the probability follows the average.
        adaptive: RedAdaptive = "adaptive" | "adaptative",
    }
}

switch! {
    /// Whether `red` marks.
    pub enum RedMarks {
        /// `ecn`.
        On = "ecn",
    }
}

switch! {
    /// Whether it drops above the upper limit.
    pub enum RedHardDrop {
        /// `harddrop`.
        On = "harddrop",
    }
}

switch! {
    /// Whether what cannot be marked passes.
    pub enum RedNoDrop {
        /// `nodrop`.
        On = "nodrop",
    }
}

switch! {
    /// Whether the probability follows the average.
    pub enum RedAdaptive {
        /// `adaptive`.
        On = "adaptive",
        /// The same.
        Adaptative = "adaptative",
    }
}

impl Complete for RedOptions {
    fn lacks(&self) -> Option<TcProblem> {
        let is_there = |bytes: Option<Bytes>| bytes.is_some_and(|bytes| bytes.0 > 0);
        let needed = [(is_there(self.limit), "limit"), (is_there(self.avpkt), "avpkt")];
        first_missing("red", &needed).or_else(|| self.curve().err())
    }
}

impl RedOptions {
    fn curve(&self) -> Result<RedCurve, TcProblem> {
        let Self { min, max, burst, probability, bandwidth, .. } = *self;
        let (limit, packet) = (self.limit.map_or(0, |bytes| bytes.0), self.avpkt.map_or(1, |bytes| bytes.0));
        TypedCurve { limit, min, max, packet, burst, probability, bandwidth }.told()
    }

    fn told(&self) -> Result<RedSettings, TcRefusal> {
        let limit = self.limit.map_or(0, |bytes| bytes.0);
        let curve = self.curve();
        let curve =
            curve.map_err(|problem| TcRefusal::setting("red", "limit", limit, format!("{problem:?}")))?;
        Ok(RedSettings {
            limit,
            curve,
            ecn: self.ecn.is_some(),
            harddrop: self.harddrop.is_some(),
            nodrop: self.nodrop.is_some(),
            adaptive: self.adaptive.is_some(),
        })
    }
}

/// What a red says of its settings.
fn refused(error: RedError) -> TcRefusal {
    match error {
        RedError::Limits { min, .. } => TcRefusal::setting("red", "min", min, error.to_string()),
        RedError::Weight(log) => TcRefusal::setting("red", "burst", log, error.to_string()),
        RedError::NoDrop => {
            let what = "sch_red: nodrop mode is only meaningful with ECN".into();
            TcRefusal::NotPossible { what, remedy: "add `ecn`, or leave `nodrop` out" }
        }
    }
}

impl<P: Packet + Debug + Send> QdiscKind<P> for RedOptions {
    type Made = Red<P, RandomWords>;

    fn make(&self, context: &QdiscContext) -> Result<Self::Made, TcRefusal> {
        let random = (context.random)(context.seed);
        Red::new(self.told()?, random, context.now).map_err(refused)
    }

    fn change(self, queue: &mut Self::Made, _: &Self, context: &QdiscContext) -> Result<Self, TcRefusal> {
        queue.change(self.told()?, context.now).map_err(refused)?;
        Ok(self)
    }

    fn describe(&self, queue: &Self::Made) -> TcDescription {
        let options = shown(queue.settings(), queue.curve());
        TcDescription { options, figures: figures(queue.red_statistics()) }
    }
}

fn shown(told: &RedSettings, curve: &RedCurve) -> TcProperties {
    let mut shown = TcProperties::default();
    shown.add("limit", "limit {} ", TcValue::size(told.limit.into()));
    shown.add("min", "min {} ", TcValue::size(curve.min.into()));
    shown.add("max", "max {} ", TcValue::size(curve.max.into()));
    shown.flag("ecn", "ecn ", told.ecn);
    shown.flag("harddrop", "harddrop ", told.harddrop);
    shown.flag("adaptive", "adaptive ", told.adaptive);
    shown.flag("nodrop", "nodrop ", told.nodrop);
    shown.details(|shown| {
        shown.add("ewma", "ewma {} ", curve.weight_log);
        shown.add("probability", "probability {} ", shown_probability(curve.probability));
        shown.add("Scell_log", "Scell_log {}", curve.idle.step_log());
    });
    shown
}

/// What it has counted; `other` is always 0, as in the kernel.
fn figures(counted: RedStatistics) -> TcProperties {
    let mut figures = TcProperties::default();
    figures.add("marked", "  marked {}", counted.marks);
    figures.add("early", " early {}", counted.early_drops);
    figures.add("pdrop", " pdrop {}", counted.inner_drops);
    figures.add("other", " other {} ", 0_u32);
    figures
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Red, RedNoDrop, RedOptions, RedStatistics, figures};
    use crate::kind::{QdiscContext, QdiscKind as _};
    use crate::tc::TcStyle;
    use std::string::ToString as _;
    use std::vec::Vec;

    /// Goal: each count stands behind its own name. Method: counts, no two alike.
    #[test]
    fn every_count_has_its_name() {
        let counted = RedStatistics { marks: 1, early_drops: 2, inner_drops: 3 };
        assert_eq!(figures(counted).text(TcStyle::default()), "  marked 1 early 2 pdrop 3 other 0 ");
    }

    /// Goal: what cannot be is refused with the reason. Method: `nodrop` alone.
    #[test]
    fn nodrop_is_refused_without_ecn() {
        let (limit, avpkt, nodrop) = (Some(Bytes(60_000)), Some(Bytes(500)), Some(RedNoDrop::On));
        let options = RedOptions { limit, avpkt, nodrop, ..RedOptions::default() };
        let made = options.make(&QdiscContext::default()).map(|_: Red<Vec<u8>, _>| ());
        assert_eq!(
            made.map_err(|refusal| refusal.to_string()),
            Err("sch_red: nodrop mode is only meaningful with ECN; add `ecn`, or leave `nodrop` out".into())
        );
    }
}
