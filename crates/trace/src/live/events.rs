//! Which tracepoints answer which of the five questions. Documented in `docs/reference/recording.md`.

use crate::question::Question;

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
const WAKEUPS: &[&str] = &["sched/sched_waking", "sched/sched_switch"];

/// The tracepoints (`system/event`) for `questions`, each once, in the order they are switched on.
/// The running kernel may lack some of them.
#[must_use]
pub fn tracepoints(questions: &[Question]) -> Vec<&'static str> {
    let mut chosen = ALWAYS.to_vec();
    for question in questions {
        let parts: &[&[&str]] = match question {
            Question::PacketTimers => &[HRTIMERS],
            Question::Isolation => &[WHEEL, HIERARCHY, HRTIMERS],
            Question::Placement => &[WHEEL, HIERARCHY],
            Question::RealTime => &[SOFTIRQS, WAKEUPS],
            Question::EmptySoftirqs => &[SOFTIRQS, WHEEL],
        };
        for tracepoint in parts.iter().flat_map(|part| part.iter()) {
            if !chosen.contains(tracepoint) {
                chosen.push(tracepoint);
            }
        }
    }
    chosen
}
