//! Isolated lanes that turn all the time: what they look at, by rule.

use super::{Other, TICK, claim, cpu, list, pass, quiet, still};
use crate::isolation::TimerRaise;
use crate::{MachineBuilder, Nanos, Precision, TimerOptions};
use quietcore_core::MarkOutcome;
use std::thread;
use std::time::Duration;

/// How many timers lane 1 runs in each of two turns of the same tick, with one due in each.
fn runs_in_a_tick(builder: MachineBuilder) -> [u32; 2] {
    let machine = still(builder);
    let mut lane = claim(machine, 1);
    let options = TimerOptions::new().pinned().precision(Precision::Exact);
    let timer = machine.timer(options, |_| ());
    timer.arm_at(machine.now()).expect("it runs");
    let first = lane.turn().ran;
    timer.arm_at(Nanos(machine.now().0 + TICK / 4)).expect("it runs");
    pass(machine, TICK / 2);
    let second = lane.turn().ran;
    drop(lane);
    machine.shutdown();
    [first, second]
}

/// Goal: an isolated lane that goes by the next expiry runs what is due in its next turn, and not in the next
/// tick. Method: two turns in one tick, each with a timer.
#[test]
fn an_isolated_lane_runs_what_is_due_within_a_tick() {
    assert_eq!(runs_in_a_tick(quiet().isolated(list("1"))), [1, 1]);
}

/// Goal: the moment by which an isolated lane finds that nothing is due is never behind the clock. Method: it
/// arms for a moment, waits until the clock says that it has come, and turns once.
#[test]
fn an_isolated_lane_is_never_behind_the_clock() {
    let machine = quiet().isolated(list("1")).start().expect("it starts");
    let mut lane = claim(machine, 1);
    let timer = machine.timer(TimerOptions::new().pinned().precision(Precision::Exact), |_| ());
    for round in 0..50 {
        let at = Nanos(machine.now().0 + 1_300_000);
        timer.arm_at(at).expect("it runs");
        while machine.now() < at {
            std::hint::spin_loop();
        }
        assert_eq!(lane.turn().ran, 1, "{round}");
    }
    drop(lane);
    machine.shutdown();
}

/// Goal: only isolated lanes go by ticks. Method: the same for one that is not, by the rule of every tick.
#[test]
fn a_lane_that_is_not_isolated_goes_by_the_clock() {
    assert_eq!(runs_in_a_tick(quiet().timer_raise(TimerRaise::Unconditional)), [1, 1]);
}

/// Goal: a lane that goes by ticks runs what was left for it in any turn. Method: a task, in a tick in which
/// it has turned.
#[test]
fn a_lane_that_goes_by_ticks_runs_items() {
    let machine = still(quiet().isolated(list("1")).timer_raise(TimerRaise::Unconditional));
    let mut lane = claim(machine, 1);
    lane.turn();
    let task = machine.spawn_on(cpu(1), async {}).expect("it runs");
    assert_eq!((lane.turn().items, task.is_finished()), (1, true));
    drop(lane);
    machine.shutdown();
}

/// Goal: each arm from elsewhere makes a lane that goes by ticks look at once, also one that follows the look
/// that another one has called for. Method: a tick that does not end; a foreign thread and another lane arm
/// in turns.
#[test]
fn each_arm_from_elsewhere_calls() {
    let builder = quiet().isolated(list("1")).timer_raise(TimerRaise::Bitmap);
    let machine = still(builder.tick(Duration::from_secs(1_000_000)));
    let mut lane = claim(machine, 1);
    let other = Other::claim(machine, 0);
    lane.turn();
    let options = TimerOptions::new().pinned().precision(Precision::Exact);
    for is_foreign in [true, false, true, false] {
        let timer = machine.timer(options, |_| ());
        let arm = move || {
            timer.arm_on(cpu(1), machine.now()).expect("it has a lane");
            timer
        };
        let timer =
            if is_foreign { thread::spawn(arm).join().expect("no panic") } else { other.act(|_| arm()) };
        assert_eq!(lane.turn().ran, 1, "foreign: {is_foreign}");
        drop(timer);
    }
    other.leave();
    drop(lane);
    machine.shutdown();
}

/// Goal: a timer that wakes no CPU counts as one that waits, and is run in a tick. Method: it is the only
/// one.
#[test]
fn a_deferrable_timer_raises_by_ticks() {
    let machine = still(quiet().isolated(list("1")).timer_raise(TimerRaise::Bitmap));
    let mut lane = claim(machine, 1);
    let timer = machine.timer(TimerOptions::new().pinned().deferrable(), |_| ());
    timer.arm_on(cpu(1), machine.now()).expect("it has a lane");
    pass(machine, 2 * TICK);
    assert_eq!(lane.turn().ran, 1);
    drop(lane);
    machine.shutdown();
}

/// Goal: a lane that goes by ticks returns from a mark in its next turn. Method: another thread finds it
/// stuck before it is isolated; nothing is armed.
#[test]
fn a_lane_that_goes_by_ticks_returns_from_a_mark() {
    for when in [TimerRaise::Bitmap, TimerRaise::Unconditional] {
        let machine = still(quiet().timer_raise(when));
        let mut lane = claim(machine, 1);
        lane.turn();
        let outcome = machine.act(|actions| machine.core.mark_absent(cpu(1), actions));
        assert_eq!(outcome, MarkOutcome::Marked);
        machine.set_isolated(&list("1")).expect("lane 0 is left");
        // For what was left for a lane it turns by the clock.
        let _ = machine.lanes.queue(cpu(1)).expect("it has one").doorbell.answer();
        lane.turn();
        assert!(!machine.core.is_marked(cpu(1)), "{when:?}");
        drop(lane);
        machine.shutdown();
    }
}

/// Goal: a lane that goes by ticks does nothing more after the end of its machine. Method: what it counts.
#[test]
fn a_lane_that_goes_by_ticks_ends_with_its_machine() {
    let machine = still(quiet().isolated(list("1")).timer_raise(TimerRaise::Unconditional));
    let mut lane = claim(machine, 1);
    let raises = || machine.metrics().cpus[1].timer_raises;
    lane.turn();
    let before = raises();
    assert!(before > 0, "it goes by ticks");
    machine.shutdown();
    pass(machine, 2 * TICK);
    lane.turn();
    assert_eq!(raises(), before);
    drop(lane);
}
