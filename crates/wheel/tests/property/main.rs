//! The wheel against a sorted list, through both interfaces.
//!
//! - `random`: random scripts on several shapes, with clocks near every place where a counter can wrap;
//! - `exact`: the exact queue, all of that;
//! - `exhaustive`: every script of four steps on a wheel of 2 levels of 4 buckets, from every phase;
//! - `keys`: stale keys, full storages, storages used before;
//! - `precision`: how late each precision is.
//!
//! `oracle` is the sorted list, `subject` the two interfaces as one, `script` plays a script on both.

#![allow(unsafe_code, reason = "caller-owned nodes are named by address: see `subject`")]

mod exact;
mod exhaustive;
mod hints;
mod keys;
mod oracle;
mod precision;
mod random;
mod script;
mod subject;
