//! The events of a trace, typed: what happened, and its fields with their units.
//!
//! Field names follow the kernel's tracepoints (`/sys/kernel/tracing/events/*/*/format`). An
//! identity is a pointer as the trace shows it, hashed or not: equal within one trace means the
//! same object, or memory that was reused for another one. Names are bytes: the kernel promises
//! no encoding. Not here: how the text is read (`decode`).

use crate::line::{InterruptContext, Task};
use quietcore_core::{CpuId, CpuSet, Nanos};

/// One event: where and when, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Line number in the input, from 1.
    pub line: u64,
    /// The task that the CPU was running.
    pub task: Task<'a>,
    /// The CPU that the event happened on.
    pub cpu: CpuId,
    /// What the CPU was doing; `None` where the text does not say (`trace-cmd report`).
    pub context: Option<InterruptContext>,
    /// The time stamp, on the clock of the recording.
    pub at: Nanos,
    /// What happened.
    pub event: Event<'a>,
}

/// What happened. Pointers are identities within one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// `timer_init`: a wheel timer was set up.
    TimerInit {
        /// The timer's identity.
        timer: u64,
    },
    /// `timer_start`: a timer was put into the wheel.
    TimerStart(TimerStart<'a>),
    /// `timer_cancel`: a timer was taken out: deleted, about to be started again, or to expire.
    TimerCancel {
        /// The timer's identity.
        timer: u64,
    },
    /// `timer_expire_entry`: its callback begins, on [`Record::cpu`].
    TimerExpireEntry {
        /// The timer's identity.
        timer: u64,
        /// The callback's name.
        function: &'a [u8],
        /// Jiffies now.
        now: u64,
        /// The bucket that is being run, in jiffies; older kernels do not say.
        baseclk: Option<u64>,
    },
    /// `timer_expire_exit`: its callback returned.
    TimerExpireExit {
        /// The timer's identity.
        timer: u64,
    },
    /// `timer_base_idle`: the wheel bases of `cpu` become idle or leave idle.
    TimerBaseIdle {
        /// Whether they are idle from now on.
        is_idle: bool,
        /// Whose bases.
        cpu: CpuId,
    },
    /// `tick_stop`: the tick was stopped, or could not be.
    TickStop {
        /// Whether it was stopped.
        success: bool,
        /// What prevented it, `NONE` otherwise.
        dependency: &'a [u8],
    },
    /// `hrtimer_init` or `hrtimer_setup`.
    HrtimerSetup {
        /// The timer's identity.
        hrtimer: u64,
    },
    /// `hrtimer_start`: a high-resolution timer was started.
    HrtimerStart(HrtimerStart<'a>),
    /// `hrtimer_cancel`: taken out of its queue.
    HrtimerCancel {
        /// The timer's identity.
        hrtimer: u64,
    },
    /// `hrtimer_expire_entry`: its callback begins, on [`Record::cpu`].
    HrtimerExpireEntry {
        /// The timer's identity.
        hrtimer: u64,
        /// The callback's name.
        function: &'a [u8],
        /// The time on the timer's own clock, in ns.
        now: Nanos,
    },
    /// `hrtimer_expire_exit`: its callback returned.
    HrtimerExpireExit {
        /// The timer's identity.
        hrtimer: u64,
    },
    /// `itimer_state`: an interval timer was set.
    ItimerState {
        /// 0 real, 1 virtual, 2 profiling.
        which: u64,
    },
    /// `itimer_expire`: an interval timer fired for a process.
    ItimerExpire {
        /// 0 real, 1 virtual, 2 profiling.
        which: u64,
        /// Whose.
        pid: i32,
    },
    /// One of `timer_migration:*`.
    Migration(Migration),
    /// `softirq_raise`, `softirq_entry`, `softirq_exit`.
    Softirq {
        /// Which of the three.
        step: SoftirqStep,
        /// The vector: 0 HI, 1 TIMER, 2 NET_TX, 3 NET_RX, 4 BLOCK, 5 IRQ_POLL, 6 TASKLET, 7
        /// SCHED, 8 HRTIMER, 9 RCU.
        vector: u8,
    },
    /// `sched_switch`: the CPU goes from one task to another.
    SchedSwitch {
        /// The task that leaves.
        previous: Task<'a>,
        /// The task that comes.
        next: Task<'a>,
        /// Its kernel priority: below 100 real-time or deadline, 100 to 139 normal.
        next_priority: i32,
    },
    /// `sched_waking`, `sched_wakeup`, `sched_wakeup_new`.
    SchedWake {
        /// Which of the three.
        step: WakeStep,
        /// The task that is woken.
        task: Task<'a>,
        /// Its kernel priority: below 100 real-time or deadline.
        priority: i32,
        /// At `Waking` the CPU it ran on last, later the CPU chosen for it.
        target: CpuId,
    },
    /// `sched_migrate_task`: a task changes its CPU.
    SchedMigrate {
        /// The task.
        task: Task<'a>,
        /// From where.
        from: CpuId,
        /// To where.
        to: CpuId,
    },
    /// `irq_handler_entry` and `irq_handler_exit`: a handler of a device's interrupt.
    DeviceInterrupt {
        /// Whether it begins.
        step: SpanStep,
        /// The interrupt's number.
        number: u64,
        /// Who handles it; empty at the end, where the text does not say.
        name: &'a [u8],
    },
    /// `irq_vectors:*_entry` and `*_exit`: an interrupt of the processor's own (x86).
    SystemInterrupt {
        /// Whether it begins.
        step: SpanStep,
        /// Which one.
        interrupt: SystemInterrupt,
    },
    /// `ipi_entry` and `ipi_exit`: an interrupt that another CPU sent (not traced on x86).
    IpiHandled {
        /// Whether it begins.
        step: SpanStep,
        /// What it is for, in the kernel's words: `Rescheduling interrupts`.
        reason: &'a [u8],
    },
    /// `ipi_send_cpu`: an interrupt is sent to one CPU.
    IpiSendCpu {
        /// The receiver.
        to: CpuId,
        /// What it is for.
        purpose: IpiPurpose<'a>,
    },
    /// `ipi_send_cpumask` or `ipi_raise`: an interrupt is sent to several CPUs.
    IpiSendMask {
        /// The receivers.
        to: CpuSet,
        /// What it is for.
        purpose: IpiPurpose<'a>,
    },
    /// `csd_queue_cpu`: a CPU is to call a function; an interrupt follows, unless one is on its way already.
    CallQueued {
        /// The CPU that is to call it.
        to: CpuId,
        /// The function, without an offset; empty where the text does not say.
        function: &'a [u8],
    },
    /// `nmi_handler`: a handler of an interrupt that cannot be masked returned.
    NmiHandled {
        /// The handler.
        handler: &'a [u8],
        /// How long it took.
        took: Nanos,
    },
    /// `osnoise:*_noise`: the kernel's osnoise tracer saw something take [`Record::cpu`] from its own thread.
    Noise {
        /// What kind of thing.
        source: NoiseSource,
        /// The interrupt, the softirq or the task; empty for an NMI.
        name: &'a [u8],
        /// For how long, without what was on top of it.
        took: Nanos,
    },
    /// `workqueue_queue_work`: a work item was queued.
    WorkQueue {
        /// The item's identity.
        work: u64,
        /// Its function; empty where older kernels do not say.
        function: &'a [u8],
        /// The CPU it will run on, `None` when it may run anywhere.
        cpu: Option<CpuId>,
    },
    /// `workqueue_activate_work`: it may run now.
    WorkActivate {
        /// The item's identity.
        work: u64,
    },
    /// `workqueue_execute_start`: a worker begins it, on [`Record::cpu`].
    WorkStart {
        /// The item's identity.
        work: u64,
        /// Its function.
        function: &'a [u8],
    },
    /// `workqueue_execute_end`: the worker is done with it.
    WorkEnd {
        /// The item's identity.
        work: u64,
    },
    /// `cpu_idle`: a CPU goes into an idle state or leaves it.
    CpuIdle {
        /// Which CPU.
        cpu: CpuId,
        /// The state's number, the deeper the higher; `None` when the CPU leaves it.
        state: Option<u32>,
    },
    /// `tracing_mark_write` (`print` in `trace-cmd report`): a text from user space.
    Mark {
        /// The text.
        text: &'a [u8],
    },
    /// A mark in the text: events of [`Record::cpu`] were lost here. Its task is empty, its time
    /// that of the event before it.
    Lost {
        /// How many, if the mark says.
        count: Option<u64>,
    },
    /// An event that this crate has no type for; it is counted by name.
    Unknown,
}

/// What the osnoise tracer tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoiseSource {
    /// An interrupt, of a device or of the processor's own.
    Interrupt,
    /// A softirq.
    Softirq,
    /// Another task.
    Task,
    /// An interrupt that cannot be masked.
    Nmi,
}

