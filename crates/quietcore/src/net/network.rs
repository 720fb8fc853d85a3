//! The NET_TX softirq: for each CPU a list of queues that it is to run.

use crate::{Builder, CpuId, Machine, SoftirqRun, Vector};
use core::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A queue that waits to be run.
pub(super) trait Scheduled: Send + Sync {
    /// Runs it, by the softirq of `cpu`; whoever has more to do schedules itself again.
    fn run_on(self: Arc<Self>, cpu: CpuId);
}

type List = Mutex<Vec<Arc<dyn Scheduled>>>;

/// What devices of a machine share.
///
/// ```
/// use quietcore::Machine;
/// use quietcore::net::Network;
///
/// let (network, builder) = Network::new(Machine::builder().lanes("0".parse()?));
/// let machine = builder.start()?; // NET_TX has a handler
/// # let _ = network;
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Network {
    /// By index of the CPU; made with the first device.
    lists: Arc<OnceLock<Box<[List]>>>,
}

impl fmt::Debug for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Network").finish_non_exhaustive()
    }
}

impl Network {
    /// Takes NET_TX of the machine that `builder` will start.
    ///
    /// ```
    /// # use quietcore::{Machine, net::Network};
    /// let (network, builder) = Network::new(Machine::builder());
    /// # let _ = (network, builder);
    /// ```
    #[must_use]
    pub fn new(builder: Builder) -> (Self, Builder) {
        let network = Self { lists: Arc::default() };
        let own = network.clone();
        let builder = builder.softirq(Vector::NET_TX, move |run| own.handle(run));
        (network, builder)
    }

    /// From now on `machine`'s CPUs have lists.
    pub(super) fn serve(&self, machine: &Machine) {
        let count = machine.lanes().last().map_or(0, |last| last.index() + 1);
        let _ = self.lists.get_or_init(|| (0..count).map(|_| List::default()).collect());
    }

    fn list(&self, cpu: CpuId) -> Option<&List> {
        self.lists.get()?.get(cpu.index())
    }

    /// `queue` is to be run by the softirq of `cpu`; says whether it will be.
    pub(super) fn schedule(&self, machine: &Machine, cpu: CpuId, queue: Arc<dyn Scheduled>) -> bool {
        let Some(list) = self.list(cpu) else { return false };
        list.lock().unwrap_or_else(PoisonError::into_inner).push(queue);
        machine.raise(cpu, Vector::NET_TX).is_ok()
    }

    fn handle(&self, run: &SoftirqRun<'_>) {
        let Some(list) = self.list(run.cpu()) else { return };
        let queues = core::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner));
        let mut queues = queues.into_iter();
        for queue in queues.by_ref() {
            queue.run_on(run.cpu());
            if run.should_end() {
                break;
            }
        }
        if queues.len() > 0 {
            let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
            // Before those that came meanwhile.
            list.splice(0..0, queues);
            drop(list);
            run.raise_again();
        }
    }
}
