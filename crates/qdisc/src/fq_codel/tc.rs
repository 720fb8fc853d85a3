//! `fq_codel` in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-fq_codel(8), and `tc` by behaviour. Like there, 0 says nothing for most options, a `quantum`
//! below 256 is 256, what is not typed in a change stays, and `flows` cannot be typed in one.

use super::{FqCodel, FqCodelError, FqCodelFlow, FqCodelSettings, FqCodelStatistics};
use crate::classful::TcDescription;
use crate::codel::tc::{CodelEcn, TypedLaw, add_drop_next, shown_micros, shown_time};
use crate::kind::{QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::error::TcProblem;
use crate::tc::scalar::{Scalar, shown_as_displayed};
use crate::tc::table::{Complete, OptionTable as _, options};
use crate::tc::units::Bytes;
use crate::tc::{TcProperties, TcValue};
use crate::{CeSelector, Packet};
use alloc::format;
use alloc::string::ToString as _;
use core::fmt::{self, Debug, Formatter};
use quietcore_core::Nanos;

/// A smaller quantum is as good as this one.
const QUANTUM_MIN: u32 = 256;
/// More memory is as good as this.
const MEMORY_MAX: u32 = 1 << 31;

options! {
    /// What was typed behind `fq_codel`.
    pub struct FqCodelOptions of "fq_codel" {
        /// Packets that it holds at most.
        limit: u32 = "limit",
        /// How many queues there are.
        flows: u32 = "flows",
        /// Bytes that a flow sends in its turn.
        quantum: u32 = "quantum",
        /// The delay that is fine.
        target: Nanos = "target",
        /// How long no delay was fine when it begins to drop.
        interval: Nanos = "interval",
        /// Bytes that packets take at most.
        memory_limit: Bytes = "memory_limit",
        /// Whether it marks instead.
        ecn: CodelEcn = "ecn" | "noecn",
        /// From which delay on packets are marked.
        ce_threshold: Nanos = "ce_threshold",
        /// Which packets those are.
        ce_threshold_selector: TrafficClassMatch = "ce_threshold_selector",
        /// Packets that are dropped at once for want of room.
        drop_batch: u32 = "drop_batch",
    }
}

impl Complete for FqCodelOptions {}

/// `VALUE/MASK` of the byte of DSCP and ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficClassMatch(
    /// The value and the mask.
    pub CeSelector,
);

impl fmt::Display for TrafficClassMatch {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{:#x}/{:#x}", self.0.value, self.0.mask)
    }
}

shown_as_displayed!(TrafficClassMatch);

impl Scalar for TrafficClassMatch {
    const ALLOWED: &'static [&'static str] = &["VALUE/MASK, each from 0 to 255"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let both = word.split_once('/').ok_or(TcProblem::Malformed("a value and a mask"))?;
        Ok(Self(CeSelector { value: u8::read(both.0)?, mask: u8::read(both.1)? }))
    }
}

/// A number of an option of which 0 says nothing.
fn positive(number: Option<u32>) -> Option<u32> {
    number.filter(|number| *number > 0)
}

impl FqCodelOptions {
    fn told(&self, before: FqCodelSettings) -> FqCodelSettings {
        let Self { target, interval, ecn, ce_threshold, .. } = *self;
        let mut law = TypedLaw { target, interval, ecn, ce_threshold }.told(before.law);
        law.ce_selector = self.ce_threshold_selector.map_or(law.ce_selector, |typed| typed.0);
        let quantum = positive(self.quantum).map(|bytes| bytes.max(QUANTUM_MIN));
        FqCodelSettings {
            limit: positive(self.limit).unwrap_or(before.limit),
            flows: positive(self.flows).unwrap_or(before.flows),
            quantum: quantum.unwrap_or(before.quantum),
            memory_limit: self.memory_limit.map_or(before.memory_limit, |bytes| bytes.0.min(MEMORY_MAX)),
            drop_batch: positive(self.drop_batch).unwrap_or(before.drop_batch),
            law,
            ..before
        }
    }
}

