//! Callback timers under real time and real threads: waiting for runs, and all verbs at once.

use crate::timer::{Precision, TimerHandle, TimerOptions};
use crate::{Machine, Nanos};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use futures_util::task::noop_waker_ref;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);

/// A timer whose callback says that it began, and ends when it is told to.
fn stuck(machine: &'static Machine) -> (TimerHandle, Receiver<()>, Sender<()>) {
    let (began, has_begun) = channel();
    let (end, may_end) = channel();
    let timer = machine.timer(TimerOptions::new(), move |_| {
        began.send(()).expect("the test waits");
        may_end.recv_timeout(PATIENCE).expect("the test goes on");
    });
    (timer, has_begun, end)
}

/// Goal: `cancel_sync` returns after the run it met, not before; a run that is over does not hold it. Method:
/// a callback that is held in its run while another thread cancels; the end of the run writes a word first.
#[test]
fn cancel_sync_waits_for_the_run() {
    let machine = Machine::start().expect("it starts");
    let (timer, has_begun, end) = stuck(machine);
    timer.arm_after(Duration::ZERO).expect("it is running");
    has_begun.recv_timeout(PATIENCE).expect("it runs");
    assert!(timer.is_running() && !timer.is_pending());
    assert!(!timer.cancel(), "a cancel does not wait");
    // Pending again: that period is taken out when the run is over.
    assert_eq!(timer.arm_after(PATIENCE * 60), Ok(false));
    let is_over = Mutex::new(false);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let cancelled = timer.cancel_sync();
            (cancelled, *is_over.lock().expect("nobody panics"))
        });
        // Time enough to come back too early.
        thread::sleep(Duration::from_millis(20));
        *is_over.lock().expect("nobody panics") = true;
        end.send(()).expect("the callback waits");
        assert_eq!(waiter.join().expect("it does not panic"), (Ok(true), true));
    });
    assert!(!timer.is_pending() && !timer.is_running());
    assert_eq!(timer.cancel_sync(), Ok(false));
    machine.shutdown();
}

/// Goal: the future is woken by the end of the run that it met. Method: polled by hand while a callback is
/// held, then by an executor; and dropped without having been woken.
#[test]
fn a_task_waits_for_the_run() {
    let machine = Machine::start().expect("it starts");
    let (timer, has_begun, end) = stuck(machine);
    timer.arm_after(Duration::ZERO).expect("it is running");
    has_begun.recv_timeout(PATIENCE).expect("it runs");
    let mut context = Context::from_waker(noop_waker_ref());
    assert_eq!(pin!(timer.cancel_and_wait()).poll(&mut context), Poll::Pending);
    assert!(!machine.run_ends.is_awaited(), "it was dropped");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| futures_executor::block_on(timer.cancel_and_wait()));
        while !machine.run_ends.is_awaited() {
            thread::yield_now();
        }
        end.send(()).expect("the callback waits");
        assert!(!waiter.join().expect("it does not panic"));
    });
    timer.arm_after(PATIENCE).expect("it is running");
    let polled = pin!(timer.cancel_and_wait()).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Ready(true));
    machine.shutdown();
}

/// Goal: whatever threads do to a timer, no run of it overlaps another, and none begins between a
/// `cancel_sync` and the next arm. Method: two threads with all verbs on one timer in rounds of seeded
/// randomness, a third that only cancels; the callback locks what a second run could not lock.
#[test]
fn runs_never_overlap() {
    for (seed, precision) in [(1, Precision::Tick), (2, Precision::Exact), (3, Precision::Coarse)] {
        let machine = Machine::start().expect("it starts");
        let body = Arc::new(Mutex::new(0_u64));
        // Whether there was a run, for a thread that may look at it while one is under way.
        let seen = Arc::new(Mutex::new(false));
        let (inside, seen_inside) = (Arc::clone(&body), Arc::clone(&seen));
        let timer = machine.timer(TimerOptions::new().precision(precision), move |run| {
            let mut runs = inside.try_lock().expect("one run at a time");
            *runs += 1;
            *seen_inside.lock().expect("nobody panicked") = true;
            assert!(run.scheduled() <= run.now(), "early: {run:?}");
            if (*runs).is_multiple_of(3) {
                let _ = run.timer().arm_after(Duration::from_micros(10));
            }
        });
        let until = Instant::now() + Duration::from_millis(300);
        // On a machine that leaves no time for a run between two cancels, a while longer without them.
        let longest = until + Duration::from_secs(20);
        let goes_on = || {
            let now = Instant::now();
            now < until || (now < longest && !*seen.lock().expect("nobody panicked"))
        };
        thread::scope(|scope| {
            for number in 0..2 {
                let (timer, goes_on) = (timer.clone(), &goes_on);
                scope.spawn(move || {
                    let mut random = ChaCha8Rng::seed_from_u64(seed * 10 + number);
                    while goes_on() {
                        all_verbs(&timer, &mut random);
                    }
                });
            }
            scope.spawn(|| {
                while Instant::now() < until {
                    let _ = timer.cancel_sync().expect("this thread may wait");
                }
            });
        });
        let _ = timer.cancel_sync().expect("this thread may wait");
        let runs = *body.lock().expect("nobody panicked");
        thread::sleep(Duration::from_millis(5));
        assert_eq!(*body.lock().expect("nobody panicked"), runs, "a run after the last cancel_sync");
        assert!(runs > 0 && !timer.is_pending(), "{runs} runs");
        machine.shutdown();
    }
}

