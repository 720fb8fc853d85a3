//! The most nodes that a single operation looks at: the part of the worst case that no noise hides.
//!
//! The same bursts as in `single`, in every [`Order`], and a long time of arming anew before a last
//! pop of everything. A node counts once per operation however
//! often it is visited, as its first visit is the one that may miss the cache; the entries of an
//! array beside the nodes count like nodes. Lists' ends and the queue's own fields do not count.

use super::load::{ORDERS, Order, Random, START, at};
use super::single::{Burst, Meter, OPS, Op};
use super::steady::Extent;
use super::{Counting, Kind, Queue, with_queue};
use serde::Serialize;

/// The most places that an operation of one candidate touched, and the order of the burst then.
#[derive(Debug, Serialize)]
pub(crate) struct Touched {
    pub(crate) op: Op,
    pub(crate) live: usize,
    pub(crate) queue: Kind,
    pub(crate) places: u32,
    pub(crate) order: Order,
}

#[derive(Debug, Default)]
struct Counter {
    most: [u32; OPS.len()],
}

impl<Q: Queue<Probe = Counting>> Meter<Q> for Counter {
    fn meter(&mut self, op: Op, queue: &mut Q, operation: impl FnOnce(&mut Q)) {
        queue.probe().begin();
        operation(queue);
        let most = &mut self.most[op as usize];
        *most = queue.probe().count().max(*most);
    }
}

/// Steps that everything is mixed for, and timers that are armed anew with nothing popped: long enough
/// to show it if cancels wear a structure out.
const WEAR: usize = 300_000;

const LIVE: [usize; 4] = [100, 1_000, 10_000, 1_000_000];

pub(crate) fn measure(extent: &Extent) -> Vec<Touched> {
    let mut touched = Vec::new();
    for live in LIVE.into_iter().filter(|&live| live <= extent.live_max) {
        // Cancelling in arm order is quadratic in the radix lists, and that they touch all is known by then.
        let too_slow = |kind: Kind| kind == Kind::Radix && live > 10_000;
        for &queue in extent.kinds.iter().filter(|&&kind| !too_slow(kind)) {
            let counts = ORDERS.map(|order| (order, with_queue!(queue, Counting, count(order, live))));
            for op in OPS {
                let most = counts.iter().map(|(order, counts)| (counts[op as usize], *order));
                if let Some((places, order)) = most.max_by_key(|&(places, _)| places) {
                    touched.push(Touched { op, live, queue, places, order });
                }
            }
        }
        eprintln!("exact: nodes touched with {live} live");
    }
    touched
}

fn count<Q: Queue<Probe = Counting>>(order: Order, live: usize) -> [u32; OPS.len()] {
    let mut queue = Q::with_nodes(live);
    let mut counter = Counter::default();
    let mut burst = Burst::new(order, live, 9_000_000);
    burst.mix = WEAR;
    let now = burst.run(&mut queue, &mut counter, START);
    burst.fill(&mut queue, now);
    let mut random = Random::new(9_000_001);
    let mut draw = || random.below(live as u64) as usize;
    for _ in 0..WEAR {
        let (id, times) = (draw() as u32, at(now + burst.delays[draw()]));
        counter.meter(Op::Rearm, &mut queue, |queue| queue.arm(id, times));
    }
    burst.pop_all(&mut queue, &mut counter);
    counter.most
}
