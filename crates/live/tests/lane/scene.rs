//! Threads that play CPUs until the machine is shut down, and timers that say where they ran.

use quietcore_live::{Cpu, CpuId, CpuSet, Machine, MachineBuilder, Precision, TimerHandle, TimerOptions};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle, ThreadId};
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

/// Where and on which thread a timer ran.
pub(crate) type Ran = (CpuId, ThreadId);

/// A timer that tells where it ran, and what receives that.
pub(crate) fn teller(machine: &'static Machine, options: TimerOptions) -> (TimerHandle, Receiver<Ran>) {
    let (sender, receiver) = channel();
    (telling(machine, options, &sender), receiver)
}

/// One of several that tell the same receiver.
pub(crate) fn telling(machine: &'static Machine, options: TimerOptions, sender: &Sender<Ran>) -> TimerHandle {
    let sender = sender.clone();
    machine.timer(options.precision(Precision::Tick), move |run| {
        // A test that has ended listens no more.
        let _ = sender.send((run.cpu(), thread::current().id()));
    })
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
