//! The wire between two TUN interfaces: what goes out of one goes through a device and comes in at the other.
//!
//! A poller thread plays the interrupts: a queue of a TUN that has packets makes its receiver be scheduled,
//! and is silent until the receiver has emptied it (`EPOLLONESHOT`). NET_RX of the CPU that the queue belongs
//! to reads the packets and sends them through the device's queue of the same number; what the discipline
//! lets go is written to the other interface's queue of that number, so that the kernel, which sends answers
//! through the queue that it last got a flow's packets from, keeps a flow in one queue both ways. With
//! offloads one system call reads up to 64 KiB of a stream, which are cut into packets at once, and one
//! writes the packets that leave together ([`joined`](super::joined)); else each packet is one of each.

use super::joined::{Joined, Offload};
use crate::error::CliError;
use quietcore::net::{Device, DeviceOptions, Driver, Network, Receive, Received, Receiver};
use quietcore::qdisc::IpPacket;
use quietcore::{CpuId, CpuSet, Machine};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN};

/// More than an IP packet can have, with what precedes it.
const LONGEST_PACKET: usize = 65_536 + VIRTIO_NET_HDR_LEN;
/// Packets that come out of one read: the interface is told so.
pub(crate) const SEGMENTS_MAX: usize = 64;
/// What the descriptor that ends the poller is called.
const STOP: u64 = u64::MAX;

/// A TUN interface, with a descriptor per queue.
pub(crate) struct Tun {
    queues: Vec<Arc<SyncDevice>>,
    offload: Offload,
    /// Bytes that each packet counts for more than it has.
    link_header: u16,
}

impl Tun {
    /// Makes the interface in the network namespace of the calling thread.
    pub(crate) fn open(name: &str, queues: usize, offload: Offload) -> io::Result<Self> {
        let builder = DeviceBuilder::new().name(name).multi_queue(true).inherit_enable_state();
        let first = builder.offload(offload == Offload::On).build_sync()?;
        first.set_nonblocking(true)?;
        let mut all = vec![first];
        for _ in 1..queues {
            let next = all[0].try_clone()?;
            next.set_nonblocking(true)?;
            all.push(next);
        }
        Ok(Self { queues: all.into_iter().map(Arc::new).collect(), offload, link_header: 0 })
    }

    /// The same, where disciplines count so many bytes more per packet.
    pub(crate) fn with_link_header(self, bytes: u16) -> Self {
        Self { link_header: bytes, ..self }
    }
}

/// The place of a descriptor in the poller's table.
fn token(side: usize, queue: usize, queues: usize, end: End) -> u64 {
    ((side * queues + queue) * 2 + usize::from(end == End::Exit)) as u64
}

/// Two descriptors are one file, so each can be waited for by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Packets are read from it.
    Entry,
    /// Packets are written to it.
    Exit,
}

/// Where packets of a queue come out.
struct Exit {
    file: OwnedFd,
    token: u64,
    /// What is written next.
    joined: Mutex<Joined>,
    /// Packets that the kernel did not take: damaged ones, or the interface is down.
    refused: Mutex<u64>,
}

/// Whether what was written is gone.
enum Written {
    Gone,
    /// There is no room.
    Full,
}

impl Exit {
    fn write(&self, epoll: &OwnedFd, bytes: &[u8], packets: usize) -> Written {
        loop {
            match rustix::io::write(&self.file, bytes) {
                Ok(_) => return Written::Gone,
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    // If this cannot be, the device asks again after a millisecond.
                    let flags = EventFlags::OUT | EventFlags::ONESHOT;
                    let _ = epoll::modify(epoll, &self.file, EventData::new_u64(self.token), flags);
                    return Written::Full;
                }
                Err(_) => {
                    *self.refused.lock().unwrap_or_else(PoisonError::into_inner) += packets as u64;
                    return Written::Gone;
                }
            }
        }
    }
}

/// The way out of a device.
struct Exits {
    queues: Vec<Exit>,
    epoll: Arc<OwnedFd>,
}

/// What a device has of it; the figures are asked for elsewhere.
struct Transmitter(Arc<Exits>);

impl Driver<IpPacket> for Transmitter {
    fn transmit(&self, queue: usize, packet: IpPacket) -> Result<(), IpPacket> {
        let mut batch = VecDeque::from([packet]);
        self.transmit_batch(queue, &mut batch);
        batch.pop_front().map_or(Ok(()), Err)
    }

