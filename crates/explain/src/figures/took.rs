//! How long something took, each time: sum, quantiles, the longest.

use super::report::TookSpans;
use hdrhistogram::Histogram;

/// See the module.
#[derive(Debug)]
pub(super) struct TookCounts {
    spans: Histogram<u64>,
    total: u64,
    longest: u64,
}

impl TookCounts {
    pub(super) fn new() -> Self {
        let spans = Histogram::new(3).expect("3 significant digits are in range");
        Self { spans, total: 0, longest: 0 }
    }

    pub(super) fn record(&mut self, nanos: u64) {
        self.total = self.total.saturating_add(nanos);
        self.longest = self.longest.max(nanos);
        // The histogram grows to any value (at most 1 MiB), so recording cannot fail.
        let recorded = self.spans.record(nanos);
        debug_assert!(recorded.is_ok(), "a growing histogram takes every value");
    }

    pub(super) fn report(&self) -> TookSpans {
        if self.spans.is_empty() {
            return TookSpans::default();
        }
        let at = |quantile| Some(self.spans.value_at_quantile(quantile).min(self.longest));
        TookSpans { total: Some(self.total), p50: at(0.5), p99: at(0.99), max: Some(self.longest) }
    }
}
