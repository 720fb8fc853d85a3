//! Lanes, sentinel and helper, one rule each, without threads: the test is the world, and time is a number.
//! Sequences of many such calls, with threads that are stopped anywhere, are the simulator's.

mod isolation;
mod watch;

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
    Arm, BaseId, BaseKind, Context, CpuId, CpuSet, Expiry, MarkOutcome, Nanos, Settings, StallPolicy,
    TimerOptions,
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

    fn has_nothing(&mut self, index: usize, now: Nanos) -> bool {
        self.act(index, |lane, at, _| lane.has_nothing(at, now))
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
        let _ = self.scene.arm_as(timer, Arm::at(Nanos(context.now().0 + delay)), context);
    }
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

/// Goal: a lane is interrupted as long as it dozes, and no longer, by timers that it keeps more exactly than
/// its ticks, by whichever thread. Method: a doze, arms of each kind by others and by itself, and its end.
#[test]
fn only_a_lane_that_dozes_is_interrupted() {
    for is_own in [false, true] {
        let mut lanes = Lanes::new(1);
        // After a short wait it expects another one.
        let first = lanes.idle(0, Nanos(1));
        lanes.wake(0, Nanos(2));
        assert_eq!(first, IdleUntil::Sleep { until: None });
        assert_eq!(lanes.idle(0, Nanos(3)), IdleUntil::Stay { until: ms(1) }, "the end of the tick");
        let tell = |lanes: &Lanes, kind, is_exact, at| {
            lanes.table.after_arm(BaseId { cpu: cpu(0), kind }, is_exact, at, || is_own).is_some()
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

/// Goal: a turn is taken for nothing only if the lane is awake, has looked around in this tick and asked what
/// others have, and nothing is due here or at those that it looks after; it says that the lane goes on.
/// Method: each of these, alone.
#[test]
fn a_turn_for_nothing() {
    let turned = || {
        let mut lanes = Lanes::new(2);
        lanes.tick(0, 1);
        assert!(!lanes.has_nothing(0, ms(1)), "it has not asked what others have");
        assert!(lanes.lanes[0].take_must_help());
        assert!(lanes.has_nothing(0, ms(1)));
        lanes
    };
    let mut lanes = turned();
    assert!(lanes.has_nothing(0, Nanos(ms(1).0 + 1)));
    assert_eq!(lanes.scene.machine.silence(cpu(0)).since, Nanos(ms(1).0 + 1));
    assert!(!lanes.has_nothing(0, ms(2)), "another tick");
    let mut lanes = turned();
    lanes.arm(0, Context::on(cpu(0), ms(0)));
    assert!(!lanes.has_nothing(0, ms(1)), "a timer is due");
    let mut lanes = turned();
    lanes.sleep(1, 0);
    lanes.arm(0, Context::on(cpu(1), ms(0)));
    assert!(!lanes.has_nothing(0, ms(1)), "a timer of one that sleeps is due");
    let mut lanes = turned();
    assert_eq!(lanes.scene.mark(0), MarkOutcome::Marked);
    assert!(!lanes.has_nothing(0, ms(1)), "it is marked");
    let mut lanes = turned();
    let _ = lanes.idle(0, ms(1));
    assert!(!lanes.has_nothing(0, ms(1)), "it waits");
}
