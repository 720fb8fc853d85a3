//! The figures of a report as OpenMetrics text, described for users in `docs/reference/openmetrics.md`.
//!
//! Every figure is a gauge: it is the count of one recording, and the next recording's is not a
//! continuation of it, so a counter (and `rate()` over it) would mean nothing. A figure that is
//! `None` has no sample, never 0; `quietcore_figure_recorded` says which those are.
//!
//! Invariants: one metric family stands in one block, no series appears twice, and the text is
//! also valid in the older Prometheus format, which is what node_exporter's textfile collector
//! reads. That is why the info metric's type says `gauge`: the older format has no `info`.
//!
//! Source: OpenMetrics 1.0, "Text format"; Prometheus, "Exposition formats".

use super::labels::{Escaped, top};
use crate::figures::{CountByName, CountByNumber, Disturbance, Explanation};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{self, Write};

/// Writes all figures of `report` as OpenMetrics text 1.0, ending in `# EOF`.
///
/// Label sets are bounded: a CPU or group has a series only if the report counts something there
/// (so at most 8192 per figure), functions and tasks are the 20 most frequent and `other`. Units
/// are in the names (`_seconds`); everything else is a count. Cost: many short writes to `out`,
/// some ten KiB in all for a machine with 16 CPUs, so give it a buffer.
///
/// # Errors
/// Those of `out`; what was written until then is not a valid text.
///
/// ```
/// use quietcore_explain::{Explain, ExplainOptions, openmetrics};
/// use quietcore_trace::parse_line;
///
/// let mut explain = Explain::new(ExplainOptions::default());
/// explain.take(&parse_line(b"a-1 [002] 1.5: timer_cancel: timer=01")?);
/// let mut text = Vec::new();
/// openmetrics(&explain.finish(&Default::default()), &mut text)?;
/// let text = String::from_utf8(text)?;
/// assert!(text.contains("\nquietcore_timers_cancel_events 1\n"));
/// assert!(text.contains("\nquietcore_figure_recorded{figure=\"foreign\"} 0\n"));
/// assert!(text.ends_with("# EOF\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn openmetrics(report: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Families { out };
    recording(report, &mut text)?;
    recorded_figures(report, &mut text)?;
    timers(report, &mut text)?;
    disturbance(&FOREIGN, &report.foreign, &mut text)?;
    disturbance(&BETWEEN_ISOLATED, &report.between_isolated, &mut text)?;
    remote(report, &mut text)?;
    softirqs(report, &mut text)?;
    hrtimers(report, &mut text)?;
    rt_wakeups(report, &mut text)?;
    findings(report, &mut text)?;
    text.out.write_all(b"# EOF\n")
}

/// Writes metric families, one at a time.
struct Families<'a> {
    out: &'a mut dyn Write,
}

impl Families<'_> {
    /// HELP, TYPE, and UNIT where the name ends in one. `help` must be free of `"`, `\` and line
    /// breaks, which the two formats escape differently.
    fn open(&mut self, name: &str, help: &str) -> io::Result<()> {
        writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} gauge")?;
        if name.ends_with("_seconds") {
            writeln!(self.out, "# UNIT {name} seconds")?;
        }
        Ok(())
    }

    /// A family of one sample without labels; nothing at all without a value.
    fn single(&mut self, name: &str, help: &str, value: Option<impl Display>) -> io::Result<()> {
        let Some(value) = value else { return Ok(()) };
        self.open(name, help)?;
        writeln!(self.out, "{name} {value}")
    }

    /// A family of one sample per CPU or group.
    fn by_number(
        &mut self,
        name: &str,
        label: &str,
        help: &str,
        counts: Option<&CountByNumber>,
    ) -> io::Result<()> {
        let Some(counts) = counts else { return Ok(()) };
        self.open(name, help)?;
        counts
            .iter()
            .try_for_each(|(number, count)| writeln!(self.out, "{name}{{{label}=\"{number}\"}} {count}"))
    }

    /// A family of one sample per name, the most frequent names only.
    fn by_name(
        &mut self,
        name: &str,
        label: &str,
        help: &str,
        counts: Option<&CountByName>,
    ) -> io::Result<()> {
        let Some(counts) = counts else { return Ok(()) };
        self.open(name, help)?;
        top(counts).iter().try_for_each(|(value, count)| {
            writeln!(self.out, "{name}{{{label}=\"{}\"}} {count}", Escaped(value))
        })
    }
}

