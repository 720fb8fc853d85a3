//! A snapshot as OpenMetrics text, for a scrape or a textfile collector.
//!
//! Labels are CPU numbers and a fixed set of words, so that a scrape is bounded. Source: OpenMetrics 1.0.

use super::lanes::{LaneMetrics, LaneState};
use super::snapshot::{CpuMetrics, Metrics};
use core::fmt;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use quietcore_core::Nanos;

/// Name, help, and the figure.
type Family<T, V> = (&'static str, &'static str, fn(&T) -> V);

/// What each CPU counts.
const COUNTERS: [Family<CpuMetrics, u64>; 30] = [
    ("timers_armed", "Arms of timers.", |cpu| cpu.bases.armed),
    ("timers_superseded", "Pending periods that an arm ended.", |cpu| cpu.bases.superseded),
    ("timers_cancelled", "Pending periods that a cancel ended.", |cpu| cpu.bases.cancelled),
    ("timers_ran_here", "Timers of this CPU that it ran.", |cpu| cpu.bases.ran_here),
    ("timers_ran_elsewhere", "Timers of this CPU that others ran.", |cpu| cpu.bases.ran_elsewhere),
    ("timers_waited", "Timers that were due while they ran.", |cpu| cpu.bases.waited),
    ("runs_own", "Runs by this CPU of its own timers.", |cpu| cpu.ran_own),
    ("runs_for_others", "Runs by this CPU of timers that it pulled.", |cpu| cpu.ran_for_others),
    ("turns", "Turns.", |cpu| cpu.turns),
    ("kicks", "Kicks sent to this CPU.", |cpu| cpu.kicks),
    ("panics", "Callbacks that panicked.", |cpu| cpu.panics),
    ("items", "Polls of tasks, and runs of work.", |cpu| cpu.items),
    ("realtime_polls", "Polls of real-time tasks.", |cpu| cpu.realtime_polls),
    ("migrations", "Real-time tasks that came from another lane.", |cpu| cpu.migrations),
    ("pulled", "Real-time tasks that this lane took from others.", |cpu| cpu.pulled),
    ("pushed", "Real-time tasks that this lane gave to others.", |cpu| cpu.pushed),
    ("stolen", "Normal tasks and work that this lane took from others.", |cpu| cpu.stolen),
    ("raises", "Times that vectors were raised for this CPU.", |cpu| cpu.raises),
    ("softirqs", "Softirqs' handlers that its lane ran.", |cpu| cpu.softirqs),
    ("ksoftirqd_ran", "Softirqs' handlers that its ksoftirqd ran.", |cpu| cpu.ksoftirqd_ran),
    ("ksoftirqd_wakeups", "Times that its ksoftirqd was woken.", |cpu| cpu.ksoftirqd_wakeups),
    ("deferred", "Vectors left because a real-time task waited.", |cpu| cpu.deferred),
    ("donations", "Waits for its ksoftirqd at the limit.", |cpu| cpu.donations),
    ("timer_raises", "Turns by ticks as an isolated lane.", |cpu| cpu.timer_raises),
    ("empty_raises", "Turns by ticks in which nothing was due.", |cpu| cpu.empty_raises),
    ("stalls", "Stalls that were reported.", |cpu| cpu.stalls),
    ("marks", "Times this CPU was marked absent.", |cpu| cpu.bases.marks),
    ("false_marks", "Marks without need.", |cpu| cpu.bases.false_marks),
    ("busy_marks", "Marks that were put off.", |cpu| cpu.bases.busy_marks),
    ("tokens_revoked", "Expiry taken over from a stuck CPU.", |cpu| cpu.bases.revoked),
];

/// What lanes are, as gauges of 0 or 1.
const FLAGS: [Family<LaneMetrics, bool>; 2] = [
    ("lane_isolated", "1 for a lane whose CPU is isolated.", |lane| lane.is_isolated),
    ("lane_claimed", "1 for a lane that a thread has claimed.", |lane| lane.is_claimed),
];

impl Metrics {
    /// As OpenMetrics text.
    #[must_use]
    pub fn to_openmetrics(&self) -> String {
        let mut registry = Registry::with_prefix("quietcore");
        registry.register_collector(Box::new(Snapshot(self.clone())));
        let mut encoded = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut encoded, &registry);
        encoded
    }
}

