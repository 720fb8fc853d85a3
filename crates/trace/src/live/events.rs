//! Which tracepoints answer which of the five questions. Documented in `docs/reference/recording.md`.

use crate::question::Question;
use quietcore_core::{CpuId, CpuSet};

/// On for every selection: they show what the recording itself does to other CPUs. They come
/// first, so that switching on the others is already recorded.
const ALWAYS: &[&str] = &["ipi/ipi_send_cpu", "ipi/ipi_send_cpumask", "ipi/ipi_raise"];
const HRTIMERS: &[&str] = &["timer/hrtimer_start", "timer/hrtimer_expire_entry"];
const WHEEL: &[&str] = &["timer/timer_start", "timer/timer_cancel", "timer/timer_expire_entry"];
const HIERARCHY: &[&str] = &[
    "timer_migration/tmigr_connect_cpu_parent",
    "timer_migration/tmigr_cpu_idle",
    "timer_migration/tmigr_cpu_active",
    "timer_migration/tmigr_cpu_available",
    "timer_migration/tmigr_cpu_unavailable",
    "timer_migration/tmigr_handle_remote_cpu",
];
const SOFTIRQS: &[&str] = &["irq/softirq_entry", "irq/softirq_exit"];
/// What it saves to run timers elsewhere: how long CPUs stay in which idle state.
const IDLE: &[&str] = &["power/cpu_idle"];
const WAKEUPS: &[&str] = &["sched/sched_waking", "sched/sched_switch"];
/// What readers of a recording use besides: how long callbacks take, the whole hierarchy, work.
const RECORDED: &[&str] = &[
    "timer/timer_expire_exit",
    "timer/timer_base_idle",
    "timer/tick_stop",
    "timer/hrtimer_cancel",
    "timer/hrtimer_expire_exit",
    "timer_migration/tmigr_group_set",
    "timer_migration/tmigr_connect_child_parent",
    "timer_migration/tmigr_group_set_cpu_active",
    "timer_migration/tmigr_group_set_cpu_inactive",
    "timer_migration/tmigr_cpu_new_timer",
    "timer_migration/tmigr_cpu_new_timer_idle",
    "timer_migration/tmigr_cpu_online",
    "timer_migration/tmigr_cpu_offline",
    "timer_migration/tmigr_update_events",
    "timer_migration/tmigr_handle_remote",
    "workqueue/workqueue_queue_work",
    "workqueue/workqueue_execute_start",
    "workqueue/workqueue_execute_end",
];
/// What takes a CPU away, recorded on isolated ones, and what starts it, towards isolated ones.
const INTERRUPTIONS: &[&str] = &[
    "csd/csd_queue_cpu",
    "irq/softirq_raise",
    "sched/sched_waking",
    "timer/timer_expire_exit",
    "timer/hrtimer_expire_exit",
    "workqueue/workqueue_queue_work",
    "workqueue/workqueue_execute_start",
    "workqueue/workqueue_execute_end",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "sched/sched_switch",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "ipi/ipi_entry",
    "ipi/ipi_exit",
    "nmi/nmi_handler",
    "irq_vectors/local_timer_entry",
    "irq_vectors/local_timer_exit",
    "irq_vectors/reschedule_entry",
    "irq_vectors/reschedule_exit",
    "irq_vectors/call_function_entry",
    "irq_vectors/call_function_exit",
    "irq_vectors/call_function_single_entry",
    "irq_vectors/call_function_single_exit",
    "irq_vectors/irq_work_entry",
    "irq_vectors/irq_work_exit",
    "irq_vectors/thermal_apic_entry",
    "irq_vectors/thermal_apic_exit",
];

/// A tracepoint to switch on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// `system/event`.
    pub name: &'static str,
    /// Which of its events are needed, in the words of tracefs `filter`; `None`: all of them.
    pub filter: Option<String>,
}

impl Tracepoint {
    /// The event's name.
    #[must_use]
    pub fn event(&self) -> &'static str {
        self.name.rsplit('/').next().unwrap_or(self.name)
    }
}

/// What begins something that another tracepoint shows the end of.
const BEGINNINGS: &[&str] = &[
    "timer/timer_start",
    "timer/hrtimer_start",
    "irq/softirq_raise",
    "sched/sched_waking",
    "workqueue/workqueue_queue_work",
    "csd/csd_queue_cpu",
];

/// When a tracepoint is switched on, lower first. An end without its beginning is known for one, a beginning
/// whose end was not recorded yet would last.
fn turn(name: &str) -> u8 {
    match name {
        _ if ALWAYS.contains(&name) => 0,
        _ if name.ends_with("_exit") || name.ends_with("_end") => 1,
        _ if BEGINNINGS.contains(&name) => 3,
        _ => 2,
    }
}

