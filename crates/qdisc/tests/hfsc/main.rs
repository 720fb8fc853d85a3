//! `hfsc` against a reference model, and what it promises.
//!
//! - `agreement`: random trees and scripts, packet for packet the same as the model;
//! - `promises`: guarantees, upper limits and shares, on a simulated link;
//! - `classes`: what a class is given and counts, queues of leaves;
//! - `changes`: classes that come, change and go.
//!
//! `reference` is the model: a list of classes, curves evaluated as functions, linear searches. `packet` is a
//! packet that knows its class.

mod agreement;
mod changes;
mod classes;
mod packet;
mod promises;
mod reference;
