//! async-io's timers under async-executor on two threads, as smol runs them.

use quietcore_peers::load::Load;
use quietcore_peers::runtime::{Runtime, WORKERS};
use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

static EXECUTOR: async_executor::Executor<'static> = async_executor::Executor::new();

#[derive(Debug)]
struct Peer;

impl Runtime for Peer {
    type Sleep = async_io::Timer;
    type Moment = Instant;

    fn start(_load: &Load) -> Result<Self, String> {
        for worker in 0..WORKERS {
            let serve = || async_io::block_on(EXECUTOR.run(std::future::pending::<()>()));
            let thread = std::thread::Builder::new().name(format!("worker {worker}"));
            thread.spawn(serve).map_err(|error| error.to_string())?;
        }
        Ok(Self)
    }

    fn sleep(&self, delay: Duration) -> Self::Sleep {
        async_io::Timer::after(delay)
    }

    fn moment(&self, at: Instant) -> Instant {
        at
    }

    fn sleep_until(&self, at: Instant) -> Self::Sleep {
        async_io::Timer::at(at)
    }

    fn rearm(&self, sleep: Pin<&mut Self::Sleep>, delay: Duration) {
        sleep.get_mut().set_after(delay);
    }

    fn spawn(&self, _worker: usize, task: impl Future<Output = ()> + Send + 'static) {
        EXECUTOR.spawn(task).detach();
    }
}

fn main() -> ExitCode {
    quietcore_peers::run::<Peer>()
}