/// The tracepoints for `questions` about a machine with `isolated` CPUs, each once, in the order they are
/// switched on. The running kernel may lack some of them.
#[must_use]
pub fn tracepoints(questions: &[Question], isolated: &CpuSet) -> Vec<Tracepoint> {
    let mut chosen = ALWAYS.to_vec();
    for question in questions {
        let interruptions = if isolated.is_empty() { &[] } else { INTERRUPTIONS };
        let parts: &[&[&str]] = match question {
            Question::PacketTimers => &[HRTIMERS],
            Question::Isolation => &[WHEEL, HIERARCHY, HRTIMERS, interruptions],
            Question::Placement => &[WHEEL, HIERARCHY, IDLE],
            Question::RealTime => &[SOFTIRQS, WAKEUPS],
            Question::EmptySoftirqs => &[SOFTIRQS, WHEEL],
        };
        for tracepoint in parts.iter().flat_map(|part| part.iter()) {
            if !chosen.contains(tracepoint) {
                chosen.push(tracepoint);
            }
        }
    }
    let tracepoint = |name| Tracepoint { name, filter: filter(name, questions, isolated) };
    chosen.sort_by_key(|name| turn(name));
    chosen.into_iter().map(tracepoint).collect()
}

/// The tracepoints of a recording that is kept: those of all questions, and what its readers use besides.
#[must_use]
pub fn recorded_tracepoints(isolated: &CpuSet) -> Vec<Tracepoint> {
    let mut chosen = tracepoints(&Question::ALL, isolated);
    chosen.retain(|tracepoint| !RECORDED.contains(&tracepoint.name));
    chosen.extend(RECORDED.iter().map(|&name| Tracepoint { name, filter: None }));
    chosen.sort_by_key(|tracepoint| turn(tracepoint.name));
    chosen
}

/// Which events of a tracepoint are needed: on isolated CPUs all of them, elsewhere what a question asks for.
fn filter(name: &str, questions: &[Question], isolated: &CpuSet) -> Option<String> {
    let asked = |question| questions.contains(&question);
    let mut parts = Vec::new();
    let cpu = match name {
        "sched/sched_waking" => {
            parts.extend(asked(Question::RealTime).then(|| "prio < 100".to_owned()));
            "target_cpu"
        }
        "csd/csd_queue_cpu" | "workqueue/workqueue_queue_work" => "cpu",
        // What a callback on another CPU starts has it for a cause.
        "timer/timer_expire_exit" | "timer/hrtimer_expire_exit" => return None,
        "sched/sched_switch" => {
            let is_needed =
                asked(Question::RealTime).then(|| "prev_prio < 100 || next_prio < 100".to_owned());
            parts.extend(is_needed);
            "CPU"
        }
        // Without isolated CPUs what takes CPUs away is counted on all of them.
        "irq/softirq_entry" | "irq/softirq_exit" if isolated.is_empty() && asked(Question::Isolation) => {
            return None;
        }
        "irq/softirq_entry" | "irq/softirq_exit" => {
            // TIMER; NET_TX, NET_RX, BLOCK and IRQ_POLL, behind which real-time tasks wait.
            parts.extend(asked(Question::EmptySoftirqs).then(|| "vec == 1".to_owned()));
            parts.extend(asked(Question::RealTime).then(|| "(vec >= 2 && vec <= 5)".to_owned()));
            "CPU"
        }
        _ if INTERRUPTIONS.contains(&name) => "CPU",
        _ => return None,
    };
    parts.extend(ranges(isolated).into_iter().map(|(first, last)| match last - first {
        0 => format!("{cpu} == {first}"),
        _ => format!("({cpu} >= {first} && {cpu} <= {last})"),
    }));
    Some(parts.join(" || "))
}

