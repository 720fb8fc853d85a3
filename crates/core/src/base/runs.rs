//! The timers of a base that run right now, and those that were due again before their run had ended.
//!
//! A record begins when a timer is handed out and ends when its runner says so. Meanwhile the timer may be
//! armed again, become due again, be cancelled: it is never handed out twice at a time. What should have been
//! handed out waits on the record ([`Wait`]), pending and cancellable like any other; when the run ends it is
//! `Ready`.
//!
//! Invariants: at most one record per timer; a `Ready` timer is due. Four records are inline, more are on the
//! heap: more than four at a time on one base are runs that are stuck.

use super::timer::Due;
use crate::CpuId;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

/// What a running timer waits for.
#[derive(Debug)]
pub(super) enum Wait<T> {
    Nothing,
    /// It became due while it ran: at once, when the run ends.
    Due(Due<T>),
    /// It is armed, but the queues that it would be in do not run it.
    Rearmed(Due<T>),
}

impl<T> Wait<T> {
    fn timer(self) -> Option<Due<T>> {
        match self {
            Self::Nothing => None,
            Self::Due(due) | Self::Rearmed(due) => Some(due),
        }
    }
}

impl<T> Copy for Wait<T> {}

impl<T> Clone for Wait<T> {
    fn clone(&self) -> Self {
        *self
    }
}

#[derive(Debug)]
enum RunState<T> {
    Running {
        on: CpuId,
        wait: Wait<T>,
        /// The base was evacuated during the run: armed again, the timer goes where the others went.
        leaves: bool,
    },
    /// The run has ended, the timer is due.
    Ready(Due<T>),
}

/// The address is only compared: a timer that is not pending may be gone.
#[derive(Debug)]
struct RunRecord<T> {
    timer: NonZeroUsize,
    state: RunState<T>,
}

const INLINE: usize = 4;

/// The records of one base.
#[derive(Debug)]
pub(super) struct Runs<T> {
    inline: [Option<RunRecord<T>>; INLINE],
    spill: Vec<RunRecord<T>>,
    count: u32,
    ready: u32,
}

impl<T> Runs<T> {
    pub(super) const fn new() -> Self {
        Self { inline: [const { None }; INLINE], spill: Vec::new(), count: 0, ready: 0 }
    }

    fn iter(&self) -> impl Iterator<Item = &RunRecord<T>> {
        self.inline.iter().flatten().chain(&self.spill)
    }

    fn find(&mut self, timer: NonZeroUsize) -> Option<&mut RunRecord<T>> {
        if self.count == 0 {
            return None;
        }
        self.inline.iter_mut().flatten().chain(&mut self.spill).find(|record| record.timer == timer)
    }

