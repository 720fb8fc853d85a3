//! A device that raises a softirq: when its next interrupt is, and how much work that brings.

use super::tasks::DeviceWork;
use crate::engine::{Random, Tail, interval};
use crate::scenario::Device;

/// A device of a load.
#[derive(Debug)]
pub(crate) struct DeviceSource {
    device: Device,
    pub(crate) cpu: u16,
    random: Random,
}

impl DeviceSource {
    /// Its own stream: the same work at the same times in every variant.
    pub(crate) fn new(device: Device, cpu: u16, (seed, number): (u64, u32)) -> Self {
        Self { device, cpu, random: Random::new(seed, (1 << 32) + u64::from(number)) }
    }

    pub(crate) fn next_interval(&mut self) -> u64 {
        interval(&mut self.random, self.device.interval)
    }

    pub(crate) fn work(&mut self, now: u64) -> DeviceWork {
        let Device { vector, least, median, most, tail, .. } = self.device;
        let tail = Tail { least, median, most, exponent: f64::from(tail) / 1_000.0 };
        DeviceWork { vector, raised_at: now, length: tail.draw(&mut self.random) }
    }
}
