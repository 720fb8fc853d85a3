//! Lanes, sentinel and helper, one rule each, without threads: the test is the world, and time is a number.
//! Sequences of many such calls, with threads that are stopped anywhere, are the simulator's.

use crate::lock::SteppedLock;
use crate::scene::{Scene, ms};
use crate::world::{TICK, cpu};
use quietcore_core::lane::{
    Helper, IdleUntil, Kick, Lane, LaneContext, LaneSlot, LaneTable, Sentinel, SentinelCall, SentinelLook,
    Sleeper,
};
use quietcore_core::place::Policy;
use quietcore_core::tmigr::CpuState;
use quietcore_core::{
    Arm, BaseId, BaseKind, Context, CpuId, CpuSet, Expiry, Nanos, Settings, StallPolicy, TimerOptions,
};
use std::cell::Cell;

/// `stall_after` of the usual settings, and the tick after which the sentinel looks, in ms.
const STALL: u64 = 2;
const SENTINEL: u64 = STALL + 1;

/// A place that notes what is done to it.
#[derive(Debug, Default)]
struct NotedPlace {
    waits: Cell<bool>,
    is_vacant: Cell<bool>,
    kicks: Cell<u32>,
}

impl Sleeper for NotedPlace {
    fn prepare(&self) {
        assert!(!self.waits.replace(true), "it waits already");
    }

    fn finish(&self) {
        self.waits.set(false);
    }

    fn kick(&self) -> Kick {
        self.kicks.set(self.kicks.get() + 1);
        match (self.is_vacant.get(), self.waits.get()) {
            (true, _) => Kick::Vacant,
            (false, true) => Kick::Woke,
            (false, false) => Kick::NotNeeded,
        }
    }

    fn kick_to_help(&self) -> Kick {
        self.kick()
    }

    fn is_waiting(&self) -> bool {
        self.waits.get()
    }
}

/// Lanes 0 to `lanes` - 1, awake at 0, and a spare behind them, which waits.
struct Lanes {
    scene: Scene,
    table: LaneTable<NotedPlace>,
    lanes: Vec<Lane>,
    sentinel: Sentinel,
}

impl Lanes {
    fn new(count: u16) -> Self {
        Self::with(count, Settings::default())
    }

    fn with(count: u16, settings: Settings) -> Self {
        let range = |from: u16, count| CpuSet::range(cpu(usize::from(from)), count).expect("few");
        let table = LaneTable::new(&range(0, count), &range(count, 1), &settings, |_| NotedPlace::default());
        let mut scene = Scene::new(usize::from(count) + 1, settings);
        scene.idle(usize::from(count), 0);
        let lane = |index| Lane::new(cpu(index), table.tick());
        let mut lanes: Vec<_> = (0..usize::from(count)).map(lane).collect();
        lanes.push(Lane::spare(cpu(usize::from(count)), table.tick()));
        table.slot(cpu(usize::from(count))).expect("a spare").world.prepare();
        for index in 0..=count {
            table.handle_claim(&scene.machine, cpu(usize::from(index)), ms(0), &mut scene.actions);
        }
        let mut this = Self { scene, table, lanes, sentinel: Sentinel::default() };
        let _ = this.kicked();
        this
    }

    /// Does something as lane `index`.
    fn act<R>(
        &mut self,
        index: usize,
        call: impl FnOnce(
            &mut Lane,
            LaneContext<'_, SteppedLock, u32, NotedPlace>,
            &mut quietcore_core::Actions,
        ) -> R,
    ) -> R {
        let slot = self.table.slot(cpu(index)).expect("it has one");
        let at = LaneContext { machine: &self.scene.machine, lanes: &self.table, slot };
        call(&mut self.lanes[index], at, &mut self.scene.actions)
    }

    fn slot(&self, index: usize) -> &LaneSlot<NotedPlace> {
        self.table.slot(cpu(index)).expect("it has one")
    }

    fn idle(&mut self, index: usize, now: Nanos) -> IdleUntil {
        self.act(index, |lane, at, actions| lane.handle_idle(at, now, || false, actions))
    }

    fn wake(&mut self, index: usize, now: Nanos) {
        let _ = self.act(index, |lane, at, actions| lane.handle_wake(at, now, actions));
    }

    /// Goes idle and wakes up until it sleeps: the first short waits are dozes.
    fn sleep(&mut self, index: usize, now: u64) -> Option<Nanos> {
        for _ in 0..8 {
            if let IdleUntil::Sleep { until } = self.idle(index, ms(now)) {
                return until;
            }
            self.wake(index, ms(now));
        }
        panic!("lane {index} dozes for ever");
    }

    /// A turn that finds nothing due: its look at the neighbours.
    fn tick(&mut self, index: usize, now: u64) -> u32 {
        self.act(index, |lane, at, actions| lane.handle_tick(at, ms(now), actions).marked)
    }

    fn word(&self) -> Option<Nanos> {
        self.table.deadline().load()
    }

    /// From `now` on these are isolated.
    fn isolate(&mut self, list: &str, now: u64) {
        let report = self.scene.isolate(list, now);
        self.table.handle_isolation(&self.scene.machine, &report, ms(now), &mut self.scene.actions);
    }

    /// The timer goes off.
    fn sentinel_looks(&mut self, now: Nanos) -> SentinelLook {
        let deadline = self.table.deadline().take();
        let (machine, actions) = (&self.scene.machine, &mut self.scene.actions);
        self.sentinel.handle_timer(machine, &self.table, SentinelCall { deadline, now }, actions)
    }

    /// Carries the actions out; returns whom that kicked, and how often.
    fn kicked(&mut self) -> Vec<u32> {
        let actions = &mut self.scene.actions;
        while let Some(cpu) = actions.take_kick() {
            self.table.kick(&self.scene.machine, cpu, actions);
        }
        if let Some(at) = actions.take_alarm() {
            self.table.request_alarm(at, actions);
        }
        let _ = actions.take_program();
        self.table.all().map(|slot| slot.world.kicks.take()).collect()
    }

