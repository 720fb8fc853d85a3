//! Random early detection, as far as `sfq` has it.

pub(crate) mod average;
pub(crate) mod typed;

pub use average::{IdleDamping, RedCurve};
