//! glommio: an executor per worker, which share nothing. What starts on one stays there.

use async_channel::Sender;
use glommio::timer::Timer;
use glommio::{LocalExecutorBuilder, Placement};
use quietcore_peers::load::{Form, Load, Measure, Place};
use quietcore_peers::runtime::{Runtime, WORKERS};
use send_wrapper::SendWrapper;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where each worker takes its tasks from.
struct Peer(Vec<Sender<Task>>);

impl Runtime for Peer {
    // Measures are written for runtimes whose timers may move between threads; these panic if they do.
    type Sleep = SendWrapper<Timer>;
    type Moment = Instant;

    fn absent(load: &Load) -> Option<&'static str> {
        if load.place == Place::Foreign || load.measure == Measure::RemoteCancel {
            return Some("a timer belongs to the thread of its executor");
        }
        (load.form == Form::At).then_some("a timer takes a delay")
    }

    fn start(_load: &Load) -> Result<Self, String> {
        let mut workers = Vec::new();
        for _ in 0..WORKERS {
            let (give, tasks) = async_channel::unbounded::<Task>();
            let builder = LocalExecutorBuilder::new(Placement::Unbound);
            let serve = move || async move {
                while let Ok(task) = tasks.recv().await {
                    glommio::spawn_local(task).detach();
                }
            };
            builder.spawn(serve).map_err(|error| error.to_string())?;
            workers.push(give);
        }
        Ok(Self(workers))
    }

    fn sleep(&self, delay: Duration) -> Self::Sleep {
        SendWrapper::new(Timer::new(delay))
    }

    fn moment(&self, at: Instant) -> Instant {
        at
    }

    fn sleep_until(&self, at: Instant) -> Self::Sleep {
        self.sleep(at.saturating_duration_since(Instant::now()))
    }

    fn rearm(&self, sleep: Pin<&mut Self::Sleep>, delay: Duration) {
        sleep.get_mut().reset(delay);
    }

    fn spawn(&self, worker: usize, task: impl Future<Output = ()> + Send + 'static) {
        self.0[worker].try_send(Box::pin(task)).expect("workers serve until the process ends");
    }
}

fn main() -> ExitCode {
    quietcore_peers::run::<Peer>()
}