fn all_verbs(timer: &TimerHandle, random: &mut ChaCha8Rng) {
    let delay = u64::from(random.next_u32() % 2_000_000);
    let at = Nanos(timer.machine().now().0 + delay);
    let armed = match random.next_u32() % 7 {
        0 | 1 => timer.arm_at(at),
        2 => timer.arm_after(Duration::from_nanos(delay)),
        3 => timer.reduce(at),
        4 => timer.mod_pending(at),
        5 => timer.arm_periodic(at, Duration::from_nanos(delay / 4)),
        _ => Ok(timer.cancel()),
    };
    assert!(armed.is_ok(), "{armed:?}");
}

/// Goal: each closure is dropped once, by whichever thread, and none runs after its last handle is gone.
/// Method: threads make, arm and drop timers that are due at once, so that drops meet runs.
#[test]
fn drops_meet_runs() {
    struct Once(Sender<u32>);
    impl Drop for Once {
        fn drop(&mut self) {
            self.0.send(1).expect("the test waits");
        }
    }
    let machine = Machine::start().expect("it starts");
    let (sender, receiver) = channel();
    const EACH: u32 = if cfg!(miri) { 20 } else { 4_000 };
    thread::scope(|scope| {
        for _ in 0..2 {
            let sender = sender.clone();
            scope.spawn(move || {
                for number in 0..EACH {
                    let once = Once(sender.clone());
                    let options = TimerOptions::new().precision(Precision::Exact);
                    let timer = machine.timer(options, move |_| assert_eq!(once.0.send(0), Ok(())));
                    timer
                        .arm_after(Duration::from_nanos(u64::from(number % 200) * 100))
                        .expect("it is running");
                    if number.is_multiple_of(3) {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    drop(sender);
    let mut dropped = 0;
    while let Ok(count) = receiver.recv_timeout(PATIENCE) {
        dropped += count;
    }
    assert_eq!(dropped, 2 * EACH);
    machine.shutdown();
    assert_eq!(machine.metrics().cpus.iter().map(|cpu| cpu.panics).sum::<u64>(), 0);
}

/// Goal: the delay of an exact timer is counted from the kernel's clock, not from a moment that is some
/// microseconds ahead of it. Method: delays that begin 60 us after the cycle clock was noted, when that is
/// ahead by more than an arm takes; what they run for, and the clock after the arm.
#[test]
fn an_exact_delay_is_not_counted_from_ahead() {
    const DELAY: Duration = Duration::from_millis(1);
    let machine = Machine::start().expect("it starts");
    let (sender, receiver) = channel();
    let options = TimerOptions::new().precision(Precision::Exact);
    let timer = machine.timer(options, move |run| sender.send(run.scheduled()).expect("the test waits"));
    // The counter has to be measured first.
    thread::sleep(Duration::from_millis(20));
    for _ in 0..50 {
        let noted = machine.clock.latest();
        while machine.clock.now().since(noted).0 < 60_000 {}
        timer.arm_after(DELAY).expect("it runs");
        let latest = machine.now().0 + DELAY.as_nanos() as u64;
        let scheduled = receiver.recv().expect("it runs").0;
        assert!(scheduled <= latest, "it was counted from {} ns ahead", scheduled - latest);
    }
    machine.shutdown();
}
