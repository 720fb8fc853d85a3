//! Which tasks are the kernel's own, by their names: a recording does not say it otherwise.

/// How their names begin.
const KERNEL_THREADS: [&str; 14] = [
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "rcu",
    "ktimers/",
    "cpuhp/",
    "irq/",
    "irq_work/",
    "idle_inject/",
    "kcompactd",
    "kswapd",
    "khugepaged",
    "kdamond",
    "stopper/",
];

/// Whether a task of this name is a thread of the kernel's own.
pub(super) fn is_kernel_thread(name: &[u8]) -> bool {
    KERNEL_THREADS.iter().any(|begin| name.starts_with(begin.as_bytes()))
}

/// Whether it is a thread that runs TIMER softirqs, as only kernels with PREEMPT_RT have it.
pub(super) fn is_of_preempt_rt(name: &[u8]) -> bool {
    name.starts_with(b"ktimers/")
}
