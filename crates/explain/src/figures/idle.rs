//! Idle states: how often each CPU entered which one, and how long it was there.
//!
//! A residency begins with a `cpu_idle` event that names a state and ends when the next one of that CPU says
//! that it leaves. If the next one names a state, the end of the first is missing. A residency whose end is
//! not in the input counts as an entry and has no time; one whose begin is not there does not count. A mark
//! of lost events ends the residency that is open on its CPU, as one without an end.

use super::report::IdleResidency;
use quietcore_core::{CpuId, Nanos};
use std::collections::BTreeMap;

/// So many states of CPUs are told apart; kernels have ten of each CPU at most.
const ROWS_MAX: usize = 131_072;

/// A CPU is in an idle state.
#[derive(Clone, Copy, Debug)]
struct OpenResidency {
    state: u32,
    since: Nanos,
}

/// All residencies of one CPU in one state.
#[derive(Debug, Default)]
struct ResidencySum {
    entries: u64,
    /// Of those whose end was seen, in all and the longest; `None` without any.
    total: Option<u64>,
    longest: Option<u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct IdleCounts {
    /// By CPU.
    open: Vec<Option<OpenResidency>>,
    rows: BTreeMap<(CpuId, u32), ResidencySum>,
    overflowed: u64,
}

impl IdleCounts {
    /// How many entries found no room.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// `cpu_idle`: `cpu` goes into `state`, or leaves idle if there is none.
    pub(super) fn take(&mut self, at: Nanos, cpu: CpuId, state: Option<u32>) {
        let left = self.open_of(cpu).take();
        match (state, left) {
            (Some(state), _) => {
                let is_full = self.rows.len() >= ROWS_MAX;
                if is_full && !self.rows.contains_key(&(cpu, state)) {
                    self.overflowed += 1;
                    return;
                }
                self.rows.entry((cpu, state)).or_default().entries += 1;
                *self.open_of(cpu) = Some(OpenResidency { state, since: at });
            }
            (None, Some(OpenResidency { state, since })) => {
                let stayed = at.since(since).as_u64();
                let sum = self.rows.entry((cpu, state)).or_default();
                sum.total = Some(sum.total.unwrap_or(0).saturating_add(stayed));
                sum.longest = sum.longest.max(Some(stayed));
            }
            (None, None) => {}
        }
    }

    /// Events of `cpu` were lost: in which state it is is not known any more.
    pub(super) fn forget(&mut self, cpu: CpuId) {
        *self.open_of(cpu) = None;
    }

    fn open_of(&mut self, cpu: CpuId) -> &mut Option<OpenResidency> {
        if self.open.len() <= cpu.index() {
            self.open.resize(cpu.index() + 1, None);
        }
        &mut self.open[cpu.index()]
    }

    /// By CPU and state; without a span of the recording no spans.
    pub(super) fn report(&self, duration_ns: Option<u64>) -> Vec<IdleResidency> {
        let row = |(&(cpu, state), sum): (&(CpuId, u32), &ResidencySum)| {
            let total_ns = sum.total.filter(|_| duration_ns.is_some());
            let of = duration_ns.filter(|&nanos| nanos > 0);
            IdleResidency {
                cpu: cpu.index() as u16,
                state,
                entries: sum.entries,
                total_ns,
                max_ns: sum.longest.filter(|_| duration_ns.is_some()),
                share: total_ns.zip(of).map(|(total, of)| total as f64 / of as f64),
            }
        };
        self.rows.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{CpuId, IdleCounts, Nanos, ROWS_MAX};

    fn cpu(number: u64) -> CpuId {
        CpuId::new(number).unwrap()
    }

    /// CPU, state, entries, time in all, longest residency.
    type ResidencyRow = (u16, u32, u64, Option<u64>, Option<u64>);

    /// Those of a recording of 1 us.
    fn rows(idle: &IdleCounts) -> Vec<ResidencyRow> {
        let rows = idle.report(Some(1_000)).into_iter();
        rows.map(|row| (row.cpu, row.state, row.entries, row.total_ns, row.max_ns)).collect()
    }

    /// Goal: a residency is from a state to the leaving of the same CPU, and counts where it began. Method:
    /// two CPUs at the same time, one of them twice in one state; a leaving whose begin is not there.
    #[test]
    fn a_residency_is_from_a_state_to_the_leaving_of_its_cpu() {
        let mut idle = IdleCounts::default();
        idle.take(Nanos(5), cpu(1), None);
        idle.take(Nanos(10), cpu(1), Some(2));
        idle.take(Nanos(20), cpu(0), Some(0));
        idle.take(Nanos(40), cpu(1), None);
        idle.take(Nanos(50), cpu(1), Some(2));
        idle.take(Nanos(57), cpu(1), None);
        idle.take(Nanos(61), cpu(0), None);
        assert_eq!(rows(&idle), [(0, 0, 1, Some(41), Some(41)), (1, 2, 2, Some(37), Some(30))]);
        let share = idle.report(Some(1_000))[1].share;
        assert_eq!(share, Some(0.037));
        for (duration, total) in [(None, None), (Some(0), Some(37))] {
            let row = &idle.report(duration)[1];
            assert_eq!((row.entries, row.total_ns, row.share), (2, total, None), "{duration:?}");
        }
    }

    /// Goal: a residency whose end is not known is an entry without time. Method: another state, and a mark
    /// of lost events, before the leaving; a mark of another CPU changes nothing.
    #[test]
    fn a_residency_without_an_end_has_no_time() {
        let mut idle = IdleCounts::default();
        idle.take(Nanos(10), cpu(1), Some(1));
        idle.take(Nanos(20), cpu(1), Some(3));
        idle.take(Nanos(25), cpu(1), None);
        assert_eq!(rows(&idle), [(1, 1, 1, None, None), (1, 3, 1, Some(5), Some(5))]);
        idle.take(Nanos(30), cpu(1), Some(1));
        idle.forget(cpu(1));
        idle.take(Nanos(35), cpu(1), None);
        idle.take(Nanos(40), cpu(1), Some(3));
        idle.forget(cpu(2));
        idle.take(Nanos(48), cpu(1), None);
        assert_eq!(rows(&idle), [(1, 1, 2, None, None), (1, 3, 2, Some(13), Some(8))]);
    }

    /// Goal: memory is bounded, and what finds no room is told. Method: as many states as are kept, one more,
    /// and one that is known.
    #[test]
    fn states_are_bounded() {
        let mut idle = IdleCounts::default();
        for state in (0..=ROWS_MAX as u32).chain([7]) {
            idle.take(Nanos(1), cpu(0), Some(state));
        }
        let rows = rows(&idle);
        assert_eq!((rows.len(), rows[7].2, idle.overflowed()), (ROWS_MAX, 2, 1));
    }
}
