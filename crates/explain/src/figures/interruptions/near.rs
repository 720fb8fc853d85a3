//! What was open on the CPUs that are watched around one moment.

use super::cause::CauseTable;
use super::stack::Open;
use crate::figures::report::{MomentReport, NearSpan};
use quietcore_core::{CpuId, Nanos};
use quietcore_trace::NameTable;

/// So many are kept; more are counted.
const NEAR_MAX: usize = 256;

/// A moment on a recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedMoment {
    /// The moment itself.
    pub at: Nanos,
    /// So long before it, and as long after it, belong to it.
    pub around: Nanos,
}

/// See the module.
#[derive(Debug)]
pub(super) struct NearSpans {
    moment: RecordedMoment,
    spans: Vec<(CpuId, Open, Option<SpanEnd>)>,
    more: u64,
}

/// When something ended, and how long nothing had been on top of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanEnd {
    pub(super) at: Nanos,
    pub(super) own: u64,
}

impl NearSpans {
    pub(super) fn new(moment: RecordedMoment) -> Self {
        Self { moment, spans: Vec::new(), more: 0 }
    }

    /// It has ended on its CPU, or its end is not in the input.
    pub(super) fn take(&mut self, cpu: CpuId, open: &Open, ended: Option<SpanEnd>) {
        let RecordedMoment { at, around } = self.moment;
        let (from, until) = (at.0.saturating_sub(around.0), at.0.saturating_add(around.0));
        let is_near = open.since.0 <= until && ended.is_none_or(|ended| ended.at.0 >= from);
        if open.row.is_none() || !is_near {
            return;
        }
        if self.spans.len() < NEAR_MAX {
            self.spans.push((cpu, *open, ended));
        } else {
            self.more += 1;
        }
    }

    /// In the order of their begins.
    pub(super) fn report(&self, causes: &CauseTable, names: &NameTable) -> MomentReport {
        let span = |(cpu, open, ended): &(CpuId, Open, Option<SpanEnd>)| NearSpan {
            cpu: cpu.index() as u16,
            source: open.key.0.name(),
            name: names.text(open.name),
            begin_ns: open.since.0,
            end_ns: ended.map(|ended| ended.at.0),
            own_ns: ended.map(|ended| ended.own),
            steps: open.cause.map_or_else(Vec::new, |cause| causes.steps(cause, names)),
        };
        let mut spans: Vec<NearSpan> = self.spans.iter().map(span).collect();
        spans.sort_by_key(|span| (span.begin_ns, span.cpu));
        let RecordedMoment { at, around } = self.moment;
        MomentReport { at_ns: at.0, around_ns: around.0, spans, more: self.more }
    }
}
