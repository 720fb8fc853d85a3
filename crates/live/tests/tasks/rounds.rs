//! Rounds of softirqs, one at a time: the lane turns when the test says so, and ksoftirqd is kept where it
//! is.

use crate::scene::{Gate, builder, cpu, wait_for};
use quietcore_live::{
    Cpu, Machine, MachineBuilder,
    metrics::CpuMetrics,
    softirq::{Awareness, Runner, Vector},
    task::{Priority, TaskOptions, WorkOptions},
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// No thread looks after lanes, and what is left to ksoftirqd stays there.
fn quiet() -> MachineBuilder {
    builder().stall_after(Duration::MAX).defer_limit(Duration::from_secs(1000))
}

fn first(machine: &Machine) -> CpuMetrics {
    machine.metrics().cpus.into_iter().next().expect("it has lanes")
}

/// `builder`, with a vector IRQ_POLL that keeps ksoftirqd once it has got there: from the lane it goes there
/// by being raised again.
fn with_keeper(builder: MachineBuilder, gate: &Gate) -> (MachineBuilder, Receiver<()>) {
    let (gate, (sender, began)) = (gate.clone(), channel());
    let builder = builder.softirq(Vector::IRQ_POLL, move |run| match run.runner() {
        Runner::Lane => run.raise_again(),
        Runner::Ksoftirqd => {
            sender.send(()).expect("the test waits");
            gate.wait();
        }
    });
    (builder, began)
}

/// Goal: what was left to ksoftirqd and is done is the lane's again. Method: a vector that is raised again
/// and again until ksoftirqd has it; then once more, after the lane has run another one, and after it has run
/// none. A third one, which ksoftirqd runs next, tells that it is done with the first.
#[test]
fn what_ksoftirqd_did_is_the_lanes_again() {
    let is_greedy = Arc::new(AtomicBool::new(true));
    let runs = Arc::new(AtomicU64::new(0));
    let (greedy, counts) = (Arc::clone(&is_greedy), Arc::clone(&runs));
    let (sender, told) = channel();
    let machine = quiet()
        .softirq(Vector::HI, |_| ())
        .softirq(Vector::NET_TX, move |run| {
            sender.send(run.runner()).expect("the test waits");
        })
        .softirq(Vector::BLOCK, move |run| match run.runner() {
            Runner::Ksoftirqd => {
                Machine::current().raise(run.cpu(), Vector::NET_TX).expect("it has a handler");
            }
            Runner::Lane => {
                counts.fetch_add(1, Ordering::SeqCst);
                if greedy.load(Ordering::SeqCst) {
                    run.raise_again();
                }
            }
        })
        .start()
        .expect("starts");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    for has_other in [true, false] {
        is_greedy.store(true, Ordering::SeqCst);
        machine.raise(cpu(0), Vector::BLOCK).expect("it has a handler");
        lane.turn();
        assert_eq!(wait_for(&told), Runner::Ksoftirqd);
        is_greedy.store(false, Ordering::SeqCst);
        if has_other {
            machine.raise(cpu(0), Vector::HI).expect("it has a handler");
        } else {
            drop(machine.spawn_on(cpu(0), async {}));
        }
        lane.turn();
        let before = runs.load(Ordering::SeqCst);
        machine.raise(cpu(0), Vector::BLOCK).expect("it has a handler");
        lane.turn();
        assert_eq!(runs.load(Ordering::SeqCst), before + 1, "after another one: {has_other}");
    }
    drop(lane);
    machine.shutdown();
}

/// Goal: what was left to ksoftirqd the lane does not take back before the limit. Method: ksoftirqd is kept
/// while a vector is left to it; the lane turns on.
#[test]
fn what_was_given_stays_given() {
    let gate = Gate::default();
    let runs = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&runs);
    let (builder, began) = with_keeper(quiet(), &gate);
    let machine = builder
        .softirq(Vector::BLOCK, move |run| {
            if run.runner() == Runner::Lane {
                counts.fetch_add(1, Ordering::SeqCst);
                run.raise_again();
            }
        })
        .start()
        .expect("starts");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    machine.raise(cpu(0), Vector::IRQ_POLL).expect("it has a handler");
    lane.turn();
    wait_for(&began);
    machine.raise(cpu(0), Vector::BLOCK).expect("it has a handler");
    lane.turn();
    let before = runs.load(Ordering::SeqCst);
    assert!(before > 0);
    for _ in 0..3 {
        drop(machine.spawn_on(cpu(0), async {}));
        lane.turn();
    }
    assert_eq!(runs.load(Ordering::SeqCst), before, "it is ksoftirqd's");
    gate.open();
    drop(lane);
    machine.shutdown();
}

/// Goal: past the limit the lane waits for what ksoftirqd is in the middle of. Method: no time is allowed at
/// all, and ksoftirqd is kept.
#[test]
fn a_lane_waits_for_what_is_overdue() {
    let gate = Gate::default();
    let (builder, began) = with_keeper(quiet().defer_limit(Duration::ZERO), &gate);
    let machine = builder.start().expect("starts");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    machine.raise(cpu(0), Vector::IRQ_POLL).expect("it has a handler");
    lane.turn();
    wait_for(&began);
    assert_eq!(first(machine).donations, 0);
    drop(machine.spawn_on(cpu(0), async {}));
    lane.turn();
    assert!(first(machine).donations > 0);
    gate.open();
    drop(lane);
    machine.shutdown();
}

