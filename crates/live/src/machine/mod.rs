//! A machine of threads: the core's machine, a clock, and the threads that drive its CPUs.
//!
//! Without lanes every CPU that this process may use is idle for ever in the hierarchy: threads arm on
//! the GUEST base of the CPU that they happen to run on, and one thread, the helper, drives a CPU of its own
//! (the *spare*) that pulls all of them. With lanes, CPUs are driven by the threads that claim them, and the
//! helper is the sentinel that notices when none of them turns.
//!
//! Where what is decided: `builder.rs` settings; `host.rs` which CPUs there are; `turn.rs` running what is
//! due; `helper.rs` the helper; `current.rs` which machine a thread means; `sync.rs` the words read without a
//! lock. Invariant: actions are carried out after all locks are dropped, before user code goes on.

mod alarm;
mod builder;
mod current;
mod error;
mod helper;
mod host;
mod limits;
mod start;
mod sync;
#[cfg(test)]
mod tests;
mod turn;

pub use builder::{MachineBuilder, OnPanic};
pub use current::{EnterGuard, InstallError};
pub use error::{ArmError, StartError};
pub(crate) use limits::Limits;

use crate::clock::Clock;
use crate::events::Events;
use crate::lane::{LaneSlots, driven_here};
use crate::machine_ref::MachineRef;
use crate::metrics::MetricWords;
use crate::payload::Payload;
use crate::probe;
use crate::run_queue::WakeTo;
use crate::softirq::Handlers;
use crate::stall::Stalls;
use crate::task::{BlockingPool, LiveTasks};
use crate::timer::{RunEnds, RunScope};
use crate::virtual_time::VirtualTime;
use crate::words::lock::FutexLock;
use crate::words::present_cpu;
use alarm::Alarm;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use quietcore_core::lane::Helper;
use quietcore_core::place::nearest_housekeeping;
use quietcore_core::realtime::Awareness;
use quietcore_core::softirq::TimerRaise;
use quietcore_core::{
    Actions, ArmFollowUp, ArmOfMany, Context, CpuId, CpuSet, Machine as Core, Nanos, TimerKind, TimerRef,
};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use sync::{Hosts, Life};

/// Timers on the threads of this process. Any thread may arm and cancel; see [`MachineBuilder`] for what it
/// is made with.
pub struct Machine {
    pub(crate) core: Core<FutexLock, Payload>,
    pub(crate) clock: Clock,
    pub(crate) alarm: Alarm,
    pub(crate) virtual_time: VirtualTime,
    pub(crate) hosts: Hosts,
    /// The turn of the first spare: of the helper without lanes, or of the thread that moves a virtual clock.
    spare_turn: Mutex<Helper>,
    life: Life,
    /// CPUs of the host, without spares.
    pub(crate) cpus: CpuSet,
    /// CPUs that threads may claim.
    pub(crate) lane_set: CpuSet,
    pub(crate) lanes: LaneSlots,
    cpu_limit: u16,
    on_panic: OnPanic,
    pub(crate) counts: Box<[MetricWords]>,
    /// The first spare: the helper drives it while there are no lanes.
    pub(crate) spare: CpuId,
    pub(crate) run_ends: RunEnds,
    pub(crate) stalls: Stalls,
    pub(crate) events: Events,
    threads: Mutex<Vec<JoinHandle<()>>>,
    pub(crate) softirqs: Handlers,
    pub(crate) awareness: Awareness,
    pub(crate) defer_limit: Nanos,
    pub(crate) wake_to: WakeTo,
    pub(crate) timer_raise: TimerRaise,
    pub(crate) tasks: LiveTasks,
    pub(crate) blocking: BlockingPool,
}

impl Machine {
    /// For parts of the machine that know it.
    pub(crate) const fn reference(&'static self) -> MachineRef {
        MachineRef::new(self)
    }

