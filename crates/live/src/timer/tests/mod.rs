//! Callback timers on a machine whose clock stands still: the tests move it, and run what is due.

mod cancel_all;
mod kinds;
mod lanes;
mod late_ends;
mod many;
mod moments;
mod pending;
mod threads;

use super::{CallbackTimer, Precision, Run, TimerHandle, TimerOptions, WouldBlock};
use crate::machine::{ArmError, OnPanic};
use crate::{CpuId, Machine, Nanos};
use core::task::{Context, Waker};
use core::time::Duration;
use std::sync::{Arc, Mutex, mpsc};

const MS: u64 = 1_000_000;
const DAY: u64 = 86_400_000 * MS;

/// A machine that only moves when it is told to; starts at a whole second.
struct Still {
    machine: &'static Machine,
    start: u64,
}

/// What was run: when, what for, and how many were skipped.
type Log = Arc<Mutex<Vec<(u64, u64, u64)>>>;

impl Still {
    fn new() -> Self {
        let machine = Machine::builder().on_panic(OnPanic::Continue).start().expect("it starts");
        let start = (machine.now().0 / 1_000_000_000 + 2) * 1_000_000_000;
        machine.clock.freeze(Nanos(start));
        Self { machine, start }
    }

    /// `millis` after the start.
    fn at(&self, millis: u64) -> Nanos {
        Nanos(self.start + millis * MS)
    }

    /// Goes through all ticks up to there.
    fn go(&self, millis: u64) {
        let mut now = self.machine.now();
        while now < self.at(millis) {
            now = Nanos(now.0 / MS * MS + MS).min(self.at(millis));
            self.machine.clock.freeze(now);
            self.machine.drive_spare(now);
        }
    }

    /// Goes to `now` at once, and runs all that is due there.
    fn jump(&self, now: Nanos) {
        self.machine.clock.freeze(now);
        while self.machine.drive_spare(now).is_some_and(|next| next <= now) {}
    }

    /// Callbacks and wakers that panicked.
    fn panics(&self) -> u64 {
        self.machine.metrics().sum(|cpu| cpu.panics)
    }

    fn logging(&self, options: TimerOptions) -> (TimerHandle, Log) {
        let log = Log::default();
        let seen = Arc::clone(&log);
        let start = self.start;
        let timer = self.machine.timer(options, move |run: &Run<'_>| {
            let entry = (run.now().0 - start, run.scheduled().0 - start, run.overruns());
            seen.lock().expect("nobody panics").push(entry);
        });
        (timer, log)
    }
}

fn taken(log: &Log) -> Vec<(u64, u64, u64)> {
    core::mem::take(&mut log.lock().expect("nobody panics"))
}

const TICK: TimerOptions = TimerOptions::new().precision(Precision::Tick);

/// Goal: a timer of ticks runs at the first tick that is not before its moment, an exact one at its moment,
/// and both know the moment to the nanosecond. Method: moments on both sides of a tick.
#[test]
fn runs_when_it_is_due_and_never_early() {
    let still = Still::new();
    let exact = TimerOptions::new().precision(Precision::Exact);
    for (options, due, ran) in [
        (TICK, 5 * MS, 5 * MS),
        (TICK, 5 * MS + 1, 6 * MS),
        (TICK, 6 * MS - 1, 6 * MS),
        (TICK, 1000 * MS, 1000 * MS),
        (exact, 5 * MS, 5 * MS),
        (exact, 5 * MS + 1, 6 * MS), // the test looks once per tick
    ] {
        let (timer, log) = still.logging(options);
        let base = still.machine.now().0;
        let entry = (base + ran - still.start, base + due - still.start, 0);
        assert_eq!(timer.arm_at(Nanos(base + due)), Ok(false));
        let millis = (base + ran - still.start) / MS;
        still.go(millis - 1);
        assert_eq!(taken(&log), [], "early: {options:?}, due {due}");
        assert!(timer.is_pending());
        still.go(millis + 5);
        assert_eq!(taken(&log), [entry], "{options:?}, due {due}");
        assert!(!timer.is_pending() && !timer.is_running());
    }
    still.machine.shutdown();
}

/// Goal: each verb says whether the timer was pending, and moves it as it promises. Method: a sequence of
/// verbs and what follows from it.
#[test]
fn verbs_move_the_timer() {
    for options in [TICK, TimerOptions::new().precision(Precision::Exact)] {
        assert_eq!(verbs_move(options), 2, "{options:?}");
    }
}

