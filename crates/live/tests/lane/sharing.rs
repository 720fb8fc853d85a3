//! Who runs a timer: its lane, or, when that sleeps or is stuck, another one. I7 and I8 of the stall protocol
//! on real threads.
//!
//! A callback that is stuck here waits for what only others can do, so a test that passes has seen them do
//! it.

use crate::scene::{Ran, builder, cpu, drive, eventually, teller, telling, wait_for};
use quietcore_live::{Machine, Nanos, TimerHandle, TimerOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(3);

/// Goal: a lane runs what it armed, on its own thread, also when it slept meanwhile; what is pinned no thread
/// else does. Method: near and beyond a tick, while the other lane sleeps; global timers again and again,
/// since on a loaded host another thread may be faster.
#[test]
fn a_lane_runs_what_it_armed() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let (pinned, pinned_ran) = teller(machine, TimerOptions::new().pinned());
    let (global, global_ran) = teller(machine, TimerOptions::new());
    let (mut pinned_on, mut global_on) = (Vec::new(), Vec::new());
    let (_lane, id) = drive(machine, 0, |_| thread::current().id());
    for after in [0, 1, 30].into_iter().cycle() {
        let at = Nanos(machine.now().0 + after * 1_000_000);
        pinned.arm_on(cpu(0), at).expect("it has a lane");
        pinned_on.push(wait_for(&pinned_ran));
        global.arm_at(at).expect("it runs");
        global_on.push(wait_for(&global_ran));
        if global_on.contains(&(cpu(0), id)) || pinned_on.len() > 1000 {
            break;
        }
    }
    assert!(global_on.contains(&(cpu(0), id)), "{global_on:?}");
    assert!(pinned_on.iter().all(|on| *on == (cpu(0), id)), "{pinned_on:?}");
    machine.shutdown();
}

/// Goal: what a lane does is counted with it, each as what it is. Method: pinned timers that this thread arms
/// one after the other while the lane sleeps, until it was kicked for one.
#[test]
fn what_a_lane_does_is_counted() {
    let machine = builder().start().expect("starts");
    let (timer, ran) = teller(machine, TimerOptions::new().pinned());
    let (_lane, ()) = drive(machine, 0, |_| ());
    let of_lane = || machine.metrics().cpus[0].clone();
    let mut runs = 0;
    eventually("it is kicked", || {
        timer.arm_on(cpu(0), Nanos(machine.now().0 + 100_000)).expect("it has a lane");
        assert_eq!(wait_for(&ran).0, cpu(0));
        runs += 1;
        of_lane().kicks > 0
    });
    let counted = of_lane();
    assert_eq!((counted.ran_own, counted.ran_for_others), (runs, 0), "{counted:?}");
    assert!(counted.turns >= runs, "{counted:?}");
    assert_eq!((counted.panics, counted.items), (0, 0), "{counted:?}");
    machine.shutdown();
}

/// A timer whose callback says that it began, and ends when `until` says so.
fn stuck(
    machine: &'static Machine,
    options: TimerOptions,
    until: Receiver<Ran>,
) -> (TimerHandle, Receiver<Ran>) {
    let (began, receiver) = channel();
    let until = Mutex::new(until);
    let timer = machine.timer(options, move |run| {
        began.send((run.cpu(), thread::current().id())).expect("the test waits");
        let _ = until.lock().expect("one run at a time").recv_timeout(crate::scene::PATIENCE);
    });
    (timer, receiver)
}

/// Goal: while a lane's callback is stuck, others run its global timers, and no thread its pinned ones.
/// Method: the callback waits until the last of ten global ones ran; a pinned one is due at the same time.
#[test]
fn others_run_what_a_stuck_lane_cannot() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let (release, until) = channel();
    let (blocker, began) = stuck(machine, TimerOptions::new().pinned(), until);
    let (sender, ran) = channel();
    let timers: Vec<_> = (0..10).map(|_| telling(machine, TimerOptions::new(), &sender)).collect();
    let (pinned, pinned_ran) = teller(machine, TimerOptions::new().pinned());
    let (_lane, timers) = drive(machine, 0, move |_| {
        blocker.arm_after(Duration::from_millis(1)).expect("it runs");
        pinned.arm_after(SOON).expect("it runs");
        for (timer, number) in timers.iter().zip(0..) {
            timer.arm_after(SOON * number).expect("it runs");
        }
        (blocker, pinned, timers)
    });
    assert_eq!(wait_for(&began).0, cpu(0));
    for _ in 0..9 {
        // The first may have run before the lane was stuck.
        wait_for(&ran);
    }
    let last = wait_for(&ran);
    assert_ne!(last.0, cpu(0), "it is stuck");
    assert!(pinned_ran.try_recv().is_err(), "a pinned timer waits for its lane");
    release.send(last).expect("the callback waits");
    assert_eq!(wait_for(&pinned_ran).0, cpu(0));
    let marks: u64 = machine.metrics().cpus.iter().map(|cpu| cpu.bases.marks).sum();
    assert!(marks > 0, "somebody noticed");
    drop(timers);
    machine.shutdown();
}

