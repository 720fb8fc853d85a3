//! What participants are told and asked, and when: most of it by hand, on one thread.

use super::{Paused, ms, poll_once};
use crate::time::{Instant, sleep};
use crate::virtual_time::{self, IdleOutcome, Participant, Participate, attend};
use crate::{Machine, Nanos, Precision, TimerHandle, TimerOptions};
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::Wake;
use std::thread;

const PATIENCE: Duration = Duration::from_secs(20);

/// A participant's side, which keeps what it was asked.
#[derive(Default)]
struct Side(Mutex<Asked>);

#[derive(Default)]
struct Asked {
    looks: u32,
    has_backlog: bool,
}

impl Side {
    /// How often it was asked to look since the last time.
    fn looks(&self) -> u32 {
        core::mem::take(&mut self.0.lock().expect("no panic").looks)
    }
}

impl Participate for Side {
    fn has_backlog(&self) -> bool {
        self.0.lock().expect("no panic").has_backlog
    }

    fn look_again(&self) {
        self.0.lock().expect("no panic").looks += 1;
    }
}

/// One that takes part, and its side.
fn joined(machine: &'static Machine) -> (Participant, Arc<Side>) {
    let side = Arc::new(Side::default());
    (machine.participate(Arc::clone(&side) as Arc<dyn Participate>), side)
}

/// Timers that are due in so many ms each.
fn timers<const COUNT: usize>(machine: &'static Machine, millis: [u64; COUNT]) -> [TimerHandle; COUNT] {
    millis.map(|millis| {
        let timer = machine.timer(TimerOptions::new().precision(Precision::Exact), |_| {});
        assert!(!timer.arm_after(ms(millis)).expect("it runs"));
        timer
    })
}

/// Goal: a participant that moved time is busy until it has looked, so no other one moves time meanwhile.
/// Method: two, with two expiries to move to.
#[test]
fn one_that_moved_time_is_busy() {
    let paused = Paused::start();
    let (start, [first, second]) = (Instant::now(), [(); 2].map(|()| joined(paused.0).0));
    let _timers = timers(paused.0, [1, 2]);
    assert_eq!((first.idle(), start.elapsed()), (IdleOutcome::Moved, ms(1)));
    assert_eq!((second.idle(), start.elapsed()), (IdleOutcome::Wait, ms(1)));
    assert_eq!((first.idle(), start.elapsed()), (IdleOutcome::Moved, ms(2)));
    assert_eq!((first.idle(), start.elapsed()), (IdleOutcome::Wait, ms(2)), "no timer is left");
}

/// Goal: none is asked to look while one that moved time has not looked. Method: two, with two expiries to
/// move to.
#[test]
fn none_is_asked_beside_one_that_moved_time() {
    let paused = Paused::start();
    let [(first, first_side), (_second, second_side)] = [(); 2].map(|()| joined(paused.0));
    let _timers = timers(paused.0, [1, 2]);
    assert!(first_side.looks() > 0 && second_side.looks() > 0, "they came one after the other");
    assert_eq!(first.idle(), IdleOutcome::Moved);
    assert_eq!((first_side.looks(), second_side.looks()), (0, 0));
}

/// Goal: a participant that was woken is busy until it has taken that up, though it says that it is idle.
/// Method: two, one of which is woken.
#[test]
fn one_that_was_woken_stays_busy() {
    let paused = Paused::start();
    let (start, [first, second]) = (Instant::now(), [(); 2].map(|()| joined(paused.0).0));
    let _timers = timers(paused.0, [1]);
    first.wake();
    assert_eq!(first.idle(), IdleOutcome::Woken);
    assert_eq!((second.idle(), start.elapsed()), (IdleOutcome::Wait, ms(0)));
    assert!(first.begin() && !first.begin());
    assert_eq!((first.idle(), start.elapsed()), (IdleOutcome::Moved, ms(1)));
}

