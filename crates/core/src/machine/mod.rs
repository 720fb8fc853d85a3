//! The machine: CPUs with timer bases, the hierarchy over them, and isolation. It decides, never acts.
//!
//! The type's own documentation sorts its methods and says in which order to call them.
//!
//! Where what is decided: `arm.rs` which base a timer goes to, `cancel.rs` how it is taken out; `publish.rs`
//! which CPU learns of a new first expiry; `turn.rs` what a CPU runs; `idle.rs` what it publishes when it has
//! nothing to run; `alarm.rs` which CPU wakes up when all sleep; `stall/` CPUs that do not turn or did not
//! wake up; `control.rs` isolation and hotplug; `counters.rs` what happened so far; `check.rs` the
//! invariants. Lock order: ARCHITECTURE.md.

mod alarm;
mod arm;
mod cancel;
mod check;
mod control;
mod counters;
mod cpu_bases;
mod cpu_flags;
mod end;
mod idle;
mod name;
mod pending;
mod publish;
mod settings;
mod stall;
mod sync;
mod turn;

pub use arm::{ArmFollowUp, ArmRefusal, Armed};
pub use control::{CpuControlError, IsolationReport};
pub use counters::{Counters, Silence};
pub use idle::IdleDecision;
pub use name::AnyTimer;
pub use settings::{Settings, TurnBudget};
pub use stall::{MarkOutcome, Patience, StallPolicy};
pub use turn::{At, Turn};

use cpu_flags::{FlagsChange, FlagsSnapshot};
use sync::{CpuWatch, EventCount, LastTick, TreeAlarm};

use crate::base::{BaseId, BaseKind, Bases};
use crate::lock::Locked;
use crate::place::{Housekeeping, HousekeepingError, Isolation, Policy};
use crate::tmigr::{Hierarchy, View};
use crate::topology::Topology;
use crate::{CpuId, CpuSet, Nanos, RawLock};
use alloc::boxed::Box;

/// What changes seldom, behind one lock.
#[derive(Debug)]
struct Control {
    online: CpuSet,
    isolation: Isolation,
    /// Of the online CPUs; `None` until the first is.
    housekeeping: Option<Housekeeping>,
    /// The CPU that keeps time while others are `nohz_full`: the first that came online.
    tick_cpu: Option<CpuId>,
    /// What the flags of the CPUs say.
    roles: ControlRoles,
}

/// Who is online, and who of them takes timers.
#[derive(Debug, Default)]
struct ControlRoles {
    online: CpuSet,
    work: CpuSet,
}

