//! The wire between two TUN interfaces: a packet that goes out of one goes through a device and comes in at
//! the other.
//!
//! ```text
//! TUN a, queue k -> poller -> NET_RX of k's CPU -> device a->b, queue k -> TUN b, queue k     (and back)
//! ```
//!
//! A poller thread stands for the interrupts. It schedules the receiver of a queue that has packets, and the
//! queue is silent until the receiver has emptied it (`EPOLLONESHOT`). The receiver reads the packets and
//! sends them through the device's queue of the same number; the driver writes what the discipline lets go to
//! the other interface's queue of that number. The kernel sends answers through the queue that it last got a
//! flow's packets from, so a flow stays in one queue both ways.
//!
//! With [`Offload::On`](super::Offload::On) one system call reads up to 64 KiB of a stream, which are cut
//! into packets at once, and one call writes packets that leave together ([coalescing](super::Coalescer)).
//! Where the discipline decides nothing for each packet ([`Device::keeps_whole`]) they stay one.

use super::ends::{EpollToken, TunDriver, TunEntry, TunExit, TunExits};
use super::error::TunError;
use super::interface::TunInterface;
use crate::device::Device;
use crate::network::Network;
use crate::options::{DeviceOptions, Watchdog};
use crate::receive::Receiver;
use crate::waiting::WaitingThread;
use core::fmt;
use quietcore_live::{CpuSet, Machine};
use quietcore_qdisc::{IpPacket, PacketOrigin};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The token of the descriptor that ends the poller.
const STOP: u64 = u64::MAX;

/// What the poller does when a descriptor is ready.
enum ReadyAction {
    Receive(Receiver),
    Transmit(Arc<Device<IpPacket>>, usize),
}

/// One of the two directions of a wire.
pub struct Direction {
    name: String,
    device: Arc<Device<IpPacket>>,
    exits: Arc<TunExits>,
}

impl fmt::Debug for Direction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Direction").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Direction {
    /// The name of the interface that packets come out of.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device that they go through.
    #[must_use]
    pub const fn device(&self) -> &Arc<Device<IpPacket>> {
        &self.device
    }

    /// Packets of a queue that the kernel did not take: damaged ones, or the other interface was down.
    ///
    /// # Panics
    /// If there is no such queue.
    #[must_use]
    pub fn refused(&self, queue: usize) -> u64 {
        self.exits.queues[queue].refused()
    }
}

/// What a wire is made of.
#[derive(Debug)]
pub struct WireOptions {
    /// The two interfaces with their names. Both have as many queues as the map has entries.
    pub sides: [(String, TunInterface); 2],
    /// The CPUs of each queue.
    pub transmit_map: Vec<CpuSet>,
    /// Whether watchdogs stay with the CPU that arms them.
    pub watchdog: Watchdog,
    /// Bytes that the packets of a queue may take.
    pub memory_max: u64,
}

/// A wire that carries packets until it is dropped. The machine must have lanes for the map's CPUs.
#[derive(Debug)]
pub struct Wire {
    /// Ends first.
    _poller: WaitingThread,
    directions: [Direction; 2],
}

impl Wire {
    /// Begins to carry packets.
    ///
    /// # Errors
    /// [`TunError::Device`] if map and machine do not fit, [`TunError::Wire`] if the system refuses.
    pub fn start(
        network: &Network,
        machine: &'static Machine,
        options: &WireOptions,
    ) -> Result<Self, TunError> {
        let broken = |error: Errno| TunError::wire("the wire cannot be made", error);
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC).map_err(broken)?);
        let parts = Parts { network, machine, options, epoll: &epoll };
        let directions = [parts.direction(0)?, parts.direction(1)?];
        let [there, back] = directions.each_ref().map(Direction::device);
        there.link_to(back);
        back.link_to(there);
        let mut table = Vec::new();
        for side in 0..2 {
            parts.add_ready(side, &directions, &mut table)?;
        }
        let stop =
            WaitingThread::stop_event().map_err(|error| TunError::wire("the wire cannot be made", error))?;
        epoll::add(&*epoll, &stop, EventData::new_u64(STOP), EventFlags::IN).map_err(broken)?;
        let poller = WaitingThread::start("qc-poller", stop, move || poll(&epoll, &table));
        let poller = poller.map_err(|error| TunError::wire("no thread for the poller", error))?;
        Ok(Self { directions, _poller: poller })
    }

    /// From the first side to the second, and back.
    #[must_use]
    pub const fn directions(&self) -> &[Direction; 2] {
        &self.directions
    }
}

/// What the ends of a wire are made with.
struct Parts<'a> {
    network: &'a Network,
    machine: &'static Machine,
    options: &'a WireOptions,
    epoll: &'a Arc<OwnedFd>,
}

impl Parts<'_> {
    /// The device for packets that come out of `side`, and its way into the other side.
    fn direction(&self, side: usize) -> Result<Direction, TunError> {
        let WireOptions { sides, transmit_map, watchdog, memory_max } = self.options;
        let (queues, other) = (transmit_map.len(), 1 - side);
        let tun = &sides[other].1;
        let exit = |(queue, file)| {
            TunExit::new(file, tun.offload, self.epoll, EpollToken::of_exit(other, queue, queues))
        };
        let exits = tun.queues.iter().enumerate().map(exit);
        let exits = TunExits { queues: exits.collect::<Result<_, _>>()?, epoll: Arc::clone(self.epoll) };
        let exits = Arc::new(exits);
        let options = DeviceOptions::new(queues).transmit_map(transmit_map.clone()).watchdog(*watchdog);
        let options = options.memory_max(*memory_max).losses_ahead(sides[side].1.losses.clone());
        let options = options.origin(PacketOrigin::Bytes);
        let device = Device::new(self.network, self.machine, options, TunDriver(Arc::clone(&exits)))?;
        Ok(Direction { name: sides[side].0.clone(), device: Arc::new(device), exits })
    }

    /// Adds to `table` what is done for each descriptor of `side`, in the order of their tokens, and has the
    /// entries waited for.
    fn add_ready(
        &self,
        side: usize,
        directions: &[Direction; 2],
        table: &mut Vec<ReadyAction>,
    ) -> Result<(), TunError> {
        let [tun, other] = [side, 1 - side].map(|side| &self.options.sides[side].1);
        let (out, back) = (&directions[side].device, &directions[1 - side].device);
        for queue in 0..tun.queues.len() {
            let token = EpollToken::of_entry(side, queue, self.options.transmit_map.len());
            let entry = TunEntry::new([tun, other], queue, out, self.epoll, token)?;
            let receiver = Receiver::new(self.network, self.machine, out.home(queue), entry)?;
            table.push(ReadyAction::Receive(receiver));
            table.push(ReadyAction::Transmit(Arc::clone(back), queue));
        }
        Ok(())
    }
}

/// Stands for the interrupts until the descriptor called `STOP` is ready.
fn poll(epoll: &OwnedFd, table: &[ReadyAction]) {
    let mut events = Vec::with_capacity(64);
    loop {
        events.clear();
        match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        for event in &events {
            let token = event.data.u64();
            if token == STOP {
                return;
            }
            match table.get(token as usize) {
                Some(ReadyAction::Receive(receiver)) => receiver.schedule(),
                Some(ReadyAction::Transmit(device, queue)) => device.wake_queue(*queue),
                None => {}
            }
        }
    }
}
