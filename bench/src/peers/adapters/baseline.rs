//! Baselines: what the loops, a touch of memory, and clocks cost without any timer.
//!
//! Each takes a peer's place and keeps no timers, so nothing is asserted of it.

use super::delay_queue;
use crate::peers::peer::{Answer, Peer, Role};
use crate::peers::plan::Workload;
use fastrand::Rng;
use std::hint::black_box;
use std::time::Instant;

/// Why a baseline stays out of workloads that it says nothing about.
const SAYS_NOTHING: &str = "a baseline for other workloads";

/// The calls that all share: a time is a tick, and nothing happens.
macro_rules! idle {
    () => {
        const ROLE: Role = Role::Baseline;
        const ANSWER: Answer = Answer::Absent;

        type When = u64;
        type Now = u64;
        type Handle = ();

        fn when(&self, now: u64, delay: u64) -> u64 {
            now + delay
        }

        fn now(&self, tick: u64) -> u64 {
            tick
        }

        fn tick(&self, now: u64) -> u64 {
            now
        }

        #[inline]
        fn cancel(&mut self, id: u32, _handle: &mut ()) -> bool {
            black_box(id);
            true
        }

        #[inline]
        fn next_expiry(&mut self) -> Option<u64> {
            None
        }

        fn pending(&self) -> usize {
            0
        }
    };
}

/// No operation at all: what the loop costs.
#[derive(Debug)]
pub struct Empty;

impl Peer for Empty {
    const NAME: &'static str = "empty";
    const NOTE: &'static str = "the same loop without any timer operation";
    idle!();

    fn new(_capacity: usize) -> Self {
        Self
    }

    #[inline]
    fn arm(&mut self, id: u32, when: u64) {
        black_box((id, when));
    }

    #[inline]
    fn rearm(&mut self, id: u32, _handle: &mut (), when: u64) {
        black_box((id, when));
    }

    #[inline]
    fn advance(&mut self, now: u64, _expired: &mut Vec<u32>) {
        black_box(now);
    }
}

/// A timer's memory with nothing around it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([u64; 8]);

/// Reads, changes and writes one word of the re-armed timer's cache line.
#[derive(Debug)]
pub struct Touch(Vec<Line>);

impl Peer for Touch {
    const NAME: &'static str = "touch";
    const NOTE: &'static str = "one read-modify-write in the re-armed timer's own cache line of 64 bytes, \
        the same timers in the same order: no structure that keeps anything in its timers can do with less";
    idle!();

    fn absent(workload: Workload) -> Option<&'static str> {
        (workload != Workload::Rearm).then_some(SAYS_NOTHING)
    }

    fn new(capacity: usize) -> Self {
        // Written, since pages that were only asked for are all the same page of zeros.
        Self((0..capacity as u64).map(|word| Line([word; 8])).collect())
    }

    fn arm(&mut self, _id: u32, _when: u64) {}

    #[inline]
    fn rearm(&mut self, id: u32, _handle: &mut (), when: u64) {
        let word = &mut self.0[id as usize].0[0];
        *word = word.wrapping_add(when);
    }

    #[inline]
    fn advance(&mut self, now: u64, _expired: &mut Vec<u32>) {
        black_box(now);
    }
}

/// The calls of a baseline that only re-arms.
macro_rules! only_rearm {
    () => {
        idle!();

        fn absent(workload: Workload) -> Option<&'static str> {
            (workload != Workload::Rearm).then_some(SAYS_NOTHING)
        }

        fn arm(&mut self, _id: u32, _when: u64) {}

        #[inline]
        fn advance(&mut self, now: u64, _expired: &mut Vec<u32>) {
            black_box(now);
        }
    };
}

/// The touches that no linked list can do without: the timer's line, and the lines of both neighbours, whose
/// places are read from it. Neighbours are random timers, as in a bucket with many of them.
#[derive(Debug)]
pub struct TouchNeighbours(Vec<Line>);

impl Peer for TouchNeighbours {
    const NAME: &'static str = "touch neighbours";
    const NOTE: &'static str = "one read-modify-write in the timer's line and one in each of two others that it names: the memory alone of taking a node out of a doubly linked list";
    only_rearm!();

    fn new(capacity: usize) -> Self {
        let mut random = Rng::with_seed(0x6e65_6967);
        let mut other = || random.u64(..capacity.max(1) as u64);
        Self((0..capacity as u64).map(|word| Line([word, other(), other(), 0, 0, 0, 0, 0])).collect())
    }

    #[inline]
    fn rearm(&mut self, id: u32, _handle: &mut (), when: u64) {
        let line = &mut self.0[id as usize].0;
        line[0] = line[0].wrapping_add(when);
        let (next, previous) = (line[1] as usize, line[2] as usize);
        self.0[next].0[3] = when;
        self.0[previous].0[4] = when;
    }
}

/// One touch at a time: which timer comes next is known only when the last one's line is there.
#[derive(Debug)]
pub struct TouchInTurn(Vec<Line>, u64);

impl Peer for TouchInTurn {
    const NAME: &'static str = "touch in turn";
    const NOTE: &'static str = "as touch, but each waits for the one before: what one touch takes by itself";
    only_rearm!();

    fn new(capacity: usize) -> Self {
        Self((0..capacity).map(|_| Line([0; 8])).collect(), 0)
    }

    #[inline]
    fn rearm(&mut self, id: u32, _handle: &mut (), when: u64) {
        // The word is always 0, which the processor does not know before it has read it.
        let line = &mut self.0[(u64::from(id) ^ self.1) as usize].0;
        line[0] = line[0].wrapping_add(when);
        self.1 = line[1];
    }
}

/// The tick of `delay_queue` without a queue.
#[derive(Debug)]
pub struct TokioClock;

impl Peer for TokioClock {
    const NAME: &'static str = "tokio clock";
    const NOTE: &'static str =
        "what a tick of DelayQueue's clock costs by itself, divided by the same operations";
    idle!();

    fn absent(workload: Workload) -> Option<&'static str> {
        (!matches!(workload, Workload::Timeouts | Workload::Expire)).then_some(SAYS_NOTHING)
    }

    fn new(_capacity: usize) -> Self {
        Self
    }

    #[inline]
    fn arm(&mut self, id: u32, when: u64) {
        black_box((id, when));
    }

    #[inline]
    fn advance(&mut self, _now: u64, _expired: &mut Vec<u32>) {
        delay_queue::tick(|_| {});
    }
}

/// Reading the system's clock once per arm or re-arm.
#[derive(Debug)]
pub struct SystemClock;

impl Peer for SystemClock {
    const NAME: &'static str = "system clock";
    const NOTE: &'static str =
        "Instant::now() once per operation, as mio-extras reads it; the others need not";
    idle!();

    fn absent(workload: Workload) -> Option<&'static str> {
        use Workload::{Arm, ArmCancelAlone, ArmCancelFew, ArmCancelMany, Rearm};
        let arms = matches!(workload, ArmCancelAlone | ArmCancelFew | ArmCancelMany | Arm | Rearm);
        (!arms).then_some(SAYS_NOTHING)
    }

    fn new(_capacity: usize) -> Self {
        Self
    }

    #[inline]
    fn arm(&mut self, _id: u32, _when: u64) {
        black_box(Instant::now());
    }

    fn advance(&mut self, _now: u64, _expired: &mut Vec<u32>) {}
}
