//! Recording the running kernel, in a tracing instance of our own.
//!
//! What this touches, and nothing else: one directory below tracefs `instances/`, made at the
//! start and removed at the end ([`Recording`] does so when dropped; [`Tracefs::remove_leftovers`]
//! removes what a killed run left). No top-level tracing file and no sysctl is opened for writing.
//!
//! What it costs the machine: switching tracepoints on and off patches kernel code, which
//! interrupts every online CPU, isolated ones included, a few times at both ends; sizing the
//! buffers runs one work item per CPU; each recorded event costs its CPU about 100 to 300 ns.
//! [`OwnDisturbance`] counts what the recording itself shows of that.

mod affinity;
mod disturbance;
mod events;
mod instance;
mod pages;
mod recording;
mod tracefs;

pub use crate::buffer_counts::BufferCounts;
pub use affinity::{go_before_others, run_on};
pub use disturbance::OwnDisturbance;
pub use events::{Tracepoint, recorded_tracepoints, tracepoints};
pub use pages::LiveText;
pub use recording::{BUFFER_KIB_MAX, BufferTrial, Recording};
pub use tracefs::{LiveError, Tracefs};
