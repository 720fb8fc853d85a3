//! What must hold between the figures of any report, whatever the input was.
//!
//! Sums add up, a part is not more than its whole, a figure is absent exactly when it is named in
//! `not_recorded`, and forgetting identities only ever makes counts smaller.

use quietcore_core::{CpuId, CpuSet};
use quietcore_explain::{DelayQuantiles, Disturbance, Explanation, HrtimerTotals, TookSpans};
use std::collections::BTreeMap;

/// Up to so many (CPU, function) pairs every CPU has its own row with complete counts.
const ROWS_EXACT: usize = 16_384;

/// Asserts all of it for one report about `isolated`.
pub fn check(report: &Explanation, isolated: &CpuSet) {
    assert_eq!(report.schema, 2);
    check_absence(report);
    check_disturbance(&report.foreign, isolated);
    check_disturbance(&report.between_isolated, isolated);
    check_wheel(report);
    check_hrtimers(&report.hrtimers);
    check_interrupts(report);
    check_idle(report);
    check_isolated_cpus(report, isolated);
    check_sentences(report);
}

/// Asserts what must hold between a report and that of the same input with tiny tables.
pub fn check_forgetting(normal: &Explanation, tiny: &Explanation) {
    assert_eq!(normal.timers.started, tiny.timers.started);
    assert_eq!(normal.timers.expired, tiny.timers.expired);
    assert_eq!(normal.not_recorded, tiny.not_recorded);
    for (more, less) in [
        (normal.foreign.total, tiny.foreign.total),
        (normal.between_isolated.total, tiny.between_isolated.total),
        (normal.remote.total, tiny.remote.total),
        (normal.ping_pong.count, tiny.ping_pong.count),
        (normal.hrtimers.off_arming_cpu, tiny.hrtimers.off_arming_cpu),
        (tiny.timers.expired_unknown_start, normal.timers.expired_unknown_start),
        (Some(tiny.evicted), Some(normal.evicted)),
    ] {
        assert!(more >= less, "{more:?} < {less:?}");
    }
    if tiny.evicted == 0 {
        assert_eq!(normal, tiny, "nothing was forgotten");
    }
}

fn check_absence(report: &Explanation) {
    let Explanation { timers, softirq, hrtimers, rt_wakeups, not_recorded, .. } = report;
    for (path, is_absent) in [
        ("timers.started", timers.started.is_none()),
        ("timers.expired", timers.expired.is_none()),
        ("timers.cancel_events", timers.cancel_events.is_none()),
        ("timers.expired_unknown_start", timers.expired_unknown_start.is_none()),
        ("foreign", report.foreign.total.is_none()),
        ("between_isolated", report.between_isolated.total.is_none()),
        ("remote", report.remote.total.is_none()),
        ("ping_pong", report.ping_pong.count.is_none()),
        ("softirq.timer_entries", softirq.timer_entries.is_none()),
        ("softirq.timer_empty", softirq.timer_empty.is_none()),
        ("hrtimers.expired", hrtimers.expired.is_none()),
        ("hrtimers.off_arming_cpu", hrtimers.off_arming_cpu.is_none()),
        ("rt_wakeups.count", rt_wakeups.count.is_none()),
        ("rt_wakeups.behind_softirq", rt_wakeups.behind_softirq.is_none()),
        ("idle", report.idle.is_none()),
    ] {
        assert_eq!(not_recorded.contains(&path), is_absent, "{path}, not recorded: {not_recorded:?}");
    }
    let distinct: std::collections::BTreeSet<_> = not_recorded.iter().collect();
    assert_eq!(distinct.len(), not_recorded.len(), "{not_recorded:?}");
}

fn check_disturbance(side: &Disturbance, isolated: &CpuSet) {
    let Some(total) = side.total else {
        assert_eq!(*side, Disturbance::default(), "all of it is absent, or nothing");
        return;
    };
    let (pulled, placed) = (side.pulled.expect("with total"), side.placed.expect("with total"));
    assert_eq!(total, pulled + placed);
    assert_eq!(sum(side.by_function.as_ref()), total, "by function");
    check_took(&side.took_ns);
    assert!(side.took_ns.max.is_none() || total > 0, "{side:?}");
    for (name, by) in [("CPU", &side.by_cpu), ("base", &side.by_base_cpu), ("group", &side.by_group)] {
        assert_eq!(sum(by.as_ref()), total, "by {name}: {by:?}");
    }
    for &cpu in side.by_cpu.iter().flatten().map(|(cpu, _)| cpu) {
        assert!(contains(isolated, cpu), "CPU {cpu} is not in {isolated}");
    }
    assert!(side.examples.len() as u64 <= total);
    assert_eq!(side.examples.is_empty(), total == 0);
    for example in &side.examples {
        assert!(example.armed_line < example.line, "{example:?}");
        assert_ne!(example.armed_cpu, example.cpu, "{example:?}");
        assert_eq!(example.kind == "pulled", example.base_cpu != example.cpu, "{example:?}");
    }
}