/// Goal: a participant that is woken by what it ran is told so, and is busy. Method: a callback that wakes
/// it, and another timer to which the other participant would move time.
#[test]
fn one_that_wakes_itself_is_woken() {
    let paused = Paused::start();
    let (start, [first, second]) = (Instant::now(), [(); 2].map(|()| joined(paused.0).0));
    let first = Arc::new(first);
    let wakes = Arc::clone(&first);
    let timer = paused.0.timer(TimerOptions::new(), move |_| wakes.wake());
    timer.arm_after(ms(1)).expect("it runs");
    let _timers = timers(paused.0, [5]);
    assert_eq!((first.idle(), start.elapsed()), (IdleOutcome::Woken, ms(1)));
    assert_eq!((second.idle(), start.elapsed()), (IdleOutcome::Wait, ms(1)));
    assert!(first.begin(), "it takes that up");
}

/// Goal: time that was not paused goes on by itself: no participant stops or moves it. Method: the only one
/// is idle, and a timer is pending.
#[test]
fn time_that_goes_on_is_not_moved() {
    let machine = Machine::builder().virtual_time().start().expect("starts");
    let (participant, _) = joined(machine);
    let _timers = timers(machine, [3_600_000]);
    assert_eq!(participant.idle(), IdleOutcome::Wait);
    assert!(!machine.is_paused());
    drop(participant);
    machine.shutdown();
}

/// Goal: time stands still while work waits that no thread has taken up. Method: the other participant says
/// so, and then does not.
#[test]
fn a_backlog_keeps_time() {
    let paused = Paused::start();
    let (start, (idle, _), (_other, side)) = (Instant::now(), joined(paused.0), joined(paused.0));
    let _timers = timers(paused.0, [1]);
    side.0.lock().expect("no panic").has_backlog = true;
    assert_eq!((idle.idle(), start.elapsed()), (IdleOutcome::Wait, ms(0)));
    side.0.lock().expect("no panic").has_backlog = false;
    assert_eq!((idle.idle(), start.elapsed()), (IdleOutcome::Moved, ms(1)));
}

/// Goal: while a thread runs what is due no other one moves time; when it has done, all are asked to look.
/// Method: `advance` runs a callback, during which a participant becomes idle on another thread.
#[test]
fn one_thread_at_a_time_moves_time() {
    let paused = Paused::start();
    let (machine, (participant, side)) = (paused.0, joined(paused.0));
    let participant = Arc::new(participant);
    let (sender, told) = channel();
    let becomes_idle = Arc::clone(&participant);
    let timer = machine.timer(TimerOptions::new().precision(Precision::Exact), move |_| {
        let (sender, participant) = (sender.clone(), Arc::clone(&becomes_idle));
        let (answers, answered) = channel();
        thread::spawn(move || _ = answers.send(participant.idle()));
        sender.send(answered.recv_timeout(PATIENCE).ok()).expect("the test waits");
    });
    let _later = timers(machine, [5]);
    timer.arm_after(ms(1)).expect("it runs");
    side.looks();
    machine.advance(ms(1)).expect("it is paused");
    assert_eq!(told.try_recv(), Ok(Some(IdleOutcome::Wait)));
    assert_eq!(side.looks(), 1);
    assert_eq!(participant.idle(), IdleOutcome::Moved);
}

/// Goal: participants are asked to look when time may move, and for nothing else. Method: another one leaves,
/// while each of the conditions is not met, and when all are.
#[test]
fn nobody_is_asked_for_nothing() {
    let machine = Machine::builder().virtual_time().start().expect("starts");
    let (_participant, side) = joined(machine);
    let asked = || {
        side.looks();
        drop(joined(machine));
        side.looks()
    };
    let [timer] = timers(machine, [3_600_000]);
    assert_eq!(asked(), 0, "time goes on");
    assert!(timer.cancel());
    machine.pause().expect("it goes on");
    assert_eq!(asked(), 0, "there is nothing to move to");
    timer.arm_after(ms(1)).expect("it runs");
    let hold = machine.hold();
    assert_eq!(asked(), 0, "time is held");
    drop(hold);
    assert_eq!(asked(), 1);
    machine.shutdown();
}

/// Goal: a thread that takes no part and arms a timer has all asked to look: time may move now. Method: a
/// sleep, and a timer with a callback, each the only one.
#[test]
fn an_arm_from_outside_asks_all() {
    let paused = Paused::start();
    let (_participant, side) = joined(paused.0);
    let mut nap = Box::pin(sleep(ms(1)));
    side.looks();
    assert!(poll_once(nap.as_mut()).is_pending());
    assert_eq!(side.looks(), 1);
    drop(nap);
    paused.0.advance(ms(5)).expect("it is paused");
    side.looks();
    let _timers = timers(paused.0, [1]);
    assert_eq!(side.looks(), 1);
}

