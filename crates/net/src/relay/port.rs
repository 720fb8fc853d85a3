//! An end of the relay as sockets: one for the peer, one for strangers.
//!
//! Both have the same address. The connected socket gets what comes from the peer, and learns of ICMP errors.
//! The unconnected socket gets the rest, so that strangers can neither be taken for the peer nor fill the
//! buffer that the peer's datagrams wait in. While the two are made, the address can be shared by sockets of
//! this user (`SO_REUSEPORT`, for which the kernel compares users; with `SO_REUSEADDR` any user could take
//! it). Afterwards no other program can bind to it.

use super::super::device::Device;
use super::super::receive::{Receive, Received};
use super::datagram;
use super::options::{RelayEnd, RelayError};
use quietcore_live::CpuId;
use quietcore_qdisc::IpPacket;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More than a datagram can have.
const LONGEST: usize = 65_536;
/// Bytes that may wait for us: some hundredths of a second of 1 Gbit/s, in which a lane may be late.
const RECEIVE_BUFFER: usize = 8 << 20;

/// The sockets of an end, before they are put to work.
pub(super) struct Port {
    pub(super) end: RelayEnd,
    pub(super) of_peer: UdpSocket,
    pub(super) of_strangers: UdpSocket,
}

impl Port {
    /// Binds both; `end.listen` is then what the port is.
    pub(super) fn open(end: RelayEnd) -> Result<Self, RelayError> {
        let failed = |error: io::Error| RelayError::Socket { listen: end.listen, error };
        // Without sharing, so that it does not get the address of another program.
        let of_strangers = UdpSocket::bind(end.listen).map_err(failed)?;
        of_strangers.set_nonblocking(true).map_err(failed)?;
        let listen = of_strangers.local_addr().map_err(failed)?;
        let of_peer = beside(&of_strangers, listen, end.peer).map_err(failed)?;
        Ok(Self { end: RelayEnd { listen, ..end }, of_peer, of_strangers })
    }

    /// Whether what is sent to `address` comes in here.
    pub(super) fn is_at(&self, address: SocketAddr) -> bool {
        let (own, ip) = (self.end.listen, address.ip());
        // A socket of all addresses has every address that this host lets a program bind to.
        let is_ours = || own.ip().is_unspecified() && UdpSocket::bind((ip, 0)).is_ok();
        own.port() == address.port() && (own.ip() == ip || is_ours())
    }
}

/// A socket of the same address that is connected to `peer`.
fn beside(first: &UdpSocket, listen: SocketAddr, peer: SocketAddr) -> io::Result<UdpSocket> {
    let family = if listen.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let second = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
    share(first, Sharing::OfThisUser)?;
    share(&second, Sharing::OfThisUser)?;
    rustix::net::bind(&second, &listen)?;
    rustix::net::connect(&second, &peer)?;
    share(first, Sharing::Nobody)?;
    share(&second, Sharing::Nobody)?;
    // Where the system allows less, that; what is lost is counted.
    sockopt::set_socket_recv_buffer_size(&second, RECEIVE_BUFFER)?;
    Ok(UdpSocket::from(second))
}

/// Whose sockets can have the same address, if they ask for it with the same option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    OfThisUser,
    Nobody,
}

fn share(socket: impl AsFd, sharing: Sharing) -> rustix::io::Result<()> {
    sockopt::set_socket_reuseport(socket, sharing == Sharing::OfThisUser)
}

/// What came in at an end, and what went out of it, but for strangers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// ICMP errors that a socket reported.
    pub(super) refused: u64,
    /// Received: not from the peer. Sent: what the kernel did not take.
    pub(super) dropped: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the peer's datagrams come in.
pub(super) struct PeerEntry {
    pub(super) end: RelayEnd,
    pub(super) device: Arc<Device<IpPacket>>,
    pub(super) epoll: Arc<OwnedFd>,
    pub(super) token: u64,
    state: Mutex<PeerEntryState>,
}

struct PeerEntryState {
    /// Nothing when the relay was dropped.
    socket: Option<UdpSocket>,
    /// Long enough for any datagram.
    buffer: Vec<u8>,
    counts: Counts,
}

impl PeerEntry {
    pub(super) fn new(
        end: RelayEnd,
        socket: UdpSocket,
        device: Arc<Device<IpPacket>>,
        epoll: Arc<OwnedFd>,
        token: u64,
    ) -> io::Result<Self> {
        epoll::add(&*epoll, &socket, EventData::new_u64(token), EventFlags::IN | EventFlags::ONESHOT)?;
        let state =
            PeerEntryState { socket: Some(socket), buffer: vec![0; LONGEST], counts: Counts::default() };
        Ok(Self { end, device, epoll, token, state: Mutex::new(state) })
    }

    pub(super) fn counts(&self) -> Counts {
        locked(&self.state).counts
    }

    /// Ends it; waits for a run that is under way.
    pub(super) fn close(&self) {
        locked(&self.state).socket = None;
    }
}

/// As the receiver of NET_RX, which the poller shares it with.
pub(super) struct EntryReceiver(pub(super) Arc<PeerEntry>);

