//! Who gets a CPU, and what becomes of it afterwards.

use crate::scene::{PATIENCE, builder, cpu, drive, teller, wait_for};
use quietcore_live::{
    Cpu, Machine, TimerOptions,
    lane::{ClaimError, WaitBy},
    softirq::{Runner, SoftirqRun, Vector},
};
use std::num::NonZeroU64;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Goal: a claim is refused for the reason it says, and a refused one leaves nothing behind. Method: each
/// reason once, then a claim that works.
#[test]
fn a_claim_is_refused_with_its_reason() {
    let machine = builder().start().expect("starts");
    let refused = |index, waits| Cpu::claim_with(machine, cpu(index), waits).expect_err("refused");
    assert!(matches!(refused(2, WaitBy::Park), ClaimError::NotALane { .. }), "2 is the spare");
    assert!(matches!(refused(900, WaitBy::KickFd), ClaimError::NotALane { .. }));
    let (lane, ()) = drive(machine, 0, |_| ());
    assert!(matches!(refused(0, WaitBy::Park), ClaimError::Taken { .. }));
    let mine = Cpu::claim(machine, cpu(1)).expect("free");
    assert!(matches!(refused(1, WaitBy::Park), ClaimError::ThreadHasCpu { .. }));
    drop(mine);
    machine.shutdown();
    lane.join().expect("it ends");
    assert!(matches!(refused(1, WaitBy::Park), ClaimError::NotRunning));
}

/// Goal: a thread's waits are precise while it drives a CPU, and then as they were. Method: its timer slack.
#[test]
fn a_thread_gets_its_timer_slack_back() {
    let machine = builder().start().expect("starts");
    let slack = || rustix::thread::current_timer_slack().expect("it is told");
    let set = |slack| rustix::thread::set_current_timer_slack(NonZeroU64::new(slack)).expect("it may");
    set(70_000);
    let mine = Cpu::claim(machine, cpu(0)).expect("free");
    assert_eq!(slack(), 1);
    drop(mine);
    assert_eq!(slack(), 70_000);
    machine.shutdown();
}

/// Goal: what a lane armed does not leave with it: pinned or not, it runs on another CPU. Method: a thread
/// claims a CPU, arms, and ends; twice, so that the CPU is claimed anew.
#[test]
fn timers_of_a_lane_that_leaves_run_elsewhere() {
    let machine = builder().start().expect("starts");
    for options in [TimerOptions::new(), TimerOptions::new().pinned()] {
        let (timer, ran) = teller(machine, options);
        let timer = thread::spawn(move || {
            let mut cpu = Cpu::claim(machine, cpu(1)).expect("free");
            timer.arm_after(Duration::from_millis(20)).expect("it runs");
            cpu.turn();
            timer
        });
        let timer = timer.join().expect("no panic");
        let (on, _) = wait_for(&ran);
        assert_ne!(on, cpu(1), "no thread drives it any more");
        assert!(!timer.is_pending());
    }
    machine.shutdown();
}

/// Goal: what was raised for a lane that leaves is run by its ksoftirqd, which stays. Method: a thread claims
/// a CPU, raises, and leaves without a turn.
#[test]
fn softirqs_of_a_lane_that_leaves_are_run() {
    let (sender, ran) = channel();
    let tell = move |run: &SoftirqRun<'_>| sender.send((run.cpu(), run.runner())).expect("the test waits");
    let machine = builder().softirq(Vector::NET_RX, tell).start().expect("starts");
    let mine = Cpu::claim(machine, cpu(1)).expect("free");
    machine.raise(cpu(1), Vector::NET_RX).expect("it has a handler");
    drop(mine);
    assert_eq!(wait_for(&ran), (cpu(1), Runner::Ksoftirqd));
    machine.shutdown();
}

/// Goal: a thread may end, or panic, with a CPU, and with one in a thread's own variable. Method: all three;
/// the CPU can be claimed again.
#[test]
fn a_thread_may_end_with_its_cpu() {
    thread_local! {
        static KEPT: std::cell::RefCell<Option<Cpu>> = const { std::cell::RefCell::new(None) };
    }
    let machine = builder().start().expect("starts");
    let claim = || Cpu::claim(machine, cpu(0)).expect("free again");
    thread::spawn(move || drop(claim())).join().expect("ends");
    let panicked = thread::spawn(move || {
        let _cpu = claim();
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(panicked.join().is_err());
    thread::spawn(move || KEPT.set(Some(claim()))).join().expect("ends");
    drop(claim());
    machine.shutdown();
}

/// Goal: before any thread claims a CPU, and after all have left, timers run: on the spare. Method: foreign
/// arms.
#[test]
fn without_any_lane_the_spare_runs_what_is_due() {
    let machine = builder().start().expect("starts");
    let (timer, ran) = teller(machine, TimerOptions::new());
    for _ in 0..3 {
        timer.arm_after(Duration::from_millis(3)).expect("it runs");
        assert_eq!(wait_for(&ran).0, cpu(spare(machine)));
        thread::spawn(move || drop(Cpu::claim(machine, cpu(0)))).join().expect("ends");
    }
    machine.shutdown();
}

/// The number of the first spare: one above the highest CPU.
fn spare(machine: &'static Machine) -> u64 {
    let metrics = machine.metrics();
    metrics.cpus.iter().find(|cpu| cpu.is_spare).map(|cpu| cpu.cpu.index() as u64).expect("there is one")
}

/// Goal: a lane that waits by itself returns when the machine is shut down, and can be dropped then. Method:
/// a lane parks with nothing armed.
#[test]
fn a_shutdown_ends_every_wait() {
    let machine = builder().start().expect("starts");
    let (lane, ()) = drive(machine, 0, |_| ());
    let (sender, receiver) = channel();
    thread::spawn(move || {
        machine.shutdown();
        lane.join().expect("it ends");
        sender.send(()).expect("the test waits");
    });
    assert!(receiver.recv_timeout(PATIENCE).is_ok(), "a wait did not end");
}
