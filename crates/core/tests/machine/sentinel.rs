//! Every awake CPU is stuck: a parked CPU is kicked, and everything that is due runs all the same. I7 and I8
//! of the stall protocol. That no CPU turns is noticed by a world's dead man's switch.

use crate::scene::{Scene, ms};
use crate::world::cpu;
use quietcore_core::place::Policy;
use quietcore_core::tmigr::CpuState;
use quietcore_core::{IdleDecision, Settings};

/// CPUs 0 and 1 awake, each with two timers for tick 5, and never turn again; CPUs 2 and 3 are parked with
/// nothing.
fn frozen() -> Scene {
    let mut scene = Scene::of(4);
    for payload in 0..4 {
        scene.arm_new((payload, 5), payload as usize % 2, 0);
    }
    for index in [2, 3] {
        assert_eq!(scene.enter_idle(index, 0), IdleDecision::Sleep { until: None });
    }
    scene
}

/// Goal: I7: with all awake CPUs frozen, a parked one that is kicked marks them and runs all that is due.
/// Method: it turns for ten ticks.
#[test]
fn a_kicked_cpu_takes_over_from_all_that_froze() {
    let mut scene = frozen();
    scene.machine.exit_idle(cpu(2), ms(20));
    let (_, mut ran) = scene.ticks(2, 20..30);
    ran.sort_unstable();
    assert_eq!(ran, [0, 1, 2, 3]);
    scene.machine.check();
}

/// Goal: a silence is answered with a kick of the lowest CPU that is parked and may pull, though no alarm was
/// asked for and the hierarchy says that others are awake. Method: CPU 0 stuck, 1 isolated and asleep, 2
/// absent, 3 and 4 parked; 3 wakes up and is stuck, then 4.
#[test]
fn a_silence_kicks_the_lowest_that_is_parked() {
    let mut scene = Scene::of(5);
    scene.isolate("1", 0);
    scene.idle(1, 0);
    assert_eq!(scene.mark(2), quietcore_core::MarkOutcome::Marked);
    scene.idle(3, 0);
    scene.idle(4, 0);
    let _ = (scene.kicks(), scene.actions.take_alarm());
    for (parked, now) in [(3, 20), (4, 30)] {
        assert!(scene.machine.handle_silence(ms(now), &mut scene.actions));
        assert_eq!((scene.kicks(), scene.actions.take_alarm()), (vec![cpu(parked)], None));
        scene.machine.exit_idle(cpu(parked), ms(now));
        assert_eq!(scene.cpu_state(parked), CpuState::Awake);
    }
    assert!(scene.machine.handle_silence(ms(40), &mut scene.actions));
    assert_eq!((scene.kicks(), scene.actions.take_alarm()), (vec![], Some(ms(41))), "nobody is left");
}

/// Goal: a silence that is none disturbs no CPU: a CPU is awake and turns, it is only late to say so. Method:
/// one that has just begun its turn, beside one that is stuck and one that is parked.
#[test]
fn a_turn_breaks_the_silence() {
    let mut scene = Scene::of(3);
    scene.idle(2, 0);
    scene.turn(1, 19);
    assert!(!scene.machine.handle_silence(ms(20), &mut scene.actions));
    assert_eq!(
        (scene.kicks(), scene.cpu_state(0), scene.cpu_state(1)),
        (vec![], CpuState::Absent, CpuState::Awake)
    );
    assert!(scene.machine.handle_silence(ms(22), &mut scene.actions), "it has not turned since");
    assert_eq!((scene.kicks(), scene.cpu_state(1)), (vec![cpu(2)], CpuState::Absent));
}

/// Goal: where every CPU is absent a silence asks for an alarm, which asks again until one is back. Method:
/// two CPUs block; one returns and goes idle.
#[test]
fn a_silence_of_absent_cpus_asks_again() {
    let mut scene = Scene::of(2);
    for index in [0, 1] {
        scene.machine.go_absent(cpu(index), ms(0), &mut scene.actions);
    }
    scene.machine.handle_silence(ms(5), &mut scene.actions);
    assert_eq!((scene.kicks(), scene.actions.take_alarm()), (vec![], Some(ms(6))));
    scene.machine.handle_alarm(ms(6), &mut scene.actions);
    assert_eq!((scene.kicks(), scene.actions.take_alarm()), (vec![], Some(ms(7))));
    assert!(scene.machine.return_from_absence(cpu(1), ms(6)));
    scene.idle(1, 6);
    scene.machine.handle_alarm(ms(7), &mut scene.actions);
    assert_eq!((scene.kicks(), scene.actions.take_alarm()), (vec![cpu(1)], None));
}

/// Goal: a silence waits for no lock, as a CPU may be stopped inside it, and kicks no CPU where no CPU could
/// take over. Method: the records of each of three CPUs frozen in turn; and a machine where every timer
/// stays.
#[test]
fn a_silence_waits_for_nobody() {
    for frozen in 0..3 {
        let mut scene = Scene::of(3);
        scene.idle(1, 0);
        scene.idle(2, 0);
        let lock = scene.lock_of_books(frozen);
        let machine = std::rc::Rc::clone(&scene.machine);
        lock.while_frozen(|| machine.handle_silence(ms(9), &mut scene.actions));
        assert_eq!(scene.kicks(), [cpu(if frozen == 1 { 2 } else { 1 })], "the record of CPU {frozen}");
    }
    let mut scene = Scene::new(2, Settings { policy: Policy::Stay, ..Settings::default() });
    scene.idle(1, 0);
    scene.machine.handle_silence(ms(9), &mut scene.actions);
    assert!(scene.actions.is_empty());
}

/// Goal: I8: the kicked CPU's first callback blocks for ever, too; the next one that is kicked runs the rest.
/// Method: CPU 2 keeps the first timer and never finishes it; CPU 3 comes after it.
#[test]
fn a_kicked_cpu_that_blocks_is_taken_over_too() {
    let mut scene = frozen();
    scene.machine.exit_idle(cpu(2), ms(20));
    let first = (20..30).find_map(|now| {
        scene.machine.watch(cpu(2), ms(now), &mut scene.actions);
        scene.machine.begin_turn(&mut scene.turns[2], ms(now));
        scene.next(2, now)
    });
    let blocked = first.expect("something was due").payload();
    scene.machine.exit_idle(cpu(3), ms(60));
    let (_, mut ran) = scene.ticks(3, 60..70);
    ran.push(blocked);
    ran.sort_unstable();
    assert_eq!(ran, [0, 1, 2, 3]);
}
