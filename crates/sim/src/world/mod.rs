//! The world: virtual CPUs that run the core's machine, one event at a time.
//!
//! An event is a moment at which something changes on one CPU: a segment of its time ends, its tick or its
//! alarm goes off, it is kicked, a fault begins. Between events time jumps. A CPU whose segment ends before
//! anything else happens goes straight on, without a turn through the queue: the result is the same.
//!
//! The world is made of layers, each in a folder with its own state. A layer owns the layer below, asks it
//! and gets values back (mostly: what the work costs a CPU); no layer knows the one above. From below:
//!
//! 1. `context.rs` the run: time, plan, costs, the queue of events, figures.
//! 2. `timers/` the core's machine, timers, kicks, locks.
//! 3. `tasks/` CPUs, tasks in their queues, where real-time tasks run.
//! 4. `softirqs/` and `packets/` rounds of handlers, ksoftirqd, transmit queues.
//! 5. `cpus/` what ends with a segment: interrupts, timers, programs, sleep.
//! 6. `events.rs`, `fault.rs`, `setup.rs`, `event_loop.rs`: [`World`], which events arrive at.
//!
//! Invariants: the core decides where timers run, this world only when; every cost is one of the plan's.
//! Absent: memory, caches, frequencies; ticks that stop on busy `nohz_full` CPUs.

mod context;
mod cpu_id;
mod cpus;
mod device;
mod event;
mod event_loop;
mod events;
mod fault;
mod packets;
mod perfetto;
mod setup;
mod softirqs;
mod tasks;
mod timers;
mod why;

pub(crate) use context::RunOptions;
pub(crate) use events::World;
pub(crate) use perfetto::Exporter;
