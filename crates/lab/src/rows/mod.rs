//! The rows of the lab: one file each, and a line of [`ROWS`].

pub(crate) mod blocked;
mod cyclictest;
pub(crate) mod dbench;
pub(crate) mod enqueue;
pub(crate) mod idle;
mod isolated;
mod mq_netem;
mod oslat;

use crate::plan::RowPlan;

/// All rows, in the order in which they run.
pub const ROWS: &[&RowPlan] = &[
    &mq_netem::PLAN,
    &oslat::PLAN,
    &enqueue::PLAN,
    &dbench::PLAN,
    &idle::PLAN,
    &cyclictest::PLAN,
    &blocked::PLAN,
    &isolated::PLAN,
];