impl NoiseSource {
    /// `interrupt`, `softirq`, `task` or `nmi`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Softirq => "softirq",
            Self::Task => "task",
            Self::Nmi => "nmi",
        }
    }
}

/// `timer_start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerStart<'a> {
    /// The timer's identity.
    pub timer: u64,
    /// The callback's name.
    pub function: &'a [u8],
    /// When it should run, in jiffies.
    pub expires: u64,
    /// `expires` minus jiffies now; negative when it is already due.
    pub timeout: i64,
    /// When its bucket is due, in jiffies; 6.1 does not say.
    pub bucket_expiry: Option<u64>,
    /// Whose base it was put into.
    pub base: CpuId,
    /// Its bucket: level * 64 + position; kernels before 4.x do not say.
    pub bucket: Option<u64>,
    /// D deferrable.
    pub deferrable: bool,
    /// P pinned.
    pub pinned: bool,
    /// I: from its being taken out to the end of its callback, the CPU that runs it lets no interrupt in.
    pub irq_safe: bool,
}

/// `hrtimer_start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HrtimerStart<'a> {
    /// The timer's identity.
    pub hrtimer: u64,
    /// The callback's name.
    pub function: &'a [u8],
    /// The latest time to run, in ns of the timer's own clock.
    pub expires: Nanos,
    /// The earliest time to run, in ns of the timer's own clock.
    pub softexpires: Nanos,
    /// Whether its mode is PINNED; `None` where the format does not say (`trace-cmd report`).
    pub pinned: Option<bool>,
}

