//! A device that raises a softirq: when its next interrupt is, and how much work that brings.

use super::tasks::DeviceWork;
use crate::engine::{SimRandom, Tail, interval};
use crate::scenario::SoftirqDevice;

#[derive(Debug)]
pub(crate) struct DeviceSource {
    device: SoftirqDevice,
    pub(crate) cpu: u16,
    random: SimRandom,
}

impl DeviceSource {
    /// Its own stream: the same work at the same times in every variant.
    pub(crate) fn new(device: SoftirqDevice, cpu: u16, seed: u64, number: u32) -> Self {
        Self { device, cpu, random: SimRandom::new(seed, (1 << 32) + u64::from(number)) }
    }

    pub(crate) fn next_interval(&mut self) -> u64 {
        interval(&mut self.random, self.device.interval)
    }

    pub(crate) fn work(&mut self, now: u64) -> DeviceWork {
        let SoftirqDevice { vector, least, median, most, tail, .. } = self.device;
        let tail = Tail { least, median, most, exponent: f64::from(tail) / 1_000.0 };
        DeviceWork { vector, raised_at: now, length: tail.draw(&mut self.random) }
    }
}
