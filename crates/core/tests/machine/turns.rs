//! Turns that end before their work: no CPU loses sight of the rest. And a policy without a hierarchy.

use crate::lock::was_interrupted;
use crate::scene::{Scene, ms};
use crate::world::cpu;
use quietcore_core::place::Policy;
use quietcore_core::{Arm, At, BaseKind, Context, IdleDecision, Precision, Settings, TimerOptions};
use std::rc::Rc;

/// Goal: a turn runs 256 timers at most; a CPU with more does not sleep, and goes on. Method: 300 are due; it
/// tries to go idle after its turn.
#[test]
fn a_turn_that_used_its_budget_keeps_its_cpu_awake() {
    let mut scene = Scene::of(2);
    for payload in 0..300 {
        scene.arm_new((payload, 5), 1, 0);
    }
    assert_eq!(scene.turn(1, 8).len(), 256);
    assert!(scene.turns[1].has_more());
    assert_eq!(scene.enter_idle(1, 8), IdleDecision::Stay { next: ms(8) });
    scene.machine.check();
    assert_eq!(scene.rest(1, 9), [], "the budget is the turn's");
    assert_eq!(scene.turn(1, 9).len(), 44);
    assert!(!scene.turns[1].has_more());
}

/// Goal: a CPU that is awake runs its own timers, also if another one was about to run them for it. Method:
/// CPU 1 wakes up between the look of CPU 0 at the hierarchy and its lock of the base.
#[test]
fn who_is_awake_again_is_not_pulled_from() {
    let mut scene = Scene::of(2);
    scene.arm_new((1, 5), 1, 0);
    scene.idle(1, 0);
    let machine = Rc::clone(&scene.machine);
    scene.lock_of(1, BaseKind::Global).before(move || machine.exit_idle(cpu(1), ms(7)));
    assert_eq!(scene.turn(0, 7), []);
    assert!(was_interrupted());
    assert_eq!(scene.turn(1, 7), [1]);
}

/// Goal: a turn ends after 2 ms, between two timers. Method: a timer that takes 3 ms.
#[test]
fn a_turn_that_used_its_time_ends() {
    let mut scene = Scene::of(2);
    scene.arm_new((1, 5), 1, 0);
    scene.arm_new((2, 5), 1, 0);
    let expired = scene.start(1, 8);
    scene.finish(1, expired, 11);
    assert!(scene.next(1, 11).is_none());
    assert!(scene.turns[1].has_more());
    assert_eq!(scene.turn(1, 12).len(), 1);
}

/// Goal: a turn that is given back is run by others; a world that drops one instead keeps its base from
/// running, as `Turn` says. Method: one timer pinned and one not, collected by a turn that is given up.
#[test]
fn a_turn_that_is_given_back_is_run_by_others() {
    let mut scene = Scene::of(2);
    scene.arm_pinned((1, 5), 0, 0);
    scene.arm_new((2, 5), 0, 0);
    scene.machine.begin_turn(&mut scene.turns[0], ms(8));
    assert!(scene.turns[0].has_more());
    scene.machine.abandon_turn(&mut scene.turns[0], ms(8), &mut scene.actions);
    assert!(!scene.turns[0].has_more());
    assert!(scene.machine.handle_tick(cpu(0), ms(9)), "they are overdue again");
    let mut ran = scene.turn(0, 9);
    ran.sort_unstable();
    assert_eq!(ran, [1, 2]);
}

/// Goal: a timer that runs stays on its base, so that it is never concurrent with itself: an arm for another
/// CPU by its own callback says so, and the next arm moves it. Method: pinned to CPU 1 in a run on CPU 0.
#[test]
fn a_running_timer_stays_on_its_base() {
    let mut scene = Scene::of(2);
    let timer = scene.arm_new((1, 5), 0, 0);
    let expired = scene.start(0, 7);
    let by = Context::on(cpu(0), ms(7));
    let arm_on_1 = |scene: &mut Scene, at| scene.arm_as(timer, Arm::at(ms(at)).on(cpu(1)), by);
    let armed = arm_on_1(&mut scene, 10);
    assert_eq!((armed.base.cpu, armed.base.kind), (cpu(0), BaseKind::Global));
    scene.finish(0, expired, 7);
    let armed = arm_on_1(&mut scene, 11);
    assert_eq!((armed.base.cpu, armed.base.kind, armed.was_pending), (cpu(1), BaseKind::Local, true));
    assert_eq!((scene.turn(0, 15), scene.turn(1, 15)), (vec![], vec![1]));
}

/// Goal: where every timer stays with its CPU no CPU is asked to be awake for another. Method: a CPU with a
/// timer blocks; the world is asked for no alarm.
#[test]
fn a_machine_without_a_hierarchy_asks_for_no_alarm() {
    let mut scene = Scene::new(1, Settings { policy: Policy::Stay, ..Settings::default() });
    let timer = scene.add(TimerOptions::new(), 1);
    let _ = scene.arm(timer, 5, Context::on(cpu(0), ms(0)));
    scene.machine.go_absent(cpu(0), ms(1), &mut scene.actions);
    assert_eq!(scene.actions.take_alarm(), None);
    scene.machine.handle_alarm(ms(5), &mut scene.actions);
    assert_eq!(scene.actions.take_alarm(), None);
    assert_eq!(scene.turn(0, 8), [1]);
}

