//! Collects figures while a run goes on. Nothing is allocated per event.

use super::{PacketFigures, RealtimeFigures, ResidencyCounts, RunFigures, SoftirqFigures, SpanQuantiles};
use hdrhistogram::Histogram;
use quietcore_core::softirq::Vector;
use quietcore_core::{CpuId, CpuSet};

/// The longest span that histograms tell apart: two hours.
const SPAN_MAX: u64 = 7_200_000_000_000;
/// Significant digits of what there is once, and of what there is per CPU.
const DIGITS: u8 = 3;
const DIGITS_PER_CPU: u8 = 2;

/// The figures of a run as they grow, with the distributions behind them.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) figures: RunFigures,
    lateness: Histogram<u64>,
    task_delay: Histogram<u64>,
    /// By vector: from a device's interrupt to the handler.
    delays: [Option<Box<Histogram<u64>>>; 16],
    /// All real-time threads, and each of them.
    latency: Histogram<u64>,
    latencies: Vec<Histogram<u64>>,
    packets_late: Histogram<u64>,
    /// By CPU; absent where nothing measures.
    gaps: Vec<Option<Histogram<u64>>>,
    foreign: Vec<u64>,
    wakeups: Vec<u64>,
    pub(crate) requests: Option<u64>,
    /// Arm-and-cancel loops: rounds and their time.
    pub(crate) rounds: Option<(u64, u64)>,
    /// Time that CPUs were idle, in all.
    pub(crate) idle_ns: u64,
    pub(crate) idle: ResidencyCounts,
}

/// A histogram grows to what it holds.
fn histogram(digits: u8) -> Histogram<u64> {
    let mut histogram = Histogram::new(digits).expect("two and three digits are possible");
    histogram.auto(true);
    histogram
}

fn quantiles(histogram: &Histogram<u64>) -> Option<SpanQuantiles> {
    (!histogram.is_empty()).then(|| SpanQuantiles {
        p50: histogram.value_at_quantile(0.50),
        p99: histogram.value_at_quantile(0.99),
        p999: histogram.value_at_quantile(0.999),
        max: histogram.max(),
    })
}

fn record(histogram: &mut Histogram<u64>, span: u64) {
    histogram.record(span.min(SPAN_MAX)).expect("a histogram grows to what it holds");
}

impl Recorder {
    pub(crate) fn new(cpu_count: usize) -> Self {
        Self {
            figures: RunFigures::default(),
            lateness: histogram(DIGITS),
            task_delay: histogram(DIGITS),
            delays: [const { None }; 16],
            latency: histogram(DIGITS),
            latencies: Vec::new(),
            packets_late: histogram(DIGITS),
            gaps: (0..cpu_count).map(|_| None).collect(),
            foreign: vec![0; cpu_count],
            wakeups: vec![0; cpu_count],
            requests: None,
            rounds: None,
            idle_ns: 0,
            idle: ResidencyCounts::default(),
        }
    }

    pub(crate) fn lateness(&mut self, span: u64) {
        record(&mut self.lateness, span);
    }

    pub(crate) fn task_delay(&mut self, span: u64) {
        record(&mut self.task_delay, span);
    }

    /// A measuring loop runs on `cpu`.
    pub(crate) fn measures(&mut self, cpu: CpuId) {
        self.gaps[cpu.index()].get_or_insert_with(|| histogram(DIGITS_PER_CPU));
    }

    /// The measuring loop of `cpu` was away.
    pub(crate) fn gap(&mut self, cpu: CpuId, span: u64) {
        if let Some(histogram) = &mut self.gaps[cpu.index()] {
            record(histogram, span);
        }
    }

    /// A vector's handler begins, so long after a device raised it.
    pub(crate) fn delay(&mut self, vector: Vector, span: u64) {
        let delays = self.delays[vector.index()].get_or_insert_with(|| Box::new(histogram(DIGITS)));
        record(delays, span);
    }

