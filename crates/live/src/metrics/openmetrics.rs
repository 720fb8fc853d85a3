//! A snapshot as OpenMetrics text, for a scrape or a textfile collector.
//!
//! Labels are CPU numbers and a fixed set of words, so that a scrape is bounded. Source: OpenMetrics 1.0.

use super::lanes::{LaneMetrics, LaneState};
use super::snapshot::{CpuMetrics, Metrics};
use core::fmt::{self, Write};

/// A counter that each CPU has.
struct Family {
    name: &'static str,
    help: &'static str,
    of: fn(&CpuMetrics) -> u64,
}

const FAMILIES: [Family; 30] = [
    Family { name: "timers_armed", help: "Arms of timers.", of: |cpu| cpu.bases.armed },
    Family {
        name: "timers_superseded",
        help: "Pending periods that an arm ended.",
        of: |cpu| cpu.bases.superseded,
    },
    Family {
        name: "timers_cancelled",
        help: "Pending periods that a cancel ended.",
        of: |cpu| cpu.bases.cancelled,
    },
    Family { name: "timers_ran_here", help: "Timers of this CPU that it ran.", of: |cpu| cpu.bases.ran_here },
    Family {
        name: "timers_ran_elsewhere",
        help: "Timers of this CPU that others ran.",
        of: |cpu| cpu.bases.ran_elsewhere,
    },
    Family {
        name: "timers_waited",
        help: "Timers that were due while they ran.",
        of: |cpu| cpu.bases.waited,
    },
    Family { name: "runs_own", help: "Runs by this CPU of its own timers.", of: |cpu| cpu.ran_own },
    Family {
        name: "runs_for_others",
        help: "Runs by this CPU of timers that it pulled.",
        of: |cpu| cpu.ran_for_others,
    },
    Family { name: "turns", help: "Turns.", of: |cpu| cpu.turns },
    Family { name: "kicks", help: "Kicks sent to this CPU.", of: |cpu| cpu.kicks },
    Family { name: "panics", help: "Callbacks that panicked.", of: |cpu| cpu.panics },
    Family { name: "items", help: "Polls of tasks, and runs of work.", of: |cpu| cpu.items },
    Family { name: "realtime_polls", help: "Polls of real-time tasks.", of: |cpu| cpu.realtime_polls },
    Family {
        name: "migrations",
        help: "Real-time tasks that came from another lane.",
        of: |cpu| cpu.migrations,
    },
    Family { name: "pulled", help: "Real-time tasks that this lane took from others.", of: |cpu| cpu.pulled },
    Family { name: "pushed", help: "Real-time tasks that this lane gave to others.", of: |cpu| cpu.pushed },
    Family {
        name: "stolen",
        help: "Normal tasks and work that this lane took from others.",
        of: |cpu| cpu.stolen,
    },
    Family { name: "raises", help: "Times that vectors were raised for this CPU.", of: |cpu| cpu.raises },
    Family { name: "softirqs", help: "Softirqs' handlers that its lane ran.", of: |cpu| cpu.softirqs },
    Family {
        name: "ksoftirqd_ran",
        help: "Softirqs' handlers that its ksoftirqd ran.",
        of: |cpu| cpu.ksoftirqd_ran,
    },
    Family {
        name: "ksoftirqd_wakeups",
        help: "Times that its ksoftirqd was woken.",
        of: |cpu| cpu.ksoftirqd_wakeups,
    },
    Family {
        name: "deferred",
        help: "Vectors left because a real-time task waited.",
        of: |cpu| cpu.deferred,
    },
    Family { name: "donations", help: "Waits for its ksoftirqd at the limit.", of: |cpu| cpu.donations },
    Family { name: "timer_raises", help: "Turns by ticks as an isolated lane.", of: |cpu| cpu.timer_raises },
    Family {
        name: "empty_raises",
        help: "Turns by ticks in which nothing was due.",
        of: |cpu| cpu.empty_raises,
    },
    Family { name: "stalls", help: "Stalls that were reported.", of: |cpu| cpu.stalls },
    Family { name: "marks", help: "Times this CPU was marked absent.", of: |cpu| cpu.bases.marks },
    Family { name: "false_marks", help: "Marks without need.", of: |cpu| cpu.bases.false_marks },
    Family { name: "busy_marks", help: "Marks that were put off.", of: |cpu| cpu.bases.busy_marks },
    Family {
        name: "tokens_revoked",
        help: "Expiry taken over from a stuck CPU.",
        of: |cpu| cpu.bases.revoked,
    },
];