impl Receive for EntryReceiver {
    fn receive(&self, cpu: CpuId, budget: usize) -> Received {
        let PeerEntry { end, device, epoll, token, state } = &*self.0;
        let mut state = locked(state);
        let PeerEntryState { socket: Some(socket), buffer, counts } = &mut *state else {
            return Received::Done;
        };
        for _ in 0..budget {
            match socket.recv_from(buffer) {
                Ok((length, from)) if from == end.peer => {
                    counts.packets += 1;
                    counts.bytes += length as u64;
                    let packet = datagram::packet(from, end.listen, &buffer[..length]);
                    // What became of it is in the discipline's figures.
                    let _ = device.send_on(cpu, 0, packet);
                }
                // It came before the socket was connected.
                Ok(_) => counts.dropped += 1,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let flags = EventFlags::IN | EventFlags::ONESHOT;
                    let _ = epoll::modify(&**epoll, &*socket, EventData::new_u64(*token), flags);
                    return Received::Done;
                }
                // No program listens at the peer: reported once for each datagram to it, and no error here.
                Err(_) => counts.refused += 1,
            }
        }
        Received::More
    }
}

/// Where datagrams go out to the peer.
pub(super) struct PeerExit {
    /// Whose datagrams they were.
    from: SocketAddr,
    /// The peer is of the other version of IP: what is not of `from`'s was sent here by a filter.
    crosses: bool,
    state: Mutex<(Option<UdpSocket>, Counts)>,
}

impl PeerExit {
    pub(super) fn new(from: SocketAddr, socket: UdpSocket) -> Self {
        let crosses = socket.peer_addr().is_ok_and(|to| to.is_ipv4() != from.is_ipv4());
        Self { from, crosses, state: Mutex::new((Some(socket), Counts::default())) }
    }

    pub(super) fn counts(&self) -> Counts {
        locked(&self.state).1
    }

    /// Ends it; waits for a packet that is under way.
    pub(super) fn close(&self) {
        locked(&self.state).0 = None;
    }