    fn arm(&mut self, delay: u64, context: Context) {
        let timer = self.scene.add(TimerOptions::new(), 1);
        let _ = self.scene.arm_as(timer, Arm::at(Nanos(context.now.0 + delay)), context);
    }
}

/// Goal: a lane that has blocked leaves the stall deadline if no other is awake, and is watched again from
/// its return on. Method: the only lane, with nothing armed.
#[test]
fn a_block_leaves_the_deadline_and_a_return_arms_it() {
    let mut lanes = Lanes::new(1);
    assert_eq!(lanes.word(), Some(ms(SENTINEL)));
    let _ = lanes.act(0, |lane, at, actions| lane.handle_block(at, ms(1), actions));
    assert_eq!(lanes.word(), None, "no CPU is awake, and none has to be");
    lanes.act(0, |lane, at, actions| {
        assert!(lane.is_marked(at));
        let _ = lane.take_must_help();
        lane.handle_return(at, ms(50), actions);
        assert!(!lane.is_marked(at));
        assert!(lane.take_must_help(), "what others have was left to it by the spare");
    });
    assert_eq!(lanes.word(), Some(ms(50 + SENTINEL)));
}

/// Goal: a lane that sleeps tells the hierarchy and the sentinel, and is watched again when it wakes up.
/// Method: the only lane, with a timer in 40 ms.
#[test]
fn a_lane_that_wakes_up_is_watched() {
    let mut lanes = Lanes::new(1);
    lanes.arm(40 * TICK, Context::on(cpu(0), ms(0)));
    assert_eq!(lanes.sleep(0, 0), Some(ms(41)));
    assert_eq!(lanes.word(), Some(ms(41 + STALL)), "behind its own wake-up");
    lanes.wake(0, ms(20));
    assert_eq!(lanes.word(), Some(ms(20 + SENTINEL)));
}

/// Goal: a lane that has slept is active and watched before it runs anything, also when it found that as it
/// was about to sleep on. Method: something is left while it is up, and it takes no turn in between.
#[test]
fn a_lane_that_sleeps_on_and_finds_something_is_watched() {
    let mut lanes = Lanes::new(1);
    assert_eq!(lanes.sleep(0, 0), None);
    let idle = lanes.act(0, |lane, at, actions| lane.handle_idle(at, ms(1), || true, actions));
    assert_eq!(idle, IdleUntil::Stay { until: ms(1) });
    assert_eq!(lanes.scene.cpu_state(0), CpuState::Parked);
    lanes.wake(0, ms(1));
    assert_eq!((lanes.scene.cpu_state(0), lanes.word()), (CpuState::Awake, Some(ms(1 + SENTINEL))));
}

/// Goal: a lane is watched from its claim on, before its first turn. Method: it comes back after it has left,
/// while no other one is awake.
#[test]
fn a_lane_is_watched_from_its_claim_on() {
    let mut lanes = Lanes::new(2);
    let _ = lanes.sleep(0, 0);
    let actions = &mut lanes.scene.actions;
    lanes.scene.machine.offline(cpu(1), ms(1), actions).expect("it is online");
    lanes.table.handle_leave(&lanes.scene.machine);
    let _ = lanes.table.deadline().take();
    let actions = &mut lanes.scene.actions;
    lanes.scene.machine.online(cpu(1), ms(2), actions).expect("it is offline");
    lanes.table.handle_claim(&lanes.scene.machine, cpu(1), ms(2), actions);
    assert_eq!(lanes.word(), Some(ms(2 + SENTINEL)));
}

/// Goal: a lane that works must turn at the end of its tick, or for what is due on its CPU before that,
/// pinned or not. Method: nothing; then an exact timer of each kind.
#[test]
fn the_next_turn_is_for_what_is_due_here() {
    for options in [TimerOptions::new(), TimerOptions::new().pinned()] {
        let mut lanes = Lanes::new(1);
        let next = |lanes: &Lanes| lanes.table.next_turn(&lanes.scene.machine, cpu(0), Nanos(100));
        assert_eq!(next(&lanes), ms(1));
        let exact = lanes.scene.add_exact(options, 1);
        let at = Expiry::at(400_000);
        let _ = lanes.scene.arm_as(exact, at, Context::on(cpu(0), ms(0)));
        assert_eq!(next(&lanes), Nanos(400_000), "{options:?}");
    }
}

/// Goal: a lane marks a silent one with nothing due only when it looks before it sleeps. Method: it dozes for
/// that, and the silent one turns meanwhile; then that one is silent again.
#[test]
fn only_a_look_before_sleep_marks_who_has_nothing() {
    let mut lanes = Lanes::new(2);
    let edge = ms(6);
    assert_eq!(lanes.idle(0, ms(5)), IdleUntil::Stay { until: edge }, "lane 1 is silent");
    lanes.scene.machine.keep_alive(cpu(1), ms(6));
    lanes.wake(0, edge);
    let marks: u32 = (6..20).map(|now| lanes.tick(0, now)).sum();
    assert_eq!((marks, lanes.scene.cpu_state(1)), (0, CpuState::Awake));
}

/// Goal: a lane that has dozed is busy again for those who arm, also where it looks after itself. Method: it
/// dozes for a timer that is due within a tick; then an idle CPU pushes one of its own.
#[test]
fn a_lane_that_has_dozed_is_busy() {
    let mut lanes = Lanes::with(2, Settings { policy: Policy::Push, ..Settings::default() });
    let _ = lanes.sleep(0, 0);
    let timers = [(); 2].map(|()| lanes.scene.add(TimerOptions::new(), 1));
    let _ = lanes.scene.arm_as(timers[0], Arm::at(ms(3)).on(cpu(1)), Context::on(cpu(1), ms(3)));
    assert!(matches!(lanes.idle(1, ms(3)), IdleUntil::Stay { .. }));
    lanes.wake(1, ms(3));
    let armed = lanes.scene.arm_as(timers[1], Arm::at(ms(50)), Context::on(cpu(0), ms(3)));
    assert_eq!(armed.base.cpu, cpu(1), "it is awake");
}