/// CPUs, their timers, and which CPU expires them. `T` is what a timer carries for the world: a function and
/// its argument, or a number.
///
/// Four kinds of methods:
///
/// - **Getters** change nothing: `settings`, `topology`, `next_event`, `counters`, `is_running`, ...
/// - **Mutators** come from any thread if the world's lock allows it: [`arm`](Self::arm),
///   [`cancel`](Self::cancel), [`online`](Self::online), [`set_isolated`](Self::set_isolated), ... They
///   take an [`Actions`](crate::Actions) if they can give the world something to do.
/// - **`handle_*`, `enter_idle`, `exit_idle`** say what happened to a CPU: by the one thread that drives it.
/// - **`begin_turn`, `next_*`, `finish*`** hand out timers that are due, one at a time, with no lock held
///   while the world runs them: by the driving thread, too.
///
/// The thread that drives a CPU calls [`handle_tick`](Self::handle_tick) once per tick, and when that says
/// so or the CPU was kicked takes a turn: [`begin_turn`](Self::begin_turn), then
/// [`next_expired`](Self::next_expired) and [`finish`](Self::finish) in turn until there is none. With
/// nothing to run it calls [`enter_idle`](Self::enter_idle), waits as long as that says, and then calls
/// [`exit_idle`](Self::exit_idle) before anything else. The [`Actions`](crate::Actions) of a call are
/// carried out after it, at once: one that is dropped is a lost wake-up. Each turn runs a bounded number of
/// timers ([`Turn::has_more`]).
///
/// Time: `now` is an argument, never read. It may be behind by what the caller accepts as lateness, but a
/// caller's own values never go back; those of different threads may come out of order.
///
/// ```
/// use quietcore_core::topology::Topology;
/// use quietcore_core::{
///     Actions, Context, CpuId, IdleDecision, Machine, Nanos, SequentialLock, Settings, TimerOptions, Turn,
/// };
///
/// let topology = Topology::builder(2).build()?;
/// let mut machine: Machine<SequentialLock, &str> = Machine::new(topology, Settings::default())?;
/// let mut actions = Actions::new(2);
/// let (sleeper, awake) = (CpuId::new(0)?, CpuId::new(1)?);
/// for cpu in [sleeper, awake] {
///     machine.online(cpu, Nanos(0), &mut actions)?;
/// }
/// let timer = machine.add_timer(TimerOptions::new(), "retry");
/// let context = Context::on(sleeper, Nanos(0));
/// machine.arm(timer, Nanos(20_000_000), context, &mut actions)?;
///
/// // The first CPU goes idle; the second, which is awake, expires its timer.
/// assert_eq!(machine.enter_idle(sleeper, Nanos(0)), IdleDecision::Sleep { until: None });
/// let (due, mut turn) = (Nanos(22_000_000), Turn::new(awake));
/// assert!(machine.handle_tick(awake, due));
/// machine.begin_turn(&mut turn, due);
/// let expired = machine.next_expired(&mut turn, due, &mut actions).expect("due");
/// assert_eq!(expired.payload(), "retry");
/// machine.finish(&mut turn, expired, due, &mut actions);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Machine<L: RawLock, T: Copy> {
    settings: Settings,
    topology: Topology,
    hierarchy: Hierarchy<L>,
    bases: Bases<L, T>,
    watch: Box<[CpuWatch]>,
    control: Locked<L, Control>,
    alarm: TreeAlarm,
    /// The last tick in which a CPU looked for missed wake-ups.
    looked_for_missed_wakeups: LastTick,
    /// What watchers have to finish: tokens to take back, expiries to publish, marks to complete, over all
    /// CPUs (`cpu_flags.rs`).
    pending_repairs: EventCount,
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// A machine whose CPUs are all offline.
    ///
    /// # Errors
    /// When `settings.isolation` leaves no housekeeping CPU of those that are possible.
    pub fn new(topology: Topology, settings: Settings) -> Result<Self, HousekeepingError> {
        let _ = Housekeeping::new(topology.possible(), &settings.isolation)?;
        let count = topology.possible().last().map_or(0, |last| last.index() + 1);
        let node = |index| topology.node_of(CpuId(index as u16)).map_or(0, |node| node.0);
        let nodes: Box<[u16]> = (0..count).map(node).collect();
        let control = Control {
            online: CpuSet::new(),
            isolation: settings.isolation.clone(),
            housekeeping: None,
            tick_cpu: None,
            roles: ControlRoles::default(),
        };
        Ok(Self {
            hierarchy: Hierarchy::new(&nodes),
            bases: Bases::new(count as u16, settings.tick, Nanos(0)),
            watch: (0..count).map(|_| CpuWatch::new()).collect(),
            control: Locked::new(control),
            alarm: TreeAlarm::new(),
            looked_for_missed_wakeups: LastTick::default(),
            pending_repairs: EventCount::default(),
            settings,
            topology,
        })
    }

    /// What it was made with.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Its CPUs and how near they are to each other.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The migration hierarchy, to look at.
    #[must_use]
    pub const fn hierarchy(&self) -> View<'_, L> {
        View(&self.hierarchy)
    }

    /// The CPUs that are online.
    #[must_use]
    pub fn online_cpus(&self) -> CpuSet {
        self.control.lock_remote().online.clone()
    }

    /// Whether idle CPUs' global timers are expired by others.
    fn is_pulling(&self) -> bool {
        self.settings.policy == Policy::Pull
    }

    fn base_ids(&self) -> impl Iterator<Item = BaseId> + use<L, T> {
        let cpus = (0..self.bases.cpu_count()).map(CpuId);
        cpus.flat_map(|cpu| BaseKind::ALL.into_iter().map(move |kind| BaseId { cpu, kind }))
    }

    #[inline]
    fn flags(&self, cpu: CpuId) -> FlagsSnapshot {
        self.watch[cpu.index()].flags.load()
    }

    /// Whether something could not be done as a lock was not to be had, and is noted in a CPU's flags.
    #[inline]
    pub(crate) fn has_repairs(&self) -> bool {
        self.pending_repairs.get() != 0
    }

    fn count_repairs(&self, change: FlagsChange) {
        self.pending_repairs.add(change.repairs_added());
    }
}
