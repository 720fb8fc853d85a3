//! What every instance has: its name, its machine, and the socket where lines of `tc` come in.

use super::control_socket;
use super::conversation::Reply;
use super::error::InstanceError;
use super::executor::execute;
use super::record::TakenName;
use crate::control::Control;
use crate::device::Device;
use crate::waiting::WaitingThread;
use core::fmt;
use quietcore_live::Machine;
use quietcore_qdisc::IpPacket;
use std::sync::Arc;

/// The base of an instance. Its owner calls [`close`](Self::close) and drops its own parts first; then the
/// machine ends, and the name is free.
pub(super) struct InstanceBase {
    server: Option<WaitingThread>,
    control: Arc<Control<IpPacket>>,
    devices: [String; 2],
    pub(super) machine: &'static Machine,
    name: TakenName,
}

impl fmt::Debug for InstanceBase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("InstanceBase").field("name", &self.name).finish_non_exhaustive()
    }
}

impl InstanceBase {
    /// With a machine that was just started; a drop ends it.
    pub(super) fn new(name: TakenName, machine: &'static Machine, devices: [String; 2], seed: u64) -> Self {
        Self { server: None, control: Arc::new(Control::new(machine, seed)), devices, machine, name }
    }

    /// Lets lines of `tc` name the devices, and takes such lines at the control socket.
    pub(super) fn open(&mut self, devices: [&Arc<Device<IpPacket>>; 2]) -> Result<(), InstanceError> {
        for (name, device) in self.devices.iter().zip(devices) {
            self.control.add_device(name, Arc::clone(device))?;
        }
        let (path, control) = (self.name.socket(), Arc::clone(&self.control));
        let server = control_socket::start(&path, move |line| execute(&control, line));
        self.server = Some(server.map_err(|error| InstanceError::Socket { path, error })?);
        Ok(())
    }

    pub(super) fn execute(&self, line: &str) -> Reply {
        execute(&self.control, line)
    }

    /// Takes no more lines, and lets the devices go.
    pub(super) fn close(&mut self) {
        self.server = None;
        self.devices.iter().for_each(|device| self.control.remove_device(device));
    }
}

impl Drop for InstanceBase {
    fn drop(&mut self) {
        self.machine.shutdown();
    }
}
