//! How much one turn runs, and what becomes of the rest.

use crate::scene::{Scene, ms};
use crate::world::cpu;
use quietcore_core::tmigr::CpuState;
use quietcore_core::{At, Context, IdleDecision, MarkOutcome, Settings, TimerOptions, TurnBudget};

/// Timers per turn.
const BUDGET: usize = 256;

/// `count` timers of CPU `index`, all due at 1 ms.
fn with_due(scene: &mut Scene, index: usize, count: usize, options: TimerOptions) {
    for _ in 0..count {
        let timer = scene.add(options, 1);
        let _ = scene.arm(timer, 1, Context::on(cpu(index), ms(0)));
    }
}

/// Goal: a turn runs no more than its budget, whichever way it asks for the next timer, and says that more is
/// left. Method: 300 timers at once, in two calls per timer, in one, and one detached with more.
#[test]
fn a_turn_ends_with_its_budget() {
    for way in 0..3 {
        let mut scene = Scene::of(2);
        let options = if way == 2 { TimerOptions::new().detached() } else { TimerOptions::new() };
        with_due(&mut scene, 0, 300, options);
        let mut ran = 0;
        if way == 0 {
            ran = scene.turn(0, 3).len();
        } else {
            scene.machine.begin_turn(&mut scene.turns[0], ms(3));
            let mut next = scene.next(0, 3);
            while let Some(expired) = next {
                ran += 1;
                if way == 2 {
                    let at = At { now: ms(3), actions: &mut scene.actions };
                    let turn = &mut scene.turns[0];
                    ran += scene.machine.take_more_detached(turn, 6, at, |_, _, _| ()) as usize;
                }
                next = scene.finish_and_next(0, expired, 3);
            }
        }
        assert_eq!((ran, scene.turns[0].has_more()), (BUDGET, true), "way {way}");
        assert_eq!(scene.turn(0, 3).len(), 300 - BUDGET, "way {way}");
        assert!(!scene.turns[0].has_more());
    }
}

/// Goal: a machine's own budget holds, of timers and of time, and a turn runs one timer whatever is asked
/// for. Method: ten timers that are due, with budgets of timers; and of time, whose runs end at a later
/// moment.
#[test]
fn a_budget_is_the_machines() {
    for (timers, time, per_turn) in [(3, ms(9), 3), (0, ms(9), 1), (9, ms(2), 2), (9, ms(0), 1)] {
        let turn = TurnBudget::new(timers, time);
        let mut scene = Scene::new(1, Settings { turn, ..Settings::default() });
        with_due(&mut scene, 0, 10, TimerOptions::new());
        scene.machine.begin_turn(&mut scene.turns[0], ms(3));
        let (mut ran, mut next) = (0, scene.next(0, 3));
        while let Some(expired) = next {
            ran += 1;
            next = scene.finish_and_next(0, expired, 3 + ran);
        }
        assert_eq!((ran, scene.turns[0].has_more()), (per_turn, true), "{turn:?}");
    }
}

/// Goal: a turn that ended before it looked after its neighbours has more to do. Method: as many timers of
/// its own as it may run, and one of a CPU that sleeps.
#[test]
fn a_turn_that_has_not_pulled_has_more() {
    let mut scene = Scene::of(2);
    with_due(&mut scene, 0, BUDGET, TimerOptions::new());
    scene.arm_new((2, 1), 1, 0);
    scene.idle(1, 0);
    assert_eq!(scene.turn(0, 3).len(), BUDGET);
    assert!(scene.turns[0].has_more());
    assert_eq!(scene.turn(0, 3), [2]);
}

/// Goal: a CPU does not go idle on what it has collected, on whichever base. Method: more timers than a turn
/// runs, pinned and not, of its own and of strangers; it goes idle, and stands down.
#[test]
fn no_cpu_sleeps_on_what_it_has_collected() {
    for (options, is_near) in
        [(TimerOptions::new().pinned(), false), (TimerOptions::new(), false), (TimerOptions::new(), true)]
    {
        for stands_down in [false, true] {
            let mut scene = Scene::of(2);
            for _ in 0..300 {
                let timer = scene.add(options, 1);
                let context = if is_near { Context::near } else { Context::on };
                let _ = scene.arm(timer, 1, context(cpu(0), ms(0)));
            }
            assert_eq!(scene.turn(0, 3).len(), BUDGET);
            let decision = if stands_down {
                scene.machine.stand_down(&scene.turns[0], ms(3), &mut scene.actions)
            } else {
                scene.enter_idle(0, 3)
            };
            assert_eq!(decision, IdleDecision::Stay { next: ms(3) }, "{options:?} {is_near} {stands_down}");
        }
    }
}

