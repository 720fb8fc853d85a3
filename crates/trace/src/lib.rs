//! Events of real Linux kernels, and the explanation of who disturbed which CPU.
#![doc = ""]

mod finding;
mod kernel;

pub use finding::{Evidence, Finding, Severity};
pub use kernel::{KernelRelease, TimerModel};
