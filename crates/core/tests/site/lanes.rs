//! A whole machine as the stage's world: lanes that take turns, and callbacks that arm timers.
//!
//! Lane 0 (X) and one of lanes 1 and 2 (M) may stop for ever wherever they hold no lock, inside a callback,
//! too; the third (W) goes on. Each watches the next higher one, the highest watches X. Lane 3 sleeps.
//!
//! Timers by name: A runs on X's base and, the first time, arms itself and C; B waits behind it; D is on M's
//! base, E on lane 3's. The scenario is that of the state model of docs/design/PROTOCOL.md, section 5.

use crate::lock::{LockNumbers, SiteLock, plain, restart_numbers};
use crate::play::Subject;
use crate::stage;
use crate::world::id;
use quietcore_core::script::Site;
use quietcore_core::tmigr::{CpuState, Tree};
use quietcore_core::topology::Topology;
use quietcore_core::{
    Actions, Context, CpuSet, Machine, MarkOutcome, Nanos, Settings, TimerId, TimerOptions, Turn,
};
use std::sync::Mutex;

/// Length of a tick in ns.
const TICK: u64 = 1_000_000;

const LANES: usize = 4;

/// Ticks within which a timer is run beside a lane that is stopped: it has to be found stalled, at the worst
/// by a lane that was woken for that, and what it collected has to be taken back.
const SERVED_WITHIN: u64 = 16;

/// Ticks after which a sentinel tells of a silence, and of a second one.
const SILENT_AFTER: u64 = 3;
const SILENT_AGAIN: u64 = 6;

/// Timers.
pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;
pub(crate) const C: usize = 2;
pub(crate) const D: usize = 3;
pub(crate) const E: usize = 4;
const NAMES: [&str; 5] = ["A", "B", "C", "D", "E"];

/// What became of a timer.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// Arms that did not end a pending period.
    arms: usize,
    running: usize,
    done: usize,
    /// The first tick for which it was armed.
    due: Option<u64>,
}

pub(crate) struct Lanes {
    machine: Machine<SiteLock, usize>,
    timers: Vec<TimerId>,
    turns: Vec<Mutex<Turn>>,
    lives: Mutex<[Life; 5]>,
    /// The lane that may stop besides X, and the one that goes on.
    pub(crate) m: usize,
    pub(crate) w: usize,
    locks: LockNumbers,
}

pub(crate) fn at(tick: u64) -> Nanos {
    Nanos(tick * TICK)
}

impl Lanes {
    /// W watches X, and M is the next migrator after X.
    pub(crate) fn watched_by_w() -> Self {
        Self::new(1, 2, &[(A, 0), (B, 0), (D, 1), (E, 3)])
    }

    /// M watches X, and W is the next migrator after X.
    pub(crate) fn watched_by_m() -> Self {
        Self::new(2, 1, &[(A, 0), (B, 0), (D, 2), (E, 3)])
    }

    /// No lane but X has anything to do.
    pub(crate) fn only_x() -> Self {
        Self::new(1, 2, &[(A, 0), (B, 0)])
    }

    /// All timers are due by tick 1 or 2; lane 3 sleeps, the others are awake; M and W have looked at tick 2.
    fn new(m: usize, w: usize, armed: &[(usize, usize)]) -> Self {
        let lanes = Self::online(m, w, &["0-3"]);
        for &(name, lane) in armed {
            lanes.arm(name, lane, 0, 1);
        }
        lanes.park(3, 0);
        lanes.look();
        lanes
    }

    /// X has A and B for tick `due`, M has D for tick 12, and lane 3, which sleeps, E for tick 4. All slept
    /// when that was armed, so an alarm is requested. X is up since, and, unless X `is_alone`, M and W, who
    /// have looked at tick 2.
    pub(crate) fn with_alarm(due: u64, is_alone: bool, groups: &[&str]) -> Self {
        let lanes = Self::online(1, 2, groups);
        lanes.arm(D, lanes.m, 0, 12);
        (0..LANES).for_each(|lane| lanes.park(lane, 0));
        lanes.arm_near(E, 3, 0, 4);
        lanes.wake(0, 0);
        lanes.arm(A, 0, 0, due);
        lanes.arm(B, 0, 0, due);
        if !is_alone {
            [lanes.m, lanes.w].into_iter().for_each(|lane| lanes.wake(lane, 0));
            lanes.look();
        }
        lanes
    }

    /// M and W look, only so that their next looks are believed.
    fn look(&self) {
        for (lane, tick) in [(self.m, 1), (self.w, 1), (self.m, 2), (self.w, 2)] {
            let marked = self.machine.watch(id(lane), at(tick), &mut Actions::new(LANES as u16));
            assert_eq!(marked, 0, "nobody is late by tick {tick}");
        }
    }

