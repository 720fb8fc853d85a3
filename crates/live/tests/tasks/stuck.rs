//! A lane that is stuck holds up nothing but what is bound to it.

use crate::scene::{Gate, builder, cpu, drive, eventually, lane_here, lanes, wait_for};
use futures_executor::block_on;
use quietcore_live::{
    Cpu, Machine,
    lane::IdleUntil,
    task::{Priority, TaskOptions, WorkOptions},
};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Keeps the lane `index` in a task until the gate is opened.
fn keep(machine: &'static Machine, index: u64, gate: &Gate) {
    let (sender, began) = channel();
    let gate = gate.clone();
    let holder = machine.spawn_on(cpu(index), async move {
        sender.send(()).expect("the test waits");
        gate.wait();
    });
    drop(holder.expect("it runs"));
    wait_for(&began);
}

/// Goal: tasks and work that wait on a lane that got stuck run elsewhere; what is bound to it waits. Method:
/// a task of the lane leaves each kind in its lane's own queue, and then does not return.
#[test]
fn what_waits_there_goes_elsewhere() {
    for _ in 0..10 {
        let machine = lanes().start().expect("starts");
        let gate = Gate::default();
        let (sender, ran) = channel();
        let bound_sender = sender.clone();
        let work_sender = sender.clone();
        let work = machine.work(WorkOptions::new(), move || {
            work_sender.send(("work", lane_here())).expect("the test waits");
        });
        let (work, holds) = (work.expect("a lane"), gate.clone());
        let tell = move |name: &'static str| {
            let sender = sender.clone();
            async move { sender.send((name, lane_here())).expect("the test waits") }
        };
        let bound = async move { bound_sender.send(("bound", lane_here())).expect("the test waits") };
        let holder = machine.spawn_on(cpu(0), async move {
            drop(machine.spawn_on(cpu(0), bound));
            drop(machine.spawn(tell("normal")));
            drop(machine.spawn_with(TaskOptions::new().realtime(Priority::LOWEST), tell("rt")));
            work.queue().expect("it runs");
            holds.wait();
        });
        drop(holder.expect("it runs"));
        let mut elsewhere = [wait_for(&ran), wait_for(&ran), wait_for(&ran)];
        elsewhere.sort_unstable();
        let kinds = elsewhere.map(|(kind, _)| kind);
        assert_eq!(kinds, ["normal", "rt", "work"]);
        // Mostly on lane 1; on a spare if that has lost its CPU for long.
        assert!(elsewhere.iter().all(|(_, lane)| *lane != Some(0)), "{elsewhere:?}");
        assert!(ran.try_recv().is_err(), "the bound one waits");
        gate.open();
        assert_eq!(wait_for(&ran), ("bound", Some(0)));
        machine.shutdown();
    }
}

/// Goal: one task alone, left on a lane that gets stuck while the other sleeps, is found. Method: the other
/// one sleeps for long before; nothing else is armed.
#[test]
fn one_that_is_left_alone_is_found() {
    let machine = lanes().start().expect("starts");
    for _ in 0..20 {
        let (gate, (sender, ran)) = (Gate::default(), channel());
        let holds = gate.clone();
        let holder = machine.spawn_on(cpu(0), async move {
            drop(machine.spawn(async move { sender.send(lane_here()).expect("the test waits") }));
            holds.wait();
        });
        drop(holder.expect("it runs"));
        assert_ne!(wait_for(&ran), Some(0), "it is kept");
        gate.open();
    }
    machine.shutdown();
}

/// Goal: a lane that is about to sleep is told of what waits on a lane that the sentinel has marked, though
/// it turned before that came. Method: a task of lane 0 leaves another one after lane 1 has looked for the
/// last time, and does not return; lane 1 waits after the sentinel has looked. Where the host does not let
/// lane 1 turn in time it is marked, too, and it is tried again.
#[test]
fn a_lane_that_has_looked_is_told() {
    while !check_is_told_after_its_look() {}
}