/// Goal: a CPU that stands down for others stays up for what is due within its tick. Method: a pinned timer.
#[test]
fn no_cpu_stands_down_just_before_its_own_timer() {
    let mut scene = Scene::of(2);
    with_due(&mut scene, 0, 1, TimerOptions::new().pinned());
    let decision = scene.machine.stand_down(&scene.turns[0], ms(1), &mut scene.actions);
    assert_eq!(decision, IdleDecision::Stay { next: ms(2) });
}

/// Goal: a CPU that stood down is idle for those who watch. Method: nothing is armed; a neighbour looks long
/// after.
#[test]
fn a_cpu_that_stood_down_is_not_silent() {
    let mut scene = Scene::of(2);
    let _ = scene.machine.stand_down(&scene.turns[1], ms(0), &mut scene.actions);
    assert_eq!(scene.ticks(0, 1..40), (0, vec![]));
    assert_eq!(scene.cpu_state(1), CpuState::Parked);
}

/// Goal: a CPU that goes on after a wait in which it stayed active, or returns from a mark, is not silent for
/// those who watch. Method: a neighbour looks just after.
#[test]
fn a_cpu_that_goes_on_is_not_silent() {
    for was_marked in [false, true] {
        let mut scene = Scene::of(2);
        scene.arm_new((1, 100), 1, 0);
        if was_marked {
            assert_eq!(scene.mark(1), MarkOutcome::Marked);
            let _ = scene.ticks(0, 1..30);
            assert!(scene.machine.return_from_absence(cpu(1), ms(30)));
        } else {
            let _ = scene.ticks(0, 1..3);
            scene.machine.keep_running(cpu(1), ms(30));
            for now in 3..30 {
                scene.machine.keep_alive(cpu(0), ms(now));
            }
        }
        let _ = scene.machine.watch_before_sleep(cpu(0), ms(30), &mut scene.actions);
        assert_eq!(scene.machine.watch_before_sleep(cpu(0), ms(31), &mut scene.actions), 0);
        assert_eq!(scene.cpu_state(1), CpuState::Awake, "it was marked: {was_marked}");
    }
}

/// Goal: a CPU that blocks between two timers of a neighbour leaves the rest to others, at once. Method: two
/// are collected by CPU 0, which blocks in the first; CPU 2 runs the second.
#[test]
fn what_a_blocking_cpu_has_collected_is_for_others() {
    let mut scene = Scene::of(3);
    scene.arm_new((1, 3), 1, 0);
    scene.arm_new((2, 4), 1, 0);
    scene.idle(1, 0);
    let first = scene.start(0, 7);
    scene.machine.go_absent(cpu(0), ms(7), &mut scene.actions);
    assert_eq!(scene.turn(2, 8), [3 - first.payload()]);
    scene.finish(0, first, 9);
}

/// Goal: what a turn gives back is told: its own CPU, which is idle, does not know that it is due. Method:
/// CPU 0 leaves between two timers of CPU 1, of which no CPU that is awake knows.
#[test]
fn what_a_turn_gives_back_is_told() {
    let mut scene = Scene::of(2);
    scene.arm_new((1, 3), 1, 0);
    scene.arm_new((2, 4), 1, 0);
    scene.idle(1, 0);
    let first = scene.start(0, 7);
    scene.finish(0, first, 7);
    assert!(scene.turns[0].has_more());
    let before = scene.machine.hierarchy().published(cpu(1));
    scene.machine.abandon_turn(&mut scene.turns[0], ms(7), &mut scene.actions);
    let after = scene.machine.hierarchy().published(cpu(1));
    assert!(after.is_some_and(|at| at <= ms(7)), "{before:?}, then {after:?}");
}

/// Goal: no base waits for another one of its CPU, also where turns end by their time. Method: pinned timers
/// and one that is not are due; each callback takes as long as a turn may.
#[test]
fn bases_take_turns_beside_long_callbacks() {
    let mut scene = Scene::of(1);
    for _ in 0..4 {
        scene.arm_pinned((1, 5), 0, 0);
    }
    scene.arm_new((2, 5), 0, 0);
    let mut ran = Vec::new();
    for now in [8, 12] {
        let expired = scene.start(0, now);
        ran.push(expired.payload());
        scene.finish(0, expired, now + 3);
        assert!(scene.next(0, now + 3).is_none(), "its time is used up");
    }
    ran.sort_unstable();
    assert_eq!(ran, [1, 2]);
}
