//! The end of a machine is the end of its tasks.

use crate::scene::{Gate, PATIENCE, builder, cpu, drive, lanes, wait_for};
use futures_executor::block_on;
use quietcore_live::{Cpu, OnPanic, TimerOptions, task::WorkOptions};
use std::panic::resume_unwind;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

struct Tell(Sender<()>);

impl Drop for Tell {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// Goal: after a shutdown every task has ended, its future was dropped, and its handle says so. Method: tasks
/// that wait for ever, for a timer, for each other, in queues of lanes that no thread drives, and one that
/// spawns without end.
#[test]
fn a_shutdown_drops_all_futures() {
    for round in 0..20 {
        let machine = lanes().start().expect("starts");
        let (sender, dropped) = channel();
        let tasks: Vec<_> = (0..60)
            .map(|number| {
                let tell = Tell(sender.clone());
                let task = async move {
                    let _tell = tell;
                    match number % 3 {
                        0 => core::future::pending().await,
                        1 => quietcore_live::time::sleep(Duration::from_secs(100)).await,
                        _ => loop {
                            let more = machine.spawn(async {});
                            let Ok(more) = more else { core::future::pending().await };
                            let _ = more.await;
                        },
                    }
                };
                machine.spawn(task).expect("it runs")
            })
            .collect();
        if round % 2 == 1 {
            std::thread::sleep(Duration::from_millis(2));
        }
        machine.shutdown();
        for task in tasks {
            // One that was just being polled may have panicked: its time will not come.
            assert!(block_on(task).is_err());
        }
        for _ in 0..60 {
            wait_for(&dropped);
        }
    }
}

/// Goal: the same for lanes that others drive, and what no thread came to. Method: a claimed lane that never
/// turned.
#[test]
fn what_nobody_came_to() {
    let machine = builder().start().expect("starts");
    let cpu_held = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let local = cpu_held.spawn_local(async {}).expect("it runs");
    let bound = machine.spawn_on(cpu(0), async {}).expect("it runs");
    let free = machine.spawn(async {}).expect("it runs");
    let work = machine.work(WorkOptions::new(), || ()).expect("a lane");
    assert!(work.queue().expect("it runs"));
    machine.shutdown();
    assert!(block_on(bound).is_err() && block_on(free).is_err());
    drop(cpu_held);
    assert!(block_on(local).is_err(), "with its thread's hold on the CPU");
    work.flush().expect("nothing to wait for");
}

/// Goal: a shutdown ends tasks before it waits for callbacks, as one may wait for a task. Method: a callback
/// on the only lane that waits until a task has gone that would wait for ever.
#[test]
fn a_callback_may_wait_for_the_end_of_a_task() {
    let machine = builder().start().expect("starts");
    let (_lane, ()) = drive(machine, 0, |_| ());
    let (sender, gone) = channel();
    let tell = Tell(sender);
    let task = machine.spawn(async move {
        let _tell = tell;
        core::future::pending::<()>().await;
    });
    let _task = task.expect("it runs");
    let (began, has_begun) = channel();
    let (ended, has_ended) = channel();
    let timer = machine.timer(TimerOptions::new().pinned(), move |_| {
        began.send(()).expect("the test waits");
        ended.send(gone.recv_timeout(PATIENCE)).expect("the test waits");
    });
    timer.arm_on(cpu(0), machine.now()).expect("it has a lane");
    wait_for(&has_begun);
    machine.shutdown();
    assert_eq!(has_ended.try_recv(), Ok(Ok(())));
}

/// Goal: a thread that waits for work is let go when the machine ends: the work will not run. Method: work
/// for a lane that never turns; most often the thread waits by then.
#[test]
fn a_shutdown_lets_go_who_waits_for_work() {
    let machine = builder().stall_after(Duration::MAX).start().expect("starts");
    let cpu_held = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let work = machine.work(WorkOptions::new(), || ()).expect("a lane");
    assert!(work.queue().expect("it runs"));
    let (begins, has_begun) = channel();
    let (flushed, has_flushed) = channel();
    thread::spawn(move || {
        begins.send(()).expect("the test waits");
        flushed.send(work.flush()).expect("the test waits");
    });
    wait_for(&has_begun);
    // Time enough to begin to wait.
    thread::sleep(Duration::from_millis(20));
    machine.shutdown();
    wait_for(&has_flushed).expect("it is no lane");
    drop(cpu_held);
}

/// Panics when it is dropped, with another one.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        resume_unwind(Box::new(Bomb));
    }
}

