//! The reports of a machine, and who writes them.

use super::report::{StallCause, StallReport};
use crate::words::stall_record::{RunRecord, RunningCode};
use crate::{CpuId, Nanos};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reports that are kept; the oldest go first.
const KEPT: usize = 64;

/// What is known of each CPU of a machine, and what was reported.
#[derive(Debug)]
pub(crate) struct Stalls {
    records: Box<[RunRecord]>,
    log: Mutex<Log>,
}

/// The lock is held for no call of user code.
#[derive(Debug)]
struct Log {
    /// Marks by CPU that were reported.
    marks: Box<[u64]>,
    /// Reports by CPU.
    counts: Box<[u64]>,
    reports: VecDeque<StallReport>,
    /// The number of the last one.
    last: u64,
}

impl Log {
    /// 0 is the number of no report.
    fn end(&mut self, number: u64, at: Option<Nanos>) {
        if let Some(report) = self.reports.iter_mut().find(|report| report.number == number) {
            report.ended = at;
        }
    }
}

/// A CPU that was marked, as the core tells it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marked {
    pub(super) cpu: CpuId,
    /// How often.
    pub(super) marks: u64,
    pub(super) since: Nanos,
    pub(super) missed_wakeup: bool,
    /// It is back already.
    pub(super) is_back: bool,
}

impl Stalls {
    pub(crate) fn new(cpu_count: usize) -> Self {
        let zeros = || vec![0; cpu_count].into_boxed_slice();
        let log = Log { marks: zeros(), counts: zeros(), reports: VecDeque::new(), last: 0 };
        Self { records: (0..cpu_count).map(|_| RunRecord::new()).collect(), log: Mutex::new(log) }
    }

    #[inline]
    pub(crate) fn record(&self, cpu: CpuId) -> &RunRecord {
        &self.records[cpu.index()]
    }

    /// Says what `cpu` runs while `code` does. By its driver.
    #[inline]
    pub(crate) fn around<R>(&self, cpu: CpuId, running: RunningCode, code: impl FnOnce() -> R) -> R {
        /// Also when `code` panics.
        struct End<'a>(&'a RunRecord);

        impl Drop for End<'_> {
            #[inline]
            fn drop(&mut self) {
                self.0.end();
            }
        }

        let record = self.record(cpu);
        record.begin(running);
        let _end = End(record);
        code()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a report of each of `marked` that has none yet; returns the new ones. Does nothing if a thread
    /// else is at it.
    pub(super) fn report(&self, now: Nanos, marked: impl Iterator<Item = Marked>) -> Vec<StallReport> {
        let Ok(mut log) = self.log.try_lock() else { return Vec::new() };
        let mut new = Vec::new();
        for one in marked {
            let (index, record) = (one.cpu.index(), self.record(one.cpu));
            if log.marks[index] == one.marks {
                if one.is_back && record.is_reported() {
                    // The lane could not say so, and has had nothing to do since.
                    log.end(record.take_report(), Some(one.since.min(now)));
                }
                continue;
            }
            log.marks[index] = one.marks;
            log.counts[index] += 1;
            log.last += 1;
            let report = StallReport {
                number: log.last,
                cpu: one.cpu,
                thread: record.thread(),
                since: one.since.min(now),
                noticed: now,
                ended: one.is_back.then_some(now),
                stall: what(record, one.missed_wakeup),
            };
            // The lane could not say that it was back: it was, at the latest when its new silence began.
            log.end(record.take_report(), Some(report.since));
            if !one.is_back {
                record.report(report.number);
            }
            if log.reports.len() == KEPT {
                log.reports.pop_front();
            }
            log.reports.push_back(report.clone());
            new.push(report);
        }
        new
    }

    /// `cpu` turns again.
    #[cold]
    pub(super) fn end(&self, cpu: CpuId, now: Nanos) {
        // A thread may be writing that report: then the next turn says it.
        let Ok(mut log) = self.log.try_lock() else { return };
        log.end(self.record(cpu).take_report(), Some(now));
    }

    /// `cpu` is not driven any more: no turn of this thread comes after that.
    pub(super) fn leave(&self, cpu: CpuId) {
        self.log().end(self.record(cpu).take_report(), None);
    }

    /// The newest last.
    pub(super) fn kept(&self) -> Vec<StallReport> {
        self.log().reports.iter().cloned().collect()
    }

    /// Reports of `cpu`, those included that are not kept any more.
    pub(crate) fn count(&self, cpu: CpuId) -> u64 {
        self.log().counts[cpu.index()]
    }

    /// Those that are not kept any more.
    pub(super) fn dropped(&self) -> u64 {
        let log = self.log();
        log.last - log.reports.len() as u64
    }
}

