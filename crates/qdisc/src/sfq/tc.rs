//! `sfq` in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-sfq(8), and `tc` by behaviour: what is too much is brought to the most that can be, a quantum
//! below 256 is 256, and one that runs cannot be changed.

use super::settings::{DEPTH_MAX, FLOWS_MAX};
use super::{Sfq, SfqError, SfqRed, SfqSettings, SfqStatistics};
use crate::Packet;
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind, RandomWords};
use crate::red::typed::{MarkProbability, TypedCurve, shown_probability};
use crate::refusal::TcRefusal;
use crate::tc::error::TcProblem;
use crate::tc::table::{Complete, options, switch};
use crate::tc::units::Bytes;
use crate::tc::{TcJson, TcProperties, TcValue};
use alloc::format;
use alloc::string::ToString as _;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// A smaller quantum is as good as this one.
const QUANTUM_MIN: u32 = 256;
/// Seconds of the longest period: in the kernel's ticks, of 4 ms, a signed number of 32 bits.
const PERTURB_MAX: i32 = i32::MAX / 250;
const SECOND: u64 = 1_000_000_000;
/// What packets are taken to have where no line says it.
const PACKET_BYTES: u32 = 1_000;

options! {
    /// What was typed behind `sfq`.
    pub struct SfqOptions of "sfq" {
        /// Packets that it holds at most.
        limit: u32 = "limit" in 2..=4_294_967_295,
        /// Seconds after which flows are spread anew.
        perturb: i32 = "perturb",
        /// Bytes that a flow sends in its turn.
        quantum: Bytes = "quantum",
        /// Buckets that flows are spread over.
        divisor: u32 = "divisor",
        /// Flows that can hold packets.
        flows: u32 = "flows",
        /// Packets that a flow holds at most.
        depth: u32 = "depth",
        /// Whether the first packet makes room.
        headdrop: SfqHeadDrop = "headdrop",
        /// Whether flows have random early detection, and what its other limits begin with.
        redflowlimit: u32 = "redflowlimit",
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
        /// Whether it marks instead of dropping.
        ecn: SfqMarks = "ecn",
        /// Whether above the upper limit it drops nonetheless.
        harddrop: SfqHardDrop = "harddrop",
    }
}

switch! {
    /// Where `sfq` drops.
    pub enum SfqHeadDrop {
        /// `headdrop`.
        On = "headdrop",
    }
}

switch! {
    /// Whether random early detection marks.
    pub enum SfqMarks {
        /// `ecn`.
        On = "ecn",
    }
}

switch! {
    /// Whether it drops above the upper limit.
    pub enum SfqHardDrop {
        /// `harddrop`.
        On = "harddrop",
    }
}

impl Complete for SfqOptions {
    fn lacks(&self) -> Option<TcProblem> {
        let needs = "`redflowlimit`";
        if self.redflowlimit.is_none_or(|limit| limit == 0) {
            let alone = [
                (self.min.is_some(), "min"),
                (self.max.is_some(), "max"),
                (self.avpkt.is_some(), "avpkt"),
                (self.burst.is_some(), "burst"),
                (self.probability.is_some(), "probability"),
                (self.ecn.is_some(), "ecn"),
                (self.harddrop.is_some(), "harddrop"),
            ];
            let (_, option) = alone.into_iter().find(|(is_there, _)| *is_there)?;
            return Some(TcProblem::Needs { option, needs });
        }
        self.red().and_then(Result::err)
    }
}