fn verbs_move(options: TimerOptions) -> usize {
    let still = Still::new();
    let (timer, log) = still.logging(options);
    assert_eq!(timer.mod_pending(still.at(3)), Ok(false));
    assert!(!timer.is_pending(), "mod_pending arms no idle timer");
    assert_eq!(timer.reduce(still.at(30)), Ok(false));
    assert_eq!(timer.reduce(still.at(50)), Ok(true));
    assert_eq!(timer.mod_pending(still.at(40)), Ok(true));
    assert_eq!(timer.reduce(still.at(20)), Ok(true));
    still.go(60);
    let mut runs = log.lock().expect("nobody panics").len();
    assert_eq!(taken(&log), [(20 * MS, 20 * MS, 0)]);
    assert_eq!(timer.arm_at(still.at(70)), Ok(false));
    assert_eq!(timer.arm_at(still.at(90)), Ok(true));
    still.go(80);
    assert!(timer.cancel() && !timer.cancel());
    still.go(100);
    assert_eq!(taken(&log), []);
    assert_eq!(timer.arm_after(Duration::from_millis(7)), Ok(false));
    still.go(110);
    runs += log.lock().expect("nobody panics").len();
    assert_eq!(taken(&log), [(107 * MS, 107 * MS, 0)]);
    assert!(!timer.shutdown());
    assert_eq!(timer.arm_at(still.at(200)), Err(ArmError::ShutDown));
    assert_eq!(timer.arm_periodic(still.at(200), Duration::from_millis(1)), Err(ArmError::ShutDown));
    still.go(300);
    assert_eq!(taken(&log), []);
    still.machine.shutdown();
    runs
}

/// Goal: periods are multiples of the first, runs that come late skip and say so. Method: a machine that is
/// not played for three and a half periods.
#[test]
fn periods() {
    let still = Still::new();
    let (timer, log) = still.logging(TICK);
    assert_eq!(timer.arm_periodic(still.at(10), Duration::from_millis(20)), Ok(false));
    still.go(55);
    assert_eq!(taken(&log), [(10 * MS, 10 * MS, 0), (30 * MS, 30 * MS, 0), (50 * MS, 50 * MS, 0)]);
    still.machine.clock.freeze(still.at(125));
    still.machine.drive_spare(still.at(125));
    assert_eq!(taken(&log), [(125 * MS, 70 * MS, 0)]);
    still.go(155);
    assert_eq!(taken(&log), [(130 * MS, 130 * MS, 2), (150 * MS, 150 * MS, 0)]);
    // A moved run leaves the others.
    assert_eq!(timer.reduce(still.at(160)), Ok(true));
    still.go(195);
    assert_eq!(taken(&log), [(160 * MS, 160 * MS, 0), (190 * MS, 190 * MS, 0)]);
    assert!(timer.cancel());
    still.go(300);
    assert_eq!(taken(&log), []);
    // Any other arm ends them.
    assert_eq!(timer.arm_periodic(still.at(310), Duration::from_millis(20)), Ok(false));
    still.go(315);
    assert_eq!(timer.arm_at(still.at(320)), Ok(true));
    still.go(500);
    assert_eq!(taken(&log), [(310 * MS, 310 * MS, 0), (320 * MS, 320 * MS, 0)]);
    still.machine.shutdown();
}

/// Goal: a coarse timer beyond the wheel's reach is not early, and can be cancelled on its way. Method: 100
/// days; the machine is played at every day.
#[test]
fn further_than_the_wheel_reaches() {
    let still = Still::new();
    let (timer, log) = still.logging(TimerOptions::new());
    let play = |day: u64| still.jump(Nanos(still.start + day * DAY));
    assert_eq!(timer.arm_at(Nanos(still.start + 100 * DAY)), Ok(false));
    for day in 1..100 {
        play(day);
        assert!(timer.is_pending(), "day {day}");
    }
    assert_eq!(taken(&log), []);
    // Late by up to an eighth of the last hop.
    play(102);
    let [(_, scheduled, 0)] = taken(&log)[..] else { panic!("it ran once") };
    assert_eq!(scheduled, 100 * DAY);
    assert!(!timer.is_pending());
    assert_eq!(timer.arm_at(Nanos(still.start + 300 * DAY)), Ok(false));
    play(120);
    assert!(timer.cancel());
    play(310);
    assert_eq!(taken(&log), []);
    still.machine.shutdown();
}