/// Goal: a lane that was about to sleep and stays active is watched: in between another one may have found
/// none awake, and left the deadline. Method: as if it had, before a wait that something due cuts short.
#[test]
fn a_lane_that_stays_is_watched() {
    let mut lanes = Lanes::new(1);
    lanes.arm(TICK, Context::on(cpu(0), ms(0)));
    let _ = lanes.table.deadline().take();
    assert_eq!(lanes.idle(0, ms(1)), IdleUntil::Stay { until: ms(2) });
    assert_eq!(lanes.word(), Some(ms(1 + SENTINEL)));
}

/// Goal: a lane is interrupted as long as it dozes, and no longer, by timers that it keeps more exactly than
/// its ticks. Method: a doze, arms of each kind, and its end.
#[test]
fn only_a_lane_that_dozes_is_interrupted() {
    let mut lanes = Lanes::new(1);
    // After a short wait it expects another one.
    let first = lanes.idle(0, Nanos(1));
    lanes.wake(0, Nanos(2));
    assert_eq!(first, IdleUntil::Sleep { until: None });
    assert_eq!(lanes.idle(0, Nanos(3)), IdleUntil::Stay { until: ms(1) }, "the end of the tick");
    let tell = |lanes: &Lanes, kind, is_exact, at| {
        lanes.table.after_arm(BaseId { cpu: cpu(0), kind }, is_exact, at).is_some()
    };
    assert!(tell(&lanes, BaseKind::Guest, true, ms(1)));
    assert_eq!(lanes.kicked()[0], 0, "it is up by then");
    for (kind, is_exact, is_told) in [
        (BaseKind::Global, false, false),
        (BaseKind::Guest, false, false),
        (BaseKind::Global, true, true),
        (BaseKind::Guest, true, true),
        (BaseKind::Local, false, true),
    ] {
        assert_eq!(tell(&lanes, kind, is_exact, Nanos(500)), is_told, "{kind:?} {is_exact}");
        assert_eq!(lanes.kicked()[0], u32::from(is_told), "{kind:?} {is_exact}");
    }
    lanes.wake(0, Nanos(700));
    let _ = tell(&lanes, BaseKind::Global, true, Nanos(800));
    assert_eq!((lanes.slot(0).dozes(), lanes.kicked()[0]), (false, 0), "it is up");
}

/// Goal: a lane that is about to wait sees what was armed before it said so. Method: a timer that is due
/// before the tick ends, armed before the doze.
#[test]
fn a_doze_ends_with_what_is_due() {
    let mut lanes = Lanes::new(1);
    let _ = lanes.idle(0, Nanos(1));
    lanes.wake(0, Nanos(2));
    let exact = lanes.scene.add_exact(TimerOptions::new(), 1);
    let at = Expiry::at(400);
    let _ = lanes.scene.arm_as(exact, at, Context::near(cpu(0), Nanos(0)));
    assert_eq!(lanes.idle(0, Nanos(3)), IdleUntil::Stay { until: Nanos(400) });
}

/// Goal: a lane that sleeps beside one that is awake leaves it its timers of ticks, and wakes up for its
/// exact ones itself: others look with their ticks. Method: one of each, the exact one later.
#[test]
fn a_sleeper_wakes_up_for_its_exact_timers() {
    let mut lanes = Lanes::new(2);
    lanes.arm(8 * TICK, Context::on(cpu(1), ms(0)));
    let exact = lanes.scene.add_exact(TimerOptions::new(), 2);
    let at = Expiry::at(12_345_678);
    let _ = lanes.scene.arm_as(exact, at, Context::on(cpu(1), ms(0)));
    assert_eq!(lanes.sleep(1, 0), Some(Nanos(12_345_678)));
}

/// Goal: a lane beside one that is silent does not sleep, but waits for the next tick and marks it then,
/// whatever is due. Method: lane 1 does not turn after 0.
#[test]
fn a_lane_beside_a_silent_one_stays() {
    let mut lanes = Lanes::new(2);
    for now in 1..4 {
        assert_eq!(lanes.tick(0, now), 0);
    }
    // Every other reason to doze is over.
    for _ in 0..8 {
        let now = Nanos(ms(3).0 + 5);
        assert_eq!(lanes.idle(0, now), IdleUntil::Stay { until: ms(4) }, "lane 1 is silent since 3 ms");
        lanes.wake(0, now);
    }
    assert_eq!(lanes.tick(0, 4), 1, "nothing is overdue there, but this one would sleep");
}

/// Goal: a lane does not sleep while a mark is incomplete: what the marked one arms when it has left the
/// lock in which it was stopped would be seen by no lane. Method: lane 0 is stopped inside its LOCAL base
/// with nothing to run; lane 1, which would sleep, marks it; then lane 0 goes on and arms a timer.
#[test]
fn a_lane_stays_until_a_mark_is_complete() {
    let mut lanes = Lanes::new(2);
    let lock = lanes.scene.lock_of(0, BaseKind::Local);
    lock.while_frozen(|| {
        for now in 1..6 {
            let _ = lanes.tick(1, now);
            let until = lanes.idle(1, ms(now));
            assert!(now < 2 || until == IdleUntil::Stay { until: ms(now + 1) }, "{now}: {until:?}");
            lanes.wake(1, ms(now + 1));
        }
    });
    assert_eq!(lanes.scene.cpu_state(0), CpuState::Absent);
    lanes.arm(10 * TICK, Context::on(cpu(0), ms(6)));
    let _ = lanes.tick(1, 6);
    assert_eq!(lanes.idle(1, ms(6)), IdleUntil::Sleep { until: Some(ms(17)) }, "it is the last one awake");
}

