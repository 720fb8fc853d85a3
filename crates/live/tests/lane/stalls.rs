//! StallCause reports: what a lane did that did not turn.
//!
//! A callback that is stuck here waits until it was reported, so a test that passes has seen a report of a
//! lane that was stuck at that moment.

use crate::scene::{PATIENCE, builder, cpu, drive, eventually};
use quietcore_live::{
    Cpu, Machine, MachineBuilder, OnPanic, TimerOptions,
    stall::{StallCause, StallReport},
};
use std::panic::{Location, resume_unwind};
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_millis(3);

/// Reports of CPU 0.
fn reports(machine: &Machine) -> Vec<StallReport> {
    machine.stalls().into_iter().filter(|report| report.cpu == cpu(0)).collect()
}

/// Those of them that name a callback. Where the machine is slow, the lane may have been silent before.
fn reports_of_callbacks(machine: &Machine) -> Vec<StallReport> {
    let mut found = reports(machine);
    found.retain(|report| matches!(report.stall, StallCause::Running { .. }));
    found
}

/// Blocks until there is one of `reports`, or for very long.
fn block_until(reports: impl Fn() -> Vec<StallReport>) {
    let end = Instant::now() + PATIENCE;
    while reports().is_empty() && Instant::now() < end {
        thread::sleep(Duration::from_millis(50));
    }
}

/// What lane 0 is reported for: a callback that blocks until then. With the line of the arm.
fn reported(builder: MachineBuilder) -> (&'static Machine, StallReport, u32) {
    let machine = builder.start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let timer = machine.timer(TimerOptions::new().pinned(), |run| {
        block_until(|| reports_of_callbacks(run.timer().machine()));
    });
    let other = machine.timer(TimerOptions::new(), |_| ());
    let (_lane, (line, timers)) = drive(machine, 0, move |_| {
        // Something that waits for the lane, so that a thread misses it.
        other.arm_after(SOON * 2).expect("it runs");
        let line = line!() + 1;
        timer.arm_after(SOON).expect("it runs");
        (line, (timer, other))
    });
    eventually("lane 0 is reported", || !reports_of_callbacks(machine).is_empty());
    drop(timers);
    let report = reports_of_callbacks(machine).remove(0);
    (machine, report, line)
}

fn running(report: &StallReport) -> (&'static str, Option<&'static Location<'static>>) {
    match report.stall {
        StallCause::Running { name, armed, timer, function } => {
            assert!(timer != 0 && function != 0, "{report}");
            (name, armed)
        }
        other => panic!("{other:?}: {report}"),
    }
}

/// Goal: a callback that blocks is reported with its lane, thread, name and arm site; the end is added when
/// the lane is back, and the report is still there after the machine. Method: one that blocks for 50 ms and
/// until it was reported.
#[test]
fn a_callback_that_blocks_is_named() {
    let (machine, report, line) = reported(builder().arm_locations());
    let (name, armed) = running(&report);
    assert!(name.contains("stalls::reported") && name.ends_with("{{closure}}"), "{name}");
    let armed = armed.expect("the machine records arm locations");
    assert_eq!((armed.line(), armed.file().ends_with("stalls.rs")), (line, true), "{armed}");
    assert!(report.thread.is_some_and(|thread| thread != std::process::id()), "{report}");
    let shown = report.to_string();
    assert!(shown.starts_with("lane 0 (thread ") && !shown.contains('\n'), "{shown}");
    assert!(shown.contains(name) && shown.contains(&format!("armed at {armed}")), "{shown}");
    eventually("it is back", || reports_of_callbacks(machine)[0].ended.is_some());
    assert!(
        reports_of_callbacks(machine)[0].length() >= report.length(),
        "it includes what came after the report"
    );
    let counted: u64 = machine.metrics().cpus.iter().map(|cpu| cpu.stalls).sum();
    assert_eq!(counted, machine.stalls().len() as u64 + machine.stalls_dropped());
    machine.shutdown();
    assert_eq!(
        running(&reports_of_callbacks(machine)[0]),
        (name, Some(armed)),
        "the end of the machine loses nothing"
    );
    assert!(
        reports_of_callbacks(machine)[0].to_string().contains(" did not turn for "),
        "{}",
        reports_of_callbacks(machine)[0]
    );
}

/// Goal: without that setting there is no arm site, and all else is as before.
#[test]
fn arm_locations_are_recorded_on_demand() {
    let (machine, report, _) = reported(builder());
    assert_eq!(running(&report).1, None);
    assert!(!report.to_string().contains("armed at"), "{report}");
    machine.shutdown();
}

