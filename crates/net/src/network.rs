//! The softirqs NET_TX and NET_RX: for each CPU a list of queues that it is to run, and one of receivers.

use core::fmt;
use quietcore_live::{
    CpuId, Machine, MachineBuilder,
    softirq::{SoftirqRun, Vector},
};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::vec::IntoIter;

/// A queue or a receiver that waits to be run.
pub(super) trait Scheduled: Send + Sync {
    /// Runs it, by the softirq of `cpu`. If more is left to do, it schedules itself again.
    fn run_on(self: Arc<Self>, cpu: CpuId);
}

/// Queues and receivers that wait to be run. One that is dropped meanwhile is left out.
type List = Mutex<Vec<Weak<dyn Scheduled>>>;

/// What waits for a CPU.
#[derive(Default)]
struct Lists {
    transmit: List,
    receive: List,
}

impl Lists {
    fn of(&self, vector: Vector) -> &List {
        if vector == Vector::NET_RX { &self.receive } else { &self.transmit }
    }
}

/// What devices of a machine share.
#[derive(Clone)]
pub struct Network {
    /// By index of the CPU; made with the first device or receiver.
    lists: Arc<OnceLock<Box<[Lists]>>>,
}

impl fmt::Debug for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Network").finish_non_exhaustive()
    }
}

impl Network {
    /// Takes NET_TX and NET_RX of the machine that `builder` will start. A program without a
    /// [`Receiver`](super::Receiver) may give NET_RX another handler afterwards.
    #[must_use]
    pub fn new(builder: MachineBuilder) -> (Self, MachineBuilder) {
        let network = Self { lists: Arc::default() };
        let (transmitting, receiving) = (network.clone(), network.clone());
        let builder = builder.softirq(Vector::NET_TX, move |run| transmitting.handle(run));
        let builder = builder.softirq(Vector::NET_RX, move |run| receiving.handle(run));
        (network, builder)
    }

    /// From now on `machine`'s CPUs have lists.
    pub(super) fn serve(&self, machine: &Machine) {
        let count = machine.lanes().last().map_or(0, |last| last.index() + 1);
        let _ = self.lists.get_or_init(|| (0..count).map(|_| Lists::default()).collect());
    }

    fn list(&self, cpu: CpuId, vector: Vector) -> Option<&List> {
        self.lists.get()?.get(cpu.index()).map(|lists| lists.of(vector))
    }

    /// `item` is to be run by `vector`, NET_TX or NET_RX, of `cpu`. Returns whether it will be.
    pub(super) fn schedule(
        &self,
        machine: &Machine,
        cpu: CpuId,
        vector: Vector,
        item: &Weak<dyn Scheduled>,
    ) -> bool {
        let Some(list) = self.list(cpu, vector) else { return false };
        let locked = || list.lock().unwrap_or_else(PoisonError::into_inner);
        locked().push(Weak::clone(item));
        let is_raised = machine.raise(cpu, vector).is_ok();
        if !is_raised {
            // The machine has ended: no softirq takes it from there.
            locked().retain(|waiting| !Weak::ptr_eq(waiting, item));
        }
        is_raised
    }

    fn handle(&self, run: &SoftirqRun<'_>) {
        let Some(list) = self.list(run.cpu(), run.vector()) else { return };
        let items = core::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner));
        let mut rest = UnrunItems { list, run, items: items.into_iter() };
        for item in rest.items.by_ref() {
            if let Some(item) = item.upgrade() {
                item.run_on(run.cpu());
            }
            if run.should_end() {
                break;
            }
        }
    }
}

/// What a run of the softirq has not come to yet. When the run ends, also by a panic, it goes back to the
/// list.
struct UnrunItems<'a> {
    list: &'a List,
    run: &'a SoftirqRun<'a>,
    items: IntoIter<Weak<dyn Scheduled>>,
}

impl Drop for UnrunItems<'_> {
    fn drop(&mut self) {
        if self.items.len() > 0 {
            let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
            // Before those that came meanwhile.
            list.splice(0..0, self.items.by_ref());
            drop(list);
            self.run.raise_again();
        }
    }
}
