//! All of a CPU that have the same name: how many, for how long, and why.

use super::cause::{CauseId, CauseTable};
use crate::figures::kernel_threads::is_kernel_thread;
use crate::figures::report::{Cause, Interruption};
use hdrhistogram::Histogram;
use quietcore_core::{CpuId, Nanos};
use quietcore_trace::{DisturbanceSource, NameId, NameTable, Record};

/// So many causes of a row are told apart; what has another one counts without.
const CAUSES_MAX: usize = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) cpu: CpuId,
    pub(super) source: DisturbanceSource,
    name: NameId,
    count: u64,
    /// Of those whose end was seen.
    total: u64,
    max: u64,
    /// When the longest one ended, and in which line.
    max_at: Nanos,
    max_line: u64,
    took: Histogram<u32>,
    causes: Vec<CauseCount>,
}

#[derive(Debug)]
struct CauseCount {
    cause: CauseId,
    count: u64,
    /// Of those whose end was seen.
    total: Option<u64>,
}

impl Row {
    pub(super) fn new(cpu: CpuId, source: DisturbanceSource, name: NameId) -> Self {
        let took = Histogram::new(2).expect("2 significant digits are in range");
        let causes = Vec::new();
        Self { cpu, source, name, count: 0, total: 0, max: 0, max_at: Nanos(0), max_line: 0, took, causes }
    }

    pub(super) fn begin(&mut self, cause: Option<CauseId>) {
        self.count += 1;
        let Some(cause) = cause else { return };
        if let Some(known) = self.causes.iter_mut().find(|count| count.cause == cause) {
            known.count += 1;
        } else if self.causes.len() < CAUSES_MAX {
            self.causes.push(CauseCount { cause, count: 1, total: None });
        }
    }

    pub(super) fn end(&mut self, record: &Record<'_>, took: u64, cause: Option<CauseId>) {
        self.total = self.total.saturating_add(took);
        if took >= self.max {
            (self.max, self.max_at, self.max_line) = (took, record.at, record.line);
        }
        // The histogram grows to any value, so recording cannot fail.
        let recorded = self.took.record(took);
        debug_assert!(recorded.is_ok(), "a growing histogram takes every value");
        if let Some(known) = self.causes.iter_mut().find(|count| Some(count.cause) == cause) {
            known.total = Some(known.total.unwrap_or(0).saturating_add(took));
        }
    }

    pub(super) fn report(&self, causes: &CauseTable, names: &NameTable) -> Interruption {
        let measured = |value| (!self.took.is_empty()).then_some(value);
        let cause = |count: &CauseCount| Cause {
            count: count.count,
            total_ns: count.total,
            steps: causes.steps(count.cause, names),
        };
        let mut causes: Vec<Cause> = self.causes.iter().map(cause).collect();
        causes.sort_by(|one, two| two.count.cmp(&one.count).then_with(|| one.steps.cmp(&two.steps)));
        Interruption {
            cpu: self.cpu.index() as u16,
            source: self.source.name(),
            name: names.text(self.name),
            own: false,
            count: self.count,
            total_ns: measured(self.total),
            p99_ns: measured(self.took.value_at_quantile(0.99).min(self.max)),
            max_ns: measured(self.max),
            max_at_ns: measured(self.max_at.0),
            max_line: measured(self.max_line),
            causes,
            taken_ns: Vec::new(),
            durations: Vec::new(),
        }
    }

    /// How many took from 2^n to less than 2^(n+1) ns, to two significant digits; the first has those of 0,
    /// too.
    pub(super) fn durations(&self) -> Vec<u64> {
        let mut counts = Vec::new();
        for step in self.took.iter_recorded() {
            let power = self.took.lowest_equivalent(step.value_iterated_to()).max(1).ilog2() as usize;
            if counts.len() <= power {
                counts.resize(power + 1, 0);
            }
            counts[power] += step.count_since_last_iteration();
        }
        counts
    }
}

/// Marks, of each CPU, the task that had it longest: what the CPU is there for, unless it is the kernel's
/// own.
pub(super) fn mark_own(rows: &mut [Interruption]) {
    for of_a_cpu in rows.chunk_by_mut(|one, two| one.cpu == two.cpu) {
        let tasks = of_a_cpu.iter_mut().filter(|row| row.source == DisturbanceSource::Task.name());
        let users = tasks.filter(|row| row.total_ns.is_some() && !is_kernel_thread(row.name.as_bytes()));
        if let Some(longest) = users.max_by_key(|row| row.total_ns) {
            longest.own = true;
        }
    }
}
