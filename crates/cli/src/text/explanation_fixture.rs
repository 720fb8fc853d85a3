//! An explanation for tests of what is made of it.

use quietcore_explain::Explanation;

fn named<const N: usize>(counts: [(&str, u64); N]) -> Option<std::collections::BTreeMap<String, u64>> {
    Some(counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect())
}

/// A report in which no two figures are the same.
pub(crate) fn explanation() -> Explanation {
    let mut report = Explanation::default();
    report.duration_ns = Some(12_345_678_901);
    report.events = 1_234;
    report.lost_events = 56;
    report.incomplete = vec!["56 events were lost".to_owned(), "7 lines could not be read".to_owned()];
    report.isolated = "1-3".to_owned();
    report.timers.expired = Some(101);
    report.foreign.total = Some(31);
    report.foreign.pulled = Some(20);
    report.foreign.placed = Some(11);
    report.foreign.by_function =
        named([("a_delayed_work", 2), ("delayed_work_timer_fn", 5), ("process_timeout", 24)]);
    // Two that have as many: the lower one is named.
    report.foreign.by_cpu = Some([(1, 4), (2, 13), (3, 13), (4, 1)].into());
    report.foreign.took_ns.total = Some(213_000);
    report.foreign.took_ns.max = Some(27_500);
    report.between_isolated.total = Some(14);
    report.between_isolated.pulled = Some(8);
    report.between_isolated.placed = Some(6);
    report.remote.total = Some(47);
    report.ping_pong.count = Some(17);
    report.ping_pong.per_s = Some(1.38);
    report.softirq.timer_entries = Some(73);
    report.softirq.timer_empty = Some(19);
    report.softirq.empty_ns.max = Some(8_300);
    report.hrtimers.expired = Some(61);
    report.hrtimers.off_arming_cpu = Some(23);
    report.hrtimers.foreign = Some(9);
    report.hrtimers.qdisc_watchdog.expired = Some(12);
    report.hrtimers.qdisc_watchdog.off_arming_cpu = Some(10);
    report.rt_wakeups.count = Some(41);
    report.rt_wakeups.behind_softirq = Some(29);
    report.rt_wakeups.delay_ns.max = Some(3_700);
    report
}
