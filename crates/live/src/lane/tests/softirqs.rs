//! Rounds of softirqs on a clock that stands still.

use super::{Log, Other, TICK, claim, cpu, eventually, list, note, noted, pass, quiet, still, wait_for};
use crate::softirq::{Runner, Vector};
use crate::task::{Priority, TaskOptions};
use quietcore_core::run_queue::{Activity, LaneQueue};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

/// Goal: others see that a lane runs softirqs as long as it does, and the turn counts them. Method: two
/// handlers look, and the test after them.
#[test]
fn a_lane_is_seen_in_its_softirqs() {
    let activity = |machine: &crate::Machine| machine.lanes.queue(cpu(0)).expect("a lane").current();
    let log = Log::default();
    let look = |log: &Log| {
        let log = Log::clone(log);
        move |run: &crate::softirq::SoftirqRun<'_>| {
            note(&log, u64::from(activity(run.machine()) == (Activity::Softirq, false)));
        }
    };
    let builder = quiet().softirq(Vector::HI, look(&log)).softirq(Vector::SCHED, look(&log));
    let machine = still(builder);
    let mut lane = claim(machine, 0);
    machine.raise(cpu(0), Vector::HI).expect("it has a handler");
    machine.raise(cpu(0), Vector::SCHED).expect("it has a handler");
    assert_eq!(lane.turn().softirqs, 2);
    assert_eq!(noted(&log), [1, 1]);
    assert_eq!(activity(machine), (Activity::None, false));
    drop(lane);
    machine.shutdown();
}

/// Goal: a round ends when its time is used up, and what is left runs in the next turn. Method: a handler
/// that takes that long and raises itself again.
#[test]
fn a_round_ends_with_its_time() {
    let handler = |run: &crate::softirq::SoftirqRun<'_>| {
        pass(run.machine(), 2 * TICK);
        run.raise_again();
    };
    let machine = still(quiet().softirq(Vector::HI, handler));
    let mut lane = claim(machine, 0);
    machine.raise(cpu(0), Vector::HI).expect("it has a handler");
    for _ in 0..3 {
        let stats = lane.turn();
        assert_eq!((stats.softirqs, stats.has_more), (1, true));
    }
    drop(lane);
    machine.shutdown();
}

/// Goal: a handler is told to end when its round's time is used up, not before, and as soon as a real-time
/// task waits. Method: it asks at each boundary.
#[test]
fn a_handler_is_told_when_to_end() {
    let log = Log::default();
    let told = Log::clone(&log);
    let machine = still(quiet().softirq(Vector::HI, move |run| {
        let ask = || note(&told, u64::from(run.should_end()));
        ask();
        pass(run.machine(), 2 * TICK - 1);
        ask();
        let realtime = TaskOptions::new().realtime(Priority::LOWEST).lane(cpu(0));
        let task = run.machine().spawn_with(realtime, async {}).expect("it runs");
        ask();
        task.abort();
        drop(run.machine().lanes.queue(cpu(0)).expect("a lane").pop(&run.machine().lanes.priorities));
        ask();
        pass(run.machine(), 1);
        ask();
    }));
    let mut lane = claim(machine, 0);
    machine.raise(cpu(0), Vector::HI).expect("it has a handler");
    lane.turn();
    assert_eq!(noted(&log), [0, 0, 1, 0, 1]);
    drop(lane);
    machine.shutdown();
}

/// Goal: a lane that waits for what is overdue waits until ksoftirqd has done it, and no longer. Method: no
/// time is allowed to a vector that ksoftirqd runs, and the time for the wait does not pass; the handler ends
/// when the lane waits.
#[test]
fn a_lane_waits_until_what_is_overdue_is_done() {
    let is_done = Arc::new(AtomicBool::new(false));
    let (sender, began) = channel();
    let ends = Arc::clone(&is_done);
    let builder = quiet().defer_limit(std::time::Duration::ZERO).softirq(Vector::IRQ_POLL, move |run| {
        if run.runner() == Runner::Lane {
            return run.raise_again();
        }
        sender.send(()).expect("the test waits");
        eventually("the lane waits", || run.machine().metrics().cpus[0].donations > 0);
        ends.store(true, Ordering::SeqCst);
    });
    let machine = still(builder);
    let other = Other::claim(machine, 0);
    machine.raise(cpu(0), Vector::IRQ_POLL).expect("it has a handler");
    other.act(|lane| _ = lane.turn());
    wait_for(&began);
    drop(machine.spawn_on(cpu(0), async {}));
    let saw = other.act(move |lane| {
        lane.turn();
        is_done.load(Ordering::SeqCst)
    });
    assert!(saw, "it went on before that was done");
    other.leave();
    machine.shutdown();
}

/// Goal: what a lane can run it runs itself, and its ksoftirqd is not woken for it. Method: a long vector,
/// raised again and again for a lane that a thread drives; then its ksoftirqd runs one, and what it was woken
/// for is counted.
#[test]
fn a_lane_runs_its_own_softirqs() {
    let (sender, ran) = channel();
    let machine = still(quiet().softirq(Vector::BLOCK, move |run| {
        sender.send(run.runner()).expect("the test waits");
    }));
    let mut lane = claim(machine, 0);
    for _ in 0..20 {
        machine.raise(cpu(0), Vector::BLOCK).expect("it has a handler");
        lane.turn();
        assert_eq!(wait_for(&ran), Runner::Lane);
    }
    machine.raise(cpu(0), Vector::BLOCK).expect("it has a handler");
    drop(lane);
    assert_eq!(wait_for(&ran), Runner::Ksoftirqd);
    assert_eq!(machine.metrics().cpus[0].ksoftirqd_wakeups, 1);
    machine.shutdown();
}

/// Goal: ksoftirqds keep off isolated CPUs. Method: where the thread may run that runs a handler.
#[test]
fn ksoftirqds_keep_off_isolated_cpus() {
    let (sender, ran) = channel();
    let machine = still(quiet().softirq(Vector::BLOCK, move |_| {
        let set = rustix::thread::sched_getaffinity(None).expect("it is this thread");
        sender.send(set.is_set(1)).expect("the test waits");
    }));
    machine.set_isolated(&list("1")).expect("one is left");
    machine.raise(cpu(0), Vector::BLOCK).expect("it has a handler");
    assert!(!wait_for(&ran), "it may run on CPU 1");
    machine.shutdown();
}

/// Goal: what was raised on a lane before a thread drives it is run by the first that does. Method: a vector
/// that may not leave its lane; whatever the claim itself left for the lane is taken up first.
#[test]
fn what_was_raised_before_the_claim_is_run() {
    let machine = still(quiet().softirq(Vector::TASKLET, |_| ()));
    for _ in 0..2 {
        machine.raise(cpu(0), Vector::TASKLET).expect("it has a handler");
        assert!(machine.lanes.queue(cpu(0)).expect("it has one").doorbell.is_rung());
        let mut lane = claim(machine, 0);
        assert_eq!(lane.turn().softirqs, 1);
        drop(lane);
    }
    machine.shutdown();
}
