//! High-resolution timers: which CPU started them, which task, and where they expired.

use super::count::CountPerCpu;
use super::interruptions::Initiator;
use super::report::CountByName;
use quietcore_core::CpuSet;
use quietcore_trace::{HrtimerStart, IdentityTable, NameId, NameTable, Record};
use std::collections::BTreeMap;

const TASKS_MAX: usize = 65_536;
/// Stands for all tasks that found no room in `by_task`; no task has this id.
const OTHER_PID: i32 = -1;
/// What the kernel prints for a task whose name it no longer knows.
const FORGOTTEN: &[u8] = b"<...>";

#[derive(Debug)]
struct Started {
    line: u64,
    by: Initiator,
    comm: NameId,
    pid: i32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct HrtimerCounts {
    started: IdentityTable<Started>,
    /// Line of the last mark of lost events: a start before it need not be the timer's last.
    lost: u64,
    pub(super) off_arming: u64,
    pub(super) foreign: u64,
    pub(super) watchdogs: CountPerCpu,
    pub(super) watchdogs_off_arming: u64,
    by_task: BTreeMap<(i32, NameId), u64>,
}

impl HrtimerCounts {
    pub(super) fn new(identities_max: usize) -> Self {
        Self {
            started: IdentityTable::new(identities_max),
            lost: 0,
            off_arming: 0,
            foreign: 0,
            watchdogs: CountPerCpu::default(),
            watchdogs_off_arming: 0,
            by_task: BTreeMap::new(),
        }
    }

    pub(super) fn evicted(&self) -> u64 {
        self.started.evicted()
    }

    /// Events were lost: which CPU started a timer last, and for which task, is not known any more.
    pub(super) fn forget(&mut self, mark: &Record<'_>) {
        self.lost = mark.line;
    }

    pub(super) fn take_start(
        &mut self,
        record: &Record<'_>,
        start: &HrtimerStart<'_>,
        by: Initiator,
        names: &mut NameTable,
    ) {
        let comm = names.number(record.task.comm);
        let started = Started { line: record.line, by, comm, pid: record.task.pid };
        self.started.insert(start.hrtimer, started);
    }

    /// Returns what its CPU was doing when it started the timer, if that is known.
    pub(super) fn take_expiry(
        &mut self,
        record: &Record<'_>,
        hrtimer: u64,
        function: &[u8],
        isolated: &CpuSet,
    ) -> Option<Initiator> {
        let is_watchdog = function == b"qdisc_watchdog";
        if is_watchdog {
            self.watchdogs.add(record.cpu);
        }
        let started = self.started.get_mut(hrtimer).filter(|started| started.line > self.lost);
        let started = started?;
        if started.by.cpu != record.cpu {
            self.off_arming += 1;
            self.watchdogs_off_arming += u64::from(is_watchdog);
            let is_foreign = isolated.contains(record.cpu) && !isolated.contains(started.by.cpu);
            self.foreign += u64::from(is_foreign);
        }
        if function == b"hrtimer_wakeup" {
            let task = (started.pid, started.comm);
            let has_room = self.by_task.len() < TASKS_MAX || self.by_task.contains_key(&task);
            let task = if has_room { task } else { (OTHER_PID, NameTable::OTHER) };
            *self.by_task.entry(task).or_default() += 1;
        }
        Some(started.by)
    }

    /// `comm-pid` to count; a forgotten name is replaced by the one name known for that pid.
    pub(super) fn by_task(&self, names: &mut NameTable) -> CountByName {
        let forgotten = names.number(FORGOTTEN);
        let known: BTreeMap<i32, NameId> =
            self.by_task.keys().filter(|task| task.1 != forgotten).map(|task| (task.0, task.1)).collect();
        let mut counts = CountByName::new();
        for (&(pid, comm), &count) in &self.by_task {
            let comm = if comm == forgotten { known.get(&pid).copied().unwrap_or(comm) } else { comm };
            let comm = names.text(comm);
            let task = if pid == OTHER_PID { comm } else { format!("{comm}-{pid}") };
            *counts.entry(task).or_default() += count;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::{CpuSet, HrtimerCounts, HrtimerStart, NameTable, Record, TASKS_MAX};
    use crate::figures::interruptions::InterruptionCounts;
    use quietcore_core::{CpuId, Nanos};
    use quietcore_trace::{Event, Task};

    /// Goal: tasks that find no room are counted together, and one that has its own goes on with it.
    /// Method: the limit and two more, then the first one again.
    #[test]
    fn tasks_without_room_are_counted_together() {
        let (mut hrtimers, mut names) = (HrtimerCounts::new(1), NameTable::new());
        let start = HrtimerStart {
            hrtimer: 1,
            function: b"hrtimer_wakeup",
            expires: Nanos(0),
            softexpires: Nanos(0),
            pinned: None,
        };
        for pid in (1..=TASKS_MAX as i32 + 2).chain([1]) {
            let task = Task { comm: b"rt", pid };
            let (cpu, at) = (CpuId::new(0).unwrap(), Nanos(0));
            let record = Record { line: 1, task, cpu, context: None, at, event: Event::HrtimerStart(start) };
            let by = InterruptionCounts::new(CpuSet::new(), None).initiator(&record, &mut names);
            hrtimers.take_start(&record, &start, by, &mut names);
            hrtimers.take_expiry(&record, start.hrtimer, start.function, &CpuSet::new());
        }
        let by_task = hrtimers.by_task(&mut names);
        assert_eq!((by_task.len(), by_task["rt-1"], by_task["(other)"]), (TASKS_MAX + 1, 2, 2));
    }
}
