//! The lanes of a machine that host runtimes: settings, starting and ending their threads.
//!
//! Invariant: either every thread drives its CPU or none is left. The caller of
//! [`start`](LanesBuilder::start) waits for a result from each thread, and ends all if one failed.

use super::error::LanesStartError;
use super::handle::LanesHandle;
use super::host::{LaneOrder, LaneThread};
use super::settings::{BuilderChange, LaneSettings};
use core::ops::Deref;
use core::time::Duration;
use quietcore_live::lane::Pinning;
use quietcore_live::{CpuSet, Machine};
use std::sync::mpsc;
use std::thread;
use tokio::runtime as real;

/// The lanes of a machine, each hosting a runtime; tasks are started by what its [`LanesHandle`] can do.
/// Dropping them is [`shutdown`](Self::shutdown); the machine is not theirs, and goes on.
#[derive(Debug)]
pub struct Lanes {
    handle: LanesHandle,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Lanes {
    /// With the default settings.
    ///
    /// # Errors
    /// See [`LanesStartError`].
    pub fn start(machine: &'static Machine) -> Result<Self, LanesStartError> {
        Self::builder(machine).start()
    }

    /// For settings.
    pub fn builder(machine: &'static Machine) -> LanesBuilder {
        LanesBuilder::new(machine)
    }

    /// What starts tasks, for other threads and for tasks.
    #[must_use]
    pub const fn handle(&self) -> &LanesHandle {
        &self.handle
    }

    /// Ends all lanes: tasks are dropped where they wait, blocking work is waited for, and the threads end.
    /// A task that computes is waited for until it waits.
    pub fn shutdown(self) {
        drop(self);
    }

    /// The same, with blocking work waited for up to `patience` per lane.
    pub fn shutdown_timeout(mut self, patience: Duration) {
        self.end(Some(patience));
    }

    fn end(&mut self, patience: Option<Duration>) {
        self.handle.order_all(|| LaneOrder::End(patience));
        let own = thread::current().id();
        // A lane whose task drops the lanes ends after that task.
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != own) {
            // An error is a panic, which was printed.
            let _ = thread.join();
        }
    }
}

impl Deref for Lanes {
    type Target = LanesHandle;

    fn deref(&self) -> &LanesHandle {
        &self.handle
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.end(None);
    }
}

/// Makes [`Lanes`].
#[derive(Clone, Debug)]
#[must_use = "it starts nothing by itself"]
pub struct LanesBuilder {
    machine: &'static Machine,
    cpus: Option<CpuSet>,
    settings: LaneSettings,
}

impl LanesBuilder {
    fn new(machine: &'static Machine) -> Self {
        Self { machine, cpus: None, settings: LaneSettings::default() }
    }

    /// Which lanes get a runtime, of those that the machine has. Default: all.
    pub fn cpus(mut self, cpus: CpuSet) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Whether the lanes' threads stay on their CPUs. Threads for blocking work do not. Default: if no other
    /// control group shares these CPUs.
    pub fn pinning(mut self, pinning: Pinning) -> Self {
        self.settings.pinning = pinning;
        self
    }

    /// After how many polls a lane that does not wait looks at its driver, and turns if it is time. The
    /// higher, the less looking costs, and the later timers are on a lane whose polls are long. Default 16,
    /// where tokio's own is 61.
    ///
    /// # Panics
    /// When `polls` is 0.
    #[track_caller]
    pub fn event_interval(mut self, polls: u32) -> Self {
        assert!(polls > 0, "a lane has to look at its driver");
        self.settings.event_interval = polls;
        self
    }

    /// Everything else that tokio's builder can set; called once per lane, on its thread.
    /// `on_thread_start`, `on_thread_park` and `on_thread_unpark` are replaced.
    pub fn configure(mut self, change: impl Fn(&mut real::Builder) + Send + Sync + 'static) -> Self {
        self.settings.change = BuilderChange::new(change);
        self
    }

    /// Starts the threads; returns when all of them drive their CPUs.
    ///
    /// # Errors
    /// See [`LanesStartError`]; then none of them is left.
    pub fn start(self) -> Result<Lanes, LanesStartError> {
        let Self { machine, cpus, settings } = self;
        let all = machine.lanes();
        let cpus = cpus.map_or_else(|| all.clone(), |cpus| cpus.intersection(all));
        if cpus.is_empty() {
            return Err(LanesStartError::NoLanes);
        }
        let (started, results) = mpsc::channel();
        let (mut posts, mut threads) = (Vec::new(), Vec::new());
        let mut failed = None;
        for cpu in cpus.iter() {
            let (post, orders) = tokio::sync::mpsc::unbounded_channel();
            let lane =
                LaneThread { machine, cpu, settings: settings.clone(), orders, started: started.clone() };
            match thread::Builder::new().name(format!("quietcore-{cpu}")).spawn(|| lane.drive()) {
                Ok(thread) => threads.push(thread),
                Err(error) => failed = Some(LanesStartError::System { cpu, what: "start a thread", error }),
            }
            posts.push((cpu, post));
        }
        drop(started);
        let lanes = Lanes { handle: LanesHandle::new(machine, posts), threads };
        // Each thread sends one result. All are waited for, so that dropping `lanes` ends them in order.
        let failed = results.iter().filter_map(Result::err).last().or(failed);
        failed.map_or(Ok(lanes), Err)
    }
}