/// Goal: a lane that was stopped itself judges no other: after a stop of the whole machine all are silent.
/// Method: both lanes look at 1 ms, then one at 40; it marks the other at its next look only.
#[test]
fn a_late_watcher_judges_nobody() {
    let mut lanes = Lanes::new(2);
    lanes.arm(TICK, Context::on(cpu(1), ms(0)));
    assert_eq!((lanes.tick(0, 1), lanes.tick(1, 1)), (0, 0));
    assert_eq!(lanes.tick(0, 40), 0, "it is late itself");
    assert_eq!(lanes.tick(0, 41), 1);
}

/// Goal: a CPU that has just woken up is not taken for silent. Method: lane 1 sleeps for 30 ms; its CPU is
/// awake again, and something is overdue there when lane 0 looks, before lane 1 does anything else.
#[test]
fn a_lane_that_woke_up_is_not_silent() {
    let mut lanes = Lanes::new(2);
    assert_eq!(lanes.sleep(1, 1), None);
    for now in 2..31 {
        assert_eq!(lanes.tick(0, now), 0);
    }
    lanes.scene.machine.exit_idle(cpu(1), ms(30));
    lanes.arm(0, Context::near(cpu(1), ms(28)));
    assert_eq!(lanes.tick(0, 31), 0, "it woke up a tick ago");
}

/// Goal: a kick of a CPU that no thread drives reaches a lane that sleeps. Method: CPU 0's place is vacant.
#[test]
fn a_kick_of_a_vacant_place_wakes_another() {
    let mut lanes = Lanes::new(2);
    let _ = lanes.sleep(1, 0);
    lanes.slot(0).world.is_vacant.set(true);
    lanes.scene.actions.kick(cpu(0));
    assert_eq!(lanes.kicked(), [2, 1, 0], "CPU 0 again among those that could help, then lane 1");
}

/// Goal: a lane that has left its CPU is none that could help. Method: CPU 0 goes offline; its kicks go to
/// its place, which is vacant, and then to lane 1, which sleeps.
#[test]
fn a_lane_that_left_is_not_asked_to_help() {
    let mut lanes = Lanes::new(2);
    let _ = lanes.sleep(1, 0);
    assert!(!lanes.slot(0).is_standalone());
    lanes.scene.machine.offline(cpu(0), ms(1), &mut lanes.scene.actions).expect("lane 1 is left");
    let _ = lanes.kicked();
    lanes.table.handle_leave(&lanes.scene.machine);
    lanes.slot(0).world.is_vacant.set(true);
    lanes.scene.actions.kick(cpu(0));
    assert_eq!(lanes.kicked(), [1, 1, 0], "CPU 0 once, for what may be on its bases");
    assert!(lanes.slot(0).is_standalone());
}

/// Goal: an isolated lane holds no stall deadline, as it would not notice that others are stuck; one that
/// joins again is watched from then on, and holds it. Method: lane 0 never turns; lane 1 does, isolated from
/// 0 to 10 ms.
#[test]
fn an_isolated_lane_does_not_hold_the_deadline() {
    let mut lanes = Lanes::new(2);
    lanes.isolate("1", 0);
    for now in 1..10 {
        assert_eq!(lanes.tick(1, now), 0);
    }
    assert_eq!(lanes.word(), Some(ms(SENTINEL)), "no lane of the tree has turned");
    let _ = lanes.table.deadline().take();
    lanes.isolate("", 10);
    assert_eq!(lanes.word(), Some(ms(10 + SENTINEL)));
    let _ = lanes.tick(1, 12);
    assert_eq!(lanes.word(), Some(ms(12 + SENTINEL)));
}

/// Goal: a lane that was isolated wakes up for no other, so what the tree has asked for stays, also as long
/// as the thread that isolates has not told the lanes. Method: an alarm for 21 ms; a lane that slept or was
/// blocked goes on, turns just before that, and sleeps.
#[test]
fn an_isolated_lane_forgets_no_alarm() {
    for was_blocked in [false, true] {
        let mut lanes = Lanes::new(2);
        let _ = lanes.sleep(0, 0);
        if was_blocked {
            let _ = lanes.act(1, |lane, at, actions| lane.handle_block(at, ms(0), actions));
        } else {
            let _ = lanes.sleep(1, 0);
        }
        lanes.arm(19 * TICK, Context::near(cpu(0), ms(1)));
        let _ = lanes.kicked();
        assert_eq!(lanes.word(), Some(ms(21)), "the alarm");
        let _ = lanes.scene.isolate("1", 2);
        if was_blocked {
            lanes.act(1, |lane, at, actions| lane.handle_return(at, ms(3), actions));
        } else {
            lanes.wake(1, ms(3));
        }
        let _ = lanes.tick(1, 20);
        assert!(lanes.word().is_some_and(|at| at <= ms(21)), "{:?}", lanes.word());
        let _ = lanes.sleep(1, 20);
        let _ = lanes.kicked();
        let _ = lanes.sentinel_looks(ms(21));
        assert_eq!(lanes.kicked(), [1, 0, 0], "lane 0 is up for the timer");
    }
}

/// Goal: an alarm's kick is watched: the lane that got it must turn. If it does not, and the next ones do not
/// either, all that sleep are woken. Method: all asleep, an alarm, and no lane that turns.
#[test]
fn a_lane_that_was_kicked_must_turn() {
    let mut lanes = Lanes::new(2);
    let (_, _) = (lanes.sleep(0, 0), lanes.sleep(1, 0));
    lanes.arm(20 * TICK, Context::near(cpu(0), ms(1)));
    let _ = lanes.kicked();
    assert_eq!(lanes.word(), Some(ms(22)), "the alarm");
    assert_eq!(lanes.sentinel_looks(ms(22)), SentinelLook::Quiet);
    assert_eq!(lanes.word(), Some(ms(22 + SENTINEL)), "it looks whether that lane turns");
    assert_eq!(lanes.kicked(), [1, 0, 0]);
    // Lane 0 has swallowed its kick.
    let mut now = ms(22 + SENTINEL);
    let mut kicks = Vec::new();
    for _ in 0..4 {
        let _ = lanes.sentinel_looks(now);
        kicks.push(lanes.kicked());
        now = lanes.word().expect("it looks again");
    }
    assert_eq!(kicks, [[1, 0, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1]], "the same again, then all");
}

