//! Time moves when no thread has anything to do, and only then.

mod participants;

use super::{TimeError, advance, attend, block_on};
use crate::time::{Duration, Instant, sleep, sleep_until, timeout};
use crate::{Machine, StartError};
use core::future::{Future, pending};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::task::Wake;
use std::thread::{self, JoinHandle};

/// A machine whose time is paused, which is current until it is dropped.
struct Paused(&'static Machine, Option<crate::EnterGuard>);

impl Paused {
    fn start() -> Self {
        let machine = Machine::builder().virtual_time().start().expect("starts");
        machine.pause().expect("its time can be paused");
        Self(machine, Some(machine.enter()))
    }
}

/// Runs `future` on a thread of its own, which is counted from its first poll on; until then time is held.
fn joining<F: Future>(
    machine: &'static Machine,
    future: impl FnOnce() -> F + Send + 'static,
) -> JoinHandle<()> {
    let hold = machine.hold();
    thread::spawn(move || {
        let _entered = machine.enter();
        block_on(async {
            drop(hold);
            future().await;
        });
    })
}

impl Drop for Paused {
    fn drop(&mut self) {
        self.1 = None;
        self.0.shutdown();
    }
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// What was seen, and when.
type Log = Arc<Mutex<Vec<(u128, u64)>>>;

fn note(log: &Log, start: Instant, what: u64) {
    log.lock().expect("no panic").push((start.elapsed().as_millis(), what));
}

fn poll_once(future: Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits until another thread has woken this one, which waits by then.
fn wait_for_another_thread() {
    let mut is_first = true;
    block_on(core::future::poll_fn(|context| {
        if core::mem::take(&mut is_first) {
            let waker = context.waker().clone();
            thread::spawn(move || {
                thread::sleep(ms(20));
                waker.wake();
            });
            return Poll::Pending;
        }
        Poll::Ready(())
    }));
}

/// Goal: a thread that waits moves time to exactly where it waits for, whatever else is armed. Method: a
/// sleep of a day beside one that was dropped and one that no thread polls again.
#[test]
fn a_thread_that_waits_moves_time() {
    let _paused = Paused::start();
    let start = Instant::now();
    let mut nobody = pin!(sleep(ms(77)));
    assert!(poll_once(nobody.as_mut()).is_pending());
    drop(Box::pin(sleep(ms(78))));
    block_on(async {
        sleep(Duration::from_secs(86_400)).await;
        assert!(timeout(ms(9), pending::<()>()).await.is_err());
    });
    assert_eq!(start.elapsed(), Duration::from_secs(86_400) + ms(9));
    assert!(poll_once(nobody).is_ready());
}

/// Goal: a deadline that was moved is neither early nor late. Method: later, then jumping past the old one
/// and up to the new one.
#[test]
fn a_deadline_that_was_moved_is_met() {
    let paused = Paused::start();
    let start = Instant::now();
    let mut future = Box::pin(sleep_until(start + ms(600)));
    assert!(poll_once(future.as_mut()).is_pending());
    for (step, is_ready) in [(100, false), (550, false), (50, false), (1, true)] {
        paused.0.advance(ms(step)).expect("it is paused");
        if step == 100 {
            future.as_mut().reset(start + ms(701));
        }
        assert_eq!(poll_once(future.as_mut()).is_ready(), is_ready, "after {:?}", start.elapsed());
    }
}

/// Goal: with several threads time moves only when all wait, to the next expiry of any. Method: threads with
/// different periods; the log is what one thread would write.
#[test]
fn time_waits_for_all_threads() {
    let paused = Paused::start();
    let (machine, start) = (paused.0, Instant::now());
    let log = Log::default();
    let run = |period: u64| {
        let log = Arc::clone(&log);
        joining(machine, move || async move {
            for _ in 0..60 / period {
                sleep(ms(period)).await;
                note(&log, start, period);
            }
        })
    };
    let all_are_there = machine.hold();
    let threads = [3, 4, 5, 20].map(run);
    drop(all_are_there);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let mut found = log.lock().expect("no panic").clone();
    // Threads that are woken at the same moment write in any order.
    found.sort();
    let all = (1..=60).flat_map(|at| [3, 4, 5, 20].map(|period| (at, period)));
    let expected: Vec<_> = all.filter(|(at, period)| at % u128::from(*period) == 0).collect();
    assert_eq!(found, expected);
    assert_eq!(start.elapsed(), ms(60));
}

/// Goal: one thread hands work to another, which counts as busy at once. Method: ping-pong over channels,
/// each answer after a sleep, beside a timer that a jump too far would fire.
#[test]
fn who_was_woken_is_busy() {
    let paused = Paused::start();
    let (machine, start) = (paused.0, Instant::now());
    let turn: Arc<Mutex<(u64, Option<Waker>)>> = Arc::default();
    let play = |mine: u64, turn: Arc<Mutex<(u64, Option<Waker>)>>| async move {
        for round in 0..200 {
            core::future::poll_fn(|context| {
                let mut turn = turn.lock().expect("no panic");
                if turn.0 == round * 2 + mine {
                    return Poll::Ready(());
                }
                turn.1 = Some(context.waker().clone());
                Poll::Pending
            })
            .await;
            sleep(ms(1)).await;
            let mut turn = turn.lock().expect("no panic");
            turn.0 += 1;
            if let Some(waker) = turn.1.take() {
                waker.wake();
            }
        }
    };
    let all_are_there = machine.hold();
    let others_turn = Arc::clone(&turn);
    let other = joining(machine, move || play(1, others_turn));
    let watch = joining(machine, move || async move {
        sleep(Duration::from_secs(10)).await;
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    });
    block_on(async {
        drop(all_are_there);
        play(0, turn).await;
        assert_eq!(start.elapsed(), ms(399), "one sleep after another");
    });
    for thread in [other, watch] {
        thread.join().expect("no panic");
    }
}

/// Goal: while it is held time stands still, and goes on after. Method: a thread waits; the holder looks
/// twice.
#[test]
fn a_hold_keeps_time() {
    let paused = Paused::start();
    let (machine, start) = (paused.0, Instant::now());
    let hold = machine.hold();
    let ready = Arc::new(Barrier::new(2));
    let waits = thread::spawn({
        let ready = Arc::clone(&ready);
        move || {
            let _entered = machine.enter();
            ready.wait();
            block_on(sleep(ms(5)));
        }
    });
    ready.wait();
    for _ in 0..20 {
        assert_eq!(start.elapsed(), Duration::ZERO);
        thread::yield_now();
    }
    drop(hold);
    waits.join().expect("no panic");
    assert_eq!(start.elapsed(), ms(5));
}

/// Goal: what is armed from outside moves time, too. Method: a thread waits for a callback of a timer that a
/// thread arms that takes no part.
#[test]
fn who_takes_no_part_can_arm() {
    let paused = Paused::start();
    let (machine, start) = (paused.0, Instant::now());
    let ready = Arc::new(Barrier::new(2));
    let waits = thread::spawn({
        let ready = Arc::clone(&ready);
        move || {
            let _entered = machine.enter();
            let mut is_first = true;
            block_on(core::future::poll_fn(|_| {
                if core::mem::take(&mut is_first) {
                    ready.wait();
                }
                if start.elapsed() < ms(3) { Poll::Pending } else { Poll::Ready(()) }
            }));
        }
    });
    ready.wait();
    // Its waker is this test's own: the thread is woken by nothing but the look that moved time.
    let (sender, receiver) = channel();
    struct Tell(std::sync::mpsc::Sender<()>);
    impl Wake for Tell {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }
    let waker = Waker::from(Arc::new(Tell(sender)));
    let mut future = Box::pin(sleep(ms(3)));
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    receiver.recv_timeout(Duration::from_secs(30)).expect("time moves");
    assert_eq!(start.elapsed(), ms(3));
    drop(future);
    // Ends the other thread, whose future no thread wakes.
    drop(waits);
}

/// Goal: a waker may move time. Method: it advances past a second deadline, from inside the first one's wake.
#[test]
fn time_can_be_moved_by_what_it_wakes() {
    struct Advance(&'static Machine);
    impl Wake for Advance {
        fn wake(self: Arc<Self>) {
            self.0.advance(ms(50)).expect("it is paused");
        }
    }
    let paused = Paused::start();
    let start = Instant::now();
    let waker = Waker::from(Arc::new(Advance(paused.0)));
    let mut first = pin!(sleep(ms(10)));
    let mut second = pin!(sleep(ms(55)));
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(poll_once(second.as_mut()).is_pending());
    paused.0.advance(ms(10)).expect("it is paused");
    assert_eq!(start.elapsed(), ms(60));
    assert!(poll_once(second).is_ready());
}

/// Goal: nothing expires by real time while time is paused, and everything does after. Method: a short sleep,
/// armed before the pause.
#[test]
fn the_helper_rests_while_time_is_paused() {
    let machine = Machine::builder().virtual_time().start().expect("starts");
    let entered = machine.enter();
    let mut future = Box::pin(sleep(ms(30)));
    assert!(poll_once(future.as_mut()).is_pending());
    machine.pause().expect("its time can be paused");
    let deadline = future.deadline();
    if Instant::now() < deadline {
        let real = std::time::Instant::now();
        while real.elapsed() < ms(60) {
            assert!(poll_once(future.as_mut()).is_pending(), "it expired by real time");
            thread::yield_now();
        }
    }
    machine.resume().expect("it is paused");
    block_on(future);
    assert!(Instant::now() >= deadline);
    drop(entered);
    machine.shutdown();
}

/// Goal: each misuse has its error. Method: all of them.
#[test]
fn misuse_is_refused() {
    let plain = Machine::start().expect("starts");
    assert_eq!(plain.pause(), Err(TimeError::Refused));
    assert_eq!(plain.advance(ms(1)), Err(TimeError::NotPaused));
    plain.shutdown();
    let lanes = Machine::builder().virtual_time().lanes("0".parse().expect("a list"));
    assert!(matches!(lanes.start(), Err(StartError::LanesInVirtualTime)));

    let before = crate::clock::Clock::default().now();
    let paused = Paused::start();
    let machine = paused.0;
    let now = machine.now();
    assert!(now >= before, "time went back from {before} to {now}");
    assert_eq!(now.0 % 1_000_000, 0, "time stops at the edge of a tick");
    assert_eq!(machine.pause(), Err(TimeError::Paused));
    assert_eq!(machine.advance(Duration::MAX), Err(TimeError::TooFar));
    assert_eq!(machine.advance(Duration::from_nanos(u64::MAX - now.0)), Err(TimeError::TooFar));
    assert_eq!(machine.now(), now);
    assert_eq!(machine.resume(), Ok(()));
    assert_eq!(machine.resume(), Err(TimeError::NotPaused));
    assert_eq!(machine.advance(ms(1)), Err(TimeError::NotPaused));
    machine.shutdown();
    assert_eq!(machine.pause(), Err(TimeError::Refused));
}

/// Goal: futures that take part by themselves do so in any executor, and leave when they are dropped. Method:
/// two are polled in turn by hand; one is dropped while it is busy.
#[test]
fn attended_futures_need_no_help() {
    let paused = Paused::start();
    let (machine, start) = (paused.0, Instant::now());
    let mut first = Box::pin(attend(machine, sleep(ms(10))));
    let mut second = Box::pin(attend(machine, sleep(ms(30))));
    let hold = machine.hold();
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(poll_once(second.as_mut()).is_pending());
    drop(hold);
    assert!(poll_once(first.as_mut()).is_pending());
    assert_eq!(start.elapsed(), ms(10), "its poll moves time");
    assert!(poll_once(first.as_mut()).is_ready());
    let busy = machine.participate(Arc::new(super::attend::Outside::default()));
    let _ = busy.begin();
    assert!(poll_once(second.as_mut()).is_pending());
    assert_eq!(start.elapsed(), ms(10), "somebody is busy");
    drop(busy);
    assert!(poll_once(second.as_mut()).is_pending());
    assert!(poll_once(second.as_mut()).is_ready());
    assert_eq!(start.elapsed(), ms(30));
}

/// Goal: `advance` fires what it passes, and tells others before it returns. Method: three sleeps in one
/// task.
#[test]
fn advance_fires_what_it_passes() {
    let _paused = Paused::start();
    let start = Instant::now();
    let mut sleeps: Vec<_> = [5, 10, 15].map(|count| Box::pin(sleep(ms(count)))).into();
    assert!(sleeps.iter_mut().all(|sleep| poll_once(sleep.as_mut()).is_pending()));
    block_on(advance(ms(10)));
    assert_eq!(start.elapsed(), ms(10), "nothing else moves time");
    let ready: Vec<bool> = sleeps.iter_mut().map(|sleep| poll_once(sleep.as_mut()).is_ready()).collect();
    assert_eq!(ready, [true, true, false]);
}

/// Goal: time does not move for what was cancelled. Method: a thread that is given work from outside while
/// nothing but a cancelled timer is left; the clock stands where it stood.
#[test]
fn time_does_not_move_for_what_was_cancelled() {
    let paused = Paused::start();
    let start = Instant::now();
    let timer = paused.0.timer(crate::TimerOptions::new(), |_| {});
    timer.arm_after(ms(10_000)).expect("it runs");
    assert!(timer.cancel());
    wait_for_another_thread();
    assert_eq!(start.elapsed(), ms(0));
}

/// Goal: after the end of the machine a thread that waits does so without moving time, though a timer was
/// pending then. Method: it is woken by another thread; it would never look otherwise.
#[test]
fn the_end_of_the_machine_ends_its_time() {
    let paused = Paused::start();
    let start = Instant::now();
    let timer = paused.0.timer(crate::TimerOptions::new(), |_| {});
    timer.arm_after(ms(10_000)).expect("it runs");
    paused.0.shutdown();
    wait_for_another_thread();
    assert!(!timer.is_pending());
    assert_eq!(start.elapsed(), ms(0));
}

/// Goal: a timer that is armed while time stands still is told to those who could move time: else no thread
/// would. Method: one that takes part and is idle; this thread, which does not take part, arms.
#[test]
fn an_arm_from_outside_is_told() {
    struct Tells(Mutex<std::sync::mpsc::Sender<()>>);
    impl super::Participate for Tells {
        fn has_backlog(&self) -> bool {
            false
        }

        fn look_again(&self) {
            self.0.lock().expect("no panic").send(()).expect("the test waits");
        }
    }
    let paused = Paused::start();
    let (sender, told) = channel();
    let idle = paused.0.participate(Arc::new(Tells(Mutex::new(sender))));
    let timer = paused.0.timer(crate::TimerOptions::new(), |_| {});
    assert!(told.try_recv().is_err());
    timer.arm_after(ms(10)).expect("it runs");
    assert_eq!(told.try_recv(), Ok(()));
    drop(idle);
}
