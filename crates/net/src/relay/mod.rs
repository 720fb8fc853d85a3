//! A relay of datagrams between two programs, through a device each way: what a network between them would do
//! can be tried without privileges.
//!
//! ```text
//! peer a  <->  [socket a | device "a" ->  | socket b]  <->  peer b
//!              [         | <-  device "b" |         ]
//! ```
//!
//! What peer a sends to the relay's address a goes through device a, and from the relay's address b to peer
//! b; the same back. A datagram is read by the NET_RX softirq of its device's CPU and sent by NET_TX of
//! the CPU that runs the queue. In the device it is an IP packet with headers, so that lengths, filters and
//! flows are those of a link.
//!
//! Invariants (tests/relay.rs): nothing is ever sent to an address other than the two peers; datagrams of
//! strangers are counted and dropped; as many leave as came in at most, times what a discipline
//! duplicates; a dropped relay has no thread and no socket. ICMP errors are counted and end nothing.
//!
//! Deliberately absent: more than one peer an end, TCP, marks of congestion (the made headers say that their
//! sender does not know them), fragments (the kernel's).

mod datagram;
mod options;
mod poller;
mod port;

#[cfg(feature = "stream")]
pub(crate) use options::Reach;
pub use options::{RelayEnd, RelayError, RelayOptions};

use super::device::Device;
use super::losses::SystemLosses;
use super::network::Network;
use super::options::DeviceOptions;
use super::receive::Receiver;
use super::waiting::WaitingThread;
use core::fmt;
use poller::Strangers;
use port::{Counts, EntryReceiver, PeerEntry, PeerExit, Port};
use quietcore_live::Machine;
use quietcore_qdisc::{IpPacket, PacketOrigin};
use rustix::event::epoll::{self, CreateFlags};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// An end of a relay, and the device for what comes in there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelaySide {
    /// The first.
    A,
    /// The second.
    B,
}

/// What an end of a relay has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayStatistics {
    /// Datagrams that came from its peer.
    pub received: u64,
    /// Bytes in them.
    pub received_bytes: u64,
    /// Datagrams of strangers, which were dropped.
    pub strangers: u64,
    /// Datagrams that were sent to its peer.
    pub sent: u64,
    /// Bytes in them.
    pub sent_bytes: u64,
    /// ICMP errors: mostly that no program listens at the peer.
    pub refused: u64,
    /// Datagrams to its peer that the kernel did not take.
    pub unsent: u64,
}

/// A running relay; dropped, it ends.
///
/// ```
/// use quietcore::net::{Network, Relay, RelayEnd, RelayOptions, RelaySide};
/// use quietcore::{LaneThreads, Machine};
/// use std::net::UdpSocket;
///
/// let (network, builder) = Network::new(Machine::builder().lanes("0".parse()?));
/// let machine = builder.lane_threads(LaneThreads::new()).start()?;
/// let [one, other] = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
/// let end = |peer: &UdpSocket| {
///     Ok::<_, std::io::Error>(RelayEnd { listen: ([127, 0, 0, 1], 0).into(), peer: peer.local_addr()? })
/// };
/// let relay = Relay::start(&network, machine, RelayOptions::new(end(&one)?, end(&other)?))?;
/// one.send_to(b"hello", relay.address(RelaySide::A))?;
/// let mut buffer = [0; 100];
/// let (length, from) = other.recv_from(&mut buffer)?;
/// assert_eq!((&buffer[..length], from), (&b"hello"[..], relay.address(RelaySide::B)));
/// # drop(relay);
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Relay {
    ways: [Way; 2],
    /// Dropped first, so that no run of a closed end is asked for.
    poller: Option<WaitingThread>,
}

/// What comes in at an end.
struct Way {
    listen: SocketAddr,
    device: Arc<Device<IpPacket>>,
    entry: Arc<PeerEntry>,
    /// At the other end.
    exit: Arc<PeerExit>,
    strangers: Arc<Mutex<u64>>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = [RelaySide::A, RelaySide::B].map(|side| self.address(side));
        out.debug_struct("Relay").field("a", &a).field("b", &b).finish_non_exhaustive()
    }
}

