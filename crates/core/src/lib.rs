//! The core of quietcore: what every world (runtime, simulator, instrument) shares.
//!
//! Today it holds the two vocabularies that all other crates speak: [`Nanos`] (time) and
//! [`CpuId`] / [`CpuSet`] (processors, with the kernel's own text forms). Nothing here reads a
//! clock, spawns, sleeps, logs or draws randomness.
//!
//! ```
//! use quietcore_core::{CpuId, CpuSet};
//!
//! let isolated: CpuSet = "1-7,9-15".parse()?;
//! assert_eq!(isolated.len(), 14);
//! assert!(!isolated.contains(CpuId::new(8)?));
//! # Ok::<(), quietcore_core::CpuError>(())
//! ```
#![no_std]

extern crate alloc;

mod actions;
mod base;
mod cpu;
mod cpu_text;
mod lock;
mod machine;
pub mod place;
mod sync;
mod time;
pub mod tmigr;
pub mod topology;

pub use actions::Actions;
pub use base::{
    BaseId, BaseKind, ExactId, ExactRef, ExactTimer, Expired, RemoveError, TickLength, Timer, TimerId,
    TimerName, TimerOptions, TimerRef, TimerStore,
};
pub use cpu::{CPU_LIMIT, CpuError, CpuId, CpuSet};
pub use lock::{RawLock, SequentialLock};
pub use machine::{
    AnyExact, AnyTimer, ArmError, Armed, Context, ControlError, Idle, Machine, Mark, Report, Settings, Turn,
};
#[cfg(site)]
pub use sync::script;
pub use time::Nanos;

pub use quietcore_wheel::{Expiry, Precision, Tick};
