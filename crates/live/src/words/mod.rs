//! The words that threads share without a lock, one file each, and the two small protocols on top of them.
//!
//! All of this exists under `--cfg loom`, too, and nothing else of the crate does: `tests/loom.rs` includes
//! this folder and explores the words as they are, on loom's atomics. A model stands beside its word
//! (`park/models.rs`, ...).
//!
//! ```text
//! sync.rs        atomics, cells: core's or loom's    futex.rs       sleeping on a word
//! lock.rs        the lock of the bases               present_cpu.rs the CPU that a thread is on
//! park.rs        going to sleep without missing a wake-up
//! slot_owner.rs  which thread drives a CPU
//! run_queue.rs   the doorbell, the gate, what runs   work.rs        work waits, runs, or both
//! run_wait.rs    waiting for the end of a run        waker_cell.rs  one waker between two threads
//! stall_record.rs what a lane runs, for reports    cycle_clock.rs the time by the cycle counter
//! ksoftirqd.rs   asking a thread for a look, which waits otherwise
//! ```

pub(crate) mod cycle_clock;
pub(crate) mod futex;
pub(crate) mod ksoftirqd;
pub(crate) mod lock;
pub(crate) mod park;
pub(crate) mod present_cpu;
pub(crate) mod run_queue;
pub(crate) mod run_wait;
pub(crate) mod slot_owner;
pub(crate) mod stall_record;
pub(crate) mod sync;
pub(crate) mod waker_cell;
pub(crate) mod work;
