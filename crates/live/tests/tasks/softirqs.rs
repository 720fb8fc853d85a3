//! Softirqs: each raise is followed by a run, on the right CPU, by the lane or its ksoftirqd.

use crate::scene::{Gate, builder, cpu, eventually, lane_here, lanes, wait_for};
use futures_executor::block_on;
use quietcore_live::{
    Cpu, Machine, OnPanic,
    softirq::{Awareness, RaiseError, Runner, SoftirqRun, Vector, VectorSet},
    task::{Priority, TaskOptions},
};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

fn set(vectors: &[Vector]) -> VectorSet {
    vectors.iter().copied().collect()
}

/// Goal: after the last raise a run begins that sees what was left before it; runs of one vector for one CPU
/// never overlap. Method: four threads raise for both lanes and count; handlers add up what they find.
#[test]
fn nothing_is_lost() {
    let left: Arc<[[AtomicU64; 2]; 2]> = Arc::default();
    let found: Arc<[[AtomicU64; 2]; 2]> = Arc::default();
    let inside: Arc<[[AtomicUsize; 2]; 2]> = Arc::default();
    let vectors = [Vector::NET_RX, Vector::TASKLET];
    let mut builder = lanes();
    for (index, vector) in vectors.into_iter().enumerate() {
        let (left, found, inside) = (Arc::clone(&left), Arc::clone(&found), Arc::clone(&inside));
        builder = builder.softirq(vector, move |run| {
            let (cpu, now) = (run.cpu().index(), &inside[index]);
            assert_eq!(now[cpu].fetch_add(1, Ordering::Relaxed), 0, "{vector} twice at a time on {cpu}");
            found[index][cpu].fetch_add(left[index][cpu].swap(0, Ordering::Relaxed), Ordering::Relaxed);
            now[cpu].fetch_sub(1, Ordering::Relaxed);
        });
    }
    let machine = builder.start().expect("starts");
    const EACH: u64 = 20_000;
    thread::scope(|scope| {
        for thread in 0..4_usize {
            let left = &left;
            scope.spawn(move || {
                for number in 0..EACH as usize {
                    let (index, on) = ((thread + number) % 2, (thread / 2 + number / 3) % 2);
                    left[index][on].fetch_add(1, Ordering::Relaxed);
                    machine.raise(cpu(on as u64), vectors[index]).expect("it has a handler");
                }
            });
        }
    });
    let sum = || found.iter().flatten().map(|count| count.load(Ordering::Relaxed)).sum::<u64>();
    eventually("all is found", || sum() == 4 * EACH);
    let metrics = machine.metrics();
    assert_eq!(metrics.sum(|cpu| cpu.raises), 4 * EACH);
    assert!(metrics.sum(|cpu| cpu.softirqs) > 0);
    machine.shutdown();
}

/// Goal: a vector that raises itself for ever holds up neither the lane nor its tasks: a long one ends up
/// with ksoftirqd, a short one stays, and everything else goes on. Method: one of each, and a task
/// afterwards.
#[test]
fn a_vector_that_loops() {
    let [long, short]: [Arc<AtomicU64>; 2] = Default::default();
    let (counts_long, counts_short) = (Arc::clone(&long), Arc::clone(&short));
    let machine = lanes()
        .softirq(Vector::BLOCK, move |run| {
            counts_long.fetch_add(1, Ordering::Relaxed);
            run.raise_again();
        })
        .softirq(Vector::TASKLET, move |run| {
            assert_eq!(run.runner(), Runner::Lane, "it never leaves the lane");
            counts_short.fetch_add(1, Ordering::Relaxed);
            run.raise_again();
        })
        .start()
        .expect("starts");
    machine.raise(cpu(0), set(&[Vector::BLOCK, Vector::TASKLET])).expect("they have handlers");
    eventually("ksoftirqd runs it", || machine.metrics().cpus[0].ksoftirqd_ran > 100);
    let task = machine.spawn_on(cpu(0), async { lane_here() }).expect("it runs");
    assert_eq!(block_on(task).expect("it ends"), Some(0));
    let before = (long.load(Ordering::Relaxed), short.load(Ordering::Relaxed));
    eventually("both go on", || {
        long.load(Ordering::Relaxed) > before.0 && short.load(Ordering::Relaxed) > before.1
    });
    machine.shutdown();
}

/// Goal: a handler that panics is counted, and its vector works on. Method: it panics every other time.
#[test]
fn a_handler_that_panics() {
    let runs = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&runs);
    let machine = lanes()
        .on_panic(OnPanic::Continue)
        .softirq(Vector::RCU, move |_| {
            assert!(counts.fetch_add(1, Ordering::Relaxed).is_multiple_of(2), "on purpose");
        })
        .start()
        .expect("starts");
    for number in 1..=6 {
        machine.raise(cpu(1), Vector::RCU).expect("it has a handler");
        eventually("it runs", || runs.load(Ordering::Relaxed) == number);
    }
    eventually("they are counted", || machine.metrics().cpus[1].panics == 3);
    machine.shutdown();
}

