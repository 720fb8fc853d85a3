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
use quietcore_core::tmigr::Tree;
use quietcore_core::topology::Topology;
use quietcore_core::{Actions, Context, Machine, MarkOutcome, Nanos, Settings, TimerId, TimerOptions, Turn};
use std::sync::Mutex;

/// Length of a tick in ns.
const TICK: u64 = 1_000_000;

const LANES: usize = 4;

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
        restart_numbers();
        let topology = Topology::builder(LANES as u16).build().expect("four CPUs");
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
        for &(name, lane) in armed {
            lanes.arm(name, lane, 0, 1);
        }
        let _ = lanes.machine.enter_idle(id(3), Nanos(0));
        for (lane, tick) in [(m, 1), (w, 1), (m, 2), (w, 2)] {
            // Only a look, so that its next one is believed.
            let marked = lanes.machine.watch(id(lane), at(tick), &mut actions);
            assert_eq!(marked, 0, "nobody is late by tick {tick}");
        }
        lanes
    }

    /// `lane` arms a timer at tick `now` for tick `expires`.
    pub(crate) fn arm(&self, name: usize, lane: usize, now: u64, expires: u64) {
        self.arm_in(name, Context::on(id(lane), at(now)), expires);
    }

    /// A thread that is no lane arms a timer on X.
    pub(crate) fn arm_from_outside(&self, name: usize, now: u64, expires: u64) {
        self.arm_in(name, Context::near(id(0), at(now)), expires);
    }

    fn arm_in(&self, name: usize, context: Context, expires: u64) {
        let mut actions = Actions::new(LANES as u16);
        let armed =
            self.machine.arm(self.timers[name], at(expires), context, &mut actions).expect("it exists");
        plain(&self.lives)[name].arms += usize::from(!armed.was_pending);
    }

    /// What a lane does in a tick.
    pub(crate) fn turn(&self, lane: usize, tick: u64) {
        let mut actions = Actions::new(LANES as u16);
        let (mut turn, now) = (plain(&self.turns[lane]), at(tick));
        self.machine.begin_turn(&mut turn, now);
        while let Some(expired) = self.machine.next_expired(&mut turn, now, &mut actions) {
            let name = expired.payload();
            self.begin(name);
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

    fn begin(&self, name: usize) {
        let mut lives = plain(&self.lives);
        lives[name].running += 1;
        assert_eq!(lives[name].running, 1, "{} is concurrent with itself", NAMES[name]);
    }

    /// Nothing to run any more.
    pub(crate) fn park(&self, lane: usize, tick: u64) {
        let _ = self.machine.enter_idle(id(lane), at(tick));
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