fn recording(report: &Explanation, text: &mut Families<'_>) -> io::Result<()> {
    let name = "quietcore_recording_info";
    text.open(name, "What was recorded, in labels; the value is always 1.")?;
    writeln!(
        text.out,
        "{name}{{kernel=\"{}\",isolated=\"{}\",isolated_source=\"{}\",nohz_full=\"{}\"}} 1",
        Escaped(report.kernel.as_deref().unwrap_or_default()),
        Escaped(&report.isolated),
        Escaped(report.isolated_source),
        Escaped(&report.nohz_full),
    )?;
    let duration = report.duration_ns.map(|nanos| nanos as f64 / 1e9);
    text.single("quietcore_recording_duration_seconds", "From the first event to the last.", duration)?;
    for (name, help, value) in [
        ("quietcore_recording_cpus", "One more than the highest possible CPU.", u64::from(report.cpus)),
        ("quietcore_recording_events", "Events read.", report.events),
        (
            "quietcore_recording_lost_events",
            "Events that were lost; above 0, counts are lower bounds.",
            report.lost_events,
        ),
        ("quietcore_recording_malformed_lines", "Lines that could not be read.", report.malformed.count),
        (
            "quietcore_recording_evicted_identities",
            "Timers forgotten because a table was full.",
            report.evicted,
        ),
    ] {
        text.single(name, help, Some(value))?;
    }
    let migration = report.timer_migration.map(u8::from);
    text.single("quietcore_kernel_timer_migration", "The sysctl kernel.timer_migration.", migration)
}

