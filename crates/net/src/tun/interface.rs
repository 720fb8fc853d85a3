//! A TUN interface with several queues.

use super::coalesce::Offload;
use std::io;
use std::sync::Arc;
use tun_rs::{DeviceBuilder, SyncDevice};

/// A TUN interface, with a descriptor for each queue. A drop of the last descriptor removes it.
pub struct TunInterface {
    pub(super) queues: Vec<Arc<SyncDevice>>,
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
    /// What the system said: this needs root and `/dev/net/tun`.
    pub fn open(name: &str, queues: usize, offload: Offload) -> io::Result<Self> {
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

    /// Disciplines count so many bytes for each packet besides its own: 14 for the header of Ethernet.
    #[must_use]
    pub fn with_link_header(self, bytes: u16) -> Self {
        Self { link_header: bytes, ..self }
    }
}
