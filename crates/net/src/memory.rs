//! How much memory the packets of a queue may take.
//!
//! Disciplines have limits in packets, and a line of `tc` may set any; this bound is on bytes, whatever they
//! say. What a discipline holds is summed over its classes, so it is not asked for at each packet: since the
//! last look no more can have come in than was let in since then.
//!
//! Invariant: at a look, no packet is let in above the bound. Between two looks what a discipline duplicates
//! is not seen, so a queue may hold as many times its bound as packets are multiplied.

use quietcore_qdisc::{PacketSize, Statistics};

/// What a packet takes besides its bytes, about: its place in the queues, and its allocation.
const OVERHEAD: u64 = 256;

/// The bound of a queue, and what is left of it.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    most: u64,
    /// Not more than is free.
    room: u64,
}

impl MemoryBudget {
    /// Of `most` bytes.
    pub(super) const fn new(most: u64) -> Self {
        Self { most, room: most }
    }

    /// Whether there is room for a packet of so many bytes; it is taken then. `held` says what there is.
    pub(super) fn admits(&mut self, size: impl Into<PacketSize>, held: impl FnOnce() -> Statistics) -> bool {
        let PacketSize { bytes, packets } = size.into();
        let cost = u64::from(bytes) + OVERHEAD * u64::from(packets);
        if self.room < cost {
            let Statistics { backlog, qlen, .. } = held();
            let taken = backlog.saturating_add(qlen.saturating_mul(OVERHEAD));
            self.room = self.most.saturating_sub(taken);
        }
        let is_room = self.room >= cost;
        self.room -= if is_room { cost } else { 0 };
        is_room
    }
}

#[cfg(test)]
mod tests {
    use super::{MemoryBudget, OVERHEAD};
    use quietcore_qdisc::Statistics;

    fn held(backlog: u64, qlen: u64) -> Statistics {
        let mut statistics = Statistics::default();
        (statistics.backlog, statistics.qlen) = (backlog, qlen);
        statistics
    }

    /// Goal: the bound is exact for packets that stay, and what has left makes room. Method: packets of 44
    /// bytes, of which ten fit and nothing else does; then all but three leave.
    #[test]
    fn the_bound_is_exact() {
        let mut budget = MemoryBudget::new(10 * (44 + OVERHEAD));
        for packet in 0..10 {
            assert!(budget.admits(44, || unreachable!("there is room")), "packet {packet}");
        }
        for _ in 0..3 {
            assert!(!budget.admits(44, || held(440, 10)), "the eleventh");
        }
        assert!(!budget.admits(0, || held(440, 10)), "an empty one takes memory, too");
        for packet in 0..7 {
            assert!(budget.admits(44, || held(3 * 44, 3)), "packet {packet} after the others left");
        }
        assert!(!budget.admits(44, || held(440, 10)));
    }

    /// Goal: no figures of a discipline overflow.
    #[test]
    fn more_than_everything_is_no_room() {
        let mut budget = MemoryBudget::new(1);
        assert!(!budget.admits(u32::MAX, || held(u64::MAX, u64::MAX)));
    }
}
