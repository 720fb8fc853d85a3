//! How many bytes a packet counts for the shaper: what the link adds, and in which units it carries.
//!
//! Invariant: a `raw` packet counts its bytes with its link header, another one those from its IP header on.
//!
//! Source: tc-cake(8), "OVERHEAD COMPENSATION PARAMETERS".

use super::settings::{CakeCells, CakeFraming};
use crate::Packet;

/// A mean that moves: by a part of 2^`shift` of the difference, in whole units, each part cut off.
pub(super) const fn moved(mean: u64, sample: u64, shift: u32) -> u64 {
    mean - (mean >> shift) + (sample >> shift)
}

/// What the smallest size is as long as there was no packet.
const SMALLEST: u32 = u16::MAX as u32;

/// What packets counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FramedSizes {
    /// Smallest and largest, before anything is added.
    pub(super) network: (u32, u32),
    /// Smallest and largest, as they count.
    pub(super) adjusted: (u32, u32),
    /// Bytes of the link's header, a mean that moves, in parts of 2^16.
    pub(super) header: u64,
}

impl FramedSizes {
    /// Of no packet. A change of the overhead leaves the largest as 0 and the smallest as everything.
    pub(super) const NONE: Self = Self { network: (SMALLEST, 0), adjusted: (SMALLEST, 0), header: 0 };

    /// Sizes begin anew, under another overhead.
    pub(super) const fn restart(&mut self) {
        (self.network, self.adjusted) = (Self::NONE.network, Self::NONE.adjusted);
    }

    /// How many bytes `packet` counts.
    pub(super) fn add<P: Packet>(&mut self, framing: &CakeFraming, packet: &P) -> u32 {
        let count = packet.packets().max(1);
        let header = packet.link_header() / count;
        self.header = moved(self.header, u64::from(header) << 16, 8);
        if count == 1 {
            return self.add_one(framing, packet.len(), header);
        }
        let each = packet.each();
        let last = packet.len().saturating_sub(each.saturating_mul(count - 1));
        let full = self.add_one(framing, each, header).saturating_mul(count - 1);
        full.saturating_add(self.add_one(framing, last, header))
    }

    fn add_one(&mut self, framing: &CakeFraming, bytes: u32, header: u32) -> u32 {
        let removed = if framing.raw { 0 } else { header };
        let bytes = bytes.saturating_sub(removed);
        self.network = (self.network.0.min(bytes), self.network.1.max(bytes));
        let adjusted = framing.counted(bytes);
        self.adjusted = (self.adjusted.0.min(adjusted), self.adjusted.1.max(adjusted));
        adjusted
    }
}

impl CakeFraming {
    /// How many bytes so many count: from the IP header on, or with the link header of a packet if it is
    /// `raw`.
    #[must_use]
    pub fn counted(&self, bytes: u32) -> u32 {
        let with = bytes.saturating_add_signed(self.overhead).max(self.mpu);
        match self.cells {
            CakeCells::Plain => with,
            CakeCells::Atm => with.div_ceil(48).saturating_mul(53),
            CakeCells::Ptm => with.saturating_add(with.div_ceil(64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CakeCells, CakeFraming, FramedSizes, moved};

    /// Goal: each kind of link counts as its manual says. Method: both sides of a cell's end, the smallest
    /// packet, an overhead below 0.
    #[test]
    fn links_count_as_told() {
        let framing = |overhead, mpu, cells| CakeFraming { raw: false, overhead, mpu, cells };
        for (framing, bytes, counted) in [
            (framing(0, 0, CakeCells::Plain), 1_500, 1_500),
            (framing(18, 64, CakeCells::Plain), 40, 64),
            (framing(18, 64, CakeCells::Plain), 47, 65),
            (framing(-20, 0, CakeCells::Plain), 10, 0),
            (framing(8, 0, CakeCells::Atm), 40, 53),
            (framing(8, 0, CakeCells::Atm), 41, 106),
            (framing(30, 0, CakeCells::Ptm), 34, 65),
            (framing(30, 0, CakeCells::Ptm), 35, 67),
            (framing(0, 96, CakeCells::Atm), 1, 106),
        ] {
            assert_eq!(framing.counted(bytes), counted, "{framing:?} {bytes}");
        }
    }

    /// Goal: a header counts if nothing else is told, and the sizes that were seen are told. Method: two
    /// packets with and without an overhead.
    #[test]
    fn headers_count_unless_an_overhead_is_told() {
        let raw = CakeFraming::default();
        let told = CakeFraming { raw: false, overhead: 38, mpu: 84, ..raw };
        let mut sizes = FramedSizes::NONE;
        assert_eq!((sizes.add_one(&raw, 60, 14), sizes.add_one(&raw, 100, 14)), (60, 100));
        assert_eq!((sizes.network, sizes.adjusted), ((60, 100), (60, 100)));
        sizes.restart();
        assert_eq!((sizes.add_one(&told, 54, 14), sizes.add_one(&told, 100, 14)), (84, 124));
        assert_eq!((sizes.network, sizes.adjusted), ((40, 86), (84, 124)));
    }

    /// Goal: a mean moves by a part of the difference and loses what does not divide. Method: small numbers.
    #[test]
    fn means_move() {
        assert_eq!((moved(0, 1_000, 2), moved(250, 1_000, 2), moved(3, 0, 2)), (250, 438, 3));
    }
}
