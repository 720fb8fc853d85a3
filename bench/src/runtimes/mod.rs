//! Whole timer runtimes side by side: their workers, their threads' wake-ups, what blocks them.
//!
//! Each peer is a program of ours in `peers/`, in the language of the runtime. It runs one measure and
//! prints JSON lines; `peers/rust/src/output.rs` lists them. Everything that can be taken from outside of a
//! process is taken here, so that it is the same for every language: CPU time, wake-ups, percentiles.
//!
//! - `measures`: what is measured: arguments for the programs, and columns of the table;
//! - `programs`: the peers; `build`: how each becomes a command, or why it cannot be had;
//! - `child`: one run of one program; `usage`: CPU time and wake-ups of it;
//! - `report`: rounds in, a table or JSON out; `raw`: every sample, in a file.
//!
//! Deliberately absent: pinning and other preparation of the machine.

pub mod build;
pub mod child;
pub mod measures;
pub mod programs;
pub mod raw;
pub mod report;
pub mod usage;
