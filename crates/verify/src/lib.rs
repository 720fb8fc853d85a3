//! Recordings of Linux kernels, replayed through quietcore's own timer wheel and migration hierarchy.
//!
//! - **Held against the kernel**: [`Verify`] replays every wheel timer and every step of the hierarchy, and
//!   says where the kernel and this project differ ([`Verification`]).
//! - **Asked another way**: [`whatif`] runs the timers of a recording under another policy, with CPUs
//!   excluded from pulling, or with CPUs kept awake.
//!
//! Reading a recording is the work of `quietcore-trace`, its figures those of `quietcore-explain`.

#![forbid(unsafe_code)]

mod base;
mod between;
mod cancels;
mod class;
mod counts;
mod expiries;
mod mismatch;
mod place;
mod replay;
mod runs;
mod starts;
mod swapped;
mod tmigr;
mod verification;
mod verify;
pub mod whatif;
mod wheel;
mod without_flags;

pub use class::ClockClasses;
pub use counts::{CancelCounts, ExpiryClasses, ExpiryCounts, RunCounts, VerifyNotes};
pub use mismatch::{Check, Mismatch};
pub use tmigr::HierarchyCounts;
pub use verification::Verification;
pub use verify::{PENDING_MAX, Verify};
