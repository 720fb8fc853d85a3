//! Real packets of real programs: TUN interfaces in network namespaces, and a [`Wire`] between two of them.
//!
//! What a program in one namespace sends goes through a [`Device`](crate::Device), whose disciplines
//! [`Control`](crate::Control) sets, and reaches the other namespace. Needs root, `/dev/net/tun` and `ip`.
//!
//! ```no_run
//! use quietcore::net::{Control, Network, Watchdog};
//! use quietcore::{LaneThreads, Machine};
//! use quietcore_net::tun::{Namespace, Offload, TunInterface, Wire, WireOptions};
//! use std::sync::Arc;
//!
//! let (network, builder) = Network::new(Machine::builder().lanes("0-1".parse()?));
//! let machine = builder.lane_threads(LaneThreads::new()).start()?;
//! let end = |namespace: &str, interface: &str, address: &str| {
//!     let namespace = Namespace::create(namespace)?;
//!     let tun = namespace.inside(|| TunInterface::open(interface, 2, Offload::On))??;
//!     namespace.configure(&format!("link set dev {interface} up\naddr add {address}/24 dev {interface}"))?;
//!     Ok::<_, Box<dyn std::error::Error>>((namespace, (interface.to_owned(), tun)))
//! };
//! let (a, left) = end("a", "eth1", "10.77.0.1")?;
//! let (b, right) = end("b", "eth2", "10.77.0.2")?;
//! let transmit_map = vec!["0".parse()?, "1".parse()?];
//! let wire = Wire::start(
//!     &network,
//!     machine,
//!     &WireOptions { sides: [left, right], transmit_map, watchdog: Watchdog::Pinned, memory_max: 64 << 20 },
//! )?;
//! let control = Control::new(machine, 1);
//! control.add_device("eth1", Arc::clone(wire.directions()[0].device()))?;
//! control.execute_line("tc qdisc replace dev eth1 root netem delay 10ms")?;
//! // `ip netns exec a ping 10.77.0.2` now takes 10 ms longer.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod coalesce;
mod cut;
mod ends;
mod error;
mod interface;
mod namespace;
mod program;
mod system;
#[cfg(test)]
mod tcp_segment;
mod transmit_map;
mod virtio;
mod wire;

pub use coalesce::{Coalescer, Offload};
pub use ends::SEGMENTS_MAX;
pub use error::TunError;
pub use interface::TunInterface;
pub use namespace::{Namespace, NamespaceId, UnnamedNamespace};
pub use program::system_program;
pub use transmit_map::{TransmitMap, TransmitMapError};
pub use wire::{Direction, Wire, WireOptions};

#[cfg(feature = "instance")]
pub(crate) use namespace::check_free;
