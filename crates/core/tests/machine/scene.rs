//! A small machine and what a world keeps beside it, for tests of one sequence of calls. Times are in ms,
//! which are ticks.

use crate::lock::{BaseLock, SteppedLock, restart_numbers};
use crate::world::{TICK, cpu};
use quietcore_core::tmigr::CpuState;
use quietcore_core::topology::Topology;
use quietcore_core::{
    Actions, AnyTimer, Arm, Armed, At, BaseId, BaseKind, Context, CpuId, CpuSet, ExactId, ExpiredTimer,
    IdleDecision, IsolationReport, Machine, MarkOutcome, Nanos, Settings, TimerId, TimerKind, TimerOptions,
    Turn,
};
use std::rc::Rc;

/// A time in ms.
pub(crate) const fn ms(count: u64) -> Nanos {
    Nanos(count * TICK)
}

/// A list of CPUs.
pub(crate) fn cpus(list: &str) -> CpuSet {
    list.parse().expect("a list of CPUs")
}

pub(crate) struct Scene {
    pub(crate) machine: Rc<Machine<SteppedLock, u32>>,
    pub(crate) actions: Actions,
    pub(crate) turns: Vec<Turn>,
}

impl Scene {
    /// So many CPUs, all online since 0.
    pub(crate) fn new(cpu_count: usize, settings: Settings) -> Self {
        let mut scene = Self::offline(cpu_count, settings);
        for index in 0..cpu_count {
            scene.machine.online(cpu(index), ms(0), &mut scene.actions).expect("it is offline");
        }
        scene
    }

    /// So many CPUs, none of them online.
    pub(crate) fn offline(cpu_count: usize, settings: Settings) -> Self {
        restart_numbers();
        let topology = Topology::builder(cpu_count as u16).build().expect("a machine");
        let machine = Machine::new(topology, settings).expect("a housekeeping CPU is left");
        Self {
            machine: Rc::new(machine),
            actions: Actions::new(cpu_count as u16),
            turns: (0..cpu_count).map(|index| Turn::new(cpu(index))).collect(),
        }
    }

    /// With the usual settings.
    pub(crate) fn of(cpu_count: usize) -> Self {
        Self::new(cpu_count, Settings::default())
    }

    /// CPU 1 has collected the two timers, 1 and 2, of CPU 2, which sleeps, and is in the first. CPU 0 was
    /// asleep and is awake again. It is 7 ms. Pulled from GLOBAL, or from GUEST.
    pub(crate) fn pulled_from(kind: BaseKind) -> (Self, ExpiredTimer<u32>) {
        let mut scene = Self::of(3);
        for payload in [1, 2] {
            let timer = scene.add(TimerOptions::new(), payload);
            let at = 3 + u64::from(payload);
            let context = match kind {
                BaseKind::Guest => Context::near(cpu(2), ms(0)),
                _ => Context::on(cpu(2), ms(0)),
            };
            assert_eq!(scene.arm(timer, at, context).base, BaseId { cpu: cpu(2), kind });
        }
        scene.idle(2, 0);
        scene.idle(0, 0);
        let expired = scene.start(1, 7);
        assert_eq!(expired.payload(), 1);
        scene.machine.exit_idle(cpu(0), ms(7));
        (scene, expired)
    }

    pub(crate) fn lock_of(&self, cpu_index: usize, kind: BaseKind) -> BaseLock {
        BaseLock::new(self.turns.len(), BaseId { cpu: cpu(cpu_index), kind })
    }

    pub(crate) fn lock_of_books(&self, cpu_index: usize) -> BaseLock {
        BaseLock::of_books(self.turns.len(), cpu_index)
    }

    pub(crate) fn add(&mut self, options: TimerOptions, payload: u32) -> TimerId {
        Rc::get_mut(&mut self.machine).expect("nobody else has it yet").add_timer(options, payload)
    }

    pub(crate) fn add_exact(&mut self, options: TimerOptions, payload: u32) -> ExactId {
        Rc::get_mut(&mut self.machine).expect("nobody else has it yet").add_exact(options, payload)
    }

    pub(crate) fn arm(&mut self, timer: TimerId, at: u64, context: Context) -> Armed {
        self.arm_as(timer, ms(at), context)
    }

    /// Arms a timer of either kind, in any way.
    pub(crate) fn arm_as<K: TimerKind>(
        &mut self,
        timer: impl AnyTimer<u32, K>,
        arm: impl Into<Arm<K::When>>,
        context: Context,
    ) -> Armed {
        self.machine.arm(timer, arm, context, &mut self.actions).expect("it exists")
    }

    /// A new timer, armed by the CPU itself.
    pub(crate) fn arm_new(&mut self, (payload, at): (u32, u64), on: usize, now: u64) -> TimerId {
        let timer = self.add(TimerOptions::new(), payload);
        let _ = self.arm(timer, at, Context::on(cpu(on), ms(now)));
        timer
    }

    /// A new timer, armed for one CPU by a thread near CPU 0.
    pub(crate) fn arm_pinned(&mut self, (payload, at): (u32, u64), on: usize, now: u64) -> TimerId {
        let timer = self.add(TimerOptions::new(), payload);
        self.arm_as(timer, Arm::at(ms(at)).on(cpu(on)), Context::near(cpu(0), ms(now)));
        timer
    }

