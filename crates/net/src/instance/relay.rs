//! An instance whose devices relay the datagrams of two programs. It needs no privileges.
//!
//! Order of the way up: the name, the machine, the relay, the control socket. A failure anywhere, and the
//! end, take it down in the other order and leave nothing.

use super::base::InstanceBase;
use super::conversation::Reply;
use super::error::InstanceError;
use super::name::InstanceName;
use super::record::{InstanceRecord, TakenName};
use crate::network::Network;
use crate::relay::{Relay, RelayOptions, RelaySide};
use quietcore_live::{CpuSet, LaneThreads, Machine};

/// What a [`RelayInstance`] has.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RelayInstanceOptions {
    /// Its name.
    pub name: InstanceName,
    /// What lines of `tc` call the ways from a to b and from b to a.
    pub devices: [String; 2],
    /// The CPUs of lanes.
    pub lanes: CpuSet,
    /// Its ends.
    pub relay: RelayOptions,
    /// Where everything random begins.
    pub seed: u64,
}

impl RelayInstanceOptions {
    /// Devices `a` and `b`.
    #[must_use]
    pub fn new(name: InstanceName, lanes: CpuSet, relay: RelayOptions) -> Self {
        Self { name, devices: ["a".to_owned(), "b".to_owned()], lanes, relay, seed: 1 }
    }
}

/// A [`Relay`] whose devices lines of `tc` shape. A drop takes it down.
#[derive(Debug)]
pub struct RelayInstance {
    relay: Relay,
    base: InstanceBase,
}

impl Drop for RelayInstance {
    fn drop(&mut self) {
        self.base.close();
    }
}

impl RelayInstance {
    /// Starts one.
    ///
    /// # Errors
    /// See [`InstanceError`].
    pub fn start(options: RelayInstanceOptions) -> Result<Self, InstanceError> {
        let RelayInstanceOptions { name, devices, lanes, relay, seed } = options;
        let (mut taken, _) = TakenName::take(name.as_str())?;
        taken.write(&InstanceRecord::of_this_process(name.as_str(), &devices, &[]))?;
        let (network, builder) = Network::new(Machine::builder().lanes(lanes));
        let machine = builder.lane_threads(LaneThreads::new()).start()?;
        // From here on a drop takes everything down.
        let base = InstanceBase::new(taken, machine, devices, seed);
        let mut instance = Self { relay: Relay::start(&network, machine, relay)?, base };
        let devices = [RelaySide::A, RelaySide::B].map(|side| instance.relay.device(side));
        instance.base.open(devices)?;
        Ok(instance)
    }

    /// Carries out a line of `tc`, as if it came through the control socket.
    ///
    /// # Errors
    /// Why it was refused, in words.
    pub fn execute(&self, line: &str) -> Reply {
        self.base.execute(line)
    }

    /// The relay.
    #[must_use]
    pub const fn relay(&self) -> &Relay {
        &self.relay
    }

    /// The CPUs of lanes.
    #[must_use]
    pub fn lanes(&self) -> &CpuSet {
        self.base.machine.lanes()
    }
}
