//! Why something ran on a CPU: what started it, on which CPU and out of what, and what had started that.
//!
//! Each chain of causes is kept once. Decided here: how long they get. What starts itself over and over, as
//! a timer whose callback arms it again, is one link; a chain ends after [`LINKS_MAX`] of them.

use crate::figures::report::CauseStep;
use quietcore_core::CpuId;
use quietcore_trace::{DisturbanceSource, Initiation, NameId, NameTable};
use std::collections::HashMap;
use std::num::NonZeroU32;

/// So many chains are kept; what has another one has none.
const CHAINS_MAX: usize = 16_384;
const LINKS_MAX: u8 = 4;

/// A chain in its [`CauseTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CauseId(NonZeroU32);

/// What a CPU was doing when it started something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::figures) struct Initiator {
    pub(in crate::figures) cpu: CpuId,
    pub(super) source: DisturbanceSource,
    pub(super) name: NameId,
    /// What had started that, if it is known.
    pub(super) cause: Option<CauseId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ChainLink {
    how: Initiation,
    /// What the receiver of an interrupt is to run.
    function: Option<NameId>,
    by: Initiator,
}

impl ChainLink {
    /// Whether both are the same but for what came before.
    fn repeats(&self, before: &Self) -> bool {
        let without_cause = |link: &Self| Self { by: Initiator { cause: None, ..link.by }, ..*link };
        without_cause(self) == without_cause(before)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CauseTable {
    /// Each with the number of links from it on.
    links: Vec<(ChainLink, u8)>,
    ids: HashMap<ChainLink, CauseId>,
    overflowed: u64,
}

impl CauseTable {
    /// Initiation often there was no room for a chain.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// The chain of what was started so; `None` if there is no room for it.
    pub(super) fn chain(
        &mut self,
        how: Initiation,
        function: Option<NameId>,
        by: Initiator,
    ) -> Option<CauseId> {
        let mut link = ChainLink { how, function, by };
        if let Some(id) = by.cause {
            if link.repeats(&self.link(id).0) {
                return Some(id);
            }
            link.by.cause = self.first(id, LINKS_MAX - 1);
        }
        self.intern(link)
    }

    fn link(&self, id: CauseId) -> (ChainLink, u8) {
        self.links[id.0.get() as usize - 1]
    }

    /// The chain of the first `most` links of one.
    fn first(&mut self, id: CauseId, most: u8) -> Option<CauseId> {
        let (mut link, length) = self.link(id);
        if length <= most {
            return Some(id);
        }
        let most = most.checked_sub(1)?;
        link.by.cause = link.by.cause.and_then(|next| self.first(next, most));
        self.intern(link)
    }

    fn intern(&mut self, link: ChainLink) -> Option<CauseId> {
        if let Some(&id) = self.ids.get(&link) {
            return Some(id);
        }
        if self.links.len() >= CHAINS_MAX {
            self.overflowed += 1;
            return None;
        }
        let id = CauseId(NonZeroU32::MIN.saturating_add(self.links.len() as u32));
        let length = 1 + link.by.cause.map_or(0, |next| self.link(next).1);
        self.links.push((link, length));
        self.ids.insert(link, id);
        Some(id)
    }

    /// The links of a chain, the one that started the thing first.
    pub(super) fn steps(&self, id: CauseId, names: &NameTable) -> Vec<CauseStep> {
        let mut steps = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next {
            let ChainLink { how, function, by } = self.link(id).0;
            steps.push(CauseStep {
                how: how.name(),
                function: function.map(|function| names.text(function)),
                cpu: by.cpu.index() as u16,
                source: by.source.name(),
                name: names.text(by.name),
            });
            next = by.cause;
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::{CHAINS_MAX, CauseId, CauseTable, Initiator};
    use quietcore_core::CpuId;
    use quietcore_trace::{DisturbanceSource, Initiation, NameTable};

    fn by(cpu: u64, cause: Option<CauseId>) -> Initiator {
        let cpu = CpuId::new(cpu).expect("a small number");
        Initiator { cpu, source: DisturbanceSource::Timer, name: NameTable::OTHER, cause }
    }

    fn cpus(causes: &CauseTable, id: Option<CauseId>) -> Vec<u16> {
        let steps = causes.steps(id.expect("there is room"), &NameTable::new());
        steps.into_iter().map(|step| step.cpu).collect()
    }

    /// Goal: what starts itself over and over is one link, and a chain keeps its last links. Method: the same
    /// link three times; then seven different ones, in turns of two.
    #[test]
    fn a_chain_does_not_grow_without_end() {
        let mut causes = CauseTable::default();
        let mut id = None;
        for cpu in [1, 2, 2, 2] {
            id = causes.chain(Initiation::Armed, None, by(cpu, id));
        }
        assert_eq!(cpus(&causes, id), [2, 1]);
        let sent = causes.chain(Initiation::Sent, None, by(2, id));
        assert_eq!(cpus(&causes, sent), [2, 2, 1], "started in another way");
        for cpu in [3, 4, 3, 4, 3] {
            id = causes.chain(Initiation::Armed, None, by(cpu, id));
        }
        assert_eq!(cpus(&causes, id), [3, 4, 3, 4]);
        let kept = causes.links.len();
        for cpu in [4, 3, 4, 3] {
            id = causes.chain(Initiation::Armed, None, by(cpu, id));
        }
        assert_eq!(causes.links.len(), kept);
    }

    /// Goal: chains are bounded, and one without room is counted; those that are known are found.
    #[test]
    fn a_chain_without_room_is_counted() {
        let mut causes = CauseTable::default();
        let first = causes.chain(Initiation::Woken, None, by(0, None));
        for cause in 0..CHAINS_MAX as u32 - 1 {
            let how = if cause % 2 == 0 { Initiation::Queued } else { Initiation::Raised };
            assert!(causes.chain(how, None, by(u64::from(cause) / 2, None)).is_some());
        }
        assert_eq!(causes.overflowed(), 0);
        assert_eq!(causes.chain(Initiation::Armed, None, by(0, None)), None);
        assert_eq!(causes.overflowed(), 1);
        assert_eq!(causes.chain(Initiation::Woken, None, by(0, None)), first);
    }
}
