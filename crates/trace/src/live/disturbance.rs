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
            Event::IpiSendCpu { to, .. } => *self.sent_to.entry(*to).or_default() += 1,
            Event::IpiSendMask { to, .. } => {
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

#[cfg(test)]
mod tests {
    use super::OwnDisturbance;
    use crate::TraceReader;

    /// Goal: where our threads ran and whom they interrupted, and no others. Method: 7 and 8 are ours; 7 is
    /// on CPU 2 from before the recording, 8 comes to CPU 3 and sends nothing; 9, on CPU 4, is not.
    #[test]
    fn our_threads_alone_count() {
        let text = "\
            a-7 [002] 1.000000: ipi_send_cpu: cpu=5 callsite=x callback=y\n\
            a-7 [002] 1.000001: ipi_send_cpumask: cpumask=5-6 callsite=x callback=y\n\
            b-0 [003] 1.000002: sched_switch: prev_comm=b prev_pid=0 prev_prio=120 prev_state=R ==> \
            next_comm=a next_pid=8 next_prio=120\n\
            c-9 [004] 1.000003: ipi_send_cpu: cpu=0 callsite=x callback=y\n";
        let mut own = OwnDisturbance::of(vec![7, 8]);
        let mut reader = TraceReader::new(text.as_bytes());
        reader.read(9, &mut |record| own.take(record)).expect("it is readable");
        let receivers: Vec<_> = own.receivers().iter().map(|(cpu, count)| (cpu.index(), *count)).collect();
        assert_eq!((own.interrupts(), receivers), (3, vec![(5, 2), (6, 1)]));
        assert_eq!(own.cpus().to_string(), "2-3");
    }
}
