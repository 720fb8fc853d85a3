//! The layer above softirqs: what a CPU does with its time, segment by segment.
//!
//! `layer.rs` what is topmost, and what ends with a segment; `interrupt.rs` interrupts that were handled;
//! `timer_softirq.rs` TIMER; `programs.rs` tasks; `script.rs` tasks whose steps are given; `idle.rs` sleeping
//! and waking; `sentinel.rs` lanes none of which turns.

mod idle;
mod interrupt;
mod layer;
mod programs;
mod script;
mod sentinel;
mod state;
mod timer_softirq;

pub(crate) use layer::CpuLayer;
