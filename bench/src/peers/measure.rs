//! Carries a workload out with a stopwatch, and asserts that it did what it was to do.
//!
//! Outside of the stopwatch: making the structure, arming its population, making instants and durations.
//! Inside: the operations, the caller's table of handles where a workload needs one, and reading the
//! prepared instants. Nothing is subtracted; the row `empty` shows what the loops cost by themselves.
//!
//! `black_box` keeps the compiler from fusing the arm of a timer with its cancel: in an application the
//! handle would be in memory meanwhile.

use super::peer::{Clock, Peer, Role};
use super::plan::{Plan, Workload};
use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Ticks between arming and cancelling in [`Workload::Timeouts`].
const IN_FLIGHT_TICKS: usize = 2;
/// Expiry is given up after this many times the ticks in which everything should have expired.
const PATIENCE: u64 = 4;

/// Nanoseconds per operation.
///
/// # Panics
/// If an operation did not have the effect it must have.
#[must_use]
pub fn run<P: Peer>(plan: &Plan) -> f64 {
    let taken = match plan.workload {
        Workload::ArmCancelAlone | Workload::ArmCancelFew | Workload::ArmCancelMany => {
            let mut pairs = Pairs::<P>::new(plan);
            pairs.run(plan.warm_up);
            let taken = stopwatch(|| pairs.run(plan.operations));
            pairs.finish();
            taken
        }
        Workload::Timeouts => timeouts::<P>(plan),
        Workload::Arm => arm::<P>(plan),
        Workload::Rearm => rearm::<P>(plan),
        Workload::Expire => expire::<P>(plan),
        Workload::NextRandom | Workload::NextFirst => next_expiry::<P>(plan),
    };
    taken.as_nanos() as f64 / plan.operations as f64
}

fn stopwatch(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A structure with its population, and the handles.
pub(super) fn fill<P: Peer>(live: &[u64], spare: usize) -> (P, Vec<P::Handle>) {
    let mut peer = P::new(live.len() + spare);
    let mut arm = |(id, &delay): (usize, &u64)| {
        let when = peer.when(0, delay);
        peer.arm(id as u32, when)
    };
    let handles = live.iter().enumerate().map(&mut arm).collect();
    expect::<P>("timers pending at the start", peer.pending(), live.len());
    (peer, handles)
}

/// Asserts an effect, which a baseline has none of.
fn expect<P: Peer>(what: &str, found: usize, expected: usize) {
    assert!(P::ROLE == Role::Baseline || found == expected, "{}: {what}: {found}, not {expected}", P::NAME);
}

/// Pairs of arm and cancel of one timer beside a population. Public for counting instructions, too.
pub struct Pairs<P: Peer> {
    peer: P,
    whens: Vec<P::When>,
    others: usize,
    done: usize,
    cancelled: usize,
}

impl<P: Peer> Pairs<P> {
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let (peer, _handles) = fill::<P>(&plan.live, 1);
        let whens = plan.delays.iter().map(|&delay| peer.when(0, delay)).collect();
        Self { peer, whens, others: plan.live.len(), done: 0, cancelled: 0 }
    }

    /// The next `count` pairs.
    pub fn run(&mut self, count: usize) {
        let (id, mut left) = (self.others as u32, count);
        while left > 0 {
            for &when in self.whens.iter().take(left) {
                let mut handle = self.peer.arm(id, black_box(when));
                self.cancelled += usize::from(self.peer.cancel(id, black_box(&mut handle)));
            }
            left -= left.min(self.whens.len());
        }
        self.done += count;
    }

    /// # Panics
    /// If a cancelled timer was not pending before, or is afterwards.
    pub fn finish(&self) {
        expect::<P>("timers cancelled", self.cancelled, self.done);
        expect::<P>("timers pending in the end", self.peer.pending(), self.others);
    }
}