    /// Real-time thread number `thread` runs, so late.
    pub(crate) fn latency(&mut self, thread: usize, span: u64) {
        record(&mut self.latency, span);
        if self.latencies.len() <= thread {
            self.latencies.resize_with(thread + 1, || histogram(DIGITS_PER_CPU));
        }
        record(&mut self.latencies[thread], span);
    }

    /// A packet leaves its queue, so long after it might have.
    pub(crate) fn packet_late(&mut self, span: u64) {
        record(&mut self.packets_late, span);
    }

    pub(crate) fn packets(&mut self) -> &mut PacketFigures {
        self.figures.packets.get_or_insert_default()
    }

    pub(crate) fn softirqs(&mut self) -> &mut SoftirqFigures {
        self.figures.softirqs.get_or_insert_default()
    }

    pub(crate) fn realtime(&mut self) -> &mut RealtimeFigures {
        self.figures.realtime.get_or_insert_default()
    }

    /// Puts the distributions into the figures that they belong to.
    fn finish_distributions(&mut self) {
        if let Some(softirqs) = &mut self.figures.softirqs {
            for (index, delays) in self.delays.iter().enumerate() {
                let vector = Vector::from_index(index as u8);
                let found = delays.as_deref().and_then(quantiles);
                if let (Some(vector), Some(found)) = (vector, found) {
                    softirqs.delay_ns.insert(vector.name(), found);
                }
            }
        }
        if let Some(realtime) = &mut self.figures.realtime {
            realtime.latency_ns = quantiles(&self.latency);
            for (thread, latencies) in realtime.threads.iter_mut().zip(&self.latencies) {
                thread.latency_ns = quantiles(latencies);
            }
        }
    }

    pub(crate) fn foreign(&mut self, cpu: CpuId) {
        self.foreign[cpu.index()] += 1;
    }

    pub(crate) fn wakeup(&mut self, cpu: CpuId) {
        self.wakeups[cpu.index()] += 1;
    }

    pub(crate) fn finish(mut self, duration_ns: u64, isolated: &CpuSet) -> RunFigures {
        self.finish_distributions();
        let by_cpu = |counts: &[u64]| -> std::collections::BTreeMap<u16, u64> {
            let found = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            found.map(|(cpu, count)| (cpu as u16, *count)).collect()
        };
        let is_isolated = |cpu: usize| CpuId::new(cpu as u64).is_ok_and(|cpu| isolated.contains(cpu));
        let cpu_time = duration_ns as f64 * self.wakeups.len() as f64;
        if let Some(packets) = &mut self.figures.packets {
            packets.late_ns = quantiles(&self.packets_late);
            packets.busy_ns = (duration_ns * self.wakeups.len() as u64).saturating_sub(self.idle_ns);
        }
        let seconds = duration_ns as f64 / 1e9;
        RunFigures {
            duration_ns,
            foreign: self.foreign.iter().sum(),
            foreign_by_cpu: by_cpu(&self.foreign),
            pullers: by_cpu(&self.foreign)
                .keys()
                .filter_map(|cpu| CpuId::new(u64::from(*cpu)).ok())
                .collect(),
            wakeups: self.wakeups.iter().sum(),
            wakeups_isolated: (0..self.wakeups.len())
                .filter(|cpu| is_isolated(*cpu))
                .map(|cpu| self.wakeups[cpu])
                .sum(),
            wakeups_by_cpu: by_cpu(&self.wakeups),
            lateness_ns: quantiles(&self.lateness),
            task_delay_ns: quantiles(&self.task_delay),
            gaps_ns: self
                .gaps
                .iter()
                .enumerate()
                .filter_map(|(cpu, gaps)| Some((cpu as u16, quantiles(gaps.as_ref()?)?)))
                .collect(),
            throughput: self.requests.map(|requests| requests as f64 / seconds),
            pair_ns: self
                .rounds
                .filter(|(rounds, _)| *rounds > 0)
                .map(|(rounds, ns)| ns as f64 / rounds as f64),
            busy_share: 1.0 - self.idle_ns as f64 / cpu_time,
            idle: self.idle.finish(duration_ns),
            ..self.figures
        }
    }
}
