//! The world of virtual threads: the lanes, sentinel and helper that real programs have, and what they run.
//!
//! Each thread is the loop that a real one is, around the same calls of the core: what differs is who waits
//! and who reads the clock. Between any two calls, and at each step of a lock, another thread may run, and
//! the thread may be stopped.

use super::lane_signs::LaneSigns;
use super::oracle::{OracleTimer, TimerPromise};
use super::place::{Place, VirtualPlace, VirtualTimer};
use super::plan::RuntimePlan;
use super::queue::{VirtualItem, VirtualTask, draw_tasks};
use super::schedule::Host;
use super::softirq_signs::VirtualSoftirqs;
use super::switch::ThreadId;
use super::virtual_lock::{VirtualLock, made};
use quietcore_core::lane::{LaneContext, LaneSlot, LaneTable, Sleeper};
use quietcore_core::realtime::CpuPriorities;
use quietcore_core::run_queue::Unplaced;
use quietcore_core::topology::Topology;
use quietcore_core::{
    Actions, CpuId, CpuSet, ExactId, Machine, Nanos, Precision, Settings, StallPolicy, TickLength, TimerId,
    TimerOptions,
};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Bases of a CPU, each with its lock.
const BASES_PER_CPU: usize = 4;

/// To read the clock, in ns.
pub(super) const CLOCK: u64 = 60;

#[derive(Clone, Copy, Debug)]
pub(super) enum CoreTimer {
    Tick(TimerId),
    Exact(ExactId),
}

/// What a run counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuntimeCounts {
    /// Timers that ran.
    pub expiries: u64,
    /// Arms, of all threads.
    pub arms: u64,
    /// Cancels that ended a wait.
    pub cancels: u64,
    /// Lanes that were woken.
    pub wakes: u64,
    /// Lanes that were marked absent.
    pub marks: u64,
    /// Looks of the sentinel.
    pub sentinel_looks: u64,
    /// Runs that went on with a child.
    pub forks: u64,
    /// Raises of softirqs.
    pub raises: u64,
    /// Handlers of softirqs that ran.
    pub softirqs: u64,
    /// Items that ran.
    pub items: u64,
    /// Of these: normal ones that another lane or a spare took.
    pub stolen: u64,
    /// Real-time ones that another lane or a spare took.
    pub pulled: u64,
    /// Real-time ones that their lane gave to another one.
    pub pushed: u64,
}

impl RuntimeCounts {
    pub(super) fn add(&mut self, other: &Self) {
        self.expiries += other.expiries;
        self.arms += other.arms;
        self.cancels += other.cancels;
        self.wakes += other.wakes;
        self.marks += other.marks;
        self.sentinel_looks += other.sentinel_looks;
        self.forks += other.forks;
        self.raises += other.raises;
        self.softirqs += other.softirqs;
        self.items += other.items;
        self.stolen += other.stolen;
        self.pulled += other.pulled;
        self.pushed += other.pushed;
    }
}

pub(super) struct RuntimeWorld {
    pub(super) plan: RuntimePlan,
    pub(super) host: Rc<Host>,
    pub(super) machine: Machine<VirtualLock, u32>,
    pub(super) lanes: LaneTable<VirtualPlace>,
    pub(super) timer: VirtualTimer,
    /// The number of the first lock that is not a group's.
    pub(super) first_own_lock: usize,
    pub(super) keys: Vec<CoreTimer>,
    pub(super) timers: RefCell<Vec<OracleTimer>>,
    /// The thread that drives each CPU.
    pub(super) drivers: RefCell<Vec<Option<ThreadId>>>,
    /// By CPU.
    pub(super) signs: Vec<LaneSigns>,
    /// Of each lane; none if no thread raises any.
    pub(super) softirqs: Vec<VirtualSoftirqs>,
    pub(super) control: VirtualLock,
    /// What is woken and run.
    pub(super) tasks: Vec<Rc<VirtualTask>>,
    pub(super) lane_set: CpuSet,
    pub(super) priorities: CpuPriorities,
    pub(super) rotation: Cell<usize>,
    /// Around what no lane takes.
    pub(super) aside: VirtualLock,
    pub(super) unplaced: RefCell<Unplaced<VirtualItem>>,
    /// The tick in which it was last asked whether an item is late.
    pub(super) asked_in: Cell<u64>,
    /// The item that does not end for very long has begun.
    pub(super) was_stuck: Cell<bool>,
    /// Lanes that are isolated; while that changes, before or after.
    pub(super) isolated: RefCell<CpuSet>,
    /// No thread arms any more, and nothing goes wrong.
    pub(super) drains: Cell<bool>,
    pub(super) is_over: Cell<bool>,
    pub(super) counts: RefCell<RuntimeCounts>,
    /// The first property that did not hold.
    pub(super) violation: RefCell<Option<String>>,
    /// Threads between a call of the core and the end of its actions.
    pub(super) acting: Cell<u32>,
    /// What happened, a line each, if it is to be told.
    pub(super) log: RefCell<Option<Vec<String>>>,
}

