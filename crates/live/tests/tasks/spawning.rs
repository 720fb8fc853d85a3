//! Tasks run, wake each other, end early, and panic alone.

use crate::scene::{Gate, builder, cpu, drive, eventually, lane_here, lanes, wait_for};
use futures_executor::block_on;
use quietcore_live::{
    Machine,
    task::{JoinError, SpawnError, TaskOptions, WakeTo},
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Gives the thread to others once.
async fn yield_once() {
    let mut has_yielded = false;
    core::future::poll_fn(|context| {
        if core::mem::replace(&mut has_yielded, true) {
            return core::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        core::task::Poll::Pending
    })
    .await;
}

/// Goal: every task ends exactly once with its own result. Method: a thousand that yield, sleep and wait for
/// each other, from the outside and from tasks.
#[test]
fn a_thousand_tasks() {
    for wake_to in [WakeTo::Last, WakeTo::Here] {
        let machine = lanes().wake_to(wake_to).start().expect("starts");
        let tasks: Vec<_> = (0..250_u64)
            .map(|number| {
                let task = async move {
                    let inner = machine.spawn(async move {
                        yield_once().await;
                        number * 2
                    });
                    let local = machine.spawn_on(cpu(number % 2), async move {
                        assert_eq!(lane_here(), Some(number as usize % 2));
                        quietcore_live::time::sleep(Duration::from_micros(number * 10)).await;
                        assert_eq!(lane_here(), Some(number as usize % 2));
                        number
                    });
                    let twice = inner.expect("it runs").await.expect("it ends");
                    twice + local.expect("it runs").await.expect("it ends")
                };
                machine.spawn(task).expect("it runs")
            })
            .collect();
        for (number, task) in tasks.into_iter().enumerate() {
            assert_eq!(block_on(task).expect("it ends"), number as u64 * 3);
        }
        let metrics = machine.metrics();
        assert!(metrics.sum(|cpu| cpu.items) >= 750, "{metrics:?}");
        assert_eq!(metrics.sum(|cpu| cpu.panics), 0);
        machine.shutdown();
    }
}

/// Goal: a task that is aborted is dropped and says so, one that has ended keeps its result, a handle that is
/// dropped leaves its task alone. Method: each, with a value whose drop is seen.
#[test]
fn ending_early() {
    struct Tell(std::sync::mpsc::Sender<&'static str>, &'static str);
    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send(self.1);
        }
    }
    let machine = lanes().start().expect("starts");
    let (sender, dropped) = channel();
    let tell = Tell(sender.clone(), "aborted");
    let waits = machine.spawn(async move {
        let _tell = tell;
        core::future::pending::<()>().await;
    });
    let waits = waits.expect("it runs");
    assert!(!waits.is_finished());
    waits.abort();
    assert!(block_on(waits).is_err_and(|error| error.is_cancelled()));
    assert_eq!(wait_for(&dropped), "aborted");

    let ended = machine.spawn(async { 7 }).expect("it runs");
    eventually("it ends", || ended.is_finished());
    ended.abort();
    assert_eq!(block_on(ended).expect("it had ended"), 7);

    let tell = Tell(sender, "went on");
    drop(machine.spawn(async move {
        quietcore_live::time::sleep(Duration::from_millis(3)).await;
        drop(tell);
    }));
    assert_eq!(wait_for(&dropped), "went on");
    machine.shutdown();
}

/// Goal: a panic ends its task only, is its result, and is counted. Method: on a machine whose callbacks must
/// not panic; the lane runs on.
#[test]
fn panics_are_results() {
    let machine = lanes().start().expect("starts");
    for _ in 0..3 {
        let task = machine.spawn_on(cpu(0), async { panic!("{}", "on purpose") }).expect("it runs");
        let error: JoinError = block_on(task).expect_err("it panicked");
        assert_eq!(error.to_string(), "the task panicked: on purpose");
        // As `?` passes it on, which asks for Sync.
        let passed: Box<dyn core::error::Error + Send + Sync> = error.into();
        let error = passed.downcast::<JoinError>().expect("it is one");
        let panic = error.try_into_panic().expect("it is one");
        assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("on purpose"));
    }
    let after = machine.spawn_on(cpu(0), async { lane_here() }).expect("it runs");
    assert_eq!(block_on(after).expect("it ends"), Some(0));
    assert_eq!(machine.metrics().sum(|cpu| cpu.panics), 3);
    machine.shutdown();
}

