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

use super::labels::{NAME_CHARS_MAX, printable, top};
use crate::figures::{CountByName, CountByNumber, Disturbance, Explanation, IdleResidency, TookSpans};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};

/// Writes all figures of `report` as OpenMetrics text 1.0, ending in `# EOF`.
///
/// Label sets are bounded: a CPU or group has a series only if the report counts something there
/// (so at most 8192 per figure), functions and tasks are the 20 most frequent and `other`. Units
/// are in the names (`_seconds`); everything else is a count. Cost: one write to `out`, some ten KiB for a
/// machine with 16 CPUs.
///
/// # Errors
/// Those of `out`; what was written until then is not a valid text.
pub fn openmetrics(report: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Figures(report.clone())));
    let mut encoded = String::new();
    text::encode(&mut encoded, &registry).map_err(io::Error::other)?;
    out.write_all(encoded.as_bytes())
}

/// A report whose figures a registry writes.
#[derive(Debug)]
struct Figures(Explanation);

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (report, mut text) = (&self.0, Families(encoder));
        recording(report, &mut text)?;
        recorded_figures(report, &mut text)?;
        timers(report, &mut text)?;
        disturbance(&FOREIGN, &report.foreign, &mut text)?;
        disturbance(&BETWEEN_ISOLATED, &report.between_isolated, &mut text)?;
        remote(report, &mut text)?;
        softirqs(report, &mut text)?;
        hrtimers(report, &mut text)?;
        rt_wakeups(report, &mut text)?;
        interruptions(report, &mut text)?;
        idle(report, &mut text)?;
        findings(report, &mut text)
    }
}