    fn transmit_batch(&self, queue: usize, batch: &mut VecDeque<IpPacket>) {
        let exit = &self.0.queues[queue];
        // One thread at a time: nobody waits.
        let mut joined = exit.joined.lock().unwrap_or_else(PoisonError::into_inner);
        while !batch.is_empty() {
            let count = joined.fill(batch.iter());
            match exit.write(&self.0.epoll, joined.bytes(), count) {
                Written::Gone => drop(batch.drain(..count)),
                Written::Full => return,
            }
        }
    }
}

/// Where packets of a queue come in.
struct Entry {
    tun: Arc<SyncDevice>,
    /// The same, as the poller waits for it.
    file: OwnedFd,
    epoll: Arc<OwnedFd>,
    token: u64,
    device: Arc<Device<IpPacket>>,
    queue: usize,
    buffers: Mutex<Buffers>,
}

/// Memory for what is read.
struct Buffers {
    /// As it comes.
    whole: Vec<u8>,
    /// Cut into packets.
    segments: Vec<Vec<u8>>,
    sizes: Vec<usize>,
    packets: Vec<IpPacket>,
    link_header: u16,
}

impl Buffers {
    fn new(tun: &Tun) -> Self {
        let count = if tun.offload == Offload::On { SEGMENTS_MAX } else { 1 };
        Self {
            whole: vec![0; LONGEST_PACKET],
            // Somebody may have raised the MTU inside. What is never written to takes no memory.
            segments: (0..count).map(|_| vec![0; LONGEST_PACKET]).collect(),
            sizes: vec![0; count],
            packets: Vec::new(),
            link_header: tun.link_header,
        }
    }

    /// Reads once; says how many packets that were.
    fn read(&mut self, tun: &SyncDevice) -> io::Result<usize> {
        let count = tun.recv_multiple(&mut self.whole, &mut self.segments, &mut self.sizes, 0)?;
        let cut = self.segments.iter().zip(&self.sizes).take(count);
        let packet = |bytes: &[u8]| IpPacket::new(bytes.to_vec()).with_link_header(self.link_header);
        self.packets.extend(cut.map(|(bytes, &size)| packet(&bytes[..size])));
        Ok(count)
    }
}

impl Receive for Entry {
    fn receive(&self, cpu: CpuId, budget: usize) -> Received {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = budget;
        let received = loop {
            match buffers.read(&self.tun) {
                Ok(count) => left = left.saturating_sub(count),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break Received::Done,
                    // What cannot be cut is no packet; the kernel makes none.
                    _ if error.raw_os_error().is_none() => left -= 1,
                    io::ErrorKind::Interrupted => {}
                    // The interface is gone: nothing comes any more.
                    _ => return Received::Done,
                },
            }
            if left == 0 {
                break Received::More;
            }
        };
        self.device.send_all_on(cpu, self.queue, buffers.packets.drain(..));
        if received == Received::Done {
            let flags = EventFlags::IN | EventFlags::ONESHOT;
            let _ = epoll::modify(&*self.epoll, &self.file, EventData::new_u64(self.token), flags);
        }
        received
    }
}

/// What the poller does when a descriptor is ready.
enum Ready {
    Receive(Receiver),
    Transmit(Arc<Device<IpPacket>>, usize),
}

/// A direction of the wire.
pub(crate) struct Direction {
    /// What `tc` calls it: the interface that packets enter by.
    pub(crate) name: String,
    pub(crate) device: Arc<Device<IpPacket>>,
    exits: Arc<Exits>,
}

impl Direction {
    /// Packets of a queue that the other interface did not take.
    pub(crate) fn refused(&self, queue: usize) -> u64 {
        *self.exits.queues[queue].refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a wire is made of.
pub(crate) struct Plan {
    /// The two interfaces with their names.
    pub(crate) sides: [(String, Tun); 2],
    /// The CPUs of each queue.
    pub(crate) map: Vec<CpuSet>,
    pub(crate) watchdog: quietcore::net::Watchdog,
}

/// A wire that carries packets until it is dropped.
pub(crate) struct Wire {
    pub(crate) directions: [Direction; 2],
    poller: Option<JoinHandle<()>>,
    stop: OwnedFd,
}

impl Wire {
    pub(crate) fn start(network: &Network, machine: &'static Machine, plan: &Plan) -> Result<Self, CliError> {
        let broken = |error: Errno| CliError::Live(format!("the wire cannot be made: {error}"));
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC).map_err(broken)?);
        let from = |side| direction(network, machine, (plan, side), &epoll);
        let directions = [from(0)?, from(1)?];
        let mut table = Vec::new();
        for side in 0..2 {
            let ways = (&directions[side].device, &directions[1 - side].device);
            ready_of(side, ways, (network, machine), (plan, &epoll), &mut table)?;
        }
        let stop = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).map_err(broken)?;
        epoll::add(&*epoll, &stop, EventData::new_u64(STOP), EventFlags::IN).map_err(broken)?;
        let poll = move || poll(&epoll, &table);
        let poller = thread::Builder::new().name("qc-poller".to_owned()).spawn(poll);
        let poller = poller.map_err(|error| CliError::Live(format!("no thread for the poller: {error}")))?;
        Ok(Self { directions, poller: Some(poller), stop })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // A counter that is full is as good.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(poller) = self.poller.take() {
            // It panicked: that was told, and there is nothing left to wait for.
            let _ = poller.join();
        }
    }
}

