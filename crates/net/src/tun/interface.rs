//! A TUN interface with several queues.

use super::coalesce::Offload;
use super::system;
use std::io;
use std::os::fd::OwnedFd;

/// A TUN interface, with a descriptor for each queue. A drop of the last descriptor removes it.
pub struct TunInterface {
    pub(super) queues: Vec<OwnedFd>,
    pub(super) offload: Offload,
    pub(super) link_header: u16,
}

impl core::fmt::Debug for TunInterface {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("TunInterface").field("queues", &self.queues.len()).finish_non_exhaustive()
    }
}

impl TunInterface {
    /// Makes the interface in the network namespace of the calling thread
    /// ([`Namespace::inside`](super::Namespace::inside)).
    ///
    /// # Errors
    /// What the system said: this needs `CAP_NET_ADMIN` and `/dev/net/tun`.
    pub fn open(name: &str, queues: usize, offload: Offload) -> io::Result<Self> {
        let all = (0..queues).map(|_| system::open_tun_queue(name, offload));
        Ok(Self { queues: all.collect::<Result<_, _>>()?, offload, link_header: 0 })
    }

    /// Disciplines count so many bytes for each packet besides its own: 14 for the header of Ethernet.
    #[must_use]
    pub fn with_link_header(self, bytes: u16) -> Self {
        Self { link_header: bytes, ..self }
    }
}
