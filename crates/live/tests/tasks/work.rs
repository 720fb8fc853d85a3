//! Work: queued, it runs; never twice at a time; where it may.

use crate::scene::{Gate, builder, cpu, eventually, lane_here, lanes, wait_for};
use futures_executor::block_on;
use quietcore_live::{
    Cpu, Machine, OnPanic, TimerOptions,
    task::{DelayedWork, SpawnError, WorkOptions},
    timer::WouldBlock,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// Goal: after the last call of `queue` the work runs, and sees what was left before; it never overlaps
/// itself. Method: four threads leave and queue; bound and unbound.
#[test]
fn nothing_is_lost() {
    let machine = lanes().start().expect("starts");
    for options in [WorkOptions::new(), WorkOptions::new().bound(cpu(1))] {
        let [left, found, inside]: [Arc<AtomicU64>; 3] = Default::default();
        let (leaves, finds) = (Arc::clone(&left), Arc::clone(&found));
        let run = move || {
            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "twice at a time");
            finds.fetch_add(leaves.swap(0, Ordering::Relaxed), Ordering::Relaxed);
            inside.fetch_sub(1, Ordering::Relaxed);
        };
        let work = machine.work(options, run).expect("it has lanes");
        const EACH: u64 = 10_000;
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        left.fetch_add(1, Ordering::Relaxed);
                        work.queue().expect("it runs");
                    }
                });
            }
        });
        work.flush().expect("this thread may wait");
        assert_eq!(found.load(Ordering::Relaxed), 4 * EACH, "{options:?}");
    }
    machine.shutdown();
}

/// Goal: bound work runs on its lane only, also if that is isolated; unbound work never there. Method: both
/// are queued from anywhere while one lane is isolated.
#[test]
fn where_it_may() {
    let machine = lanes().start().expect("starts");
    machine.set_isolated(&"1".parse().expect("a list")).expect("the other is left");
    let (sender, ran) = channel();
    let send = Arc::new(move |name: &'static str| {
        sender.send((name, lane_here())).expect("the test waits");
    });
    let also = Arc::clone(&send);
    let bound = machine.work(WorkOptions::new().bound(cpu(1)), move || send("bound")).expect("a lane");
    let unbound = machine.work(WorkOptions::new(), move || also("unbound")).expect("a lane");
    let queues = unbound.clone();
    for _ in 0..50 {
        bound.queue().expect("it runs");
        assert_eq!(wait_for(&ran), ("bound", Some(1)));
        unbound.queue().expect("it runs");
        assert_ne!(wait_for(&ran), ("unbound", Some(1)), "lane 0, or a spare while that has lost its CPU");
        // Also when the isolated lane itself asks for it.
        let queues = queues.clone();
        let task = machine.spawn_on(cpu(1), async move { queues.queue() }).expect("it runs");
        assert_eq!(block_on(task).expect("it ends"), Ok(true));
        assert_ne!(wait_for(&ran), ("unbound", Some(1)), "lane 0, or a spare while that has lost its CPU");
    }
    machine.shutdown();
}

/// Goal: what is cancelled does not run, and a run that is under way is waited for, but not by lanes. Method:
/// a run is kept while each is tried.
#[test]
fn cancelling() {
    let machine = lanes().on_panic(OnPanic::Continue).start().expect("starts");
    let gate = Gate::default();
    let (holds, (sender, began)) = (gate.clone(), channel());
    let work = machine.work(WorkOptions::new().bound(cpu(0)), move || {
        sender.send(()).expect("the test waits");
        holds.wait();
    });
    let work = work.expect("a lane");
    assert!(work.queue().expect("it runs"));
    wait_for(&began);
    assert!(work.queue().expect("it runs"), "once more, after this run");
    assert!(!work.queue().expect("it runs"), "it waits already");
    let on_lane = work.clone();
    let task = machine.spawn_on(cpu(1), async move { on_lane.cancel_sync() }).expect("it runs");
    assert_eq!(block_on(task).expect("it ends"), Err(WouldBlock), "and it was cancelled");
    let waits = work.clone();
    let waiter = thread::spawn(move || waits.cancel_sync());
    gate.open();
    assert_eq!(waiter.join().expect("no panic"), Ok(false));
    assert!(began.try_recv().is_err(), "it did not run again");
    let panics = machine.work(WorkOptions::new(), || panic!("on purpose")).expect("a lane");
    panics.queue().expect("it runs");
    panics.flush().expect("this thread may wait");
    assert_eq!(machine.metrics().sum(|cpu| cpu.panics), 1);
    machine.shutdown();
    assert_eq!(work.queue(), Err(SpawnError::NotRunning));
}

