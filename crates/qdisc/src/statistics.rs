//! What a discipline counts, in the words of `tc -s`.

use crate::PacketSize;
use core::fmt;

/// What a discipline has done, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets that left.
    pub sent_packets: u64,
    /// Packets that were dropped, whatever for.
    pub dropped: u64,
    /// How often something had to wait for its time, or was dropped because of a limit; each discipline
    /// counts what its kernel's counts.
    pub overlimits: u64,
    /// Packets that came back because a device did not take them.
    pub requeues: u64,
    /// Bytes that are queued.
    pub backlog: u64,
    /// Packets that are queued.
    pub qlen: u64,
}

impl Statistics {
    /// A packet of that size was queued: of so many bytes, or one that stands for several.
    pub fn arrived(&mut self, size: impl Into<PacketSize>) {
        let PacketSize { bytes, packets } = size.into();
        self.backlog += u64::from(bytes);
        self.qlen += u64::from(packets);
    }

    /// A packet of that size that was queued has left the queue, for wherever.
    pub fn left(&mut self, size: impl Into<PacketSize>) {
        let PacketSize { bytes, packets } = size.into();
        self.backlog -= u64::from(bytes);
        self.qlen -= u64::from(packets);
    }

    /// The same, and it was sent.
    pub fn sent(&mut self, size: impl Into<PacketSize>) {
        let size = size.into();
        self.left(size);
        self.count_sent(size);
    }

    /// A packet of that size was sent that one of its queues held.
    pub(crate) fn count_sent(&mut self, size: impl Into<PacketSize>) {
        let PacketSize { bytes, packets } = size.into();
        self.sent_bytes += u64::from(bytes);
        self.sent_packets += u64::from(packets);
    }

    /// What one of its queues holds and has dropped is its own, too.
    pub(crate) fn include(&mut self, queue: &Self) {
        self.dropped += queue.dropped;
        self.backlog += queue.backlog;
        self.qlen += queue.qlen;
    }

    /// Nothing is queued any more.
    pub fn emptied(&mut self) {
        (self.backlog, self.qlen) = (0, 0);
    }
}

/// The first line that `tc -s qdisc show` prints below a discipline.
impl fmt::Display for Statistics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Sent {} bytes {} pkt (dropped {}, overlimits {} requeues {})",
            self.sent_bytes, self.sent_packets, self.dropped, self.overlimits, self.requeues
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Statistics;
    use alloc::string::ToString;

    /// Goal: each figure stands at its name. Method: every figure differs.
    #[test]
    fn each_figure_stands_at_its_name() {
        let statistics = Statistics {
            sent_bytes: 1,
            sent_packets: 2,
            dropped: 3,
            overlimits: 4,
            requeues: 5,
            backlog: 6,
            qlen: 7,
        };
        let line = "Sent 1 bytes 2 pkt (dropped 3, overlimits 4 requeues 5)";
        assert_eq!(statistics.to_string(), line);
    }
}