/// The timers of `plan`, of each kind.
fn add_timers(
    machine: &mut Machine<VirtualLock, u32>,
    plan: &RuntimePlan,
    host: &Host,
) -> (Vec<CoreTimer>, Vec<OracleTimer>) {
    let (mut keys, mut timers) = (Vec::new(), Vec::new());
    for number in 0..plan.all_timers() {
        let kind = host.random(8);
        let is_pinned = plan.lanes > 0 && host.random(5) == 0;
        let options = if is_pinned { TimerOptions::new().pinned() } else { TimerOptions::new() };
        let (key, promise) = match kind {
            0 | 1 => (CoreTimer::Exact(machine.add_exact(options, number)), TimerPromise::Exact),
            2..5 => {
                let precision = Precision::Tick;
                let key = machine.add_timer(options.precision(precision), number);
                (CoreTimer::Tick(key), TimerPromise::Tick(precision))
            }
            _ => (CoreTimer::Tick(machine.add_timer(options, number)), TimerPromise::Tick(Precision::Coarse)),
        };
        keys.push(key);
        timers.push(OracleTimer::new(promise, is_pinned));
    }
    (keys, timers)
}

impl RuntimeWorld {
    /// The machine of `plan`, before its threads.
    pub(super) fn new(plan: RuntimePlan, host: &Rc<Host>) -> Rc<Self> {
        let count = plan.lanes.max(1) + plan.spares;
        let topology = Topology::builder(count).build().expect("a plan has few CPUs");
        let settings = Settings {
            tick: TickLength::new(Nanos(plan.tick)).expect("a plan's tick is possible"),
            stall: StallPolicy::after(Duration::from_nanos(plan.stall_after)),
            ..Settings::default()
        };
        let cpus = |from: u16, count: u16| {
            CpuSet::range(CpuId::new(u64::from(from)).expect("few"), count).expect("few")
        };
        let (lanes, spares) = match plan.lanes {
            0 => (CpuSet::new(), cpus(1, 1)),
            lanes => (cpus(0, lanes), cpus(lanes, plan.spares)),
        };
        let table = LaneTable::new(&lanes, &spares, &settings, |cpu| VirtualPlace::new(host, cpu));
        let mut machine = Machine::new(topology, settings).expect("no CPU is isolated");
        // Of control, the bases, growth, and the CPUs' records: those that belong to a CPU or to all. The
        // locks of groups, which come before them, are waited for (docs/design/PROTOCOL.md, section 5).
        let cpus_own = usize::from(count) * (1 + BASES_PER_CPU);
        let first_own_lock = made() - 2 - cpus_own;
        let (keys, timers) = add_timers(&mut machine, &plan, host);
        let world = Self {
            host: Rc::clone(host),
            machine,
            lanes: table,
            first_own_lock,
            timer: VirtualTimer::new(host),
            keys,
            timers: RefCell::new(timers),
            drivers: RefCell::new(vec![None; usize::from(count)]),
            signs: (0..count).map(|_| LaneSigns::default()).collect(),
            softirqs: (0..plan.lanes_with_softirqs()).map(|_| VirtualSoftirqs::new(host)).collect(),
            control: VirtualLock::default(),
            tasks: draw_tasks(&plan, host),
            priorities: CpuPriorities::new(count),
            lane_set: lanes,
            rotation: Cell::new(0),
            aside: VirtualLock::default(),
            unplaced: RefCell::default(),
            asked_in: Cell::new(0),
            was_stuck: Cell::new(false),
            isolated: RefCell::default(),
            drains: Cell::new(false),
            is_over: Cell::new(false),
            counts: RefCell::default(),
            violation: RefCell::default(),
            acting: Cell::new(0),
            log: RefCell::new(None),
            plan,
        };
        // Every CPU that is there from the start comes online and goes idle.
        let guests = if world.lanes.exist() { CpuSet::new() } else { cpus(0, 1) };
        for cpu in spares.iter().chain(guests.iter()) {
            world.act(|actions| world.machine.online(cpu, Nanos(0), actions)).expect("it is offline");
            let _ = world.machine.enter_idle(cpu, Nanos(0));
        }
        world.lanes.renew_standalone(&world.machine);
        Rc::new(world)
    }

