//! Real-time tasks go first, in order, and where they can run.

use crate::scene::{Gate, builder, cpu, drive, eventually, lane_here, lanes, wait_for};
use futures_executor::block_on;
use quietcore_live::{
    Cpu, Machine, Nanos, TimerOptions,
    task::{Priority, TaskOptions},
};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn priority(number: u8) -> Priority {
    Priority::new(number).expect("1 to 99")
}

/// Goal: the highest priority first, those of one in their order, normal ones last. Method: all of them wait
/// when the only lane begins to turn; it never counts as stuck, as a spare would run them.
#[test]
fn in_order() {
    let lanes = "0".parse().expect("a list");
    let machine = Machine::builder().lanes(lanes).stall_after(Duration::MAX).start().expect("starts");
    let log = Arc::new(Mutex::new(Vec::new()));
    let leave = |options: TaskOptions, name: &'static str| {
        let log = Arc::clone(&log);
        machine.spawn_with(options, async move { log.lock().expect("no panic").push(name) })
    };
    let mut cpu = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let normal = TaskOptions::new();
    let tasks = [
        leave(normal, "normal"),
        leave(normal.realtime(priority(20)), "20 first"),
        leave(normal.realtime(priority(90)), "90"),
        leave(normal.realtime(priority(20)), "20 second"),
        leave(normal.lane(cpu.cpu()), "bound"),
        leave(normal.realtime(priority(21)).lane(cpu.cpu()), "21"),
    ]
    .map(|task| task.expect("it runs"));
    while tasks.iter().any(|task| !task.is_finished()) {
        cpu.turn();
    }
    let log = log.lock().expect("no panic").clone();
    assert_eq!(log[..4], ["90", "21", "20 first", "20 second"]);
    assert_eq!(log[4..].iter().filter(|name| ["normal", "bound"].contains(*name)).count(), 2);
    assert_eq!(machine.metrics().sum(|cpu| cpu.realtime_polls), 4);
    drop(cpu);
    machine.shutdown();
}

/// Goal: a real-time task that would wait behind something that runs goes elsewhere. Method: one lane is kept
/// in a normal task; those that ran there last run on the other meanwhile, and say so.
#[test]
fn they_go_where_they_can_run() {
    let machine = lanes().start().expect("starts");
    for round in 0..20 {
        let busy = round % 2;
        let (gate, (sender, began)) = (Gate::default(), channel());
        let holds = gate.clone();
        let holder = machine.spawn_on(cpu(busy), async move {
            sender.send(()).expect("the test waits");
            holds.wait();
        });
        wait_for(&began);
        let wanders = machine.spawn_rt(priority(10), async move { lane_here() }).expect("it runs");
        assert_ne!(block_on(wanders).expect("it ends"), Some(busy as usize), "it is kept");
        gate.open();
        block_on(holder.expect("it runs")).expect("it ends");
    }
    machine.shutdown();
}

/// Goal: what waits behind a higher one is taken by a lane that becomes free. Method: both lanes are kept by
/// real-time tasks while lower ones come; the lane that is let go runs all of those that may move. Where the
/// host does not let it turn at once the spare does that, and it is tried again.
#[test]
fn a_free_lane_pulls() {
    let machine = lanes().start().expect("starts");
    let ran_there = (0..100).any(|_| where_six_ran_beside(machine, 0) == [Some(1); 6]);
    assert!(ran_there, "the lane that is let go runs all");
    machine.shutdown();
}

/// Where six real-time tasks ran that came while both lanes were kept, of which `kept` is so until they have.
fn where_six_ran_beside(machine: &'static Machine, kept: usize) -> [Option<usize>; 6] {
    let gates = [Gate::default(), Gate::default()];
    let (sender, began) = channel();
    let holders = [0, 1].map(|index| {
        let (gate, sender) = (gates[index].clone(), sender.clone());
        let options = TaskOptions::new().realtime(priority(90)).lane(cpu(index as u64));
        let holder = machine.spawn_with(options, async move {
            sender.send(()).expect("the test waits");
            gate.wait();
        });
        holder.expect("it runs")
    });
    wait_for(&began);
    wait_for(&began);
    let waiting = [(); 6].map(|()| machine.spawn_rt(priority(10), async { lane_here() }).expect("it runs"));
    gates[1 - kept].open();
    let ran_on = waiting.map(|task| block_on(task).expect("it ends"));
    assert!(!ran_on.contains(&Some(kept)), "it is kept: {ran_on:?}");
    gates[kept].open();
    for holder in holders {
        block_on(holder).expect("it ends");
    }
    ran_on
}