/// Goal: an isolated lane that sleeps is not disturbed, though no other one turns. Method: the same as above
/// beside one.
#[test]
fn an_isolated_sleeper_is_left_alone() {
    let mut lanes = Lanes::new(3);
    lanes.isolate("2", 0);
    (0..3).for_each(|index| _ = lanes.sleep(index, 0));
    lanes.arm(20 * TICK, Context::near(cpu(0), ms(1)));
    let _ = lanes.kicked();
    let mut now = lanes.word().expect("the alarm");
    let mut kicks = [0; 4];
    for _ in 0..4 {
        let _ = lanes.sentinel_looks(now);
        kicks.iter_mut().zip(lanes.kicked()).for_each(|(sum, kicks)| *sum += kicks);
        now = lanes.word().expect("it looks again");
    }
    assert!(kicks[0] > 0 && kicks[1] > 0 && kicks[2] == 0 && kicks[3] > 0, "{kicks:?}");
}

/// Goal: a deadline that a lane held while the sentinel woke up stays. Method: it looks before the word's
/// moment.
#[test]
fn a_deadline_that_was_held_meanwhile_stays() {
    let mut lanes = Lanes::new(2);
    assert_eq!(lanes.sentinel_looks(ms(1)), SentinelLook::Quiet);
    assert_eq!(lanes.word(), Some(ms(SENTINEL)));
}

/// Goal: when the sentinel marks a lane beside one that seems to turn it kicks none, and says so: that one
/// may be on its way to sleep. Method: lane 0 is silent since 0, lane 1 has lived at 2 ms; a look at 3 ms.
#[test]
fn a_mark_beside_a_lane_that_turns_is_told() {
    let mut lanes = Lanes::new(2);
    lanes.scene.machine.keep_alive(cpu(1), ms(2));
    let _ = lanes.table.deadline().pull(ms(3));
    assert_eq!(lanes.sentinel_looks(ms(3)), SentinelLook::MarkedBesideAwake);
    assert_eq!((lanes.scene.cpu_state(0), lanes.scene.cpu_state(1)), (CpuState::Absent, CpuState::Awake));
    assert_eq!(lanes.kicked(), [0, 0, 0]);
}

/// Goal: the sentinel rests while all lanes sleep as they may, and does not take one for resting that was to
/// be up long ago. Method: lane 0 sleeps until 10 ms; looks before and after `stall_after` from there.
#[test]
fn the_sentinel_knows_who_overslept() {
    let mut lanes = Lanes::new(1);
    lanes.arm(9 * TICK, Context::on(cpu(0), ms(0)));
    assert_eq!(lanes.sleep(0, 0), Some(ms(10)));
    assert_eq!(lanes.word(), Some(ms(10 + STALL)));
    lanes.table.deadline().pull(ms(5)).then_some(()).expect("it is earlier");
    assert_eq!(lanes.sentinel_looks(ms(5)), SentinelLook::Quiet);
    assert_eq!((lanes.word(), lanes.kicked()), (Some(ms(10 + STALL)), vec![0, 0]));
    assert_eq!(lanes.sentinel_looks(ms(10 + STALL)), SentinelLook::Marked);
    assert_eq!(lanes.kicked(), [0, 1], "the spare takes over from lane 0, which sleeps on");
}

/// Goal: a lane that was marked in its sleep, and goes idle again, does not believe that it sleeps when it
/// was told to stay. Method: it overslept, and has something pinned within a tick.
#[test]
fn a_lane_that_overslept_stays_awake() {
    let mut lanes = Lanes::new(1);
    lanes.arm(9 * TICK, Context::on(cpu(0), ms(0)));
    assert_eq!(lanes.sleep(0, 0), Some(ms(10)));
    assert_eq!(lanes.sentinel_looks(ms(10 + STALL)), SentinelLook::Marked);
    let exact = lanes.scene.add_exact(TimerOptions::new().pinned(), 1);
    let _ = lanes.scene.arm_as(exact, Expiry::at(ms(13).0 + 500), Context::near(cpu(0), ms(13)));
    let idle = lanes.idle(0, ms(13));
    assert_eq!((idle, lanes.scene.cpu_state(0)), (IdleUntil::Stay { until: ms(13) }, CpuState::Awake));
}

/// Goal: the same of a lane that is to be up for another one's timer, before its own. Method: lane 1 sleeps
/// with a timer for 20 ms, and then lane 0 with one for 50 ms, which oversleeps.
#[test]
fn the_sentinel_knows_who_overslept_for_another() {
    let mut lanes = Lanes::new(2);
    for (index, delay) in [(0, 49), (1, 19)] {
        lanes.arm(delay * TICK, Context::on(cpu(index), ms(0)));
    }
    let _ = lanes.sleep(1, 0);
    assert_eq!(lanes.sleep(0, 0), Some(ms(20)), "for lane 1");
    assert_eq!(lanes.word(), Some(ms(20 + STALL)));
    let _ = lanes.kicked();
    let _ = lanes.sentinel_looks(ms(20 + STALL));
    assert_ne!(lanes.kicked(), [0, 0, 0], "another one takes over");
}

