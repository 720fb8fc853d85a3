//! A relay of TCP connections that does to them what a bad network would, without privileges.
//!
//! ```text
//! client  <->  [proxy: link upstream   -> toxics -> ]  <->  server
//!              [       link downstream <- toxics <- ]
//! ```
//!
//! A [proxy](ProxyConfig) listens at one address and connects to another. [`Toxic`]s delay, slow down, cut,
//! stall, close and reset what flows; they are added and removed while connections are there, by programs or
//! over HTTP ([`StreamRelayOptions::interface`]), with the paths and fields of toxiproxy, so that its client
//! libraries work.
//!
//! What happens to a stream is decided without sockets and clocks (`stage.rs`, `link.rs`); timers are exact
//! ones of the lanes' CPUs, and everything random follows from one seed.
//!
//! Invariants: bytes are not reordered, made, or lost without being counted; what a connection holds is
//! bounded, and its sender is slowed down then; nothing but loopback is reached without leave; when a relay
//! has ended there is no thread, no port and no connection of it.
//!
//! ```text
//! toxic.rs     what can be done            address.rs     where a proxy may listen and lead
//! stage.rs     a toxic at work             connection.rs  two sockets and their links
//! link.rs      a way of a connection       proxy.rs       a port whose connections are accepted
//! draws.rs     numbers by seed             registry.rs    all proxies, and changes of them
//! counts.rs    what was done               api            the interface over HTTP
//! relay.rs     starting and ending         error.rs       why something is refused
//! ```
//!
//! Deliberately absent: TLS, UDP ([`Relay`](crate::Relay)), packets: what a kernel does with segments is not
//! seen here, so a loss is a stall.

mod address;
mod api;
mod connection;
mod counts;
mod draws;
mod error;
mod link;
mod proxy;
mod registry;
mod relay;
mod stage;
mod toxic;

pub use api::API_VERSION;
pub use counts::{ProxyCounts, StreamWayCounts};
pub use error::{ProxyError, StreamRelayError};
pub use registry::{ProxyConfig, ShownProxy};
pub use relay::{StreamRelay, StreamRelayOptions};
pub use toxic::{StreamWay, Toxic, ToxicKind};