    fn push(&mut self, record: RunRecord<T>) {
        self.count += 1;
        match self.inline.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some(record),
            None => self.spill.push(record),
        }
    }

    fn remove(&mut self, is_it: impl Fn(&RunRecord<T>) -> bool) -> Option<RunRecord<T>> {
        if self.count == 0 {
            return None;
        }
        let inline = self.inline.iter_mut().find(|slot| slot.as_ref().is_some_and(&is_it));
        let record = match inline {
            Some(slot) => slot.take(),
            None => self.spill.iter().position(is_it).map(|at| self.spill.swap_remove(at)),
        };
        self.count -= u32::from(record.is_some());
        record
    }

    /// Whether a timer waits for nothing but a runner.
    #[inline]
    pub(super) fn has_ready(&self) -> bool {
        self.ready != 0
    }

    /// The CPU that runs `timer`.
    #[inline]
    pub(super) fn runner(&self, timer: NonZeroUsize) -> Option<CpuId> {
        if self.count == 0 {
            return None;
        }
        self.iter().find(|record| record.timer == timer).and_then(|record| match record.state {
            RunState::Running { on, .. } => Some(on),
            RunState::Ready(_) => None,
        })
    }

    #[inline]
    pub(super) fn is_running(&self, timer: NonZeroUsize) -> bool {
        self.runner(timer).is_some()
    }

    /// Whether a run on `cpu` has not ended.
    pub(super) fn runs_on(&self, cpu: CpuId) -> bool {
        self.iter().any(|record| matches!(record.state, RunState::Running { on, .. } if on == cpu))
    }

    /// How many runs have not ended.
    pub(super) fn running(&self) -> usize {
        (self.count - self.ready) as usize
    }

    /// A run of `timer` on `on` begins.
    #[inline]
    pub(super) fn begin(&mut self, timer: NonZeroUsize, on: CpuId) {
        self.push(RunRecord { timer, state: RunState::Running { on, wait: Wait::Nothing, leaves: false } });
    }

    /// What a running timer, which is in no queue, waits for from now on.
    pub(super) fn wait(&mut self, timer: NonZeroUsize, next: Wait<T>) {
        match self.find(timer).map(|record| &mut record.state) {
            Some(RunState::Running { wait, .. }) => *wait = next,
            state => unreachable!("only a running timer waits for its end: {}", state.is_some()),
        }
    }

    /// The run of `timer` has ended; what it waited for, and whether that leaves the base. A timer that
    /// became due is not `Ready` yet.
    #[inline]
    pub(super) fn end(&mut self, timer: NonZeroUsize) -> Option<(Wait<T>, bool)> {
        match self.remove(|record| record.timer == timer)?.state {
            RunState::Running { wait, leaves, .. } => Some((wait, leaves)),
            RunState::Ready(_) => None,
        }
    }

    /// What runs now leaves the base when its run ends.
    pub(super) fn leave(&mut self) {
        for record in self.inline.iter_mut().flatten().chain(&mut self.spill) {
            if let RunState::Running { leaves, .. } = &mut record.state {
                *leaves = true;
            }
        }
    }

    /// It is due, and not running.
    pub(super) fn make_ready(&mut self, due: Due<T>) {
        self.ready += 1;
        self.push(RunRecord { timer: due.address(), state: RunState::Ready(due) });
    }

    /// Takes out a timer that is ready.
    pub(super) fn pop_ready(&mut self) -> Option<Due<T>> {
        if self.ready == 0 {
            return None;
        }
        match self.remove(|record| matches!(record.state, RunState::Ready(_)))?.state {
            RunState::Ready(due) => {
                self.ready -= 1;
                Some(due)
            }
            RunState::Running { .. } => None,
        }
    }

    /// Takes off a timer that waits on a record.
    pub(super) fn pop_waiting(&mut self) -> Option<Due<T>> {
        let due = self.waiting().next()?;
        self.forget(due.address());
        Some(due)
    }

    /// A timer that waits on a record, and so is in no queue, and what it is armed for.
    pub(super) fn pending(&self, timer: NonZeroUsize) -> Option<Due<T>> {
        let record = self.iter().find(|record| record.timer == timer)?;
        match record.state {
            RunState::Running { wait, .. } => wait.timer(),
            RunState::Ready(due) => Some(due),
        }
    }

    /// It is pending here no more; says whether it was.
    pub(super) fn forget(&mut self, timer: NonZeroUsize) -> bool {
        match self.find(timer).map(|record| &mut record.state) {
            Some(RunState::Running { wait, .. }) => core::mem::replace(wait, Wait::Nothing).timer().is_some(),
            Some(RunState::Ready(_)) => {
                self.ready -= 1;
                self.remove(|record| record.timer == timer).is_some()
            }
            None => false,
        }
    }

    /// The timers that wait on records.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Due<T>> {
        self.iter().filter_map(|record| match record.state {
            RunState::Running { wait, .. } => wait.timer(),
            RunState::Ready(due) => Some(due),
        })
    }

    /// Asserts the invariants.
    pub(super) fn check(&self) {
        let ready = self.iter().filter(|record| matches!(record.state, RunState::Ready(_))).count();
        assert_eq!((self.iter().count(), ready), (self.count as usize, self.ready as usize), "counts");
        for (at, record) in self.iter().enumerate() {
            let again = self.iter().skip(at + 1).any(|other| other.timer == record.timer);
            assert!(!again, "one record per timer: {record:?}", record = record.timer);
        }
    }
}
