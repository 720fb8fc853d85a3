//! Lanes that host a runtime of tokio each: what is built on tokio runs on them unchanged.
//!
//! [`Lanes`] starts a thread for every lane of a machine. Each claims its CPU and drives a `current_thread`
//! runtime on it, with I/O and tokio's own time. Timers of this crate that its tasks arm go to the CPU's own
//! bases and expire there, in turns between polls; if the lane is stuck in a task, others run them.
//!
//! ```
//! use quietcore::Machine;
//! use quietcore::time::{Duration, sleep};
//! use quietcore::tokio::lanes::Lanes;
//!
//! let machine = Machine::builder().automatic_lanes().start()?;
//! let lanes = Lanes::start(machine)?;
//! let task = lanes.spawn(|| async {
//!     let here = std::rc::Rc::new(7); // a task stays on its lane, and need not be `Send`
//!     sleep(Duration::from_millis(1)).await;
//!     *here
//! })?;
//! assert_eq!(quietcore::time::block_on(task)?, 7);
//! lanes.shutdown();
//! machine.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No task moves from lane to lane. On a lane `tokio::spawn` and `tokio::task::spawn_local` start tasks on
//! the same lane; [`Handle`] reaches the others. An isolated lane gets a task only when it is named.
//!
//! A task that computes for long holds up its lane: the tasks, not the timers of others. The lane turns when
//! its runtime looks at its driver, every [`event_interval`](Builder::event_interval) polls, so a turn is
//! late by as much as those polls take. What it costs is in docs/reference/tokio-lanes.md.
//!
//! ```text
//! builder.rs  settings and starting     mod.rs   ending               handle.rs      spawning
//! host.rs     the thread of a lane      join.rs  waiting for a task   alarm.rs, descriptor.rs, error.rs
//! ```
//!
//! Not here: a queue that lanes share, priorities among tasks.

mod alarm;
mod builder;
mod descriptor;
mod error;
mod handle;
mod host;
mod join;

pub use builder::Builder;
pub use error::{SpawnError, StartError};
pub use handle::Handle;
pub use host::block_in_place;
pub use join::{JoinError, JoinHandle};

use core::future::Future;
use core::time::Duration;
use host::Order;
use quietcore_live::{CpuId, CpuSet, Machine};
use std::thread;

/// The lanes of a machine, each hosting a runtime. Dropping them is [`shutdown`](Self::shutdown); the machine
/// is not theirs, and goes on.
///
/// ```
/// use quietcore::Machine;
/// use quietcore::tokio::lanes::Lanes;
///
/// let machine = Machine::builder().automatic_lanes().start()?;
/// let lanes = Lanes::start(machine)?;
/// assert_eq!(lanes.run(|| async { 7 })?, 7);
/// lanes.shutdown();
/// machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lanes {
    handle: Handle,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Lanes {
    /// With the default settings.
    ///
    /// # Errors
    /// See [`StartError`].
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// let lanes = Lanes::start(machine)?;
    /// assert!(!lanes.cpus().is_empty());
    /// # lanes.shutdown();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(machine: &'static Machine) -> Result<Self, StartError> {
        Self::builder(machine).start()
    }

    /// For settings.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// let builder = Lanes::builder(machine).event_interval(32);
    /// # let _ = builder;
    /// # machine.shutdown();
    /// # Ok::<(), quietcore::StartError>(())
    /// ```
    pub fn builder(machine: &'static Machine) -> Builder {
        Builder::new(machine)
    }

    /// Their CPUs.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().lanes("0".parse()?).start()?;
    /// # let lanes = Lanes::start(machine)?;
    /// assert_eq!(lanes.cpus().to_string(), "0");
    /// # lanes.shutdown();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cpus(&self) -> CpuSet {
        self.handle.cpus()
    }

    /// What starts tasks, for other threads and for tasks.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// # let lanes = Lanes::start(machine)?;
    /// let handle = lanes.handle().clone();
    /// let spawn = move || handle.spawn(|| async { 7 });
    /// std::thread::spawn(spawn).join().expect("it does not panic")?;
    /// # lanes.shutdown();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// See [`Handle::spawn`].
    ///
    /// # Errors
    /// When every lane is isolated.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// # let lanes = Lanes::start(machine)?;
    /// let task = lanes.spawn(|| async { 7 })?;
    /// # let _ = task;
    /// # lanes.shutdown();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn<F>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(make)
    }

    /// See [`Handle::spawn_on`].
    ///
    /// # Errors
    /// When no lane of these is on that CPU.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().lanes("0".parse()?).start()?;
    /// # let lanes = Lanes::start(machine)?;
    /// let task = lanes.spawn_on(quietcore::CpuId::new(0)?, || async { 7 })?;
    /// # let _ = task;
    /// # lanes.shutdown();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn_on<F>(
        &self,
        cpu: CpuId,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn_on(cpu, make)
    }

    /// See [`Handle::run`].
    ///
    /// # Errors
    /// When every lane is isolated.
    ///
    /// # Panics
    /// When the future panics, and when called on a lane.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// # let lanes = Lanes::start(machine)?;
    /// assert_eq!(lanes.run(|| async { 7 })?, 7);
    /// # lanes.shutdown();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn run<F>(&self, make: impl FnOnce() -> F + Send + 'static) -> Result<F::Output, SpawnError>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        self.handle.run(make)
    }

    /// Ends all lanes: tasks are dropped where they wait, blocking work is waited for, and the threads end.
    /// A task that computes is waited for until it waits.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// let lanes = Lanes::start(machine)?;
    /// lanes.shutdown();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(self) {
        drop(self);
    }

    /// The same, with blocking work waited for up to `patience` per lane.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// let lanes = Lanes::start(machine)?;
    /// lanes.shutdown_timeout(core::time::Duration::from_secs(1));
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown_timeout(mut self, patience: Duration) {
        self.end(Some(patience));
    }

    fn end(&mut self, patience: Option<Duration>) {
        self.handle.order_all(|| Order::End(patience));
        let own = thread::current().id();
        // A lane whose task drops the lanes ends after that task.
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != own) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.end(None);
    }
}
