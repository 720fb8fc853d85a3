//! How a machine takes the host's masks.

use super::host::{FromHost, HostIsolation};
use crate::machine::{Machine, MachineBuilder};
use std::path::PathBuf;

impl MachineBuilder {
    /// Isolates what the host isolates when the machine starts: its kernel's `isolated` and `nohz_full`
    /// masks, and what cpusets isolate ([`HostIsolation`]). The last are as if
    /// [`set_isolated`](Machine::set_isolated) had been called with them: they can be taken back, and
    /// [`watch_host_isolation`](Machine::watch_host_isolation) does so. What
    /// [`isolated`](Self::isolated) and [`nohz_full`](Self::nohz_full) say does not count.
    ///
    /// A machine all of whose CPUs are isolated does not start
    /// ([`StartError::Housekeeping`](crate::StartError::Housekeeping)): give a process that runs in an
    /// isolated partition a CPU outside of it, or leave this out.
    #[must_use]
    pub fn isolation_from_host(self) -> Self {
        self.isolation_from("/".into())
    }

    pub(super) fn isolation_from(mut self, root: PathBuf) -> Self {
        self.from_host = FromHost(Some(root));
        self
    }
}

impl Machine {
    /// Which CPUs the kernel of this host isolates now; [`HostIsolation::read`].
    #[must_use]
    pub fn host_isolation() -> HostIsolation {
        HostIsolation::read()
    }
}
