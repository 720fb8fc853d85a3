//! The core of quietcore: which CPU expires a timer, and when. It decides; a world acts.
//!
//! A [`Machine`] is CPUs with timer bases, the hierarchy in which awake CPUs look after idle ones
//! ([`tmigr`]), and who is isolated ([`place`]). Nothing here reads a clock, starts a thread, sleeps, logs or
//! draws randomness: the moment is an argument of every call, the lock type is the world's ([`RawLock`]), and
//! what the world must do comes back in [`Actions`]. Timers that are due are handed out one at a time, with
//! no lock held while they run. [`Machine`] says in which order its methods are called, with an example.
#![no_std]

extern crate alloc;

mod actions;
mod base;
mod context;
mod cpu;
mod cpu_text;
pub mod lane;
mod lock;
mod machine;
pub mod place;
pub mod realtime;
pub mod run_queue;
pub mod softirq;
mod sync;
mod time;
pub mod tmigr;
pub mod topology;

pub use actions::Actions;
pub use base::{
    Arm, ArmMode, ArmOfMany, ArmTarget, BaseId, BaseKind, Cancelled, ExactId, ExactKind, ExactRef,
    ExactTimer, ExpiredTimer, RemoveError, TickKind, TickLength, Timer, TimerId, TimerKind, TimerName,
    TimerOptions, TimerRef,
};
pub use context::Context;
pub use cpu::{CPU_LIMIT, CpuError, CpuId, CpuSet};
pub use lock::{RawLock, SequentialLock};
pub use machine::{
    AnyTimer, ArmFollowUp, ArmRefusal, Armed, At, Counters, CpuControlError, IdleDecision, IsolationReport,
    Machine, MarkOutcome, Patience, Settings, Silence, StallPolicy, Turn, TurnBudget,
};
#[cfg(site)]
pub use sync::script;
pub use time::Nanos;

pub use quietcore_wheel::{Expiry, Precision, Tick};