/// The device for what enters at `side`, and its way out at the other one.
fn direction(
    network: &Network,
    machine: &'static Machine,
    (plan, side): (&Plan, usize),
    epoll: &Arc<OwnedFd>,
) -> Result<Direction, CliError> {
    let queues = plan.map.len();
    let other = 1 - side;
    let tun = &plan.sides[other].1;
    let exit = |(queue, file): (usize, &Arc<SyncDevice>)| {
        let (file, token) = (duplicate(file)?, token(other, queue, queues, End::Exit));
        // Silent until a packet finds no room.
        let added = epoll::add(&**epoll, &file, EventData::new_u64(token), EventFlags::ONESHOT);
        added.map_err(|error| CliError::Live(format!("a queue cannot be waited for: {error}")))?;
        let joined = Mutex::new(Joined::new(tun.offload));
        Ok::<_, CliError>(Exit { file, token, joined, refused: Mutex::new(0) })
    };
    let queues_out = tun.queues.iter().enumerate().map(exit).collect::<Result<Vec<_>, _>>()?;
    let exits = Arc::new(Exits { queues: queues_out, epoll: Arc::clone(epoll) });
    let driver = Transmitter(Arc::clone(&exits));
    let options = DeviceOptions::new(queues).transmit_map(plan.map.clone()).watchdog(plan.watchdog);
    let device = Device::new(network, machine, options, driver);
    let device = Arc::new(device.map_err(|error| CliError::Usage(error.to_string()))?);
    Ok(Direction { name: plan.sides[side].0.clone(), device, exits })
}

/// What is to be done for each descriptor of `side`, in the order of their tokens; and entries are armed.
fn ready_of(
    side: usize,
    (out, back): (&Arc<Device<IpPacket>>, &Arc<Device<IpPacket>>),
    (network, machine): (&Network, &'static Machine),
    (plan, epoll): (&Plan, &Arc<OwnedFd>),
    table: &mut Vec<Ready>,
) -> Result<(), CliError> {
    let tun = &plan.sides[side].1;
    for (queue, source) in tun.queues.iter().enumerate() {
        let token = token(side, queue, plan.map.len(), End::Entry);
        let (file, device, epoll) = (duplicate(source)?, Arc::clone(out), Arc::clone(epoll));
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        let added = epoll::add(&*epoll, &file, EventData::new_u64(token), flags);
        added.map_err(|error| CliError::Live(format!("a queue cannot be waited for: {error}")))?;
        let (home, buffers) = (device.home(queue), Mutex::new(Buffers::new(tun)));
        let entry = Entry { tun: Arc::clone(source), file, epoll, token, device, queue, buffers };
        let receiver = Receiver::new(network, machine, home, entry);
        table.push(Ready::Receive(receiver.map_err(|error| CliError::Usage(error.to_string()))?));
        table.push(Ready::Transmit(Arc::clone(back), queue));
    }
    Ok(())
}

fn duplicate(file: &SyncDevice) -> Result<OwnedFd, CliError> {
    let copy = rustix::io::fcntl_dupfd_cloexec(file, 0);
    copy.map_err(|error| CliError::Live(format!("a queue of a TUN interface cannot be used: {error}")))
}

/// Plays the interrupts until the descriptor called `STOP` is ready.
fn poll(epoll: &OwnedFd, table: &[Ready]) {
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
                Some(Ready::Receive(receiver)) => receiver.schedule(),
                Some(Ready::Transmit(device, queue)) => device.wake_queue(*queue),
                None => {}
            }
        }
    }
}
