//! Polling and pulling: a migrator, or an idle CPU that woke up for the whole tree, looks for due events.
//!
//! The caller expires: it locks the bases of the CPU that an event names, collects what is due and publishes
//! what comes next, all in one section; the timers run later. So nothing of the hierarchy is held while user
//! code runs, and a puller that is stopped anywhere leaves the event where others find it. The kernel takes
//! the event out first and has to put it back; here an event goes only when its CPU's base was seen to.
//!
//! A puller waits for no events: where another thread holds them and may be stopped, it says so, and its
//! caller looks at the bases of all idle CPUs instead.
//!
//! Source: Linux 6.12, kernel/time/timer_migration.c, `tmigr_handle_remote`, `tmigr_quick_check`.

use super::event::{Link, TreeEvent};
use super::hierarchy::Hierarchy;
use super::record::Presence;
use super::state::ChildMask;
use crate::base::earliest;
use crate::lock::Busy;
use crate::sync::interleave;
use crate::{CpuId, Nanos, RawLock};

/// What became of an attempt to pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// The CPU's first expiry was published anew.
    Published,
    /// Its bases or its record were not to be had, or it is awake and looks after itself.
    Left,
}

/// What became of a look at what is due in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    All,
    /// Some could not be pulled.
    Skipped,
    /// It is the business of another child.
    NotMigrator,
}

impl<L: RawLock> Hierarchy<L> {
    /// Whether `cpu` has a reason to call [`handle_remote`](Self::handle_remote), without a lock: in its
    /// tick.
    #[must_use]
    pub fn requires_handle_remote(&self, cpu: CpuId, now: Nanos) -> bool {
        let this = self.cpu(cpu);
        // An idle CPU was told when to wake up; whether it is idle is read without the lock, from that.
        if this.wakeup().is_some_and(|wakeup| wakeup <= now) {
            return true;
        }
        let mut link = this.leaf();
        while let Some((group, mask)) = link {
            let group = &self.groups[group];
            let word = group.word.load();
            // Not active at all: idle, absent or unavailable below. Another CPU's business.
            if word.active() & mask.bits() == 0 || !word.is_migrator_or_none(mask) {
                return false;
            }
            if group.next_expiry().is_some_and(|expires| expires <= now) {
                return true;
            }
            link = group.parent();
        }
        false
    }

    /// Whether a CPU other than `cpu` is awake in its tree. Without a lock: a forecast.
    pub(crate) fn others_are_active(&self, cpu: CpuId) -> bool {
        let mut link = self.cpu(cpu).leaf();
        while let Some((group, mask)) = link {
            let group = &self.groups[group];
            if group.word.load().active() & !mask.bits() != 0 {
                return true;
            }
            link = group.parent();
        }
        false
    }

    /// Whether a CPU is awake in the tree that `cpu` has joined: in `cpu`'s group or above it. Without a
    /// lock; of two that go idle at once the later one finds that none is.
    #[must_use]
    pub fn is_active(&self, cpu: CpuId) -> bool {
        let mut link = self.cpu(cpu).leaf();
        while let Some((group, _)) = link {
            let group = &self.groups[group];
            if group.word.load().is_active() {
                return true;
            }
            link = group.parent();
        }
        false
    }

    /// Calls `pull` for each CPU whose event is due by `now` and that `cpu` has to look after. By the CPU
    /// itself, awake or parked. `pull` must publish that CPU's first expiry anew, or say that it left it.
    ///
    /// Afterwards a parked CPU's [`wakeup`](Self::wakeup) is what is left to wake up for: also when it was
    /// not its turn any more, or it would be woken for the same expiry for ever
    /// (`site::kernel::ghost_wakeup_storm`).
    ///
    /// Says whether it saw all events that it had to look at: a thread may be stopped inside a group, and one
    /// that could not be pulled hides what others in its child group have.
    pub fn handle_remote(&self, cpu: CpuId, now: Nanos, pull: &mut dyn FnMut(CpuId) -> Pulled) -> bool {
        let this = self.cpu(cpu);
        if self.is_unavailable(cpu) {
            return true;
        }
        // Asked before each pull: a CPU that is made unavailable meanwhile begins no other (T4). Test:
        // `site::available::a_puller_that_leaves_pulls_no_more`.
        let mut pull = |target: CpuId| if self.is_unavailable(cpu) { Pulled::Left } else { pull(target) };
        let mut link = this.leaf();
        let (mut saw_all, mut level) = (true, 0);
        while let Some((group, mask)) = link {
            match self.try_pull_due(group, mask.bits(), now, &mut pull) {
                Ok(Looked::NotMigrator) => break,
                Ok(Looked::All) => {}
                // Below the lowest groups are CPUs, one event each.
                Ok(Looked::Skipped) => saw_all &= level == 0,
                Err(Busy) => saw_all = false,
            }
            level += 1;
            interleave!(BeforeParent);
            link = self.groups[group].parent();
        }
        interleave!(BeforeCpuLock);
        let record = this.record.lock_owner();
        if record.presence == Presence::Parked && record.is_available {
            // Looked up again under the lock: a timer of this CPU may have been published since, and what
            // that wrote here must not be written over. Test: `site::walks::a_timer_for_a_parked_puller`.
            this.set_wakeup(self.first_of_idle_tree(this.leaf()));
        }
        saw_all
    }

