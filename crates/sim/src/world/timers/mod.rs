//! The lowest layer: the core's machine, the timers of the loads, and what touching them costs.
//!
//! `timer.rs` a timer; `lock_costs.rs` locks as queues; `layer.rs` arming and cancelling; `expiry.rs` what is
//! counted when one runs; `kicks.rs` what the machine asks for; `machine.rs` what it is told; `raise.rs`
//! timers that are armed on an isolated CPU from elsewhere.

mod expiry;
mod kicks;
mod layer;
mod lock_costs;
mod machine;
mod raise;
mod timer;

pub(crate) use layer::TimerLayer;
pub(crate) use lock_costs::{LockCost, LockUse, Locks};
#[cfg(test)]
pub(crate) use timer::TimerKey;
pub(crate) use timer::{SimTimer, TimerRole};