/// Goal: who waits for work that is cancelled is told, though nothing runs. Method: the lane that it is bound
/// to is kept meanwhile, and comes free after the answer.
#[test]
fn a_flush_ends_with_a_cancel() {
    let machine = lanes().start().expect("starts");
    let gate = Gate::default();
    let (keeps, (began, has_begun), (sender, ended)) = (gate.clone(), channel(), channel());
    let keep = machine.spawn_on(cpu(0), async move {
        began.send(()).expect("the test waits");
        keeps.wait();
    });
    wait_for(&has_begun);
    let work = machine.work(WorkOptions::new().bound(cpu(0)), || panic!("it was cancelled")).expect("a lane");
    assert!(work.queue().expect("it runs"));
    let waits = work.clone();
    let waiter = thread::spawn(move || sender.send(waits.flush()).expect("the test waits"));
    // It may come before the wait; then it shows less.
    thread::sleep(Duration::from_millis(20));
    assert!(work.cancel());
    assert_eq!(wait_for(&ended), Ok(()));
    gate.open();
    waiter.join().expect("no panic");
    block_on(keep.expect("it runs")).expect("it ends");
    machine.shutdown();
}

/// Goal: delayed work runs after its delay, once for each, and not if it was cancelled. Method: one delay
/// replaces another; one is cancelled.
#[test]
fn delayed() {
    let machine = lanes().start().expect("starts");
    let (sender, ran) = channel();
    let work = machine.delayed_work(WorkOptions::new(), move || {
        sender.send(machine.now()).expect("the test waits");
    });
    let work = work.expect("a lane");
    let before = machine.now();
    assert!(!work.queue_after(Duration::from_secs(100)).expect("it runs"));
    assert!(work.queue_after(Duration::from_millis(3)).expect("it runs"));
    assert!(wait_for(&ran).0 >= before.0 + 3_000_000);
    assert!(!work.queue_after(Duration::from_secs(100)).expect("it runs"));
    assert_eq!(work.cancel_sync(), Ok(true));
    assert_eq!(work.cancel_sync(), Ok(false));
    eventually("nothing waits", || !work.work().is_pending());
    assert!(ran.try_recv().is_err());
    machine.shutdown();
}

/// Goal: cancelling delayed work takes back both, what waits for its moment and what waits for a lane.
/// Method: no thread drives a lane; both are pending.
#[test]
fn cancelling_takes_back_the_moment_and_the_run() {
    let machine = builder().start().expect("starts");
    let work = machine.delayed_work(WorkOptions::new(), || {}).expect("a lane");
    assert!(!work.queue_after(Duration::from_secs(100)).expect("it runs"));
    assert!(work.work().queue().expect("it runs"));
    assert!(work.cancel());
    assert!(!work.work().is_pending(), "the run still waits");
    assert!(!work.cancel());
    assert!(!work.queue_after(Duration::from_secs(100)).expect("it runs"));
    assert!(work.cancel(), "it waited for its moment");
    machine.shutdown();
}

/// Goal: a run is waited for, also when the machine ends meanwhile: its closure may use what the caller frees
/// then. Work that only waits is not. Method: a run on a lane of this program is kept beyond the shutdown.
#[test]
fn a_run_outlives_the_machine() {
    let machine = builder().start().expect("starts");
    let gate = Gate::default();
    let (holds, (sender, began)) = (gate.clone(), channel());
    let work = machine.work(WorkOptions::new().bound(cpu(0)), move || {
        sender.send(()).expect("the test waits");
        holds.wait();
    });
    let (work, waits) = (work.expect("a lane"), machine.work(WorkOptions::new().bound(cpu(1)), || ()));
    assert!(work.queue().expect("it runs"));
    let lane = thread::spawn(move || _ = Cpu::claim(machine, cpu(0)).expect("it is free").turn());
    wait_for(&began);
    let (canceller, (sender, ended)) = (work.clone(), channel());
    thread::spawn(move || sender.send(canceller.cancel_sync()).expect("the test waits"));
    assert!(waits.as_ref().expect("a lane").queue().expect("it runs"));
    machine.shutdown();
    // If the other thread is slower than this, it shows less.
    assert!(ended.recv_timeout(Duration::from_millis(50)).is_err(), "it runs");
    assert_eq!(waits.expect("a lane").flush(), Ok(()));
    gate.open();
    assert_eq!(wait_for(&ended), Ok(false));
    lane.join().expect("no panic");
}

