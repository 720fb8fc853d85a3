//! From counts to an [`Explanation`]: which figures the input can support, and what limits them.

use super::count::{CountPerCpu, EventKind};
use super::explain::{Explain, ExplainOptions};
use super::hierarchy::GroupTable;
use super::report::{
    CountByName, CountByNumber, DelayQuantiles, Disturbance, Explanation, HrtimerTotals, Interruption,
    IsolatedCpu, PingPong, RemoteExpiries, RtWakeups, SoftirqTotals, TimerTotals, TookSpans, UnreadableLines,
    WatchdogTotals,
};
use super::side::TimerSide;
use super::timers::Disturbances;
use quietcore_core::{CpuSet, Nanos};
use quietcore_trace::{KernelRelease, NameTable, Tally, counted};
use std::collections::BTreeMap;

/// Decides per figure whether its events are in the input.
struct FigureGate<'a> {
    explain: &'a Explain,
    missing: Vec<&'static str>,
}

impl FigureGate<'_> {
    /// `value` when all `kinds` were recorded; otherwise `None`, and `path` is noted.
    fn figure<T>(&mut self, path: &'static str, kinds: &[EventKind], value: T) -> Option<T> {
        let Explain { kinds: counts, options, .. } = self.explain;
        if counts.recorded(kinds, &options.switched_on) {
            return Some(value);
        }
        self.missing.push(path);
        None
    }
}

const WHEEL: &[EventKind] = &[EventKind::TimerStart, EventKind::TimerExpire];
const TOOK: &[EventKind] = &[EventKind::TimerStart, EventKind::TimerExpire, EventKind::TimerExit];
const HRTIMER: &[EventKind] = &[EventKind::HrtimerStart, EventKind::HrtimerExpire];
const TIMER_SOFTIRQ: &[EventKind] =
    &[EventKind::SoftirqEntry, EventKind::SoftirqExit, EventKind::TimerExpire];
const BEHIND: &[EventKind] = &[EventKind::SchedWaking, EventKind::SoftirqEntry, EventKind::SoftirqExit];
const DELAY: &[EventKind] =
    &[EventKind::SchedWaking, EventKind::SoftirqEntry, EventKind::SoftirqExit, EventKind::SchedSwitch];

/// Where the figures of what took CPUs away are, each source by its name.
const INTERRUPTIONS_PATH: &str = "interruptions.";

/// Figures of what took CPUs away, by source, and the events that they are made of.
const INTERRUPTIONS: [(&str, &[EventKind]); 8] = [
    ("interruptions.device", &[EventKind::DeviceEntry]),
    ("interruptions.processor", &[EventKind::ProcessorEntry]),
    ("interruptions.softirq", &[EventKind::SoftirqEntry]),
    ("interruptions.nmi", &[EventKind::Nmi]),
    ("interruptions.timer", &[EventKind::TimerExpire]),
    ("interruptions.hrtimer", &[EventKind::HrtimerExpire]),
    ("interruptions.work", &[EventKind::WorkStart]),
    ("interruptions.task", &[EventKind::SchedSwitch]),
];

impl Explain {
    /// The report on everything taken. `tally` is the reader's: it says what was lost.
    #[must_use]
    pub fn finish(self, tally: &Tally) -> Explanation {
        let mut report = report(self, tally);
        report.findings = crate::findings::all(&report);
        report
    }
}

/// From the first to the last event, if the clock has a unit.
fn duration_ns(explain: &Explain, tally: &Tally) -> Option<u64> {
    let first = explain.first_at.filter(|_| !tally.clock_without_unit)?;
    Some(explain.last_at.since(first).as_u64())
}

