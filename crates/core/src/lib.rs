//! The core of quietcore: which CPU expires a timer, and when. It decides; a world acts.
//!
//! A [`Machine`] is CPUs with timer bases, the hierarchy in which awake CPUs look after idle ones
//! ([`tmigr`]), and who is isolated ([`place`]). Nothing here reads a clock, starts a thread, sleeps, logs or
//! draws randomness: the moment is an argument of every call, the lock type is the world's ([`RawLock`]), and
//! what the world must do comes back in [`Actions`]. Timers that are due are handed out one at a time, with
//! no lock held while they run.
//!
//! ```
//! use quietcore_core::topology::Topology;
//! use quietcore_core::{Actions, Context, CpuId, IdleDecision, Machine, Nanos, SequentialLock, Settings};
//! use quietcore_core::{TimerOptions, Turn};
//!
//! // Two CPUs. The first arms a timer and goes idle: the second, which is awake, will see to it.
//! let mut machine: Machine<SequentialLock, &str> =
//!     Machine::new(Topology::builder(2).build()?, Settings::default())?;
//! let (first, second) = (CpuId::new(0)?, CpuId::new(1)?);
//! let mut actions = Actions::new(2);
//! machine.online(first, Nanos(0), &mut actions)?;
//! machine.online(second, Nanos(0), &mut actions)?;
//! let timer = machine.add_timer(TimerOptions::new(), "retry");
//! machine.arm(timer, Nanos(20_000_000), Context::on(first, Nanos(0)), &mut actions)?;
//! assert_eq!(machine.enter_idle(first, Nanos(0)), IdleDecision::Sleep { until: None });
//!
//! // The second looks in its tick.
//! let (now, mut turn) = (Nanos(22_000_000), Turn::new(second));
//! assert!(machine.handle_tick(second, now));
//! machine.begin_turn(&mut turn, now);
//! let expired = machine.next_expired(&mut turn, now, &mut actions).expect("it is due");
//! assert_eq!(expired.payload(), "retry");
//! machine.finish(&mut turn, expired, now, &mut actions);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sets of CPUs speak the kernel's text forms:
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
pub mod realtime;
pub mod softirq;
mod sync;
mod time;
pub mod tmigr;
pub mod topology;

pub use actions::Actions;
pub use base::{
    Arm, ArmMode, ArmTarget, BaseId, BaseKind, Cancelled, ExactId, ExactKind, ExactRef, ExactTimer,
    ExpiredTimer, RemoveError, TickKind, TickLength, Timer, TimerId, TimerKind, TimerName, TimerOptions,
    TimerRef, TimerStore,
};
pub use cpu::{CPU_LIMIT, CpuError, CpuId, CpuSet};
pub use lock::{RawLock, SequentialLock};
pub use machine::{
    AnyTimer, ArmRefusal, Armed, At, Context, Counters, CpuControlError, IdleDecision, IsolationReport,
    Machine, MarkOutcome, Patience, Settings, Silence, StallPolicy, Turn,
};
#[cfg(site)]
pub use sync::script;
pub use time::Nanos;

pub use quietcore_wheel::{Expiry, Precision, Tick};
