//! One rule each, without chance: lanes turn when the test says so, no thread is ever stuck, and what
//! happened is asked right afterwards.

use crate::scene::{Gate, builder, cpu, wait_for};
use quietcore_live::{
    Cpu, MachineBuilder, Nanos, Precision, TimerOptions,
    lane::{IdleUntil, WaitBy},
    task::{Priority, TaskOptions},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

/// Lanes that no thread looks after, and ticks that are known.
fn quiet() -> MachineBuilder {
    builder().stall_after(Duration::MAX).tick(TICK)
}

const TICK: Duration = Duration::from_millis(1);

/// Goal: nothing goes to a lane whose thread blocks. Method: a task is started meanwhile, from there; the
/// other lane runs it in one turn, as its own.
#[test]
fn a_lane_that_blocks_gets_nothing() {
    let machine = quiet().start().expect("starts");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let (gate, (sender, told)) = (Gate::default(), channel());
    let turns = gate.clone();
    let other = thread::spawn(move || {
        let mut other = Cpu::claim(machine, cpu(1)).expect("a free lane");
        sender.send(()).expect("the test waits");
        turns.wait();
        other.turn();
        sender.send(()).expect("the test waits");
    });
    wait_for(&told);
    lane.block_in_place(|| {
        drop(machine.spawn(async {}));
        gate.open();
        wait_for(&told);
        let metrics = machine.metrics();
        assert_eq!((metrics.cpus[1].items, metrics.cpus[1].stolen), (1, 0));
    });
    drop(lane);
    other.join().expect("no panic");
    machine.shutdown();
}

/// Goal: more than a busy lane will run next wakes one that sleeps. Method: that one is idle as an embedder
/// is; its descriptor is readable when the others have been left.
#[test]
fn what_waits_behind_others_wakes_a_lane() {
    let machine = quiet().start().expect("starts");
    let busy = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let (gate, (sender, told)) = (Gate::default(), channel());
    let looks = gate.clone();
    let other = thread::spawn(move || {
        let mut other = Cpu::claim_with(machine, cpu(1), WaitBy::KickFd).expect("a free lane");
        other.turn();
        let _ = other.enter_idle();
        sender.send(false).expect("the test waits");
        looks.wait();
        let fd = other.kick_fd().expect("it was claimed with one");
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&at_once)).expect("a descriptor");
        sender.send(count == 1).expect("the test waits");
    });
    wait_for(&told);
    for _ in 0..3 {
        drop(machine.spawn(async {}));
    }
    gate.open();
    assert!(wait_for(&told), "it was woken");
    other.join().expect("no panic");
    drop(busy);
    machine.shutdown();
}

/// Goal: a lane with nothing to do takes what waits behind a task that runs, with a priority and without.
/// Method: one lane is kept with one of each behind; the other turns for ten ticks.
#[test]
fn a_lane_takes_what_another_does_not_get_to() {
    let machine = quiet().start().expect("starts");
    let (gate, (sender, told)) = (Gate::default(), channel());
    let holds = gate.clone();
    let other = thread::spawn(move || {
        let mut other = Cpu::claim(machine, cpu(0)).expect("a free lane");
        let holder = machine.spawn_on(cpu(0), async move {
            drop(machine.spawn_rt(Priority::LOWEST, async {}));
            drop(machine.spawn(async {}));
            sender.send(()).expect("the test waits");
            holds.wait();
        });
        drop(holder.expect("it runs"));
        other.turn();
    });
    wait_for(&told);
    let mut lane = Cpu::claim(machine, cpu(1)).expect("a free lane");
    let end = Nanos(machine.now().0 + 10 * TICK.as_nanos() as u64);
    while machine.now() < end {
        lane.turn();
    }
    lane.turn();
    let metrics = machine.metrics();
    assert_eq!((metrics.cpus[1].pulled, metrics.cpus[1].stolen), (1, 1));
    gate.open();
    other.join().expect("no panic");
    drop(lane);
    machine.shutdown();
}