/// Metrics that a registry writes.
#[derive(Debug)]
struct Snapshot(Metrics);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Metrics { cpus, settimes, locks } = &self.0;
        for (name, help, of) in COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for cpu in cpus {
                encode_counter(&mut family.encode_family(&labels(cpu))?, of(cpu))?;
            }
        }
        encode_lanes(cpus, &mut encoder)?;
        let machine = [
            ("alarm_settimes", "Timers of the kernel that were set.", *settimes),
            ("lock_spun", "Locks that were waited for by spinning.", locks.spun),
            ("lock_slept", "Locks that were waited for asleep.", locks.slept),
            ("lock_holder_preempted", "Waits for a holder that was off its CPU.", locks.holder_preempted),
        ];
        for (name, help, value) in machine {
            encode_counter(&mut encoder.encode_descriptor(name, help, None, MetricType::Counter)?, value)?;
        }
        let help = "From the start of the tick armed for to the run.";
        let mut family =
            encoder.encode_descriptor("timer_lateness_seconds", help, None, MetricType::Histogram)?;
        cpus.iter().try_for_each(|cpu| {
            let (sum, late) = (cpu.lateness_sum.as_secs_f64(), &cpu.lateness);
            let seconds = |end: Option<Nanos>| end.map_or(f64::INFINITY, Nanos::as_secs_f64);
            let buckets: Vec<_> = late.buckets().map(|(end, count)| (seconds(end), count)).collect();
            let labels = labels(cpu);
            let mut metric = family.encode_family(&labels)?;
            metric.encode_histogram::<NoLabelSet>(sum, late.len(), &buckets, None)
        })
    }
}

