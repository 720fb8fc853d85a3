//! A runtime of tokio on whose threads a machine is the current one.
//!
//! Decides which machine that is: the one that was given, else the current one of the thread that builds,
//! else one of the runtime's own, which is shut down with it. Without `enable_time` or `enable_all` there is
//! none. Not here: how a runtime takes part in paused time (`workers.rs`).

use super::workers::{Flavor, Workers};
use core::future::Future;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;
use quietcore_live::{Machine, virtual_time};
use std::io;
use std::sync::Arc;
use tokio::runtime as real;
use tokio::task::JoinHandle;

/// Makes a [`Runtime`].
#[derive(Debug)]
pub struct Builder {
    inner: real::Builder,
    flavor: Flavor,
    worker_threads: Option<usize>,
    machine: Option<&'static Machine>,
    time: RuntimeTime,
}

/// What time the runtime has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RuntimeTime {
    is_enabled: bool,
    /// It can be paused.
    is_virtual: bool,
    starts_paused: bool,
}

impl Builder {
    /// Everything runs on the threads that call [`Runtime::block_on`].
    #[must_use]
    pub fn new_current_thread() -> Self {
        Self::new(real::Builder::new_current_thread(), Flavor::CurrentThread)
    }

    /// Tasks run on threads of the runtime, as many as there are CPUs.
    #[must_use]
    pub fn new_multi_thread() -> Self {
        Self::new(real::Builder::new_multi_thread(), Flavor::MultiThread)
    }

    fn new(inner: real::Builder, flavor: Flavor) -> Self {
        let time = RuntimeTime { is_enabled: false, is_virtual: false, starts_paused: false };
        Self { inner, flavor, worker_threads: None, machine: None, time }
    }

    /// How many threads run tasks; at least one. Without effect on a `current_thread` runtime.
    ///
    /// # Panics
    /// When `count` is 0.
    #[track_caller]
    pub fn worker_threads(&mut self, count: usize) -> &mut Self {
        assert!(count > 0, "a runtime needs a worker thread");
        self.worker_threads = Some(count);
        self
    }

    /// Gives the runtime a name, for what tokio shows of it.
    pub fn name(&mut self, name: impl Into<String>) -> &mut Self {
        let _ = self.inner.name(name);
        self
    }

    /// Enables I/O and time, both this crate's and tokio's own.
    pub fn enable_all(&mut self) -> &mut Self {
        let _ = self.inner.enable_all();
        self.enable_time()
    }

    /// Makes a machine the current one on all threads of the runtime.
    pub fn enable_time(&mut self) -> &mut Self {
        self.time.is_enabled = true;
        self
    }

    /// The machine. Default: the current one of the thread that builds, else one of the runtime's own.
    pub fn machine(&mut self, machine: &'static Machine) -> &mut Self {
        self.machine = Some(machine);
        self
    }

    /// Gives the runtime a machine of its own, whose time can be
    /// [paused](quietcore_live::virtual_time::pause), unless one is [given](Self::machine).
    pub fn virtual_time(&mut self) -> &mut Self {
        self.time.is_virtual = true;
        self
    }

    /// Whether time is paused from the start; if so, it [can be](Self::virtual_time).
    pub fn start_paused(&mut self, starts_paused: bool) -> &mut Self {
        self.time.starts_paused = starts_paused;
        self.time.is_virtual |= starts_paused;
        self
    }

    /// Everything else that tokio's builder can set. `on_thread_start` is replaced, and if time can be
    /// paused also `on_thread_park`, `on_thread_unpark`, `event_interval` and the number of workers.
    pub fn configure(&mut self, change: impl FnOnce(&mut real::Builder)) -> &mut Self {
        change(&mut self.inner);
        self
    }

    /// Builds the runtime, and starts its machine if it is to have one of its own.
    ///
    /// # Errors
    /// When the system refuses a thread, a timer or what tokio needs; or when time is to start paused on a
    /// machine whose time cannot be paused.
    pub fn build(&mut self) -> io::Result<Runtime> {
        let (machine, own) = if self.time.is_enabled { self.choose()? } else { (None, None) };
        if let (Some(machine), true) = (machine, self.time.starts_paused) {
            machine.pause().map_err(io::Error::other)?;
        }
        if let Some(machine) = machine {
            // The thread is the runtime's from its start to its end, and so is what is current on it.
            let _ = self.inner.on_thread_start(move || core::mem::forget(machine.enter()));
        }
        let mut count = self.worker_threads;
        let workers = machine.filter(|machine| machine.has_virtual_time()).map(|machine| {
            let cpus = || std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
            let workers = Workers::new(machine, self.flavor, *count.get_or_insert_with(cpus));
            workers.hook(&mut self.inner);
            workers
        });
        if let Some(count) = count {
            let _ = self.inner.worker_threads(count);
        }
        let inner = self.inner.build()?;
        let workers = workers.map(|workers| Attached::new(workers, &inner));
        Ok(Runtime { inner, workers, machine, own })
    }

