//! A device: its queues, and which CPU sends through which of them.

use super::driver::Driver;
use super::hook::{HookPoint, Hooked};
use super::losses::SystemLosses;
use super::network::Network;
use super::options::{DeviceError, DeviceOptions};
use super::queue::{DeviceQueue, QueuePlace, Sharing};
use super::statistics::QueueStatistics;
use super::sync::Wholeness;
use core::fmt::{self, Debug};
use quietcore_live::{CpuId, CpuSet, Machine};
use quietcore_qdisc::{Enqueued, Fifo, FifoLimit, Packet, PacketOrigin, Qdisc};
use std::sync::Arc;

/// A device with transmit queues. Dropped, it sends nothing any more; what it holds is dropped. What filters
/// of `clsact` send elsewhere counts as queued to its sender.
///
/// See the [module](super).
pub struct Device<P> {
    machine: &'static Machine,
    queues: Vec<Arc<DeviceQueue<P>>>,
    /// By index of the CPU: its queues.
    of_cpu: Vec<Vec<usize>>,
    losses_ahead: Option<Arc<SystemLosses>>,
    origin: PacketOrigin,
    /// What is asked of packets before the queues.
    egress: HookPoint<P>,
    /// And of those that come in here.
    ingress: Arc<HookPoint<P>>,
}

impl<P> Debug for Device<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Device").field("queues", &self.queues.len()).finish_non_exhaustive()
    }
}