    /// The machine that a part of it knows.
    #[inline]
    #[allow(unsafe_code, reason = "the only type that a reference is made from")]
    pub(crate) const fn of(reference: MachineRef) -> &'static Self {
        // SAFETY: `reference` above is the only caller of `MachineRef::new`.
        unsafe { reference.get() }
    }

    /// The CPU of this machine that the calling thread drives, and the moment at which the thread last looked
    /// at the clock in a turn. Cost: three loads.
    #[inline]
    pub(crate) fn current_cpu(&self) -> Option<(CpuId, Nanos)> {
        driven_here(core::ptr::from_ref(self).cast())
    }

    /// Writes anew where foreign threads arm. After CPUs came, went, or were isolated; by the holder of the
    /// control lock.
    pub(crate) fn choose_hosts(&self) {
        let isolated = self.core.isolation().any();
        let open = self.core.online_cpus().difference(&isolated);
        self.hosts.fill(|cpu| nearest_housekeeping(self.core.topology(), cpu, &open));
    }

    /// The moment on this machine's clock, in ns of CLOCK_MONOTONIC unless time was paused.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Whether timers can be armed: it was not shut down, and this process started it.
    #[inline]
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.check_alive().is_ok()
    }

    /// The CPUs that lanes drive, or may drive: as many of those that were asked for as this process may use.
    /// Empty on a machine without lanes.
    #[must_use]
    pub const fn lanes(&self) -> &CpuSet {
        &self.lane_set
    }

    /// Which of this machine's CPUs the calling thread drives; `None` if it is no lane of it. Cost: three
    /// loads.
    #[must_use]
    pub fn cpu_here(&self) -> Option<CpuId> {
        self.current_cpu().map(|(cpu, _)| cpu)
    }

    /// Whether this process got it from its parent, by a fork: then its locks may be held by no thread, and
    /// must not be taken.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.life.is_forked()
    }

    /// Whether it was shut down, for its own threads.
    pub(crate) fn is_over(&self) -> bool {
        self.life.is_over()
    }

    /// Why the machine takes no arms any more. Cost: two loads.
    ///
    /// # Errors
    /// [`ArmError::ShutDown`], in a forked child [`ArmError::Forked`], or after a bug of ours
    /// [`ArmError::Broken`].
    #[inline]
    pub fn check_alive(&self) -> Result<(), ArmError> {
        if self.life.is_forked() {
            return Err(ArmError::Forked);
        }
        match self.life.is_running() {
            true => Ok(()),
            false if self.life.is_broken() => Err(ArmError::Broken),
            false => Err(ArmError::ShutDown),
        }
    }

    /// Whether it takes arms, and timers do not keep where they come from. Cost: two loads.
    #[inline]
    pub(crate) fn takes_plain_arms(&self) -> bool {
        !self.life.is_forked() && self.life.is_plain()
    }

    /// Who arms: the lane of this thread, or a foreign thread on the CPU that it runs on.
    #[inline]
    pub(crate) fn context(&self, now: Nanos) -> Context {
        match self.current_cpu() {
            Some((cpu, _)) => Context::on(cpu, now),
            None => Context::near(self.hosts.near(present_cpu::remember()), now),
        }
    }

    /// The same for an arm for `at`, whose own moment only takes a base's clock along: on a lane the last
    /// look at the clock often will do, elsewhere the coarse clock.
    #[inline(always)]
    pub(crate) fn context_for(&self, at: Nanos) -> Context {
        match self.current_cpu() {
            Some((cpu, looked)) => {
                Context::on(cpu, self.core.moment_for_arm(at, looked, || self.clock.coarse()))
            }
            None => Context::near(self.hosts.near(present_cpu::remember()), self.clock.coarse()),
        }
    }

    /// The same for a cancel, which asks neither for the time nor where a foreign thread is.
    #[inline]
    pub(crate) fn cancel_context(&self) -> Context {
        match self.current_cpu() {
            Some((cpu, now)) => Context::on(cpu, now),
            None => Context::near(CpuId::default(), Nanos(0)),
        }
    }

    /// Arms in the [usual case](quietcore_core::Machine::arm_usual); says whether the timer was pending, or
    /// that it is another case.
    #[inline(always)]
    pub(crate) fn arm_usual<K: TimerKind>(
        &self,
        timer: TimerRef<Payload, K>,
        when: K::When,
        context: Context,
    ) -> Option<bool> {
        self.core.arm_usual(timer, when, context, |left| self.follow_up(left, context))
    }

    /// Arms [many](quietcore_core::Machine::arm_many_usual) in the usual case.
    pub(crate) fn arm_many_usual(&self, arms: &mut [ArmOfMany<Payload>], context: Context) {
        let follow_up = self.core.arm_many_usual(arms, context);
        if let Some(follow_up) = follow_up.filter(ArmFollowUp::is_needed) {
            self.follow_up(follow_up, context);
        }
    }

    #[inline(never)]
    fn follow_up(&self, left: ArmFollowUp, context: Context) {
        self.act(|actions| self.core.follow_up(left, context, actions));
    }

    /// Lets `decide` say what has to be done, and does it when all locks are dropped.
    #[inline]
    pub(crate) fn act<R>(&self, decide: impl FnOnce(&mut Actions) -> R) -> R {
        let mut actions = Actions::new(self.cpu_limit);
        let result = decide(&mut actions);
        if !actions.is_empty() {
            self.carry_out(&mut actions);
        }
        result
    }

    #[cold]
    pub(crate) fn carry_out(&self, actions: &mut Actions) {
        while let Some(cpu) = actions.take_kick() {
            self.counts[cpu.index()].kicks.add(1);
            probe::lane_kick(cpu);
            self.lanes.table().kick(&self.core, cpu, actions);
        }
        if let Some(at) = actions.take_alarm() {
            self.request_alarm(at, actions);
        }
        if actions.take_program() {
            self.alarm.follow(self.lanes.table().deadline());
        }
    }

    /// Ends the machine: nothing is armed from now on, and no callback that is pending runs, on no thread.
    /// Futures that wait for a time are woken, and panic when they are polled, as tokio's do: end their
    /// executor first. Then waits until no callback runs and the machine's own threads have ended, also if it
    /// is not the first call. In a callback it does not wait.
    pub fn shutdown(&self) {
        if self.life.is_forked() {
            return;
        }
        let is_first = self.life.shut_down();
        // By each caller: the first one may not have come to it yet.
        self.core.close();
        if is_first {
            self.send_threads_home();
        }
        self.end_tasks();
        self.end_waits();
        if RunScope::is_here() {
            return;
        }
        // Another one that waits here for the same threads holds the lock until they have ended.
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
        drop(threads);
        self.run_ends.wait_while(|| self.core.has_runs());
        // What the last of them has woken.
        self.end_tasks();
    }

    /// The machine runs no more: its threads are to look at that, and end. Once, by the thread that ended it.
    fn send_threads_home(&self) {
        self.events.end();
        self.end_wait_of_helper();
        self.lanes.table().wake_all();
        self.lanes.wake_ksoftirqds();
        self.blocking.end();
    }

    /// Drops what waits to be run, and the futures of all tasks that do not run just now; those that do are
    /// dropped when their poll ends.
    pub(crate) fn end_tasks(&self) {
        for item in self.lanes.end_queues() {
            self.dismiss(item);
        }
        self.tasks.wake_all();
        self.tell_of_end();
    }
}

/// No user code runs while a lock of the machine is held, and panics of callbacks are caught: what a panic
/// leaves behind is a whole machine.
impl UnwindSafe for Machine {}
impl RefUnwindSafe for Machine {}

impl fmt::Debug for Machine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Machine")
            .field("cpus", &format_args!("{}", self.cpus))
            .field("lanes", &format_args!("{}", self.lane_set))
            .field("is_running", &self.is_running())
            .finish_non_exhaustive()
    }
}
