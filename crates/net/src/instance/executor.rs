//! Carries out lines of `tc` on an instance's devices, and answers with text.

use super::control_socket::Reply;
use super::report_json;
use crate::control::{Control, TcControlError};
use crate::device::Device;
use quietcore_live::Machine;
use quietcore_qdisc::IpPacket;
use quietcore_qdisc::tc::{Command, parse};
use std::sync::Arc;

/// The devices of an instance, by name, and what lines of `tc` do to them.
#[derive(Debug)]
pub(super) struct LineExecutor {
    control: Control<IpPacket>,
}

impl LineExecutor {
    pub(super) fn new(machine: &'static Machine, seed: u64) -> Self {
        Self { control: Control::new(machine, seed) }
    }

    pub(super) fn add_device(&self, name: &str, device: Arc<Device<IpPacket>>) -> Result<(), TcControlError> {
        self.control.add_device(name, device)
    }

    pub(super) fn remove_device(&self, name: &str) {
        self.control.remove_device(name);
    }

    /// Carries out a line. `-j` asks for JSON.
    pub(super) fn execute(&self, line: &str) -> Reply {
        let command = parse(line).map_err(|error| error.to_string())?;
        let answer = self.control.execute(&command).map_err(|error| error.to_string())?;
        match &command {
            Command::Show(show) if show.json => {
                let text = serde_json::to_string_pretty(&report_json::of(&answer));
                text.map(|text| text + "\n").map_err(|error| error.to_string())
            }
            _ => Ok(answer.to_string()),
        }
    }
}
