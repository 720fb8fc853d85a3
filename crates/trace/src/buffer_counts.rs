//! What the kernel counted of the events in a CPU's buffer: beside a live recording, and in a file of
//! trace-cmd.

use std::time::Duration;

/// An event takes about so much of a buffer.
const EVENT_BYTES: u64 = 64;

/// What the kernel counted of one CPU's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounts {
    /// Lost: overwritten before they were read, or dropped.
    pub lost: u64,
    /// Taken out of the buffer by reading.
    pub read: u64,
    /// Still in the buffer.
    pub left: u64,
    /// How many bytes these need there.
    pub left_bytes: u64,
}

impl BufferCounts {
    /// The KiB that a recording of `span` needs, by what was written in `trial`; a quarter more, as no two
    /// moments are alike.
    pub(crate) fn needed_kib(&self, trial: Duration, span: Duration) -> u64 {
        let written = self.lost + self.read + self.left;
        let bytes = written as f64 * self.left_bytes as f64 / self.left.max(1) as f64;
        let needed = bytes * span.as_secs_f64() / trial.as_secs_f64().max(1e-3) * 1.25;
        (needed / 1024.0).ceil() as u64
    }

    /// The KiB of a buffer of `size` KiB, as the kernel says it, that would have lost nothing.
    pub(crate) fn lossless_kib(&self, size: &str) -> u64 {
        // One that was never used has two sizes: `7 (expanded: 1408)`.
        let digits = size.rsplit(' ').next().unwrap_or_default().trim().trim_end_matches(')');
        let each = if self.left == 0 { EVENT_BYTES } else { self.left_bytes.div_ceil(self.left) };
        let more = self.lost.saturating_mul(each).saturating_mul(5) / 4;
        digits.parse::<u64>().unwrap_or(0).saturating_add(more.div_ceil(1024))
    }

    /// Reads a text of `per_cpu/cpuN/stats`. There are three ways to lose events.
    pub(crate) fn read(stats: &str) -> Self {
        let value = |key| {
            let line = stats.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        Self {
            lost: value("overrun:") + value("commit overrun:") + value("dropped events:"),
            read: value("read events:"),
            left: value("entries:"),
            left_bytes: value("bytes:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BufferCounts, Duration};

    /// Goal: each kind of loss counts once, "commit overrun" not as "overrun", and what was read is told from
    /// what is left.
    #[test]
    fn counts_are_told_by_their_kinds() {
        let stats = "entries: 9\noverrun: 5\ncommit overrun: 20\nbytes: 99\nnow ts: 7.5\n\
                     dropped events: 300\nread events: 4000\n";
        assert_eq!(
            BufferCounts::read(stats),
            BufferCounts { lost: 325, read: 4000, left: 9, left_bytes: 99 }
        );
        assert_eq!(BufferCounts::read(""), BufferCounts::default());
    }

    /// Goal: a buffer has room for all of a recording, by what a trial wrote, lost events included. Method: a
    /// trial of half a second in which a quarter of the events was kept; none at all.
    #[test]
    fn a_buffer_has_room_for_the_recording() {
        let counts = BufferCounts { lost: 3000, read: 0, left: 1000, left_bytes: 40_960 };
        // 4000 events of 40.96 bytes in 0.5 s: 320 KiB per second.
        let needed = |span| counts.needed_kib(Duration::from_millis(500), Duration::from_secs(span));
        assert_eq!((needed(1), needed(10)), (400, 4000));
        assert_eq!(BufferCounts::default().needed_kib(Duration::ZERO, Duration::from_secs(10)), 0);
    }

    /// Goal: a buffer that would have lost nothing has room for what was lost, and a quarter more. Method:
    /// events of 40.96 bytes, of which the kernel has some left, or none; both forms of a size.
    #[test]
    fn a_buffer_has_room_for_what_was_lost() {
        let counts = BufferCounts { lost: 3000, read: 0, left: 1000, left_bytes: 40_960 };
        assert_eq!(counts.lossless_kib("4096\n"), 4096 + 151);
        assert_eq!(BufferCounts { left: 0, ..counts }.lossless_kib("7 (expanded: 1408)\n"), 1408 + 235);
    }
}
