//! What a review found: each was a fault once.

use crate::scene::{builder, cpu, drive, eventually, lanes, wait_for};
use futures_executor::block_on;
use quietcore_live::{
    Cpu, Machine, OnPanic,
    softirq::{Runner, Vector},
    task::WorkOptions,
};
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("in a destructor");
        }
    }
}

/// Ready at once, and kept until it is dropped.
struct Ready(Bomb);

impl Future for Ready {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// Goal: a destructor that panics ends its task only, whichever thread drops the future. Method: after its
/// end, after an abort, and at the end of the machine.
#[test]
fn destructors_that_panic() {
    let machine = lanes().on_panic(OnPanic::Abort).start().expect("starts");
    let ended = machine.spawn(Ready(Bomb)).expect("it runs");
    assert!(block_on(ended).expect_err("its destructor panicked").is_panic());
    let waits = |bomb| async move {
        let _bomb = bomb;
        core::future::pending::<()>().await;
    };
    let aborted = machine.spawn(waits(Bomb)).expect("it runs");
    aborted.abort();
    assert!(block_on(aborted).expect_err("its destructor panicked").is_panic());
    let left = machine.spawn(waits(Bomb)).expect("it runs");
    machine.shutdown();
    assert!(block_on(left).is_err());
    assert_eq!(machine.metrics().sum(|cpu| cpu.panics), 3);
}

/// Goal: no abort is lost, whenever it comes. Method: tasks that never end are aborted while they are begun.
#[test]
fn aborts_at_any_time() {
    let machine = lanes().start().expect("starts");
    for round in 0..500_u32 {
        let task = machine.spawn(core::future::pending::<()>()).expect("it runs");
        for _ in 0..round.wrapping_mul(1_664_525) >> 23 {
            std::hint::spin_loop();
        }
        task.abort();
        assert!(block_on(task).is_err(), "round {round}");
    }
    machine.shutdown();
}

/// One of a chain: dropped, it lets the next one end.
struct Chain {
    own: Arc<Mutex<(bool, Option<Waker>)>>,
    next: Arc<Mutex<(bool, Option<Waker>)>>,
}

impl Future for Chain {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut own = self.own.lock().expect("no panic");
        own.1 = Some(context.waker().clone());
        if own.0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        let mut next = self.next.lock().expect("no panic");
        next.0 = true;
        let waker = next.1.take();
        drop(next);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Goal: a long chain of tasks that end each other needs no stack. Method: 30,000 of them at the end of the
/// machine.
#[test]
fn a_chain_of_ends() {
    const LINKS: usize = 30_000;
    let machine = lanes().start().expect("starts");
    let cells: Vec<_> = (0..=LINKS).map(|_| Arc::new(Mutex::new((false, None)))).collect();
    for link in cells.windows(2) {
        drop(machine.spawn(Chain { own: Arc::clone(&link[0]), next: Arc::clone(&link[1]) }));
    }
    let is_polled = |cell: &Arc<Mutex<(bool, Option<Waker>)>>| cell.lock().expect("no panic").1.is_some();
    eventually("all of them wait", || cells[..LINKS].iter().all(is_polled));
    machine.shutdown();
    assert!(cells[1..].iter().all(|cell| cell.lock().expect("no panic").0), "all were dropped");
}

struct Off(&'static Machine);

impl Drop for Off {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

/// Goal: a destructor may shut the machine down. Method: many of them, in tasks that run when it ends.
#[test]
fn a_destructor_that_shuts_down() {
    for _ in 0..5 {
        let machine = lanes().start().expect("starts");
        for _ in 0..300 {
            let off = Off(machine);
            let task = async move {
                let _off = off;
                core::future::poll_fn(|context| {
                    context.waker().wake_by_ref();
                    Poll::<()>::Pending
                })
                .await;
            };
            drop(machine.spawn(task));
        }
        machine.shutdown();
        assert!(!machine.is_running());
    }
}

/// Goal: what a lane has when it blocks politely is run by others at once. Method: the other lane sleeps; the
/// block ends when the task has run.
#[test]
fn a_lane_that_blocks_offers_what_it_has() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    lane.turn();
    for _ in 0..20 {
        let (sender, ran) = channel();
        drop(machine.spawn(async move { sender.send(()).expect("the test waits") }));
        lane.block_in_place(|| wait_for(&ran));
        assert_eq!(lane.turn().items, 0, "another one has run it");
    }
    drop(lane);
    machine.shutdown();
}

/// Goal: softirqs of a CPU that no thread drives are run by its ksoftirqd: long ones, and the program's own.
/// Method: raised before any claim; each is the only one with a handler.
#[test]
fn softirqs_of_a_lane_that_nobody_plays() {
    for vector in [Vector::NET_RX, Vector::user(0).expect("the first")] {
        let (sender, ran) = channel();
        let builder = builder().softirq(vector, move |run| {
            sender.send(run.runner()).expect("the test waits");
        });
        let machine = builder.start().expect("starts");
        machine.raise(cpu(1), vector).expect("it has a handler");
        assert_eq!(wait_for(&ran), Runner::Ksoftirqd);
        machine.shutdown();
    }
}

/// Goal: work that is queued and cancelled again and again is in its queue once. Method: no thread drives a
/// lane; then a lane counts what it finds.
#[test]
fn work_has_one_entry() {
    let machine = builder().start().expect("starts");
    let work = machine.work(WorkOptions::new().bound(cpu(0)), || ()).expect("a lane");
    for _ in 0..1000 {
        assert!(work.queue().expect("it runs") && work.cancel());
    }
    assert!(work.queue().expect("it runs"));
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    assert_eq!(lane.turn().items, 1);
    drop(lane);
    machine.shutdown();
}

/// Goal: threads for closures that block keep off CPUs that are isolated later. Method: a thread that is
/// there already runs a closure after the isolation.
#[test]
fn blocking_threads_keep_off() {
    let machine = lanes().start().expect("starts");
    let where_to = || {
        let set = rustix::thread::sched_getaffinity(None).expect("it is this thread");
        set.is_set(1)
    };
    block_on(machine.spawn_blocking(where_to).expect("a thread")).expect("it ends");
    machine.set_isolated(&"1".parse().expect("a list")).expect("the other is left");
    let may_run_there = block_on(machine.spawn_blocking(where_to).expect("a thread")).expect("it ends");
    assert!(!may_run_there);
    machine.shutdown();
}