    /// Sends what was in the packet, once, to the peer that the socket is connected to.
    pub(super) fn transmit(&self, packet: IpPacket) -> Result<(), IpPacket> {
        let payload = datagram::payload(self.from, &packet);
        let mut state = locked(&self.state);
        let (Some(socket), counts) = &mut *state else { return Ok(()) };
        if self.crosses && !datagram::is_of(self.from, &packet) {
            counts.dropped += 1;
            return Ok(());
        }
        // The error may be an earlier datagram's; then this one was not sent yet.
        for _ in 0..2 {
            match socket.send(payload) {
                Ok(_) => {
                    counts.packets += 1;
                    counts.bytes += payload.len() as u64;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    drop(state);
                    return Err(packet);
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => counts.refused += 1,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        counts.dropped += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryReceiver, PeerEntry, PeerExit, Port, RelayEnd, Sharing, datagram, share};
    use crate::device::Device;
    use crate::network::Network;
    use crate::options::DeviceOptions;
    use crate::receive::{Receive, Received};
    use quietcore_live::{CpuId, Machine};
    use rustix::event::epoll;
    use rustix::net::{AddressFamily, SocketType, sockopt};
    use rustix::process::Uid;
    use std::net::{SocketAddr, UdpSocket};
    use std::sync::Arc;

    /// With which of the two options a socket of this thread's user can have `address`, too.
    fn intruders(address: SocketAddr) -> Vec<&'static str> {
        let bind = |options: &str| {
            let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            sockopt::set_socket_reuseaddr(&socket, options.contains("ADDR"))?;
            sockopt::set_socket_reuseport(&socket, options.contains("PORT"))?;
            rustix::net::bind(&socket, &address)
        };
        ["none", "ADDR", "PORT", "ADDR PORT"].into_iter().filter(|options| bind(options).is_ok()).collect()
    }

    /// Goal: while a relay's address can be shared, it cannot be taken by another user, nor by a program that
    /// shares addresses as servers do. Method: every choice of the two options, as this user and, where the
    /// test runs as root, as another one on a thread of its own.
    #[test]
    fn another_user_cannot_share_the_address() {
        const NONE: [&str; 0] = [];
        let first = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = first.local_addr().unwrap();
        share(&first, Sharing::OfThisUser).unwrap();
        assert_eq!(intruders(address), ["PORT", "ADDR PORT"], "of this user");
        if rustix::process::geteuid().is_root() {
            let nobody = Uid::from_raw(65_534);
            let as_nobody = move || {
                // Of this thread alone.
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
                intruders(address)
            };
            assert_eq!(std::thread::spawn(as_nobody).join().unwrap(), NONE, "of another user");
        } else {
            println!("skipped: sockets of another user, which need root");
        }
        share(&first, Sharing::Nobody).unwrap();
        assert_eq!(intruders(address), NONE, "it is no longer shared");
    }

    /// Goal: an open port is shared with no socket of any user. Method: every choice of the two options, and
    /// those that the two sockets have.
    #[test]
    fn an_open_port_is_not_shared() {
        let end = RelayEnd { listen: "127.0.0.1:0".parse().unwrap(), peer: "127.0.0.1:9".parse().unwrap() };
        let port = Port::open(end).unwrap();
        assert_eq!(intruders(port.end.listen), [""; 0]);
        let shared = [&port.of_peer, &port.of_strangers].map(sockopt::socket_reuseport);
        assert_eq!(shared, [Ok(false); 2], "neither lets another one in, whatever the other one does");
    }

    /// Goal: a port knows which addresses it has. Method: its own, that of a neighbour, another port; and one
    /// that listens everywhere on this host.
    #[test]
    fn a_port_knows_its_addresses() {
        let open = |listen: &str| {
            let end = RelayEnd { listen: listen.parse().unwrap(), peer: "127.0.0.1:9".parse().unwrap() };
            Port::open(end).unwrap()
        };
        let (one, all) = (open("127.0.0.1:0"), open("0.0.0.0:0"));
        let is_at =
            |port: &Port, ip: &str, number: u16| port.is_at(SocketAddr::new(ip.parse().unwrap(), number));
        let number = one.end.listen.port();
        assert!(is_at(&one, "127.0.0.1", number));
        assert!(!is_at(&one, "127.0.0.2", number) && !is_at(&one, "127.0.0.1", number ^ 1));
        let number = all.end.listen.port();
        assert!(is_at(&all, "127.0.0.2", number));
        assert!(!is_at(&all, "192.0.2.1", number) && !is_at(&all, "127.0.0.2", number ^ 1));
    }

    /// Goal: what comes in is counted, as far as the budget goes, and nothing after the end. Method: a socket
    /// that is not connected, so that strangers reach it, too: three datagrams of the peer, one of a
    /// stranger.
    #[test]
    fn what_comes_in_is_counted() {
        let (network, builder) = Network::new(Machine::builder().lanes("0".parse().unwrap()));
        let machine = builder.start().unwrap();
        let device = Device::new(&network, machine, DeviceOptions::new(1), |_, _| Ok(())).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let [peer, stranger] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let end = RelayEnd { listen: socket.local_addr().unwrap(), peer: peer.local_addr().unwrap() };
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
        let entry = Arc::new(PeerEntry::new(end, socket, Arc::new(device), epoll, 0).unwrap());
        let receive = |budget| EntryReceiver(Arc::clone(&entry)).receive(CpuId::new(0).unwrap(), budget);
        let counted = || {
            let counts = entry.counts();
            (counts.packets, counts.bytes, counts.dropped, counts.refused)
        };
        for length in [50, 600, 7_000] {
            peer.send_to(&vec![1; length], end.listen).unwrap();
        }
        stranger.send_to(b"hello", end.listen).unwrap();
        assert_eq!((receive(2), counted()), (Received::More, (2, 650, 0, 0)));
        assert_eq!((receive(64), counted()), (Received::Done, (3, 7_650, 1, 0)));
        peer.send_to(b"late", end.listen).unwrap();
        entry.close();
        assert_eq!((receive(64), counted()), (Received::Done, (3, 7_650, 1, 0)));
        assert!(UdpSocket::bind(end.listen).is_ok(), "the socket is closed");
        machine.shutdown();
    }

    /// Goal: where the two peers are of different versions of IP, a datagram that a filter sent back to its
    /// own peer is not cut in the wrong place, but dropped and counted. Method: one of each version.
    #[test]
    fn what_was_sent_back_is_not_cut() {
        let Ok(peer) = UdpSocket::bind("[::1]:0") else { return };
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        socket.connect(peer.local_addr().unwrap()).unwrap();
        let [from, to] = ["127.0.0.1:7", "127.0.0.1:8"].map(|address| address.parse().unwrap());
        let exit = PeerExit::new(from, socket);
        assert!(exit.transmit(datagram::packet(from, to, &[1; 50])).is_ok());
        let (own, end) = ("[::1]:7".parse().unwrap(), "[::1]:8".parse().unwrap());
        assert!(exit.transmit(datagram::packet(own, end, &[2; 60])).is_ok());
        assert_eq!((exit.counts().packets, exit.counts().bytes, exit.counts().dropped), (1, 50, 1));
    }

    /// Goal: what goes out is counted: sent, refused by the peer's host, not taken by the kernel. Method: a
    /// closed port of loopback, whose refusal is there before the next datagram; one that is too long.
    #[test]
    fn what_goes_out_is_counted() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(closed).unwrap();
        let from = "127.0.0.1:7".parse().unwrap();
        let exit = PeerExit::new(from, socket);
        let send = |length: usize| {
            assert!(exit.transmit(datagram::packet(from, closed, &vec![1; length])).is_ok());
            let counts = exit.counts();
            (counts.packets, counts.bytes, counts.dropped, counts.refused)
        };
        assert_eq!(send(50), (1, 50, 0, 0));
        assert_eq!(send(600), (2, 650, 0, 1), "the first one's refusal is told, and the second is sent");
        assert_eq!(send(65_508), (2, 650, 1, 1), "one byte more than a datagram has");
        exit.close();
        assert_eq!(send(7), (2, 650, 1, 1), "not after the end");
    }
}
