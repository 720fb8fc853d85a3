//! tokio's multi-thread runtime: as it comes, or (`mode=`) with what `tokio_unstable` offers.

use quietcore_peers::load::Load;
use quietcore_peers::runtime::{Runtime, WORKERS};
use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime as Tokio};

struct Peer(Tokio);

impl Runtime for Peer {
    type Sleep = tokio::time::Sleep;
    type Moment = tokio::time::Instant;

    fn start(load: &Load) -> Result<Self, String> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(WORKERS).enable_all();
        choose(&mut builder, &load.mode)?;
        builder.build().map(Self).map_err(|error| error.to_string())
    }

    fn sleep(&self, delay: Duration) -> Self::Sleep {
        tokio::time::sleep(delay)
    }

    fn moment(&self, at: Instant) -> Self::Moment {
        at.into()
    }

    fn sleep_until(&self, at: Self::Moment) -> Self::Sleep {
        tokio::time::sleep_until(at)
    }

    fn rearm(&self, sleep: Pin<&mut Self::Sleep>, delay: Duration) {
        sleep.reset(tokio::time::Instant::now() + delay);
    }

    fn spawn(&self, _worker: usize, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(task));
    }

    fn run(&self, worker: usize, job: impl FnOnce() + Send + 'static) {
        // Otherwise the 129th poll of a timer within one poll of a task does not arm it.
        self.spawn(worker, tokio::task::unconstrained(async move { job() }));
    }

    fn enter(&self, job: impl FnOnce()) {
        let _entered = self.0.enter();
        job();
    }
}

#[cfg(tokio_unstable)]
fn choose(builder: &mut Builder, mode: &str) -> Result<(), String> {
    for part in mode.split('+') {
        match part {
            "" => {}
            "alt" => _ = builder.enable_alt_timer(),
            "eager" => _ = builder.enable_eager_driver_handoff(),
            _ => return Err(format!("there is no mode {part}")),
        }
    }
    Ok(())
}

#[cfg(not(tokio_unstable))]
fn choose(_builder: &mut Builder, mode: &str) -> Result<(), String> {
    if mode.is_empty() { Ok(()) } else { Err(format!("mode {mode} needs --cfg tokio_unstable")) }
}

fn main() -> ExitCode {
    quietcore_peers::run::<Peer>()
}