/// Goal: no verb takes a coarse timer beyond the wheel's reach and runs it early. Method: 100 days as a first
/// period, as a period, and as what a pending timer is moved to; the machine is played at every day.
#[test]
fn no_verb_reaches_too_far() {
    let still = Still::new();
    let (at, hundred) = (|day: u64| Nanos(still.start + day * DAY), Duration::from_nanos(100 * DAY));
    let (first, first_log) = still.logging(TimerOptions::new());
    let (period, period_log) = still.logging(TimerOptions::new());
    let (moved, moved_log) = still.logging(TimerOptions::new());
    first.arm_periodic(at(100), Duration::from_nanos(10 * DAY)).expect("it is running");
    period.arm_periodic(at(1), hundred).expect("it is running");
    moved.arm_at(at(5)).expect("it is running");
    assert_eq!(moved.mod_pending(at(100)), Ok(true));
    for day in 1..=125 {
        still.jump(at(day));
        if day == 2 {
            assert_eq!(taken(&period_log).len(), 1);
        }
        assert!(
            day >= 100 || [&first_log, &period_log, &moved_log].iter().all(|log| taken(log).is_empty()),
            "{day}"
        );
    }
    let days = |log: &Log| taken(log).iter().map(|run| run.1 / DAY).collect::<Vec<_>>();
    assert_eq!((days(&first_log), days(&moved_log)), (vec![100, 110, 120], vec![100]));
    assert_eq!(days(&period_log), [101]);
    still.machine.shutdown();
}

/// Goal: a wait for the end of a run takes out whatever that run arms while it lasts. Method: a callback arms
/// its own timer before each of two looks.
#[test]
fn each_look_of_a_wait_cancels() {
    let still = Still::new();
    let timer = Arc::new(std::sync::OnceLock::<TimerHandle>::new());
    let (inside, ran) = (Arc::clone(&timer), Arc::new(Mutex::new(0)));
    let (runs, soon) = (Arc::clone(&ran), still.at(5));
    let callback = move |_: &Run<'_>| {
        *runs.lock().expect("no panic") += 1;
        let timer = inside.get().expect("it was armed");
        let mut waiting = core::pin::pin!(timer.cancel_and_wait());
        for _ in 0..2 {
            assert_eq!(timer.arm_at(soon), Ok(false));
            assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert!(!timer.is_pending(), "it was cancelled");
        }
    };
    let made = still.machine.timer(TICK, callback);
    made.arm_at(still.at(1)).expect("it is running");
    timer.set(made).expect("once");
    still.go(8);
    assert_eq!((*ran.lock().expect("no panic"), still.panics()), (1, 0));
    still.machine.shutdown();
}

/// Goal: what waits for the end of a run is user code: when it panics, that is counted, and everybody else
/// goes on. Method: two wakers wait for a held callback; the first one panics.
#[test]
fn a_waker_that_panics_is_counted() {
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("this one panics");
        }
    }
    let still = Still::new();
    let timer = Arc::new(std::sync::OnceLock::<TimerHandle>::new());
    let inside = Arc::clone(&timer);
    let (sender, woken) = mpsc::channel();
    let (other, log) = still.logging(TICK);
    let callback = move |_: &Run<'_>| {
        let timer = inside.get().expect("it was armed");
        let wakers = [Waker::from(Arc::new(Panics)), Waker::from(Arc::new(Bell(sender.clone())))];
        for waker in wakers {
            let mut waiting = Box::pin(timer.cancel_and_wait());
            assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            // Dropped it would not be woken.
            core::mem::forget(waiting);
        }
    };
    let made = still.machine.timer(TICK, callback);
    made.arm_at(still.at(1)).expect("it is running");
    timer.set(made).expect("once");
    other.arm_at(still.at(1)).expect("it is running");
    still.go(3);
    assert_eq!((taken(&log).len(), woken.try_recv()), (1, Ok("woken")));
    assert_eq!(still.panics(), 1);
    still.machine.shutdown();
}

/// Goal: what a callback does to its own timer counts, and no period begins again behind its back. Method: a
/// callback that arms, begins periods and ends them; then the runs that followed.
#[test]
fn callbacks_use_their_own_timer() {
    let still = Still::new();
    let log = Log::default();
    let seen = Arc::clone(&log);
    let start = still.start;
    let mut runs = 0;
    let timer = still.machine.timer(TICK, move |run| {
        seen.lock().expect("nobody panics").push((run.now().0 - start, 0, 0));
        runs += 1;
        let timer: &CallbackTimer = run.timer();
        let was_pending = match runs {
            1 => timer.arm_after(Duration::from_millis(5)),
            2 => timer.arm_periodic(Nanos(run.now().0 + 10 * MS), Duration::from_millis(10)),
            4 => Ok(timer.cancel()),
            5 => timer.arm_after(Duration::from_millis(5)),
            _ => Ok(false),
        };
        assert_eq!(was_pending, Ok(false), "it is running, not pending");
        assert!(timer.is_running());
        if runs == 5 {
            assert_eq!(timer.cancel_sync(), Err(WouldBlock));
            assert!(!timer.is_pending(), "cancelled all the same");
        }
    });
    let runs = |list: &[u64]| list.iter().map(|millis| (millis * MS, 0, 0)).collect::<Vec<_>>();
    timer.arm_at(still.at(1)).expect("it is running");
    still.go(50);
    assert_eq!(taken(&log), runs(&[1, 6, 16, 26]), "the fourth run ends the periods");
    timer.arm_at(still.at(60)).expect("it is running");
    still.go(100);
    assert_eq!(taken(&log), runs(&[60]));
    still.machine.shutdown();
}

