//! Named instances: devices of a running process that other programs shape with lines of `tc`.
//!
//! A [`TunInstance`] or a [`RelayInstance`] takes a name, has two devices, and listens at a control socket;
//! [`running`] finds those of this user, and [`ask`] sends one a line. `quietcore netem` and `quietcore tc`
//! are made of these.

mod base;
mod control_socket;
mod conversation;
mod error;
mod executor;
mod name;
mod record;
mod relay;
mod tun;

pub use control_socket::ask;
pub use conversation::{Conversation, Reply};
pub use error::InstanceError;
pub use executor::execute;
pub use name::{InstanceName, InstanceNameError};
pub use record::{InstanceRecord, NamespaceRecord, running};
pub use relay::{RelayInstance, RelayInstanceOptions};
pub use tun::{TunInstance, TunInstanceOptions};
