//! The layer above tasks: softirqs, raised by interrupts, run in passes when those end or by ksoftirqd.
//!
//! `layer.rs` raising, and what interrupts brought; `rounds.rs` rounds and passes; `ksoftirqd.rs` what they
//! leave. The handlers of packets are in `packets/`.

mod ksoftirqd;
mod layer;
mod rounds;

pub(crate) use layer::SoftirqLayer;
