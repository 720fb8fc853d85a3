//! Between whom a relay carries datagrams, and what it refuses to be.

use super::super::options::{DeviceError, Watchdog};
use core::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// One end of a relay: where it listens, and the only one that it listens to and sends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayEnd {
    /// The relay's own address; with port 0 the system picks a free one.
    pub listen: SocketAddr,
    /// Datagrams from here are carried to the other end, and what the other end sends comes here.
    pub peer: SocketAddr,
}

/// What addresses a relay may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Loopback,
    Beyond,
}

/// Settings of a [`Relay`](super::Relay).
#[derive(Clone, Copy, Debug)]
pub struct RelayOptions {
    pub(super) ends: [RelayEnd; 2],
    pub(super) reach: Reach,
    pub(super) watchdog: Watchdog,
    pub(super) memory_max: Option<u64>,
}

impl RelayOptions {
    /// A relay between these two, on loopback only.
    #[must_use]
    pub const fn new(a: RelayEnd, b: RelayEnd) -> Self {
        Self { ends: [a, b], reach: Reach::Loopback, watchdog: Watchdog::Pinned, memory_max: None }
    }

    /// Lets ends be on other machines. Not the default, as nothing proves where a datagram comes from: who
    /// can write a peer's address into one has it carried to the other peer. Use it between networks of your
    /// own.
    #[must_use]
    pub const fn beyond_loopback(mut self) -> Self {
        self.reach = Reach::Beyond;
        self
    }

    /// Whether the devices' watchdogs stay where they are armed. Default: yes.
    #[must_use]
    pub const fn watchdog(mut self, watchdog: Watchdog) -> Self {
        self.watchdog = watchdog;
        self
    }

    /// How many bytes the datagrams of one way may take
    /// ([`DeviceOptions::memory_max`](crate::DeviceOptions::memory_max), with its default).
    #[must_use]
    pub const fn memory_max(mut self, bytes: u64) -> Self {
        self.memory_max = Some(bytes);
        self
    }

    /// Checks all that can be checked before there are sockets.
    pub(super) fn check(&self) -> Result<(), RelayError> {
        for RelayEnd { listen, peer } in self.ends {
            if listen.is_ipv4() != peer.is_ipv4() {
                return Err(RelayError::Versions { listen, peer });
            }
            if !is_one_host(peer) {
                return Err(RelayError::Peer(peer));
            }
            let outside = [listen, peer].into_iter().find(|address| !address.ip().is_loopback());
            if let Some(address) = outside.filter(|_| self.reach == Reach::Loopback) {
                return Err(RelayError::NotLoopback(address));
            }
        }
        Ok(())
    }
}

/// Whether one program can be reached there.
fn is_one_host(peer: SocketAddr) -> bool {
    // An address of IPv4 may be written as one of IPv6.
    let ip = peer.ip().to_canonical();
    let is_broadcast = matches!(ip, IpAddr::V4(address) if address.is_broadcast());
    peer.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
}

/// Why there is no relay.
#[derive(Debug)]
#[non_exhaustive]
pub enum RelayError {
    /// This address is not on loopback, and [`RelayOptions::beyond_loopback`] was not asked for.
    NotLoopback(SocketAddr),
    /// This peer is no single program: port 0, an unspecified, multicast or broadcast address.
    Peer(SocketAddr),
    /// The relay listens at this peer: datagrams would go round for ever.
    Loop(SocketAddr),
    /// An end listens on IPv4 and has a peer on IPv6, or the other way round.
    Versions {
        /// Where it listens.
        listen: SocketAddr,
        /// Its peer.
        peer: SocketAddr,
    },
    /// A socket cannot be made.
    Socket {
        /// Its address.
        listen: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// A device cannot be made.
    Device(DeviceError),
    /// There is no way, or no thread, to wait for datagrams.
    Poller(io::Error),
}

impl fmt::Display for RelayError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoopback(address) => {
                write!(out, "{address} is not on loopback, and `beyond_loopback` was not asked for")
            }
            Self::Peer(peer) => {
                write!(out, "{peer} is no peer: it must be the address and port of one program")
            }
            Self::Loop(peer) => write!(out, "the peer {peer} is the relay itself"),
            Self::Versions { listen, peer } => {
                write!(out, "{listen} and its peer {peer} are of different versions of IP")
            }
            Self::Socket { listen, error } => write!(out, "no socket at {listen}: {error}"),
            Self::Device(error) => write!(out, "{error}"),
            Self::Poller(error) => write!(out, "datagrams cannot be waited for: {error}"),
        }
    }
}

impl core::error::Error for RelayError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Socket { error, .. } | Self::Poller(error) => Some(error),
            Self::Device(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DeviceError> for RelayError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}