/// What an fq_codel says of its settings.
fn refused(error: FqCodelError, typed: &FqCodelOptions) -> TcRefusal {
    let (option, value) = match error {
        FqCodelError::Flows(count) => ("flows", count),
        FqCodelError::FlowsChanged { .. } => ("flows", typed.flows.unwrap_or_default()),
        FqCodelError::Quantum(bytes) => ("quantum", bytes),
        FqCodelError::DropBatch => ("drop_batch", 0),
    };
    TcRefusal::setting("fq_codel", option, value, error.to_string())
}

impl<P: Packet + Debug + Send> QdiscKind<P> for FqCodelOptions {
    type Made = FqCodel<P>;

    fn make(&self, context: &QdiscContext) -> Result<FqCodel<P>, TcRefusal> {
        let defaults = FqCodelSettings { major: context.handle, ..FqCodelSettings::default() };
        FqCodel::new(self.told(defaults)).map_err(|error| refused(error, self))
    }

    fn change(
        self,
        queue: &mut FqCodel<P>,
        before: &Self,
        context: &QdiscContext,
    ) -> Result<Self, TcRefusal> {
        let now = *queue.settings();
        let changed = if positive(self.flows).is_some() {
            Err(FqCodelError::FlowsChanged { are: now.flows })
        } else {
            queue.change(context.now, self.told(now))
        };
        changed.map_err(|error| refused(error, &self))?;
        Ok(self.merged(before.clone()))
    }

    fn describe(&self, queue: &FqCodel<P>) -> TcDescription {
        TcDescription { options: shown(queue.settings()), figures: figures(&queue.fq_codel_statistics()) }
    }
}

fn shown(told: &FqCodelSettings) -> TcProperties {
    let (mut shown, law) = (TcProperties::default(), told.law);
    shown.add("limit", "limit {}p ", told.limit);
    shown.add("flows", "flows {} ", told.flows);
    shown.add("quantum", "quantum {} ", told.quantum);
    shown.add("target", "target {} ", shown_time(law.target));
    if let Some(threshold) = law.ce_threshold {
        shown.add("ce_threshold", "ce_threshold {} ", shown_time(threshold));
        let CeSelector { value, mask } = law.ce_selector;
        if mask != 0 {
            shown.add_text("ce_threshold_selector {} ", format!("{value:#x}/{mask:#x}"));
            shown.add_json("ce_threshold_selector", value);
            shown.add_json("ce_threshold_mask", mask);
        }
    }
    shown.add("interval", "interval {} ", shown_time(law.interval));
    shown.add("memory_limit", "memory_limit {} ", TcValue::size(told.memory_limit.into()));
    if law.ecn {
        shown.mark("ecn", "ecn ");
    }
    shown.add("drop_batch", "drop_batch {} ", told.drop_batch);
    shown
}

fn figures(counted: &FqCodelStatistics) -> TcProperties {
    let mut figures = TcProperties::default();
    figures.add("maxpacket", "  maxpacket {}", counted.longest_packet);
    figures.add("drop_overlimit", " drop_overlimit {}", counted.limit_drops);
    figures.add("new_flow_count", " new_flow_count {}", counted.new_flows);
    figures.add("ecn_mark", " ecn_mark {}", counted.ecn_marks);
    for (name, template, count) in [
        ("ce_mark", " ce_mark {}", counted.ce_marks),
        ("memory_used", " memory_used {}", counted.memory),
        ("drop_overmemory", " drop_overmemory {}", counted.memory_drops),
    ] {
        if count > 0 {
            figures.add(name, template, count);
        }
    }
    figures.add("new_flows_len", "\n  new_flows_len {}", counted.new_flows_len);
    figures.add("old_flows_len", " old_flows_len {}", counted.old_flows_len);
    figures
}

/// A flow's figures, which are a class's.
pub(super) fn describe_flow(flow: &FqCodelFlow) -> TcDescription {
    let mut figures = TcProperties::default();
    figures.add("deficit", "  deficit {}", flow.deficit);
    figures.add("count", " count {}", flow.codel.count);
    figures.add("lastcount", " lastcount {}", flow.codel.last_count);
    figures.add("ldelay", " ldelay {}", shown_micros(flow.codel.delay));
    if let Some(nanos) = flow.codel.drop_next {
        figures.mark("dropping", " dropping");
        add_drop_next(&mut figures, nanos);
    }
    TcDescription { figures, ..TcDescription::default() }
}

