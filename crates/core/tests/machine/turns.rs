//! Turns that end before their work: no CPU loses sight of the rest. And a policy without a hierarchy.

use crate::scene::{Scene, ms};
use crate::world::cpu;
use quietcore_core::place::Policy;
use quietcore_core::{Arm, BaseKind, Context, IdleDecision, Precision, Settings, TimerOptions};

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
    let arm_on_1 = |scene: &mut Scene, at| {
        scene.machine.arm(timer, Arm::at(ms(at)).on(cpu(1)), by, &mut scene.actions).expect("it exists")
    };
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
