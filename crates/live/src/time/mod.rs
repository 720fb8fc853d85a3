//! Time for futures: sleeps, timeouts, periods, a queue of deadlines. Names and behaviour are tokio's.
//!
//! Everything here belongs to the machine that is current where it is made ([`Machine::enter`],
//! [`Machine::install_default`]), and runs in any executor. A task may move between threads, and be dropped
//! on any of them, whenever it likes: the timer stays where it was armed.
//!
//! ```
//! use quietcore::Machine;
//! use quietcore::time::{Duration, Instant, sleep};
//!
//! let machine = Machine::start()?;
//! let _entered = machine.enter();
//! let started = Instant::now();
//! futures_executor::block_on(sleep(Duration::from_millis(2)));
//! assert!(started.elapsed() >= Duration::from_millis(2)); // never early
//! # machine.shutdown();
//! # Ok::<(), quietcore::StartError>(())
//! ```
//!
//! Where what is decided: `instant.rs` the clock's values; `entry.rs` arming and letting go of a future's
//! timer; `sleep.rs`, `timeout.rs`, `interval.rs`, `missed.rs`, `delay_queue.rs`, `stream.rs` what is built
//! on it.
//!
//! Deviations from tokio: an [`Interval`] skips the ticks it missed unless told otherwise; a future's
//! [`Precision`] can be chosen; arithmetic of [`Instant`] saturates. Not here: pausing time.
//!
//! [`Machine::enter`]: crate::Machine::enter
//! [`Machine::install_default`]: crate::Machine::install_default

mod budget;
pub mod delay_queue;
mod entry;
pub mod error;
mod instant;
mod interval;
mod missed;
mod sleep;
mod stream;
mod timeout;

pub use crate::Precision;
pub use core::time::Duration;
pub use delay_queue::DelayQueue;
pub use instant::Instant;
pub use interval::{Interval, interval, interval_at};
pub use missed::MissedTickBehavior;
pub use sleep::{Sleep, sleep, sleep_until};
pub use stream::{IntervalStream, StreamExt, Throttle, TimeoutStream};
pub use timeout::{FutureExt, Timeout, timeout, timeout_at};