/// Goal: a thread that must not wait is told that a run goes on, also when there was something to take back.
/// Method: delayed work cancels itself while it runs, with a moment ahead, with a run ahead, and without.
#[test]
fn what_was_taken_back_hides_no_run() {
    let machine = lanes().on_panic(OnPanic::Continue).start().expect("starts");
    let (own, (sender, answers)) = (Arc::new(OnceLock::<DelayedWork>::new()), channel());
    let itself = Arc::clone(&own);
    let cancels = move || {
        let work = itself.get().expect("it was queued");
        assert!(!work.queue_after(Duration::from_secs(3600)).expect("it runs"));
        sender.send(work.cancel_sync()).expect("the test waits");
        assert!(work.work().queue().expect("it runs"));
        sender.send(work.cancel_sync()).expect("the test waits");
        sender.send(work.cancel_sync()).expect("the test waits");
    };
    let work = machine.delayed_work(WorkOptions::new(), cancels).expect("a lane");
    assert!(own.set(work).is_ok());
    let work = own.get().expect("it was set");
    assert!(work.work().queue().expect("it runs"));
    assert_eq!([(); 3].map(|()| wait_for(&answers)), [Err(WouldBlock); 3]);
    work.work().flush().expect("this thread may wait");
    assert_eq!((work.cancel_sync(), machine.metrics().sum(|cpu| cpu.panics)), (Ok(false), 0));
    machine.shutdown();
}

/// Goal: a flush waits for work that waits, and for its run. Method: the lane is kept until one flush waits,
/// and then the run is until another one does.
#[test]
fn a_flush_waits_for_the_run() {
    let machine = lanes().start().expect("starts");
    let [lane, run] = [Gate::default(), Gate::default()];
    let (keeps, holds) = (lane.clone(), run.clone());
    let (began, has_begun) = channel();
    let keep = machine.spawn_on(cpu(0), async move { keeps.wait() }).expect("it runs");
    let work = machine.work(WorkOptions::new().bound(cpu(0)), move || {
        began.send(()).expect("the test waits");
        holds.wait();
    });
    let work = work.expect("a lane");
    assert!(work.queue().expect("it runs"));
    let flush = || {
        let (waits, (sender, ended)) = (work.clone(), channel());
        thread::spawn(move || sender.send(waits.flush()).expect("the test waits"));
        // If the other thread is slower than this, it shows less.
        assert!(ended.recv_timeout(Duration::from_millis(20)).is_err(), "it waits or runs");
        ended
    };
    let while_it_waits = flush();
    lane.open();
    wait_for(&has_begun);
    let while_it_runs = flush();
    run.open();
    assert_eq!([while_it_waits, while_it_runs].map(|ended| wait_for(&ended)), [Ok(()); 2]);
    block_on(keep).expect("it ends");
    machine.shutdown();
}

/// Goal: a thread that others wait for does not wait for work: a lane, also between its turns, and a thread
/// that runs a callback; none of them has to, if there is nothing to wait for. Method: each flushes work that
/// no lane comes to, and work that does nothing.
#[test]
fn who_may_not_wait_for_work() {
    let machine = builder().start().expect("starts");
    let make = || machine.work(WorkOptions::new().bound(cpu(1)), || {}).expect("a lane");
    let (idle, waits) = (make(), make());
    assert!(waits.queue().expect("it runs"));
    let flushes = move || (idle.flush(), waits.flush());
    let expected = (Ok(()), Err(WouldBlock));
    let on_lane = Cpu::claim(machine, cpu(0)).expect("no thread has it");
    assert_eq!(flushes(), expected);
    drop(on_lane);
    let other = Machine::start().expect("starts");
    let (sender, told) = channel();
    let timer = other.timer(TimerOptions::new(), move |_| sender.send(flushes()).expect("the test waits"));
    timer.arm_after(Duration::ZERO).expect("it runs");
    assert_eq!(wait_for(&told), expected);
    for machine in [other, machine] {
        machine.shutdown();
    }
}
