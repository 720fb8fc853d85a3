//! Stretches in which an isolated CPU was taken away without a break, and the first that is too long.

use quietcore_core::{CpuId, Nanos};
use std::collections::HashMap;

/// What follows each other within so long is one stretch: the kernel's own way from one thing to the next is
/// in no event.
const JOINED_WITHIN: Nanos = Nanos(5_000);

/// An isolated CPU was taken away from its tasks, without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The CPU.
    pub cpu: CpuId,
    /// When it began, on the recording's clock.
    pub from: Nanos,
    /// When it was over.
    pub until: Nanos,
}

/// See the module.
#[derive(Debug)]
pub(super) struct GapSearch {
    longer_than: Nanos,
    /// The last stretch of each CPU.
    last: HashMap<CpuId, (Nanos, Nanos)>,
    found: Option<Gap>,
}

impl GapSearch {
    pub(super) fn new(longer_than: Nanos) -> Self {
        Self { longer_than, last: HashMap::new(), found: None }
    }

    /// Something that is not the CPU's own has had it.
    pub(super) fn take(&mut self, cpu: CpuId, from: Nanos, until: Nanos) {
        let before = self.last.get(&cpu).filter(|(_, end)| from.since(*end) <= JOINED_WITHIN);
        // What is on top of something ends first, and begins later.
        let from = before.map_or(from, |(begin, _)| from.min(*begin));
        self.last.insert(cpu, (from, until));
        if self.found.is_none() && until.since(from) > self.longer_than {
            self.found = Some(Gap { cpu, from, until });
        }
    }

    /// Events of a CPU were lost: what comes is no part of what was.
    pub(super) fn forget(&mut self, cpu: CpuId) {
        self.last.remove(&cpu);
    }

    pub(super) fn found(&self) -> Option<Gap> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::{Gap, GapSearch};
    use quietcore_core::{CpuId, Nanos};

    fn cpu(number: u64) -> CpuId {
        CpuId::new(number).expect("a small number")
    }

    /// Each thing with its CPU, its begin and its end; without an end, events of the CPU were lost.
    fn found(things: &[(u64, u64, u64)]) -> Option<(u64, u64, u64)> {
        let mut search = GapSearch::new(Nanos(50_000));
        for &(on, from, until) in things {
            if until == 0 {
                search.forget(cpu(on));
            } else {
                search.take(cpu(on), Nanos(from), Nanos(until));
            }
        }
        search.found().map(|Gap { cpu, from, until }| (cpu.index() as u64, from.0, until.0))
    }

    /// Goal: a stretch is as long as all that follows each other, and only the first that is too long is
    /// found. Method: one thing at the limit and beyond it; some that follow each other closely, and not; one
    /// on top of another; other CPUs between them; a loss between them.
    #[test]
    fn a_stretch_is_all_that_follows_each_other() {
        assert_eq!(found(&[(1, 1_000, 51_000)]), None);
        assert_eq!(found(&[(1, 1_000, 51_001), (1, 90_000, 190_000)]), Some((1, 1_000, 51_001)));
        assert_eq!(found(&[(1, 0, 30_000), (1, 35_000, 51_000)]), Some((1, 0, 51_000)));
        assert_eq!(found(&[(1, 0, 30_000), (1, 35_001, 51_000)]), None);
        assert_eq!(found(&[(1, 20_000, 30_000), (1, 5_000, 56_000)]), Some((1, 5_000, 56_000)));
        assert_eq!(found(&[(1, 0, 30_000), (2, 30_000, 40_000), (1, 31_000, 51_000)]), Some((1, 0, 51_000)));
        assert_eq!(found(&[(1, 0, 30_000), (2, 30_000, 80_000), (1, 81_000, 100_000)]), None);
        assert_eq!(found(&[(1, 0, 30_000), (1, 0, 0), (1, 31_000, 51_000)]), None);
    }
}
