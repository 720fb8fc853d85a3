//! The alarm on the kernel's timer. What is programmed is read back from the kernel.

use super::{Alarm, AlarmTimer};
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
    match &alarm.timer {
        AlarmTimer::Kernel(timer) => {
            let timer = timer.read().expect("no panic");
            let left = timerfd_gettime(timer.as_ref().expect("it is open")).expect("it is a timer").it_value;
            let left = left.tv_sec as u64 * 1_000_000_000 + left.tv_nsec as u64;
            (left != 0).then_some(left)
        }
        AlarmTimer::Sleep { until, .. } => {
            until.lock().expect("no panic").map(|until| until.0.saturating_sub(now()))
        }
    }
}

/// Whether a `wait` would return at once.
fn has_expired(alarm: &Alarm) -> bool {
    match &alarm.timer {
        AlarmTimer::Kernel(timer) => {
            let timer = timer.read().expect("no panic");
            let mut polled = [PollFd::new(timer.as_ref().expect("it is open"), PollFlags::IN)];
            poll(&mut polled, Some(&Timespec::default())).expect("poll works") > 0
        }
        AlarmTimer::Sleep { .. } => remaining(alarm) == Some(0),
    }
}

/// An alarm and the word that it follows.
struct Waited {
    alarm: Alarm,
    deadline: Deadline,
}

impl Waited {
    /// One of each kind.
    fn both() -> [Self; 2] {
        let alarms = [Alarm::of_kernel().expect("there are descriptors"), Alarm::of_sleep()];
        alarms.map(|alarm| Self { alarm, deadline: Deadline::new() })
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
    for Waited { alarm, deadline } in &Waited::both() {
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
}

/// Goal: a moment that is over expires at once, 0 too; after the expiry the timer is silent. Method: such
/// moments; `wait` would hang otherwise.
#[test]
fn the_past_expires_at_once() {
    for waited in Waited::both() {
        for moment in [0, 1, now()] {
            waited.pull(Nanos(moment));
            waited.alarm.wait();
            assert!(!has_expired(&waited.alarm), "{moment}");
            assert_eq!(waited.deadline.take(), Some(Nanos(moment)));
        }
    }
}

/// Goal: a wait ends at the moment, not before. Method: one that is near.
#[test]
fn a_wait_ends_at_its_moment() {
    for waited in Waited::both() {
        let moment = now() + 3_000_000;
        waited.pull(Nanos(moment));
        waited.alarm.wait();
        assert!(now() >= moment);
    }
}

/// Goal: an alarm that has ended holds no descriptor, and may be programmed all the same. Method: ended, and
/// pulled after that.
#[test]
fn an_alarm_ends() {
    let [waited, _] = Waited::both();
    waited.alarm.end();
    waited.pull(Nanos(1));
    let AlarmTimer::Kernel(timer) = &waited.alarm.timer else { panic!("the kernel's comes first") };
    assert!(timer.read().expect("no panic").is_none());
}

/// Goal: a pull wakes a waiter that waits for something later, and nothing is lost in between. Method: a
/// thread publishes and pulls for the past while the waiter does its rounds; a lost pull hangs.
#[test]
fn every_pull_is_answered() {
    for waited in Waited::both() {
        assert_eq!(answered(&waited), 2 * PULLS);
    }
}

const PULLS: u32 = 5_000;

/// How many pulls of two threads the waiter found.
fn answered(waited: &Waited) -> u32 {
    use crate::words::sync::{AtomicU32, Ordering};
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
        found
    })
}