#[cfg(test)]
mod tests {
    use super::{FqCodelFlow, FqCodelOptions, FqCodelStatistics, describe_flow, figures};
    use crate::kind::{QdiscContext, QdiscKind as _};
    use crate::tc::TcStyle;
    use crate::{CodelStatistics, FqCodel, Statistics};
    use quietcore_core::Nanos;
    use std::string::ToString as _;
    use std::vec::Vec;

    /// Goal: each count stands behind its own name, and what is 0 is left out where `tc` does. Method:
    /// counts, no two alike, and none.
    #[test]
    fn every_count_has_its_name() {
        let mut counted = FqCodelStatistics {
            longest_packet: 31,
            limit_drops: 32,
            memory_drops: 33,
            new_flows: 34,
            ecn_marks: 35,
            ce_marks: 36,
            memory: 37,
            new_flows_len: 38,
            old_flows_len: 39,
        };
        let text = |counted: &FqCodelStatistics| figures(counted).text(TcStyle::default());
        assert_eq!(
            text(&counted),
            "  maxpacket 31 drop_overlimit 32 new_flow_count 34 ecn_mark 35 ce_mark 36 memory_used 37 \
             drop_overmemory 33\n  new_flows_len 38 old_flows_len 39"
        );
        (counted.ce_marks, counted.memory, counted.memory_drops) = (0, 0, 0);
        assert_eq!(
            text(&counted),
            "  maxpacket 31 drop_overlimit 32 new_flow_count 34 ecn_mark 35\n  new_flows_len 38 \
             old_flows_len 39"
        );
    }

    /// Goal: a flow is shown as `tc` showed it under a load on Linux 6.12. Method: three recorded texts: a
    /// flow that drops, one whose drop is overdue, one that does not drop.
    #[test]
    fn a_flow_is_shown_as_recorded() {
        for (deficit, count, delay, drop_next, text) in [
            (-680, 90, 83_600, Some(70_900_000), "ldelay 83.6ms dropping drop_next 70.9ms"),
            (1_306, 99, 65_400, Some(-1_820_000), "ldelay 65.4ms dropping drop_next -1.82ms"),
            (834, 105, 811, None, "ldelay 811us"),
        ] {
            let delay = Nanos(delay * 1_000);
            let codel =
                CodelStatistics { count, last_count: 1, delay, drop_next, ..CodelStatistics::default() };
            let flow = FqCodelFlow { statistics: Statistics::default(), deficit, codel };
            let shown = describe_flow(&flow).figures.text(TcStyle::default());
            assert_eq!(shown, std::format!("  deficit {deficit} count {count} lastcount 1 {text}"));
        }
    }

    /// Goal: what cannot be is refused with the option, its value and the reason. Method: each that can be
    /// wrong, and a change of what stays.
    #[test]
    fn every_refusal_has_its_text() {
        let none = FqCodelOptions::default();
        let flows = FqCodelOptions { flows: Some(65_537), ..none.clone() };
        let quantum = FqCodelOptions { quantum: Some(1_048_577), ..none.clone() };
        for (options, refused) in [
            (flows, "fq_codel: `flows 65537` cannot be: 65537 flows: there are 1 to 65536"),
            (quantum, "fq_codel: `quantum 1048577` cannot be: quantum of 1048577 bytes: it is 1 to 1048576"),
        ] {
            let made = options.make(&QdiscContext::default()).map(|_: FqCodel<Vec<u8>>| ());
            assert_eq!(made.map_err(|refusal| refusal.to_string()), Err(refused.into()));
        }
        let mut queue: FqCodel<Vec<u8>> = none.make(&QdiscContext::default()).expect("defaults");
        let again = FqCodelOptions { flows: Some(1_024), ..none.clone() };
        let changed = again.change(&mut queue, &none, &QdiscContext::default());
        assert_eq!(
            changed.map_err(|refusal| refusal.to_string()),
            Err("fq_codel: `flows 1024` cannot be: there are 1024 flows, for as long as it runs; `del` it and \
                 add it again"
                .into())
        );
    }
}
