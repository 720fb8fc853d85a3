//! Lanes that were marked, and what is written and told of them.

use super::{Other, TICK, claim, cpu, eventually, many, pass, quiet, still};
use crate::{Cpu, Machine};
use quietcore_core::MarkOutcome;
use std::time::Duration;

/// Another thread finds lane 0 stuck.
fn mark(machine: &Machine) {
    let outcome = machine.act(|actions| machine.core.mark_absent(cpu(0), actions));
    assert_eq!(outcome, MarkOutcome::Marked);
}

/// A machine whose lane 0 has turned, and is the test's own.
fn one_lane() -> (&'static Machine, Cpu) {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    lane.turn();
    (machine, lane)
}

/// Goal: the thread that asks for reports writes what no other has written. Method: a mark alone.
#[test]
fn who_asks_is_told_of_each_mark() {
    let (machine, lane) = one_lane();
    mark(machine);
    let reports = machine.stalls();
    assert_eq!((reports.len(), reports[0].cpu, reports[0].ended), (1, cpu(0), None));
    drop(lane);
    machine.shutdown();
}

/// Goal: a lane that turns again ends its report at that moment, also if nothing is due. Method: a mark, a
/// report, and a turn a while later; a later look at the reports.
#[test]
fn a_lane_that_turns_ends_its_report() {
    let (machine, mut lane) = one_lane();
    mark(machine);
    assert_eq!(machine.stalls().len(), 1);
    let back = pass(machine, TICK / 4);
    lane.turn();
    pass(machine, TICK / 4);
    assert_eq!(machine.stalls()[0].ended, Some(back));
    drop(lane);
    machine.shutdown();
}

/// Goal: the same of a lane that came back before its turn. Method: it ends a block that it was marked in.
#[test]
fn a_lane_that_is_back_ends_its_report_in_its_turn() {
    let (machine, mut lane) = one_lane();
    mark(machine);
    assert_eq!(machine.stalls().len(), 1);
    pass(machine, TICK / 4);
    lane.end_block();
    let turned = pass(machine, TICK / 4);
    lane.turn();
    pass(machine, TICK / 4);
    assert_eq!(machine.stalls()[0].ended, Some(turned));
    drop(lane);
    machine.shutdown();
}

/// Goal: the oldest reports are counted as dropped. Method: more marks than reports are kept.
#[test]
fn reports_that_are_not_kept_are_counted() {
    let (machine, mut lane) = one_lane();
    for _ in 0..70 {
        mark(machine);
        machine.report_stalls(machine.now());
        lane.turn();
    }
    assert_eq!((machine.stalls().len(), machine.stalls_dropped()), (64, 6));
    drop(lane);
    machine.shutdown();
}

/// Goal: a lane that leaves before its mark was reported is reported with its thread. Method: a mark, and the
/// thread leaves.
#[test]
fn a_lane_that_leaves_is_reported_with_its_thread() {
    let (machine, lane) = one_lane();
    mark(machine);
    drop(lane);
    let reports = machine.stalls();
    assert_eq!((reports.len(), reports[0].ended), (1, None));
    assert!(reports[0].thread.is_some(), "{}", reports[0]);
    machine.shutdown();
}

/// Goal: a spare is known by its thread like any lane. Method: what reports would say of it.
#[test]
fn a_spare_has_a_thread() {
    let machine = quiet().start().expect("it starts");
    let spare = machine.lanes.table().spares().first().expect("there is one");
    let thread = || machine.stalls.record(spare).thread();
    eventually("its thread came", || thread().is_some());
    assert_ne!(thread(), Some(std::process::id()), "it is not this one");
    machine.shutdown();
}

/// Goal: the lane that finds another one stuck writes the report at once. Method: a lane is silent for long,
/// with a timer that is overdue, while its neighbour turns; what is written is counted.
#[test]
fn the_lane_that_marks_writes_the_report() {
    let machine = still(quiet().stall_after(Duration::from_secs(100)));
    let second = 1000 * TICK;
    let other = Other::claim(machine, 1);
    let timer = other.act(|lane| {
        lane.turn();
        let timer = lane.machine().timer(crate::TimerOptions::new(), |_| ());
        timer.arm_after(Duration::from_millis(5)).expect("it runs");
        timer
    });
    let mut lane = claim(machine, 0);
    lane.turn();
    for _ in 0..2 {
        pass(machine, 60 * second);
        lane.turn();
    }
    assert!(machine.core.is_marked(cpu(1)));
    assert_eq!(machine.stalls.count(cpu(1)), 1);
    drop(timer);
    other.leave();
    drop(lane);
    machine.shutdown();
}

/// Goal: a lane that blocks is absent meanwhile and no longer, whether the code returns or panics. Method:
/// the mark, before any turn; a timer that is due in the end.
#[test]
fn a_lane_is_back_when_its_block_ends() {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    let is_marked = || machine.core.is_marked(cpu(0));
    assert!(lane.block_in_place(is_marked));
    assert!(!is_marked(), "it has returned");
    let panics = || lane.block_in_place(|| std::panic::resume_unwind(Box::new("on purpose")));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
    assert!(panicked.is_err() && !is_marked(), "it has panicked");
    let (timers, _) = many(machine, 0, 1);
    assert_eq!(lane.turn().ran, 1);
    drop((timers, lane));
    machine.shutdown();
}
