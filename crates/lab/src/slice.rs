//! What ran where while a variant was measured.
//!
//! A row says of each callback which lane armed it and which thread ran it from when to when; the same of
//! polls of tasks and of softirqs' handlers. Each is taken down when it has ended, if a trace was asked for.

use crate::sync::lock;
use quietcore_core::{CpuId, Nanos};
use quietcore_live::{Machine, softirq::SoftirqRun, timer::Run};
use std::mem;
use std::sync::{Arc, Mutex};

/// Slices that are kept of one variant; later ones are left out, which [`VariantSlices::is_cut`] says.
pub const SLICES_MAX: usize = 50_000;

/// What ran in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceKind {
    /// A timer's callback: which, and the lane that armed it, where that is known.
    Timer {
        /// Which of the row's timers.
        number: u64,
        /// `None` where it is not known.
        armed: Option<CpuId>,
    },
    /// Part of a task, or of one of several.
    Task {
        /// Which, of several.
        number: Option<u64>,
    },
    /// A softirq's handler, by its vector.
    Softirq {
        /// The vector's index.
        vector: u8,
    },
}

/// A callback, a poll or a handler, from its begin to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Which of the three.
    pub kind: SliceKind,
    /// Of the callback, task or vector.
    pub name: &'static str,
    /// The lane's CPU.
    pub cpu: CpuId,
    /// The thread that ran it.
    pub tid: i32,
    /// By the machine's clock.
    pub began: Nanos,
    /// By the machine's clock.
    pub ended: Nanos,
}

/// Takes slices down, if a trace was asked for; copies share what was taken down.
#[derive(Clone, Debug, Default)]
pub struct SliceLog(Option<Arc<Mutex<Vec<Slice>>>>);

impl SliceLog {
    /// One that takes slices down; the default does not.
    pub fn on() -> Self {
        Self(Some(Arc::default()))
    }

    /// What was taken down, which is then forgotten; `None` of one that is off.
    pub(crate) fn take(&self) -> Option<Vec<Slice>> {
        let all = self.0.as_ref()?;
        Some(mem::take(&mut *lock(all)))
    }

    /// At the end of a callback: it ran until now.
    pub(crate) fn ran(&self, number: u64, name: &'static str, armed: Option<CpuId>, run: &Run<'_>) {
        let (cpu, began, ended) = (run.cpu(), run.now(), || run.timer().machine().now());
        let kind = SliceKind::Timer { number, armed };
        self.push(|tid| Slice { kind, name, cpu, tid, began, ended: ended() });
    }

    /// At the end of a handler that began then.
    pub(crate) fn handled(&self, run: &SoftirqRun<'_>, began: Nanos) {
        let (cpu, name) = (run.cpu(), run.vector().name());
        let kind = SliceKind::Softirq { vector: run.vector().index() as u8 };
        self.push(|tid| Slice { kind, name, cpu, tid, began, ended: run.machine().now() });
    }

    /// Runs a part of a task, on a thread that is bound to its lane's CPU.
    pub(crate) fn around(
        &self,
        machine: &Machine,
        name: &'static str,
        number: Option<u64>,
        part: impl FnOnce(),
    ) {
        let began = self.0.as_ref().map(|_| machine.now());
        part();
        let cpu = CpuId::new(rustix::thread::sched_getcpu() as u64);
        if let (Some(began), Ok(cpu)) = (began, cpu) {
            let kind = SliceKind::Task { number };
            self.push(|tid| Slice { kind, name, cpu, tid, began, ended: machine.now() });
        }
    }

    /// `slice` gets the id of the calling thread, and is called before the lock is taken.
    pub(crate) fn push(&self, slice: impl FnOnce(i32) -> Slice) {
        let Some(all) = &self.0 else { return };
        let slice = slice(rustix::thread::gettid().as_raw_nonzero().get());
        let mut all = lock(all);
        if all.len() <= SLICES_MAX {
            all.push(slice);
        }
    }
}

/// What ran in the last round of a variant.
#[derive(Clone, Debug)]
pub struct VariantSlices {
    /// The row's name.
    pub row: &'static str,
    /// The variant's name.
    pub variant: &'static str,
    /// In the order in which they ended, by lane.
    pub slices: Vec<Slice>,
}

impl VariantSlices {
    /// Whether more ran than is kept.
    pub fn is_cut(&self) -> bool {
        self.slices.len() > SLICES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::{SLICES_MAX, Slice, SliceKind, SliceLog, VariantSlices};
    use quietcore_core::{CpuId, Nanos};

    /// Goal: as many slices are kept as it says, the first ones, and that later ones were left out is known;
    /// a log that is off keeps none. Method: one fewer, as many, two more.
    #[test]
    fn slices_are_kept_up_to_a_limit() {
        let off = SliceLog::default();
        off.push(|_| unreachable!("nothing is taken down"));
        assert_eq!(off.take(), None);
        for (ran, is_cut) in [(SLICES_MAX - 1, false), (SLICES_MAX, false), (SLICES_MAX + 2, true)] {
            let log = SliceLog::on();
            for at in 0..ran as u64 {
                let (kind, cpu) = (SliceKind::Task { number: None }, CpuId::default());
                let (began, ended) = (Nanos(at), Nanos(at + 1));
                log.push(|tid| Slice { kind, name: "a", cpu, tid, began, ended });
            }
            let slices = log.take().expect("it is on");
            let places = slices.iter().zip(0_u64..).all(|(slice, at)| slice.began == Nanos(at));
            assert!(places, "{ran}: the first ones, in their order");
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            assert!(slices.iter().all(|slice| slice.tid == tid));
            let shown = VariantSlices { row: "row", variant: "variant", slices };
            assert_eq!(shown.is_cut(), is_cut, "{ran}");
            assert_eq!(log.take(), Some(Vec::new()), "it was taken");
        }
    }
}
