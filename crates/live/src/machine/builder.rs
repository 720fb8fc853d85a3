//! What a machine of threads is made with, and making it.

use super::error::StartError;
use crate::isolation::FromHost;
use crate::lane::LaneThreads;
use crate::run_queue::WakeTo;
use crate::softirq::{Handlers, SoftirqRun};
use crate::stall::RecordLocations;
use crate::virtual_time::Allowed;
use core::time::Duration;
use quietcore_core::place::{ExactPolicy, Exclusion, Policy};
use quietcore_core::realtime::Awareness;
use quietcore_core::softirq::{TimerRaise, Vector};
use quietcore_core::{CpuSet, Nanos, StallPolicy, TickLength, TurnBudget};
use std::sync::Arc;

/// What happens when a callback or a waker panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnPanic {
    /// The process ends: a callback that has not finished its work cannot be trusted to have kept the
    /// program's invariants.
    #[default]
    Abort,
    /// It is counted, and the thread goes on with the next timer.
    Continue,
}

/// Makes a [`Machine`](crate::Machine). Every setting has a default that suits a server.
///
/// ```
/// use core::time::Duration;
/// use quietcore::{LaneThreads, Machine};
///
/// let machine = Machine::builder()
///     .automatic_lanes()
///     .lane_threads(LaneThreads::new())
///     .spare_lanes(2)
///     .tick(Duration::from_millis(4))
///     .stall_after(Duration::from_millis(10))
///     .start()?;
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MachineBuilder {
    pub(super) cpus: Option<CpuSet>,
    pub(super) isolated: Option<CpuSet>,
    pub(super) nohz_full: CpuSet,
    pub(crate) from_host: FromHost,
    /// `None`: as many as make sense here.
    pub(super) lanes: Option<CpuSet>,
    pub(super) lane_threads: Option<LaneThreads>,
    pub(super) spare_lanes: u16,
    pub(super) nodes: Vec<CpuSet>,
    pub(super) tick: Duration,
    pub(super) turn: TurnBudget,
    pub(super) stall: StallPolicy,
    pub(super) policy: Policy,
    pub(super) exact_policy: ExactPolicy,
    pub(super) exclusion: Exclusion,
    pub(super) on_panic: OnPanic,
    pub(super) virtual_time: Allowed,
    pub(super) softirqs: Handlers,
    pub(super) awareness: Awareness,
    pub(super) defer_limit: Duration,
    pub(super) wake_to: WakeTo,
    pub(super) timer_raise: TimerRaise,
    pub(crate) arm_locations: RecordLocations,
}

impl Default for MachineBuilder {
    fn default() -> Self {
        Self {
            cpus: None,
            isolated: None,
            nohz_full: CpuSet::new(),
            from_host: FromHost::default(),
            lanes: Some(CpuSet::new()),
            lane_threads: None,
            spare_lanes: 1,
            nodes: Vec::new(),
            tick: Duration::from_millis(1),
            turn: TurnBudget::default(),
            stall: StallPolicy::default(),
            policy: Policy::default(),
            exact_policy: ExactPolicy::default(),
            exclusion: Exclusion::default(),
            on_panic: OnPanic::default(),
            virtual_time: Allowed::default(),
            softirqs: Handlers::default(),
            awareness: Awareness::Both,
            defer_limit: Duration::from_millis(50),
            wake_to: WakeTo::default(),
            timer_raise: TimerRaise::default(),
            arm_locations: RecordLocations::default(),
        }
    }
}

impl MachineBuilder {
    /// The CPUs of the machine. Default: those that this process may run on.
    #[must_use]
    pub fn cpus(mut self, cpus: CpuSet) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// CPUs on which nothing foreign runs. Default: those that the kernel isolates (`isolcpus=`).
    #[must_use]
    pub fn isolated(mut self, isolated: CpuSet) -> Self {
        self.isolated = Some(isolated);
        self
    }

    /// CPUs that keep no tick, as with the kernel's `nohz_full=`: they do no housekeeping for other CPUs'
    /// timers. Default: none.
    #[must_use]
    pub fn nohz_full(mut self, nohz_full: CpuSet) -> Self {
        self.nohz_full = nohz_full;
        self
    }

    /// CPUs that threads will claim with [`Cpu::claim`](crate::Cpu::claim). Default: none; then the helper
    /// thread expires all timers.
    #[must_use]
    pub fn lanes(mut self, lanes: CpuSet) -> Self {
        self.lanes = Some(lanes);
        self
    }

    /// As many lanes as make sense for this process: one for each CPU that it may run on, but not more than
    /// its control group's CPU quota comes to, rounded up.
    #[must_use]
    pub fn automatic_lanes(mut self) -> Self {
        self.lanes = None;
        self
    }

    /// Starts a thread for each lane that runs its timers, instead of leaving lanes to be claimed. Default:
    /// no.
    #[must_use]
    pub const fn lane_threads(mut self, threads: LaneThreads) -> Self {
        self.lane_threads = Some(threads);
        self
    }

