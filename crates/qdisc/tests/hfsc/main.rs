//! `hfsc` against a reference model, and what it promises.
//!
//! - `agreement`: random trees and scripts, packet for packet the same as the model;
//! - `promises`: guarantees, upper limits and shares, on a simulated link;
//! - `classes`: what a class is given and counts, queues of leaves;
//! - `changes`: classes that come, change and go.
//!
//! `reference` is the model: a list of classes, curves evaluated as functions, linear searches.

mod agreement;
mod changes;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod promises;
mod reference;

use quietcore_qdisc::{ClassId, HfscClass, ServiceCurve};

const MILLISECOND: u64 = 1_000_000;

fn share(rate: u64) -> HfscClass {
    HfscClass { link_share: Some(ServiceCurve::linear(rate)), ..HfscClass::default() }
}

/// The name of the class with this number.
fn name(class: usize) -> ClassId {
    common::id(u16::try_from(class).expect("few classes"))
}
