//! A thread that waits for descriptors, one of which ends it.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

/// The thread; a drop ends it, and waits for that.
#[derive(Debug)]
pub(super) struct WaitingThread {
    thread: Option<JoinHandle<()>>,
    stop: OwnedFd,
}

impl WaitingThread {
    /// A descriptor that ends a thread when it is ready.
    pub(super) fn stop_event() -> io::Result<OwnedFd> {
        Ok(eventfd(0, EventfdFlags::CLOEXEC)?)
    }

    /// Begins to `wait`, which ends when `stop` is ready.
    pub(super) fn start(name: &str, stop: OwnedFd, wait: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(wait)?;
        Ok(Self { thread: Some(thread), stop })
    }
}

impl Drop for WaitingThread {
    fn drop(&mut self) {
        // If the counter is full the thread ends as well.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // An error is a panic, which was printed; there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}
