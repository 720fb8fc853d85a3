//! All callbacks taken out at once, and periods that go on from now.

use super::{ArmError, DAY, MS, Machine, Nanos, Precision, Still, TICK, TimerOptions, taken};
use crate::time::sleep;
use crate::timer::{RawTimer, Run};
use core::future::Future;
use core::pin::pin;
use core::ptr::NonNull;
use core::task::{Context, Waker};
use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

const PERIOD: Duration = Duration::from_millis(10);

fn nothing(_: *mut (), _: &Run<'_>) {}

/// Goal: every callback is taken out, with its periods, and told once; what it was is known of raw timers;
/// futures stay. Method: timers of all kinds, one beyond the wheel's reach, a raw one, a future; then long
/// enough for each to run.
#[test]
#[allow(unsafe_code, reason = "a raw timer")]
fn every_callback_is_taken_out() {
    let still = Still::new();
    let (once, periodic, far) =
        (still.logging(TICK), still.logging(TICK), still.logging(TimerOptions::new()));
    let exact = still.logging(TimerOptions::new().precision(Precision::Exact));
    once.0.arm_at(still.at(5)).expect("it runs");
    exact.0.arm_periodic(still.at(5), PERIOD).expect("it runs");
    periodic.0.arm_periodic(still.at(5), PERIOD).expect("it runs");
    far.0.arm_at(Nanos(still.start + 400 * DAY)).expect("it runs");
    let mut argument = 7_u32;
    let argument = (&raw mut argument).cast::<()>();
    // SAFETY: its function does not use its argument.
    let memory = Box::pin(unsafe { RawTimer::new(still.machine, TICK, nothing, argument) });
    // SAFETY: it is pinned, and taken out below.
    let raw = unsafe { RawTimer::at(NonNull::from(&*memory)) };
    raw.arm_at(still.at(6)).expect("it runs");
    let entered = still.machine.enter();
    let mut wait = pin!(sleep(Duration::from_millis(20)));
    assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());

    let mut told = Vec::new();
    assert_eq!(still.machine.cancel_all(None, |timer| told.extend(timer.raw().map(|raw| raw.1))), 5);
    assert_eq!(told, [argument]);
    assert_eq!(still.machine.pending_count(), 1, "the future's");
    for (timer, _) in [&once, &exact, &periodic, &far] {
        assert!(!timer.is_pending() && timer.period().is_none());
    }
    assert!(!raw.is_pending());
    still.go(60);
    for (_, log) in [&once, &exact, &periodic, &far] {
        assert_eq!(taken(log), []);
    }
    assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    assert_eq!(still.machine.cancel_all(None, |_| panic!("there is none")), 0);
    // They are idle timers like any others.
    periodic.0.arm_at(still.at(65)).expect("it runs");
    still.go(90);
    assert_eq!(taken(&periodic.1), [(65 * MS, 65 * MS, 0)]);
    drop(entered);
    still.machine.shutdown();
}

/// Goal: only timers of the CPUs that were asked for are taken out. Method: no CPU, then all.
#[test]
fn timers_of_other_cpus_stay() {
    let still = Still::new();
    let (timer, _) = still.logging(TICK);
    timer.arm_at(still.at(5)).expect("it runs");
    let none = "".parse().expect("a list");
    assert_eq!(still.machine.cancel_all(Some(&none), |_| ()), 0);
    assert!(timer.is_pending());
    let all = "0-8191".parse().expect("a list");
    assert_eq!(still.machine.cancel_all(Some(&all), |_| ()), 1);
    assert!(!timer.is_pending());
    still.machine.shutdown();
}

/// Goal: a run that is under way goes on, and its periods with it, and so does what is armed meanwhile by
/// those that are told; when the run has ended the next call takes the periods out. Method: in the callback
/// itself, and after it.
#[test]
fn a_run_that_is_under_way_goes_on() {
    let still = Still::new();
    let machine = still.machine;
    let (sender, receiver) = mpsc::channel();
    let timer = machine.timer(TICK, move |run| {
        let others = machine.cancel_all(None, |_| ());
        sender.send((others, run.timer().is_running(), run.timer().period())).expect("the test waits");
    });
    let (other, log) = still.logging(TICK);
    timer.arm_periodic(still.at(5), PERIOD).expect("it runs");
    other.arm_at(still.at(40)).expect("it runs");
    still.go(5);
    assert_eq!(receiver.try_recv(), Ok((1, true, Some(PERIOD))));
    assert!(timer.is_pending() && !other.is_pending());
    still.go(15);
    assert_eq!(receiver.try_recv(), Ok((0, true, Some(PERIOD))));
    let again = |_| assert_eq!(other.arm_at(still.at(20)), Ok(false));
    assert_eq!(machine.cancel_all(None, again), 1);
    assert!(!timer.is_pending() && other.is_pending());
    still.go(60);
    assert!(receiver.try_recv().is_err());
    assert_eq!(taken(&log), [(20 * MS, 20 * MS, 0)]);
    machine.shutdown();
}