/// Whether the host let lane 1 turn in time.
fn check_is_told_after_its_look() -> bool {
    let machine = builder().stall_after(Duration::from_millis(200)).start().expect("starts");
    let (_lane, ()) = drive(machine, 0, |_| ());
    let mut lane = Cpu::claim(machine, cpu(1)).expect("it is free");
    while !matches!(lane.enter_idle(), IdleUntil::Sleep { .. }) {
        lane.exit_idle();
    }
    let (gate, (sender, began), (leave, may_leave), (tell, ran)) =
        (Gate::default(), channel(), channel::<()>(), channel());
    let holds = gate.clone();
    let holder = machine.spawn_on(cpu(0), async move {
        sender.send(()).expect("the test waits");
        may_leave.recv().expect("the test tells");
        drop(machine.spawn(async move { tell.send(thread::current().id()) }));
        holds.wait();
    });
    drop(holder.expect("it runs"));
    wait_for(&began);
    thread::sleep(Duration::from_millis(100));
    let _ = lane.turn();
    leave.send(()).expect("the task waits");
    eventually("lane 0 is reported", || !machine.stalls().is_empty());
    let is_alone = || machine.stalls().iter().all(|report| report.cpu == cpu(0));
    let mut is_in_time = is_alone();
    if is_in_time {
        // The report may be seen before the lane is told, so the lane waits for that; not for ever.
        let (unparker, (waited, is_up)) = (lane.unparker(), channel::<()>());
        let limit = thread::spawn(move || {
            let is_over = is_up.recv_timeout(Duration::from_secs(5)) == Err(RecvTimeoutError::Timeout);
            unparker.unpark();
            is_over
        });
        lane.park();
        drop(waited);
        let is_over = limit.join().expect("no panic");
        is_in_time = is_alone();
        assert!(!(is_in_time && is_over), "it is told");
    }
    if is_in_time {
        eventually("it takes the task", || {
            let _ = lane.turn();
            ran.try_recv().is_ok_and(|by| by == thread::current().id())
        });
    }
    gate.open();
    drop(lane);
    machine.shutdown();
    is_in_time
}

/// Goal: tasks that are woken while their lane is stuck run elsewhere, also from timers. Method: sleeping
/// tasks whose lane is kept when they are due.
#[test]
fn the_timer_is_on_time_and_so_is_its_task() {
    let machine = lanes().start().expect("starts");
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let task = machine.spawn(async {
                quietcore_live::time::sleep(Duration::from_millis(20)).await;
                lane_here()
            });
            task.expect("it runs")
        })
        .collect();
    let gate = Gate::default();
    keep(machine, 0, &gate);
    for task in tasks {
        assert_ne!(block_on(task).expect("it ends"), Some(0), "it is kept");
    }
    gate.open();
    machine.shutdown();
}

/// Goal: when every lane is stuck a spare runs what is not bound. Method: both are kept.
#[test]
fn a_spare_runs_what_no_lane_does() {
    let machine = lanes().start().expect("starts");
    let gate = Gate::default();
    keep(machine, 0, &gate);
    keep(machine, 1, &gate);
    let task = machine.spawn(async { lane_here() }).expect("it runs");
    assert_eq!(block_on(task).expect("it ends"), None, "on no lane");
    let slept = machine.spawn(async {
        quietcore_live::time::sleep(Duration::from_millis(3)).await;
        lane_here()
    });
    assert_eq!(block_on(slept.expect("it runs")).expect("it ends"), None, "on no lane");
    gate.open();
    machine.shutdown();
}

/// Goal: a lane that leaves leaves nothing behind but what is bound to it. Method: a thread gives its CPU
/// back with tasks in its queue.
#[test]
fn a_lane_that_leaves() {
    let machine = builder().start().expect("starts");
    let first = quietcore_live::Cpu::claim(machine, cpu(0)).expect("a free lane");
    let free = machine.spawn(async { lane_here().is_none() }).expect("it runs");
    let bound = machine.spawn_on(cpu(0), async { 2 }).expect("it runs");
    drop(first);
    let (_lane, ()) = drive(machine, 1, |_| ());
    assert!(block_on(free).expect("it ends"));
    assert!(!bound.is_finished());
    let (_back, ()) = drive(machine, 0, |_| ());
    assert_eq!(block_on(bound).expect("it ends"), 2);
    machine.shutdown();
}
