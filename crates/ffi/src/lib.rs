//! The C interface of quietcore: `include/quietcore.h` is generated from this crate.
//!
//! Functions are `qc_OBJECT_VERB`. Objects of the caller (timers) are structures of a fixed size; all others
//! are pointers. Every fallible function returns a [`qc_result`](result::qc_result): 0 and more are answers,
//! negative numbers are errors, and then outputs are untouched. Pointers are checked for NULL. No panic of
//! this library leaves it.
//!
//! ```c
//! static void hello(void *argument, const qc_run *run) { puts("hello"); }
//!
//! qc_timer timer = QC_TIMER_INIT;
//! qc_timer_init(&timer, NULL, hello, NULL, QC_TIMER_TICK);
//! qc_timer_arm_after(&timer, 250000000);
//! ...
//! qc_timer_cancel_sync(&timer);
//! ```
//!
//! Where what is: `result.rs` errors; `machine.rs` machines, `stats.rs` what they count, `texts.rs` what they
//! say; `timer.rs` timers, `timers.rs` all of them at once; `work.rs` work; `cpu.rs` lanes. The comments of
//! functions are written for C programmers and become the header's. Programs in C that use it: `examples/c`;
//! tests in C: `tests/c`. Not here: futures.
//! Invariant: what the header promises about sizes and numbers never changes (`tests/header.rs` compares it).

pub mod cpu;
pub mod machine;
pub mod result;
pub mod stats;
pub mod texts;
pub mod timer;
pub mod timers;
pub mod work;
