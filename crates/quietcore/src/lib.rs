//! Timers that scale with threads and survive a blocked thread.
//!
//! ```toml
//! [dependencies]
//! quietcore = "0.1"
//! ```
//!
//! ```
//! use quietcore::{Machine, time};
//! use std::time::Duration;
//!
//! let machine = Machine::start()?; // a helper thread, and timer bases for every CPU
//! machine.install_default()?;
//! time::block_on(time::sleep(Duration::from_millis(5)));
//! # machine.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Arming and cancelling take a lock that belongs to one CPU, so threads do not wait for each other. A timer
//! that is due runs on any thread that is awake, so a stuck thread delays only its own work.
//!
//! The futures of [`time`] have tokio's names and meaning and run in any executor. In a program that uses
//! tokio (feature `macros`), the imports change:
//!
//! ```
//! # #[cfg(feature = "macros")]
//! # {
//! use quietcore::time::{Duration, interval}; // was: tokio::time
//!
//! #[quietcore::main]
//! async fn main() {
//!     let mut every = interval(Duration::from_millis(1));
//!     every.tick().await;
//!     every.tick().await;
//! }
//! # main();
//! # }
//! ```
//!
//! Tests need no real time: [`time::pause`] stops it, and it jumps to the next timer when no thread has
//! anything to do.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`time`], [`virtual_time`] | futures: `sleep`, `timeout`, `interval`, `DelayQueue`; paused time |
//! | [`timer`] | callbacks: where they may run, how exact they are |
//! | [`lane`], [`task`], [`softirq`] | threads that drive a CPU, and what runs on them besides timers |
//! | [`isolation`], [`stall`], [`metrics`] | quiet CPUs, threads that got stuck, what was counted |
//! | `tokio` | runtimes of tokio with a machine (feature `tokio`; `macros` for the attributes) |
//! | `hyper`, `quinn`, `embassy` | what these projects wait with (a feature each, of the same name) |
//! | `net`, `qdisc` | packets: devices with transmit queues, and their disciplines (feature `net`) |
//! | `sim` | the same core on a simulated machine (feature `sim`) |
//!
//! The parts without std are crates of their own: `quietcore-wheel`, `quietcore-core`, `quietcore-qdisc`.

#[cfg(feature = "embassy")]
pub use quietcore_adapters::embassy;
#[cfg(feature = "hyper")]
pub use quietcore_adapters::hyper;
#[cfg(feature = "quinn")]
pub use quietcore_adapters::quinn;
#[doc(inline)]
pub use quietcore_live::{
    ArmError, Cpu, CpuError, CpuId, CpuSet, LaneThreads, Machine, Nanos, Precision, StartError, TimerHandle,
    TimerOptions,
};
#[doc(inline)]
pub use quietcore_live::{isolation, lane, metrics, softirq, stall, task, timer, virtual_time};
#[cfg(feature = "macros")]
pub use quietcore_macros::main;
#[cfg(feature = "macros")]
pub use quietcore_macros::test;
#[cfg(feature = "net")]
pub use quietcore_net as net;
#[cfg(feature = "net")]
pub use quietcore_qdisc as qdisc;
#[cfg(feature = "sim")]
pub use quietcore_sim as sim;
#[cfg(feature = "tokio")]
pub use quietcore_tokio as tokio;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use quietcore_tokio::attributes;

/// Making and entering a [`Machine`]: types that a program seldom has to name.
pub mod machine {
    pub use quietcore_live::{EnterGuard, InstallError, MachineBuilder, OnPanic};
}

/// Futures that wait, and time that can be paused.
///
/// The names are tokio's, and so is what they do, with one exception that matters: an interval that fell
/// behind skips the ticks it missed (`MissedTickBehavior::Skip`), where tokio's would fire them all at once.
///
/// ```
/// use quietcore::{Machine, time};
/// use std::time::Duration;
///
/// let machine = Machine::builder().virtual_time().start()?;
/// let entered = machine.enter();
/// time::pause();
/// let started = time::Instant::now();
/// time::block_on(time::sleep(Duration::from_secs(3600)));
/// assert_eq!(started.elapsed(), Duration::from_secs(3600));
/// # drop(entered);
/// # machine.shutdown();
/// # Ok::<(), quietcore::StartError>(())
/// ```
pub mod time {
    pub use quietcore_live::time::*;
    pub use quietcore_live::virtual_time::{Hold, TimeError, advance, block_on, hold, pause, resume};
}
