//! <!-- The front page is README.md; below it is the map. -->
#![doc = include_str!("../README.md")]
//!
//! # Map
//!
//! - safe, with values and keys: [`Timers`], [`ExactTimers`] in [`Slot`]s; [`SlotKey`], [`StaleKey`],
//!   [`Full`];
//! - caller-owned nodes: [`Wheel`] and [`Node`], [`ExactQueue`] and [`ExactNode`], named by [`NodeRef`];
//! - arithmetic: [`Tick`], [`Shape`], [`Placement`], [`Precision`], [`Expiry`].
//!
//! All `unsafe` code is in one file: the address of a node, and following it.
#![no_std]
#![deny(unsafe_code)]

mod exact;
mod list;
mod node;
mod node_ref;
mod shape;
mod slots;
mod tick;
mod timers;
mod wheel;

pub use exact::{
    ExactExpired, ExactLinks, ExactNode, ExactNodes, ExactQueue, ExactTimers, Expiry, IntrusiveExactQueue,
};
pub use node::{Links, Node, WheelNodes};
pub use node_ref::{NodeRef, Nodes, Pinned, prefetch};
pub use shape::{Placement, Precision, Shape};
pub use slots::{Full, Index, Slot, SlotKey, Slots, StaleKey};
pub use tick::Tick;
pub use timers::{Timers, WheelExpired};
pub use wheel::{IntrusiveWheel, QueueArm, Wheel};