/// Goal: a real-time task that waits goes before long vectors where the machine defers, also if the lane has
/// just begun its turn. Method: both are there before that.
#[test]
fn long_ones_wait_for_a_task_that_waits() {
    for (awareness, deferred) in [(Awareness::None, 0), (Awareness::Defer, 1)] {
        let machine = quiet().awareness(awareness).softirq(Vector::NET_RX, |_| ()).start().expect("starts");
        let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
        let options = TaskOptions::new().realtime(Priority::LOWEST).lane(cpu(0));
        drop(machine.spawn_with(options, async {}).expect("it runs"));
        machine.raise(cpu(0), Vector::NET_RX).expect("it has a handler");
        lane.turn();
        assert_eq!(first(machine).deferred, deferred, "{awareness:?}");
        drop(lane);
        machine.shutdown();
    }
}

/// A lane that takes what others give it, and does not turn before `over`.
fn idle_lane(machine: &'static Machine, index: u64, over: Receiver<()>) -> JoinHandle<()> {
    let (sender, claimed) = channel();
    let thread = thread::spawn(move || {
        let mut lane = Cpu::claim(machine, cpu(index)).expect("a free lane");
        lane.turn();
        sender.send(()).expect("the test waits");
        let _ = over.recv();
        drop(lane);
    });
    wait_for(&claimed);
    thread
}

/// Goal: a task begins on the lane that started it. Method: two lanes that nothing holds up; the test's own
/// starts it, and the other does not turn.
#[test]
fn a_task_begins_where_it_was_started() {
    let machine = builder().stall_after(Duration::from_secs(100)).start().expect("starts");
    let (end, over) = channel();
    let other = idle_lane(machine, 0, over);
    let mut lane = Cpu::claim(machine, cpu(1)).expect("a free lane");
    lane.turn();
    let task = machine.spawn(async {}).expect("it runs");
    lane.turn();
    assert!(task.is_finished(), "it was given to another lane");
    drop((lane, end));
    other.join().expect("no panic");
    machine.shutdown();
}

/// Goal: work runs again where it ran last. Method: it runs on lane 1 as no other is driven, and is queued
/// again when lane 0 takes items, too, and does not turn.
#[test]
fn work_stays_on_its_lane() {
    let machine = builder().stall_after(Duration::from_secs(100)).start().expect("starts");
    let work = machine.work(WorkOptions::new(), || {}).expect("a lane");
    let mut lane = Cpu::claim(machine, cpu(1)).expect("a free lane");
    assert_eq!(work.queue(), Ok(true));
    lane.turn();
    assert!(!work.is_pending());
    let (end, over) = channel();
    let other = idle_lane(machine, 0, over);
    lane.turn();
    assert_eq!(work.queue(), Ok(true));
    lane.turn();
    assert!(!work.is_pending(), "it was given to another lane");
    drop((lane, end));
    other.join().expect("no panic");
    machine.shutdown();
}

/// Goal: a turn ends when its time is used up, however few items it ran. Method: four tasks, each of which
/// takes longer than that.
#[test]
fn a_turn_ends_with_its_time() {
    let machine = builder().stall_after(Duration::from_secs(100)).start().expect("starts");
    let mut lane = Cpu::claim(machine, cpu(1)).expect("a free lane");
    let long = || async { thread::sleep(Duration::from_millis(5)) };
    let tasks: Vec<_> = (0..4).map(|_| machine.spawn(long()).expect("it runs")).collect();
    let stats = lane.turn();
    assert_eq!((stats.items, stats.has_more), (1, true));
    while lane.turn().has_more {}
    assert!(tasks.iter().all(|task| task.is_finished()));
    drop(lane);
    machine.shutdown();
}

/// Goal: what a normal task raises is not deferred for a real-time task that has ended before it. Method:
/// both in one turn.
#[test]
fn what_was_raised_after_a_realtime_task_is_not_deferred() {
    let builder = quiet().softirq(Vector::NET_RX, |_| ());
    let machine = builder.start().expect("starts");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let options = TaskOptions::new().lane(cpu(0));
    let raise = async { machine.raise(cpu(0), Vector::NET_RX).expect("it has a handler") };
    drop(machine.spawn_with(options, raise).expect("it runs"));
    drop(machine.spawn_with(options.realtime(Priority::LOWEST), async {}).expect("it runs"));
    let ran = lane.turn();
    assert_eq!((ran.items, ran.softirqs, first(machine).deferred), (2, 1, 0));
    drop(lane);
    machine.shutdown();
}

/// Goal: long vectors that were raised while a real-time task ran are deferred as if they had interrupted it,
/// also when none waits after it. Method: a task of either kind raises one.
#[test]
fn what_a_realtime_task_raised_is_deferred() {
    for (priority, deferred) in [(None, 0), (Some(Priority::LOWEST), 1)] {
        let builder = quiet().awareness(Awareness::Defer).softirq(Vector::NET_RX, |_| ());
        let machine = builder.start().expect("starts");
        let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
        let options = TaskOptions::new().lane(cpu(0));
        let options = priority.map_or(options, |priority| options.realtime(priority));
        let raise = async { machine.raise(cpu(0), Vector::NET_RX).expect("it has a handler") };
        drop(machine.spawn_with(options, raise).expect("it runs"));
        lane.turn();
        assert_eq!(first(machine).deferred, deferred, "{priority:?}");
        drop(lane);
        machine.shutdown();
    }
}