/// A sample's label values by name, and its value.
type Sample<const LABELS: usize, V> = ([(&'static str, String); LABELS], V);

/// A statistic's name, and its value in ns.
type Statistic = (&'static str, Option<u64>);

/// Writes families of gauges, one at a time.
struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    /// `help` must be free of `"`, `\` and line breaks, which the two formats escape differently.
    fn open<'s>(&'s mut self, name: &'s str, help: &str) -> Result<MetricEncoder<'s>, fmt::Error> {
        let stem = name.strip_suffix("_seconds");
        let unit = stem.map(|_| &Unit::Seconds);
        self.0.encode_descriptor(stem.unwrap_or(name), help, unit, MetricType::Gauge)
    }

    /// A family of samples with labels.
    fn labelled<const LABELS: usize, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<LABELS, V>>,
    ) -> fmt::Result {
        let mut family = self.open(name, help)?;
        samples
            .into_iter()
            .try_for_each(|(labels, value)| family.encode_family(&labels)?.encode_gauge(&value))
    }

    /// A family of one sample without labels; nothing at all without a value.
    fn single(&mut self, name: &str, help: &str, value: Option<impl EncodeGaugeValue>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.open(name, help)?.encode_gauge(&value))
    }

    /// A family of one sample per statistic of a span; nothing at all without values.
    fn spans<const STATS: usize>(
        &mut self,
        name: &str,
        help: &str,
        stats: [Statistic; STATS],
    ) -> fmt::Result {
        if stats.iter().all(|(_, nanos)| nanos.is_none()) {
            return Ok(());
        }
        let samples = stats
            .into_iter()
            .filter_map(|(stat, nanos)| Some(([("stat", stat.to_owned())], nanos? as f64 / 1e9)));
        self.labelled(name, help, samples)
    }

    /// A family of one sample per CPU or group.
    fn by_number(
        &mut self,
        name: &str,
        label: &'static str,
        help: &str,
        counts: Option<&CountByNumber>,
    ) -> fmt::Result {
        let Some(counts) = counts else { return Ok(()) };
        let samples = counts.iter().map(|(number, &count)| ([(label, number.to_string())], count));
        self.labelled(name, help, samples)
    }

    /// A family of one sample per name, the most frequent names only.
    fn by_name(
        &mut self,
        name: &str,
        label: &'static str,
        help: &str,
        counts: Option<&CountByName>,
    ) -> fmt::Result {
        let Some(counts) = counts else { return Ok(()) };
        self.labelled(name, help, top(counts).into_iter().map(|(name, count)| ([(label, name)], count)))
    }
}

fn recording(report: &Explanation, text: &mut Families<'_>) -> fmt::Result {
    let labels = [
        ("kernel", report.kernel.as_deref().unwrap_or_default()),
        ("isolated", &report.isolated),
        ("isolated_source", report.isolated_source),
        ("nohz_full", &report.nohz_full),
    ]
    .map(|(name, value)| (name, printable(value).collect()));
    let help = "What was recorded, in labels; the value is always 1.";
    text.labelled("quietcore_recording_info", help, [(labels, 1u64)])?;
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
    let migration = report.timer_migration.map(u64::from);
    text.single("quietcore_kernel_timer_migration", "The sysctl kernel.timer_migration.", migration)
}

/// Every path that can be in [`Explanation::not_recorded`].
const FIGURES: [&str; 34] = [
    "timers.started",
    "timers.expired",
    "timers.cancel_events",
    "timers.expired_unknown_start",
    "foreign",
    "foreign.took_ns",
    "between_isolated",
    "between_isolated.took_ns",
    "remote",
    "ping_pong",
    "softirq.timer_entries",
    "softirq.timer_empty",
    "softirq.by_cpu",
    "softirq.empty_ns",
    "hrtimers.expired",
    "hrtimers.off_arming_cpu",
    "hrtimers.foreign",
    "hrtimers.by_task",
    "hrtimers.qdisc_watchdog.expired",
    "hrtimers.qdisc_watchdog.off_arming_cpu",
    "hrtimers.qdisc_watchdog.by_cpu",
    "rt_wakeups.count",
    "rt_wakeups.kernel_threads",
    "rt_wakeups.behind_softirq",
    "rt_wakeups.delay_ns",
    "interruptions.device",
    "interruptions.processor",
    "interruptions.softirq",
    "interruptions.nmi",
    "interruptions.timer",
    "interruptions.hrtimer",
    "interruptions.work",
    "interruptions.task",
    "idle",
];

fn recorded_figures(report: &Explanation, text: &mut Families<'_>) -> fmt::Result {
    let help = "1 when the events of a figure were recorded; 0 when they were not: it has no samples.";
    let samples = FIGURES.map(|figure| {
        let is_recorded = !report.not_recorded.contains(&figure);
        ([("figure", figure.to_owned())], u64::from(is_recorded))
    });
    text.labelled("quietcore_figure_recorded", help, samples)
}

fn timers(report: &Explanation, text: &mut Families<'_>) -> fmt::Result {
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
    /// The family of how long their callbacks took.
    took: &'static str,
}

const FOREIGN: DisturbanceNames = DisturbanceNames {
    name: "quietcore_foreign_expiries",
    what: "Wheel timers armed on a CPU that is not isolated that ran on an isolated one",
    took: "quietcore_foreign_callback_seconds",
};

const BETWEEN_ISOLATED: DisturbanceNames = DisturbanceNames {
    name: "quietcore_between_isolated_expiries",
    what: "Wheel timers armed on one isolated CPU that ran on another",
    took: "quietcore_between_isolated_callback_seconds",
};

fn disturbance(names: &DisturbanceNames, figure: &Disturbance, text: &mut Families<'_>) -> fmt::Result {
    let DisturbanceNames { name, what, took: took_name } = names;
    text.single(name, &format!("{what}."), figure.total)?;
    if let (Some(pulled), Some(placed)) = (figure.pulled, figure.placed) {
        let help = format!("{what}: pulled from another CPU's base, or placed in its own.");
        let samples = [("pulled", pulled), ("placed", placed)]
            .map(|(kind, count)| ([("kind", kind.to_owned())], count));
        text.labelled(&format!("{name}_by_kind"), &help, samples)?;
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
    let help = format!("{what}: how long their callbacks took, without what was on top of them.");
    text.spans(took_name, &help, took(&figure.took_ns))
}

fn remote(report: &Explanation, text: &mut Families<'_>) -> fmt::Result {
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
    let estimated = report.foreign.total.map(|_| u64::from(report.groups.estimated));
    text.single("quietcore_groups_estimated", "1 when group labels are a guess, CPUs in eights.", estimated)
}

/// The statistics of how long something took.
fn took(spans: &TookSpans) -> [Statistic; 4] {
    [("p50", spans.p50), ("p99", spans.p99), ("max", spans.max), ("total", spans.total)]
}

fn softirqs(report: &Explanation, text: &mut Families<'_>) -> fmt::Result {
    let softirq = &report.softirq;
    text.single("quietcore_timer_softirqs", "TIMER softirqs.", softirq.timer_entries)?;
    let help = "TIMER softirqs that ran no wheel timer.";
    text.single("quietcore_timer_softirqs_empty", help, softirq.timer_empty)?;
    let help = "TIMER softirqs that ran no wheel timer, by CPU.";
    text.by_number("quietcore_timer_softirqs_empty_by_cpu", "cpu", help, softirq.by_cpu.as_ref())?;
    let help = "From entry to exit of TIMER softirqs that ran no wheel timer.";
    text.spans("quietcore_timer_softirq_empty_seconds", help, took(&softirq.empty_ns))
}

fn hrtimers(report: &Explanation, text: &mut Families<'_>) -> fmt::Result {
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

fn rt_wakeups(report: &Explanation, text: &mut Families<'_>) -> fmt::Result {
    let wakeups = &report.rt_wakeups;
    text.single("quietcore_rt_wakeups", "Wake-ups of tasks with a priority below 100.", wakeups.count)?;
    let help = "Those of the kernel's own threads.";
    text.single("quietcore_rt_wakeups_of_kernel_threads", help, wakeups.kernel_threads)?;
    let help = "Those of other tasks towards a CPU inside a NET_TX, NET_RX, BLOCK or IRQ_POLL softirq.";
    text.single("quietcore_rt_wakeups_behind_softirq", help, wakeups.behind_softirq)?;
    let delay = &wakeups.delay_ns;
    let stats = [("p50", delay.p50), ("p99", delay.p99), ("max", delay.max)];
    let help = "From sched_waking to running, over the wake-ups behind a softirq.";
    text.spans("quietcore_rt_wakeup_delay_seconds", help, stats)
}

/// What an interruption's series are told apart by: CPU, source and printed name.
type InterruptionKey = (u16, &'static str, String);

/// Sums of the rows that print alike.
#[derive(Default)]
struct Interrupted {
    count: u64,
    total_ns: Option<u64>,
    max_ns: Option<u64>,
}

/// Rows whose names print alike are one: a series must not appear twice.
fn interruptions(report: &Explanation, text: &mut Families<'_>) -> fmt::Result {
    let mut rows: BTreeMap<InterruptionKey, Interrupted> = BTreeMap::new();
    for row in report.interruptions.iter().filter(|row| !row.own) {
        let name = printable(&row.name).take(NAME_CHARS_MAX).collect();
        let sum = rows.entry((row.cpu, row.source, name)).or_default();
        sum.count = sum.count.saturating_add(row.count);
        let added = |span: u64| sum.total_ns.unwrap_or(0).saturating_add(span);
        sum.total_ns = row.total_ns.map_or(sum.total_ns, |span| Some(added(span)));
        sum.max_ns = row.max_ns.max(sum.max_ns);
    }
    if rows.is_empty() {
        return Ok(());
    }
    let labels = |(cpu, source, name): &InterruptionKey| {
        [("cpu", cpu.to_string()), ("source", (*source).to_owned()), ("name", name.clone())]
    };
    let seconds = |key, span: Option<u64>| Some((labels(key), span? as f64 / 1e9));
    let help = "What took a CPU away from its own task: interrupts, softirqs, callbacks of timers; of isolated CPUs \
         if there are any, and then work items and other tasks, too.";
    text.labelled("quietcore_interruptions", help, rows.iter().map(|(key, row)| (labels(key), row.count)))?;
    let help = "For how long in all, without what was on top of it.";
    let totals = rows.iter().filter_map(|(key, row)| seconds(key, row.total_ns));
    text.labelled("quietcore_interrupted_seconds", help, totals)?;
    let longest = rows.iter().filter_map(|(key, row)| seconds(key, row.max_ns));
    text.labelled("quietcore_longest_interruption_seconds", "The longest of them.", longest)
}

fn idle(report: &Explanation, text: &mut Families<'_>) -> fmt::Result {
    let rows = report.idle.as_deref().unwrap_or_default();
    if rows.is_empty() {
        return Ok(());
    }
    let labels = |row: &IdleResidency| [("cpu", row.cpu.to_string()), ("state", row.state.to_string())];
    let seconds = |row, span: Option<u64>| Some((labels(row), span? as f64 / 1e9));
    let help = "How often a CPU went into one of its idle states.";
    text.labelled("quietcore_idle_entries", help, rows.iter().map(|row| (labels(row), row.entries)))?;
    let help = "For how long a CPU was in one of its idle states.";
    let totals = rows.iter().filter_map(|row| seconds(row, row.total_ns));
    text.labelled("quietcore_idle_seconds", help, totals)?;
    let longest = rows.iter().filter_map(|row| seconds(row, row.max_ns));
    text.labelled("quietcore_longest_idle_seconds", "The longest residency.", longest)
}

fn findings(report: &Explanation, text: &mut Families<'_>) -> fmt::Result {
    let findings: BTreeSet<_> =
        report.findings.iter().map(|finding| (finding.id, finding.question, finding.severity)).collect();
    let samples = findings.into_iter().map(|(id, question, severity)| {
        let question = question.to_string();
        ([("id", id.to_owned()), ("question", question), ("severity", severity.to_string())], 1u64)
    });
    text.labelled(
        "quietcore_finding",
        "A finding and its severity, in labels; the value is always 1.",
        samples,
    )
}

#[cfg(test)]
mod tests {
    use super::{FIGURES, openmetrics};
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
        assert_eq!(BTreeSet::from(FIGURES), report.not_recorded.iter().copied().collect());
        for figure in FIGURES {
            let sample = format!("\nquietcore_figure_recorded{{figure=\"{figure}\"}} 0\n");
            assert!(text.contains(&sample), "{figure} in {text}");
        }
        assert!(!text.contains("quietcore_foreign"), "{text}");
        assert!(!text.contains("quietcore_recording_duration"), "{text}");
    }

    /// Goal: hostile names do not break the text. Method: names with quotes and line breaks,
    /// more of them than there are labels, and the same finding twice.
    #[test]
    fn hostile_names_stay_inside_their_quotes() {
        let mut report =
            Explanation { kernel: Some("6\"\n# EOF\\\r\0\u{85}".to_owned()), ..Explanation::default() };
        report.foreign.total = Some(1);
        report.foreign.by_cpu = Some([(3, 7), (8191, 1)].into());
        report.foreign.by_function = Some((0..99).map(|n| (format!("f\"\n{n}\r"), 1)).collect());
        report.hrtimers.by_task = Some((0..99).map(|n| (format!("t{n:02}"), n)).collect());
        let finding = Finding::new("pulled-onto-isolated", Question::Isolation, Severity::Warning);
        report.findings = vec![finding.clone(), finding];
        let text = text(&report);
        check_format(&text);
        assert!(text.contains("kernel=\"6\\\"\\n# EOF\\\\\u{fffd}\u{fffd}\u{fffd}\""), "{text}");
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