fn report(mut explain: Explain, tally: &Tally) -> Explanation {
    let by_task = {
        let Explain { hrtimers, names, .. } = &mut explain;
        hrtimers.by_task(names)
    };
    let ExplainOptions { isolated, isolated_source, nohz_full, kernel, timer_migration, wall_clock, .. } =
        explain.options.clone();
    let cpu_count = explain.options.cpu_count;
    let cpus = cpu_count.unwrap_or(0).max(explain.cpus_seen);
    let ran_on = [&explain.wheel.foreign, &explain.wheel.between_isolated];
    let ran_on = ran_on.iter().flat_map(|side| by_cpu(side).into_keys()).collect::<Vec<_>>();
    let groups = explain.hierarchy.groups(cpus, ran_on.into_iter());
    let duration_ns = duration_ns(&explain, tally);
    let mut gate = FigureGate { explain: &explain, missing: Vec::new() };
    let timers = timers(&mut gate);
    let foreign = disturbance(&mut gate, TimerSide::Foreign, tally, &groups);
    let between_isolated = disturbance(&mut gate, TimerSide::BetweenIsolated, tally, &groups);
    let remote = gate.figure("remote", WHEEL, &explain.wheel.remote);
    let remote =
        RemoteExpiries { total: remote.map(CountPerCpu::total), by_cpu: remote.map(CountPerCpu::to_map) };
    let ping_pong = ping_pong(&mut gate, duration_ns);
    let softirq = softirqs(&mut gate, tally);
    let hrtimers = hrtimers(&mut gate, by_task);
    let rt_wakeups = rt_wakeups(&mut gate, tally);
    let interruptions = interruptions(&mut gate, tally);
    let idle = gate.figure("idle", &[EventKind::CpuIdle], explain.idle.report(duration_ns));
    let not_recorded = gate.missing;
    let at = explain.interruptions.report_moment(&explain.names);

    let evicted = explain.wheel.evicted() + explain.hrtimers.evicted();
    Explanation {
        schema: 2,
        preempt_rt: explain.interrupts.is_preempt_rt
            || kernel.as_ref().is_some_and(KernelRelease::is_preempt_rt),
        kernel: kernel.map(|kernel| kernel.text),
        cpus,
        isolated: isolated.to_string(),
        isolated_source,
        nohz_full: nohz_full.to_string(),
        timer_migration,
        isolated_at_ns: explain.hierarchy.isolated_at.map(|at| at.0),
        begin_ns: explain.first_at.map(|first| first.0),
        wall_clock_ns: wall_clock.map(|clock| clock.of(Nanos(0)).0),
        duration_ns,
        events: tally.events,
        lost_events: tally.lost_events,
        not_recorded,
        incomplete: incomplete(tally, evicted, explain.interrupts.evicted()),
        timers,
        foreign,
        between_isolated,
        remote,
        ping_pong,
        softirq,
        hrtimers,
        rt_wakeups,
        isolated_cpus: isolated_cpus(&explain, &groups),
        interruptions,
        osnoise: explain.noise.report(&explain.names),
        idle,
        at,
        timeline: explain.interruptions.report_timeline(),
        groups: groups.report(),
        malformed: malformed(tally),
        unknown_events: CountByName::new(),
        evicted,
        warnings: warnings(&explain, tally),
        findings: Vec::new(),
    }
}

fn timers(gate: &mut FigureGate<'_>) -> TimerTotals {
    let counts = &gate.explain.kinds;
    let (started, expired) = (counts.get(EventKind::TimerStart), counts.get(EventKind::TimerExpire));
    let cancelled = counts.get(EventKind::TimerCancel);
    let unknown = gate.explain.wheel.expired_unknown_start;
    TimerTotals {
        started: gate.figure("timers.started", &[EventKind::TimerStart], started),
        expired: gate.figure("timers.expired", &[EventKind::TimerExpire], expired),
        cancel_events: gate.figure("timers.cancel_events", &[EventKind::TimerCancel], cancelled),
        expired_unknown_start: gate.figure("timers.expired_unknown_start", WHEEL, unknown),
    }
}

fn disturbance(
    gate: &mut FigureGate<'_>,
    from: TimerSide,
    tally: &Tally,
    groups: &GroupTable,
) -> Disturbance {
    let Explain { names, wheel, interruptions, .. } = gate.explain;
    let (side, [path, took_path]) = match from {
        TimerSide::Foreign => (&wheel.foreign, ["foreign", "foreign.took_ns"]),
        TimerSide::BetweenIsolated => {
            (&wheel.between_isolated, ["between_isolated", "between_isolated.took_ns"])
        }
    };
    let took = gate.figure(took_path, TOOK, interruptions.callbacks_took(from));
    let took = took.filter(|_| !tally.clock_without_unit);
    if gate.figure(path, WHEEL, ()).is_none() {
        return Disturbance::default();
    }
    let by_cpu = by_cpu(side);
    Disturbance {
        total: Some(side.total()),
        pulled: Some(side.pulled.total()),
        placed: Some(side.placed.total()),
        since_isolated: Some(side.since_isolated.total()),
        by_function: Some(by_function(
            side.by_function.iter().map(|(name, kinds)| (*name, kinds.total())),
            names,
        )),
        pulled_by_function: by_function(
            side.by_function.iter().map(|(name, kinds)| (*name, kinds.pulled)),
            names,
        ),
        placed_by_function: by_function(
            side.by_function.iter().map(|(name, kinds)| (*name, kinds.placed)),
            names,
        ),
        by_group: Some(groups.sum(&by_cpu)),
        by_cpu: Some(by_cpu),
        by_base_cpu: Some(side.by_base.to_map()),
        took_ns: took.unwrap_or_default(),
        examples: side.examples.clone(),
    }
}

