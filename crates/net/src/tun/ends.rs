//! The two ends of a queue's way through the wire: where packets are read, and where they are written.
//!
//! Each end has a descriptor of its own (two descriptors of one file), so that the poller can wait for each.

use super::coalesce::{Coalescer, Offload};
use super::cut::{Pieces, cut};
use super::error::TunError;
use super::interface::TunInterface;
use super::virtio::HEADER;
use crate::device::Device;
use crate::driver::Driver;
use crate::receive::{Receive, Received};
use quietcore_live::CpuId;
use quietcore_qdisc::{IpPacket, Packet};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// More than an IP packet can have, with what precedes it.
const LONGEST_PACKET: usize = 65_536 + HEADER;
/// Most packets that an interface may give out in one read; it has to be told so (`gso_max_segs`).
pub const SEGMENTS_MAX: usize = 64;

/// What a descriptor is called in the poller's epoll: its place in the poller's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EpollToken(pub(super) u64);

impl EpollToken {
    /// Of the end of queue `queue` of `queues` at `side` at which packets are read.
    pub(super) const fn of_entry(side: usize, queue: usize, queues: usize) -> Self {
        Self(((side * queues + queue) * 2) as u64)
    }

    /// Of the end at which packets are written.
    pub(super) const fn of_exit(side: usize, queue: usize, queues: usize) -> Self {
        Self(Self::of_entry(side, queue, queues).0 + 1)
    }

    const fn data(self) -> EventData {
        EventData::new_u64(self.0)
    }
}

/// A descriptor of its own for `file`, added to `epoll`.
fn watched(
    file: &OwnedFd,
    epoll: &OwnedFd,
    token: EpollToken,
    flags: EventFlags,
) -> Result<OwnedFd, TunError> {
    let copy = rustix::io::fcntl_dupfd_cloexec(file, 0);
    let copy = copy.map_err(|error| TunError::wire("a queue of a TUN interface cannot be used", error))?;
    epoll::add(epoll, &copy, token.data(), flags)
        .map_err(|error| TunError::wire("a queue cannot be waited for", error))?;
    Ok(copy)
}

/// Where packets of a queue are written.
pub(super) struct TunExit {
    file: OwnedFd,
    token: EpollToken,
    coalescer: Mutex<Coalescer>,
    /// Packets that the kernel did not take: damaged ones, or the interface is down.
    refused: Mutex<u64>,
}

/// Whether a write took the packets.
enum Written {
    Gone,
    /// There is no room.
    Full,
}

impl TunExit {
    /// Queue `file` of an interface; silent in `epoll` until a packet finds no room.
    pub(super) fn new(
        file: &OwnedFd,
        offload: Offload,
        epoll: &OwnedFd,
        token: EpollToken,
    ) -> Result<Self, TunError> {
        let file = watched(file, epoll, token, EventFlags::ONESHOT)?;
        Ok(Self { file, token, coalescer: Mutex::new(Coalescer::new(offload)), refused: Mutex::new(0) })
    }

    /// Packets that the kernel did not take.
    pub(super) fn refused(&self) -> u64 {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, epoll: &OwnedFd, parts: [&[u8]; 2], packets: u64) -> Written {
        loop {
            let written = match parts {
                [bytes, []] => rustix::io::write(&self.file, bytes),
                parts => rustix::io::writev(&self.file, &parts.map(IoSlice::new)),
            };
            match written {
                Ok(_) => return Written::Gone,
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    // If this fails, the device tries again after a millisecond all the same.
                    let flags = EventFlags::OUT | EventFlags::ONESHOT;
                    let _ = epoll::modify(epoll, &self.file, self.token.data(), flags);
                    return Written::Full;
                }
                Err(_) => {
                    *self.refused.lock().unwrap_or_else(PoisonError::into_inner) += packets;
                    return Written::Gone;
                }
            }
        }
    }
}

/// Where packets of a device are written.
pub(super) struct TunExits {
    pub(super) queues: Vec<TunExit>,
    pub(super) epoll: Arc<OwnedFd>,
}

/// The driver of a device; its figures are read through the wire.
pub(super) struct TunDriver(pub(super) Arc<TunExits>);