    /// Parked threads without a CPU of their own, for when every lane is stuck. Default 1; without lanes of
    /// no use.
    #[must_use]
    pub const fn spare_lanes(mut self, count: u16) -> Self {
        self.spare_lanes = count;
        self
    }

    /// How long a tick lasts: the grain of every timer that is not exact. Default 1 ms.
    #[must_use]
    pub const fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// How much one turn of a CPU runs before its thread looks at everything else that it has to do
    /// (softirqs, tasks, the program's own loop): `timers` at most, and none is begun `time` after the turn
    /// was. The rest runs in the next turn, which comes at once. At least one timer. Default 256 timers, 2
    /// ms.
    #[must_use]
    pub fn turn_budget(mut self, timers: u32, time: Duration) -> Self {
        self.turn = TurnBudget::new(timers, Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
        self
    }

    /// Which CPUs are near each other: the CPUs of node 0, of node 1 and so on; one in no list is on node 0.
    /// Timers that are pulled, spare work and wake-ups stay on a node where they can. Default: the host's
    /// nodes, caches and cores; this replaces all three, for hosts that hide them, and for tests.
    #[must_use]
    pub fn nodes(mut self, lists: impl IntoIterator<Item = CpuSet>) -> Self {
        self.nodes = lists.into_iter().collect();
        self
    }

    /// For how long a lane may not turn before others take over what they can; never less than two ticks.
    /// Default 2 ms; [`Duration::MAX`]: no lane counts as stalled.
    #[must_use]
    pub const fn stall_after(mut self, stall_after: Duration) -> Self {
        self.stall = self.stall.with_span(stall_after);
        self
    }

    /// Where an unpinned timer waits. Anything but [`Policy::Pull`] needs lanes. Default `Pull`.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The same for unpinned exact timers. Default `Pull`.
    #[must_use]
    pub const fn exact_policy(mut self, policy: ExactPolicy) -> Self {
        self.exact_policy = policy;
        self
    }

    /// Which isolated CPUs neither pull nor are pulled. Default: the rule of Linux 6.19.
    #[must_use]
    pub const fn exclusion(mut self, exclusion: Exclusion) -> Self {
        self.exclusion = exclusion;
        self
    }

    /// What happens when a callback panics. Default: the process ends.
    #[must_use]
    pub const fn on_panic(mut self, on_panic: OnPanic) -> Self {
        self.on_panic = on_panic;
        self
    }

    /// Lets the machine's time be paused ([`virtual_time`](crate::virtual_time)): for tests. Such a machine
    /// has one CPU, the first of [`cpus`](Self::cpus), and no lanes. Default: time cannot be paused.
    #[must_use]
    pub const fn virtual_time(mut self) -> Self {
        self.virtual_time = Allowed::Yes;
        self
    }

    /// What runs when `vector` is raised, on any CPU: see [`Machine::raise`](crate::Machine::raise). Needs
    /// lanes. The last handler that is given counts. A panic in it is caught and counted, or ends the process
    /// ([`on_panic`](Self::on_panic)).
    ///
    /// # Panics
    /// For TIMER and HRTIMER, which are the machine's own.
    #[must_use]
    pub fn softirq(
        mut self,
        vector: Vector,
        handler: impl Fn(&SoftirqRun<'_>) + Send + Sync + 'static,
    ) -> Self {
        assert!(!matches!(vector, Vector::TIMER | Vector::HRTIMER), "{vector} is the machine's own");
        self.softirqs.set(vector, Arc::new(handler));
        self
    }

    /// What is done about long softirqs for the sake of real-time tasks. Default: both; without softirqs of
    /// the program it makes no difference.
    #[must_use]
    pub const fn awareness(mut self, awareness: Awareness) -> Self {
        self.awareness = awareness;
        self
    }

    /// For how long long softirqs are deferred at most, where that is done. Default 50 ms.
    #[must_use]
    pub const fn defer_limit(mut self, limit: Duration) -> Self {
        self.defer_limit = limit;
        self
    }

    /// Where normal tasks and work run that are woken. Default: where they ran last.
    #[must_use]
    pub const fn wake_to(mut self, wake_to: WakeTo) -> Self {
        self.wake_to = wake_to;
        self
    }

    /// When an isolated lane that turns all the time takes a timer turn. Default: when a timer is due. The
    /// others are what kernels did, and cost more; they are here to be compared.
    #[must_use]
    pub const fn timer_raise(mut self, when: TimerRaise) -> Self {
        self.timer_raise = when;
        self
    }

    pub(super) fn tick_length(&self) -> Result<TickLength, StartError> {
        let nanos = u64::try_from(self.tick.as_nanos()).ok().filter(|nanos| *nanos >= 1_000);
        nanos.and_then(|nanos| TickLength::new(Nanos(nanos))).ok_or(StartError::Tick { tick: self.tick })
    }
}
