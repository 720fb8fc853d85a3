//! What things cost on this machine, for the simulator.
//!
//! Every cost is the median of repeats, with the smallest and largest beside it. What a repeat is made of is
//! chosen so that a thread that loses its CPU spoils one repeat and not the median. No cost is derived from a
//! figure that the simulator is to show. `core.rs` times the core on one thread, `sync.rs` what needs two.

mod core;
mod repeats;
mod sync;
mod table;

pub use table::{Calibration, calibrate};