/// Goal: the sentinel does not let a tree rest in which a lane was stopped on its way into or out of idle:
/// groups may hide what others have. Method: all sleep; the record of lane 0 is held.
#[test]
fn the_sentinel_knows_who_was_stopped_on_the_way() {
    let mut lanes = Lanes::new(2);
    let (_, _) = (lanes.sleep(0, 0), lanes.sleep(1, 0));
    let lock = lanes.scene.lock_of_books(0);
    for (is_stopped, kicks) in [(false, [0, 0, 0]), (true, [0, 1, 0])] {
        let _ = lanes.table.deadline().pull(ms(5));
        if is_stopped {
            assert_eq!(lock.while_frozen(|| lanes.sentinel_looks(ms(5))), SentinelLook::Marked);
        } else {
            assert_eq!(lanes.sentinel_looks(ms(5)), SentinelLook::Quiet);
        }
        assert_eq!(lanes.kicked(), kicks);
    }
    assert!(lanes.scene.machine.watches_stalled(cpu(1), ms(5)), "the others look at all until it goes on");
}

/// Goal: a spare that a lane could relieve stands down: the alarm is asked for, and its own timers wake it.
/// Method: lane 0 waits; a timer of the tree is due in 20 ms.
#[test]
fn a_spare_stands_down() {
    let mut lanes = Lanes::new(1);
    let _ = lanes.sleep(0, 0);
    lanes.wake(1, ms(1));
    lanes.arm(20 * TICK, Context::near(cpu(0), ms(1)));
    let _ = lanes.kicked();
    let mut until = lanes.idle(1, ms(2));
    while let IdleUntil::Stay { until: edge } = until {
        lanes.wake(1, edge);
        until = lanes.idle(1, edge);
    }
    assert_eq!(until, IdleUntil::Sleep { until: None }, "it wakes up for no other");
    let _ = lanes.kicked();
    assert_eq!(lanes.word(), Some(ms(22)), "the alarm, for lane 0");
}

/// Goal: the helper of a machine without lanes is kicked by its deadline word: while it dozes it is awake for
/// the hierarchy, and no alarm is asked for. Method: an exact timer before what it dozes for.
#[test]
fn a_kick_of_the_helper_pulls_its_deadline() {
    let settings = Settings::default();
    let (none, spare) = (CpuSet::new(), CpuSet::range(cpu(1), 1).expect("few"));
    let table = LaneTable::new(&none, &spare, &settings, |_: CpuId| NotedPlace::default());
    let mut scene = Scene::new(2, settings);
    for index in [0, 1] {
        scene.idle(index, 0);
    }
    let mut helper = Helper::new(cpu(1));
    helper.handle_wake(&scene.machine, ms(1));
    let timer = scene.add(TimerOptions::new(), 1);
    let _ = scene.arm(timer, 1, Context::near(cpu(1), ms(1)));
    assert_eq!(helper.handle_idle(&scene.machine, ms(1)), Some(ms(2)));
    let exact = scene.add_exact(TimerOptions::new(), 2);
    let at = Expiry::at(1_250_000);
    let _ = scene.arm_as(exact, at, Context::near(cpu(0), ms(1)));
    assert_eq!(scene.actions.take_alarm(), None);
    while let Some(kicked) = scene.actions.take_kick() {
        table.kick(&scene.machine, kicked, &mut scene.actions);
    }
    assert_eq!(scene.actions.take_alarm(), Some(Nanos(1_250_000)));
}

/// Goal: a spare leaves nothing to a lane that is stuck, although that waits. Method: lane 0 oversleeps and
/// is marked; the spare runs what was due, and has a timer of the tree in 20 ms.
#[test]
fn a_spare_does_not_stand_down_for_a_lane_that_is_stuck() {
    let mut lanes = Lanes::new(1);
    lanes.arm(9 * TICK, Context::on(cpu(0), ms(0)));
    let _ = lanes.sleep(0, 0);
    assert_eq!(lanes.sentinel_looks(ms(10 + STALL)), SentinelLook::Marked);
    lanes.wake(1, ms(12));
    assert!(lanes.slot(0).world.is_waiting() && lanes.scene.machine.is_marked(cpu(0)));
    let _ = lanes.scene.turn(1, 12);
    lanes.arm(20 * TICK, Context::near(cpu(1), ms(12)));
    let _ = lanes.kicked();
    let mut until = lanes.idle(1, ms(13));
    while let IdleUntil::Stay { until: edge } = until {
        lanes.wake(1, edge);
        until = lanes.idle(1, edge);
    }
    assert_eq!(until.until(), Some(ms(33)), "nobody else wakes up for that");
}

/// Goal: a lane that is woken while it dozes looks for what others have. Method: it does so once, and is
/// woken before the end of its tick.
#[test]
fn a_lane_that_dozed_helps() {
    let mut lanes = Lanes::new(1);
    let _ = lanes.tick(0, 1);
    assert!(lanes.lanes[0].take_must_help());
    assert!(!lanes.lanes[0].take_must_help());
    let now = Nanos(ms(1).0 + 10);
    lanes.arm(10, Context::on(cpu(0), now));
    assert!(matches!(lanes.idle(0, now), IdleUntil::Stay { .. }));
    lanes.wake(0, Nanos(now.0 + 10));
    assert!(lanes.lanes[0].take_must_help(), "it was kicked for something");
}

/// Goal: an alarm that is asked for still is after a look for something else. Method: no lane is awake, a
/// timer of the tree is due in 40 ms, and a thread has pulled the word for less.
#[test]
fn a_look_before_the_alarm_leaves_it() {
    let mut lanes = Lanes::new(2);
    let _ = lanes.sleep(1, 0);
    let _ = lanes.act(0, |lane, at, actions| lane.handle_block(at, ms(0), actions));
    lanes.arm(40 * TICK, Context::near(cpu(0), ms(1)));
    let _ = lanes.kicked();
    let alarm = lanes.word();
    assert!(alarm.is_some_and(|alarm| alarm >= ms(41)), "{alarm:?}");
    lanes.table.deadline().pull(ms(10)).then_some(()).expect("it is earlier");
    let _ = lanes.sentinel_looks(ms(10));
    let _ = lanes.kicked();
    assert!(lanes.word().is_some_and(|at| Some(at) <= alarm), "{:?} after {alarm:?}", lanes.word());
}

