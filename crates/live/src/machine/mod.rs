//! A machine of threads: the core's machine, a clock, and whoever turns for its CPUs.
//!
//! Without lanes every CPU that this process may use is parked for ever in the core's books: threads arm on
//! the GUEST base of the CPU that they happen to run on, and one thread, the helper, plays a CPU of its own
//! (the *spare*) that pulls all of them. With lanes, CPUs are played by the threads that claim them, and the
//! helper is the sentinel that notices when none of them turns.
//!
//! Where what is decided: `builder.rs` settings; `host.rs` which CPUs there are; `turn.rs` running what is
//! due; `helper.rs` the helper; `current.rs` which machine a thread means; `sync.rs` the words read without a
//! lock. Invariant: actions are carried out after all locks are dropped, before user code goes on.

mod builder;
mod current;
mod helper;
mod host;
mod limits;
mod sync;
#[cfg(test)]
mod tests;
mod turn;

pub use builder::{Builder, OnPanic};
pub use current::{EnterGuard, InstallError};

use crate::clock::Clock;
use crate::events::Events;
use crate::lane::{LaneThreads, Lanes, current_cpu};
use crate::metrics::CpuCounts;
use crate::payload::Payload;
use crate::probe;
use crate::run_queue::WakeTo;
use crate::softirq::Handlers;
use crate::stall::Stalls;
use crate::task::{BlockingPool, LiveTasks};
use crate::timer::{InRun, RunEnds};
use crate::virtual_time::{Allowed, VirtualTime};
use crate::words::alarm::Alarm;
use crate::words::lock::FutexLock;
use crate::words::present_cpu;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;
use helper::Player;
pub(crate) use limits::Limits;
use quietcore_core::place::{HousekeepingError, Isolation, Policy, nearest_housekeeping};
use quietcore_core::realtime::Awareness;
use quietcore_core::softirq::TimerRaise;
use quietcore_core::{Actions, Context, CpuId, CpuSet, Machine as Core, Nanos, Settings};
use std::io;
use std::sync::{Mutex, Once, PoisonError};
use std::thread::JoinHandle;
pub(crate) use sync::count_fork;
use sync::{Hosts, Life};

/// Why a machine was not started. Nothing is left behind.
///
/// ```
/// use core::time::Duration;
/// use quietcore_live::{Machine, StartError};
///
/// let error = Machine::builder().tick(Duration::ZERO).start().unwrap_err();
/// assert!(matches!(error, StartError::Tick { .. }));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// There is no CPU to use: the set is empty, or names none that this process may run on.
    NoCpu,
    /// A tick lasts between a microsecond and 584 years.
    Tick {
        /// What was asked for.
        tick: Duration,
    },
    /// Timers that are not pulled need lanes: nobody else would expire them.
    NeedsLanes {
        /// What was asked for.
        policy: Policy,
    },
    /// Lanes go by the time of the kernel: with [`Builder::virtual_time`] there can be none.
    LanesInVirtualTime,
    /// Every CPU would be isolated.
    Housekeeping(HousekeepingError),
    /// The system refused.
    System {
        /// To do what.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCpu => out.write_str("none of the CPUs asked for may be used by this process"),
            Self::Tick { tick } => {
                write!(out, "a tick of {tick:?} is too short; 1 us is the least, 1 ms usual")
            }
            Self::NeedsLanes { policy } => {
                write!(out, "timers that stay where they are armed ({}) need lanes", policy.name())
            }
            Self::LanesInVirtualTime => out.write_str("a machine whose time can be paused has no lanes"),
            Self::Housekeeping(error) => fmt::Display::fmt(error, out),
            Self::System { what, error } => write!(out, "cannot {what}: {error}"),
        }
    }
}

impl core::error::Error for StartError {}

/// Why a timer was not armed.
///
/// ```
/// assert_eq!(quietcore_live::ArmError::ShutDown.to_string(), "the machine or the timer was shut down");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArmError {
    /// The machine was shut down, or the timer was.
    ShutDown,
    /// This process is a child that was forked: it has the machine's memory and none of its threads.
    Forked,
    /// A pinned timer needs a lane that turns for its CPU.
    NoLane {
        /// The CPU.
        cpu: CpuId,
    },
}

