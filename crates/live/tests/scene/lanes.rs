//! Lanes for tests: threads that drive CPUs until the machine is shut down.

use quietcore_live::{Cpu, CpuId, CpuSet, Machine, MachineBuilder};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

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
pub(crate) fn drive<R: Send + 'static>(
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

/// What is sent, if it comes in time.
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