/// Goal: a turn that says it has no more leaves nothing that was due when it began. Method: a precise timer
/// is collected from a coarse bucket at the very tick at which it is due, on a CPU's own base and on one that
/// it looks after.
#[test]
fn a_turn_leaves_nothing_that_was_due() {
    for armed_on in [1, 0] {
        let mut scene = Scene::of(2);
        let options = TimerOptions::new().precision(Precision::Tick);
        let timer = scene.add(options, 7);
        // It waits for tick 96, to be placed again then; no CPU looks before 103.
        let _ = scene.arm(timer, 102, Context::on(cpu(armed_on), ms(0)));
        scene.idle(0, 0);
        assert_eq!(scene.turn(1, 103), [7], "armed on CPU {armed_on}");
        assert!(!scene.turns[1].has_more());
        scene.machine.check();
    }
}

/// Goal: a turn ends with its time also between two timers of one base. Method: the first of two runs for
/// longer than a turn may.
#[test]
fn a_slow_timer_ends_its_turn() {
    let mut scene = Scene::of(1);
    for payload in [1, 2] {
        scene.arm_new((payload, 5), 0, 0);
    }
    let first = scene.start(0, 8);
    assert!(scene.finish_and_next(0, first, 11).is_none());
    assert!(scene.turns[0].has_more(), "the second one waits for the next turn");
    assert_eq!(scene.turn(0, 12).len(), 1);
}

/// Goal: a CPU turns for its neighbours as long as it goes from one timer to the next. Method: a heartbeat
/// between two of one base.
#[test]
fn each_timer_is_a_heartbeat() {
    let mut scene = Scene::of(1);
    for payload in [1, 2] {
        scene.arm_new((payload, 5), 0, 0);
    }
    let first = scene.start(0, 8);
    let second = scene.finish_and_next(0, first, 9).expect("it is due");
    assert_eq!(scene.machine.silence(cpu(0)).since, ms(9));
    scene.finish(0, second, 9);
}

/// Goal: a closed machine hands out nothing, and the run that was under way is known until it ends. Method:
/// closed in the first of two runs.
#[test]
fn a_closed_machine_hands_out_nothing() {
    let mut scene = Scene::of(1);
    scene.arm_new((1, 5), 0, 0);
    scene.arm_new((2, 5), 0, 0);
    let first = scene.start(0, 8);
    scene.machine.close();
    assert!(scene.machine.has_runs(), "the first one's has not ended");
    assert!(scene.finish_and_next(0, first, 8).is_none());
    assert_eq!((scene.turn(0, 9), scene.machine.has_runs()), (vec![], false));
}

/// Goal: a CPU that stands down leaves the last wake-up to an alarm, whose kick goes to the lowest CPU that
/// sleeps. Method: beside a CPU that sleeps and has a timer.
#[test]
fn who_stands_down_wakes_up_for_nobody() {
    let mut scene = Scene::of(2);
    scene.arm_new((1, 50), 0, 0);
    scene.idle(0, 0);
    let decision = scene.machine.stand_down(&scene.turns[1], ms(0), &mut scene.actions);
    assert_eq!(decision, IdleDecision::Sleep { until: None });
    let at = scene.actions.take_alarm().expect("no CPU wakes up by itself");
    scene.machine.handle_alarm(at, &mut scene.actions);
    assert_eq!(scene.kicks(), [cpu(0)]);
}

/// Goal: of detached timers more are taken in one lock hold, no more than there is room for. Method: five,
/// room for three after the first.
#[test]
fn more_detached_timers_are_taken_at_once() {
    let mut scene = Scene::of(1);
    for payload in 0..5 {
        let timer = scene.add(TimerOptions::new().detached(), payload);
        let _ = scene.arm(timer, 5, Context::on(cpu(0), ms(0)));
    }
    let (first, mut more) = (scene.start(0, 8), Vec::new());
    let at = At { now: ms(8), actions: &mut scene.actions };
    let take = |payload, _, _| more.push(payload);
    assert_eq!(scene.machine.take_more_detached(&mut scene.turns[0], 3, at, take), 3);
    scene.finish(0, first, 8);
    assert_eq!((more.len(), scene.rest(0, 8).len()), (3, 1));
}

/// Goal: a base in which more is due than a turn runs does not keep the others waiting. Method: two timers on
/// each of two bases, and turns that end after one.
#[test]
fn what_a_turn_leaves_comes_after_other_bases() {
    let mut scene = Scene::of(1);
    for (payload, context) in [
        (1, Context::on(cpu(0), ms(0))),
        (2, Context::on(cpu(0), ms(0))),
        (3, Context::near(cpu(0), ms(0))),
        (4, Context::near(cpu(0), ms(0))),
    ] {
        let timer = scene.add(TimerOptions::new(), payload);
        let _ = scene.arm(timer, 5, context);
    }
    let mut ran = Vec::new();
    for now in 8..12 {
        let expired = scene.start(0, now);
        ran.push(expired.payload());
        scene.turns[0].end_early();
        scene.finish(0, expired, now);
    }
    assert_eq!(ran, [2, 4, 1, 3], "of one tick the last comes first, of the bases each in its turn");
}