fn what(record: &RunRecord, missed_wakeup: bool) -> StallCause {
    if missed_wakeup {
        return StallCause::Asleep;
    }
    record.running().map_or(StallCause::Elsewhere, StallCause::of)
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Marked, RunningCode, StallCause, Stalls};
    use crate::words::stall_record::{Callback, CodeKind};
    use crate::{CpuId, Nanos};

    fn marked(marks: u64, is_back: bool) -> impl Iterator<Item = Marked> {
        let cpu = CpuId::default();
        core::iter::once(Marked { cpu, marks, since: Nanos(100), missed_wakeup: false, is_back })
    }

    /// Goal: each mark has one report, with what ran then, and an end when the lane is back. Method: a mark
    /// that is told twice, a callback, a turn.
    #[test]
    fn a_mark_has_one_report() {
        let stalls = Stalls::new(1);
        let cpu = CpuId::default();
        let running = RunningCode { callback: &Callback::RAW, subject: 16, function: 32, location: None };
        stalls.around(cpu, running, || {
            assert_eq!(stalls.report(Nanos(300), marked(1, false)).len(), 1);
            assert!(stalls.report(Nanos(400), marked(1, false)).is_empty());
        });
        assert!(stalls.record(cpu).is_reported());
        assert_eq!(
            stalls.kept()[0].to_string(),
            "lane 0 has not turned for 200.0ns: it runs a function at 0x20 of timer 0x10"
        );
        stalls.end(cpu, Nanos(1100));
        assert_eq!(
            stalls.kept()[0].to_string(),
            "lane 0 did not turn for 1.0µs: it ran a function at 0x20 of timer 0x10"
        );
        assert!(!stalls.record(cpu).is_reported());
        assert_eq!(stalls.report(Nanos(2000), marked(2, true))[0].stall, StallCause::Elsewhere);
        assert!(!stalls.record(cpu).is_reported(), "it was back before that");
    }

    /// Goal: a lane whose report is being written ends it in its next turn; one that is left waits and ends
    /// it. Method: the lock is held meanwhile.
    #[test]
    fn a_report_that_is_being_written_is_ended() {
        let (stalls, cpu) = (Stalls::new(1), CpuId::default());
        let is_reported = || stalls.record(cpu).is_reported();
        assert_eq!(stalls.report(Nanos(300), marked(1, false)).len(), 1);
        let log = stalls.log();
        stalls.end(cpu, Nanos(500));
        drop(log);
        assert!(is_reported(), "it was being written");
        stalls.end(cpu, Nanos(600));
        assert_eq!((stalls.kept()[0].ended, is_reported()), (Some(Nanos(600)), false));
        assert_eq!(stalls.report(Nanos(900), marked(2, false)).len(), 1);
        std::thread::scope(|scope| {
            let log = stalls.log();
            let leaves = scope.spawn(|| stalls.leave(cpu));
            // If the other thread is slower than this, it shows less.
            std::thread::sleep(core::time::Duration::from_millis(20));
            assert!(!leaves.is_finished());
            drop(log);
        });
        assert_eq!((stalls.kept()[1].ended, is_reported()), (None, false));
    }

    /// Goal: a lane that could not say that it was back, as a thread had the lock, is so in the next report.
    /// Method: two marks, and no end of the first.
    #[test]
    fn a_new_report_ends_the_one_before() {
        let stalls = Stalls::new(1);
        let mark = |number, since| marked(number, false).map(move |one| Marked { since, ..one });
        assert_eq!(stalls.report(Nanos(300), mark(1, Nanos(100))).len(), 1);
        assert_eq!(stalls.report(Nanos(900), mark(2, Nanos(700))).len(), 1);
        let ends: Vec<_> = stalls.kept().iter().map(|report| report.ended).collect();
        assert_eq!(ends, [Some(Nanos(700)), None]);
        stalls.end(CpuId::default(), Nanos(1000));
        assert_eq!(stalls.kept()[1].ended, Some(Nanos(1000)));
    }

    /// Goal: a lane that could not say that it was back, and went to sleep then, is so for the thread that
    /// asks. Method: a mark, and the same one again when the lane is back.
    #[test]
    fn who_asks_ends_a_report() {
        let stalls = Stalls::new(1);
        assert_eq!(stalls.report(Nanos(300), marked(1, false)).len(), 1);
        assert!(stalls.report(Nanos(400), marked(1, false)).is_empty());
        assert_eq!(stalls.kept()[0].ended, None);
        let back = marked(1, true).map(|one| Marked { since: Nanos(500), ..one });
        assert!(stalls.report(Nanos(900), back).is_empty());
        assert_eq!(stalls.kept()[0].ended, Some(Nanos(500)));
    }

    /// Goal: a lane that did not wake up is told so, whatever it ran before. Method: one that was to wake up,
    /// and one that runs something.
    #[test]
    fn a_missed_wake_up_is_told() {
        for (missed_wakeup, told) in
            [(true, StallCause::Asleep), (false, StallCause::of(RunningCode::WAKERS))]
        {
            let stalls = Stalls::new(1);
            let mark = marked(1, false).map(|one| Marked { missed_wakeup, ..one });
            let report =
                stalls.around(CpuId::default(), RunningCode::WAKERS, || stalls.report(Nanos(300), mark));
            assert_eq!(report[0].stall, told);
        }
    }

    /// Goal: nothing in a report is after the look that wrote it, though a lane may have turned since that
    /// looked at the clock. Method: a silence that began later, and one that ended later.
    #[test]
    fn no_report_is_ahead_of_its_look() {
        let stalls = Stalls::new(1);
        let mark = |is_back, since| marked(1, is_back).map(move |one| Marked { since: Nanos(since), ..one });
        assert_eq!(stalls.report(Nanos(300), mark(false, 400))[0].since, Nanos(300));
        assert!(stalls.report(Nanos(500), mark(true, 600)).is_empty());
        assert_eq!(stalls.kept()[0].ended, Some(Nanos(500)));
    }

    /// Goal: each kind of code is told as what it is. Method: one of each, while it runs and after.
    #[test]
    fn each_kind_is_told() {
        static TASK: Callback = Callback { name: || "a::task", kind: CodeKind::Task };
        static WORK: Callback = Callback { name: || "a::work", kind: CodeKind::Work };
        let here = core::panic::Location::caller();
        let kinds = [
            (RunningCode::of(&TASK, 0, None), "it ran the task a::task".to_owned()),
            (
                RunningCode::of(&TASK, 7, Some(here)),
                format!("it ran the task a::task of priority 7, started at {here}"),
            ),
            (RunningCode::of(&WORK, 0, None), "it ran the work a::work".to_owned()),
            (RunningCode::of(&Callback::SOFTIRQ, 3, None), "it ran the handler of NET_RX".to_owned()),
            (RunningCode::WAKERS, "it ran a task's waker".to_owned()),
        ];
        for (running, told) in kinds {
            let stalls = Stalls::new(1);
            let new = || stalls.report(Nanos(300), marked(1, true)).remove(0).to_string();
            let report = stalls.around(CpuId::default(), running, new);
            assert_eq!(report, format!("lane 0 did not turn for 200.0ns: {told}"));
        }
    }

    /// Goal: the ring is bounded, keeps the newest, and counts the others.
    #[test]
    fn old_reports_are_dropped() {
        let stalls = Stalls::new(1);
        for number in 1..=100 {
            let _ = stalls.report(Nanos(300), marked(number, true));
        }
        let kept = stalls.kept();
        assert_eq!((kept.len(), kept[KEPT - 1].number), (KEPT, 100));
        assert_eq!((stalls.dropped(), stalls.count(CpuId::default())), (100 - KEPT as u64, 100));
    }
}