/// The begin or the end of what takes a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanStep {
    /// It begins.
    Entry,
    /// It is over.
    Exit,
}

/// What an interrupt between CPUs is for. Each part is empty where the text does not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpiPurpose<'a> {
    /// The function that sends it, without an offset.
    pub callsite: &'a [u8],
    /// The function that the receiver is to run, without an offset.
    pub callback: &'a [u8],
    /// In the kernel's words, where it names no functions: `Rescheduling interrupts`.
    pub reason: &'a [u8],
}

/// An interrupt of the processor's own, which no device raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SystemInterrupt {
    /// The CPU's own timer: ticks and high-resolution timers.
    LocalTimer,
    /// Another CPU has work for this one.
    Reschedule,
    /// Another CPU calls a function on several.
    CallFunction,
    /// Another CPU calls a function on this one.
    CallFunctionSingle,
    /// The CPU itself asked for it, from where nothing else may be done.
    IrqWork,
    /// No device and no CPU raised it.
    SpuriousApic,
    /// The interrupt controller reports an error.
    ErrorApic,
    /// It is too hot.
    ThermalApic,
    /// Too many errors of memory were corrected.
    ThresholdApic,
    /// Errors of memory that can wait.
    DeferredErrorApic,
    /// The platform's own.
    PlatformIpi,
}

impl SystemInterrupt {
    /// Its tracepoints' names without `_entry` and `_exit`, each with what it is.
    const NAMES: [(&'static str, Self); 11] = [
        ("local_timer", Self::LocalTimer),
        ("reschedule", Self::Reschedule),
        ("call_function", Self::CallFunction),
        ("call_function_single", Self::CallFunctionSingle),
        ("irq_work", Self::IrqWork),
        ("spurious_apic", Self::SpuriousApic),
        ("error_apic", Self::ErrorApic),
        ("thermal_apic", Self::ThermalApic),
        ("threshold_apic", Self::ThresholdApic),
        ("deferred_error_apic", Self::DeferredErrorApic),
        ("x86_platform_ipi", Self::PlatformIpi),
    ];

    /// As its tracepoints are called: `local_timer`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, of)| *of == self).map_or("", |(name, _)| name)
    }

    /// The one whose tracepoints have this name.
    pub(crate) fn from_name(name: &[u8]) -> Option<Self> {
        Self::NAMES.into_iter().find(|(of, _)| of.as_bytes() == name).map(|(_, interrupt)| interrupt)
    }
}

