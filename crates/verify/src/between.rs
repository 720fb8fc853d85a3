//! Lines that another context writes on a CPU between two lines of its timer softirq.
//!
//! The kernel takes a timer out (`timer_cancel`), drops the base's lock, which lets interrupts in again, and
//! writes `timer_expire_entry`. Up to that line, and from one timer of a run to the next, two more contexts
//! than interrupts may have the CPU. Their lines do not tell what the `timer_cancel` was:
//!
//! - the exit of an interrupt. It no longer counts as one, so its lines have the softirq's flags. On a
//!   `nohz_full` CPU it asks whether the tick can stop, and writes `tick_stop`; a softirq never does.
//! - with PREEMPT_RT, other tasks. Timers expire in the thread `ktimers/N`, which can be preempted there; so
//!   can it in a run. What has the CPU then is of another task, or the `sched_switch` of the thread itself.
//!
//! A timer that is safe for interrupts (`flags=I`) expires with interrupts off throughout: nothing comes
//! between its two lines. The idle task has the CPU only while the thread waits, which it may do in a run
//! (for a lock), never between the two lines. And no other task expires timers while the thread is in a run.
//!
//! Source: Linux 6.12, kernel/time/timer.c, `expire_timers`; kernel/softirq.c, `tick_irq_exit`; 6.13,
//! kernel/softirq.c, `run_ktimerd`.

use quietcore_core::CpuId;
use quietcore_trace::{Event, InterruptContext, Record, Task};

/// The thread id of the idle tasks.
const IDLE: i32 = 0;

/// Which context had the CPU between two lines of a softirq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    InterruptExit,
    Preemption,
}

impl Between {
    /// Whose line `record` is, if not that of the softirq that took a timer or runs a bucket on its CPU.
    /// `thread` is the id of that softirq's `ktimers/N`, if it has one.
    pub(crate) fn of(record: &Record<'_>, thread: Option<i32>) -> Option<Self> {
        let in_softirq = record.context == Some(InterruptContext::Softirq);
        match (thread, &record.event) {
            (Some(thread), _) if thread != record.task.pid => Some(Self::Preemption),
            (Some(_), Event::SchedSwitch { .. }) if in_softirq => Some(Self::Preemption),
            (_, Event::TickStop { .. }) if in_softirq => Some(Self::InterruptExit),
            _ => None,
        }
    }

    /// Whether `record`, of this context, shows all the same that a taken timer was not to expire.
    pub(crate) fn shows_deletion(self, record: &Record<'_>) -> bool {
        self == Self::Preemption && record.task.pid == IDLE
    }
}

/// The thread id of `task`, if it is the one that expires the timers of `cpu`.
pub(crate) fn timer_thread(task: &Task<'_>, cpu: CpuId) -> Option<i32> {
    (task.comm == format!("ktimers/{cpu}").as_bytes()).then_some(task.pid)
}
