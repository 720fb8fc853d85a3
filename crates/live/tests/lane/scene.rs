//! Threads that drive CPUs until the machine is shut down, and timers that say where they ran.

#[path = "../scene/lanes.rs"]
mod lanes;

pub(crate) use lanes::{PATIENCE, both, builder, cpu, drive, eventually, turn_and_park, wait_for};
use quietcore_live::{CpuId, Machine, Precision, TimerHandle, TimerOptions};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ThreadId};

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