/// Asks from another thread whether the lock can be had.
struct Locks(&'static Machine, Mutex<Vec<bool>>);

impl Participate for Locks {
    fn look_again(&self) {
        let (machine, (sender, locked)) = (self.0, channel());
        thread::spawn(move || {
            drop(machine.virtual_time.lock());
            let _ = sender.send(());
        });
        self.1.lock().expect("no panic").push(locked.recv_timeout(PATIENCE).is_ok());
    }
}

/// Goal: a participant is asked to look while no lock is held: it may come back here. Method: it asks, on
/// another thread, for the lock.
#[test]
fn all_are_asked_without_the_lock() {
    let paused = Paused::start();
    let side = Arc::new(Locks(paused.0, Mutex::default()));
    let _participant = paused.0.participate(Arc::clone(&side) as Arc<dyn Participate>);
    let _timers = timers(paused.0, [1]);
    let found = side.1.lock().expect("no panic").clone();
    assert!(!found.is_empty() && found.iter().all(|is_free| *is_free), "{found:?}");
}

/// Goal: the place of one that left is taken by the next one, so none is left behind; one that leaves while
/// it is idle keeps no time, one that is busy neither. Method: three, one after the other.
#[test]
fn places_are_taken_again() {
    let paused = Paused::start();
    let (first, stays) = (joined(paused.0).0, joined(paused.0).0);
    let place = first.number;
    drop(first);
    let next = joined(paused.0).0;
    assert_eq!((next.number, stays.number != place), (place, true));
    next.wake();
    drop(next);
    let _timers = timers(paused.0, [1]);
    assert_eq!(stays.idle(), IdleOutcome::Moved);
}

/// Goal: time never goes back, even for a timer that was due before the clock was stopped. Method: an exact
/// timer for a moment that is over; a participant moves time to it.
#[test]
fn time_does_not_go_back() {
    let paused = Paused::start();
    let (machine, (participant, _)) = (paused.0, joined(paused.0));
    let (sender, ran) = channel();
    let timer = machine.timer(TimerOptions::new().precision(Precision::Exact), move |run| {
        sender.send(run.now()).expect("the test waits");
    });
    let before = machine.now();
    timer.arm_at(Nanos(before.0 - 5_000_000)).expect("it runs");
    assert_eq!(participant.idle(), IdleOutcome::Moved);
    assert_eq!((ran.try_recv(), machine.now()), (Ok(before), before));
}

/// A waker that tells.
struct Tell(std::sync::mpsc::Sender<()>);

impl Wake for Tell {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

fn telling() -> (Waker, Receiver<()>) {
    let (sender, told) = channel();
    (Waker::from(Arc::new(Tell(sender))), told)
}

/// Goal: a future that takes part is woken where it was polled last. Method: two executors poll, one after
/// the other; then its time comes.
#[test]
fn an_attended_future_may_move() {
    let paused = Paused::start();
    let hold = paused.0.hold();
    let mut future = pin!(attend(paused.0, sleep(ms(1))));
    let [(first, told_first), (last, told_last)] = [telling(), telling()];
    for waker in [&first, &last] {
        assert!(future.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    paused.0.advance(ms(1)).expect("it is paused");
    assert!(told_first.try_recv().is_err() && told_last.try_recv().is_ok());
    assert!(poll_once(future).is_ready());
    drop(hold);
}

/// Goal: a pause waits until the helper has run what is due, and then has its way. Method: a callback that
/// the helper runs has another thread pause, and looks whether it was let.
#[test]
fn a_pause_waits_for_the_helper() {
    let machine = Machine::builder().virtual_time().start().expect("starts");
    let ((began, has_begun), (paused, is_paused)) = (channel(), channel());
    let (sender, told) = channel();
    let timer = machine.timer(TimerOptions::new(), move |_| {
        began.send(()).expect("the test waits");
        // If the other thread is slower than this, it shows less.
        let has_paused = is_paused.recv_timeout(ms(50)).is_ok() || machine.is_paused();
        sender.send(has_paused).expect("the test waits");
    });
    timer.arm_after(ms(1)).expect("it runs");
    has_begun.recv_timeout(PATIENCE).expect("the helper runs it");
    let (ended, has_ended) = channel();
    thread::spawn(move || {
        let outcome = machine.pause();
        let _ = paused.send(());
        let _ = ended.send(outcome);
    });
    assert_eq!(told.recv_timeout(PATIENCE), Ok(false), "it was paused while a callback ran");
    assert_eq!(has_ended.recv_timeout(PATIENCE), Ok(Ok(())));
    machine.shutdown();
}

/// Goal: `advance` gives other tasks a chance once, and is woken for the rest. Method: its polls, by hand.
#[test]
fn an_advance_gives_way_once() {
    let paused = Paused::start();
    let (start, (waker, told), mut future) = (Instant::now(), telling(), pin!(virtual_time::advance(ms(3))));
    let mut poll = || future.as_mut().poll(&mut Context::from_waker(&waker));
    assert_eq!((poll(), start.elapsed()), (Poll::Pending, ms(3)));
    assert!(told.try_recv().is_ok());
    assert_eq!((poll(), start.elapsed()), (Poll::Ready(()), ms(3)));
    assert!(told.try_recv().is_err());
    drop(paused);
}

/// Goal: an advance goes on from where time stands when its turn comes. Method: it waits for another one,
/// whose callback moves time.
#[test]
fn an_advance_waits_and_goes_on_from_there() {
    let paused = Paused::start();
    let (start, machine) = (Instant::now(), paused.0);
    let ((began, has_begun), (release, until)) = (channel(), channel::<()>());
    let until = Mutex::new(until);
    let timer = machine.timer(TimerOptions::new().precision(Precision::Exact), move |run| {
        began.send(()).expect("the test waits");
        let _ = until.lock().expect("no panic").recv();
        run.timer().machine().advance(ms(20)).expect("it is paused");
    });
    timer.arm_after(ms(1)).expect("it runs");
    let first = thread::spawn(move || machine.advance(ms(10)));
    has_begun.recv_timeout(PATIENCE).expect("it is due");
    let second = thread::spawn(move || machine.advance(ms(5)));
    // If the other thread is slower than this, it shows less.
    thread::sleep(Duration::from_millis(20));
    release.send(()).expect("it waits");
    assert_eq!([first, second].map(|advance| advance.join().expect("no panic")), [Ok(()), Ok(())]);
    assert_eq!(start.elapsed(), ms(35));
}

/// Goal: the functions for the current machine do what its own do, and refuse by a panic. Method: each twice.
#[test]
fn the_current_machine_is_paused_and_resumed() {
    let machine = Machine::builder().virtual_time().start().expect("starts");
    let entered = machine.enter();
    for (change, is_paused) in [(virtual_time::pause as fn(), true), (virtual_time::resume, false)] {
        change();
        assert_eq!(machine.is_paused(), is_paused);
        assert!(std::panic::catch_unwind(change).is_err(), "twice");
        assert_eq!(machine.is_paused(), is_paused);
    }
    drop(entered);
    machine.shutdown();
}

/// A side that looks, when it is dropped, whether the lock of time is free.
struct Leaves(&'static Machine, Arc<Mutex<Vec<bool>>>);

impl Participate for Leaves {
    fn look_again(&self) {}
}

impl Drop for Leaves {
    fn drop(&mut self) {
        self.1.lock().expect("no panic").push(self.0.virtual_time.is_free());
    }
}

/// Goal: what reached a participant may call the machine when it is dropped: no lock is held. Method: one
/// that is dropped with its participant, which was busy, and another one that takes its place.
#[test]
fn what_reached_a_participant_is_dropped_without_the_lock() {
    let paused = Paused::start();
    let seen = Arc::default();
    for count in 1..3 {
        let participant = paused.0.participate(Arc::new(Leaves(paused.0, Arc::clone(&seen))));
        participant.wake();
        assert_eq!((participant.number, seen.lock().expect("no panic").len()), (0, count - 1));
        drop(participant);
        assert_eq!(*seen.lock().expect("no panic"), vec![true; count]);
    }
}
