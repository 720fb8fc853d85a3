//! `record --trigger`: waits for a stretch in which an isolated CPU is taken away for too long.

use quietcore_core::{CpuSet, Nanos};
use quietcore_explain::{Explain, ExplainOptions, Gap};
use quietcore_trace::Record;
use std::time::Duration;

/// What ends a recording, and how long before it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TriggerRequest {
    pub(crate) longer_than: Nanos,
    pub(crate) before: Duration,
}

/// Looks at events until it has happened.
#[derive(Debug)]
pub(crate) struct Trigger {
    explain: Explain,
    not_before: Nanos,
}

impl Trigger {
    /// One that looks at what happens from `not_before` on, by the clock of the recording: before that, it
    /// interrupted CPUs itself.
    pub(crate) fn new(request: TriggerRequest, isolated: &CpuSet, not_before: Nanos) -> Self {
        let gap = Some(request.longer_than);
        let options = ExplainOptions { isolated: isolated.clone(), gap, ..ExplainOptions::default() };
        Self { explain: Explain::new(options), not_before }
    }

    pub(crate) fn take(&mut self, record: &Record<'_>) {
        if record.at >= self.not_before && self.explain.gap().is_none() {
            self.explain.take(record);
        }
    }

    /// The stretch that was too long.
    pub(crate) fn gap(&self) -> Option<Gap> {
        self.explain.gap()
    }
}

#[cfg(test)]
mod tests {
    use super::{Trigger, TriggerRequest};
    use quietcore_core::Nanos;
    use quietcore_trace::TraceReader;
    use std::time::Duration;

    /// Goal: what the recording itself did while it began is no spike. Method: two long interrupts, looked at
    /// from the beginning, from between them, from within the second one and from after it.
    #[test]
    fn a_spike_is_not_of_the_beginning() {
        let text = "\
            a-7 [001] d.h1. 1.000000: local_timer_entry: vector=236
            a-7 [001] d.h1. 1.000090: local_timer_exit: vector=236
            a-7 [001] d.h1. 2.000000: local_timer_entry: vector=236
            a-7 [001] d.h1. 2.000080: local_timer_exit: vector=236
        ";
        let spike = |not_before_us: u64| {
            let request = TriggerRequest { longer_than: Nanos(50_000), before: Duration::ZERO };
            let isolated = "1".parse().expect("a list");
            let mut trigger = Trigger::new(request, &isolated, Nanos(not_before_us * 1_000));
            let mut reader = TraceReader::new(text.as_bytes());
            reader.read(u64::MAX, &mut |record| trigger.take(record)).expect("a trace");
            trigger.gap().map(|gap| gap.until.since(gap.from).as_u64())
        };
        let spikes = [0, 1_500_000, 2_000_010, 2_000_100].map(spike);
        assert_eq!(spikes, [Some(90_000), Some(80_000), None, None]);
    }
}
