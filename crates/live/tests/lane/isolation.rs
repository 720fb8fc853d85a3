//! Isolation while lanes turn, and without lanes.

use crate::scene::{PATIENCE, both, builder, cpu, drive, eventually, teller, wait_for};
use quietcore_live::{
    Cpu, CpuSet, Machine, Nanos, TimerOptions,
    isolation::{Exclusion, IsolateError},
};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(3);

fn only(index: u64) -> CpuSet {
    CpuSet::range(cpu(index), 1).expect("a small set")
}

/// Goal: what others armed leaves an isolated lane, what it pinned stays, and what foreign threads arm from
/// then on goes elsewhere; afterwards it takes part again. Method: one timer of each kind, a minute ahead, on
/// a lane that turns; then new ones.
#[test]
fn an_isolated_lane_keeps_only_its_own() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let (pinned, pinned_ran) = teller(machine, TimerOptions::new().pinned());
    let (global, global_ran) = teller(machine, TimerOptions::new());
    let (_lane, (pinned, global)) = drive(machine, 0, move |_| {
        pinned.arm_after(Duration::from_secs(60)).expect("it runs");
        global.arm_after(Duration::from_secs(60)).expect("it runs");
        (pinned, global)
    });
    let report = machine.set_isolated(&only(0)).expect("the other is left");
    assert_eq!((report.evacuated, report.pinned_left), (1, 1), "{report:?}");
    assert_eq!((report.left, report.still_running), (only(0), CpuSet::new()));
    for _ in 0..20 {
        global.arm_after(SOON).expect("it runs");
        assert_ne!(wait_for(&global_ran).0, cpu(0), "wherever this thread happens to be");
    }
    pinned.arm_on(cpu(0), machine.now()).expect("it has a lane");
    assert_eq!(wait_for(&pinned_ran).0, cpu(0), "its own timers still wake it");
    let report = machine.set_isolated(&CpuSet::new()).expect("no thread is");
    assert_eq!(report.joined, only(0));
    machine.shutdown();
}

/// Goal: a lane that no thread drives gets no task, also after a change of what is isolated. Method: of two
/// lanes one is driven; as many tasks as lanes.
#[test]
fn a_lane_without_a_thread_gets_nothing() {
    let machine = builder().start().expect("starts");
    let (_lane, ()) = drive(machine, 1, |_| ());
    let _ = machine.set_isolated(&CpuSet::new()).expect("no thread is");
    let (sender, ran) = channel();
    for number in 0..4 {
        let sender = sender.clone();
        let tell = async move { sender.send(number).expect("the test waits") };
        let _task = machine.spawn(tell).expect("it has a lane");
        assert_eq!(wait_for(&ran), number);
    }
    machine.shutdown();
}

/// Goal: a callback that an isolated lane still runs for others is waited for, and reported if it does not
/// end. Method: a foreign timer's callback on a lane waits for the end of one call, and then ends during the
/// next.
#[test]
fn a_foreign_callback_that_still_runs_is_reported() {
    let machine = builder().start().expect("starts");
    let (began, has_begun) = channel();
    let (release, until) = channel::<()>();
    let until = Mutex::new(until);
    let timer = machine.timer(TimerOptions::new(), move |run| {
        began.send(run.cpu()).expect("the test waits");
        let _ = until.lock().expect("one run at a time").recv_timeout(PATIENCE);
    });
    let (_owner, timer) = drive(machine, 1, move |lane| {
        timer.arm_after(SOON).expect("it runs");
        // Gives it to lane 0 or the spare.
        lane.block_in_place(|| thread::sleep(SOON * 4));
        timer
    });
    let _ = timer;
    let runner = wait_for(&has_begun);
    let report = machine.set_isolated(&only(0)).expect("the other is left");
    assert_eq!(report.still_running.contains(cpu(0)), runner == cpu(0), "it runs on {runner}");
    release.send(()).expect("it waits");
    machine.shutdown();
}

/// Goal: refusals change nothing. Method: each reason.
#[test]
fn a_refusal_has_its_reason() {
    let machine = builder().cpus(both()).start().expect("starts");
    let refused = |set: &CpuSet| machine.set_isolated(set).expect_err("refused");
    assert_eq!(refused(&both()), IsolateError::NoHousekeeping);
    assert_eq!(refused(&only(2)), IsolateError::UnknownCpu { cpu: cpu(2) }, "that is the spare");
    machine.shutdown();
    assert_eq!(refused(&only(0)), IsolateError::NotRunning);
}

/// Goal: without lanes, too, what is armed from an isolated CPU waits elsewhere, and the helper keeps off it.
/// Method: a thread on CPU 0 arms; the machine's threads may run where the rule says.
#[test]
fn without_lanes_isolation_is_about_where_timers_wait() {
    let machine = Machine::builder().exclusion(Exclusion::V2).start().expect("starts");
    let (timer, ran) = teller(machine, TimerOptions::new());
    timer.arm_after(Duration::from_secs(60)).expect("it runs");
    let report = machine.set_isolated(&only(0)).expect("others are left");
    assert_eq!(report.left, only(0));
    timer.arm_after(SOON).expect("it runs");
    wait_for(&ran);
    let armed: Vec<u64> = machine.metrics().cpus.iter().map(|cpu| cpu.bases.armed).collect();
    timer.arm_after(SOON).expect("it runs");
    wait_for(&ran);
    let now: Vec<u64> = machine.metrics().cpus.iter().map(|cpu| cpu.bases.armed).collect();
    assert_eq!(now[0], armed[0], "CPU 0 is isolated");
    assert_eq!(now.iter().sum::<u64>(), armed.iter().sum::<u64>() + 1);
    machine.shutdown();
}

/// Goal: an isolated lane runs all that a turn has collected, though nothing else is armed there. Method:
/// more pinned timers, due at the same moment, than a turn runs.
#[test]
fn an_isolated_lane_runs_what_its_last_turn_left() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let mut lane = Cpu::claim(machine, cpu(0)).expect("it is free");
    machine.set_isolated(&only(0)).expect("one is left");
    let (tell, ran) = channel();
    let at = machine.now().as_u64() + SOON.as_nanos() as u64;
    let timers: Vec<_> = (0..600)
        .map(|_| {
            let tell = tell.clone();
            let options = TimerOptions::new().pinned();
            let timer = machine.timer(options, move |_| tell.send(()).expect("the test waits"));
            timer.arm_at(Nanos(at)).expect("it runs");
            timer
        })
        .collect();
    let mut left = timers.len();
    eventually("all ran", || {
        let _ = lane.turn();
        left -= ran.try_iter().count();
        left == 0
    });
    assert!(ran.try_recv().is_err(), "nothing runs twice");
    drop(lane);
    machine.shutdown();
}

/// Goal: what is isolated for good counts when CPUs are isolated at run time: one is left. Method: one of two
/// is isolated from the start, then the other.
#[test]
fn what_is_isolated_for_good_is_no_housekeeping() {
    let list = |text: &str| text.parse::<CpuSet>().expect("a list");
    let machine = Machine::builder().cpus(list("0-1")).lanes(list("0-1")).isolated(list("1")).start();
    let machine = machine.expect("starts");
    let refused = machine.set_isolated(&list("0"));
    assert_eq!(refused, Err(IsolateError::NoHousekeeping));
    machine.shutdown();
}