/// Goal: I7 and I8: every lane is stuck, and so is the thread that is kicked next; what is due runs all the
/// same, on the spare. Method: two stuck callbacks and a third timer, all on one lane, which the third ends;
/// two lanes, one spare.
#[test]
fn whoever_is_kicked_may_be_stuck_too() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let ((release_first, first), (release_second, second)) = (channel(), channel());
    let (first, first_began) = stuck(machine, TimerOptions::new(), first);
    let (second, second_began) = stuck(machine, TimerOptions::new(), second);
    let (last, ran) = teller(machine, TimerOptions::new());
    let (_lane, timers) = drive(machine, 0, move |_| {
        first.arm_after(SOON).expect("it runs");
        second.arm_after(SOON).expect("it runs");
        last.arm_after(SOON * 2).expect("it runs");
        (first, second, last)
    });
    let (first_on, second_on) = (wait_for(&first_began), wait_for(&second_began));
    let last_on = wait_for(&ran);
    assert!(first_on.0 != second_on.0 && second_on.0 != last_on.0 && last_on.0 != first_on.0);
    release_first.send(last_on).expect("it waits");
    release_second.send(last_on).expect("it waits");
    drop(timers);
    machine.shutdown();
}

/// Goal: a lane that says that it blocks gives everything away at once. Method: it blocks until its own timer
/// ran elsewhere; a foreign thread arms another one meanwhile.
#[test]
fn a_lane_that_blocks_politely_gives_its_timers_away() {
    let machine = builder().start().expect("starts");
    let (timer, ran) = teller(machine, TimerOptions::new());
    let (_lane, (timer, on)) = drive(machine, 0, move |lane| {
        timer.arm_after(SOON).expect("it runs");
        let on = lane.block_in_place(|| {
            let first = wait_for(&ran).0;
            let foreign = timer.clone();
            thread::spawn(move || foreign.arm_after(SOON)).join().expect("no panic").expect("it runs");
            [first, wait_for(&ran).0]
        });
        (timer, on)
    });
    assert!(!on.contains(&cpu(0)), "{on:?}");
    drop(timer);
    machine.shutdown();
}

/// Goal: a lane that is busy without turning is not waited for: what it armed, and what others arm, runs.
/// Method: it spins until both have run elsewhere.
#[test]
fn a_lane_that_does_not_turn_is_not_waited_for() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let (own, own_ran) = teller(machine, TimerOptions::new());
    let (foreign, foreign_ran) = teller(machine, TimerOptions::new());
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let lane = thread::spawn(move || {
        drive(machine, 0, move |_| {
            own.arm_after(Duration::from_millis(30)).expect("it runs");
            // Relaxed: only that it comes counts.
            while !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })
    });
    assert_ne!(wait_for(&own_ran).0, cpu(0));
    foreign.arm_after(SOON).expect("it runs");
    assert_ne!(wait_for(&foreign_ran).0, cpu(0));
    stop.store(true, Ordering::Relaxed);
    let _ = lane.join().expect("no panic");
    machine.shutdown();
}

