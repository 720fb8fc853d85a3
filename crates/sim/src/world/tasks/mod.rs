//! The layer above timers: CPUs, the tasks in their queues, and where real-time tasks run.
//!
//! `task.rs` a task; `cpu.rs` what a CPU has; `softirqs.rs` its softirqs, as data; `threads.rs` real-time
//! threads, as data; `layer.rs` queues of tasks and waking; `realtime.rs` placing, pushing and pulling.

mod cpu;
mod layer;
mod realtime;
mod softirqs;
mod task;
mod threads;

pub(crate) use cpu::{ENDLESS, InterruptState, RunLevel, SimCpu, SoftirqState};
pub(crate) use layer::TaskLayer;
pub(crate) use softirqs::{Arrival, DeviceWork};
pub(crate) use task::{NOT_DUE, NextPart, Program, SimTask, SimTaskState};
pub(crate) use threads::CyclicState;
