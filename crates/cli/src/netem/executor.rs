//! Carries lines of `tc` out on an instance's devices, and writes what comes of it.

use super::control_socket::Reply;
use super::report_json;
use quietcore::Machine;
use quietcore::net::{Control, Device};
use quietcore::qdisc::IpPacket;
use quietcore::qdisc::tc::{Command, parse};
use std::sync::Arc;

/// The executor of an instance.
#[derive(Debug)]
pub(crate) struct Executor {
    control: Control<IpPacket>,
}

impl Executor {
    pub(crate) fn new(machine: &'static Machine, seed: u64) -> Self {
        Self { control: Control::new(machine, seed) }
    }

    pub(crate) fn add_device(&self, name: &str, device: &Arc<Device<IpPacket>>) -> Result<(), String> {
        self.control.add_device(name, Arc::clone(device)).map_err(|error| error.to_string())
    }

    /// Lets the devices go.
    pub(crate) fn remove_device(&self, name: &str) {
        self.control.remove_device(name);
    }

    /// Carries out a line.
    pub(crate) fn execute(&self, line: &str) -> Reply {
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