impl Driver<IpPacket> for TunDriver {
    fn transmit(&self, queue: usize, packet: IpPacket) -> Result<(), IpPacket> {
        let mut batch = VecDeque::from([packet]);
        self.transmit_batch(queue, &mut batch);
        batch.pop_front().map_or(Ok(()), Err)
    }

    fn transmit_batch(&self, queue: usize, batch: &mut VecDeque<IpPacket>) {
        let exit = &self.0.queues[queue];
        // A queue is run by one thread at a time, so this lock is free.
        let mut coalescer = exit.coalescer.lock().unwrap_or_else(PoisonError::into_inner);
        while !batch.is_empty() {
            let count = coalescer.fill(batch.iter());
            let packets = batch.iter().take(count).map(|packet| u64::from(packet.packets())).sum();
            match exit.write(&self.0.epoll, coalescer.parts(&batch[0]), packets) {
                Written::Gone => drop(batch.drain(..count)),
                Written::Full => return,
            }
        }
    }
}

/// Where packets of a queue are read.
pub(super) struct TunEntry {
    /// Non-blocking.
    file: OwnedFd,
    epoll: Arc<OwnedFd>,
    token: EpollToken,
    device: Arc<Device<IpPacket>>,
    queue: usize,
    /// Of the interface that packets are written to.
    offload_there: Offload,
    buffers: Mutex<Buffers>,
}

impl TunEntry {
    /// Queue `queue` of the first interface, whose packets go through the queue of that number of `device` to
    /// the second.
    pub(super) fn new(
        [tun, other]: [&TunInterface; 2],
        queue: usize,
        device: &Arc<Device<IpPacket>>,
        epoll: &Arc<OwnedFd>,
        token: EpollToken,
    ) -> Result<Self, TunError> {
        let source = &tun.queues[queue];
        Ok(Self {
            file: watched(source, epoll, token, EventFlags::IN | EventFlags::ONESHOT)?,
            epoll: Arc::clone(epoll),
            token,
            device: Arc::clone(device),
            queue,
            offload_there: other.offload,
            buffers: Mutex::new(Buffers::new(tun)),
        })
    }
}

/// Memory for what is read.
struct Buffers {
    /// What one read gives: a packet, or a piece of a stream.
    whole: Vec<u8>,
    packets: Vec<IpPacket>,
    offload: Offload,
    link_header: u16,
}

impl Buffers {
    fn new(tun: &TunInterface) -> Self {
        // The MTU may be raised inside. Pages that are never written to take no memory.
        let whole = vec![0; LONGEST_PACKET];
        Self { whole, packets: Vec::new(), offload: tun.offload, link_header: tun.link_header }
    }

    /// Reads once; returns how many packets that gave: 0 of bytes that are none, which the kernel does not
    /// give out.
    fn read(&mut self, file: &OwnedFd, pieces: Pieces) -> Result<usize, Errno> {
        let length = rustix::io::read(file, &mut self.whole[..])?;
        let (packets, link_header) = (&mut self.packets, self.link_header);
        let mut add = |packet: IpPacket| packets.push(packet.with_link_header(link_header));
        let bytes = &self.whole[..length];
        if self.offload == Offload::Off {
            add(IpPacket::new(bytes.to_vec()));
            return Ok(1);
        }
        Ok(cut(bytes, pieces, &mut add).unwrap_or(0))
    }
}

impl Receive for TunEntry {
    fn receive(&self, cpu: CpuId, budget: usize) -> Received {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = budget;
        let keeps_whole = self.offload_there == Offload::On && self.device.keeps_whole(self.queue);
        let pieces = if keeps_whole { Pieces::Whole } else { Pieces::Cut };
        let received = loop {
            match buffers.read(&self.file, pieces) {
                Ok(count) => left = left.saturating_sub(count.max(1)),
                Err(Errno::AGAIN) => break Received::Done,
                Err(Errno::INTR) => {}
                // The interface is gone: nothing comes any more.
                Err(_) => return Received::Done,
            }
            if left == 0 {
                break Received::More;
            }
        };
        self.device.send_all_on(cpu, self.queue, buffers.packets.drain(..));
        if received == Received::Done {
            let flags = EventFlags::IN | EventFlags::ONESHOT;
            let _ = epoll::modify(&*self.epoll, &self.file, self.token.data(), flags);
        }
        received
    }
}

