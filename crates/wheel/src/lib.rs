//! placeholder
#![no_std]
#![deny(unsafe_code)]

mod exact;
mod list;
mod node;
mod shape;
mod slots;
mod tick;
mod timers;
mod wheel;

pub use exact::{
    ExactExpired, ExactLinks, ExactNode, ExactNodes, ExactQueue, ExactTimers, Expiry, IntrusiveExactQueue,
};
pub use list::{NodeRef, Nodes, Pinned};
pub use node::{Links, Node, WheelNodes};
pub use shape::{Placement, Precision, Shape};
pub use slots::{Full, Index, Key, Slot, Slots, StaleKey};
pub use tick::Tick;
pub use timers::{Expired, Timers};
pub use wheel::{Armed, IntrusiveWheel, Wheel};