impl SfqOptions {
    /// Random early detection, if flows have it.
    fn red(&self) -> Option<Result<SfqRed, TcProblem>> {
        let limit = self.redflowlimit.filter(|limit| *limit > 0)?;
        let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0).filter(|bytes| *bytes > 0);
        let typed = TypedCurve {
            limit,
            min: self.min,
            max: self.max.filter(|max| max.0 > 0).or(Some(Bytes(limit / 4))),
            packet: bytes(self.avpkt).unwrap_or(PACKET_BYTES),
            burst: self.burst,
            probability: self.probability,
            bandwidth: None,
        };
        let curve = typed.told();
        Some(curve.map(|curve| SfqRed { curve, ecn: self.ecn.is_some(), harddrop: self.harddrop.is_some() }))
    }

    fn told(&self, major: u16) -> Result<SfqSettings, TcRefusal> {
        let positive = |number: Option<u32>| number.filter(|number| *number > 0);
        let kernel = SfqSettings::default();
        let perturb = self.perturb.unwrap_or(0);
        if !(0..=PERTURB_MAX).contains(&perturb) {
            let remedy = format!("it is 0 to {PERTURB_MAX} seconds");
            return Err(TcRefusal::setting("sfq", "perturb", perturb, remedy));
        }
        let red = self.red().transpose().map_err(|problem| {
            TcRefusal::setting("sfq", "redflowlimit", self.redflowlimit.unwrap_or(0), format!("{problem:?}"))
        })?;
        let depth = positive(self.depth).map_or(kernel.depth, |depth| depth.min(DEPTH_MAX));
        let mut flows = positive(self.flows).map_or(kernel.flows, |flows| flows.min(FLOWS_MAX));
        if let Some(divisor) = positive(self.divisor) {
            flows = flows.min(divisor);
        }
        let mut limit = kernel.limit;
        if let Some(asked) = self.limit {
            limit = asked.min(depth * flows);
            flows = flows.min(limit);
        }
        let quantum = positive(self.quantum.map(|bytes| bytes.0)).map(|bytes| bytes.max(QUANTUM_MIN));
        Ok(SfqSettings {
            major,
            limit,
            quantum: quantum.unwrap_or(kernel.quantum),
            depth,
            flows,
            divisor: positive(self.divisor).unwrap_or(kernel.divisor),
            perturb: Nanos(u64::from(perturb.unsigned_abs()) * SECOND),
            headdrop: self.headdrop.is_some(),
            red,
        })
    }
}

/// What an sfq says of its settings.
fn refused(error: SfqError) -> TcRefusal {
    let (option, value) = match error {
        SfqError::Limit(packets) => ("limit", packets),
        SfqError::Quantum => ("quantum", 0),
        SfqError::Depth(packets) => ("depth", packets),
        SfqError::Flows(count) => ("flows", count),
        SfqError::Divisor(count) => ("divisor", count),
    };
    TcRefusal::setting("sfq", option, value, error.to_string())
}

impl<P: Packet + Debug + Send> QdiscKind<P> for SfqOptions {
    type Made = Sfq<P, RandomWords>;

    fn make(&self, context: &QdiscContext) -> Result<Self::Made, TcRefusal> {
        let random = (context.random)(context.seed);
        Sfq::new(self.told(context.handle)?, random, context.now).map_err(refused)
    }

    fn change(self, _: &mut Self::Made, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        Err(TcRefusal::unchangeable("sfq"))
    }

    fn describe(&self, queue: &Self::Made) -> TcDescription {
        let mut options = shown(queue.settings());
        if let Some(red) = &queue.settings().red {
            add_red(&mut options, red, &queue.sfq_statistics());
        }
        TcDescription { options, ..TcDescription::default() }
    }
}

fn shown(told: &SfqSettings) -> TcProperties {
    let mut shown = TcProperties::default();
    shown.add("limit", "limit {}p ", told.limit);
    shown.add("quantum", "quantum {} ", TcValue::size(told.quantum.into()));
    shown.add("depth", "depth {} ", told.depth);
    if told.headdrop {
        shown.mark("headdrop", "headdrop ");
    }
    shown.details(|shown| shown.add("flows", "flows {} ", told.flows));
    shown.add("divisor", "divisor {} ", told.divisor);
    if told.perturb.0 > 0 {
        let seconds = told.perturb.0 / SECOND;
        shown.add("perturb", "perturb {} ", TcValue::new(format!("{seconds}sec"), TcJson::Unsigned(seconds)));
    }
    shown
}