    /// The first expiry of a tree in which no CPU is awake, as far as can be seen from one place.
    fn first_of_idle_tree(&self, mut link: Option<Link>) -> Option<Nanos> {
        let mut first = None;
        while let Some((group, _)) = link {
            let group = &self.groups[group];
            if group.word.load().is_active() {
                return None;
            }
            first = group.next_expiry();
            link = group.parent();
        }
        first
    }

    fn is_unavailable(&self, cpu: CpuId) -> bool {
        !self.cpu(cpu).record.lock_owner().is_available
    }

    /// Pulls what is due in one group, as long as the child `mask` is the one to do so.
    fn try_pull_due(
        &self,
        group: usize,
        mask: u8,
        now: Nanos,
        pull: &mut dyn FnMut(CpuId) -> Pulled,
    ) -> Result<Looked, Busy> {
        let group = &self.groups[group];
        let mut skipped = 0;
        let mut last: Option<TreeEvent> = None;
        loop {
            let word = group.word.load();
            if word.migrator().is_some_and(|migrator| migrator.bits() != mask) {
                return Ok(Looked::NotMigrator);
            }
            interleave!(BeforePull);
            let Some((child, event)) = group.try_first_due(now, skipped)? else {
                return Ok(if skipped == 0 { Looked::All } else { Looked::Skipped });
            };
            // An event that stays as it was is another CPU's for this time.
            if last == Some(event) || pull(event.cpu) == Pulled::Left {
                skipped |= child.bits();
            }
            last = Some(event);
        }
    }

    /// When `cpu`, still awake, would have to wake up if it went idle now with `next` as its first global
    /// expiry: a forecast, which locks nothing but the CPU's own record. By the CPU itself. Never later than
    /// what going idle returns, unless others change it meanwhile.
    ///
    /// The earliest on the whole way up counts: an event may not have been carried up yet.
    /// Test: `site::kernel::quick_check_late_forecast`.
    #[must_use]
    pub fn quick_check(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        if self.is_unavailable(cpu) {
            return next;
        }
        let mut first = next;
        let mut link = self.cpu(cpu).leaf();
        while let Some((group, mask)) = link {
            let group = &self.groups[group];
            if group.word.load().active() & !mask.bits() != 0 {
                return None;
            }
            first = earliest(first, group.next_expiry());
            link = group.parent();
        }
        first
    }

    /// The CPUs that `cpu` watches: the next active one in its group, going round, and, where its group is
    /// the migrator, one that stands for the next active group, and so on up. Nearest first. A hint.
    pub(crate) fn watched(&self, cpu: CpuId, mut visit: impl FnMut(CpuId) -> bool) {
        let mut link = self.cpu(cpu).leaf();
        let mut level = 0;
        while let Some((index, mask)) = link {
            let group = &self.groups[index];
            let word = group.word.load();
            let mut others = word.active() & !mask.bits();
            while others != 0 {
                let above = others & !(mask.bits() | (mask.bits() - 1));
                let next = if above != 0 { above } else { others };
                let bit = next & next.wrapping_neg();
                others &= !bit;
                if let Some(target) = self.representative(index, bit, level)
                    && visit(target)
                {
                    break;
                }
            }
            if !word.is_migrator_or_none(mask) {
                return;
            }
            link = group.parent();
            level += 1;
        }
    }

    /// The CPU at the end of the chain of migrators below a child.
    fn representative(&self, group: usize, bit: u8, level: usize) -> Option<CpuId> {
        let (mut group, mut child) = (group, ChildMask::from_bits(bit)?);
        for _ in 0..level {
            group = self.groups[group].child(child)?;
            child = self.groups[group].word.load().migrator()?;
        }
        self.groups[group].child(child).map(|cpu| CpuId(cpu as u16))
    }
}