/// Goal: periods end for good however other threads arm and cancel at the same time: none is lost half-way.
/// Method: a thread that arms for periods and for once; after it, one call, and no timer runs or has periods.
#[test]
fn arms_at_the_same_time_are_whole() {
    let machine = Machine::start().expect("it starts");
    let timer = machine.timer(TICK, |_| ());
    let is_over = Arc::new(AtomicBool::new(false));
    let (arms, over) = (timer.clone(), Arc::clone(&is_over));
    let hour = Duration::from_secs(3600);
    let arming = thread::spawn(move || {
        let mut rounds = 0_u64;
        while !over.load(Ordering::Relaxed) || rounds < 1000 {
            arms.arm_periodic(Nanos(machine.now().0 + DAY), hour).expect("it runs");
            let period = arms.period();
            assert!(period.is_none() || period == Some(hour));
            arms.arm_after(hour).expect("it runs");
            rounds += 1;
        }
    });
    for _ in 0..2000 {
        machine.cancel_all(None, |_| ());
    }
    is_over.store(true, Ordering::Relaxed);
    arming.join().expect("no panic");
    machine.cancel_all(None, |_| ());
    assert!(!timer.is_pending() && timer.period().is_none());
    machine.shutdown();
}

/// Goal: periods go on from now, whether they go on, were ended or are about to run; a timer that never had
/// any says so and stays as it is. Method: each of these, and other arms between.
#[test]
fn periods_go_on_from_now() {
    let still = Still::new();
    let (timer, log) = still.logging(TICK);
    timer.arm_at(still.at(3)).expect("it runs");
    assert_eq!(timer.arm_again(), Err(ArmError::NoPeriod));
    assert_eq!(timer.deadline(), Some(still.at(3)));
    assert_eq!(timer.arm_periodic(still.at(5), PERIOD), Ok(true));
    still.go(12);
    assert_eq!(taken(&log), [(5 * MS, 5 * MS, 0)]);
    assert_eq!((timer.arm_again(), timer.deadline()), (Ok(true), Some(still.at(22))));
    still.go(33);
    assert_eq!(taken(&log), [(22 * MS, 22 * MS, 0), (32 * MS, 32 * MS, 0)]);
    assert!(timer.cancel());
    assert_eq!((timer.arm_again(), timer.period()), (Ok(false), Some(PERIOD)));
    assert_eq!(timer.arm_at(Nanos(still.start + 400 * DAY)), Ok(true));
    assert_eq!((timer.period(), timer.arm_again(), timer.deadline()), (None, Ok(true), Some(still.at(43))));
    still.go(54);
    assert_eq!(taken(&log), [(43 * MS, 43 * MS, 0), (53 * MS, 53 * MS, 0)]);
    timer.shutdown();
    assert_eq!(timer.arm_again(), Err(ArmError::ShutDown));
    still.machine.shutdown();
}

/// Goal: in its own callback the next run is a period after the call. Method: a run that is late, and goes on
/// from there.
#[test]
fn periods_go_on_in_the_callback() {
    let still = Still::new();
    let (sender, receiver) = mpsc::channel();
    let timer = still.machine.timer(TICK, move |run| {
        sender.send((run.now(), run.overruns())).expect("the test waits");
        assert_eq!(run.timer().arm_again(), Ok(false));
    });
    timer.arm_periodic(still.at(5), PERIOD).expect("it runs");
    still.jump(still.at(27));
    assert_eq!((receiver.try_recv(), timer.deadline()), (Ok((still.at(27), 0)), Some(still.at(37))));
    still.go(37);
    assert_eq!(receiver.try_recv(), Ok((still.at(37), 0)));
    still.machine.shutdown();
}
