//! Parked CPUs that do not wake up when they said they would: others serve their global timers, and none
//! waits for their kick. Their pinned timers wait for them.

use crate::scene::{Scene, ms};
use crate::world::cpu;
use quietcore_core::IdleDecision;
use quietcore_core::tmigr::CpuState;

/// So many CPUs; CPU 0 is parked until its pinned timer 7 is due, in tick 11, so its global timer 8, due in
/// the same tick, is not published.
fn sleeper(cpu_count: usize) -> Scene {
    let mut scene = Scene::of(cpu_count);
    scene.arm_pinned((7, 10), 0, 0);
    scene.arm_new((8, 10), 0, 0);
    scene.idle(0, 0);
    scene
}

/// Goal: an awake CPU marks it and runs its global timer, no earlier than a stall after its wake-up was due,
/// and leaves its pinned one; it comes back as any CPU that wakes up. Method: CPU 1 ticks on; CPU 0 wakes up
/// at 30.
#[test]
fn an_awake_cpu_serves_one_that_overslept() {
    let mut scene = sleeper(2);
    assert_eq!(scene.ticks(1, 1..13), (0, vec![]), "it may still wake up");
    assert_eq!(scene.ticks(1, 13..16), (1, vec![8]));
    assert_eq!(scene.cpu_state(0), CpuState::Absent);
    scene.machine.exit_idle(cpu(0), ms(30));
    assert_eq!((scene.cpu_state(0), scene.turn(0, 30)), (CpuState::Awake, vec![7]));
    assert_eq!(scene.machine.counters(cpu(0)).marks, 1);
    scene.machine.check();
}

/// Goal: a CPU that wakes up in time is not marked, whatever it has. Method: as above, but it wakes up at 11.
#[test]
fn who_wakes_up_in_time_is_not_marked() {
    let mut scene = sleeper(2);
    assert_eq!(scene.ticks(1, 1..10), (0, vec![]));
    scene.machine.exit_idle(cpu(0), ms(11));
    assert_eq!(scene.turn(0, 11), [7, 8]);
    assert_eq!((scene.ticks(1, 11..13), scene.machine.counters(cpu(0)).marks), ((0, vec![]), 0));
}

/// Goal: after a silence a CPU is kicked that can run, not the one that overslept, and runs its timer.
/// Method: CPUs 0 and 1 are parked, CPU 2 is awake in the hierarchy and frozen.
#[test]
fn a_silence_kicks_nobody_who_overslept() {
    let mut scene = sleeper(3);
    scene.idle(1, 0);
    scene.machine.handle_silence(ms(20), &mut scene.actions);
    assert_eq!(scene.kicks(), [cpu(1)]);
    assert_eq!((scene.cpu_state(0), scene.cpu_state(2)), (CpuState::Absent, CpuState::Absent));
    scene.machine.exit_idle(cpu(1), ms(20));
    assert_eq!(scene.ticks(1, 20..26).1, [8]);
}

/// Goal: a CPU that has got up and stays up is not taken for one that sleeps until its last wake-up. Method:
/// it slept until 40 ms, and goes idle again, at 10 ms, a tick before something of its own is due.
#[test]
fn an_earlier_sleep_counts_no_more() {
    let mut scene = Scene::of(2);
    scene.arm_pinned((1, 39), 0, 0);
    assert_eq!(scene.enter_idle(0, 0), IdleDecision::Sleep { until: Some(ms(40)) });
    let asleep = scene.machine.silence(cpu(0));
    assert_eq!((asleep.since, asleep.missed_wakeup), (ms(40), true));
    scene.machine.exit_idle(cpu(0), ms(10));
    scene.arm_pinned((2, 10), 0, 10);
    assert_eq!(scene.enter_idle(0, 10), IdleDecision::Stay { next: ms(11) });
    let awake = scene.machine.silence(cpu(0));
    assert_eq!((awake.since, awake.missed_wakeup), (ms(10), false));
    scene.machine.keep_running(cpu(0), ms(11));
}