/// Goal: a lane asks for more when kicks already arrive: one that comes between the question and the wait is
/// not lost. Method: a thread kicks it just then.
#[test]
fn who_asks_for_more_can_be_kicked() {
    let mut lanes = Lanes::new(1);
    let mut kick = None;
    let _ = lanes.act(0, |lane, at, actions| {
        let asks = || {
            kick = Some(at.slot.world.kick());
            false
        };
        lane.handle_idle(at, ms(1), asks, actions)
    });
    assert_eq!(kick, Some(Kick::Woke));
}

/// Goal: a lane does not wait while it has collected timers that a turn left over. Method: it has collected
/// one, and goes idle.
#[test]
fn a_lane_with_collected_timers_does_not_wait() {
    let mut lanes = Lanes::new(1);
    lanes.arm(TICK, Context::on(cpu(0), ms(0)));
    lanes.act(0, |lane, at, _| at.machine.collect_due(&mut lane.turn, ms(3)));
    for _ in 0..8 {
        assert_eq!(lanes.idle(0, ms(3)), IdleUntil::Stay { until: ms(3) });
        lanes.wake(0, ms(3));
    }
}

/// Goal: a lane that waits and blocks is awake first, and looks around. Method: it sleeps, and blocks.
#[test]
fn a_lane_that_waits_and_blocks_wakes_up() {
    let mut lanes = Lanes::new(1);
    let _ = lanes.sleep(0, 0);
    let look = lanes.act(0, |lane, at, actions| lane.handle_block(at, ms(1), actions));
    assert!(look.looked_around && lanes.lanes[0].is_awake() && !lanes.slot(0).world.is_waiting());
}

/// Goal: the last lane awake that blocks asks for the alarm before it leaves the stall deadline: its thread
/// may be stopped right after. Method: a timer in 20 ms; the word, before the actions are carried out.
#[test]
fn an_alarm_is_asked_for_before_the_deadline_is_left() {
    let mut lanes = Lanes::new(1);
    lanes.arm(20 * TICK, Context::near(cpu(0), ms(0)));
    let _ = lanes.act(0, |lane, at, actions| lane.handle_block(at, ms(0), actions));
    assert_eq!(lanes.word(), Some(ms(21)));
}

/// Goal: a lane that could not return yet, or that is isolated, holds no stall deadline. Method: its record
/// is held by a thread that was stopped; it has been isolated meanwhile.
#[test]
fn only_a_lane_that_is_back_is_watched() {
    for is_isolated in [false, true] {
        let mut lanes = Lanes::new(2);
        let _ = lanes.act(1, |lane, at, actions| lane.handle_block(at, ms(1), actions));
        let _ = lanes.sleep(0, 1);
        if is_isolated {
            lanes.isolate("1", 1);
        }
        let _ = lanes.table.deadline().take();
        let lock = lanes.scene.lock_of_books(1);
        let mut returns = || lanes.act(1, |lane, at, actions| lane.handle_return(at, ms(50), actions));
        if is_isolated {
            returns()
        } else {
            lock.while_frozen(returns)
        }
        assert_eq!(lanes.word(), None, "it is isolated: {is_isolated}");
    }
}

/// Goal: a lane that is idle in the hierarchy, and goes idle again, still is, and wakes up for its own.
/// Method: it sleeps for a timer of its own, and looks shortly before that.
#[test]
fn a_sleeper_that_goes_idle_again_sleeps() {
    let mut lanes = Lanes::new(1);
    lanes.arm(40 * TICK, Context::on(cpu(0), ms(0)));
    assert_eq!(lanes.sleep(0, 0), Some(ms(41)));
    assert_eq!(lanes.idle(0, Nanos(ms(41).0 - 1)), IdleUntil::Sleep { until: Some(ms(41)) });
    let mut lanes = Lanes::new(2);
    assert_eq!(lanes.sleep(0, 0), None);
    assert_eq!(lanes.idle(0, ms(20)), IdleUntil::Sleep { until: None }, "lane 1 is silent, and not its task");
}

/// Goal: a lane never waits until a moment that is over. Method: an exact timer that is due.
#[test]
fn no_wait_ends_in_the_past() {
    let mut lanes = Lanes::new(1);
    let exact = lanes.scene.add_exact(TimerOptions::new(), 1);
    let _ = lanes.scene.arm_as(exact, Expiry::at(ms(1).0), Context::on(cpu(0), ms(0)));
    for _ in 0..8 {
        assert_eq!(lanes.idle(0, ms(5)), IdleUntil::Stay { until: ms(5) });
        lanes.wake(0, ms(5));
    }
}

/// Goal: a lane whose doze lasted to its end, to the nanosecond, sleeps the next time. Method: waits that are
/// cut short, until one is a doze.
#[test]
fn a_doze_to_the_end_is_followed_by_sleep() {
    let mut lanes = Lanes::new(1);
    let dozes = (0..64).find_map(|step| {
        let now = Nanos(ms(1).0 + step * 5_000);
        let until = lanes.idle(0, now);
        if let IdleUntil::Stay { until } = until {
            return Some(until);
        }
        lanes.wake(0, Nanos(now.0 + 1_000));
        lanes.act(0, |lane, _, _| lane.handle_work(Nanos(now.0 + 1_000)));
        None
    });
    let until = dozes.expect("short waits are dozes");
    lanes.wake(0, until);
    assert_eq!(lanes.idle(0, until), IdleUntil::Sleep { until: None });
}

