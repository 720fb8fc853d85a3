//! Threads: where they stay, and what is noted of those that do not.

use super::{Other, claim, cpu, eventually, quiet};
use crate::lane::{LaneThreads, Pinning, StartNote};
use futures_executor::block_on;
use rustix::thread::{CpuSet as Mask, sched_getaffinity};
use std::thread;

fn mask() -> Mask {
    sched_getaffinity(None).expect("it is this thread")
}

fn only(index: usize) -> Mask {
    let mut mask = Mask::new();
    mask.set(index);
    mask
}

/// Goal: a lane's thread is pinned if that is asked for, and says so; else it is left as it is. Method: the
/// mask that the kernel has for it.
#[test]
fn a_thread_is_pinned_when_asked() {
    let machine = quiet().start().expect("it starts");
    let check = move || {
        let lane = claim(machine, 1);
        let before = mask();
        assert_eq!((lane.pin_thread(Pinning::Never), mask()), (false, before));
        assert_eq!((lane.pin_thread(Pinning::Always), mask()), (true, only(1)));
    };
    std::thread::spawn(check).join().expect("no panic");
    // The machine's own threads may lack a priority.
    let not_pinned = |note: &StartNote| matches!(note, StartNote::NotPinned { .. });
    assert!(!machine.notes().iter().any(not_pinned));
    machine.shutdown();
}

/// Goal: ready-made lanes stay on their CPUs if that is asked for, and only then. Method: the mask that the
/// kernel has for each.
#[test]
fn ready_made_lanes_are_pinned_when_asked() {
    let all = mask();
    for (pinning, is_pinned) in [(Pinning::Always, true), (Pinning::Never, false)] {
        let threads = LaneThreads::new().pinning(pinning);
        let machine = quiet().lane_threads(threads).start().expect("it starts");
        for index in 0..2 {
            let mask = block_on(machine.spawn_on(cpu(index), async { mask() }).expect("it runs"));
            let expected = if is_pinned { only(index as usize) } else { all };
            assert_eq!(mask.expect("it ends"), expected, "{pinning:?}");
        }
        machine.shutdown();
    }
}

/// Goal: what could not be done is noted, each once, and the thread goes on. Method: a CPU that no host has,
/// and a priority that there is not, both twice; on a thread that ends.
#[test]
fn what_could_not_be_done_is_noted_once() {
    let machine = quiet().start().expect("it starts");
    let fail = move || {
        for _ in 0..2 {
            assert!(!machine.pin(cpu(1000)));
            machine.raise_priority(Some(200));
        }
    };
    std::thread::spawn(fail).join().expect("no panic");
    let notes = machine.notes();
    let error = rustix::io::Errno::INVAL.raw_os_error();
    let expected =
        [StartNote::NotPinned { cpu: cpu(1000), error }, StartNote::NoPriority { priority: 200, error }];
    for note in expected {
        assert_eq!(notes.iter().filter(|one| **one == note).count(), 1, "{notes:?}");
    }
    machine.shutdown();
}

/// Goal: the end of one of the machine's own threads is no end of others. Method: a thread that joins and
/// leaves, beside the helper and a spare.
#[test]
fn one_thread_that_ends_takes_no_other_with_it() {
    let machine = quiet().start().expect("it starts");
    let count = || machine.lanes.own_threads().len();
    let others = if cfg!(feature = "tracing") { 3 } else { 2 };
    eventually("all of them have begun", || count() == others);
    let joined = machine.join_own_threads();
    assert_eq!(count(), others + 1);
    drop(joined);
    assert_eq!(count(), others);
    machine.shutdown();
}

/// Goal: a lane counts as left before its next thread can claim it, which would be forgotten otherwise.
/// Method: it leaves while the lock for such changes is held.
#[test]
fn a_lane_is_left_before_it_is_free() {
    let machine = quiet().start().expect("it starts");
    let other = Other::claim(machine, 0);
    let is_claimed = || machine.stalls.record(cpu(0)).thread().is_some();
    assert!(is_claimed());
    let control = machine.lanes.control();
    let leaves = thread::spawn(|| other.leave());
    eventually("it is left", || !is_claimed());
    assert!(!leaves.is_finished(), "it is not free");
    drop(control);
    leaves.join().expect("no panic");
    drop(claim(machine, 0));
    machine.shutdown();
}
