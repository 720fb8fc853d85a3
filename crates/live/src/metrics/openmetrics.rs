//! A snapshot as OpenMetrics text, for a scrape or a textfile collector.
//!
//! Labels are CPU numbers and a fixed set of words, so that a scrape is bounded. Source: OpenMetrics 1.0.

use super::{CpuMetrics, Metrics};
use core::fmt::{self, Write};

/// A counter that each CPU has.
struct Family {
    name: &'static str,
    help: &'static str,
    of: fn(&CpuMetrics) -> u64,
}

const FAMILIES: [Family; 15] = [
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
    ///
    /// ```
    /// let machine = quietcore_live::Machine::start()?;
    /// let text = machine.metrics().to_openmetrics();
    /// assert!(text.contains("# TYPE quietcore_timers_armed counter"));
    /// machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
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

const fn role(cpu: &CpuMetrics) -> &'static str {
    if cpu.is_spare { "spare" } else { "cpu" }
}

fn describe(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# TYPE quietcore_{name} {kind}\n# HELP quietcore_{name} {help}")
}