impl fmt::Display for ArmError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShutDown => out.write_str("the machine or the timer was shut down"),
            Self::Forked => {
                out.write_str("the machine belongs to the parent of this process; start another one")
            }
            Self::NoLane { cpu } => write!(out, "no lane turns for CPU {cpu}"),
        }
    }
}

impl core::error::Error for ArmError {}

impl From<quietcore_core::ArmError> for ArmError {
    fn from(error: quietcore_core::ArmError) -> Self {
        match error {
            quietcore_core::ArmError::NoSuchCpu { cpu } => Self::NoLane { cpu },
            // Timers of this world are always known: they are reached by address.
            _ => Self::ShutDown,
        }
    }
}

/// Timers on the threads of this process. Any thread may arm and cancel; see [`Builder`] for what it is made
/// with.
///
/// ```
/// use quietcore_live::Machine;
///
/// let machine = Machine::start()?;
/// assert!(machine.is_running());
/// machine.shutdown();
/// assert!(!machine.is_running());
/// # Ok::<(), quietcore_live::StartError>(())
/// ```
pub struct Machine {
    pub(crate) core: Core<FutexLock, Payload>,
    pub(crate) clock: Clock,
    pub(crate) alarm: Alarm,
    pub(crate) virtual_time: VirtualTime,
    pub(crate) hosts: Hosts,
    /// Who plays the first spare: the helper without lanes, or whoever moves a virtual clock.
    player: Mutex<Player>,
    life: Life,
    /// CPUs of the host, without spares.
    pub(crate) cpus: CpuSet,
    /// CPUs that threads may claim.
    pub(crate) lane_set: CpuSet,
    pub(crate) lanes: Lanes,
    cpu_limit: u16,
    on_panic: OnPanic,
    pub(crate) counts: Box<[CpuCounts]>,
    /// The first spare: the helper plays it while there are no lanes.
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
    /// A machine with the default settings. See [`Builder::start`].
    ///
    /// # Errors
    /// When the kernel refuses a timer or a thread.
    ///
    /// ```
    /// let machine = quietcore_live::Machine::start()?;
    /// machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn start() -> Result<&'static Self, StartError> {
        Self::builder().start()
    }

    /// For settings.
    ///
    /// ```
    /// let builder = quietcore_live::Machine::builder().spare_lanes(0);
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    fn launch(builder: Builder) -> Result<&'static Self, StartError> {
        let machine: &'static Self = Box::leak(Box::new(Self::assemble(&builder)?));
        static ON_FORK: Once = Once::new();
        ON_FORK.call_once(crate::fork::count_in_children);
        if let Err(error) = machine.start_threads(&builder) {
            machine.shutdown();
            return Err(error);
        }
        machine.tell_of_start();
        Ok(machine)
    }

    fn start_threads(&'static self, builder: &Builder) -> Result<(), StartError> {
        self.start_events()?;
        self.start_helper()?;
        self.start_spares()?;
        self.start_ksoftirqds()?;
        match builder.lane_threads {
            Some(threads) => self.start_lane_threads(threads, Limits::of_this_process().is_exclusive),
            None => Ok(()),
        }
    }

    fn assemble(builder: &Builder) -> Result<Self, StartError> {
        let allowed = host::allowed()?;
        let mut cpus =
            builder.cpus.as_ref().map_or_else(|| allowed.clone(), |cpus| cpus.intersection(&allowed));
        if builder.virtual_time == Allowed::Yes {
            if builder.lanes.as_ref().is_none_or(|lanes| !lanes.is_empty()) {
                return Err(StartError::LanesInVirtualTime);
            }
            // One base for all: what is due at the same moment runs in the order in which it was armed.
            cpus = cpus.first().into_iter().collect();
        }
        let highest = cpus.last().ok_or(StartError::NoCpu)?;
        let lane_set = match &builder.lanes {
            Some(lanes) => lanes.intersection(&cpus),
            None => Limits::of_this_process().lanes(&cpus),
        };
        if lane_set.is_empty() && builder.policy != Policy::Pull {
            return Err(StartError::NeedsLanes { policy: builder.policy });
        }
        let spare = CpuId::new(highest.index() as u64 + 1).map_err(|_| StartError::NoCpu)?;
        let count = if lane_set.is_empty() { 1 } else { builder.spare_lanes.max(1) };
        let spares = CpuSet::range(spare, count).map_err(|_| StartError::NoCpu)?;
        let settings = Self::settings(builder, &cpus)?;
        let topology = host::topology(&cpus, &spares)?;
        let own_priority = builder.lane_threads.and_then(LaneThreads::own_priority);
        let lanes = Lanes::new(&lane_set, &spares, &settings, own_priority);
        let core = Core::new(topology, settings).map_err(StartError::Housekeeping)?;
        let alarm = Alarm::new().map_err(|error| StartError::System { what: "make a timer", error })?;
        let machine = Self {
            core,
            clock: Clock::default(),
            alarm,
            virtual_time: VirtualTime::new(builder.virtual_time, Nanos(builder.tick.as_nanos() as u64)),
            hosts: Hosts::new(highest.index() + 1, spare),
            player: Mutex::new(Player::new(spare)),
            life: Life::new(builder.sites),
            cpu_limit: spare.index() as u16 + count,
            counts: (0..spare.index() + usize::from(count)).map(|_| CpuCounts::new()).collect(),
            cpus,
            lane_set,
            lanes,
            on_panic: builder.on_panic,
            spare,
            run_ends: RunEnds::new(),
            stalls: Stalls::new(spare.index() + usize::from(count)),
            events: Events::default(),
            threads: Mutex::new(Vec::new()),
            softirqs: builder.softirqs.clone(),
            awareness: builder.awareness,
            defer_limit: Nanos(u64::try_from(builder.defer_limit.as_nanos()).unwrap_or(u64::MAX)),
            wake_to: builder.wake_to,
            timer_raise: builder.timer_raise,
            tasks: LiveTasks::default(),
            blocking: BlockingPool::default(),
        };
        machine.connect(&spares);
        Ok(machine)
    }

    /// What the core is made with.
    fn settings(builder: &Builder, cpus: &CpuSet) -> Result<Settings, StartError> {
        let kernel = builder.isolated.clone().unwrap_or_else(host::isolated);
        let nohz_full = builder.nohz_full.intersection(cpus);
        let isolation = Isolation { domain: kernel.intersection(cpus), nohz_full, ..Isolation::default() };
        let tick = builder.tick_length()?;
        Ok(Settings {
            policy: builder.policy,
            exact_policy: builder.exact_policy,
            exclusion: builder.exclusion,
            isolation: builder.from_host.or(isolation, cpus)?,
            tick,
            // A lane that dozes says once per tick that it turns.
            stall_after: builder.stall_nanos().max(Nanos(tick.nanos().0.saturating_mul(2))),
        })
    }

    /// Everybody who is there from the start comes online and goes idle.
    fn connect(&self, spares: &CpuSet) {
        let now = self.clock.now();
        let guests = if self.lanes.exist() { CpuSet::new() } else { self.cpus.clone() };
        for cpu in spares.iter().chain(guests.iter()) {
            self.act(|actions| self.core.online(cpu, now, actions))
                .expect("it is offline, and a spare is housekeeping");
            let _ = self.core.enter_idle(cpu, now);
        }
        self.renew_hints();
    }

    /// Writes anew where foreign threads arm. After CPUs came, went, or were isolated.
    pub(crate) fn choose_hosts(&self) {
        let isolated = self.core.isolation().any();
        let open = self.core.online_cpus().difference(&isolated);
        self.hosts.fill(&open, |cpu| nearest_housekeeping(self.core.topology(), cpu, &open));
    }

    /// The moment on this machine's clock, in ns of CLOCK_MONOTONIC unless time was paused.
    ///
    /// ```
    /// # use quietcore_live::Machine;
    /// let machine = Machine::start()?;
    /// assert!(machine.now() <= machine.now());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Whether timers can be armed: it was not shut down, and this process started it.
    ///
    /// ```
    /// # use quietcore_live::Machine;
    /// let machine = Machine::start()?;
    /// assert!(machine.is_running());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.check_alive().is_ok()
    }

    /// The CPUs that lanes play, or may: as many of those that were asked for as this process may use. Empty
    /// on a machine without lanes.
    ///
    /// ```
    /// # use quietcore_live::Machine;
    /// let machine = Machine::builder().automatic_lanes().start()?;
    /// assert!(!machine.lanes().is_empty());
    /// # machine.shutdown();
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[must_use]
    pub const fn lanes(&self) -> &CpuSet {
        &self.lane_set
    }

    /// Whether this process got it from its parent, by a fork: then its locks may be held by nobody, and must
    /// not be taken.
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
    /// [`ArmError::ShutDown`], or in a forked child [`ArmError::Forked`].
    ///
    /// ```
    /// # use quietcore_live::{ArmError, Machine};
    /// let machine = Machine::start()?;
    /// assert_eq!(machine.check_alive(), Ok(()));
    /// machine.shutdown();
    /// assert_eq!(machine.check_alive(), Err(ArmError::ShutDown));
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    #[inline]
    pub fn check_alive(&self) -> Result<(), ArmError> {
        if self.life.is_forked() {
            return Err(ArmError::Forked);
        }
        if self.life.is_running() { Ok(()) } else { Err(ArmError::ShutDown) }
    }

    /// Whether it takes arms, and timers do not keep where they come from. Cost: two loads.
    #[inline]
    pub(crate) fn takes_plain_arms(&self) -> bool {
        !self.life.is_forked() && self.life.is_plain()
    }

    /// Who arms: the lane of this thread, or a foreign thread on the CPU that it runs on.
    #[inline]
    pub(crate) fn context(&self, now: Nanos) -> Context {
        match current_cpu(self) {
            Some((cpu, _)) => Context::on(cpu, now),
            None => Context::near(self.hosts.near(present_cpu::number()), now),
        }
    }

    /// The same for an arm at a given moment, whose own moment only takes a base's clock along: on a lane the
    /// last look at the clock will do, elsewhere the coarse clock.
    #[inline]
    pub(crate) fn coarse_context(&self) -> Context {
        match current_cpu(self) {
            Some((cpu, now)) => Context::on(cpu, now),
            None => Context::near(self.hosts.near(present_cpu::number()), self.clock.coarse()),
        }
    }

    /// The same for a cancel, which asks neither for the time nor where a foreign thread is.
    #[inline]
    pub(crate) fn cancel_context(&self) -> Context {
        match current_cpu(self) {
            Some((cpu, now)) => Context::on(cpu, now),
            None => Context::near(CpuId::default(), Nanos(0)),
        }
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
        if let Some(at) = actions.take_alarm() {
            self.set_alarm(at);
        }
        while let Some(cpu) = actions.take_kick() {
            self.counts[cpu.index()].kicks.add(1);
            probe::lane_kick(cpu);
            self.kick(cpu);
        }
    }

    /// Ends the machine: nothing is armed from now on, and what is pending never runs, on no thread. Then
    /// waits until no callback runs and the machine's own threads have ended, whoever called this first. In a
    /// callback it does not wait. Wakers of futures that expired before this may still be called.
    ///
    /// ```
    /// # use quietcore_live::Machine;
    /// let machine = Machine::start()?;
    /// machine.shutdown();
    /// machine.shutdown(); // finds that all has ended
    /// # Ok::<(), quietcore_live::StartError>(())
    /// ```
    pub fn shutdown(&self) {
        if self.life.is_forked() {
            return;
        }
        let is_first = self.life.shut_down();
        // By each caller: the first one may not have come to it yet.
        self.core.close();
        if is_first {
            self.events.end();
            self.alarm.end();
            self.lanes.wake_all();
            self.lanes.wake_companions();
            self.blocking.end();
        }
        self.end_tasks();
        if InRun::is_here() {
            return;
        }
        // Another one that waits here for the same threads holds the lock until they have ended.
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A helper that panicked has said so.
            let _ = thread.join();
        }
        drop(threads);
        self.run_ends.wait_while(|| self.core.has_runs());
        // What the last of them has woken.
        self.end_tasks();
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
