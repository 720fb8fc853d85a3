//! The tick grid: at which time stamps of the recording the ticks were.
//!
//! An arm shows jiffies (`expires - timeout`) and a time stamp, so it bounds the beginning of that jiffy from
//! above. The earliest arm of a second of the recording, seen within its jiffy, is taken for its beginning. A
//! second with few arms takes the grid of the one before it. Absent: a clock that drifts within a second.

/// A second counts when it has so many arms.
const ENOUGH: u32 = 16;

/// Sees arms in the order of the recording, then says to which tick a time stamp belongs.
#[derive(Debug, Default)]
pub(super) struct Grid {
    /// Second, offset of tick 0 in ns, arms; in order.
    seconds: Vec<(u64, i64, u32)>,
}

const SECOND: u64 = 1_000_000_000;

impl Grid {
    /// An arm at `at` ns, in tick `tick` of `length` ns.
    pub(super) fn add(&mut self, at: u64, tick: u64, length: u64) {
        let offset = (at as i64).wrapping_sub((tick as i64).wrapping_mul(length as i64));
        match self.seconds.last_mut() {
            Some((second, earliest, count)) if *second == at / SECOND => {
                *earliest = (*earliest).min(offset);
                *count = count.saturating_add(1);
            }
            _ => self.seconds.push((at / SECOND, offset, 1)),
        }
    }

    /// A reader of time stamps that come in order.
    pub(super) fn ticks(self, length: u64) -> Ticks {
        let most = self.seconds.iter().map(|(.., count)| *count).max().unwrap_or(0);
        let enough = ENOUGH.min(most);
        let mut seconds = self.seconds;
        seconds.retain(|(.., count)| *count >= enough);
        Ticks { seconds, next: 0, length, last: 0 }
    }
}

/// See [`Grid::ticks`].
#[derive(Debug)]
pub(super) struct Ticks {
    seconds: Vec<(u64, i64, u32)>,
    next: usize,
    length: u64,
    last: u64,
}

impl Ticks {
    /// The tick of a time stamp; never before that of an earlier call.
    pub(super) fn tick(&mut self, at: u64) -> u64 {
        while self.seconds.get(self.next + 1).is_some_and(|(second, ..)| *second <= at / SECOND) {
            self.next += 1;
        }
        let offset = self.seconds.get(self.next).map_or(0, |(_, offset, _)| *offset);
        let tick = (at as i64).wrapping_sub(offset).max(0) as u64 / self.length;
        self.last = self.last.max(tick);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::Grid;

    const TICK: u64 = 4_000_000;

    /// Goal: time stamps fall into the tick that began last. Method: arms at all places of a tick, grid
    /// shifted by 1.5 ms; then the edges.
    #[test]
    fn a_time_stamp_belongs_to_the_tick_before_it() {
        let mut grid = Grid::default();
        for tick in 0..200 {
            grid.add(1_500_000 + tick * TICK + tick * 20_000 % TICK, tick, TICK);
        }
        let mut ticks = grid.ticks(TICK);
        for (at, tick) in [(0, 0), (5_499_999, 0), (5_500_000, 1), (9_499_999, 1), (9_500_000, 2), (1, 2)] {
            assert_eq!(ticks.tick(at), tick, "{at} ns");
        }
    }

    /// Goal: a second in which the clock was set differently keeps to itself. Method: 0.5 s of a shift that
    /// is 3 ms larger in second 0.
    #[test]
    fn a_second_with_another_clock_keeps_to_itself() {
        let mut grid = Grid::default();
        for tick in 0..500 {
            let shift = if tick < 250 { 3_000_000 } else { 0 };
            grid.add(shift + tick * TICK, tick, TICK);
        }
        let mut ticks = grid.ticks(TICK);
        assert_eq!(ticks.tick(3_000_000), 0);
        assert_eq!(ticks.tick(400_000_000), 99);
        assert_eq!(ticks.tick(1_400_000_000), 350);
    }

    /// Goal: numbers that no kernel writes do not stop it. Method: extremes.
    #[test]
    fn senseless_numbers_are_survived() {
        let mut grid = Grid::default();
        grid.add(u64::MAX, 0, TICK);
        grid.add(0, u64::MAX, TICK);
        let mut ticks = grid.ticks(TICK);
        let (first, last) = (ticks.tick(0), ticks.tick(u64::MAX));
        assert!(first <= last);
    }
}
