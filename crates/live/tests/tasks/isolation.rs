//! Isolation of everything at once, while it all goes on.

use crate::scene::{Gate, cpu, lane_here, lanes, wait_for};
use futures_executor::block_on;
use quietcore_live::{
    CpuSet, Machine, TimerOptions,
    task::{Priority, WorkOptions},
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// What is counted while lanes are isolated and not.
#[derive(Debug, Default)]
struct Seen {
    /// The lane that is isolated now, plus one; 0: none, or no thread knows.
    isolated: AtomicU64,
    /// By kind of load.
    foreign: [AtomicU64; 4],
    started: AtomicU64,
    ran: AtomicU64,
}

impl Seen {
    /// Something foreign runs here. The lane may be isolated while it does; not before it begins.
    fn begin(&self, kind: usize) {
        let isolated = self.isolated.load(Ordering::SeqCst);
        if isolated != 0 && lane_here().is_some_and(|lane| lane as u64 + 1 == isolated) {
            self.foreign[kind].fetch_add(1, Ordering::Relaxed);
        }
        self.ran.fetch_add(1, Ordering::SeqCst);
    }
}

fn flip(machine: &'static Machine, seen: &Seen, rounds: u64) {
    let is_over = |round| round >= rounds && seen.started.load(Ordering::SeqCst) > 4000;
    for round in (0..).take_while(|round| !is_over(*round)) {
        let lane = cpu(round % 2);
        let report = machine.set_isolated(&CpuSet::range(lane, 1).expect("small")).expect("one is left");
        assert!(report.still_running.is_empty(), "{report:?}");
        seen.isolated.store(lane.index() as u64 + 1, Ordering::SeqCst);
        thread::yield_now();
        seen.isolated.store(0, Ordering::SeqCst);
        if round % 7 == 0 {
            machine.set_isolated(&CpuSet::new()).expect("no thread is");
        }
    }
}

/// Goal: after `set_isolated` returned nothing foreign starts on that lane, and nothing is lost. Method: four
/// threads arm, spawn, spawn real-time and queue work while lanes are isolated in turns; every callback looks
/// where it is.
#[test]
fn nothing_foreign_starts() {
    let machine = lanes().start().expect("starts");
    let (seen, is_over) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
    let threads: Vec<_> = (0..4)
        .map(|kind| {
            let (seen, is_over) = (Arc::clone(&seen), Arc::clone(&is_over));
            thread::spawn(move || load(machine, kind, &seen, &is_over))
        })
        .collect();
    flip(machine, &seen, 300);
    is_over.store(true, Ordering::SeqCst);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let (started, ran) = (seen.started.load(Ordering::SeqCst), seen.ran.load(Ordering::SeqCst));
    let foreign = seen.foreign.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert_eq!(foreign, [0; 4], "timers, work, tasks, real-time tasks; of {ran}");
    assert!(ran >= started, "{ran} of {started} ran");
    machine.shutdown();
}

/// One kind of load, one at a time, so that each is known to have run.
fn load(machine: &'static Machine, kind: usize, seen: &Arc<Seen>, is_over: &AtomicBool) {
    let (sender, receiver) = channel();
    let counts = Arc::clone(seen);
    let tell = move || {
        counts.begin(kind);
        sender.send(()).expect("a thread waits");
    };
    match kind {
        0 => {
            let timer = machine.timer(TimerOptions::new(), move |_| tell());
            while !is_over.load(Ordering::SeqCst) {
                seen.started.fetch_add(1, Ordering::SeqCst);
                timer.arm_at(machine.now()).expect("it runs");
                wait_for(&receiver);
            }
        }
        1 => {
            let work = machine.work(WorkOptions::new(), tell).expect("a lane");
            while !is_over.load(Ordering::SeqCst) {
                seen.started.fetch_add(1, Ordering::SeqCst);
                work.queue().expect("it runs");
                wait_for(&receiver);
            }
        }
        kind => {
            let priority = Priority::new(7).expect("1 to 99");
            while !is_over.load(Ordering::SeqCst) {
                seen.started.fetch_add(1, Ordering::SeqCst);
                let counts = Arc::clone(seen);
                let task = async move { counts.begin(kind) };
                let task = if kind == 2 { machine.spawn(task) } else { machine.spawn_rt(priority, task) };
                block_on(task.expect("it runs")).expect("it ends");
            }
        }
    }
}

/// Goal: each call that isolates a lane tells of what still runs there, also if the lane was isolated before.
/// Method: a task that may move is kept on the lane; two calls, and a third when it has ended.
#[test]
fn what_still_runs_is_told_each_time() {
    let machine = lanes().start().expect("starts");
    let lane = |list: &str| list.parse::<CpuSet>().expect("a list");
    let (gate, (tell, began)) = (Gate::default(), channel());
    let holds = gate.clone();
    let task = machine.spawn(async move {
        tell.send(lane_here()).expect("the test waits");
        holds.wait();
    });
    let here = wait_for(&began).expect("on a lane").to_string();
    for _ in 0..2 {
        let report = machine.set_isolated(&lane(&here)).expect("one is left");
        assert_eq!(report.still_running, lane(&here), "{report:?}");
    }
    gate.open();
    block_on(task.expect("it runs")).expect("it ends");
    let report = machine.set_isolated(&lane(&here)).expect("one is left");
    assert!(report.still_running.is_empty(), "{report:?}");
    machine.shutdown();
}