/// A step in the life of a softirq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftirqStep {
    /// Marked as pending.
    Raise,
    /// Its handler begins.
    Entry,
    /// Its handler returned.
    Exit,
}

/// A step in waking a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeStep {
    /// The wake-up begins, on the waker's CPU.
    Waking,
    /// The task is runnable.
    Wakeup,
    /// A new task is runnable.
    WakeupNew,
}

/// `timer_migration:*`: the hierarchy of CPUs that expire each other's timers (6.9 on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Migration {
    /// `tmigr_group_set`: a group was made.
    GroupSet {
        /// The group's identity.
        group: u64,
        /// 0 is the lowest level.
        level: u64,
        /// Its NUMA node; -1 when it crosses nodes.
        node: i64,
    },
    /// `tmigr_connect_cpu_parent`: a CPU became a child of a level-0 group.
    ConnectCpu {
        /// The CPU.
        cpu: CpuId,
        /// Its bit in the group.
        mask: u32,
        /// The group.
        parent: u64,
        /// How many children the group has given bits to; `None` where the text does not say.
        child_count: Option<u64>,
    },
    /// `tmigr_connect_child_parent`: a group became a child of another.
    ConnectGroup {
        /// The child.
        group: u64,
        /// Its bit in the parent.
        mask: u32,
        /// The parent.
        parent: u64,
        /// The parent's level.
        level: u64,
        /// How many children the parent has given bits to; `None` where the text does not say.
        child_count: Option<u64>,
    },
    /// A change of one CPU, always seen with its level-0 group.
    Cpu {
        /// What changed.
        step: MigrationStep,
        /// Whose.
        cpu: CpuId,
        /// Its level-0 group.
        parent: u64,
        /// When it must wake for the hierarchy, in ns; `None` when it need not.
        wakeup: Option<Nanos>,
        /// `Idle` and `NewTimerIdle`: its next global timer, as far as the hierarchy has to know it;
        /// `None` when there is none.
        next_event: Option<Nanos>,
    },
    /// `tmigr_group_set_cpu_active` or `..._inactive`: a child changed a group's state.
    GroupState {
        /// Whether the child became active.
        active: bool,
        /// The group.
        group: u64,
        /// The child's bit.
        child_mask: u32,
        /// The active children after the change.
        active_mask: u32,
        /// The migrator's bit after the change; `None` when there is none.
        migrator: Option<u32>,
        /// The group's level; 0 is the lowest.
        level: u64,
        /// Its NUMA node; -1 when it crosses nodes.
        node: i64,
        /// The group above; 0 when this is the top.
        parent: u64,
    },
    /// `tmigr_update_events`: a child's event in a group's queue was looked at.
    UpdateEvents {
        /// The group.
        group: u64,
        /// Its level.
        level: u64,
        /// The child; 0 when it is a CPU.
        child: u64,
        /// The active children of the child, as seen.
        child_active: u32,
        /// The active children of the group, as seen.
        group_active: u32,
        /// The child's next event; `None` when it has none.
        next_event: Option<Nanos>,
        /// The group's first event after it; `None` when it has none.
        next_expiry: Option<Nanos>,
        /// When the child group's event in that queue is due; 0 for a CPU.
        child_expiry: Option<Nanos>,
        /// The CPU of that event; 0 for a CPU.
        child_cpu: u64,
    },
    /// `tmigr_handle_remote`: this CPU looks for due events of idle CPUs in a group.
    HandleRemote {
        /// The group.
        group: u64,
        /// Its level.
        level: u64,
    },
}

/// What changed in [`Migration::Cpu`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationStep {
    /// It leaves idle.
    Active,
    /// It became idle.
    Idle,
    /// It was idle and looks at its timers again.
    NewTimer,
    /// The result of that look.
    NewTimerIdle,
    /// It came online and takes part from now on (up to 6.18).
    Online,
    /// It goes offline and no longer takes part (up to 6.18).
    Offline,
    /// It takes part from now on: online and not isolated (6.19 on).
    Available,
    /// It no longer takes part: isolated or offline (6.19 on).
    Unavailable,
    /// The CPU of the event begins to expire its global timers.
    HandleRemote,
}
