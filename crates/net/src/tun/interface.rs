//! A TUN interface with several queues.

use super::coalesce::Offload;
use super::system;
use crate::losses::SystemLosses;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A TUN interface, with a descriptor for each queue. A drop of the last descriptor removes it.
pub struct TunInterface {
    pub(super) queues: Vec<OwnedFd>,
    pub(super) offload: Offload,
    pub(super) link_header: u16,
    /// Nothing where there is no `/proc`.
    pub(super) losses: Option<Arc<SystemLosses>>,
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
        let queues = all.collect::<Result<_, _>>()?;
        let losses = SystemLosses::of_interface(name).ok().map(Arc::new);
        Ok(Self { queues, offload, link_header: 0, losses })
    }

    /// Disciplines count so many bytes for each packet besides its own: 14 for the header of Ethernet.
    #[must_use]
    pub fn with_link_header(self, bytes: u16) -> Self {
        Self { link_header: bytes, ..self }
    }
}