fn by_cpu(side: &Disturbances) -> CountByNumber {
    let mut counts = side.pulled.to_map();
    for (cpu, count) in side.placed.to_map() {
        *counts.entry(cpu).or_default() += count;
    }
    counts
}

fn by_function(
    counts: impl Iterator<Item = (quietcore_trace::NameId, u64)>,
    names: &NameTable,
) -> CountByName {
    let mut by_function = CountByName::new();
    for (name, count) in counts.filter(|(_, count)| *count > 0) {
        *by_function.entry(names.text(name)).or_default() += count;
    }
    by_function
}

fn ping_pong(gate: &mut FigureGate<'_>, duration_ns: Option<u64>) -> PingPong {
    let count = gate.figure("ping_pong", WHEEL, gate.explain.wheel.ping_pongs);
    let seconds = duration_ns.filter(|&nanos| nanos > 0).map(|nanos| nanos as f64 / 1e9);
    PingPong { count, per_s: count.zip(seconds).map(|(count, seconds)| count as f64 / seconds) }
}

fn softirqs(gate: &mut FigureGate<'_>, tally: &Tally) -> SoftirqTotals {
    let interrupts = &gate.explain.interrupts;
    let (entries, empty) = (interrupts.timer_entries, &interrupts.timer_empty);
    let took = if tally.clock_without_unit { TookSpans::default() } else { interrupts.empty_took() };
    let timer_empty = gate.figure("softirq.timer_empty", TIMER_SOFTIRQ, empty.total());
    SoftirqTotals {
        timer_entries: gate.figure("softirq.timer_entries", &[EventKind::SoftirqEntry], entries),
        timer_empty,
        by_cpu: gate.figure("softirq.by_cpu", TIMER_SOFTIRQ, empty.to_map()),
        empty_ns: gate.figure("softirq.empty_ns", TIMER_SOFTIRQ, took).unwrap_or_default(),
    }
}

fn hrtimers(gate: &mut FigureGate<'_>, by_task: CountByName) -> HrtimerTotals {
    let explain = gate.explain;
    let (timers, expired) = (&explain.hrtimers, explain.kinds.get(EventKind::HrtimerExpire));
    let watchdogs: &CountPerCpu = &timers.watchdogs;
    let expiries = &[EventKind::HrtimerExpire];
    HrtimerTotals {
        expired: gate.figure("hrtimers.expired", expiries, expired),
        off_arming_cpu: gate.figure("hrtimers.off_arming_cpu", HRTIMER, timers.off_arming),
        foreign: gate.figure("hrtimers.foreign", HRTIMER, timers.foreign),
        by_task: gate.figure("hrtimers.by_task", HRTIMER, by_task),
        qdisc_watchdog: WatchdogTotals {
            expired: gate.figure("hrtimers.qdisc_watchdog.expired", expiries, watchdogs.total()),
            off_arming_cpu: gate.figure(
                "hrtimers.qdisc_watchdog.off_arming_cpu",
                HRTIMER,
                timers.watchdogs_off_arming,
            ),
            by_cpu: gate.figure("hrtimers.qdisc_watchdog.by_cpu", expiries, watchdogs.to_map()),
        },
    }
}

fn rt_wakeups(gate: &mut FigureGate<'_>, tally: &Tally) -> RtWakeups {
    let interrupts = &gate.explain.interrupts;
    let delays = if tally.clock_without_unit { DelayQuantiles::default() } else { interrupts.delays() };
    let behind = interrupts.rt_behind;
    RtWakeups {
        count: gate.figure("rt_wakeups.count", &[EventKind::SchedWaking], interrupts.rt_wakeups),
        kernel_threads: gate.figure(
            "rt_wakeups.kernel_threads",
            &[EventKind::SchedWaking],
            interrupts.rt_kernel_threads,
        ),
        behind_softirq: gate.figure("rt_wakeups.behind_softirq", BEHIND, behind),
        delay_ns: gate.figure("rt_wakeups.delay_ns", DELAY, delays).unwrap_or_default(),
    }
}

