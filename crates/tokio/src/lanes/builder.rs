//! Settings of lanes that host runtimes, and starting their threads.
//!
//! Either all threads play their CPUs or none is left: whoever starts them waits for each one's word.

use super::Lanes;
use super::error::StartError;
use super::handle::Handle;
use super::host::Seat;
use core::fmt;
use quietcore_live::{CpuSet, Machine, lane::Pinning};
use std::sync::{Arc, mpsc};
use std::thread;
use tokio::runtime as real;

/// As many polls between two looks at the driver: with polls of 50 us less than a tick.
const EVENT_INTERVAL: u32 = 16;

trait ChangesBuilder: Fn(&mut real::Builder) + Send + Sync {}

impl<F: Fn(&mut real::Builder) + Send + Sync> ChangesBuilder for F {}

/// What changes a builder of tokio.
#[derive(Clone)]
pub(super) struct Change(Option<Arc<dyn ChangesBuilder>>);

impl Change {
    pub(super) fn apply(&self, builder: &mut real::Builder) {
        if let Some(change) = &self.0 {
            change(builder);
        }
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_some() { "Change" } else { "no change" })
    }
}

/// Of each lane.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) pinning: Pinning,
    pub(super) event_interval: u32,
    pub(super) change: Change,
}

/// Makes [`Lanes`].
///
/// ```
/// use quietcore::tokio::lanes::Lanes;
/// use quietcore::{Machine, lane::Pinning};
///
/// let machine = Machine::builder().automatic_lanes().start()?;
/// let lanes = Lanes::builder(machine).pinning(Pinning::Never).event_interval(8).start()?;
/// assert_eq!(lanes.cpus(), *machine.lanes());
/// # lanes.shutdown();
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it starts nothing by itself"]
pub struct Builder {
    machine: &'static Machine,
    cpus: Option<CpuSet>,
    settings: Settings,
}

impl Builder {
    pub(super) fn new(machine: &'static Machine) -> Self {
        let (pinning, change) = (Pinning::default(), Change(None));
        let settings = Settings { pinning, event_interval: EVENT_INTERVAL, change };
        Self { machine, cpus: None, settings }
    }

    /// Which lanes get a runtime, of those that the machine has. Default: all.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// let lanes = Lanes::builder(machine).cpus("0".parse()?).start()?;
    /// assert_eq!(lanes.cpus().to_string(), "0");
    /// # lanes.shutdown();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cpus(mut self, cpus: CpuSet) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Whether the lanes' threads stay on their CPUs. Threads for blocking work do not. Default: if no other
    /// control group shares these CPUs.
    ///
    /// ```
    /// # use quietcore::tokio::lanes::Lanes;
    /// # use quietcore::{Machine, lane::Pinning};
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// let builder = Lanes::builder(machine).pinning(Pinning::Always);
    /// # let _ = builder;
    /// # machine.shutdown();
    /// # Ok::<(), quietcore::StartError>(())
    /// ```
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
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// let builder = Lanes::builder(machine).event_interval(1);
    /// # let _ = builder;
    /// # machine.shutdown();
    /// # Ok::<(), quietcore::StartError>(())
    /// ```
    #[track_caller]
    pub fn event_interval(mut self, polls: u32) -> Self {
        assert!(polls > 0, "a lane has to look at its driver");
        self.settings.event_interval = polls;
        self
    }

    /// Everything else that tokio's builder can be told; called once per lane, on its thread.
    /// `on_thread_start`, `on_thread_park` and `on_thread_unpark` are replaced.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// let builder = Lanes::builder(machine).configure(|inner| {
    ///     inner.max_blocking_threads(4);
    /// });
    /// # let _ = builder;
    /// # machine.shutdown();
    /// # Ok::<(), quietcore::StartError>(())
    /// ```
    pub fn configure(mut self, change: impl Fn(&mut real::Builder) + Send + Sync + 'static) -> Self {
        self.settings.change = Change(Some(Arc::new(change)));
        self
    }

    /// Starts the threads; returns when all of them play their CPUs.
    ///
    /// # Errors
    /// See [`StartError`]; then none of them is left.
    ///
    /// ```
    /// # use quietcore::Machine;
    /// # use quietcore::tokio::lanes::Lanes;
    /// # let machine = Machine::builder().automatic_lanes().start()?;
    /// let lanes = Lanes::builder(machine).start()?;
    /// # lanes.shutdown();
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(self) -> Result<Lanes, StartError> {
        let Self { machine, cpus, settings } = self;
        let all = machine.lanes();
        let cpus = cpus.map_or_else(|| all.clone(), |cpus| cpus.intersection(all));
        if cpus.is_empty() {
            return Err(StartError::NoLanes);
        }
        let (started, results) = mpsc::channel();
        let (mut posts, mut threads) = (Vec::new(), Vec::new());
        let mut failed = None;
        for cpu in cpus.iter() {
            let (post, orders) = tokio::sync::mpsc::unbounded_channel();
            let seat = Seat { machine, cpu, settings: settings.clone(), orders, started: started.clone() };
            match thread::Builder::new().name(format!("quietcore-{cpu}")).spawn(|| seat.serve()) {
                Ok(thread) => threads.push(thread),
                Err(error) => failed = Some(StartError::System { cpu, what: "start a thread", error }),
            }
            posts.push((cpu, post));
        }
        drop(started);
        let lanes = Lanes { handle: Handle::new(machine, posts), threads };
        // Each says once how it went; all are waited for, so that dropping `lanes` ends them in order.
        let failed = results.iter().filter_map(Result::err).last().or(failed);
        failed.map_or(Ok(lanes), Err)
    }
}