/// Goal: what user code panics with is user code, too: no thread of the machine ends by it, and the machine
/// ends. Method: payloads, results and futures whose destructors panic, in callbacks, tasks and work, whose
/// handles are dropped or kept, with lanes and without; then others run, and a shutdown drops what is left.
#[test]
fn a_payload_that_panics_ends_no_thread() {
    let helper_only = builder().lanes(quietcore_live::CpuSet::new());
    for (builder, has_lanes) in [(helper_only, false), (lanes(), true)] {
        let machine = builder.on_panic(OnPanic::Continue).start().expect("starts");
        let bombs: Vec<_> = (0..4)
            .map(|_| {
                let bomb = machine.timer(TimerOptions::new(), |_| resume_unwind(Box::new(Bomb)));
                bomb.arm_after(Duration::from_millis(1)).expect("it runs");
                bomb
            })
            .collect();
        if has_lanes {
            let spawn = |ends: bool| {
                let task = machine.spawn(async move {
                    let bomb = Bomb;
                    if !ends {
                        core::future::pending::<()>().await;
                    }
                    bomb
                });
                task.expect("it runs")
            };
            drop(spawn(true));
            let aborted = spawn(false);
            aborted.abort();
            assert!(block_on(aborted).is_err_and(|error| {
                core::mem::forget(error);
                true
            }));
            drop(machine.spawn(async { resume_unwind(Box::new(Bomb)) }).expect("it runs"));
            drop(machine.spawn_blocking(|| resume_unwind(Box::new(Bomb))).expect("it runs"));
            let left: Vec<_> = (0..8).map(|_| spawn(false)).collect();
            drop(left);
            let (sender, ran) = channel();
            let tell = move || sender.send(()).expect("the test waits");
            let work = machine.work(WorkOptions::new(), tell).expect("a lane");
            assert!(work.queue().expect("it runs"));
            wait_for(&ran);
        }
        let (sender, ran) = channel();
        let timer = machine.timer(TimerOptions::new(), move |_| sender.send(()).expect("the test waits"));
        for _ in 0..4 {
            timer.arm_after(Duration::from_millis(2)).expect("it runs");
            wait_for(&ran);
        }
        assert!(machine.metrics().sum(|cpu| cpu.panics) >= 4);
        drop(bombs);
        machine.shutdown();
    }
}

/// Goal: every call of a shutdown waits for the machine's threads. Method: two at a time, while a lane is in
/// a task.
#[test]
fn every_shutdown_waits() {
    let machine = lanes().start().expect("starts");
    let (gate, (began, has_begun)) = (Gate::default(), channel());
    let holds = gate.clone();
    let task = machine.spawn_on(cpu(0), async move {
        began.send(()).expect("the test waits");
        holds.wait();
    });
    drop(task.expect("it runs"));
    wait_for(&has_begun);
    let ends = [(); 2].map(|()| {
        let (sender, ended) = channel();
        thread::spawn(move || {
            machine.shutdown();
            sender.send(()).expect("the test waits");
        });
        ended
    });
    // If those threads are slower than this, it shows less.
    thread::sleep(Duration::from_millis(50));
    assert!(ends.iter().all(|ended| ended.try_recv().is_err()), "the lane has not ended");
    gate.open();
    ends.iter().for_each(wait_for);
}