/// Goal: tasks that stay with a thread do, and end with its hold on the CPU. Method: they share memory that
/// is not shared between threads; another thread wakes one; one never ends.
#[test]
fn tasks_of_one_thread() {
    let machine = builder().start().expect("starts");
    let (sender, receiver) = channel();
    let (_other, ()) = drive(machine, 1, |_| ());
    let lane = thread::spawn(move || {
        let mut lane = quietcore_live::Cpu::claim(machine, cpu(0)).expect("a free lane");
        let log = Rc::new(RefCell::new(Vec::new()));
        let (writes, never) = (Rc::clone(&log), Rc::clone(&log));
        let woken = machine.spawn_on(cpu(1), async { 5 }).expect("it runs");
        let task = lane.spawn_local(async move {
            writes.borrow_mut().push(1);
            quietcore_live::time::sleep(Duration::from_millis(2)).await;
            let five = woken.await.expect("it ends");
            writes.borrow_mut().push(five);
        });
        let endless = lane.spawn_local(async move {
            never.borrow_mut().push(9);
            core::future::pending::<()>().await;
        });
        let (task, endless) = (task.expect("it runs"), endless.expect("it runs"));
        while !task.is_finished() {
            if !lane.turn().has_more {
                lane.park_unless(|| task.is_finished());
            }
        }
        assert_eq!(Rc::strong_count(&log), 2, "one of them has ended");
        drop(lane);
        assert_eq!(Rc::strong_count(&log), 1, "the other one with the hold on the CPU");
        assert!(endless.is_finished() && block_on(endless).is_err());
        sender.send(log.borrow().clone()).expect("the test waits");
    });
    assert_eq!(wait_for(&receiver), [1, 9, 5]);
    lane.join().expect("no panic");
    machine.shutdown();
}

/// Goal: closures that block run beside lanes, as many at a time as are needed, and their panics are results.
/// Method: several wait for each other.
#[test]
fn closures_that_block() {
    let machine = Machine::start().expect("starts without lanes");
    let gate = Gate::default();
    let waiting: Vec<_> = (0..8)
        .map(|number| {
            let gate = gate.clone();
            let closure = move || {
                gate.wait();
                number
            };
            machine.spawn_blocking(closure).expect("a thread")
        })
        .collect();
    let opens = gate.clone();
    block_on(machine.spawn_blocking(move || opens.open()).expect("a thread")).expect("it ends");
    for (number, task) in waiting.into_iter().enumerate() {
        assert_eq!(block_on(task).expect("it ends"), number);
    }
    let panics = machine.spawn_blocking(|| panic!("blocked")).expect("a thread");
    assert!(block_on(panics).expect_err("it panicked").is_panic());
    machine.shutdown();
    assert_eq!(machine.spawn_blocking(|| ()).map(|_| ()), Err(SpawnError::NotRunning));
}

/// Goal: what cannot be run is refused by name. Method: no lanes, a lane that is none, a machine that ended.
#[test]
fn refusals() {
    let machine = Machine::start().expect("starts");
    assert_eq!(machine.spawn(async {}).map(|_| ()), Err(SpawnError::NoLanes));
    machine.shutdown();
    let machine = builder().start().expect("starts");
    let elsewhere = machine.spawn_with(TaskOptions::new().lane(cpu(900)), async {});
    assert_eq!(elsewhere.map(|_| ()), Err(SpawnError::NotALane { cpu: cpu(900) }));
    machine.shutdown();
    assert_eq!(machine.spawn(async {}).map(|_| ()), Err(SpawnError::NotRunning));
}

/// Goal: what is started before any thread drives a lane runs when a thread does. Method: both lanes are
/// free; then one is claimed.
#[test]
fn tasks_wait_for_a_lane() {
    let machine = builder().start().expect("starts");
    let any = machine.spawn(async { 1 }).expect("it runs");
    let bound = machine.spawn_on(cpu(1), async { 2 }).expect("it runs");
    assert!(!any.is_finished() && !bound.is_finished());
    let (_lane, ()) = drive(machine, 1, |_| ());
    assert_eq!((block_on(any).expect("it ends"), block_on(bound).expect("it ends")), (1, 2));
    machine.shutdown();
}

/// Goal: a blocking call may run on all of the machine's CPUs, also when a thread that is pinned to one made
/// it. Method: what the kernel says of the thread that runs it.
#[test]
fn blocking_calls_are_not_pinned_where_they_were_made() {
    let machine = lanes().cpus("0-1".parse().expect("a list")).start().expect("starts");
    let mut one = rustix::thread::CpuSet::new();
    one.set(0);
    rustix::thread::sched_setaffinity(None, &one).expect("CPU 0 is there");
    let count = || rustix::thread::sched_getaffinity(None).expect("the kernel knows").count();
    assert_eq!(count(), 1);
    let ran = machine.spawn_blocking(count).expect("it runs");
    assert_eq!(block_on(ran).expect("it ends"), 2, "it is pinned as its caller is");
    machine.shutdown();
}

/// Goal: blocking calls have 512 threads and no more; the others wait. Method: 600 that wait for each other.
#[test]
fn blocking_calls_have_a_limit() {
    let machine = builder().start().expect("starts");
    let gate = Arc::new((Mutex::new((0_usize, false)), Condvar::new()));
    let calls: Vec<_> = (0..600)
        .map(|_| {
            let gate = Arc::clone(&gate);
            let call = move || {
                let (state, changed) = &*gate;
                let mut state = state.lock().expect("no panic");
                state.0 += 1;
                let _open = changed.wait_while(state, |state| !state.1).expect("no panic");
            };
            machine.spawn_blocking(call).expect("it runs")
        })
        .collect();
    eventually("the threads are there", || gate.0.lock().expect("no panic").0 >= 512);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(gate.0.lock().expect("no panic").0, 512);
    gate.0.lock().expect("no panic").1 = true;
    gate.1.notify_all();
    calls.into_iter().for_each(|call| block_on(call).expect("it ends"));
    machine.shutdown();
}