fn interruptions(gate: &mut FigureGate<'_>, tally: &Tally) -> Vec<Interruption> {
    let kinds = |(path, kinds)| gate.figure(path, kinds, ()).map(|()| path);
    let known: Vec<_> = INTERRUPTIONS.into_iter().filter_map(kinds).collect();
    if tally.clock_without_unit {
        return Vec::new();
    }
    let is_known =
        |source: &str| known.iter().any(|path| path.strip_prefix(INTERRUPTIONS_PATH) == Some(source));
    gate.explain.interruptions.report(&gate.explain.names, is_known)
}

fn isolated_cpus(explain: &Explain, groups: &GroupTable) -> Vec<IsolatedCpu> {
    let foreign = &explain.wheel.foreign;
    let mut functions: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (&(cpu, name), &count) in &foreign.by_cpu_function {
        functions.entry(cpu).or_default().push((name, count));
    }
    let touched = functions.into_iter().map(|(cpu, counts)| IsolatedCpu {
        cpu: cpu.index() as u16,
        group: groups.of(cpu.index() as u16),
        pulled: foreign.pulled.get(cpu),
        placed: foreign.placed.get(cpu),
        by_function: by_function(counts.into_iter(), &explain.names),
    });
    touched.collect()
}

/// Why the figures are approximate.
fn incomplete(tally: &Tally, evicted: u64, waiters_evicted: u64) -> Vec<String> {
    let mut reasons = Vec::new();
    if tally.lost_events > 0 {
        let at_least = if tally.lost_unknown { "at least " } else { "" };
        reasons.push(format!(
            "{at_least}{} lost: counts miss them, and what began before a mark of lost events and ended after \
             it",
            counted(tally.lost_events, "event was", "events were")
        ));
    }
    if tally.absent() > 0 {
        reasons.push(format!(
            "{} of the {} that its header speaks of: the text was cut, or is that of one CPU (per_cpu)",
            counted(tally.absent(), "event is missing", "events are missing"),
            tally.entries.unwrap_or(0)
        ));
    }
    if let Some(ran_back) = tally.time_ran_back {
        reasons.push(format!(
            "{ran_back}: it begins a second recording, or the lines are not in order; counts add up what may \
             be there twice, and spans mix both"
        ));
    }
    if tally.functions_unnamed {
        reasons.push(
            "functions have no names: perf does not save them, and the kernel that was recorded does not run \
             here any more; what is known by name (ticks, watchdogs, delayed work) is not found"
                .to_owned(),
        );
    }
    if tally.malformed > 0 {
        let lines = counted(tally.malformed, "line", "lines");
        reasons.push(format!("{lines} could not be read: counts miss their events"));
    }
    if evicted > 0 {
        reasons.push(format!(
            "{} forgotten to bound memory: later expiries count as unknown starts (raise --max-identities)",
            counted(evicted, "identity was", "identities were")
        ));
    }
    if waiters_evicted > 0 {
        reasons.push(format!(
            "{} forgotten to bound memory: delays are missing",
            counted(waiters_evicted, "waiting real-time task was", "waiting real-time tasks were")
        ));
    }
    reasons
}

fn malformed(tally: &Tally) -> UnreadableLines {
    UnreadableLines {
        count: tally.malformed,
        first: tally.malformed_first.iter().map(ToString::to_string).collect(),
    }
}