/// Goal: with stall handling off, no thread takes over: that is what the experiment's control measures.
/// Method: as above, with a callback that is stuck until the test has seen that nothing else runs.
#[test]
fn without_stall_handling_a_stuck_lane_is_waited_for() {
    let machine = builder().stall_after(Duration::MAX).start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let (release, until) = channel();
    let (blocker, began) = stuck(machine, TimerOptions::new().pinned(), until);
    let (timer, ran) = teller(machine, TimerOptions::new());
    let (_lane, timers) = drive(machine, 0, move |_| {
        blocker.arm_after(Duration::from_millis(1)).expect("it runs");
        timer.arm_after(SOON).expect("it runs");
        (blocker, timer)
    });
    let began = wait_for(&began);
    assert!(ran.recv_timeout(Duration::from_millis(100)).is_err(), "nobody may take over");
    release.send(began).expect("it waits");
    assert_eq!(wait_for(&ran).0, cpu(0));
    assert!(machine.metrics().cpus.iter().all(|cpu| cpu.bases.marks == 0));
    drop(timers);
    machine.shutdown();
}

/// Goal: many timers, armed by lanes and others, each run once per arm and never before their time, while
/// lanes get stuck for a while. Method: real threads, 200 ms; counts.
#[test]
fn each_arm_runs_once_while_lanes_get_stuck() {
    let machine = builder().start().expect("starts");
    let (sender, ran): (Sender<(usize, bool)>, _) = channel();
    let timers: Arc<Vec<TimerHandle>> = Arc::new(
        (0..64)
            .map(|number| {
                let sender = sender.clone();
                machine.timer(TimerOptions::new(), move |run| {
                    let _ = sender.send((number, run.now() < run.scheduled()));
                    if number % 16 == 0 {
                        thread::sleep(Duration::from_millis(5));
                    }
                })
            })
            .collect(),
    );
    let lanes = [0, 1].map(|index| {
        let timers = Arc::clone(&timers);
        drive(machine, index, move |_| {
            for timer in timers.iter().skip(index as usize).step_by(2) {
                timer.arm_after(SOON).expect("it runs");
            }
        })
    });
    let mut runs = [0_u32; 64];
    let mut left = 64 * 20;
    while left > 0 {
        let (number, is_early) = wait_for(&ran);
        assert!(!is_early, "timer {number}");
        runs[number] += 1;
        left -= 1;
        if runs[number] < 20 {
            assert!(!timers[number].arm_after(SOON).expect("it runs"), "timer {number} is lost count of");
        }
    }
    assert!(runs.iter().all(|runs| *runs == 20), "{runs:?}");
    eventually("all idle", || timers.iter().all(|timer| !timer.is_pending() && !timer.is_running()));
    assert!(ran.try_recv().is_err(), "nothing runs twice");
    drop(lanes);
    machine.shutdown();
}

/// Goal: a spare that was needed once leaves everything to lanes again, when they can. Method: both lanes are
/// stuck until the spare has run something; then a timer runs every 3 ms, and after some of that only on
/// lanes, for as long as the host lets them turn.
#[test]
fn a_spare_leaves_what_lanes_can_do() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let ((release_first, first), (release_second, second)) = (channel(), channel());
    let (first, first_began) = stuck(machine, TimerOptions::new(), first);
    let (second, second_began) = stuck(machine, TimerOptions::new(), second);
    let (every, ran) = teller(machine, TimerOptions::new());
    let (_lane, timers) = drive(machine, 0, move |_| {
        first.arm_after(SOON).expect("it runs");
        second.arm_after(SOON).expect("it runs");
        let begin = machine.now().as_u64() + 2 * SOON.as_nanos() as u64;
        every.arm_periodic(quietcore_live::Nanos(begin), Duration::from_millis(3)).expect("it runs");
        (first, second, every)
    });
    let (first_on, second_on) = (wait_for(&first_began), wait_for(&second_began));
    let spare = wait_for(&ran).0;
    assert!(first_on.0 != spare && second_on.0 != spare);
    release_first.send(first_on).expect("it waits");
    release_second.send(first_on).expect("it waits");
    let count = || machine.metrics().sum(|cpu| cpu.stalls);
    let (mut as_it_should, mut on_lanes, mut stalls) = (0, 0, count());
    eventually("it runs on lanes only", || {
        let is_spare = wait_for(&ran).0 == spare;
        // The host took a lane's CPU away.
        let is_stuck = machine.stalls().iter().any(|stall| stall.ended.is_none());
        let before = std::mem::replace(&mut stalls, count());
        let has_cause = stalls > before || is_stuck;
        as_it_should = if is_spare && !has_cause { 0 } else { as_it_should + 1 };
        on_lanes = if is_spare { 0 } else { on_lanes + 1 };
        as_it_should >= 30 && on_lanes >= 5
    });
    drop(timers);
    machine.shutdown();
}