    /// Has nothing to run; whether it sleeps, and how long, is not asked.
    pub(crate) fn idle(&mut self, index: usize, now: u64) {
        let _ = self.enter_idle(index, now);
    }

    pub(crate) fn enter_idle(&mut self, index: usize, now: u64) -> IdleDecision {
        self.machine.enter_idle(cpu(index), ms(now))
    }

    pub(crate) fn isolate(&mut self, list: &str, now: u64) -> IsolationReport {
        self.machine.set_isolated(&cpus(list), ms(now), &mut self.actions).expect("somebody is left")
    }

    pub(crate) fn mark(&mut self, index: usize) -> MarkOutcome {
        self.machine.mark_absent(cpu(index), &mut self.actions)
    }

    pub(crate) fn cpu_state(&self, index: usize) -> CpuState {
        self.machine.hierarchy().cpu_state(cpu(index))
    }

    /// Begins a turn; its first timer.
    pub(crate) fn start(&mut self, index: usize, now: u64) -> ExpiredTimer<u32> {
        self.machine.begin_turn(&mut self.turns[index], ms(now));
        self.next(index, now).expect("something is due")
    }

    pub(crate) fn next(&mut self, index: usize, now: u64) -> Option<ExpiredTimer<u32>> {
        self.machine.next_expired(&mut self.turns[index], ms(now), &mut self.actions)
    }

    pub(crate) fn finish(&mut self, index: usize, expired: ExpiredTimer<u32>, now: u64) {
        self.machine.finish(&mut self.turns[index], expired, ms(now), &mut self.actions);
    }

    /// The end of a run and the next one, in one call.
    pub(crate) fn finish_and_next(
        &mut self,
        index: usize,
        expired: ExpiredTimer<u32>,
        now: u64,
    ) -> Option<ExpiredTimer<u32>> {
        let at = At { now: ms(now), actions: &mut self.actions };
        let next = self.machine.finish_and_next_with(&mut self.turns[index], expired, at, |_, _| ());
        next.map(|(expired, ())| expired)
    }

    /// A turn to its end; what ran.
    pub(crate) fn turn(&mut self, index: usize, now: u64) -> Vec<u32> {
        self.turn_at(index, ms(now))
    }

    /// The same between two ticks.
    pub(crate) fn turn_at(&mut self, index: usize, now: Nanos) -> Vec<u32> {
        self.machine.begin_turn(&mut self.turns[index], now);
        self.rest_at(index, now)
    }

    /// The rest of a turn; what ran.
    pub(crate) fn rest(&mut self, index: usize, now: u64) -> Vec<u32> {
        self.rest_at(index, ms(now))
    }

    fn rest_at(&mut self, index: usize, now: Nanos) -> Vec<u32> {
        let (mut ran, turn) = (Vec::new(), &mut self.turns[index]);
        while let Some(expired) = self.machine.next_expired(turn, now, &mut self.actions) {
            ran.push(expired.payload());
            self.machine.finish(turn, expired, now, &mut self.actions);
        }
        ran
    }

    /// A tick of an awake CPU: it looks after the others, and at its timers if it should; how many it marked,
    /// and what ran.
    pub(crate) fn tick(&mut self, index: usize, now: u64) -> (u32, Vec<u32>) {
        let marked = self.machine.watch(cpu(index), ms(now), &mut self.actions);
        let is_due = self.machine.handle_tick(cpu(index), ms(now)) || self.turns[index].has_more();
        (marked, if is_due { self.turn(index, now) } else { Vec::new() })
    }

    /// Ticks of one CPU; how many it marked, and what ran.
    pub(crate) fn ticks(&mut self, index: usize, times: std::ops::Range<u64>) -> (u32, Vec<u32>) {
        let (mut marks, mut all) = (0, Vec::new());
        for now in times {
            let (marked, ran) = self.tick(index, now);
            marks += marked;
            all.extend(ran);
        }
        (marks, all)
    }

    /// Who was kicked.
    pub(crate) fn kicks(&mut self) -> Vec<CpuId> {
        std::iter::from_fn(|| self.actions.take_kick()).collect()
    }
}

/// Goal: what the tests that stop at a lock rely on: a base's lock has the number that they say. Method: an
/// arm on each base of the middle one of three CPUs is interrupted at that base's lock, and no other base's.
#[test]
fn locks_of_bases_are_found() {
    use crate::lock::was_interrupted;
    let options = |kind| match kind {
        BaseKind::Local => TimerOptions::new().pinned(),
        BaseKind::Deferrable => TimerOptions::new().deferrable(),
        BaseKind::Global | BaseKind::Guest => TimerOptions::new(),
    };
    for kind in BaseKind::ALL {
        for (other, other_kind) in (0..3).flat_map(|other| BaseKind::ALL.map(|kind| (other, kind))) {
            let mut scene = Scene::of(3);
            let timer = scene.add(options(kind), 0);
            scene.lock_of(other, other_kind).before(|| ());
            let context = if kind == BaseKind::Guest { Context::near } else { Context::on };
            let armed = scene.arm(timer, 5, context(cpu(1), ms(0)));
            assert_eq!(armed.base, BaseId { cpu: cpu(1), kind });
            assert_eq!(was_interrupted(), (other, other_kind) == (1, kind), "{other_kind:?} of CPU {other}");
        }
    }
}