/// Every path that can be in [`Explanation::not_recorded`], and whether its figure is there.
fn figures(report: &Explanation) -> [(&'static str, bool); 21] {
    let Explanation { timers, foreign, between_isolated, remote, .. } = report;
    let Explanation { ping_pong, softirq, hrtimers, rt_wakeups, .. } = report;
    let watchdog = &hrtimers.qdisc_watchdog;
    let delay = "rt_wakeups.delay_ns"; // its quantiles are also None when nothing was behind a softirq
    [
        ("timers.started", timers.started.is_some()),
        ("timers.expired", timers.expired.is_some()),
        ("timers.cancel_events", timers.cancel_events.is_some()),
        ("timers.expired_unknown_start", timers.expired_unknown_start.is_some()),
        ("foreign", foreign.total.is_some()),
        ("between_isolated", between_isolated.total.is_some()),
        ("remote", remote.total.is_some()),
        ("ping_pong", ping_pong.count.is_some()),
        ("softirq.timer_entries", softirq.timer_entries.is_some()),
        ("softirq.timer_empty", softirq.timer_empty.is_some()),
        ("softirq.by_cpu", softirq.by_cpu.is_some()),
        ("hrtimers.expired", hrtimers.expired.is_some()),
        ("hrtimers.off_arming_cpu", hrtimers.off_arming_cpu.is_some()),
        ("hrtimers.foreign", hrtimers.foreign.is_some()),
        ("hrtimers.by_task", hrtimers.by_task.is_some()),
        ("hrtimers.qdisc_watchdog.expired", watchdog.expired.is_some()),
        ("hrtimers.qdisc_watchdog.off_arming_cpu", watchdog.off_arming_cpu.is_some()),
        ("hrtimers.qdisc_watchdog.by_cpu", watchdog.by_cpu.is_some()),
        ("rt_wakeups.count", rt_wakeups.count.is_some()),
        ("rt_wakeups.behind_softirq", rt_wakeups.behind_softirq.is_some()),
        (delay, rt_wakeups.behind_softirq.is_some() && !report.not_recorded.contains(&delay)),
    ]
}

fn recorded_figures(report: &Explanation, text: &mut Families<'_>) -> io::Result<()> {
    let name = "quietcore_figure_recorded";
    text.open(name, "1 when the events of a figure were recorded; 0 when they were not: it has no samples.")?;
    figures(report).into_iter().try_for_each(|(figure, recorded)| {
        writeln!(text.out, "{name}{{figure=\"{figure}\"}} {}", u8::from(recorded))
    })
}

fn timers(report: &Explanation, text: &mut Families<'_>) -> io::Result<()> {
    let timers = &report.timers;
    for (name, help, value) in [
        ("quietcore_timers_started", "Wheel timers put into the wheel.", timers.started),
        ("quietcore_timers_expired", "Wheel timers' callbacks run.", timers.expired),
        (
            "quietcore_timers_cancel_events",
            "Wheel timers taken out of the wheel; one precedes each expiry.",
            timers.cancel_events,
        ),
        (
            "quietcore_timers_expired_unknown_start",
            "Expiries of timers started before the recording.",
            timers.expired_unknown_start,
        ),
    ] {
        text.single(name, help, value)?;
    }
    Ok(())
}

/// The names of one [`Disturbance`]'s families, and what it counts.
struct DisturbanceNames {
    name: &'static str,
    what: &'static str,
}

const FOREIGN: DisturbanceNames = DisturbanceNames {
    name: "quietcore_foreign_expiries",
    what: "Wheel timers armed on a CPU that is not isolated that ran on an isolated one",
};

const BETWEEN_ISOLATED: DisturbanceNames = DisturbanceNames {
    name: "quietcore_between_isolated_expiries",
    what: "Wheel timers armed on one isolated CPU that ran on another",
};

fn disturbance(names: &DisturbanceNames, figure: &Disturbance, text: &mut Families<'_>) -> io::Result<()> {
    let DisturbanceNames { name, what } = names;
    text.single(name, &format!("{what}."), figure.total)?;
    if let (Some(pulled), Some(placed)) = (figure.pulled, figure.placed) {
        let name = format!("{name}_by_kind");
        text.open(&name, &format!("{what}: pulled from another CPU's base, or placed in its own."))?;
        writeln!(text.out, "{name}{{kind=\"pulled\"}} {pulled}\n{name}{{kind=\"placed\"}} {placed}")?;
    }
    let named = format!("{name}_by_function");
    let help = format!("{what}, by callback.");
    text.by_name(&named, "function", &help, figure.by_function.as_ref())?;
    for (label, by, counts) in [
        ("cpu", "the CPU they ran on", &figure.by_cpu),
        ("base_cpu", "the CPU whose base they were in", &figure.by_base_cpu),
        ("group", "the level-0 group of the CPU they ran on", &figure.by_group),
    ] {
        let help = format!("{what}, by {by}.");
        text.by_number(&format!("{name}_by_{label}"), label, &help, counts.as_ref())?;
    }
    Ok(())
}

fn remote(report: &Explanation, text: &mut Families<'_>) -> io::Result<()> {
    let total = report.remote.total;
    text.single("quietcore_remote_expiries", "Wheel timers run by another CPU than the base's.", total)?;
    text.by_number(
        "quietcore_remote_expiries_by_cpu",
        "cpu",
        "Wheel timers run by another CPU than the base's, by the CPU they ran on.",
        report.remote.by_cpu.as_ref(),
    )?;
    let count = report.ping_pong.count;
    text.single(
        "quietcore_ping_pongs",
        "Remote expiries whose timer was armed on its old base next.",
        count,
    )?;
    let rate = report.ping_pong.per_s;
    text.single("quietcore_ping_pongs_per_second", "Ping-pongs per second of the recording.", rate)?;
    let estimated = report.foreign.total.map(|_| u8::from(report.groups.estimated));
    text.single("quietcore_groups_estimated", "1 when group labels are a guess, CPUs in eights.", estimated)
}

fn softirqs(report: &Explanation, text: &mut Families<'_>) -> io::Result<()> {
    let softirq = &report.softirq;
    text.single("quietcore_timer_softirqs", "TIMER softirqs.", softirq.timer_entries)?;
    let help = "TIMER softirqs that ran no wheel timer.";
    text.single("quietcore_timer_softirqs_empty", help, softirq.timer_empty)?;
    let help = "TIMER softirqs that ran no wheel timer, by CPU.";
    text.by_number("quietcore_timer_softirqs_empty_by_cpu", "cpu", help, softirq.by_cpu.as_ref())
}

fn hrtimers(report: &Explanation, text: &mut Families<'_>) -> io::Result<()> {
    let (timers, watchdog) = (&report.hrtimers, &report.hrtimers.qdisc_watchdog);
    for (name, help, value) in [
        ("quietcore_hrtimers_expired", "High-resolution timers' callbacks run.", timers.expired),
        (
            "quietcore_hrtimers_off_arming_cpu",
            "Those on another CPU than the one that started the timer.",
            timers.off_arming_cpu,
        ),
        (
            "quietcore_hrtimers_foreign",
            "Those of off_arming_cpu from a CPU not isolated to an isolated one.",
            timers.foreign,
        ),
        ("quietcore_qdisc_watchdog_expired", "Expiries of packet schedulers' watchdogs.", watchdog.expired),
        (
            "quietcore_qdisc_watchdog_off_arming_cpu",
            "Those on another CPU than the one that started it.",
            watchdog.off_arming_cpu,
        ),
    ] {
        text.single(name, help, value)?;
    }
    let help = "Expiries of packet schedulers' watchdogs, by the CPU they ran on.";
    text.by_number("quietcore_qdisc_watchdog_expired_by_cpu", "cpu", help, watchdog.by_cpu.as_ref())?;
    let help = "Expiries of hrtimer_wakeup, by the task that started the timer (comm-pid).";
    text.by_name("quietcore_hrtimer_wakeups_by_task", "task", help, timers.by_task.as_ref())
}

fn rt_wakeups(report: &Explanation, text: &mut Families<'_>) -> io::Result<()> {
    let wakeups = &report.rt_wakeups;
    text.single("quietcore_rt_wakeups", "Wake-ups of tasks with a priority below 100.", wakeups.count)?;
    let help = "Those towards a CPU inside a NET_TX, NET_RX, BLOCK or IRQ_POLL softirq.";
    text.single("quietcore_rt_wakeups_behind_softirq", help, wakeups.behind_softirq)?;
    let delay = &wakeups.delay_ns;
    let samples = [("p50", delay.p50), ("p99", delay.p99), ("max", delay.max)];
    if samples.iter().all(|(_, value)| value.is_none()) {
        return Ok(());
    }
    let name = "quietcore_rt_wakeup_delay_seconds";
    text.open(name, "From sched_waking to running, over the wake-ups behind a softirq.")?;
    samples
        .into_iter()
        .filter_map(|(stat, nanos)| Some((stat, nanos?)))
        .try_for_each(|(stat, nanos)| writeln!(text.out, "{name}{{stat=\"{stat}\"}} {}", nanos as f64 / 1e9))
}

fn findings(report: &Explanation, text: &mut Families<'_>) -> io::Result<()> {
    let name = "quietcore_finding";
    text.open(name, "A finding and its severity, in labels; the value is always 1.")?;
    let findings: BTreeSet<_> =
        report.findings.iter().map(|finding| (finding.id, finding.question, finding.severity)).collect();
    findings.into_iter().try_for_each(|(id, question, severity)| {
        let id = Escaped(id);
        writeln!(text.out, "{name}{{id=\"{id}\",question=\"{question}\",severity=\"{severity}\"}} 1")
    })
}

#[cfg(test)]
mod tests {
    use super::{figures, openmetrics};
    use crate::figures::{Explain, ExplainOptions, Explanation};
    use crate::finding::{Finding, Severity};
    use quietcore_trace::Question;
    use std::collections::BTreeSet;

    fn text(report: &Explanation) -> String {
        let mut bytes = Vec::new();
        openmetrics(report, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Checks the rules of the format that a line-wise reader can check.
    fn check_format(text: &str) {
        let mut series = BTreeSet::new();
        let mut families = BTreeSet::new();
        let mut family = "";
        let body = text.strip_suffix("# EOF\n").expect("ends in EOF");
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# ") {
                let (keyword, rest) = rest.split_once(' ').expect(line);
                let name = rest.split(' ').next().expect(line);
                assert!(name.starts_with("quietcore_"), "{line}");
                match keyword {
                    "HELP" => assert!(families.insert(name), "{name} has two blocks"),
                    "TYPE" => assert_eq!(rest, format!("{name} gauge")),
                    "UNIT" => assert!(name.ends_with("_seconds") && rest.ends_with(" seconds"), "{line}"),
                    _ => panic!("{line}"),
                }
                family = name;
                continue;
            }
            let (name, value) = line.rsplit_once(' ').expect(line);
            value.parse::<f64>().expect(line);
            assert_eq!(name.split('{').next(), Some(family), "{line}: outside of its family");
            assert!(!family.ends_with("_total"), "{family}: gauges are no totals");
            assert!(series.insert(name), "{line}: twice");
        }
    }

    /// Goal: what was not recorded has no sample, and says so. Method: a report of nothing.
    #[test]
    fn nothing_recorded_is_not_zero() {
        let report = Explain::new(ExplainOptions::default()).finish(&Default::default());
        let text = text(&report);
        check_format(&text);
        let missing: BTreeSet<_> =
            figures(&report).iter().filter(|figure| !figure.1).map(|figure| figure.0).collect();
        assert_eq!(missing, report.not_recorded.iter().copied().collect());
        assert_eq!(missing.len(), figures(&report).len());
        assert_eq!(text.matches("quietcore_figure_recorded{").count(), missing.len());
        assert!(!text.contains("quietcore_foreign"), "{text}");
        assert!(!text.contains("quietcore_recording_duration"), "{text}");
    }

    /// Goal: hostile names do not break the text. Method: names with quotes and line breaks,
    /// more of them than there are labels, and the same finding twice.
    #[test]
    fn hostile_names_stay_inside_their_quotes() {
        let mut report = Explanation { kernel: Some("6\"\n# EOF\\".to_owned()), ..Explanation::default() };
        report.foreign.total = Some(1);
        report.foreign.by_cpu = Some([(3, 7), (8191, 1)].into());
        report.foreign.by_function = Some((0..99).map(|n| (format!("f\"\n{n}\r"), 1)).collect());
        report.hrtimers.by_task = Some((0..99).map(|n| (format!("t{n:02}"), n)).collect());
        let finding = Finding::new("pulled-onto-isolated", Question::Isolation, Severity::Warning);
        report.findings = vec![finding.clone(), finding];
        let text = text(&report);
        check_format(&text);
        assert!(text.contains("kernel=\"6\\\"\\n# EOF\\\\\""), "{text}");
        assert_eq!(text.matches("{function=").count(), 21);
        assert!(text.contains("_by_function{function=\"other\"} 79\n"), "{text}");
        assert!(text.contains("_by_task{task=\"other\"} 3081\n"), "{text}"); // 0 + 1 + ... + 78
        assert!(text.contains("quietcore_foreign_expiries_by_cpu{cpu=\"8191\"} 1\n"), "{text}");
        let finding =
            "quietcore_finding{id=\"pulled-onto-isolated\",question=\"isolation\",severity=\"warning\"} 1\n";
        assert_eq!(text.matches(finding).count(), 1, "{text}");
    }

    /// Goal: an error of the output is handed back. Method: an output that takes only so much.
    #[test]
    fn an_error_of_the_output_is_handed_back() {
        for room in [0, 1, 100, 1000] {
            let mut room = vec![0; room];
            let result = openmetrics(&Explanation::default(), &mut room.as_mut_slice());
            assert!(result.is_err(), "{} bytes of room", room.len());
        }
    }
}