impl Relay {
    /// Binds the sockets and begins to carry. Each way is a device with one queue, a `pfifo` to begin with;
    /// a's belongs to the machine's first lane, b's to its second if there is one.
    ///
    /// # Errors
    /// See [`RelayError`]; then nothing is left of it.
    pub fn start(
        network: &Network,
        machine: &'static Machine,
        options: RelayOptions,
    ) -> Result<Self, RelayError> {
        options.check()?;
        let ports = [Port::open(options.ends[0])?, Port::open(options.ends[1])?];
        let own = |peer: &SocketAddr| ports.iter().any(|port| port.is_at(*peer));
        if let Some(peer) = options.ends.map(|end| end.peer).into_iter().find(own) {
            return Err(RelayError::Loop(peer));
        }
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| RelayError::Poller(error.into()))?;
        let epoll = Arc::new(epoll);
        let lanes = || machine.lanes().iter().cycle();
        let device = |from: usize, to: usize| {
            let home = lanes().nth(from).into_iter().collect();
            let queue = DeviceOptions::new(1).watchdog(options.watchdog).origin(PacketOrigin::Bytes);
            let queue = options.memory_max.map_or(queue.clone(), |bytes| queue.memory_max(bytes));
            let losses = SystemLosses::of_socket(&ports[from].of_peer).ok().map(Arc::new);
            let queue = queue.losses_ahead(losses);
            let queue =
                if machine.lanes().first().is_some() { queue.transmit_map(vec![home]) } else { queue };
            let socket = ports[to].of_peer.try_clone();
            let socket =
                socket.map_err(|error| RelayError::Socket { listen: ports[to].end.listen, error })?;
            let exit = Arc::new(PeerExit::new(ports[from].end.peer, socket));
            let driver = Arc::clone(&exit);
            let driver = move |_: usize, packet: IpPacket| driver.transmit(packet);
            Ok::<_, RelayError>((Arc::new(Device::new(network, machine, queue, driver)?), exit))
        };
        let devices = [device(0, 1)?, device(1, 0)?];
        devices[0].0.link_to(&devices[1].0);
        devices[1].0.link_to(&devices[0].0);
        let (mut ways, mut receivers, mut strangers) = (Vec::new(), Vec::new(), Vec::new());
        for (token, (port, (device, exit))) in (0..).zip(ports.into_iter().zip(devices)) {
            let Port { end, of_peer, of_strangers } = port;
            let entry = PeerEntry::new(end, of_peer, Arc::clone(&device), Arc::clone(&epoll), token);
            let entry = Arc::new(entry.map_err(RelayError::Poller)?);
            receivers.push(Receiver::new(
                network,
                machine,
                device.home(0),
                EntryReceiver(Arc::clone(&entry)),
            )?);
            let count = Arc::default();
            let way = Way { listen: end.listen, device, entry, exit, strangers: Arc::clone(&count) };
            strangers.push(Strangers { socket: of_strangers, peer: end.peer, count });
            ways.push(way);
        }
        let poller = begin(epoll, receivers, strangers)?;
        let ways = ways.try_into().unwrap_or_else(|_| unreachable!("one for each port"));
        Ok(Self { ways, poller: Some(poller) })
    }

    const fn way(&self, side: RelaySide) -> &Way {
        &self.ways[side as usize]
    }

    /// Where the relay listens to that side's peer.
    #[must_use]
    pub const fn address(&self, side: RelaySide) -> SocketAddr {
        self.way(side).listen
    }

    /// The device for what that side's peer sends.
    #[must_use]
    pub const fn device(&self, side: RelaySide) -> &Arc<Device<IpPacket>> {
        &self.way(side).device
    }

    /// What that side has done.
    #[must_use]
    pub fn statistics(&self, side: RelaySide) -> RelayStatistics {
        let other = if side == RelaySide::A { RelaySide::B } else { RelaySide::A };
        let (came, went) = (self.way(side).entry.counts(), self.way(other).exit.counts());
        let strangers = *self.way(side).strangers.lock().unwrap_or_else(PoisonError::into_inner);
        RelayStatistics::of(came, went, strangers)
    }
}

impl RelayStatistics {
    /// Of what came in at an end and went out of it, and the strangers that did not reach its peer's socket.
    const fn of(came: Counts, went: Counts, strangers: u64) -> Self {
        Self {
            received: came.packets,
            received_bytes: came.bytes,
            strangers: strangers + came.dropped,
            sent: went.packets,
            sent_bytes: went.bytes,
            refused: came.refused + went.refused,
            unsent: went.dropped,
        }
    }
}

fn begin(
    epoll: Arc<OwnedFd>,
    receivers: Vec<Receiver>,
    strangers: Vec<Strangers>,
) -> Result<WaitingThread, RelayError> {
    let receivers = receivers.try_into().unwrap_or_else(|_| unreachable!("one for each port"));
    let strangers = strangers.try_into().unwrap_or_else(|_| unreachable!("one for each port"));
    poller::start(epoll, receivers, strangers).map_err(RelayError::Poller)
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.poller = None;
        for way in &self.ways {
            way.entry.close();
            // Devices may be in others' hands; the sockets are not.
            way.exit.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, RelayStatistics};

    /// Goal: each figure is what it says. Method: counts of which no two, and no two sums, are alike.
    #[test]
    fn each_figure_is_its_own_count() {
        let came = Counts { packets: 1, bytes: 20, refused: 300, dropped: 4_000 };
        let went = Counts { packets: 5, bytes: 60, refused: 700, dropped: 8_000 };
        let expected = RelayStatistics {
            received: 1,
            received_bytes: 20,
            strangers: 13_000,
            sent: 5,
            sent_bytes: 60,
            refused: 1_000,
            unsent: 8_000,
        };
        assert_eq!(RelayStatistics::of(came, went, 9_000), expected);
    }
}