/// Runs of CPUs without a gap, each with its first and its last.
fn ranges(cpus: &CpuSet) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus.iter().map(CpuId::index) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::{INTERRUPTIONS, RECORDED, recorded_tracepoints, tracepoints};
    use crate::question::Question;
    use quietcore_core::CpuSet;

    fn filters(questions: &[Question], isolated: &str) -> Vec<(&'static str, Option<String>)> {
        let isolated: CpuSet = isolated.parse().expect("a list");
        tracepoints(questions, &isolated)
            .into_iter()
            .map(|tracepoint| (tracepoint.name, tracepoint.filter))
            .collect()
    }

    fn filter(questions: &[Question], isolated: &str, name: &str) -> Option<String> {
        let filters = filters(questions, isolated);
        filters.into_iter().find(|(of, _)| *of == name).unwrap_or_else(|| panic!("{name} is not on")).1
    }

    /// Goal: elsewhere only what a question needs is recorded, on isolated CPUs everything. Method: each
    /// filtered tracepoint, asked for by one question, by two, with and without isolated CPUs.
    #[test]
    fn what_is_not_asked_for_is_not_recorded() {
        use Question::{EmptySoftirqs, Isolation, RealTime};
        for (questions, isolated, name, expected) in [
            (&[RealTime][..], "", "sched/sched_waking", "prio < 100"),
            (&[RealTime], "3", "sched/sched_waking", "prio < 100 || target_cpu == 3"),
            (&[Isolation], "3-4", "sched/sched_waking", "(target_cpu >= 3 && target_cpu <= 4)"),
            (&[Isolation], "3", "workqueue/workqueue_queue_work", "cpu == 3"),
            (&[Isolation], "3", "csd/csd_queue_cpu", "cpu == 3"),
            (&[Isolation], "3", "irq/softirq_raise", "CPU == 3"),
            (&[RealTime], "", "sched/sched_switch", "prev_prio < 100 || next_prio < 100"),
            (&[Isolation], "1-3,6", "sched/sched_switch", "(CPU >= 1 && CPU <= 3) || CPU == 6"),
            (
                &[Isolation, RealTime],
                "2",
                "sched/sched_switch",
                "prev_prio < 100 || next_prio < 100 || CPU == 2",
            ),
            (&[RealTime], "", "irq/softirq_entry", "(vec >= 2 && vec <= 5)"),
            (&[EmptySoftirqs], "", "irq/softirq_exit", "vec == 1"),
            (
                &[EmptySoftirqs, RealTime],
                "4-5",
                "irq/softirq_exit",
                "vec == 1 || (vec >= 2 && vec <= 5) || (CPU >= 4 && CPU <= 5)",
            ),
            (&[Isolation], "4", "irq_vectors/reschedule_entry", "CPU == 4"),
        ] {
            assert_eq!(filter(questions, isolated, name).as_deref(), Some(expected), "{name} {questions:?}");
        }
        assert_eq!(filter(&Question::ALL, "", "irq/softirq_entry"), None, "all CPUs are counted");
        assert_eq!(filter(&[Question::Placement], "3", "power/cpu_idle"), None, "idle states of all CPUs");
        for name in
            ["timer/timer_start", "timer/timer_expire_exit", "timer/hrtimer_expire_exit", "ipi/ipi_send_cpu"]
        {
            assert_eq!(filter(&Question::ALL, "1", name), None, "{name}");
        }
    }

    /// Goal: nothing begins in a recording before its end can be seen. Method: pairs, and what lies between.
    #[test]
    fn ends_are_switched_on_before_beginnings() {
        let isolated = "1".parse().expect("a list");
        for chosen in [tracepoints(&Question::ALL, &isolated), recorded_tracepoints(&isolated)] {
            let place = |name: &str| {
                let found = chosen.iter().position(|tracepoint| tracepoint.name == name);
                found.unwrap_or_else(|| panic!("{name} is not on"))
            };
            for order in [
                [
                    "ipi/ipi_send_cpu",
                    "timer/timer_expire_exit",
                    "timer/timer_expire_entry",
                    "timer/timer_start",
                ],
                ["ipi/ipi_raise", "timer/hrtimer_expire_exit", "timer/timer_cancel", "timer/hrtimer_start"],
                ["ipi/ipi_raise", "irq/softirq_exit", "irq/softirq_entry", "irq/softirq_raise"],
                ["ipi/ipi_raise", "irq_vectors/local_timer_exit", "sched/sched_switch", "sched/sched_waking"],
                [
                    "ipi/ipi_raise",
                    "workqueue/workqueue_execute_end",
                    "workqueue/workqueue_execute_start",
                    "workqueue/workqueue_queue_work",
                ],
                [
                    "ipi/ipi_raise",
                    "irq_vectors/call_function_exit",
                    "irq_vectors/call_function_entry",
                    "csd/csd_queue_cpu",
                ],
            ] {
                assert!(order.map(place).is_sorted(), "{order:?}");
            }
        }
    }

    /// Goal: what takes CPUs away is recorded where CPUs are to be quiet, and for the question that asks it;
    /// each tracepoint comes once, and those that show our own doing come first.
    #[test]
    fn interruptions_belong_to_isolated_cpus() {
        let names = |questions: &[Question], isolated| -> Vec<_> {
            filters(questions, isolated).into_iter().map(|(name, _)| name).collect()
        };
        let all = names(&Question::ALL, "1");
        assert!(INTERRUPTIONS.iter().all(|name| all.contains(name)), "{all:?}");
        let recorded = recorded_tracepoints(&"1".parse().expect("a list"));
        let unfiltered = recorded.iter().filter(|tracepoint| tracepoint.filter.is_none());
        let unfiltered: Vec<_> = unfiltered.map(|tracepoint| tracepoint.name).collect();
        assert!(RECORDED.iter().all(|name| unfiltered.contains(name)), "{unfiltered:?}");
        let recorded: Vec<_> = recorded.into_iter().map(|tracepoint| tracepoint.name).collect();
        assert!(all.iter().all(|name| recorded.contains(name)), "{recorded:?}");
        let mut once = recorded.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!((once.len(), all[0]), (recorded.len(), "ipi/ipi_send_cpu"));
        let without = [names(&Question::ALL, ""), names(&[Question::RealTime], "1")].concat();
        assert!(!without.iter().any(|name| name.starts_with("irq_vectors/")), "{without:?}");
    }
}