fn check_wheel(report: &Explanation) {
    let Some(remote) = report.remote.total else { return };
    assert_eq!(sum(report.remote.by_cpu.as_ref()), remote);
    let pulled = report.foreign.pulled.zip(report.between_isolated.pulled);
    assert!(pulled.is_some_and(|(foreign, between)| foreign + between <= remote), "{pulled:?} of {remote}");
    let expired = report.timers.expired.expect("recorded");
    let unknown = report.timers.expired_unknown_start.expect("recorded");
    assert!(unknown + remote <= expired);
    let local_placed = report.foreign.placed.zip(report.between_isolated.placed);
    assert!(local_placed.is_some_and(|(foreign, between)| foreign + between + remote + unknown <= expired));
    assert!(report.ping_pong.count.is_some_and(|count| count <= remote));
    assert!(report.ping_pong.per_s.is_none_or(f64::is_finite));
}

fn check_hrtimers(hrtimers: &HrtimerTotals) {
    let Some(expired) = hrtimers.expired else { return };
    let watchdog = &hrtimers.qdisc_watchdog;
    let watchdogs = watchdog.expired.expect("recorded");
    assert!(watchdogs <= expired);
    assert_eq!(sum(watchdog.by_cpu.as_ref()), watchdogs);
    let Some(off_arming) = hrtimers.off_arming_cpu else { return };
    assert!(off_arming <= expired);
    assert!(hrtimers.foreign.is_some_and(|foreign| foreign <= off_arming));
    assert!(watchdog.off_arming_cpu.is_some_and(|off| off <= off_arming.min(watchdogs)));
    assert!(sum(hrtimers.by_task.as_ref()) <= expired - watchdogs);
}

fn check_interrupts(report: &Explanation) {
    let softirq = &report.softirq;
    if let Some(empty) = softirq.timer_empty {
        assert!(softirq.timer_entries.is_some_and(|entries| empty <= entries));
        assert_eq!(sum(softirq.by_cpu.as_ref()), empty);
        let is_measured = empty > 0 && report.duration_ns.is_some();
        check_took(&softirq.empty_ns);
        assert_eq!(softirq.empty_ns.max.is_some(), is_measured, "{softirq:?}");
    }
    let wakeups = &report.rt_wakeups;
    if let Some(behind) = wakeups.behind_softirq {
        assert!(wakeups.count.is_some_and(|count| behind <= count));
    }
    let DelayQuantiles { p50, p99, max, .. } = wakeups.delay_ns;
    assert_eq!((p50.is_some(), p99.is_some()), (max.is_some(), max.is_some()));
    assert!(p50 <= p99 && p99 <= max, "{p50:?} {p99:?} {max:?}");
}

fn check_took(took: &TookSpans) {
    let TookSpans { total, p50, p99, max, .. } = *took;
    assert!(p50 <= p99 && p99 <= max && max <= total, "{took:?}");
    assert_eq!((p50.is_some(), total.is_some()), (p99.is_some(), max.is_some()), "{took:?}");
}

fn check_idle(report: &Explanation) {
    for row in report.idle.iter().flatten() {
        assert!(row.entries > 0, "{row:?}");
        assert_eq!(row.total_ns.is_some(), row.max_ns.is_some(), "{row:?}");
        assert!(row.max_ns <= row.total_ns, "{row:?}");
        assert_eq!(row.share.is_some(), row.total_ns.is_some() && report.duration_ns > Some(0), "{row:?}");
    }
}

fn check_isolated_cpus(report: &Explanation, isolated: &CpuSet) {
    let rows = &report.isolated_cpus;
    assert!(rows.iter().all(|row| contains(isolated, row.cpu)));
    assert!(rows.is_sorted_by_key(|row| row.cpu));
    let pairs: usize = rows.iter().map(|row| row.by_function.len()).sum();
    let Some(foreign) = report.foreign.by_cpu.as_ref().filter(|_| pairs < ROWS_EXACT) else { return };
    let by_cpu: BTreeMap<u16, u64> = rows.iter().map(|row| (row.cpu, row.pulled + row.placed)).collect();
    assert_eq!(&by_cpu, foreign, "a row for every CPU that was disturbed");
    for row in rows {
        assert_eq!(sum(Some(&row.by_function)), row.pulled + row.placed, "{row:?}");
    }
}

/// What a person reads has no line breaks and is not empty.
fn check_sentences(report: &Explanation) {
    let is_sentence = |text: &String| !text.trim().is_empty() && !text.contains('\n');
    assert!(report.incomplete.iter().all(is_sentence), "{:?}", report.incomplete);
    assert!(report.warnings.iter().all(is_sentence), "{:?}", report.warnings);
    // What else a text can lack is no figure of its own; names of functions, where another kernel runs here.
    let is_other = |reason: &String| {
        ["functions have no names", "time runs back", " its header speaks of"]
            .iter()
            .any(|words| reason.contains(words))
    };
    let is_incomplete = report.lost_events > 0
        || report.malformed.count > 0
        || report.evicted > 0
        || report.incomplete.iter().any(is_other);
    assert_eq!(report.incomplete.is_empty(), !is_incomplete, "{:?}", report.incomplete);
}

fn sum<K>(counts: Option<&BTreeMap<K, u64>>) -> u64 {
    counts.expect("recorded with its total").values().sum()
}

fn contains(set: &CpuSet, cpu: u16) -> bool {
    CpuId::new(u64::from(cpu)).is_ok_and(|cpu| set.contains(cpu))
}
