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
    use super::super::{histogram::bucket_of, snapshot::Metrics};
    use crate::{
        Cpu, CpuId, Machine, Nanos,
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

    /// Two CPUs, of which the second is a spare, with counts that all differ, and the series that they are;
    /// spans of 2 us and of 9 ms.
    fn two_cpus() -> (Metrics, BTreeMap<String, f64>) {
        let machine = Machine::start().expect("starts");
        let mut metrics = machine.metrics();
        machine.shutdown();
        metrics.cpus.truncate(1);
        metrics.cpus.push(metrics.cpus[0].clone());
        let mut expected = BTreeMap::new();
        for (cpu, (number, times)) in metrics.cpus.iter_mut().zip([(4, 1), (6, 100)]) {
            cpu.cpu = CpuId::new(number).expect("a small number");
            cpu.is_spare = number == 6;
            let role = if cpu.is_spare { "spare" } else { "cpu" };
            let figures = [
                ("timers_armed", &mut cpu.bases.armed),
                ("timers_superseded", &mut cpu.bases.superseded),
                ("timers_cancelled", &mut cpu.bases.cancelled),
                ("timers_ran_here", &mut cpu.bases.ran_here),
                ("timers_ran_elsewhere", &mut cpu.bases.ran_elsewhere),
                ("timers_waited", &mut cpu.bases.waited),
                ("runs_own", &mut cpu.ran_own),
                ("runs_for_others", &mut cpu.ran_for_others),
                ("turns", &mut cpu.turns),
                ("kicks", &mut cpu.kicks),
                ("panics", &mut cpu.panics),
                ("items", &mut cpu.items),
                ("realtime_polls", &mut cpu.realtime_polls),
                ("migrations", &mut cpu.migrations),
                ("pulled", &mut cpu.pulled),
                ("pushed", &mut cpu.pushed),
                ("stolen", &mut cpu.stolen),
                ("raises", &mut cpu.raises),
                ("softirqs", &mut cpu.softirqs),
                ("ksoftirqd_ran", &mut cpu.ksoftirqd_ran),
                ("ksoftirqd_wakeups", &mut cpu.ksoftirqd_wakeups),
                ("deferred", &mut cpu.deferred),
                ("donations", &mut cpu.donations),
                ("timer_raises", &mut cpu.timer_raises),
                ("empty_raises", &mut cpu.empty_raises),
                ("stalls", &mut cpu.stalls),
                ("marks", &mut cpu.bases.marks),
                ("false_marks", &mut cpu.bases.false_marks),
                ("busy_marks", &mut cpu.bases.busy_marks),
                ("tokens_revoked", &mut cpu.bases.revoked),
            ];
            for (value, (name, figure)) in (11..).zip(figures) {
                *figure = value * times;
                let series = format!("quietcore_{name}_total{{cpu=\"{number}\",role=\"{role}\"}}");
                expected.insert(series, (value * times) as f64);
            }
            cpu.lateness.counts.fill(0);
            (cpu.lateness.counts[bucket_of(2_000)], cpu.lateness.counts[bucket_of(9_000_000)]) =
                (3 * times, 2);
            cpu.lateness_sum = Nanos(6_000 * times + 18_000_000);
        }
        (metrics, expected)
    }

    /// Goal: each count of each CPU, and each of the machine, stands behind its own name. Method: all of
    /// them, no two alike.
    #[test]
    fn every_count_has_its_name() {
        let (mut metrics, mut expected) = two_cpus();
        (metrics.settimes, metrics.locks.spun) = (71, 72);
        (metrics.locks.slept, metrics.locks.holder_preempted) = (73, 74);
        let machine = ["alarm_settimes", "lock_spun", "lock_slept", "lock_holder_preempted"];
        let machine = machine.map(|name| format!("quietcore_{name}_total"));
        expected.extend(machine.into_iter().zip([71.0, 72.0, 73.0, 74.0]));
        let mut found = samples(&metrics.to_openmetrics());
        found.retain(|series, _| series.contains("_total"));
        assert_eq!(found, expected);
        assert_eq!(metrics.sum(|cpu| cpu.turns), 19 + 1900);
    }

    /// Goal: how late timers were is there for each CPU, and in all. Method: spans of 2 us, which end below
    /// 2.048 us, and of 9 ms, below 10.486 ms.
    #[test]
    fn lateness_has_its_buckets() {
        let (metrics, _) = two_cpus();
        let late = samples(&metrics.to_openmetrics());
        let of =
            |kind: &str, labels: &str| late[&format!("quietcore_timer_lateness_seconds_{kind}{{{labels}}}")];
        let (first, second) = ("cpu=\"4\",role=\"cpu\"", "cpu=\"6\",role=\"spare\"");
        assert_eq!((of("count", first), of("sum", first)), (5.0, 0.018_006));
        assert_eq!((of("count", second), of("sum", second)), (302.0, 0.018_6));
        let below = |span: f64, labels: &str| {
            let ends = late.iter().filter_map(|(series, count)| {
                let (end, rest) = series.split_once("{le=\"")?.1.split_once("\",")?;
                let end: f64 = end.parse().ok().filter(|_| rest.strip_suffix('}') == Some(labels))?;
                ((end - span).abs() < 1e-12).then_some(*count)
            });
            ends.sum::<f64>()
        };
        assert_eq!((below(1.792e-6, second), below(2.048e-6, second)), (0.0, 300.0));
        assert_eq!((below(8.388608e-3, second), below(10.48576e-3, second)), (300.0, 302.0));
        assert_eq!(below(10.48576e-3, first), 5.0);

        let all = metrics.lateness();
        assert_eq!(
            (all.len(), all.counts[bucket_of(2_000)], all.counts[bucket_of(9_000_000)]),
            (307, 303, 4)
        );
    }

    /// Goal: lanes are there with one state each and no label more; a machine without lanes has none. Method:
    /// one lane that is claimed, isolated and left; its spare; then without.
    #[test]
    fn lanes_have_a_state() {
        let cpu = CpuId::default();
        // However long this thread does not run, the lane is not taken for stuck.
        let builder = Machine::builder().lanes("0".parse().expect("a list"));
        let machine = builder.stall_after(core::time::Duration::from_secs(3600)).start().expect("starts");
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
