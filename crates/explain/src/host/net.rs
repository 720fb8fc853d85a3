//! Network queues: which CPUs a queue's receive work is spread over, and which CPUs send by it.
//!
//! Decides how `/sys/class/net/*/queues` is read. RPS masks name CPUs that *run* receive softirqs
//! for a queue; XPS masks name CPUs whose senders *use* a queue, and thereby share its lock. An empty mask
//! says that the feature is off.
//! Source: Linux Documentation/networking/scaling.rst, net/core/net-sysfs.c (v6.12).

use super::files::{Fact, Reader};
use quietcore_core::CpuSet;

/// Interfaces looked at; a host may have thousands of virtual ones.
const INTERFACE_COUNT_MAX: usize = 256;
/// Queues looked at per interface.
const QUEUE_COUNT_MAX: usize = 1024;

/// The masks of all queues that have one.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) receive: Vec<Fact<CpuSet>>,
    pub(crate) transmit: Vec<Fact<CpuSet>>,
}

impl Queues {
    pub(crate) fn read(reader: &mut Reader) -> Self {
        let mut queues = Self::default();
        for interface in reader.dirs("/sys/class/net").iter().take(INTERFACE_COUNT_MAX) {
            let dir = format!("/sys/class/net/{interface}/queues");
            let mut names = reader.dirs(&dir);
            names.sort_by_key(|name| {
                let (kind, number) = name.split_once('-').unwrap_or((name, ""));
                (kind.to_owned(), number.parse::<u32>().unwrap_or(u32::MAX))
            });
            for queue in names.iter().take(QUEUE_COUNT_MAX) {
                let (file, masks) = if queue.starts_with("tx-") {
                    ("xps_cpus", &mut queues.transmit)
                } else {
                    ("rps_cpus", &mut queues.receive)
                };
                masks.extend(reader.mask(&format!("{dir}/{queue}/{file}")));
            }
        }
        queues
    }
}
