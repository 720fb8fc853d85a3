//! Starting tasks on lanes, from any thread.

use super::error::LaneSpawnError;
use super::host::{self, LaneOrder, OrderSender};
use super::join::{LaneJoinHandle, promise};
use core::fmt;
use core::future::Future;
use quietcore_live::{CpuId, CpuSet, Machine, virtual_time};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::spawn_local;

struct LanesShared {
    machine: &'static Machine,
    /// By CPU.
    posts: Box<[(CpuId, OrderSender)]>,
    /// The post that is next in turn.
    next: Mutex<usize>,
}

/// Starts tasks on lanes. Cheap to clone; it does not keep the lanes running.
#[derive(Clone)]
pub struct LanesHandle(Arc<LanesShared>);

impl LanesHandle {
    pub(super) fn new(machine: &'static Machine, posts: Vec<(CpuId, OrderSender)>) -> Self {
        Self(Arc::new(LanesShared { machine, posts: posts.into(), next: Mutex::new(0) }))
    }

    /// Sends an order to every lane.
    pub(super) fn order_all(&self, order: impl Fn() -> LaneOrder) {
        for (_, post) in &self.0.posts {
            // An error: the lane has ended.
            let _ = post.send(order());
        }
    }

    /// The CPUs of the lanes.
    #[must_use]
    pub fn cpus(&self) -> CpuSet {
        self.0.posts.iter().map(|(cpu, _)| *cpu).collect()
    }

    /// Starts a task on the lane whose turn it is, of those that are not isolated. `make` is called there, so
    /// the future need not be `Send`; it stays there. Cost: four allocations, a wake-up if the lane waits.
    ///
    /// # Errors
    /// When every lane is isolated, or the lanes were shut down.
    pub fn spawn<F>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<LaneJoinHandle<F::Output>, LaneSpawnError>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        send(self.next_post().ok_or(LaneSpawnError::AllIsolated)?, make)
    }

    /// Starts a task on the lane of `cpu`, isolated or not. Otherwise as [`spawn`](Self::spawn).
    ///
    /// # Errors
    /// When none of the lanes is on that CPU, or they were shut down.
    pub fn spawn_on<F>(
        &self,
        cpu: CpuId,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<LaneJoinHandle<F::Output>, LaneSpawnError>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        let post = self.0.posts.iter().find(|(of, _)| *of == cpu);
        send(&post.ok_or(LaneSpawnError::NotALane { cpu })?.1, make)
    }

    /// Runs a future on a lane, as [`spawn`](Self::spawn) would, while this thread waits for it.
    ///
    /// # Errors
    /// As for [`spawn`](Self::spawn); also when the lanes are shut down meanwhile.
    ///
    /// # Panics
    /// When the future panics, with the same payload. When called on a lane, which would wait for itself.
    #[track_caller]
    pub fn run<F>(&self, make: impl FnOnce() -> F + Send + 'static) -> Result<F::Output, LaneSpawnError>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        assert!(!host::is_lane(), "a lane would wait for itself; await what `spawn` returns");
        match virtual_time::block_on(self.spawn(make)?) {
            Ok(output) => Ok(output),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(LaneSpawnError::ShutDown),
            },
        }
    }

    /// The next in turn that is not isolated.
    fn next_post(&self) -> Option<&OrderSender> {
        let LanesShared { machine, posts, next } = &*self.0;
        // A machine that has ended isolates nothing, and one of a forked parent must not be asked.
        let isolated = if machine.is_running() { machine.isolated() } else { CpuSet::new() };
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        let in_turn = (*next..*next + posts.len()).map(|number| number % posts.len());
        let chosen = in_turn.into_iter().find(|number| !isolated.contains(posts[*number].0))?;
        *next = (chosen + 1) % posts.len();
        Some(&posts[chosen].1)
    }
}

fn send<F>(
    post: &OrderSender,
    make: impl FnOnce() -> F + Send + 'static,
) -> Result<LaneJoinHandle<F::Output>, LaneSpawnError>
where
    F: Future + 'static,
    F::Output: Send + 'static,
{
    let (promise, handle) = promise();
    // In the task, so that its panics are those of a task.
    let start = || promise.keep(|| spawn_local(async { make().await }));
    post.send(LaneOrder::Start(Box::new(start))).map_err(|_| LaneSpawnError::ShutDown)?;
    Ok(handle)
}

impl fmt::Debug for LanesHandle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LanesHandle")
            .field("cpus", &format_args!("{}", self.cpus()))
            .finish_non_exhaustive()
    }
}
