//! Timers that are armed together.

use super::{DAY, MS, Still, TICK, taken};
use crate::machine::ArmError;
use crate::timer::{CallbackTimer, Precision, TimerOptions};
use crate::{Machine, Nanos};
use core::time::Duration;
use std::sync::mpsc;

/// Goal: timers of all kinds that are armed together are armed as each by itself, however many they are, and
/// the answer counts those that were pending. Method: exact ones, periodic ones and a far one among those of
/// ticks, some pending, one of another machine; each runs when it should.
#[test]
fn as_one_after_the_other() {
    let (still, other) = (Still::new(), Still::new());
    let exact = TimerOptions::new().precision(Precision::Exact);
    let options = |number: u64| match number % 5 {
        0 => exact,
        1 => TimerOptions::new(),
        _ => TICK,
    };
    let timers: Vec<_> = (0..50).map(|number| still.logging(options(number))).collect();
    let mut pending = 0;
    for (number, (timer, _)) in timers.iter().enumerate() {
        match number % 7 {
            0 => _ = timer.arm_periodic(still.at(500), Duration::from_millis(3)).expect("it runs"),
            1 | 2 => _ = timer.arm_at(still.at(600)).expect("it runs"),
            _ => continue,
        }
        pending += 1;
    }
    let (stranger, log) = other.logging(TICK);
    let far = still.machine.timer(TimerOptions::new(), |_| {});
    let moment = |number: usize| still.at(10 + 3 * number as u64 % 40);
    let mut arms: Vec<(&CallbackTimer, Nanos)> = vec![];
    arms.extend(timers.iter().enumerate().map(|(number, (timer, _))| (&**timer, moment(number))));
    arms.insert(20, (&stranger, other.at(7)));
    arms.push((&far, still.at(1_000_000_000_000)));
    // The last arm of a timer counts.
    arms.insert(0, (&timers[3].0, still.at(70)));
    assert_eq!(still.machine.arm_many(arms), Ok(pending + 1));
    other.go(10);
    assert_eq!(taken(&log), [(7 * MS, 7 * MS, 0)], "its own machine runs it");
    still.go(200);
    for (number, (timer, log)) in timers.iter().enumerate() {
        let due = moment(number).0 - still.start;
        assert_eq!(taken(log), [(due, due, 0)], "timer {number}");
        assert!(!timer.is_pending(), "its periods are over");
    }
    assert!(far.is_pending());
    assert_eq!(still.machine.arm_many(core::iter::empty::<(&CallbackTimer, Nanos)>()), Ok(0));
    still.machine.shutdown();
    other.machine.shutdown();
}

/// Goal: of a timer that comes twice the last arm counts, also beside one that is further than the wheel
/// reaches. Method: two timers, near and far, and far and near.
#[test]
fn the_last_arm_counts() {
    let still = Still::new();
    let (far, (first, first_log)) = (Nanos(still.start + 100 * DAY), still.logging(TimerOptions::new()));
    let (second, second_log) = still.logging(TimerOptions::new());
    let near = still.at(5);
    let arms = [(&first, near), (&first, far), (&second, far), (&second, near)];
    assert_eq!(still.machine.arm_many(arms), Ok(2));
    still.go(20);
    assert_eq!(taken(&first_log), []);
    assert_eq!(taken(&second_log), [(5 * MS, 5 * MS, 0)]);
    assert!(first.is_pending() && !second.is_pending());
    still.machine.shutdown();
}

/// Goal: an arm that is refused keeps none of the others from theirs, and the first refusal is told.
/// Method: a pinned timer, for which there is no lane, and one that was shut down, among many; then the
/// machine ends.
#[test]
fn what_is_refused() {
    let still = Still::new();
    let timers: Vec<_> = (0..40).map(|_| still.logging(TICK)).collect();
    let pinned = still.machine.timer(TimerOptions::new().pinned(), |_| {});
    timers[35].0.shutdown();
    let handles = || timers[..20].iter().map(|(timer, _)| timer).chain([&pinned]);
    let arms = handles().chain(timers[20..].iter().map(|(timer, _)| timer)).map(|timer| (timer, still.at(5)));
    let refused = still.machine.arm_many(arms.clone());
    assert!(matches!(refused, Err(ArmError::NoLane { .. })), "{refused:?}");
    still.go(10);
    for (number, (_, log)) in timers.iter().enumerate() {
        assert_eq!(taken(log).len(), usize::from(number != 35), "timer {number}");
    }
    still.machine.shutdown();
    assert_eq!(still.machine.arm_many(arms), Err(ArmError::ShutDown));
}

/// Goal: the thread that sleeps learns of the first of many. Method: timers of a machine at rest, for the
/// near future, all waited for.
#[test]
fn a_sleeper_is_told() {
    let machine = Machine::start().expect("it starts");
    let (sender, ran) = mpsc::channel();
    let timers: Vec<_> = (0..40)
        .map(|number| {
            let sender = sender.clone();
            machine.timer(TimerOptions::new(), move |_| sender.send(number).expect("the test waits"))
        })
        .collect();
    for round in 0..3 {
        let at = Nanos(machine.now().0 + 20 * MS);
        assert_eq!(machine.arm_many(timers.iter().map(|timer| (timer, at))), Ok(0), "round {round}");
        let mut all: Vec<i32> =
            (0..40).map(|_| ran.recv_timeout(Duration::from_secs(10)).expect("it runs")).collect();
        all.sort_unstable();
        assert_eq!(all, (0..40).collect::<Vec<_>>());
    }
    machine.shutdown();
}
