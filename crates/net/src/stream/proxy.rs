//! A proxy that listens: connections are accepted on one lane, and stay on it.
//!
//! Invariant: once [`Listening::stop`] has returned the port is free, and all its connections are about to be
//! closed.

use super::connection::{ConnectionPlan, carry};
use quietcore_live::time::{Duration, sleep};
use quietcore_tokio::lanes::{LaneJoinHandle, LaneSpawnError, LanesHandle};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Connections of a proxy at a time; others wait in the kernel.
const CONNECTIONS_MAX: usize = 1000;

/// Alive as long as something has a clone of it.
pub(super) type Pulse = mpsc::Sender<()>;

/// What a proxy listens with.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    stop: watch::Sender<bool>,
    task: LaneJoinHandle<()>,
}

impl Listening {
    /// Listens from now on, with a plan whose `stop` is made here.
    pub(super) fn start(
        listener: std::net::TcpListener,
        lanes: &LanesHandle,
        mut plan: ConnectionPlan,
        pulse: Pulse,
    ) -> Result<Self, std::io::Error> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stops) = watch::channel(false);
        plan.stop = stops;
        let ended = |error: LaneSpawnError| std::io::Error::other(error.to_string());
        let task = lanes.spawn(move || accept(listener, plan, pulse)).map_err(ended)?;
        Ok(Self { address, stop, task })
    }

    /// Frees the port; connections are closed.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        // An error: the lanes end, and the task with them.
        let _ = self.task.await;
    }
}

async fn accept(listener: std::net::TcpListener, plan: ConnectionPlan, pulse: Pulse) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut stop = plan.stop.clone();
    loop {
        let (client, place) = tokio::select! {
            biased;
            _ = stop.wait_for(|is_down| *is_down) => return,
            accepted = next(&listener, &room) => accepted,
        };
        let (plan, pulse) = (plan.clone(), pulse.clone());
        tokio::task::spawn_local(async move {
            carry(client, plan).await;
            drop((place, pulse));
        });
    }
}

/// The next connection, once there is room for one.
async fn next(listener: &TcpListener, room: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    let place = Arc::clone(room).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((client, _)) => return (client, place),
            // There may be no descriptors left; a little later there may.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}