fn warnings(explain: &Explain, tally: &Tally) -> Vec<String> {
    let mut warnings = explain.hierarchy.contradictions(&explain.options.isolated);
    let isolated = &explain.options.isolated;
    if let Some(cpus) = explain.options.cpu_count {
        let absent = isolated.iter().filter(|cpu| cpu.index() >= usize::from(cpus)).collect::<CpuSet>();
        if !absent.is_empty() {
            warnings
                .push(format!("CPUs {absent} of the isolated set are not among the {cpus} possible CPUs"));
        }
    }
    if explain.names.overflowed() > 0 {
        warnings.push(format!(
            "there are more different names than are kept: {} a function or task was counted under (other); \
             totals are right",
            counted(explain.names.overflowed(), "time", "times")
        ));
    }
    let causes_missed = explain.interruptions.causes_missed();
    if causes_missed > 0 {
        warnings.push(format!(
            "there are more causes than are kept: {} one was left out; the counts of what they caused are right",
            counted(causes_missed, "time", "times")
        ));
    }
    let idle_missed = explain.idle.overflowed();
    if idle_missed > 0 {
        warnings.push(format!(
            "there are more idle states than are kept: {} one was left out",
            counted(idle_missed, "time", "times")
        ));
    }
    let switches_missing = explain.switches.missing();
    if switches_missing > 0 {
        warnings.push(format!(
            "{} not recorded, though none was lost: the next one of the same CPU begins with another task (a \
             filter, or a kernel that tells none on the way out of idle); what ran after them is missing among \
             the tasks",
            counted(switches_missing, "task switch or more was", "task switches or more were")
        ));
    }
    if tally.clock_without_unit {
        warnings.push(
            "the time stamps have no unit (clock counter or x86-tsc): durations and delays are not \
             computed; record with trace_clock mono"
                .to_owned(),
        );
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::{Explain, ExplainOptions, incomplete, warnings};
    use quietcore_core::CpuId;
    use quietcore_trace::Tally;

    /// Goal: each reason that counts are lower bounds is told from the first case on, with its own count, and
    /// none else.
    #[test]
    fn a_single_case_makes_figures_incomplete() {
        assert_eq!(incomplete(&Tally::default(), 0, 0), [""; 0]);
        let mut tally = Tally::default();
        (tally.entries, tally.events, tally.malformed) = (Some(9), 7, 1);
        assert_eq!(
            incomplete(&tally, 0, 0)[0],
            "1 event is missing of the 9 that its header speaks of: the text was cut, or is that of one CPU (per_cpu)"
        );
        tally.events = 8;
        assert_eq!(incomplete(&tally, 0, 0).len(), 1, "as many as it says");
        tally = Tally::default();
        (tally.lost_events, tally.lost_unknown, tally.malformed) = (1, true, 1);
        let reasons = [
            "at least 1 event was lost: counts miss them, and what began before a mark of lost events and \
             ended after it",
            "1 line could not be read: counts miss their events",
            "1 identity was forgotten to bound memory: later expiries count as unknown starts (raise \
             --max-identities)",
            "1 waiting real-time task was forgotten to bound memory: delays are missing",
        ];
        assert_eq!(incomplete(&tally, 1, 1), reasons);
        (tally.lost_events, tally.lost_unknown, tally.clock_without_unit) = (2, false, true);
        tally.malformed = 3;
        let starts = [
            "2 events were lost: ",
            "3 lines could not be read: ",
            "4 identities were forgotten ",
            "5 waiting real-time tasks were forgotten ",
        ];
        for (reason, start) in incomplete(&tally, 4, 5).iter().zip(starts) {
            assert!(reason.starts_with(start), "{reason}");
        }
    }

    /// Goal: switches that are missing are told, as a warning that is about tasks alone, with their count.
    /// Method: a CPU that leaves idle without a switch, twice.
    #[test]
    fn missing_switches_are_told() {
        let mut explain = Explain::new(ExplainOptions::default());
        let cpu = CpuId::new(3).expect("a small number");
        explain.switches.take(cpu, 9, 0);
        assert_eq!(warnings(&explain, &Tally::default()), [""; 0]);
        for (times, begin) in [(1, "1 task switch or more was not"), (2, "2 task switches or more were not")]
        {
            explain.switches.take(cpu, 9, 0);
            let told = warnings(&explain, &Tally::default());
            assert!(told.len() == 1 && told[0].starts_with(begin), "{times}: {told:?}");
        }
        assert_eq!(explain.finish(&Tally::default()).incomplete, [""; 0]);
    }

    /// Goal: names that found no room are told, the first of them too; of no event nothing is told.
    #[test]
    fn a_name_without_room_is_told() {
        let mut explain = Explain::new(ExplainOptions::default());
        assert_eq!(warnings(&explain, &Tally::default()), [""; 0]);
        let full = (0u32..).find(|name| {
            explain.names.number(&name.to_be_bytes());
            explain.names.overflowed() == 1
        });
        assert!(full.is_some());
        let told = |times: &str| {
            format!(
                "there are more different names than are kept: {times} a function or task was counted under \
                 (other); totals are right"
            )
        };
        assert_eq!(warnings(&explain, &Tally::default()), [told("1 time")]);
        explain.names.number(b"one more");
        assert_eq!(warnings(&explain, &Tally::default()), [told("2 times")]);
        let report = explain.finish(&Tally::default());
        assert_eq!((report.cpus, report.duration_ns), (0, None));
    }
}
