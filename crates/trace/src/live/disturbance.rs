//! What a recording did to the machine it looked at, as far as it was recorded.

use crate::event::{Event, Record};
use quietcore_core::{CpuId, CpuSet};
use std::collections::BTreeMap;

/// Counts the recorder's own traces in its own recording.
#[derive(Clone, Debug, Default)]
pub struct OwnDisturbance {
    threads: Vec<i32>,
    cpus: CpuSet,
    sent_to: BTreeMap<CpuId, u64>,
}

impl OwnDisturbance {
    /// Looks for the threads with these ids.
    #[must_use]
    pub fn of(threads: Vec<i32>) -> Self {
        Self { threads, ..Self::default() }
    }

    /// Takes the next event.
    pub fn take(&mut self, record: &Record<'_>) {
        let comes =
            matches!(&record.event, Event::SchedSwitch { next, .. } if self.threads.contains(&next.pid));
        if comes {
            self.cpus.insert(record.cpu);
        }
        if !self.threads.contains(&record.task.pid) {
            return;
        }
        self.cpus.insert(record.cpu);
        match &record.event {
            Event::IpiSendCpu { to } => *self.sent_to.entry(*to).or_default() += 1,
            Event::IpiSendMask { to } => {
                for cpu in to.iter() {
                    *self.sent_to.entry(cpu).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    /// Interrupts that our threads sent to other CPUs.
    #[must_use]
    pub fn interrupts(&self) -> u64 {
        self.sent_to.values().sum()
    }

    /// The CPUs that received them, with their counts.
    #[must_use]
    pub fn receivers(&self) -> &BTreeMap<CpuId, u64> {
        &self.sent_to
    }

    /// The CPUs that our threads were seen on.
    #[must_use]
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }
}