impl<P: Packet + Debug + Send + 'static> Device<P> {
    /// A device whose queues are fifos of 1000 packets, to begin with. A queue belongs to the first of its
    /// CPUs that is a lane.
    ///
    /// # Errors
    /// See [`DeviceError`].
    pub fn new(
        network: &Network,
        machine: &'static Machine,
        options: DeviceOptions,
        driver: impl Driver<P>,
    ) -> Result<Self, DeviceError> {
        let DeviceOptions { queues: count, map, watchdog: stays, memory_max, losses_ahead, origin } = options;
        let lanes = machine.lanes();
        if count == 0 {
            return Err(DeviceError::NoQueues);
        }
        if lanes.first().is_none() {
            return Err(DeviceError::NoLanes);
        }
        let map = map.unwrap_or_else(|| dealt(lanes, count));
        if map.len() != count {
            return Err(DeviceError::MapLength { entries: map.len(), queues: count });
        }
        let home = |(queue, cpus): (usize, &CpuSet)| {
            let first = cpus.intersection(lanes).first();
            first.ok_or_else(|| DeviceError::NotLanes { queue, cpus: cpus.clone() })
        };
        let homes = map.iter().enumerate().map(home).collect::<Result<Vec<CpuId>, _>>()?;
        network.serve(machine);
        let mut of_cpu = vec![Vec::new(); lanes.last().map_or(0, |last| last.index() + 1)];
        for (queue, cpus) in map.iter().enumerate() {
            cpus.intersection(lanes).iter().for_each(|cpu| of_cpu[cpu.index()].push(queue));
        }
        let driver: Arc<dyn Driver<P>> = Arc::new(driver);
        let queue = |(number, home)| {
            let network = network.clone();
            let place = QueuePlace { machine, network, number, home, stays, memory_max };
            let queue = Arc::new(DeviceQueue::new(place, Arc::clone(&driver), first_qdisc()));
            queue.watch();
            queue
        };
        let queues = homes.into_iter().enumerate().map(queue).collect();
        let (egress, ingress) = (HookPoint::default(), Arc::default());
        Ok(Self { machine, queues, of_cpu, losses_ahead, origin, egress, ingress })
    }

    /// Where its packets come from.
    #[must_use]
    pub const fn origin(&self) -> PacketOrigin {
        self.origin
    }

    /// Packets that leave here come in at `other`: its `ingress` filters are asked of them before the driver
    /// gets them. Only the first call counts.
    pub fn link_to(&self, other: &Self) {
        for queue in &self.queues {
            queue.link_to(&other.ingress);
        }
    }

    /// A packet has come in here: asks the `ingress` filters that a [`Control`](crate::Control) knows. `None`
    /// if they dropped it or sent it elsewhere. Of packets of a device that is [linked](Self::link_to) to
    /// this one they are asked already.
    #[must_use]
    pub fn receive(&self, packet: P) -> Option<P> {
        match self.ingress.pass(packet) {
            Hooked::On(packet) => Some(packet),
            Hooked::Dropped | Hooked::Taken => None,
        }
    }

    /// What is asked of packets before the queues.
    pub(super) const fn egress(&self) -> &HookPoint<P> {
        &self.egress
    }

    /// What is asked of packets that come in.
    pub(super) fn ingress(&self) -> &HookPoint<P> {
        &self.ingress
    }

    /// How many queues it has.
    #[must_use]
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// The queue through which `cpu` sends packets of `flow`.
    #[must_use]
    pub fn queue_of(&self, cpu: Option<CpuId>, flow: u64) -> usize {
        let mapped = cpu.and_then(|cpu| self.of_cpu.get(cpu.index())).filter(|queues| !queues.is_empty());
        match mapped {
            Some(queues) => queues[(flow % queues.len() as u64) as usize],
            None => (flow % self.queues.len() as u64) as usize,
        }
    }

    /// Sends a packet through the queue of the calling thread's CPU. From any thread.
    pub fn send(&self, packet: P) -> Enqueued {
        let cpu = self.machine.cpu_here();
        self.send_as(cpu, self.queue_of(cpu, packet.flow()), packet)
    }

    /// Sends a packet through queue `queue`.
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn send_through(&self, queue: usize, packet: P) -> Enqueued {
        self.send_as(self.machine.cpu_here(), queue, packet)
    }

    /// Sends a packet through queue `queue` from `cpu`: for handlers of softirqs, which are the CPU's
    /// also where its ksoftirqd runs them.
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn send_on(&self, cpu: CpuId, queue: usize, packet: P) -> Enqueued {
        self.send_as(Some(cpu), queue, packet)
    }

    fn send_as(&self, cpu: Option<CpuId>, queue: usize, packet: P) -> Enqueued {
        match self.egress.pass(packet) {
            Hooked::On(packet) => self.enqueue_as(cpu, queue, packet),
            Hooked::Dropped => Enqueued::Dropped,
            Hooked::Taken => Enqueued::Queued,
        }
    }

    fn enqueue_as(&self, cpu: Option<CpuId>, queue: usize, packet: P) -> Enqueued {
        let mut sent = self.queues[queue].send(packet, cpu);
        loop {
            // The first queue passes nothing on, and takes it.
            match sent {
                Ok(verdict) => return verdict,
                Err(packet) => sent = self.queues[0].send(packet, cpu),
            }
        }
    }

    /// Sends packets through queue `queue` from `cpu`, the lock taken once for all of them. What
    /// became of each is in the [statistics](Self::statistics).
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn send_all_on(&self, cpu: CpuId, queue: usize, packets: impl IntoIterator<Item = P>) {
        if self.egress.is_set() {
            let pass = |packet| match self.egress.pass(packet) {
                Hooked::On(packet) => Some(packet),
                Hooked::Dropped | Hooked::Taken => None,
            };
            // All of them before the queue's lock is taken.
            let passed: Vec<P> = packets.into_iter().filter_map(pass).collect();
            return self.enqueue_all_on(cpu, queue, passed.into_iter());
        }
        self.enqueue_all_on(cpu, queue, packets.into_iter());
    }

    fn enqueue_all_on(&self, cpu: CpuId, queue: usize, mut packets: impl Iterator<Item = P>) {
        // The first queue passes nothing on, and takes them.
        while !self.queues[queue].send_all(&mut packets, cpu) && !self.queues[0].send_all(&mut packets, cpu) {
        }
    }

    /// Whether queue `queue` takes several packets of a stream as one ([`Qdisc::keeps_whole`]): not where
    /// filters are asked of each packet on its way. Cost: a few loads.
    ///
    /// # Panics
    /// If there is no such queue.
    #[must_use]
    pub fn keeps_whole(&self, queue: usize) -> bool {
        if self.egress.is_set() || self.queues[queue].is_filtered_behind() {
            return false;
        }
        match self.queues[queue].wholeness() {
            Wholeness::AsFirst => self.queues[0].wholeness() == Wholeness::Whole,
            own => own == Wholeness::Whole,
        }
    }

    /// The CPU that queue `queue` belongs to.
    ///
    /// # Panics
    /// If there is no such queue.
    #[must_use]
    pub fn home(&self, queue: usize) -> CpuId {
        self.queues[queue].home()
    }

    /// Gives queue `queue` another discipline; what it held is dropped.
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn graft(&self, queue: usize, qdisc: impl Qdisc<P> + 'static) {
        self.queues[queue].graft(Box::new(qdisc));
    }

    /// One discipline for all queues, as a root discipline is the kernel's: all packets go through queue 0,
    /// and its lock. What the queues held is dropped.
    pub fn graft_root(&self, qdisc: impl Qdisc<P>) {
        // The first queue first: packets that are passed on find the discipline.
        self.queues[0].graft_as(Box::new(qdisc), Sharing::First);
        for queue in &self.queues[1..] {
            queue.graft_as(first_qdisc(), Sharing::First);
        }
    }

    /// Each queue has a discipline of its own again: a fifo of 1000 packets, as to begin with. What the
    /// queues held is dropped.
    pub fn graft_each(&self) {
        for queue in &self.queues {
            queue.graft_as(first_qdisc(), Sharing::Each);
        }
    }

    /// Changes the discipline of queue `queue` where it is, under the queue's lock; what it holds stays.
    /// Then, if it holds anything, it is run by the softirq of its CPU, which arms its timers for what is
    /// new.
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn with_qdisc<R>(&self, queue: usize, change: impl FnOnce(&mut dyn Qdisc<P>) -> R) -> R {
        self.queues[queue].change(change)
    }

    /// Looks at the discipline of a queue.
    pub(super) fn look<R>(&self, queue: usize, look: impl FnOnce(&mut dyn Qdisc<P>) -> R) -> R {
        self.queues[queue].look(look)
    }

    /// The driver has room again for packets of queue `queue`.
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn wake_queue(&self, queue: usize) {
        self.queues[queue].wake();
    }

    /// What queue `queue` has done.
    ///
    /// # Panics
    /// If there is no such queue.
    #[must_use]
    pub fn statistics(&self, queue: usize) -> QueueStatistics {
        self.queues[queue].statistics()
    }

    /// How many packets filters of `clsact` and `ingress` have dropped, before the queues and where they came
    /// in: no discipline has counted them. In all, also by filters that are there no more.
    #[must_use]
    pub fn filtered(&self) -> u64 {
        self.egress.dropped() + self.ingress.dropped()
    }

    /// How many packets the system dropped before the device saw them, as the ring of the interface or the
    /// buffer of the socket that they come in at was full: no queue and no discipline has counted them. 0 or
    /// more of a [`Wire`](crate::tun::Wire)'s devices and a [`Relay`](crate::Relay)'s; `None` of others, and
    /// where the kernel does not say. Cost: a file of `/proc` is read.
    #[must_use]
    pub fn lost_ahead(&self) -> Option<u64> {
        self.losses_ahead.as_ref().and_then(|losses| losses.count())
    }
}

/// What a queue has to begin with.
fn first_qdisc<P: Packet + Debug + Send>() -> Box<dyn Qdisc<P>> {
    Box::new(Fifo::new(FifoLimit::Packets(1000)))
}

/// Queues in turns over the lanes.
fn dealt(lanes: &CpuSet, queues: usize) -> Vec<CpuSet> {
    lanes.iter().cycle().take(queues).map(|cpu| [cpu].into_iter().collect()).collect()
}
