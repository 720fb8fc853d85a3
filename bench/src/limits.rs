//! What the machine itself allows, measured in the run whose figures are held against it.
//!
//! No timer is armed under a lock in less than a round of a lock, and none of a million is found in less than
//! a read that misses the caches. Figures of two machines can be compared as multiples of these.

use crate::statistics::Summary;
use serde::Serialize;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

/// In nanoseconds, but the last.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    /// A lock that is free, taken by compare-and-swap and given back by a store.
    pub lock: f64,
    /// The clock, read.
    pub clock: f64,
    /// A read of memory beyond the caches whose address comes from the read before.
    pub miss: f64,
    /// How much more two threads compute than one, arithmetic in registers, at best: less than 2 where two
    /// CPUs are threads of one core.
    pub two_threads: f64,
}

/// So often each is done in a stretch, and so many stretches there are: the median counts.
const STEPS: u32 = 20_000;
const STRETCHES: usize = 25;

/// Memory that is read for misses, in bytes and in lines of 64.
const MEMORY: usize = 128 << 20;
const LINES: usize = MEMORY / 64;

/// A line of the cache, which says which one is next.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(u32);

impl Limits {
    /// Measures them. Takes a second, and 128 MiB.
    #[must_use]
    pub fn measure() -> Self {
        let word = AtomicU32::new(0);
        let lock = each(|| {
            let free = black_box(&word).compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
            black_box(free.is_ok());
            word.store(0, Ordering::Release);
        });
        let clock = each(|| _ = black_box(Instant::now()));
        let lines = circle();
        let mut at = 0;
        let miss = each(|| at = lines[at as usize].0);
        black_box(at);
        Self { lock, clock, miss, two_threads: two_threads() }
    }
}

/// Rounds in which one thread computes, and then two.
const ROUNDS: usize = 9;
/// Nanoseconds for which a thread computes.
const SPAN: u128 = 20_000_000;

fn two_threads() -> f64 {
    let all: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let one = computed();
            let both = thread::scope(|scope| {
                let other = scope.spawn(computed);
                computed() + other.join().expect("it does not panic")
            });
            both / one
        })
        .collect();
    // More than twice as much is one thread that was held up alone.
    Summary::of(&all).map_or(f64::NAN, |of| of.max.min(2.0))
}

/// Steps per nanosecond of four sums that do not wait for each other, as many as a core's units take.
fn computed() -> f64 {
    let (start, mut steps, mut sums) = (Instant::now(), 0_u64, [1_u64, 2, 3, 4]);
    loop {
        for step in 0..10_000_u64 {
            sums = sums.map(|sum| black_box(sum.wrapping_add(step) ^ (sum >> 3)));
        }
        steps += 10_000;
        let nanos = start.elapsed().as_nanos();
        if nanos >= SPAN {
            black_box(sums);
            return steps as f64 / nanos as f64;
        }
    }
}

fn each(mut step: impl FnMut()) -> f64 {
    let stretch = |_| {
        let start = Instant::now();
        for _ in 0..STEPS {
            step();
        }
        start.elapsed().as_nanos() as f64 / f64::from(STEPS)
    };
    let stretches: Vec<f64> = (0..STRETCHES).map(stretch).collect();
    Summary::of(&stretches).map_or(f64::NAN, |of| of.median)
}

/// All lines in one circle, in a random order (Sattolo's way: a permutation that is one cycle).
fn circle() -> Vec<Line> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut lines: Vec<Line> = (0..LINES as u32).map(Line).collect();
    for at in (1..LINES).rev() {
        lines.swap(at, random.usize(..at));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{LINES, circle};

    /// Goal: every read is of another line. Method: the circle, once round.
    #[test]
    fn the_circle_has_every_line() {
        let lines = circle();
        let (mut at, mut steps) = (lines[0].0, 1);
        while at != 0 {
            (at, steps) = (lines[at as usize].0, steps + 1);
        }
        assert_eq!(steps, LINES);
    }
}
