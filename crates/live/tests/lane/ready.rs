//! Ready-made lane threads: every lane is driven, where and how it was asked.

use crate::scene::{both, cpu, eventually, teller, wait_for};
use quietcore_live::{
    Cpu, LaneThreads, Machine, Precision, TimerOptions,
    lane::{ClaimError, Pinning, StartNote},
};
use std::fs;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Goal: when the machine has started, every lane is driven: a pinned timer runs on each. Method: lanes as
/// this process's limits have them; each claimed already, each armed from outside.
#[test]
fn every_lane_is_claimed() {
    let machine =
        Machine::builder().automatic_lanes().lane_threads(LaneThreads::new()).start().expect("starts");
    let lanes: Vec<_> =
        machine.metrics().cpus.iter().filter(|cpu| !cpu.is_spare).map(|cpu| cpu.cpu).collect();
    for lane in lanes {
        let claim = Cpu::claim(machine, lane);
        if matches!(claim, Err(ClaimError::NotALane { .. })) {
            continue; // beyond the quota
        }
        assert!(matches!(claim, Err(ClaimError::Taken { .. })), "{claim:?}");
        let (timer, ran) = teller(machine, TimerOptions::new().pinned());
        timer.arm_on(lane, machine.now()).expect("it has a lane");
        assert_eq!(wait_for(&ran).0, lane);
    }
    machine.shutdown();
}

/// Policy and processor of the calling thread, as the kernel's status line has them.
fn policy_and_processor() -> (u32, u64) {
    let stat = fs::read_to_string("/proc/thread-self/stat").expect("mounted");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name in brackets").split_whitespace().collect();
    // The third field of all is the first after the name.
    let field = |number: usize| fields[number - 3];
    (field(41).parse().expect("a number"), field(39).parse().expect("a number"))
}

/// Goal: pinned threads run where their lanes are, with the priority asked for, or a note says why not.
/// Method: a callback on each lane looks at its own thread.
#[test]
fn threads_are_as_asked_or_a_note_says_so() {
    const FIFO: u32 = 1;
    let threads = LaneThreads::new().pinning(Pinning::Always).fifo(5);
    let machine = Machine::builder().lanes(both()).lane_threads(threads).start().expect("starts");
    let notes = machine.notes();
    let is_refused = notes.iter().any(|note| matches!(note, StartNote::NoPriority { .. }));
    for index in 0..2 {
        let (sender, receiver) = channel();
        let timer = machine.timer(TimerOptions::new().precision(Precision::Tick).pinned(), move |_| {
            let _ = sender.send(policy_and_processor());
        });
        timer.arm_on(cpu(index), machine.now()).expect("it has a lane");
        let (policy, processor) = wait_for(&receiver);
        assert_eq!(policy == FIFO, !is_refused, "{notes:?}");
        assert_eq!(processor, index, "{notes:?}");
    }
    machine.shutdown();
}

/// Goal: a shutdown ends the threads, also from a callback of one of them. Method: it returns.
#[test]
fn a_lane_may_shut_its_machine_down() {
    let machine = Machine::builder().lanes(both()).lane_threads(LaneThreads::new()).start().expect("starts");
    let (sender, receiver) = channel();
    let timer = machine.timer(TimerOptions::new(), move |_| {
        machine.shutdown();
        sender.send(()).expect("the test waits");
    });
    timer.arm_after(Duration::from_millis(2)).expect("it runs");
    wait_for(&receiver);
    assert!(!machine.is_running());
    // The callback's call could not wait for its own thread; this one waits for all of them.
    machine.shutdown();
}

/// Goal: spares have the priority of the machine's own threads, one above the lanes', or a note says why not.
/// Method: what the kernel says of the thread.
#[test]
fn spares_are_above_the_lanes_or_a_note_says_so() {
    let threads = LaneThreads::new().fifo(5);
    // A number of spares that no other test has.
    let machine =
        Machine::builder().lanes(both()).lane_threads(threads).spare_lanes(7).start().expect("starts");
    let cpus = thread::available_parallelism().expect("known").get();
    let last = format!("quietcore-s{}", cpus + 6);
    // Field 40 of its status line: the real-time priority.
    let priority = || {
        let tasks = fs::read_dir("/proc/self/task").expect("mounted");
        tasks.flatten().find_map(|task| {
            let stat = fs::read_to_string(task.path().join("stat")).ok()?;
            let (name, fields) = stat.rsplit_once(')')?;
            name.ends_with(&last).then(|| fields.split_whitespace().nth(40 - 3)?.parse::<u32>().ok())?
        })
    };
    let is_refused = || machine.notes().iter().any(|note| matches!(note, StartNote::NoPriority { .. }));
    eventually("it has begun", || is_refused() || priority().is_some_and(|priority| priority > 0));
    assert!(is_refused() || priority() == Some(6), "it is {:?}", priority());
    machine.shutdown();
}