/// Goal: a task that never waits starves what is below it on its lane, and nothing else; it can be aborted,
/// timers of its lane run on, and so does the machine. Method: it yields for ever, bound to one lane.
#[test]
fn one_that_never_waits() {
    let machine = lanes().start().expect("starts");
    let options = TaskOptions::new().realtime(priority(50)).lane(cpu(0));
    let forever = machine.spawn_with(options, async {
        loop {
            let mut has_yielded = false;
            core::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                if core::mem::replace(&mut has_yielded, true) {
                    core::task::Poll::Ready(())
                } else {
                    core::task::Poll::Pending
                }
            })
            .await;
        }
    });
    let forever = forever.expect("it runs");
    let polls = || machine.metrics().cpus[0].realtime_polls;
    eventually("it runs", || polls() > 1000);
    let below = machine.spawn_on(cpu(0), async { 1 }).expect("it runs");
    let elsewhere = machine.spawn(async { lane_here() }).expect("it runs");
    assert_ne!(block_on(elsewhere).expect("it ends"), Some(0));
    let (sender, receiver) = channel();
    let timer = machine.timer(quietcore_live::TimerOptions::new().pinned(), move |run| {
        let _ = sender.send(run.cpu());
    });
    timer.arm_on(cpu(0), machine.now()).expect("it has a lane");
    assert_eq!(wait_for(&receiver), cpu(0), "a timer of the lane that never rests");
    assert!(!below.is_finished(), "it is below");
    forever.abort();
    assert!(block_on(forever).is_err());
    assert_eq!(block_on(below).expect("it ends"), 1);
    machine.shutdown();
}

/// Goal: a task with a priority is not run by a lane that was claimed for nothing but its own. Method: the
/// only lane that is not isolated is busy, and never counts as stuck; the task waits for it.
#[test]
fn not_on_an_isolated_lane() {
    let machine = builder().stall_after(Duration::MAX).start().expect("starts");
    let (_isolated, ()) = drive(machine, 0, |_| ());
    let gate = Gate::default();
    let (_lane, ()) = drive(machine, 1, |_| ());
    machine.set_isolated(&"0".parse().expect("a list")).expect("the other is left");
    let (sender, began) = channel();
    let holds = gate.clone();
    let holder = machine.spawn_on(cpu(1), async move {
        sender.send(()).expect("the test waits");
        holds.wait();
    });
    wait_for(&began);
    let waits = machine.spawn_rt(priority(99), async {}).expect("it runs");
    let metrics = machine.metrics();
    assert_eq!((waits.is_finished(), metrics.cpus[0].items), (false, 0));
    gate.open();
    block_on(waits).expect("it ends");
    block_on(holder.expect("it runs")).expect("it ends");
    assert_eq!(machine.metrics().cpus[0].items, 0);
    machine.shutdown();
}

/// Goal: a real-time task that comes while timers run waits for one of them, not for the whole turn. Method:
/// the first of ten that are due at the same moment leaves one; no lane counts as stuck meanwhile, as a spare
/// would run the others.
#[test]
fn one_waits_for_one_timer_only() {
    let never = Duration::from_secs(3600);
    let lanes = "0".parse().expect("a list");
    let machine = Machine::builder().lanes(lanes).stall_after(never).start().expect("starts");
    let mut cpu = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let log = Arc::clone(&log);
        move || {
            let mut log = log.lock().expect("no panic");
            log.push(name);
            log.len()
        }
    };
    let timer = || {
        let (note, realtime) = (note("timer"), note("real-time"));
        machine.timer(TimerOptions::new(), move |_| {
            if note() == 1 {
                let realtime = realtime.clone();
                let options = TaskOptions::new().realtime(priority(50));
                drop(machine.spawn_with(options, async move { realtime() }));
            }
        })
    };
    let timers: Vec<_> = (0..10).map(|_| timer()).collect();
    let at = Nanos(machine.now().0 + 5_000_000);
    for timer in &timers {
        timer.arm_at(at).expect("it runs");
    }
    while log.lock().expect("no panic").len() < timers.len() + 1 {
        cpu.turn();
    }
    assert_eq!(log.lock().expect("no panic")[..2], ["timer", "real-time"]);
    drop(cpu);
    machine.shutdown();
}
