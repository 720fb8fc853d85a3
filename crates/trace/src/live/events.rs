//! Which tracepoints answer which of the five questions. Documented in `docs/reference/recording.md`.

/// The five founding documents, each a question to the kernel.
pub const SEEDS: [&str; 5] = ["000", "001", "002", "003", "004"];

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

/// The tracepoints (`system/event`) for `seeds`, each once, in the order they are switched on.
/// The running kernel may lack some of them.
///
/// ```
/// use quietcore_trace::live::{SEEDS, tracepoints};
///
/// assert!(tracepoints(&["004"]).contains(&"irq/softirq_entry"));
/// assert!(tracepoints(&["001"]).len() < tracepoints(&SEEDS).len());
/// ```
#[must_use]
pub fn tracepoints(seeds: &[&str]) -> Vec<&'static str> {
    let mut chosen = ALWAYS.to_vec();
    for seed in seeds {
        let parts: &[&[&str]] = match *seed {
            "000" => &[HRTIMERS],
            "001" => &[WHEEL, HIERARCHY, HRTIMERS],
            "002" => &[WHEEL, HIERARCHY],
            "003" => &[SOFTIRQS, WAKEUPS],
            "004" => &[SOFTIRQS, WHEEL],
            _ => &[],
        };
        for tracepoint in parts.iter().flat_map(|part| part.iter()) {
            if !chosen.contains(tracepoint) {
                chosen.push(tracepoint);
            }
        }
    }
    chosen
}
