//! What a change of isolation gives back, and waits for.

use super::{Other, TICK, claim, cpu, eventually, list, pass, quiet, still, wait_for};
use crate::{Machine, TimerOptions};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Goal: what waits on a lane that is isolated, and is not bound to it, runs on another one. Method: a task
/// of each kind; neither lane turns before.
#[test]
fn what_an_isolated_lane_gives_back_runs() {
    let machine = still(quiet());
    let lane = claim(machine, 0);
    let free = machine.spawn(async {}).expect("it runs");
    let bound = machine.spawn_on(cpu(0), async {}).expect("it runs");
    let other = Other::claim(machine, 1);
    machine.set_isolated(&list("0")).expect("one is left");
    assert_eq!(other.act(|lane| lane.turn().items), 1);
    assert_eq!((free.is_finished(), bound.is_finished()), (true, false));
    other.leave();
    drop(lane);
    machine.shutdown();
}

/// Goal: a lane looks after its own CPU only as long as it is isolated. Method: what is known of it.
#[test]
fn an_isolated_lane_stands_alone() {
    let machine = still(quiet());
    let lane = claim(machine, 0);
    let is_alone = || machine.lanes.slot(cpu(0)).expect("it is there").is_standalone();
    let isolate = |text: &str| machine.set_isolated(&list(text)).expect("one is left");
    assert!(!is_alone());
    isolate("0");
    assert!(is_alone());
    isolate("");
    assert!(!is_alone());
    drop(lane);
    machine.shutdown();
}

/// What lane 0 runs that is not its own: `run`, in a task, or in a timer that a foreign thread has armed.
fn run_foreign(machine: &'static Machine, is_task: bool, run: impl FnOnce() + Send + 'static) -> Other {
    let lane = Other::claim(machine, 0);
    if is_task {
        drop(machine.spawn(async { run() }).expect("it runs"));
        drop(lane.begin(|lane| lane.turn()));
    } else {
        let run = std::sync::Mutex::new(Some(run));
        let timer = machine.timer(TimerOptions::new(), move |_| {
            let run = run.lock().expect("no panic").take();
            run.into_iter().for_each(|run| run());
        });
        let arm = move || {
            let mut first = rustix::thread::CpuSet::new();
            first.set(0);
            rustix::thread::sched_setaffinity(None, &first).expect("it may run there");
            timer.arm_after(Duration::from_millis(1)).expect("it runs");
            std::mem::forget(timer);
        };
        thread::spawn(arm).join().expect("no panic");
        pass(machine, 10 * TICK);
        drop(lane.begin(|lane| lane.turn()));
    }
    lane
}

/// Goal: what an isolated lane runs for others is waited for, but not for ever. Method: a task, and a timer
/// of a foreign thread, that do not end before the call does.
#[test]
fn what_does_not_end_is_reported() {
    for is_task in [true, false] {
        let machine = still(quiet());
        let ((sender, began), (release, until)) = (channel(), channel::<()>());
        let lane = run_foreign(machine, is_task, move || {
            sender.send(()).expect("the test waits");
            let _ = until.recv();
        });
        wait_for(&began);
        let (tell, told) = channel();
        thread::spawn(move || tell.send(machine.set_isolated(&list("0"))));
        let report = wait_for(&told).expect("one is left");
        assert_eq!(report.still_running, list("0"), "a task: {is_task}");
        release.send(()).expect("it waits");
        eventually("it ends", || !machine.core.runs_for_others(cpu(0)));
        drop(lane);
        machine.shutdown();
    }
}

/// Goal: what an isolated lane runs for others has ended when the call returns, if it ends in time. Method: a
/// task that ends some time after its lane was isolated; on a host that is too busy, once more.
#[test]
fn what_ends_in_time_is_waited_for() {
    let is_waited_for = || {
        let machine = still(quiet());
        let (sender, began) = channel();
        let lane = run_foreign(machine, true, move || {
            sender.send(()).expect("the test waits");
            while machine.is_running() && machine.isolated().is_empty() {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(10));
        });
        wait_for(&began);
        let report = machine.set_isolated(&list("0")).expect("one is left");
        drop(lane);
        machine.shutdown();
        report.still_running.is_empty()
    };
    assert!((0..5).any(|_| is_waited_for()));
}

/// Goal: a lane counts as isolated for every reason. Method: one is isolated from ticks, or at run time.
#[test]
fn a_lane_without_ticks_is_isolated() {
    for is_at_run_time in [false, true] {
        let builder = if is_at_run_time { quiet() } else { quiet().nohz_full(list("1")) };
        let machine = builder.start().expect("it starts");
        if is_at_run_time {
            machine.set_isolated(&list("1")).expect("one is left");
        }
        let metrics = machine.metrics();
        let lanes = [0, 1].map(|index: usize| metrics.cpus[index].lane.expect("it is one").is_isolated);
        assert_eq!(lanes, [false, true]);
        machine.shutdown();
    }
}