/// Random early detection, and what it has done.
fn add_red(shown: &mut TcProperties, red: &SfqRed, counted: &SfqStatistics) {
    shown.add("ewma", "ewma {} ", red.curve.weight_log);
    shown.add("min", "min {} ", TcValue::size(red.curve.min.into()));
    shown.add("max", "max {} ", TcValue::size(red.curve.max.into()));
    shown.add("probability", "probability {} ", shown_probability(red.curve.probability));
    shown.flag("ecn", "ecn ", red.ecn);
    shown.flag("harddrop", "harddrop ", red.harddrop);
    shown.flag("adaptive", "adaptive ", false);
    shown.flag("nodrop", "nodrop ", false);
    shown.statistics(|shown| {
        shown.add("prob_mark", "\n  prob_mark {}", counted.early_marks);
        shown.add("prob_mark_head", " prob_mark_head {}", counted.early_head_marks);
        shown.add("prob_drop", " prob_drop {}", counted.early_drops);
        shown.add("forced_mark", "\n  forced_mark {}", counted.forced_marks);
        shown.add("forced_mark_head", " forced_mark_head {}", counted.forced_head_marks);
        shown.add("forced_drop", " forced_drop {}", counted.forced_drops);
    });
}

/// A flow's figure, which is a class's.
pub(super) fn describe_flow(allot: i64) -> TcDescription {
    let mut figures = TcProperties::default();
    figures.add("allot", "  allot {}", allot);
    TcDescription { figures, ..TcDescription::default() }
}

#[cfg(test)]
mod tests {
    use super::{SfqOptions, SfqStatistics, add_red};
    use crate::Sfq;
    use crate::kind::{QdiscContext, QdiscKind as _, RandomWords};
    use crate::tc::{TcProperties, TcStyle};
    use std::string::ToString as _;
    use std::vec::Vec;

    type Made = Sfq<Vec<u8>, RandomWords>;

    /// Goal: what random early detection has done is shown as `tc` shows it, each count behind its name.
    /// Method: counts, no two alike; with what was counted, and without.
    #[test]
    fn every_count_has_its_name() {
        let typed = SfqOptions { redflowlimit: Some(100_000), ..SfqOptions::default() };
        let queue: Made = typed.make(&QdiscContext::default()).expect("settings that can be");
        let red = queue.settings().red.as_ref().expect("it was asked for");
        let counted = SfqStatistics {
            early_marks: 1,
            early_head_marks: 2,
            early_drops: 3,
            forced_marks: 4,
            forced_head_marks: 5,
            forced_drops: 6,
        };
        let mut shown = TcProperties::default();
        add_red(&mut shown, red, &counted);
        let plain = "ewma 3 min 8333b max 25000b probability 0.02 ";
        assert_eq!(shown.text(TcStyle::default()), plain);
        let counts = "\n  prob_mark 1 prob_mark_head 2 prob_drop 3\n  \
                      forced_mark 4 forced_mark_head 5 forced_drop 6";
        let style = TcStyle { statistics: true, ..TcStyle::default() };
        assert_eq!(shown.text(style), std::format!("{plain}{counts}"));
    }

    /// Goal: what cannot be is refused with the option, its value and the reason. Method: each that can be
    /// wrong, and a change.
    #[test]
    fn every_refusal_has_its_text() {
        let none = SfqOptions::default();
        for (options, refused) in [
            (
                SfqOptions { perturb: Some(-1), ..none.clone() },
                "sfq: `perturb -1` cannot be: it is 0 to 8589934 seconds",
            ),
            (
                SfqOptions { divisor: Some(1_000), ..none.clone() },
                "sfq: `divisor 1000` cannot be: 1000 buckets: there are a power of 2, at most 65536",
            ),
            (
                SfqOptions { limit: Some(2), depth: Some(1), flows: Some(1), ..none.clone() },
                "sfq: `limit 1` cannot be: limit of 1: it is at least 2",
            ),
        ] {
            let made = options.make(&QdiscContext::default()).map(|_: Made| ());
            assert_eq!(made.map_err(|refusal| refusal.to_string()), Err(refused.into()));
        }
        let mut queue: Made = none.make(&QdiscContext::default()).expect("defaults");
        let changed = none.clone().change(&mut queue, &none, &QdiscContext::default());
        let refused = changed.map_err(|refusal| refusal.to_string());
        assert!(refused.is_err_and(|text| text.starts_with("Change operation not supported")));
    }
}