/// Goal: a callback that panics is counted, and its timer goes on. Method: a period whose second run panics.
#[test]
fn a_panic_is_counted() {
    let still = Still::new();
    let log = Log::default();
    let seen = Arc::clone(&log);
    let timer = still.machine.timer(TICK, move |_| {
        let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.push((0, 0, 0));
        assert_ne!(seen.len(), 2, "this one panics");
    });
    timer.arm_periodic(still.at(1), Duration::from_millis(1)).expect("it is running");
    still.go(4);
    let seen = log.lock().unwrap_or_else(std::sync::PoisonError::into_inner).len();
    assert_eq!(seen, 4);
    assert_eq!(still.panics(), 1);
    still.machine.shutdown();
}

/// Says when it is dropped.
struct Bell(mpsc::Sender<&'static str>);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.send("woken").expect("somebody waits");
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// Goal: the last handle cancels, at any step of a timer's life, and the closure goes with it. Method: drop
/// idle, pending, periodic, with a clone left, and inside of the run itself.
#[test]
fn the_last_handle_cancels() {
    let still = Still::new();
    let (sender, receiver) = mpsc::channel();
    let ringing = |sender: &mpsc::Sender<&'static str>| {
        let (bell, sender) = (Bell(sender.clone()), sender.clone());
        still.machine.timer(TICK, move |_| {
            let _bell = &bell;
            sender.send("ran").expect("the test waits");
        })
    };
    drop(ringing(&sender));
    assert_eq!(receiver.try_recv(), Ok("dropped"));
    let timer = ringing(&sender);
    timer.arm_at(still.at(5)).expect("it is running");
    let clone = timer.clone();
    drop(timer);
    assert!(receiver.try_recv().is_err() && clone.is_pending());
    clone.arm_periodic(still.at(5), Duration::from_millis(1)).expect("it is running");
    still.go(6);
    drop(clone);
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["ran", "ran", "dropped"]);
    let slot = Arc::new(Mutex::new(None));
    let own = Arc::clone(&slot);
    let bell = Bell(sender.clone());
    let timer = still.machine.timer(TICK, move |run| {
        let _bell = &bell;
        drop(own.lock().expect("nobody panics").take());
        assert_eq!(run.timer().arm_at(run.now()), Err(ArmError::ShutDown), "no handle is left");
    });
    timer.arm_periodic(still.at(10), Duration::from_millis(1)).expect("it is running");
    *slot.lock().expect("nobody panics") = Some(timer);
    still.go(20);
    assert_eq!(receiver.try_recv(), Ok("dropped"));
    still.machine.shutdown();
    assert_eq!(still.panics(), 0);
}

/// Goal: without lanes no thread runs a pinned timer, so it is refused; the helper runs a deferrable one.
/// Method: both, and arms on CPUs.
#[test]
fn without_lanes() {
    let still = Still::new();
    let exact = still.logging(TimerOptions::new().precision(Precision::Exact).pinned()).0;
    let (pinned, log) = still.logging(TICK.pinned());
    for pinned in [&exact, &pinned] {
        assert!(matches!(pinned.arm_at(still.at(5)), Err(ArmError::NoLane { .. })));
    }
    let cpu = CpuId::default();
    assert_eq!(pinned.arm_on(cpu, still.at(5)), Err(ArmError::NoLane { cpu }));
    assert!(pinned.arm_periodic(still.at(5), Duration::from_millis(1)).is_err());
    let (deferrable, deferred) = still.logging(TICK.deferrable());
    deferrable.arm_at(still.at(5)).expect("it is running");
    still.go(10);
    assert_eq!((taken(&log), taken(&deferred)), (vec![], vec![(5 * MS, 5 * MS, 0)]));
    still.machine.shutdown();
    assert_eq!(deferrable.arm_at(still.at(5)), Err(ArmError::ShutDown));
}