    /// All are awake, and have nothing. Several groups are below a root.
    fn online(m: usize, w: usize, groups: &[&str]) -> Self {
        restart_numbers();
        let nodes: Vec<CpuSet> = groups.iter().map(|list| list.parse().expect("a list")).collect();
        let topology = Topology::builder(LANES as u16).node_lists(&nodes).build().expect("four CPUs");
        let mut machine = Machine::new(topology, Settings::default()).expect("nobody is isolated");
        // After the tree: four bases per CPU, and control.
        let locks = LockNumbers::new(LANES, 4 * LANES + 1, 4);
        let timers = (0..NAMES.len()).map(|name| machine.add_timer(TimerOptions::new(), name)).collect();
        let turns = (0..LANES).map(|lane| Mutex::new(Turn::new(id(lane)))).collect();
        let lanes = Self { machine, timers, turns, lives: Mutex::default(), m, w, locks };
        let mut actions = Actions::new(LANES as u16);
        for lane in 0..LANES {
            lanes.machine.online(id(lane), Nanos(0), &mut actions).expect("it is offline");
        }
        lanes
    }

    /// `lane` arms a timer at tick `now` for tick `expires`.
    pub(crate) fn arm(&self, name: usize, lane: usize, now: u64, expires: u64) {
        let _ = self.arm_in(name, Context::on(id(lane), at(now)), expires);
    }

    /// A thread that is no lane arms a timer on X.
    pub(crate) fn arm_from_outside(&self, name: usize, now: u64, expires: u64) {
        self.arm_near(name, 0, now, expires);
    }

    /// A thread that is no lane arms a timer on one.
    pub(crate) fn arm_near(&self, name: usize, lane: usize, now: u64, expires: u64) {
        let _ = self.arm_in(name, Context::near(id(lane), at(now)), expires);
    }

    fn arm_in(&self, name: usize, context: Context, expires: u64) -> Actions {
        let mut actions = Actions::new(LANES as u16);
        {
            let life = &mut plain(&self.lives)[name];
            life.due = life.due.map_or(Some(expires), |due| Some(due.min(expires)));
        }
        let armed =
            self.machine.arm(self.timers[name], at(expires), context, &mut actions).expect("it exists");
        plain(&self.lives)[name].arms += usize::from(!armed.was_pending);
        actions
    }

    /// A thread that is no lane arms a timer on one, and while X is stopped the others run it: those that are
    /// kicked wake up, and those that are awake turn. When none is, a sentinel tells of a silence, and wakes
    /// all up if that has kicked X. From the tick for which it is armed.
    pub(crate) fn arm_and_serve(&self, name: usize, lane: usize, expires: u64) {
        let mut actions = self.arm_in(name, Context::near(id(lane), at(expires - 1)), expires);
        for tick in expires..expires + SERVED_WITHIN {
            self.machine.handle_alarm(at(tick), &mut actions);
            if !(1..LANES).any(|lane| self.is_awake(lane)) {
                match tick - expires {
                    SILENT_AFTER => {
                        let _ = self.machine.handle_silence(at(tick), &mut actions);
                    }
                    SILENT_AGAIN => (1..LANES).for_each(|lane| actions.kick(id(lane))),
                    _ => {}
                }
            }
            while let Some(cpu) = actions.take_kick() {
                if cpu != id(0) && !self.is_awake(cpu.index()) {
                    self.wake(cpu.index(), tick);
                }
            }
            (1..LANES).filter(|lane| self.is_awake(*lane)).for_each(|lane| self.turn(lane, tick));
            if plain(&self.lives)[name].done > 0 {
                return;
            }
        }
        // No timer can be taken out of a base whose lock is held.
        let is_locked = stage::is_any_held_by(0, |lock| self.locks.cpu(lock) == Some(lane));
        assert!(is_locked, "{} did not run while X was stopped: {}", NAMES[name], self.lives());
    }

    fn is_awake(&self, lane: usize) -> bool {
        self.machine.hierarchy().cpu_state(id(lane)) == CpuState::Awake
    }

    /// `lane` cancels a timer.
    pub(crate) fn cancel(&self, name: usize, lane: usize, now: u64) {
        let was_pending = self.machine.cancel(self.timers[name], Context::on(id(lane), at(now)));
        plain(&self.lives)[name].arms -= usize::from(was_pending.expect("it exists"));
    }

