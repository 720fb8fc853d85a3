//! CPU sets, topology and placement, checked through the public interface against plain loops over
//! plain collections.
//!
//! `machines.rs` makes random machines; `cpu_set.rs`, `topology.rs`, `sysfs.rs`, `masks.rs`, `push.rs` and
//! `exact.rs` each hold one part of the crate to its oracle; `names.rs` has the names of the rules.

mod cpu_set;
mod exact;
mod machines;
mod masks;
mod names;
mod push;
mod sysfs;
mod topology;
