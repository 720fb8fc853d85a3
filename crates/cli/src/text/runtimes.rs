//! Random runtimes as text: what was played, and the run that broke a promise.

use super::page::Page;
use crate::runtime_failure::RuntimeFailure;
use crate::terminal::Style;
use quietcore_core::Nanos;
use quietcore_sim::{RuntimePlan, RuntimesOutcome};

/// Width of the labels.
const LABEL: usize = 22;

/// Events that are shown of a run that failed; JSON has them all.
const SHOWN: usize = 40;

/// `outcome` of the seeds from `first` on.
pub(crate) fn runtimes(
    page: &mut Page,
    first: u64,
    outcome: &RuntimesOutcome,
    failure: Option<&RuntimeFailure>,
) {
    page.styled_line(Style::Heading, "quietcore sim --runtimes (simulated)");
    let counts = &outcome.counts;
    let rows = [
        ("first seed", first),
        ("runtimes", outcome.runs),
        ("events", outcome.events),
        ("timers armed", counts.arms),
        ("timers cancelled", counts.cancels),
        ("timers run", counts.expiries),
        ("lanes woken by a kick", counts.wakes),
        ("lanes marked absent", counts.marks),
        ("looks of the sentinel", counts.sentinel_looks),
        ("forks", counts.forks),
        ("softirqs raised", counts.raises),
        ("softirqs run", counts.softirqs),
        ("items run", counts.items),
        ("normal ones stolen", counts.stolen),
        ("real-time ones pulled", counts.pulled),
        ("real-time ones pushed", counts.pushed),
    ];
    for (label, value) in rows {
        page.item(2, label, LABEL, &value.to_string());
    }
    match failure {
        None => page.item(2, "promises broken", LABEL, "none"),
        Some(failure) => failed(page, failure),
    }
}

fn failed(page: &mut Page, failure: &RuntimeFailure) {
    let at = failure.at_ns as f64 / 1e6;
    let what =
        page.styled(Style::Bad, &format!("at {at:.3} ms of seed {}: {}", failure.plan.seed, failure.what));
    page.item(2, "promises broken", LABEL, &what);
    page.heading("That runtime");
    plan(page, &failure.plan);
    page.heading("The smallest one found that fails, too");
    page.item(2, "what breaks", LABEL, &failure.smallest_what);
    plan(page, &failure.smallest);
    page.heading("Its last events");
    let skipped = failure.events.len().saturating_sub(SHOWN);
    for event in &failure.events[skipped..] {
        page.item(2, "", 0, event);
    }
}

fn plan(page: &mut Page, plan: &RuntimePlan) {
    page.item(2, "lanes and spares", LABEL, &format!("{} and {}", plan.lanes, plan.spares));
    page.item(2, "CPUs of the host", LABEL, &plan.host_cpus.to_string());
    let spans = [
        ("tick", plan.tick),
        ("silent after", plan.stall_after),
        ("longest delay", plan.longest_delay),
        ("threads arm for", plan.duration),
        ("coarse clock moves by", plan.host_tick),
    ];
    for (label, span) in spans {
        page.item(2, label, LABEL, &Nanos(span).to_string());
    }
    let timers = format!("{} of {} threads, {} of each lane", plan.timers, plan.strangers, plan.lane_timers);
    page.item(2, "timers", LABEL, &timers);
    let wakes_to = if plan.wakes_here { "where they are woken" } else { "where they ran last" };
    let tasks = format!("{}, run {wakes_to}, softirqs: {}", plan.tasks, plan.awareness.name());
    page.item(2, "tasks", LABEL, &tasks);
    let faults = plan.faults.each().into_iter().filter(|(_, value)| *value > 0);
    let faults: Vec<String> = faults.map(|(name, value)| format!("{name}: {value}")).collect();
    page.item(2, "faults", LABEL, &if faults.is_empty() { "none".to_owned() } else { faults.join("\n") });
}

#[cfg(test)]
mod tests {
    use super::runtimes;
    use crate::runtime_failure::RuntimeFailure;
    use crate::text::Page;
    use quietcore_sim::{RuntimeCounts, RuntimeFaults, RuntimePlan, RuntimesOutcome};

    /// Goal: each figure of a page is the one that it is called. Method: all figures differ, of a run that
    /// failed and of its smallest like.
    #[test]
    fn text_of_fixed_runtimes() {
        let counts = RuntimeCounts {
            expiries: 41,
            arms: 53,
            cancels: 7,
            wakes: 29,
            marks: 3,
            sentinel_looks: 11,
            forks: 2,
            raises: 67,
            softirqs: 61,
            items: 59,
            stolen: 47,
            pulled: 43,
            pushed: 37,
        };
        let outcome = RuntimesOutcome { runs: 17, events: 90_210, counts, failed: Some(345) };
        let faults = RuntimeFaults {
            stops_per_million: 753,
            longest_stop: 7_121_970,
            preemptions: 5,
            late_timer: 1_001,
            late_kick: 2_002,
            long_callbacks: 6,
            blocks: 8,
            longest_block: 56_085_395,
            isolation_every: 3_003,
            hotplug_every: 4_004,
            longest_item: 5_005,
            fork_after: 6_006,
            longest_handler: 7_007,
            defer_limit: 8_008,
            stuck_after: 9_009,
        };
        let plan = RuntimePlan {
            lanes: 12,
            spares: 2,
            host_cpus: 4,
            tick: 1_000_000,
            stall_after: 3_000_000,
            strangers: 9,
            timers: 10,
            lane_timers: 1,
            longest_delay: 40_000_000,
            host_tick: 10_000_000,
            duration: 146_000_000,
            faults,
            tasks: 19,
            wakes_here: true,
            ..RuntimePlan::draw(345)
        };
        let faults = RuntimeFaults::default();
        let smallest = RuntimePlan { seed: 6, lanes: 1, faults, wakes_here: false, ..plan.clone() };
        let failure = RuntimeFailure {
            plan,
            what: "timer 3 (Exact): it runs 12 ns early".to_owned(),
            at_ns: 16_090_278,
            smallest,
            smallest_what: "timer 0 (Exact): it runs 5 ns early".to_owned(),
            events: (0..42).map(|number| format!("{number} lane 0: is up")).collect(),
        };
        let mut page = Page::plain();
        runtimes(&mut page, 329, &outcome, Some(&failure));
        insta::assert_snapshot!(page.into_text());
        let mut page = Page::plain();
        runtimes(&mut page, 1, &RuntimesOutcome { failed: None, ..outcome }, None);
        assert!(page.into_text().ends_with("promises broken        none\n"));
    }
}