/// Everything armed is cancelled before it can expire, so whatever expires is a mistake.
fn timeouts<P: Peer>(plan: &Plan) -> Duration {
    let in_flight_max = IN_FLIGHT_TICKS * plan.per_tick;
    let ids = in_flight_max + 1;
    let (mut peer, _handles) = fill::<P>(&plan.live, ids);
    let nows: Vec<_> = (1..=plan.ticks).map(|tick| peer.now(tick)).collect();
    let when = |(at, &delay)| peer.when((at / plan.per_tick) as u64, delay);
    let whens: Vec<_> = plan.delays.iter().enumerate().map(when).collect();
    let mut in_flight = VecDeque::with_capacity(ids);
    let (mut cancelled, mut expired, mut next_id) = (0, Vec::new(), 0);
    let taken = stopwatch(|| {
        for (&now, whens) in nows.iter().zip(whens.chunks(plan.per_tick)) {
            for &when in whens {
                let id = (plan.live.len() + next_id) as u32;
                next_id = if next_id + 1 == ids { 0 } else { next_id + 1 };
                in_flight.push_back((id, peer.arm(id, black_box(when))));
                if in_flight.len() > in_flight_max
                    && let Some((id, mut handle)) = in_flight.pop_front()
                {
                    cancelled += usize::from(peer.cancel(id, &mut handle));
                }
            }
            peer.advance(now, &mut expired);
        }
    });
    expect::<P>("timers expired", expired.len(), 0);
    expect::<P>("timers cancelled", cancelled, plan.operations - in_flight.len());
    expect::<P>("timers pending in the end", peer.pending(), plan.live.len() + in_flight.len());
    taken
}

/// What the structure allocates, and pages that it touches for the first time, are part of it.
fn arm<P: Peer>(plan: &Plan) -> Duration {
    let mut peer = P::new(plan.operations);
    let whens: Vec<_> = plan.delays.iter().map(|&delay| peer.when(0, delay)).collect();
    let mut handles = Vec::with_capacity(plan.operations);
    let taken = stopwatch(|| {
        for (&when, id) in black_box(&whens).iter().zip(0..) {
            handles.push(peer.arm(id, when));
        }
    });
    black_box(handles);
    expect::<P>("timers pending in the end", peer.pending(), plan.operations);
    taken
}

fn rearm<P: Peer>(plan: &Plan) -> Duration {
    let (mut peer, mut handles) = fill::<P>(&plan.live, 0);
    let whens: Vec<_> = plan.delays.iter().map(|&delay| peer.when(0, delay)).collect();
    let mut run = |victims: &[u32]| {
        // The expiries repeat, so that they stay in a near cache: the far ones are the timers' alone.
        for victims in victims.chunks(whens.len()) {
            for (&id, &when) in victims.iter().zip(&whens) {
                peer.rearm(id, &mut handles[id as usize], when);
            }
        }
    };
    let (warm_up, victims) = plan.victims.split_at(plan.warm_up);
    run(black_box(warm_up));
    let taken = stopwatch(|| run(black_box(victims)));
    black_box(&mut peer);
    expect::<P>("timers pending in the end", peer.pending(), plan.live.len());
    taken
}

fn expire<P: Peer>(plan: &Plan) -> Duration {
    let (mut peer, mut handles) = fill::<P>(&plan.live, 0);
    let patience = if P::ROLE == Role::Baseline { 1 } else { PATIENCE };
    let nows: Vec<_> = (1..=patience * plan.ticks).map(|tick| peer.now(tick)).collect();
    // All at once, should a peer hand out everything in one go.
    let mut expired = Vec::with_capacity(plan.live.len());
    let (mut count, mut sum) = (0, 0);
    if P::CLOCK == Clock::System {
        peer.wait(plan.ticks);
    }
    let taken = stopwatch(|| {
        for &now in &nows {
            peer.advance(black_box(now), &mut expired);
            count += expired.len();
            for id in expired.drain(..) {
                sum += u64::from(id);
                peer.release(id, &mut handles[id as usize]);
            }
            if count >= plan.live.len() {
                break;
            }
        }
    });
    let ids = plan.live.len() as u64;
    expect::<P>("timers expired", count, plan.live.len());
    expect::<P>("the sum of the numbers of expired timers", sum as usize, (ids * (ids - 1) / 2) as usize);
    taken
}

fn next_expiry<P: Peer>(plan: &Plan) -> Duration {
    let (mut peer, mut handles) = fill::<P>(&plan.live, 0);
    let (mut cancelled, mut answers) = (0, 0);
    let taken = stopwatch(|| {
        for &id in black_box(&plan.victims) {
            cancelled += usize::from(peer.cancel(id, &mut handles[id as usize]));
            answers += usize::from(black_box(peer.next_expiry()).is_some());
        }
    });
    expect::<P>("timers cancelled", cancelled, plan.operations);
    expect::<P>("answers", answers, plan.operations);
    expect::<P>("timers pending in the end", peer.pending(), plan.live.len() - plan.operations);
    taken
}
