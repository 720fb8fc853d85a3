//! Who takes part in a machine's time, and whether it may move.
//!
//! One lock guards all of it: it is taken when a thread starts or stops waiting, never when a timer is armed.

use core::fmt;
use std::sync::Arc;
use std::thread::ThreadId;

/// How the machine reaches a thread that takes part in time. Dropped with the participant, when no lock is
/// held.
pub trait Participate: Send + Sync {
    /// Whether work waits that no thread has taken up yet, although every thread is idle: a queue that other
    /// threads push to. Called under a lock: it must return at once and call no machine. Any thread.
    fn has_backlog(&self) -> bool {
        false
    }

    /// Makes the participant call `Participant::idle` again soon, because time may be able to move. Any
    /// thread; no lock is held.
    fn look_again(&self);
}

/// What a thread that has nothing to do is told.
/// Example: [`Participant`](super::Participant).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "who was woken must not wait"]
pub enum IdleOutcome {
    /// It was woken meanwhile: it is busy.
    Woken,
    /// Time moved, and what was due ran: it is busy, and looks for work before it calls `idle` again.
    Moved,
    /// It waits until it is woken or asked to look again.
    Wait,
}

#[derive(Default)]
pub(super) struct TimeState {
    members: Vec<Option<Member>>,
    /// Members that are busy.
    busy: usize,
    /// Guards that keep time from moving.
    pub(super) holds: usize,
    /// Who runs timers now: a member that moved time, a caller of `advance`, or the helper.
    pub(super) runner: Option<ThreadId>,
}

struct Member {
    how: Arc<dyn Participate>,
    activity: Activity,
    /// Was given work since it last took work up.
    is_woken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Activity {
    Idle,
    Busy,
}

impl TimeState {
    /// A new member, idle. Its number.
    pub(super) fn join(&mut self, how: Arc<dyn Participate>) -> usize {
        let member = Some(Member { how, activity: Activity::Idle, is_woken: false });
        if let Some(free) = self.members.iter().position(Option::is_none) {
            self.members[free] = member;
            return free;
        }
        self.members.push(member);
        self.members.len() - 1
    }

    /// Returns what reached the member: its owner's code, to be dropped when the lock is not held.
    #[must_use = "its destructor may call the machine"]
    pub(super) fn leave(&mut self, number: usize) -> Option<Arc<dyn Participate>> {
        let Member { how, activity, .. } = self.members[number].take()?;
        self.busy -= usize::from(activity == Activity::Busy);
        Some(how)
    }

    pub(super) fn wake(&mut self, number: usize) {
        self.change(number, Activity::Busy).is_woken = true;
    }

    /// Keeps it busy, and woken if it was; says whether it was.
    pub(super) fn stay(&mut self, number: usize) -> bool {
        self.change(number, Activity::Busy).is_woken
    }

    /// Says whether it was woken.
    pub(super) fn begin(&mut self, number: usize) -> bool {
        core::mem::take(&mut self.change(number, Activity::Busy).is_woken)
    }

    /// Makes a member idle, unless it was woken; says which.
    pub(super) fn rest(&mut self, number: usize) -> bool {
        let is_woken = self.member(number).is_woken;
        let _ = self.change(number, if is_woken { Activity::Busy } else { Activity::Idle });
        !is_woken
    }

    /// Whether no thread has anything to do, as far as the members know.
    pub(super) fn may_move(&self) -> bool {
        self.busy == 0
            && self.holds == 0
            && self.runner.is_none()
            && !self.members.iter().flatten().any(|member| member.how.has_backlog())
    }

    /// All who could move time.
    pub(super) fn who_could_move(&self) -> Vec<Arc<dyn Participate>> {
        if !self.may_move() {
            return Vec::new();
        }
        self.members.iter().flatten().map(|member| Arc::clone(&member.how)).collect()
    }

    fn member(&mut self, number: usize) -> &mut Member {
        self.members[number].as_mut().expect("a participant has its place until it is dropped")
    }

    fn change(&mut self, number: usize, activity: Activity) -> &mut Member {
        let before = core::mem::replace(&mut self.member(number).activity, activity);
        self.busy =
            self.busy + usize::from(activity == Activity::Busy) - usize::from(before == Activity::Busy);
        self.member(number)
    }
}

impl fmt::Debug for TimeState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TimeState")
            .field("members", &self.members.iter().flatten().count())
            .field("busy", &self.busy)
            .field("holds", &self.holds)
            .field("runner", &self.runner)
            .finish()
    }
}
