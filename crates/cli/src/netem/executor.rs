//! Carries lines of `tc` out on an instance's devices.

use super::control_socket::Reply;
use quietcore::Machine;
use quietcore::net::Device;
use quietcore::qdisc::IpPacket;
use std::sync::Arc;

/// The executor of an instance.
#[derive(Debug)]
pub(crate) struct Executor;

impl Executor {
    pub(crate) fn new(_machine: &'static Machine, _seed: u64) -> Self {
        Self
    }

    pub(crate) fn add_device(&self, _name: &str, _device: &Arc<Device<IpPacket>>) -> Result<(), String> {
        Ok(())
    }

    /// Carries out a line.
    pub(crate) fn execute(&self, line: &str) -> Reply {
        quietcore::qdisc::tc::parse(line).map_err(|error| error.to_string())?;
        Err("not yet".to_owned())
    }
}