/// Goal: a panic of the callback that blocked loses nothing. Method: it panics after it was reported.
#[test]
fn a_panic_loses_no_report() {
    let machine = builder().on_panic(OnPanic::Continue).start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let timer = machine.timer(TimerOptions::new().pinned(), |run| {
        block_until(|| reports_of_callbacks(run.timer().machine()));
        resume_unwind(Box::new("without a message, which may take long to print"));
    });
    let other = machine.timer(TimerOptions::new(), |_| ());
    let (_lane, timers) = drive(machine, 0, move |_| {
        other.arm_after(SOON * 2).expect("it runs");
        timer.arm_after(SOON).expect("it runs");
        (timer, other)
    });
    eventually("it panicked", || machine.metrics().sum(|cpu| cpu.panics) == 1);
    assert!(running(&reports_of_callbacks(machine)[0]).0.ends_with("{{closure}}"));
    drop(timers);
    machine.shutdown();
}

/// Goal: a lane that never turns is reported, without a callback. Method: it blocks before its first turn,
/// with a timer of its own that waits.
#[test]
fn a_lane_that_never_turns_is_reported() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let timer = machine.timer(TimerOptions::new(), |_| ());
    let (lane, timer) = drive(machine, 0, move |lane| {
        timer.arm_after(SOON).expect("it runs");
        block_until(|| reports(lane.machine()));
        timer
    });
    let report = reports(machine).remove(0);
    assert_eq!(report.stall, StallCause::Elsewhere, "{report}");
    assert!(report.to_string().ends_with(": nothing of the machine's"), "{report}");
    drop(timer);
    machine.shutdown();
    lane.join().expect("no panic");
}

/// Goal: a spare that does not turn is reported as a lane is. Method: no thread drives a lane; a callback
/// blocks on the first spare until that was reported, and something else is due.
#[test]
fn a_spare_that_does_not_turn_is_reported() {
    let of_spares = |machine: &Machine| {
        let mut found = machine.stalls();
        found.retain(|report| report.cpu > cpu(1) && matches!(report.stall, StallCause::Running { .. }));
        found
    };
    let machine = builder().spare_lanes(2).start().expect("starts");
    let blocks = machine.timer(TimerOptions::new(), move |run| {
        block_until(|| of_spares(run.timer().machine()));
    });
    let other = machine.timer(TimerOptions::new(), |_| ());
    blocks.arm_after(SOON).expect("it runs");
    other.arm_after(SOON * 2).expect("it runs");
    eventually("the spare is reported", || !of_spares(machine).is_empty());
    assert_ne!(of_spares(machine), [], "and stays so");
    machine.shutdown();
}

/// Goal: a lane that leaves while it is reported does not look as if it had turned. Method: it blocks, and
/// its CPU is dropped without a turn.
#[test]
fn a_lane_that_leaves_has_no_end() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let timer = machine.timer(TimerOptions::new(), |_| ());
    let lane = thread::spawn(move || {
        let lane = Cpu::claim(machine, cpu(0)).expect("it is free");
        timer.arm_after(SOON).expect("it runs");
        block_until(|| reports(machine));
        drop(lane);
        timer
    });
    let _timer = lane.join().expect("no panic");
    assert_eq!(reports(machine)[0].ended, None, "{}", reports(machine)[0]);
    machine.shutdown();
}

/// Goal: a machine without lanes has no thread to report.
#[test]
fn without_lanes_there_are_no_stalls() {
    let machine = Machine::start().expect("starts");
    assert!(machine.stalls().is_empty() && machine.stalls_dropped() == 0);
    machine.shutdown();
}

/// Goal: a silence that its thread did not end has no end, also when another one drives the lane. Method: the
/// test's own lane is silent until that is reported, leaves, and is claimed again.
#[test]
fn a_lane_that_leaves_has_not_turned_again() {
    let machine = builder().start().expect("starts");
    let (_other, ()) = drive(machine, 1, |_| ());
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    lane.turn();
    eventually("it is silent", || reports(machine).last().is_some_and(|report| report.ended.is_none()));
    let number = reports(machine).last().expect("it is there").number;
    drop(lane);
    let mut lane = Cpu::claim(machine, cpu(0)).expect("a free lane");
    lane.turn();
    lane.turn();
    let reports = reports(machine);
    let report = reports.iter().find(|report| report.number == number).expect("it is kept");
    assert_eq!(report.ended, None, "{report}");
    drop(lane);
    machine.shutdown();
}