impl Metrics {
    /// As OpenMetrics text.
    #[must_use]
    pub fn to_openmetrics(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        for Family { name, help, of } in FAMILIES {
            describe(out, name, "counter", help)?;
            for cpu in &self.cpus {
                writeln!(
                    out,
                    "quietcore_{name}_total{{cpu=\"{}\",role=\"{}\"}} {}",
                    cpu.cpu,
                    role(cpu),
                    of(cpu)
                )?;
            }
        }
        self.write_lanes(out)?;
        let locks = [
            ("alarm_settimes", "Timers of the kernel that were set.", self.settimes),
            ("lock_spun", "Locks that were waited for by spinning.", self.locks.spun),
            ("lock_slept", "Locks that were waited for asleep.", self.locks.slept),
            (
                "lock_holder_preempted",
                "Waits for a holder that was off its CPU.",
                self.locks.holder_preempted,
            ),
        ];
        for (name, help, value) in locks {
            describe(out, name, "counter", help)?;
            writeln!(out, "quietcore_{name}_total {value}")?;
        }
        self.write_lateness(out)?;
        out.write_str("# EOF\n")
    }

    /// States are gauges of 0 or 1, one of each four being 1: a type of their own is not known to readers of
    /// the older format.
    fn write_lanes(&self, out: &mut String) -> fmt::Result {
        let lanes = || self.cpus.iter().filter_map(|cpu| Some((cpu, cpu.lane.as_ref()?)));
        describe(out, "lane_state", "gauge", "1 for what the books say of a lane.")?;
        for (cpu, lane) in lanes() {
            for state in LaneState::ALL {
                let (labels, is_it) = (labels(cpu), u8::from(state == lane.state));
                writeln!(out, "quietcore_lane_state{{{labels},state=\"{state}\"}} {is_it}")?;
            }
        }
        let flags = [
            ("lane_isolated", "1 for a lane whose CPU is isolated.", is_isolated as Flag),
            ("lane_claimed", "1 for a lane that a thread has claimed.", is_claimed),
        ];
        for (name, help, of) in flags {
            describe(out, name, "gauge", help)?;
            for (cpu, lane) in lanes() {
                writeln!(out, "quietcore_{name}{{{}}} {}", labels(cpu), u8::from(of(lane)))?;
            }
        }
        Ok(())
    }

    fn write_lateness(&self, out: &mut String) -> fmt::Result {
        let name = "timer_lateness_seconds";
        describe(out, name, "histogram", "From the start of the tick armed for to the run.")?;
        for cpu in &self.cpus {
            let (number, role) = (cpu.cpu, role(cpu));
            for (end, below) in cpu.lateness.cumulative() {
                let end = end.map_or("+Inf".to_owned(), |end| format!("{}", end.as_secs_f64()));
                let labels = format!("cpu=\"{number}\",role=\"{role}\",le=\"{end}\"");
                writeln!(out, "quietcore_{name}_bucket{{{labels}}} {below}")?;
            }
            let labels = format!("cpu=\"{number}\",role=\"{role}\"");
            writeln!(out, "quietcore_{name}_count{{{labels}}} {}", cpu.lateness.len())?;
            writeln!(out, "quietcore_{name}_sum{{{labels}}} {}", cpu.lateness_sum.as_secs_f64())?;
        }
        Ok(())
    }
}

type Flag = fn(&LaneMetrics) -> bool;

fn is_isolated(lane: &LaneMetrics) -> bool {
    lane.is_isolated
}

fn is_claimed(lane: &LaneMetrics) -> bool {
    lane.is_claimed
}

fn labels(cpu: &CpuMetrics) -> String {
    format!("cpu=\"{}\",role=\"{}\"", cpu.cpu, role(cpu))
}

const fn role(cpu: &CpuMetrics) -> &'static str {
    if cpu.is_spare { "spare" } else { "cpu" }
}

fn describe(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# TYPE quietcore_{name} {kind}\n# HELP quietcore_{name} {help}")
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
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                (family, kind) = rest.split_once(' ').expect(line);
                assert!(family.starts_with("quietcore_") && families.insert(family), "{line}: twice");
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                assert_eq!(rest.split(' ').next(), Some(family), "{line}: of another family");
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
