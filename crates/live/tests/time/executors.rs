//! Sleeps under executors that know nothing of them, in real time.

use crate::scene::{Dice, MILLI};
use core::future::Future;
use core::task::{Context, Poll};
use futures_util::future::{Either, join_all, select};
use futures_util::task::ArcWake;
use quietcore_live::time::{Duration, Instant, Precision, interval, sleep, sleep_until, timeout};
use quietcore_live::{Cpu, CpuId, Machine, lane::Unparker};
use std::pin::pin;
use std::sync::{Arc, Mutex};

/// A machine that is the current one of every thread of this test's runtimes.
fn machine() -> &'static Machine {
    Machine::start().expect("threads and timers can be had")
}

/// Sleeps for up to 20 ms, several times; how many.
async fn naps(seed: u64) -> u32 {
    let mut dice = Dice::new(seed);
    for round in 0..5 {
        let precision = [Precision::Coarse, Precision::Tick, Precision::Exact][dice.below(3) as usize];
        let deadline = Instant::now() + Duration::from_micros(dice.below(20_000));
        sleep_until(deadline).with_precision(precision).await;
        assert!(Instant::now() >= deadline, "seed {seed} round {round} {precision:?}: early");
    }
    5
}

/// Goal: many tasks on one thread. Method: 300 futures joined by the simplest executor.
#[test]
fn one_thread_that_parks() {
    let machine = machine();
    let entered = machine.enter();
    let total: u32 = futures_executor::block_on(join_all((0..300).map(naps))).into_iter().sum();
    assert_eq!(total, 1_500);
    drop(entered);
    machine.shutdown();
}

/// Goal: tokio's runtimes without tokio's time. Method: 500 tasks each, on one thread and on four.
#[test]
fn under_tokio() {
    let machine = machine();
    for threads in [1, 4] {
        let mut builder = match threads {
            1 => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        };
        let enter = move || core::mem::forget(machine.enter());
        let runtime =
            builder.worker_threads(threads).on_thread_start(enter).build().expect("threads can be had");
        let entered = machine.enter();
        let total = runtime.block_on(async {
            let tasks: Vec<_> = (0..500).map(|seed| tokio::spawn(naps(seed))).collect();
            let mut total = 0;
            for task in tasks {
                total += task.await.expect("no panic");
            }
            total
        });
        assert_eq!(total, 2_500, "{threads} threads");
        drop((entered, runtime));
    }
    machine.shutdown();
}

/// Goal: tasks that give up sleeps, restart them and are aborted. Method: timeouts of sleeps, a select that
/// resets the loser, tasks aborted half way; on four threads.
#[test]
fn tasks_that_change_their_mind() {
    let machine = machine();
    let enter = move || core::mem::forget(machine.enter());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).on_thread_start(enter).build();
    let entered = machine.enter();
    let finished = runtime.expect("threads can be had").block_on(async {
        let tasks: Vec<_> = (0..200).map(|seed| tokio::spawn(fickle(seed))).collect();
        sleep(MILLI * 10).await;
        tasks.iter().step_by(4).for_each(|task| task.abort());
        let mut finished = 0;
        for task in tasks {
            match task.await {
                Ok(()) => finished += 1,
                Err(error) => assert!(error.is_cancelled(), "{error}"),
            }
        }
        finished
    });
    assert!((150..=200).contains(&finished), "{finished}");
    drop(entered);
    machine.shutdown();
}

async fn fickle(seed: u64) {
    let mut dice = Dice::new(seed);
    for _ in 0..5 {
        let (short, long) = (Duration::from_micros(dice.below(4_000)), MILLI * 60_000);
        assert!(timeout(short, sleep(long)).await.is_err());
        assert_eq!(timeout(long, sleep(short)).await, Ok(()));
        let mut reset = pin!(sleep(long));
        let other = pin!(sleep(short));
        assert!(matches!(select(reset.as_mut(), other).await, Either::Right(_)));
        let deadline = Instant::now() + short;
        reset.as_mut().reset(deadline);
        reset.await;
        assert!(Instant::now() >= deadline);
    }
}

/// Goal: a period in real time keeps its phase. Method: 40 exact ticks; each is a multiple, and none is
/// early.
#[test]
fn a_period() {
    let machine = machine();
    let entered = machine.enter();
    let period = Duration::from_micros(700);
    futures_executor::block_on(async {
        let mut ticks = interval(period).with_precision(Precision::Exact);
        let start = ticks.tick().await;
        let (mut before, mut skipped) = (start, 0);
        for _ in 0..40 {
            // Those after the last tick that is taken do not count.
            skipped = ticks.overruns();
            let due = ticks.tick().await;
            assert!(Instant::now() >= due, "early");
            assert!(due > before && (due - start).as_nanos() % period.as_nanos() == 0, "{:?}", due - start);
            before = due;
        }
        assert_eq!((before - start).as_nanos() / period.as_nanos(), u128::from(skipped) + 40);
    });
    drop(entered);
    machine.shutdown();
}

/// Goal: a sleep belongs to the machine that was current when it was made, whichever executor polls it.
/// Method: polled under another machine, which was shut down.
#[test]
fn a_sleep_stays_with_its_machine() {
    let (machine, other) = (machine(), machine());
    let entered = other.enter();
    other.shutdown();
    let nap = {
        let _entered = machine.enter();
        sleep(MILLI * 100)
    };
    let deadline = nap.deadline();
    futures_executor::block_on(nap);
    assert!(Instant::now() >= deadline);
    assert_eq!(machine.metrics().sum(|cpu| cpu.bases.armed), 1);
    drop(entered);
    machine.shutdown();
}

/// Goal: sleeps on a machine with lanes, armed by a lane and by another thread. Method: a thread drives a CPU
/// and polls its own sleeps between turns; this one waits for 200 others.
#[test]
fn on_a_machine_with_lanes() {
    let cpu = CpuId::new(0).expect("a small number");
    let machine = Machine::builder().lanes([cpu].into_iter().collect()).start().expect("CPU 0 may be used");
    let (done, finished) = std::sync::mpsc::channel();
    let lane = std::thread::spawn(move || {
        let _entered = machine.enter();
        let mut lane = Cpu::claim(machine, cpu).expect("no other thread claims it");
        let work = Arc::new(Work { was_woken: Mutex::new(false), unparker: lane.unparker() });
        let waker = futures_util::task::waker(work.clone());
        let mut own = pin!(join_all((0..50).map(naps)));
        let mut is_finished = false;
        while machine.is_running() {
            if !is_finished && let Poll::Ready(counts) = own.as_mut().poll(&mut Context::from_waker(&waker)) {
                is_finished = true;
                done.send(counts.into_iter().sum::<u32>()).expect("the test waits");
            }
            if !lane.turn().has_more {
                lane.park_unless(|| core::mem::take(&mut work.was_woken.lock().expect("no panic")));
            }
        }
    });
    let entered = machine.enter();
    let total: u32 = futures_executor::block_on(join_all((0..200).map(naps))).into_iter().sum();
    assert_eq!(total, 1_000);
    // The machine lives as long as a thread waits for it.
    assert_eq!(finished.recv(), Ok(250));
    machine.shutdown();
    lane.join().expect("no panic");
    drop(entered);
}

/// Of a lane's own future.
struct Work {
    was_woken: Mutex<bool>,
    unparker: Unparker,
}

impl ArcWake for Work {
    fn wake_by_ref(work: &Arc<Self>) {
        *work.was_woken.lock().expect("no panic") = true;
        work.unparker.unpark();
    }
}
