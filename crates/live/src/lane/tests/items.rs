//! Items in a turn: how many, for how long, and what is counted.

use super::{Log, Other, TICK, claim, cpu, many, note, noted, pass, quiet, still};
use crate::task::{Priority, TaskOptions};
use crate::work::WorkOptions;
use quietcore_core::run_queue::{Activity, LaneQueue};
use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::task::Poll;

/// Goal: a turn runs 64 items, and the next one the rest. Method: one more than that, in no time.
#[test]
fn a_turn_ends_after_so_many_items() {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    (0..65).for_each(|_| drop(machine.spawn_on(cpu(0), async {}).expect("it runs")));
    let stats = [(); 2].map(|()| lane.turn());
    assert_eq!(stats.map(|stats| (stats.items, stats.has_more)), [(64, true), (1, false)]);
    drop(lane);
    machine.shutdown();
}

/// Goal: a turn ends when it has run items for 2 ms. Method: each task takes exactly that long.
#[test]
fn a_turn_ends_after_so_long() {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    for _ in 0..2 {
        drop(machine.spawn_on(cpu(0), async { _ = pass(machine, 2 * TICK) }).expect("it runs"));
    }
    let stats = [(); 2].map(|()| lane.turn());
    assert_eq!(stats.map(|stats| stats.items), [1, 1]);
    drop(lane);
    machine.shutdown();
}

/// Goal: a lane that has found work cancelled is in the middle of nothing: a call that isolates it does not
/// wait for it. Method: work that any lane may run is all that its turn finds.
#[test]
fn what_was_cancelled_keeps_no_lane_busy() {
    let machine = still(quiet());
    let mut lane = claim(machine, 1);
    let work = machine.work(WorkOptions::new(), || ()).expect("it is made");
    assert!(work.queue() == Ok(true) && work.cancel());
    let queue = machine.lanes.queue(cpu(1)).expect("it has one");
    assert_eq!(queue.free_waiting(), 1, "it is in the queue of the only lane");
    lane.turn();
    assert_eq!((queue.free_waiting(), queue.current.get()), (0, (Activity::None, false)));
    drop(lane);
    machine.shutdown();
}

/// Goal: only what was run is counted. Method: work that is cancelled before its turn, and work that is not.
#[test]
fn what_was_cancelled_is_not_counted() {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    let work = |_| machine.work(WorkOptions::new().bound(cpu(0)), || ()).expect("it has a lane");
    let [cancelled, run] = [0, 1].map(work);
    assert!(cancelled.queue() == Ok(true) && run.queue() == Ok(true) && cancelled.cancel());
    assert_eq!(lane.turn().items, 1);
    assert_eq!(machine.metrics().sum(|cpu| cpu.items), 1);
    drop(lane);
    machine.shutdown();
}

/// Goal: timers that run between two items are in the count of their turn. Method: a task arms some that are
/// due at once.
#[test]
fn timers_between_items_are_counted() {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    let (sender, armed) = channel();
    let arm = async move { sender.send(many(machine, 0, 3)).expect("the test waits") };
    drop(machine.spawn_on(cpu(0), arm).expect("it runs"));
    let stats = lane.turn();
    assert_eq!((stats.ran, stats.items), (3, 1));
    drop((armed, lane));
    machine.shutdown();
}

/// Goal: a lane that runs one item after the other is silent for no longer than one of them. Method: the
/// second one, in the same tick, looks since when.
#[test]
fn a_lane_turns_between_items() {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    let log = Log::default();
    for _ in 0..2 {
        let log = Log::clone(&log);
        let look = async move {
            note(&log, machine.core.silence(cpu(0)).since.0);
            pass(machine, TICK / 4);
        };
        drop(machine.spawn_on(cpu(0), look).expect("it runs"));
    }
    let start = machine.now().0;
    assert_eq!(lane.turn().items, 2);
    assert_eq!(noted(&log)[1], start + TICK / 4);
    drop(lane);
    machine.shutdown();
}

/// Goal: a real-time task that is bound has not moved when it runs there for the first time. Method: it is
/// started by a task on another lane.
#[test]
fn a_bound_task_has_not_moved() {
    let machine = still(quiet());
    let mut lanes = [0, 1].map(|index| Other::claim(machine, index));
    let start = async move {
        let options = TaskOptions::new().realtime(Priority::LOWEST).lane(cpu(1));
        drop(machine.spawn_with(options, async {}).expect("it runs"));
    };
    drop(machine.spawn_on(cpu(0), start).expect("it runs"));
    assert_eq!(lanes.each_mut().map(|lane| lane.act(|lane| lane.turn().items)), [1, 1]);
    let counted = machine.metrics().cpus[1].clone();
    assert_eq!((counted.realtime_polls, counted.migrations), (1, 0));
    lanes.into_iter().for_each(Other::leave);
    machine.shutdown();
}

/// Goal: a real-time task that runs on another lane than before counts as moved there, once. Method: it runs
/// on lane 0, which leaves, and then twice on lane 1.
#[test]
fn a_real_time_task_that_moves_is_counted() {
    let machine = still(quiet());
    let (sender, wakers) = channel();
    let sender = Mutex::new(sender);
    let task = poll_fn(move |context| {
        let sender = sender.lock().expect("no panic");
        sender.send(context.waker().clone()).expect("the test waits");
        Poll::<()>::Pending
    });
    drop(machine.spawn_rt(Priority::LOWEST, task).expect("it runs"));
    for (index, polls) in [(0, 1), (1, 2)] {
        let mut lane = claim(machine, index);
        for _ in 0..polls {
            assert_eq!(lane.turn().items, 1);
            wakers.try_recv().expect("it was polled").wake();
        }
        drop(lane);
    }
    let counted = |index: usize| {
        let counted = machine.metrics().cpus[index].clone();
        (counted.realtime_polls, counted.migrations)
    };
    assert_eq!([counted(0), counted(1)], [(1, 0), (2, 1)]);
    machine.shutdown();
}