/// Goal: a lane that was kicked for what an absent one has must turn, though it does not know why. Method:
/// lane 0 has blocked, lane 1 sleeps and swallows its kick.
#[test]
fn a_lane_that_was_kicked_for_an_absent_one_must_turn() {
    let mut lanes = Lanes::new(2);
    let _ = lanes.sleep(1, 0);
    let _ = lanes.act(0, |lane, at, actions| lane.handle_block(at, ms(0), actions));
    lanes.arm(20 * TICK, Context::near(cpu(0), ms(0)));
    let _ = lanes.kicked();
    let _ = lanes.sentinel_looks(ms(21));
    assert_eq!(lanes.kicked(), [0, 1, 0]);
    let again = lanes.word().expect("it looks whether that lane turns");
    let _ = lanes.sentinel_looks(again);
    assert_ne!(lanes.kicked(), [0, 0, 0], "another one, or the same again");
}

/// Goal: a lane that sleeps beyond a pinned timer of its own is not taken for stuck: no other could run that.
/// Method: one at 10 ms, and one in 50 ms that others could run.
#[test]
fn who_oversleeps_a_pinned_timer_is_left_alone() {
    let mut lanes = Lanes::new(1);
    let timer = lanes.scene.add(TimerOptions::new().pinned(), 1);
    let _ = lanes.scene.arm_as(timer, Arm::at(ms(9)), Context::on(cpu(0), ms(0)));
    lanes.arm(50 * TICK, Context::on(cpu(0), ms(0)));
    assert_eq!(lanes.sleep(0, 0), Some(ms(10)));
    let _ = lanes.kicked();
    assert_eq!(lanes.sentinel_looks(ms(10 + STALL)), SentinelLook::Quiet);
    assert_eq!(lanes.kicked(), [0, 0]);
}

/// Goal: the thread of an isolated lane that comes is watched by no one, and watches none. Method: it claims
/// its place while lane 0 sleeps, and looks around while lane 0 is silent.
#[test]
fn an_isolated_lane_watches_none() {
    let mut lanes = Lanes::new(2);
    lanes.isolate("1", 0);
    for now in 1..30 {
        assert_eq!(lanes.tick(1, now), 0);
    }
    let mut lanes = Lanes::new(2);
    lanes.isolate("1", 0);
    let _ = lanes.sleep(0, 0);
    let word = lanes.word();
    lanes.table.handle_claim(&lanes.scene.machine, cpu(1), ms(1), &mut lanes.scene.actions);
    assert_eq!(lanes.word(), word);
}

/// Goal: what a look left undone is done by the lanes, also where none is ever marked. Method: a mark that
/// did not get the record, with no limit for silence.
#[test]
fn repairs_are_made_where_no_lane_is_marked() {
    let mut lanes = Lanes::with(2, Settings { stall: StallPolicy::NEVER, ..Settings::default() });
    let lock = lanes.scene.lock_of_books(1);
    let _ = lock.while_frozen(|| lanes.scene.mark(1));
    assert!(lanes.scene.machine.watches_stalled(cpu(0), ms(1)));
    let (_, _) = (lanes.tick(0, 1), lanes.tick(0, 2));
    assert!(!lanes.scene.machine.watches_stalled(cpu(0), ms(2)));
}

/// Goal: where CPUs do not pull, each lane looks after itself, and the sentinel has no one to watch. Method:
/// the other policies.
#[test]
fn lanes_that_do_not_pull_are_not_watched() {
    for policy in [Policy::Push, Policy::Stay] {
        let lanes = Lanes::with(2, Settings { policy, ..Settings::default() });
        assert!(lanes.slot(0).is_standalone() && lanes.slot(1).is_standalone(), "{policy:?}");
        assert_eq!(lanes.word(), None, "{policy:?}");
    }
}

/// Goal: a lane that does not wait asks once per tick what others have, whatever the policy. Method: a look
/// under each.
#[test]
fn every_lane_asks_what_others_have() {
    for policy in [Policy::Pull, Policy::Push, Policy::Stay] {
        let mut lanes = Lanes::with(2, Settings { policy, ..Settings::default() });
        let _ = lanes.lanes[1].take_must_help();
        let _ = lanes.tick(1, 1);
        assert!(lanes.lanes[1].take_must_help(), "{policy:?}");
    }
}

/// Goal: isolating while all lanes sleep makes the sentinel look no sooner. Method: two that sleep.
#[test]
fn isolating_sleepers_wakes_no_sentinel() {
    let mut lanes = Lanes::new(2);
    let (_, _) = (lanes.sleep(0, 0), lanes.sleep(1, 0));
    let word = lanes.word();
    lanes.isolate("1", 1);
    assert_eq!(lanes.word(), word);
}

/// Goal: an isolated lane that has collected timers, or waits, is to turn. Method: neither, one, the other.
#[test]
fn an_isolated_lane_with_collected_timers_is_not_quiet() {
    let mut lanes = Lanes::new(2);
    lanes.isolate("1", 0);
    let is_quiet = |lanes: &Lanes| lanes.lanes[1].is_quiet(lanes.slot(1));
    assert!(is_quiet(&lanes));
    lanes.arm(TICK, Context::on(cpu(1), ms(0)));
    lanes.act(1, |lane, at, _| at.machine.collect_due(&mut lane.turn, ms(3)));
    assert!(!is_quiet(&lanes), "it has collected one");
    let mut lanes = Lanes::new(2);
    lanes.isolate("1", 0);
    let _ = lanes.idle(1, ms(1));
    assert!(!is_quiet(&lanes), "it waits");
}

/// Goal: the helper is awake in the hierarchy after each time that it woke up. Method: twice.
#[test]
fn a_helper_wakes_up_again() {
    let mut scene = Scene::of(1);
    scene.idle(0, 0);
    let mut helper = Helper::new(cpu(0));
    for now in [1, 2] {
        helper.handle_wake(&scene.machine, ms(now));
        assert_eq!(scene.cpu_state(0), CpuState::Awake);
        assert_eq!(helper.handle_idle(&scene.machine, ms(now)), None);
        assert_eq!(scene.cpu_state(0), CpuState::Parked);
    }
}