/// Goal: a real-time task that waits behind another one goes to a lane that is free, and the lane that gave
/// it counts that. Method: two wait with the only lane; another one is open when it begins to turn.
#[test]
fn a_lane_gives_away_what_waits_behind_a_real_time_task() {
    let machine = quiet().start().expect("starts");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let tasks = [(); 2].map(|()| machine.spawn_rt(Priority::LOWEST, async {}).expect("it runs"));
    let (gate, (sender, told)) = (Gate::default(), channel());
    let turns = gate.clone();
    let other = thread::spawn(move || {
        let mut other = Cpu::claim(machine, cpu(1)).expect("a free lane");
        sender.send(()).expect("the test waits");
        turns.wait();
        other.turn();
    });
    wait_for(&told);
    lane.turn();
    let counted = |cpu: usize| {
        let counted = machine.metrics().cpus[cpu].clone();
        (counted.realtime_polls, counted.pushed, counted.pulled)
    };
    assert_eq!([counted(0), counted(1)], [(1, 1, 0), (0, 0, 0)]);
    gate.open();
    other.join().expect("no panic");
    assert_eq!([counted(0), counted(1)], [(1, 1, 0), (1, 0, 0)]);
    assert!(tasks.iter().all(|task| task.is_finished()));
    drop(lane);
    machine.shutdown();
}

/// Goal: timers that are due go before the next item. Method: a task arms one for now and wakes itself; it is
/// polled again after the timer.
#[test]
fn a_timer_goes_before_the_next_item() {
    let machine = quiet().start().expect("starts");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let log = Arc::new(Mutex::new(Vec::new()));
    let (of_timer, of_task) = (Arc::clone(&log), Arc::clone(&log));
    let exact = TimerOptions::new().pinned().precision(Precision::Exact);
    let timer = machine.timer(exact, move |_| of_timer.lock().expect("no panic").push("timer"));
    let task = machine.spawn_on(
        cpu(0),
        core::future::poll_fn(move |context| {
            let mut log = of_task.lock().expect("no panic");
            log.push("task");
            if log.len() > 1 {
                return Poll::Ready(());
            }
            timer.arm_on(cpu(0), machine.now()).expect("it has a lane");
            context.waker().wake_by_ref();
            Poll::Pending
        }),
    );
    let task = task.expect("it runs");
    while !task.is_finished() {
        lane.turn();
    }
    assert_eq!(*log.lock().expect("no panic"), ["task", "timer", "task"]);
    drop(lane);
    machine.shutdown();
}

/// Goal: a lane does not wait while something is left for it. Method: a task is started before it goes idle,
/// again and again; it is told to turn at once, and the task ends in that turn.
#[test]
fn no_wait_while_something_is_left() {
    let machine = quiet().start().expect("starts");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    for _ in 0..20 {
        let task = machine.spawn_on(cpu(0), async {}).expect("it runs");
        let idle = lane.enter_idle();
        assert!(matches!(idle, IdleUntil::Stay { until } if until <= machine.now()), "{idle:?}");
        lane.turn();
        assert!(task.is_finished());
    }
    drop(lane);
    machine.shutdown();
}

/// Goal: a task that was aborted is not polled again, and dropped by its lane's next turn. Method: one that
/// counts its polls.
#[test]
fn an_aborted_task_is_not_polled() {
    let machine = quiet().start().expect("starts");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let polls = Arc::new(Mutex::new(0));
    let counts = Arc::clone(&polls);
    let task = machine.spawn_on(
        cpu(0),
        core::future::poll_fn(move |_| {
            *counts.lock().expect("no panic") += 1;
            Poll::<()>::Pending
        }),
    );
    let task = task.expect("it runs");
    lane.turn();
    task.abort();
    lane.turn();
    assert_eq!((*polls.lock().expect("no panic"), Arc::strong_count(&polls)), (1, 1));
    assert!(task.is_finished());
    drop(lane);
    machine.shutdown();
}

/// Goal: a shutdown drops the futures of tasks that wait and are in no queue. Method: one bound to a lane,
/// one with a priority, and a free one, each polled once before.
#[test]
fn a_shutdown_reaches_tasks_that_wait() {
    let machine = quiet().start().expect("starts");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let kept = Arc::new(());
    let normal = TaskOptions::new();
    for options in [normal, normal.lane(cpu(0)), normal.realtime(Priority::LOWEST)] {
        let held = Arc::clone(&kept);
        let task = async move {
            let _held = held;
            core::future::pending::<()>().await;
        };
        drop(machine.spawn_with(options, task).expect("it runs"));
    }
    while lane.turn().has_more {}
    assert_eq!((machine.metrics().cpus[0].items, Arc::strong_count(&kept)), (3, 4));
    machine.shutdown();
    assert_eq!(Arc::strong_count(&kept), 1, "all of them were dropped");
}
