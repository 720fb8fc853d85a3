//! How long a packet takes on a link.
//!
//! Exact, rounded down to a nanosecond. Deviation: the kernel multiplies by a reciprocal (`psched_l2t_ns`),
//! which is off by less than a part in 10^9. Source: Linux net/sched/sch_generic.c, `psched_ratecfg_*`, by
//! behaviour.

use quietcore_core::Nanos;

const SECOND: u64 = 1_000_000_000;

/// How packets are packed on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkLayer {
    /// As they are.
    #[default]
    Ethernet,
    /// In cells that carry 48 bytes and take 53.
    Atm,
}

/// A rate, with what a packet costs besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    bytes_per_second: u64,
    overhead: i32,
    mpu: u32,
    layer: LinkLayer,
}

impl Rate {
    /// A rate; `None` of 0.
    #[must_use]
    pub const fn bytes_per_second(bytes_per_second: u64) -> Option<Self> {
        if bytes_per_second == 0 {
            return None;
        }
        Some(Self { bytes_per_second, overhead: 0, mpu: 0, layer: LinkLayer::Ethernet })
    }

    /// Every packet counts so many bytes more, or fewer.
    #[must_use]
    pub const fn overhead(self, bytes: i32) -> Self {
        Self { overhead: bytes, ..self }
    }

    /// No packet counts less.
    #[must_use]
    pub const fn mpu(self, bytes: u32) -> Self {
        Self { mpu: bytes, ..self }
    }

    /// How packets are packed.
    #[must_use]
    pub const fn link_layer(self, layer: LinkLayer) -> Self {
        Self { layer, ..self }
    }

    /// Bytes per second.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.bytes_per_second
    }

    /// How many bytes more, or fewer, every packet counts.
    #[must_use]
    pub const fn overhead_bytes(self) -> i32 {
        self.overhead
    }

    /// What a packet counts at least, in bytes.
    #[must_use]
    pub const fn least(self) -> u32 {
        self.mpu
    }

    /// How packets are packed.
    #[must_use]
    pub const fn layer(self) -> LinkLayer {
        self.layer
    }

    /// Whether bytes count as they are, so that several packets together count as much as one by one.
    #[must_use]
    pub const fn is_plain(self) -> bool {
        self.overhead == 0 && self.mpu == 0 && matches!(self.layer, LinkLayer::Ethernet)
    }

    /// How many bytes a packet of `bytes` counts.
    #[must_use]
    pub const fn counted(self, bytes: u32) -> u64 {
        let with = bytes as i64 + self.overhead as i64;
        let with = if with < self.mpu as i64 { self.mpu as u64 } else { with as u64 };
        match self.layer {
            LinkLayer::Ethernet => with,
            LinkLayer::Atm => with.div_ceil(48) * 53,
        }
    }

    /// How long a packet of `bytes` takes.
    #[must_use]
    pub const fn time(self, bytes: u32) -> Nanos {
        self.time_of(self.counted(bytes))
    }

    /// How long so many bytes take, as they are.
    #[must_use]
    pub const fn time_of(self, bytes: u64) -> Nanos {
        // Every packet there is; the general case is many times as long.
        if let Some(work) = bytes.checked_mul(SECOND) {
            return Nanos(work / self.bytes_per_second);
        }
        let time = bytes as u128 * SECOND as u128 / self.bytes_per_second as u128;
        Nanos(if time > u64::MAX as u128 { u64::MAX } else { time as u64 })
    }

    /// How many whole bytes pass in `span`.
    #[must_use]
    pub const fn bytes_in(self, span: Nanos) -> u64 {
        let bytes = span.0 as u128 * self.bytes_per_second as u128 / SECOND as u128;
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::{LinkLayer, Rate};
    use quietcore_core::Nanos;

    /// Goal: extremes neither panic nor wrap. Method: the largest and the smallest of everything.
    #[test]
    fn extremes_saturate() {
        let slow = Rate::bytes_per_second(1).expect("not 0");
        let fast = Rate::bytes_per_second(u64::MAX).expect("not 0");
        assert_eq!(slow.time_of(u64::MAX), Nanos(u64::MAX));
        assert_eq!(fast.time_of(u64::MAX), Nanos(1_000_000_000), "more than the short way takes");
        assert_eq!(fast.bytes_in(Nanos(u64::MAX)), u64::MAX);
        assert_eq!((fast.time(u32::MAX), slow.overhead(i32::MIN).time(0)), (Nanos(0), Nanos(0)));
        assert_eq!(slow.overhead(i32::MAX).counted(u32::MAX), u64::from(u32::MAX) + i32::MAX as u64);
    }

    /// Goal: cells are whole, with overhead inside and the smallest packet before. Method: both sides of a
    /// cell's end.
    #[test]
    fn cells_are_whole() {
        let rate = Rate::bytes_per_second(1).expect("not 0").link_layer(LinkLayer::Atm);
        let counted = [(0, 0), (1, 53), (48, 53), (49, 106), (96, 106)];
        for (bytes, cells) in counted {
            assert_eq!(rate.counted(bytes), cells, "{bytes}");
        }
        assert_eq!(rate.overhead(8).mpu(60).counted(41), 106);
    }
}