    /// The machine, and what shuts it down if it is the runtime's own.
    fn choose(&self) -> io::Result<(Option<&'static Machine>, Option<OwnMachine>)> {
        let given = self.machine.or_else(|| Machine::try_current().filter(|_| !self.time.is_virtual));
        if given.is_some() {
            return Ok((given, None));
        }
        let builder = Machine::builder();
        let builder = if self.time.is_virtual { builder.virtual_time() } else { builder };
        let machine = builder.start().map_err(io::Error::other)?;
        Ok((Some(machine), Some(OwnMachine(machine))))
    }
}

/// Shuts the runtime's own machine down.
#[derive(Debug)]
struct OwnMachine(&'static Machine);

impl Drop for OwnMachine {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

/// A runtime takes part in time until it is shut down.
#[derive(Debug)]
struct Attached(Arc<Workers>);

impl Attached {
    fn new(workers: Arc<Workers>, runtime: &real::Runtime) -> Self {
        workers.attach(runtime);
        Self(workers)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.detach();
    }
}

/// A runtime of tokio with a machine.
///
/// ```
/// use quietcore::time::{Duration, timeout};
///
/// let runtime = quietcore::tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// let result = runtime.block_on(async {
///     timeout(Duration::from_millis(1), core::future::pending::<()>()).await
/// });
/// assert!(result.is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Runtime {
    // Dropped in this order: tasks before the machine that their timers are on.
    workers: Option<Attached>,
    inner: real::Runtime,
    own: Option<OwnMachine>,
    machine: Option<&'static Machine>,
}

/// As tokio's: a task that panics leaves the runtime whole, and so does one that blocked on it.
impl UnwindSafe for Runtime {}
impl RefUnwindSafe for Runtime {}

impl Runtime {
    /// A runtime with everything on: tasks run on as many threads as there are CPUs. Its machine is the
    /// current one of this thread, else one of its own. See [`Builder`] for settings.
    ///
    /// # Errors
    /// Those of [`Builder::build`].
    pub fn new() -> io::Result<Self> {
        Builder::new_multi_thread().enable_all().build()
    }

    /// tokio's own handle of this runtime: to start tasks from other threads. They run on the runtime's
    /// threads, and so have its machine.
    #[must_use]
    pub fn handle(&self) -> &real::Handle {
        self.inner.handle()
    }

    /// Runs `future` on this thread, and with `current_thread` the runtime's tasks, too. While time is paused
    /// the future and all tasks take part in it: when none has anything to do, time moves.
    ///
    /// # Panics
    /// When called from inside a runtime, as in tokio.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _entered = self.machine.map(Machine::enter);
        match (&self.workers, self.machine) {
            (Some(workers), Some(machine)) => {
                let future = virtual_time::attend(machine, workers.0.note(future));
                self.inner.block_on(workers.0.drive(future))
            }
            _ => self.inner.block_on(future),
        }
    }

    /// Starts a task.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.inner.spawn(future)
    }

    /// The runtime and its machine are current on this thread until the guard is dropped.
    pub fn enter(&self) -> RuntimeGuard<'_> {
        RuntimeGuard { _machine: self.machine.map(Machine::enter), _runtime: self.inner.enter() }
    }

    /// Its machine, if it has one.
    #[must_use]
    pub const fn machine(&self) -> Option<&'static Machine> {
        self.machine
    }

    /// The runtime as tokio knows it. What blocks on it directly takes no part in paused time.
    #[must_use]
    pub const fn as_tokio(&self) -> &real::Runtime {
        &self.inner
    }

    /// Shuts down; waits up to `duration` for blocking work.
    pub fn shutdown_timeout(self, duration: Duration) {
        let Self { workers, inner, own, .. } = self;
        drop(workers);
        inner.shutdown_timeout(duration);
        drop(own);
    }

    /// Shuts down without waiting for blocking work: from inside async code, for example.
    pub fn shutdown_background(self) {
        self.shutdown_timeout(Duration::ZERO);
    }
}

/// While it lives, a runtime and its machine are the current ones of a thread.
#[derive(Debug)]
#[must_use = "they are current only while the guard lives"]
pub struct RuntimeGuard<'a> {
    _machine: Option<quietcore_live::EnterGuard>,
    _runtime: real::EnterGuard<'a>,
}
