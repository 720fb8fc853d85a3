//! The bases of all CPUs: the project's wheel, three for each CPU, and where each timer waits.
//!
//! Invariant: `places[timer]` is the base and key of a pending timer, `None` of any other. A base is made
//! when it is first used. Clocks are jiffies, because buckets lie at multiples of them. Not here: who runs
//! a base, and when.

use super::load::LoadBase;
use quietcore_core::CpuId;
use quietcore_wheel::{Slot, SlotKey, Tick, Timers};

#[derive(Clone, Copy, Debug)]
pub(super) struct OwnerBase {
    pub(super) cpu: CpuId,
    pub(super) kind: LoadBase,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LoadTimer {
    pub(super) timer: u32,
    /// The place of its arm among the inputs.
    pub(super) arm: u32,
    /// The CPU that armed it, in the replay.
    pub(super) armed_on: CpuId,
}

type TimerStore = Timers<LoadTimer, Vec<Slot<LoadTimer>>>;

#[derive(Debug)]
pub(super) struct WhatifBases {
    cpus: Vec<[Option<Box<TimerStore>>; 3]>,
    places: Vec<Option<(CpuId, LoadBase, SlotKey)>>,
}

impl WhatifBases {
    pub(super) fn new(cpus: u16, timers: usize) -> Self {
        Self {
            cpus: std::iter::repeat_with(Default::default).take(usize::from(cpus)).collect(),
            places: vec![None; timers],
        }
    }

    fn base(&mut self, cpu: CpuId, kind: LoadBase) -> Option<&mut TimerStore> {
        self.cpus[cpu.index()][kind as usize].as_deref_mut()
    }

    /// Puts a timer into a base; it is nowhere else.
    pub(super) fn arm(&mut self, pending: LoadTimer, at: OwnerBase, expires: u64, now: u64) {
        let OwnerBase { cpu, kind } = at;
        let base = self.cpus[cpu.index()][kind as usize]
            .get_or_insert_with(|| Box::new(TimerStore::new(Tick(now), Vec::new())));
        base.forward(Tick(now));
        let key = base.arm_growing(Tick(expires), pending);
        self.places[pending.timer as usize] = Some((cpu, kind, key));
    }

    /// Takes a timer out, if it is pending; says where from.
    pub(super) fn cancel(&mut self, timer: u32) -> Option<(CpuId, LoadTimer)> {
        let (cpu, kind, key) = self.places.get_mut(timer as usize)?.take()?;
        let pending = self.base(cpu, kind)?.cancel(key).ok()?;
        Some((cpu, pending))
    }

    /// When the first bucket of a base is due, in jiffies.
    pub(super) fn next(&mut self, cpu: CpuId, kind: LoadBase) -> Option<u64> {
        self.base(cpu, kind)?.next_expiry().map(|tick| tick.0)
    }

    /// The next timer of a base that is due at `now`.
    pub(super) fn next_expired(&mut self, cpu: CpuId, kind: LoadBase, now: u64) -> Option<LoadTimer> {
        let expired = self.base(cpu, kind)?.next_expired(Tick(now))?;
        self.places[expired.value.timer as usize] = None;
        Some(expired.value)
    }

    pub(super) fn pending(&self) -> u64 {
        self.places.iter().flatten().count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{LoadTimer, OwnerBase, WhatifBases};
    use crate::whatif::load::LoadBase;
    use quietcore_core::CpuId;

    /// Goal: a timer is in one base at a time and leaves it once. Method: arm, look, cancel, arm elsewhere,
    /// run.
    #[test]
    fn a_timer_is_in_one_base() {
        let (first, second) = (CpuId::new(0).expect("a CPU"), CpuId::new(1).expect("a CPU"));
        let mut bases = WhatifBases::new(2, 1);
        let pending = LoadTimer { timer: 0, arm: 7, armed_on: first };
        bases.arm(pending, OwnerBase { cpu: first, kind: LoadBase::Global }, 1009, 1000);
        assert_eq!(bases.next(first, LoadBase::Global), Some(1010), "one jiffy later, as the wheel has it");
        assert_eq!(bases.cancel(0).map(|(cpu, pending)| (cpu, pending.arm)), Some((first, 7)));
        assert!(bases.cancel(0).is_none());
        bases.arm(pending, OwnerBase { cpu: second, kind: LoadBase::Local }, 1009, 1000);
        assert_eq!((bases.next(first, LoadBase::Global), bases.pending()), (None, 1));
        assert!(bases.next_expired(second, LoadBase::Local, 1009).is_none());
        assert_eq!(bases.next_expired(second, LoadBase::Local, 1010).map(|pending| pending.arm), Some(7));
        assert_eq!(bases.pending(), 0);
    }
}