/// Goal: while a real-time task waits, a long vector is left to ksoftirqd where the machine defers, and run
/// by the lane where it does not; short ones are never left; every one runs. Method: a real-time task of the
/// lane raises both and yields.
#[test]
fn long_ones_are_deferred() {
    for awareness in Awareness::ALL {
        let (sender, ran) = channel();
        let also = sender.clone();
        let machine = lanes()
            .awareness(awareness)
            .softirq(Vector::NET_RX, move |run| {
                sender.send((run.vector(), run.runner())).expect("the test waits");
            })
            .softirq(Vector::HI, move |run| {
                also.send((run.vector(), run.runner())).expect("the test waits");
            })
            .start()
            .expect("starts");
        let options = TaskOptions::new().realtime(Priority::LOWEST).lane(cpu(0));
        let both = set(&[Vector::NET_RX, Vector::HI]);
        let mut polls = 0;
        let task = machine.spawn_with(
            options,
            core::future::poll_fn(move |context| {
                polls += 1;
                if polls == 1 {
                    machine.raise(cpu(0), both).expect("they have handlers");
                }
                context.waker().wake_by_ref();
                if polls < 2000 { core::task::Poll::Pending } else { core::task::Poll::Ready(()) }
            }),
        );
        block_on(task.expect("it runs")).expect("it ends");
        let mut seen = [wait_for(&ran), wait_for(&ran)];
        seen.sort_by_key(|(vector, _)| *vector);
        let long = seen[1].1;
        assert_eq!(seen, [(Vector::HI, Runner::Lane), (Vector::NET_RX, long)]);
        let metrics = machine.metrics();
        if awareness.defers() {
            assert!(metrics.cpus[0].deferred > 0, "{awareness:?}");
            eventually("it was woken", || machine.metrics().cpus[0].ksoftirqd_wakeups > 0);
        } else {
            assert_eq!((long, metrics.cpus[0].deferred), (Runner::Lane, 0), "{awareness:?}");
        }
        machine.shutdown();
    }
}

/// Goal: what is deferred runs at the limit, also if ksoftirqd does not come to it. Method: ksoftirqd is kept
/// in one long vector; another is raised while a real-time task never waits.
#[test]
fn no_longer_than_the_limit() {
    let gate = Gate::default();
    let holds = gate.clone();
    let (sender, ran) = channel();
    let (began, has_begun) = channel();
    let machine = lanes()
        .awareness(Awareness::Defer)
        .defer_limit(Duration::from_millis(3))
        .softirq(Vector::BLOCK, move |run| {
            if run.runner() == Runner::Ksoftirqd {
                began.send(()).expect("the test waits");
                holds.wait();
            } else {
                run.raise_again();
            }
        })
        .softirq(Vector::NET_TX, move |run| {
            sender.send(run.runner()).expect("the test waits");
        })
        .start()
        .expect("starts");
    machine.raise(cpu(0), Vector::BLOCK).expect("it has a handler");
    wait_for(&has_begun);
    let options = TaskOptions::new().realtime(Priority::LOWEST).lane(cpu(0));
    let forever = machine.spawn_with(
        options,
        core::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            core::task::Poll::<()>::Pending
        }),
    );
    let forever = forever.expect("it runs");
    eventually("it runs", || machine.metrics().cpus[0].realtime_polls > 100);
    machine.raise(cpu(0), Vector::NET_TX).expect("it has a handler");
    assert_eq!(wait_for(&ran), Runner::Lane);
    eventually("the lane waits for ksoftirqd", || machine.metrics().cpus[0].donations > 0);
    gate.open();
    forever.abort();
    assert!(block_on(forever).is_err());
    machine.shutdown();
}

/// Goal: what cannot be raised is refused by name, and nothing is raised. Method: no handler, no lane, ended.
#[test]
fn refusals() {
    let machine = builder().softirq(Vector::HI, |_| ()).start().expect("starts");
    let missing = machine.raise(cpu(0), set(&[Vector::HI, Vector::NET_RX]));
    assert_eq!(missing, Err(RaiseError::NoHandler { vectors: Vector::NET_RX.into() }));
    assert_eq!(machine.raise(cpu(700), Vector::HI), Err(RaiseError::NotALane { cpu: cpu(700) }));
    assert_eq!(machine.metrics().sum(|cpu| cpu.raises), 0);
    machine.shutdown();
    assert_eq!(machine.raise(cpu(0), Vector::HI), Err(RaiseError::NotRunning));
}

/// Goal: a handler is told when the time of its round is used up. Method: one that runs until it is told.
#[test]
fn a_handler_is_told_that_its_time_is_over() {
    let (sender, ended) = channel();
    let machine = lanes()
        .softirq(Vector::BLOCK, move |run| {
            let begun = Instant::now();
            while !run.should_end() && begun.elapsed() < Duration::from_secs(5) {}
            let _ = sender.send(run.should_end());
        })
        .start()
        .expect("starts");
    machine.raise(cpu(0), Vector::BLOCK).expect("it has a handler");
    assert!(wait_for(&ended), "it was never told");
    machine.shutdown();
}

/// Goal: what a handler leaves on its lane is for another one to take at once: the lane is busy. Method: lane
/// 0, driven by hand, runs a handler that spawns a task; lane 1 turns before the handler ends.
#[test]
fn a_handler_makes_its_lane_busy() {
    let machine = Arc::new(OnceLock::<&'static Machine>::new());
    let (inside, (sender, taken)) = (Arc::clone(&machine), channel());
    let handler = move |_: &SoftirqRun<'_>| {
        let machine = *inside.get().expect("it has started");
        drop(machine.spawn(async {}).expect("it runs"));
        let other = move || Cpu::claim(machine, cpu(1)).expect("a free lane").turn().items;
        sender.send(thread::spawn(other).join().expect("no panic")).expect("the test waits");
    };
    // However long a thread takes to start, no spare takes the task.
    let builder = builder().stall_after(Duration::MAX).softirq(Vector::TASKLET, handler);
    machine.set(builder.start().expect("starts")).expect("once");
    let machine = machine.get().expect("it has started");
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    machine.raise(cpu(0), Vector::TASKLET).expect("it has a handler");
    let _ = lane.turn();
    assert_eq!(wait_for(&taken), 1);
    machine.shutdown();
}