    /// What a lane does in a tick.
    pub(crate) fn turn(&self, lane: usize, tick: u64) {
        let mut actions = Actions::new(LANES as u16);
        let (mut turn, now) = (plain(&self.turns[lane]), at(tick));
        self.machine.begin_turn(&mut turn, now);
        while let Some(expired) = self.machine.next_expired(&mut turn, now, &mut actions) {
            let name = expired.payload();
            self.begin(name, tick);
            stage::mark(Site::BeforeRun);
            if name == A && plain(&self.lives)[A].done == 0 {
                self.arm(A, lane, tick, tick + 1);
                self.arm(C, lane, tick, tick + 1);
            }
            stage::mark(Site::BeforeRun);
            let mut lives = plain(&self.lives);
            lives[name].running -= 1;
            lives[name].done += 1;
            drop(lives);
            self.machine.finish(&mut turn, expired, now, &mut actions);
        }
        let _ = self.machine.watch(id(lane), now, &mut actions);
    }

    fn begin(&self, name: usize, tick: u64) {
        let mut lives = plain(&self.lives);
        assert!(lives[name].due.is_some_and(|due| due <= tick), "{} runs early, at {tick}", NAMES[name]);
        lives[name].running += 1;
        assert_eq!(lives[name].running, 1, "{} is concurrent with itself", NAMES[name]);
    }

    /// The alarm goes off.
    pub(crate) fn alarm(&self, tick: u64) {
        self.machine.handle_alarm(at(tick), &mut Actions::new(LANES as u16));
    }

    /// No lane has turned.
    pub(crate) fn silence(&self, tick: u64) {
        let _ = self.machine.handle_silence(at(tick), &mut Actions::new(LANES as u16));
    }

    /// From now on X is isolated, or not any more.
    pub(crate) fn isolate_x(&self, is_isolated: bool, tick: u64) {
        let isolated = if is_isolated { "0" } else { "" }.parse().expect("a list");
        let report = self.machine.set_isolated(&isolated, at(tick), &mut Actions::new(LANES as u16));
        let _ = report.expect("others are left");
    }

    /// There is something to run.
    pub(crate) fn wake(&self, lane: usize, tick: u64) {
        self.machine.exit_idle(id(lane), at(tick));
    }

    /// Nothing to run any more, and it leaves others what they can do for it.
    pub(crate) fn sleep(&self, lane: usize, tick: u64) {
        let _ = self.machine.enter_idle_beside_others(id(lane), at(tick));
    }

    /// Nothing to run any more.
    pub(crate) fn park(&self, lane: usize, tick: u64) {
        let _ = self.machine.enter_idle(id(lane), at(tick));
    }

    /// About to block in user code, and back.
    pub(crate) fn block(&self, lane: usize, tick: u64) {
        self.machine.go_absent(id(lane), at(tick), &mut Actions::new(LANES as u16));
        let _ = self.machine.return_from_absence(id(lane), at(tick + 1));
    }

    /// Marks that were put off.
    pub(crate) fn busy_marks(&self) -> u64 {
        self.machine.busy_marks()
    }

    pub(crate) fn mark_absent(&self, lane: usize) -> MarkOutcome {
        self.machine.mark_absent(id(lane), &mut Actions::new(LANES as u16))
    }

    /// Who ran how often, and what is running for ever.
    pub(crate) fn lives(&self) -> String {
        let lives = plain(&self.lives);
        let text: Vec<_> = lives
            .iter()
            .zip(NAMES)
            .map(|(life, name)| format!("{name}{}{}", life.done, "*".repeat(life.running)))
            .collect();
        text.join(" ")
    }
}

impl Subject for Lanes {
    fn locks(&self) -> (LockNumbers, Tree) {
        (self.locks, self.machine.hierarchy().tree())
    }

    fn expect_rest(&self) {
        self.machine.check();
    }

    /// Only W turns. Every timer runs, except one whose own run has stopped for ever.
    fn expect_served(&self) {
        if self.machine.hierarchy().cpu_state(id(self.w)) == CpuState::Parked {
            self.wake(self.w, 6);
        }
        for tick in 6..26 {
            self.turn(self.w, tick);
        }
        let context = Context::on(id(self.w), at(26));
        let lives = *plain(&self.lives);
        for ((life, name), &timer) in lives.iter().zip(NAMES).zip(&self.timers) {
            // Handed out, and its runner stopped before the callback, in it, or before it said so.
            let is_stuck = self.machine.is_running(timer, context).expect("it exists");
            let is_done = life.arms == life.done;
            assert!(is_done || is_stuck, "{name} is due and nobody will run it: {life:?}");
            assert!(life.done + life.running <= life.arms, "{name} ran twice: {life:?}");
        }
    }
}
