//! Timers that scale with threads and survive a blocked one.
//!
//! Arming and cancelling take a lock that belongs to one CPU, so threads do not wait for each other; and what
//! is due is run by whoever is awake, so a thread that is stuck delays only its own work.
//!
//! ```
//! use quietcore::{Machine, time};
//! use std::time::Duration;
//!
//! let machine = Machine::start()?;
//! machine.install_default()?;
//! time::block_on(async {
//!     time::sleep(Duration::from_millis(5)).await;
//!     let slow = std::future::pending::<()>();
//!     assert!(time::timeout(Duration::from_millis(5), slow).await.is_err());
//! });
//! # machine.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The futures of [`time`] have tokio's names and meaning and run in any executor; one helper thread expires
//! them. In a program that uses tokio, a machine is started once and the imports change:
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
//! Tests need no real time: [`time::pause`] stops it, and it jumps to the next timer when nobody has anything
//! to do, on any number of threads.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`time`] | futures: `sleep`, `timeout`, `interval`, `DelayQueue`; paused time |
//! | `tokio` | runtimes of tokio with a machine (feature `tokio`; `macros` for the attributes) |
//! | `net`, `qdisc` | packets: devices with transmit queues, and their disciplines (feature `net`) |
//! | `sim` | the same core on a simulated machine (feature `sim`) |

#[doc(inline)]
pub use quietcore_live::*;
/// ```
/// use quietcore::time::sleep;
/// use std::time::Duration;
///
/// #[quietcore::main]
/// async fn main() {
///     sleep(Duration::from_millis(1)).await;
/// }
/// ```
#[cfg(feature = "macros")]
pub use quietcore_macros::main;
/// ```
/// use quietcore::time::{Instant, sleep};
/// use std::time::Duration;
///
/// #[quietcore::test(start_paused = true)]
/// async fn an_hour_passes_at_once() {
///     let started = Instant::now();
///     sleep(Duration::from_secs(3600)).await;
///     assert_eq!(started.elapsed(), Duration::from_secs(3600));
/// }
/// ```
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
