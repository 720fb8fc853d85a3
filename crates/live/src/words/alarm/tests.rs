//! The alarm on the kernel's timer. What is programmed is read back from the kernel.

use super::{Alarm, PushOutcome};
use quietcore_core::Nanos;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime, timerfd_gettime};
use std::thread;

const HOUR: u64 = 3_600_000_000_000;

fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How long until the timer expires; `None`: never.
fn remaining(alarm: &Alarm) -> Option<u64> {
    let left = timerfd_gettime(alarm.fd()).expect("it is a timer").it_value;
    (left != Timespec::default()).then_some(left.tv_sec as u64 * 1_000_000_000 + left.tv_nsec as u64)
}

/// Whether a `wait` would return at once.
fn has_expired(alarm: &Alarm) -> bool {
    let descriptor = alarm.fd();
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).expect("poll works") > 0
}

fn alarm() -> Alarm {
    Alarm::new().expect("there are descriptors")
}

/// Goal: the timer follows W; what changes nothing costs no system call. Method: moments hours away.
#[test]
fn the_timer_follows_the_word() {
    let alarm = alarm();
    let start = now();
    let at = |hours: u64| Nanos(start + hours * HOUR);
    assert_eq!((alarm.load(), remaining(&alarm), alarm.programmed()), (None, None, 0));
    alarm.pull(at(5));
    alarm.pull(at(7));
    alarm.pull(at(5));
    assert_eq!((alarm.load(), alarm.programmed()), (Some(at(5)), 1), "only the first one is earlier");
    assert!((4 * HOUR..=5 * HOUR).contains(&remaining(&alarm).expect("it is programmed")));
    assert_eq!(
        alarm.push(Some(at(7)), Some(at(9))),
        PushOutcome::Changed(Some(at(5))),
        "W is not what was seen"
    );
    assert_eq!(alarm.push(Some(at(5)), Some(at(9))), PushOutcome::Done);
    assert_eq!((alarm.load(), alarm.programmed()), (Some(at(9)), 2));
    assert!((8 * HOUR..=9 * HOUR).contains(&remaining(&alarm).expect("it is programmed")));
    assert_eq!(alarm.take(), Some(at(9)));
    assert_eq!((alarm.load(), alarm.programmed()), (None, 2), "a take programs nothing");
    assert_eq!(alarm.push(None, Some(at(3))), PushOutcome::Done);
    assert!((2 * HOUR..=3 * HOUR).contains(&remaining(&alarm).expect("it is programmed")));
    assert_eq!(alarm.push(Some(at(3)), None), PushOutcome::Done);
    assert_eq!((alarm.load(), remaining(&alarm)), (None, None), "disarmed");
}

/// Goal: a moment that is over expires at once, 0 too; after the expiry the timer is silent. Method: such
/// moments; `wait` would hang otherwise.
#[test]
fn the_past_expires_at_once() {
    let alarm = alarm();
    for moment in [0, 1, now()] {
        alarm.pull(Nanos(moment));
        alarm.wait();
        assert!(!has_expired(&alarm), "{moment}");
        assert_eq!(alarm.take(), Some(Nanos(moment)));
    }
}

/// Goal: a pull wakes a waiter that waits for something later, and nothing is lost in between. Method: a
/// thread publishes and pulls for the past while the waiter does its rounds; a lost pull hangs.
#[test]
fn every_pull_is_answered() {
    use crate::words::sync::{AtomicU32, Ordering};
    const PULLS: u32 = 5_000;
    let alarm = alarm();
    let published = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..PULLS {
                    published.fetch_add(1, Ordering::Relaxed);
                    alarm.pull(Nanos(1));
                }
            });
        }
        let mut found = 0;
        while found < 2 * PULLS {
            alarm.pull(Nanos(now() + HOUR));
            alarm.wait();
            let _ = alarm.take();
            found += published.swap(0, Ordering::Relaxed);
        }
        assert_eq!(found, 2 * PULLS);
    });
}

/// Goal: what a waiter is to end for is not moved away, and it is awake for it. Method: a push to later, and
/// to never, from what was seen.
#[test]
fn nothing_moves_the_end() {
    let alarm = alarm();
    alarm.pull(Nanos(now() + HOUR));
    alarm.end();
    for later in [Some(Nanos(now() + HOUR)), None] {
        let seen = alarm.load();
        assert_eq!(alarm.push(seen, later), PushOutcome::Changed(seen));
    }
    assert!(has_expired(&alarm));
    alarm.wait();
    assert!(alarm.take().is_some());
}
