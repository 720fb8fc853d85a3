//! Threads that drive CPUs until the machine is shut down, and which CPU a thread is on.

#[path = "../scene/lanes.rs"]
mod lanes;

pub(crate) use lanes::{PATIENCE, both, builder, cpu, drive, eventually, wait_for};
use quietcore_live::{LaneThreads, MachineBuilder};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// A machine with two lanes that do nothing else.
pub(crate) fn lanes() -> MachineBuilder {
    builder().lane_threads(LaneThreads::new())
}

/// The lane that the calling thread drives, by the name of its thread.
pub(crate) fn lane_here() -> Option<usize> {
    thread::current().name()?.strip_prefix("quietcore-")?.parse().ok()
}

/// Keeps the thread that asks until the test lets it go, or is over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn wait(&self) {
        let is_open = self.0.0.lock().expect("no panic");
        let (is_open, _) =
            self.0.1.wait_timeout_while(is_open, PATIENCE, |is_open| !*is_open).expect("no panic");
        assert!(*is_open, "nobody opened it");
    }

    pub(crate) fn open(&self) {
        *self.0.0.lock().expect("no panic") = true;
        self.0.1.notify_all();
    }
}