#[cfg(test)]
mod tests {
    use super::super::tcp_segment::tcp_segment;
    use super::{EpollToken, TunDriver, TunExit, TunExits};
    use crate::driver::Driver;
    use crate::tun::Offload;
    use quietcore_qdisc::{IpPacket, Segments};
    use rustix::event::Timespec;
    use rustix::event::epoll::{self, CreateFlags, EventFlags};
    use rustix::io::Errno;
    use std::collections::VecDeque;
    use std::io::{PipeReader, Read, pipe};
    use std::num::NonZeroU16;
    use std::sync::Arc;

    /// A device whose only queue is written to a pipe, and what reads from that.
    fn driver() -> (TunDriver, PipeReader) {
        let (reader, writer) = pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&writer, true).expect("it may be");
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC).expect("an epoll"));
        let exit =
            TunExit::new(&writer.into(), Offload::On, &epoll, EpollToken::of_exit(1, 2, 4)).expect("its end");
        (TunDriver(Arc::new(TunExits { queues: vec![exit], epoll })), reader)
    }

    /// Three segments that are written at once, and a packet that is not.
    fn packets() -> VecDeque<IpPacket> {
        let segment = |at: u32| IpPacket::new(tcp_segment(20, 7, at * 100, 0, &[1; 100]));
        [segment(0), segment(1), segment(2), IpPacket::new(vec![0x45; 24])].into()
    }

    /// Goal: packets are counted as refused, and not writes, which may be of several. Method: a pipe that
    /// nothing reads from any more.
    #[test]
    fn each_packet_that_is_not_taken_is_counted() {
        let (driver, reader) = driver();
        drop(reader);
        let mut batch = packets();
        driver.transmit_batch(0, &mut batch);
        assert_eq!((batch.len(), driver.0.queues[0].refused()), (0, 4));
        assert_eq!(driver.transmit(0, IpPacket::new(vec![0x45; 24])), Ok(()));
        assert_eq!(driver.0.queues[0].refused(), 5);
    }

    /// Goal: what stays whole is counted as the packets that it stands for. Method: one of three segments
    /// that is not taken.
    #[test]
    fn a_whole_one_that_is_not_taken_counts_as_its_packets() {
        let (driver, reader) = driver();
        drop(reader);
        let piece = IpPacket::new(tcp_segment(20, 7, 0, 0, &[1; 250]));
        let segments = Segments { headers: 40, payload: const { NonZeroU16::new(100).unwrap() }, kind: 1 };
        let mut batch = VecDeque::from([piece.with_segments(segments).expect("it has data")]);
        driver.transmit_batch(0, &mut batch);
        assert_eq!((batch.len(), driver.0.queues[0].refused()), (0, 3));
    }

    /// Goal: what finds no room stays, is not counted as refused, and the poller is told when there is room.
    /// Method: a pipe that is full, and then is not.
    #[test]
    fn what_finds_no_room_stays() {
        let (driver, mut reader) = driver();
        let exit = &driver.0.queues[0];
        while rustix::io::write(&exit.file, &[0; 4096]) != Err(Errno::WOULDBLOCK) {}
        let mut batch = packets();
        driver.transmit_batch(0, &mut batch);
        assert_eq!((batch.len(), exit.refused()), (4, 0));
        let look = || {
            let (mut events, now) = (Vec::with_capacity(1), Timespec { tv_sec: 0, tv_nsec: 0 });
            let room = rustix::buffer::spare_capacity(&mut events);
            epoll::wait(&*driver.0.epoll, room, Some(&now)).expect("it waits");
            events.iter().map(|event: &epoll::Event| (event.data.u64(), event.flags)).collect::<Vec<_>>()
        };
        assert_eq!(look(), []);
        reader.read_exact(&mut [0; 8192]).expect("it is full");
        assert_eq!(look(), [((4 + 2) * 2 + 1, EventFlags::OUT)]);
        driver.transmit_batch(0, &mut batch);
        assert_eq!((batch.len(), exit.refused()), (0, 0));
    }
}
