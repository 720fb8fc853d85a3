//! A lane inside of an embedder's own loop: it waits for a descriptor, and other threads wake it.

use crate::scene::{builder, cpu, teller, wait_for};
use quietcore_live::{
    Cpu, Machine, Precision, TimerOptions,
    lane::{IdleUntil, WaitBy},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Waits as an embedder does: for the descriptor, until the moment.
fn wait(lane: &mut Cpu, idle: IdleUntil) {
    let timeout = idle
        .timeout(lane.machine().now())
        .map(|span| Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() });
    let fd = lane.kick_fd().expect("it was claimed with one");
    let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref());
}

/// A thread that drives CPU 0 in a loop of its own until the machine is shut down.
fn embed(machine: &'static Machine) -> thread::JoinHandle<()> {
    let (sender, receiver) = channel();
    let thread = thread::spawn(move || {
        let mut lane = Cpu::claim_with(machine, cpu(0), WaitBy::KickFd).expect("free");
        sender.send(()).expect("the test waits");
        while machine.is_running() {
            if !lane.turn().has_more {
                let idle = lane.enter_idle();
                wait(&mut lane, idle);
                lane.exit_idle();
            }
        }
    });
    wait_for(&receiver);
    thread
}

/// Goal: kicks reach a lane that waits for its descriptor: timers that others pin to it, near and far, exact
/// or not, run there; and a shutdown ends its wait. Method: a loop with poll.
#[test]
fn kicks_arrive_at_the_descriptor() {
    let machine = builder().start().expect("starts");
    let lane = embed(machine);
    for precision in [Precision::Tick, Precision::Exact] {
        let (sender, ran) = channel();
        let timer = machine.timer(TimerOptions::new().precision(precision).pinned(), move |run| {
            let _ = sender.send((run.cpu(), run.now() < run.scheduled()));
        });
        for after in [0, 300_000, 2_000_000, 30_000_000].into_iter().cycle().take(40) {
            let at = quietcore_live::Nanos(machine.now().0 + after);
            timer.arm_on(cpu(0), at).expect("it has a lane");
            assert_eq!(wait_for(&ran), (cpu(0), false), "{precision:?} after {after} ns");
        }
    }
    machine.shutdown();
    lane.join().expect("it ends");
}

/// Goal: an unpark ends a wait that has begun or is about to; work that was left before is seen. Method:
/// another thread hands over numbers, one at a time, to a lane with nothing else to wait for.
#[test]
fn work_of_others_ends_a_wait() {
    let machine = builder().start().expect("starts");
    let (sender, work) = channel();
    let (done, receiver) = channel();
    let (handle, unparker) = channel();
    let lane = thread::spawn(move || {
        let mut lane = Cpu::claim(machine, cpu(0)).expect("free");
        handle.send(lane.unparker()).expect("the test waits");
        while machine.is_running() {
            lane.turn();
            let mut found = None;
            lane.park_unless(|| {
                found = work.try_recv().ok();
                found.is_some()
            });
            found.into_iter().for_each(|number: u32| done.send(number).expect("the test waits"));
        }
    });
    let unparker = wait_for(&unparker);
    for number in 0..500 {
        sender.send(number).expect("the lane lives");
        unparker.unpark();
        assert_eq!(wait_for(&receiver), number);
    }
    machine.shutdown();
    lane.join().expect("it ends");
}

/// Goal: a machine's stop (SIGSTOP, a VM's pause) makes every thread look stuck, and nothing is early, lost
/// or twice afterwards. Method: both lanes do not turn for 30 ms, at the same time, with timers due.
#[test]
fn after_a_stop_of_all_lanes_everything_runs_once() {
    let machine = builder().start().expect("starts");
    let (timer, ran) = teller(machine, TimerOptions::new());
    let lanes = [0, 1].map(|index| {
        let timer = timer.clone();
        thread::spawn(move || {
            let mut lane = Cpu::claim(machine, cpu(index)).expect("free");
            lane.turn();
            if index == 0 {
                timer.arm_after(Duration::from_millis(5)).expect("it runs");
            }
            thread::sleep(Duration::from_millis(30));
            crate::scene::turn_and_park(&mut lane);
        })
    });
    wait_for(&ran);
    thread::sleep(Duration::from_millis(50));
    assert!(ran.try_recv().is_err() && !timer.is_pending(), "once");
    machine.shutdown();
    for lane in lanes {
        lane.join().expect("it ends");
    }
}

/// Goal: a kick that comes while a lane looks for the last time, before it sleeps, ends the sleep. Method:
/// the look itself kicks, and says that there is nothing.
#[test]
fn a_kick_during_the_last_look_arrives() {
    let machine = builder().start().expect("starts");
    let (done, is_done) = channel();
    let thread = thread::spawn(move || {
        let mut lane = Cpu::claim(machine, cpu(0)).expect("it is free");
        for _ in 0..20 {
            let unparker = lane.unparker();
            lane.park_unless(|| {
                unparker.unpark();
                false
            });
        }
        done.send("woken each time").expect("the test waits");
    });
    assert_eq!(wait_for(&is_done), "woken each time");
    thread.join().expect("no panic");
    machine.shutdown();
}
