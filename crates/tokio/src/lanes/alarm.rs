//! A lane's timer of the kernel: it ends a park, and reminds a lane that does not park.
//!
//! Setting it costs more than a turn, several microseconds where a hypervisor has a part in it. So it is left
//! alone while it is set for the moment that is wanted: a lane that dozes and works in turn wants the end of
//! the same tick each time. It is never read: setting it makes it unreadable until it expires again.

use quietcore_live::Nanos;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

#[derive(Debug)]
pub(super) struct LaneAlarm {
    descriptor: OwnedFd,
    /// For what it was set last. It has expired if that is over.
    at: Option<Nanos>,
}

impl LaneAlarm {
    pub(super) fn new() -> io::Result<Self> {
        let descriptor =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { descriptor, at: None })
    }

    /// The same timer, for the driver.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.descriptor.as_fd().try_clone_to_owned()
    }

    /// Expires at `at`, or never; `now` is not later than the present. Cost: nothing if that is so already.
    pub(super) fn set(&mut self, at: Option<Nanos>, now: Nanos) {
        let set = self.at.filter(|set| *set > now);
        if at == set {
            return;
        }
        self.at = at;
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = at.map_or(zero, |at| {
            // All zero would be never.
            let Nanos(nanos) = at.max(Nanos(1));
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
        });
        let once = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &once).expect("any moment will do");
    }
}

#[cfg(test)]
mod tests {
    use super::LaneAlarm;
    use quietcore_live::Nanos;
    use rustix::time::timerfd_gettime;

    /// Goal: it is set when something changes, and only then. Method: what the kernel says is left, after
    /// the timer was disarmed behind its back.
    #[test]
    fn it_is_left_alone_while_it_is_right() {
        let far = |seconds: u64| Some(Nanos(u64::MAX / 4 + seconds * 1_000_000_000));
        let mut alarm = LaneAlarm::new().expect("made");
        let is_set = |alarm: &LaneAlarm| {
            timerfd_gettime(&alarm.descriptor).expect("it is a timer").it_value.tv_sec != 0
        };
        alarm.set(None, Nanos(1));
        assert!(!is_set(&alarm));
        alarm.set(far(1), Nanos(1));
        assert!(is_set(&alarm));
        let mut other = LaneAlarm { descriptor: alarm.descriptor().expect("a copy"), at: far(0) };
        other.set(None, Nanos(1));
        alarm.set(far(1), Nanos(1));
        assert!(!is_set(&alarm), "it is set for that already, for all it knows");
        alarm.set(far(2), Nanos(1));
        assert!(is_set(&alarm));
        alarm.set(None, far(3).expect("a moment"));
        assert!(is_set(&alarm), "by then it has expired by itself");
    }
}