fn encode_counter(metric: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

/// States are gauges of 0 or 1, one of each four being 1: a type of their own is not known to readers of
/// the older format.
fn encode_lanes(cpus: &[CpuMetrics], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let lanes = || cpus.iter().filter_map(|cpu| Some((cpu, cpu.lane.as_ref()?)));
    let help = "1 for what the books say of a lane.";
    let mut family = encoder.encode_descriptor("lane_state", help, None, MetricType::Gauge)?;
    for (cpu, lane) in lanes() {
        for state in LaneState::ALL {
            let labels = (labels(cpu), [("state", state.name())]);
            family.encode_family(&labels)?.encode_gauge(&u64::from(state == lane.state))?;
        }
    }
    for (name, help, of) in FLAGS {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (cpu, lane) in lanes() {
            family.encode_family(&labels(cpu))?.encode_gauge(&u64::from(of(lane)))?;
        }
    }
    Ok(())
}

fn labels(cpu: &CpuMetrics) -> [(&'static str, String); 2] {
    let role = if cpu.is_spare { "spare" } else { "cpu" };
    [("cpu", cpu.cpu.to_string()), ("role", role.to_owned())]
}

#[cfg(test)]
mod tests {
    use crate::{
        Cpu, CpuId, Machine,
        metrics::LaneState,
        softirq::Vector,
        task::{Priority, WorkOptions},
    };
    use std::collections::{BTreeMap, BTreeSet};

    /// Checks the rules of the format that a line-wise reader can check; returns the samples by series.
    fn samples(text: &str) -> BTreeMap<String, f64> {
        let mut found = BTreeMap::new();
        let mut families = BTreeSet::new();
        let (mut family, mut kind) = ("", "");
        let body = text.strip_suffix("# EOF\n").expect("ends in EOF");
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                family = rest.split(' ').next().expect(line);
                assert!(family.starts_with("quietcore_") && families.insert(family), "{line}: twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                kind = rest.strip_prefix(family).expect(line).trim_start();
            } else {
                let (series, value) = line.rsplit_once(' ').expect(line);
                let suffix = series.split('{').next().and_then(|name| name.strip_prefix(family));
                let allowed: &[_] = match kind {
                    "counter" => &["_total"],
                    "gauge" => &[""],
                    "histogram" => &["_bucket", "_count", "_sum"],
                    _ => panic!("{kind} is none of the kinds"),
                };
                assert!(suffix.is_some_and(|suffix| allowed.contains(&suffix)), "{line}: in {family}");
                let value = value.parse().expect(line);
                assert!(found.insert(series.to_owned(), value).is_none(), "{line}: twice");
            }
        }
        found
    }

    /// Goal: what lanes run besides timers is there, per CPU, as it was counted. Method: a lane turns until
    /// it has run two tasks, work and a softirq; the figures of a snapshot and of its text are the same.
    #[test]
    fn what_lanes_run_is_there() {
        let cpu = CpuId::default();
        let builder = Machine::builder().lanes("0".parse().expect("a list"));
        let machine = builder.softirq(Vector::TASKLET, |_| ()).start().expect("starts");
        let mut lane = Cpu::claim(machine, cpu).expect("it is free");
        let normal = machine.spawn(async {}).expect("it runs");
        let realtime = machine.spawn_rt(Priority::LOWEST, async {}).expect("it runs");
        let work = machine.work(WorkOptions::new(), || ()).expect("it runs");
        work.queue().expect("it runs");
        machine.raise(cpu, Vector::TASKLET).expect("it has a handler");
        while !normal.is_finished() || !realtime.is_finished() || work.is_pending() {
            lane.turn();
        }
        let metrics = machine.metrics();
        let (found, counted) = (samples(&metrics.to_openmetrics()), &metrics.cpus[0]);
        let of = |name: &str| found[&format!("quietcore_{name}_total{{cpu=\"0\",role=\"cpu\"}}")];
        assert_eq!((of("items"), of("realtime_polls"), of("raises"), of("softirqs")), (3.0, 1.0, 1.0, 1.0));
        let same = [
            ("migrations", counted.migrations),
            ("pulled", counted.pulled),
            ("pushed", counted.pushed),
            ("stolen", counted.stolen),
            ("ksoftirqd_ran", counted.ksoftirqd_ran),
            ("ksoftirqd_wakeups", counted.ksoftirqd_wakeups),
            ("deferred", counted.deferred),
            ("donations", counted.donations),
            ("timer_raises", counted.timer_raises),
            ("empty_raises", counted.empty_raises),
        ];
        for (name, value) in same {
            assert_eq!(of(name), value as f64, "{name}");
        }
        let late = |suffix: &str| {
            found[&format!("quietcore_timer_lateness_seconds_{suffix}cpu=\"0\",role=\"cpu\"}}")]
        };
        let all = counted.lateness.len() as f64;
        assert_eq!((late("bucket{le=\"+Inf\","), late("count{")), (all, all));
        assert_eq!(late("sum{"), counted.lateness_sum.as_secs_f64());
        let cpus = found.keys().filter(|series| series.starts_with("quietcore_items_total{"));
        assert_eq!(cpus.count(), metrics.cpus.len(), "each CPU has its own");
        drop(lane);
        machine.shutdown();
    }

    /// Goal: lanes are there with one state each and no label more; a machine without lanes has none. Method:
    /// one lane that is claimed, isolated and left; its spare; then without.
    #[test]
    fn lanes_have_a_state() {
        let cpu = CpuId::default();
        let machine = Machine::builder().lanes("0".parse().expect("a list")).start().expect("starts");
        let lane = Cpu::claim(machine, cpu).expect("it is free");
        let found = samples(&machine.metrics().to_openmetrics());
        let of = |name: &str| found[&format!("quietcore_{name}")];
        assert_eq!(of("lane_state{cpu=\"0\",role=\"cpu\",state=\"awake\"}"), 1.0);
        assert_eq!(of("lane_state{cpu=\"0\",role=\"cpu\",state=\"absent\"}"), 0.0);
        assert_eq!(of("lane_isolated{cpu=\"0\",role=\"cpu\"}"), 0.0);
        assert_eq!(of("lane_claimed{cpu=\"0\",role=\"cpu\"}"), 1.0);
        assert_eq!(of("stalls_total{cpu=\"0\",role=\"cpu\"}"), 0.0);
        let states = found.iter().filter(|(series, _)| series.starts_with("quietcore_lane_state{"));
        assert_eq!(states.clone().count(), 2 * LaneState::ALL.len(), "the lane and the spare");
        assert_eq!(states.map(|(_, value)| value).sum::<f64>(), 2.0, "each is in one");
        drop(lane);
        let found = samples(&machine.metrics().to_openmetrics());
        assert_eq!(found["quietcore_lane_state{cpu=\"0\",role=\"cpu\",state=\"unavailable\"}"], 1.0);
        assert_eq!(found["quietcore_lane_claimed{cpu=\"0\",role=\"cpu\"}"], 0.0);
        machine.shutdown();
        let without = Machine::start().expect("starts");
        let found = samples(&without.metrics().to_openmetrics());
        assert!(!found.keys().any(|series| series.starts_with("quietcore_lane_")), "{found:?}");
        without.shutdown();
    }
}