    /// Starts all threads; returns the one that must never wait for a lock.
    pub(super) fn start(self: &Rc<Self>) -> ThreadId {
        let this = Rc::clone(self);
        let helper = self.host.spawn("helper".to_owned(), move || {
            if this.lanes.exist() { this.stand_sentinel() } else { this.help() }
        });
        for slot in self.lanes.all() {
            let (cpu, this) = (slot.cpu(), Rc::clone(self));
            let is_spare = self.lanes.spares().contains(cpu);
            let name = if is_spare { format!("spare {cpu}") } else { format!("lane {cpu}") };
            let driver = self.host.spawn(name, move || this.drive(cpu, is_spare));
            self.drivers.borrow_mut()[cpu.index()] = Some(driver);
        }
        for cpu in self.lanes.all().map(LaneSlot::cpu).take(self.softirqs.len()) {
            let this = Rc::clone(self);
            let _ = self.host.spawn(format!("ksoftirqd {cpu}"), move || this.run_ksoftirqd(cpu));
        }
        for number in 0..self.plan.strangers {
            let this = Rc::clone(self);
            let _ = self.host.spawn(format!("stranger {number}"), move || this.be_strange(number));
        }
        if self.plan.faults.isolation_every > 0 && self.plan.lanes > 1 {
            let this = Rc::clone(self);
            let _ = self.host.spawn("isolator".to_owned(), move || this.isolate());
        }
        helper
    }

    pub(super) fn violate(&self, what: String) {
        self.violation.borrow_mut().get_or_insert(what);
    }

    /// A line for those who look at a run.
    pub(super) fn note(&self, what: impl FnOnce() -> String) {
        if let Some(log) = self.log.borrow_mut().as_mut() {
            let name = self.host.current().map_or_else(String::new, |thread| self.host.name(thread));
            log.push(format!("{:>12} {name}: {}", self.host.moment(), what()));
        }
    }

    pub(super) fn clock(&self) -> Nanos {
        self.host.step(CLOCK);
        let now = Nanos(self.host.moment());
        self.host.step(CLOCK);
        now
    }

    /// The number of the first of `cpu`'s own timers.
    pub(super) fn first_of(&self, cpu: CpuId) -> u32 {
        self.plan.strangers_timers() + cpu.index() as u32 * u32::from(self.plan.lane_timers)
    }

    pub(super) fn chance(&self, percent: u32) -> bool {
        self.host.random(100) < u64::from(percent)
    }

    /// Lets the core decide, and does what it asks for.
    pub(super) fn act<R>(&self, decide: impl FnOnce(&mut Actions) -> R) -> R {
        let mut actions = Actions::new(self.drivers.borrow().len() as u16);
        self.acting.set(self.acting.get() + 1);
        let result = decide(&mut actions);
        self.carry_out(&mut actions);
        self.acting.set(self.acting.get() - 1);
        result
    }

    fn carry_out(&self, actions: &mut Actions) {
        while let Some(cpu) = actions.take_kick() {
            self.note(|| format!("kicks CPU {cpu}"));
            self.lanes.kick(&self.machine, cpu, actions);
        }
        if let Some(at) = actions.take_alarm() {
            self.note(|| format!("asks for an alarm at {}", at.0));
            self.lanes.request_alarm(at, actions);
        }
        if actions.take_program() {
            self.note(|| format!("programs the timer for {:?}", self.lanes.deadline().load()));
            self.timer.follow(self.lanes.deadline());
        }
    }

    pub(super) fn here<'a>(&'a self, slot: &'a Place) -> LaneContext<'a, VirtualLock, u32, VirtualPlace> {
        LaneContext { machine: &self.machine, lanes: &self.lanes, slot }
    }

    /// The end: all threads are told.
    pub(super) fn shut_down(&self) {
        if self.is_child() {
            return;
        }
        self.is_over.set(true);
        self.machine.close();
        if self.lanes.deadline().end() {
            self.timer.follow(self.lanes.deadline());
        }
        self.lanes.wake_all();
        self.end_items();
        self.softirqs.iter().for_each(|softirqs| _ = softirqs.bell.kick());
    }
}
