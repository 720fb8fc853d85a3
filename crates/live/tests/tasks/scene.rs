//! Threads that play CPUs until the machine is shut down, and which CPU somebody is on.

use quietcore_live::{Cpu, CpuId, CpuSet, LaneThreads, Machine, MachineBuilder};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longer than any test takes on a machine that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn cpu(index: u64) -> CpuId {
    CpuId::new(index).expect("a small number")
}

pub(crate) fn both() -> CpuSet {
    "0-1".parse().expect("a list")
}

/// A machine with the lanes 0 and 1: this host has both, or the test says so.
pub(crate) fn builder() -> MachineBuilder {
    Machine::builder().lanes(both())
}

/// A thread that claims `index`, does `first`, and turns and parks until the machine is shut down. Returns
/// when `first` is done.
pub(crate) fn play<R: Send + 'static>(
    machine: &'static Machine,
    index: u64,
    first: impl FnOnce(&mut Cpu) -> R + Send + 'static,
) -> (JoinHandle<()>, R) {
    let (sender, receiver) = channel();
    let thread = thread::spawn(move || {
        let mut cpu = Cpu::claim(machine, cpu(index)).expect("a free lane of this machine");
        sender.send(first(&mut cpu)).expect("the test waits");
        turn_and_park(&mut cpu);
    });
    let result = receiver.recv_timeout(PATIENCE).expect("the lane begins");
    (thread, result)
}

/// What a lane does that has no other work.
pub(crate) fn turn_and_park(cpu: &mut Cpu) {
    while cpu.machine().is_running() {
        if !cpu.turn().has_more {
            cpu.park();
        }
    }
}

pub(crate) fn wait_for<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(PATIENCE).expect("it runs")
}

/// Waits until `is_so`.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not in {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A machine with two lanes that do nothing else.
pub(crate) fn lanes() -> MachineBuilder {
    builder().lane_threads(LaneThreads::new())
}

/// The lane that the calling thread plays, by the name of its thread.
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
