//! The alarm on the kernel's timer. What is programmed is read back from the kernel.

use super::Alarm;
use quietcore_core::Nanos;
use quietcore_core::lane::Deadline;
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
    let left = timerfd_gettime(&alarm.timer).expect("it is a timer").it_value;
    (left != Timespec::default()).then_some(left.tv_sec as u64 * 1_000_000_000 + left.tv_nsec as u64)
}

/// Whether a `wait` would return at once.
fn has_expired(alarm: &Alarm) -> bool {
    let mut polled = [PollFd::new(&alarm.timer, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).expect("poll works") > 0
}

/// An alarm and the word that it follows.
struct Waited {
    alarm: Alarm,
    deadline: Deadline,
}

impl Waited {
    fn new() -> Self {
        Self { alarm: Alarm::new().expect("there are descriptors"), deadline: Deadline::new() }
    }

    fn pull(&self, at: Nanos) {
        if self.deadline.pull(at) {
            self.alarm.follow(&self.deadline);
        }
    }
}

/// Goal: the timer follows the word. Method: moments hours away, one after the other; then none.
#[test]
fn the_timer_follows_the_word() {
    let Waited { alarm, deadline } = &Waited::new();
    assert_eq!((remaining(alarm), alarm.programmed()), (None, 0));
    let start = now();
    for (count, hours) in [(1, 9), (2, 5), (3, 3)] {
        assert!(deadline.pull(Nanos(start + hours * HOUR)));
        alarm.follow(deadline);
        let left = remaining(alarm).expect("it is programmed");
        assert!(((hours - 1) * HOUR..=hours * HOUR).contains(&left), "{left} ns left of {hours} h");
        assert_eq!(alarm.programmed(), count);
    }
    let _ = deadline.take();
    assert!(remaining(alarm).is_some(), "a take programs nothing");
    alarm.follow(deadline);
    assert_eq!(remaining(alarm), None, "disarmed");
}

/// Goal: a moment that is over expires at once, 0 too; after the expiry the timer is silent. Method: such
/// moments; `wait` would hang otherwise.
#[test]
fn the_past_expires_at_once() {
    let waited = Waited::new();
    for moment in [0, 1, now()] {
        waited.pull(Nanos(moment));
        waited.alarm.wait();
        assert!(!has_expired(&waited.alarm), "{moment}");
        assert_eq!(waited.deadline.take(), Some(Nanos(moment)));
    }
}

/// Goal: a pull wakes a waiter that waits for something later, and nothing is lost in between. Method: a
/// thread publishes and pulls for the past while the waiter does its rounds; a lost pull hangs.
#[test]
fn every_pull_is_answered() {
    use crate::words::sync::{AtomicU32, Ordering};
    const PULLS: u32 = 5_000;
    let waited = Waited::new();
    let published = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..PULLS {
                    published.fetch_add(1, Ordering::Relaxed);
                    waited.pull(Nanos(1));
                }
            });
        }
        let mut found = 0;
        while found < 2 * PULLS {
            waited.pull(Nanos(now() + HOUR));
            waited.alarm.wait();
            let _ = waited.deadline.take();
            found += published.swap(0, Ordering::Relaxed);
        }
        assert_eq!(found, 2 * PULLS);
    });
}
