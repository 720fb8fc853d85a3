//! Runtimes of tokio whose time is a machine's.
//!
//! `quietcore::time` works on any runtime whose threads have a current machine. What is here saves entering it
//! on each of them, and lets time be paused: [`runtime::Builder`] has the names of tokio's.
//!
//! ```
//! use quietcore::time;
//! use std::time::Duration;
//!
//! let runtime = quietcore::tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
//! runtime.block_on(async {
//!     tokio::spawn(time::sleep(Duration::from_millis(1))).await.expect("it does not panic");
//! });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Timers of tokio itself go by real time, always.

pub mod runtime;
mod workers;
