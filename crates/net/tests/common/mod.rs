//! A machine with lanes, and what devices need in tests.
#![allow(dead_code, reason = "each test takes what it needs")]

use quietcore::machine::MachineBuilder;
use quietcore::net::Network;
use quietcore::qdisc::{Netem, NetemDelay, NetemSettings};
use quietcore::{CpuId, CpuSet, LaneThreads, Machine, Nanos};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than any test takes on a machine that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn cpu(index: u64) -> CpuId {
    CpuId::new(index).expect("a small number")
}

pub(crate) fn set(list: &str) -> CpuSet {
    list.parse().expect("a list")
}

pub(crate) fn lanes(list: &str) -> MachineBuilder {
    Machine::builder().lanes(set(list))
}

/// Starts it with a network and threads for its lanes.
pub(crate) fn start(builder: MachineBuilder) -> (Network, &'static Machine) {
    let (network, builder) = Network::new(builder);
    (network, builder.lane_threads(LaneThreads::new()).start().expect("starts"))
}

pub(crate) fn delayed(machine: &Machine, millis: u64) -> Netem<Vec<u8>, impl FnMut() -> u32 + Send + use<>> {
    let delay = NetemDelay { latency: Nanos(millis * 1_000_000), ..NetemDelay::default() };
    let settings = NetemSettings { delay, limit: 100_000, ..NetemSettings::default() };
    Netem::new(settings, || 0, machine.now()).expect("they go together")
}

/// Tells a test, which waits for it, from any thread.
pub(crate) fn telling<T: Send + 'static>() -> (impl Fn(T) + Send + Sync + 'static, Receiver<T>) {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    (move |told| sender.lock().expect("no panic").send(told).expect("the test waits"), receiver)
}
