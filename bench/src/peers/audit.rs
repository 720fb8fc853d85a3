//! Carries a workload out without a stopwatch, and says how exact the peer's answers were.
//!
//! Speed alone would reward a structure for not answering: one that hands timers out early or late, or that
//! does not look for the next expiry after a cancel. Only the workloads whose answers can differ are
//! audited. A peer with a clock of its own is not: when it handed something out is not known to a tick.

use super::measure::fill;
use super::peer::{Answer, Clock, Peer, Role};
use super::plan::{Plan, Workload};
use serde::Serialize;
use std::collections::BTreeSet;

/// How exact a peer was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Audit {
    /// How far, in ticks, timers were handed out before and after they were due, at most.
    Lateness { early_max: u64, late_max: u64 },
    /// Which share of the answers were the very tick at which the next timer is due.
    Answers { exact: f64 },
}

/// `None` where there is nothing to be found out.
///
/// # Panics
/// If an answer breaks the peer's own promise.
#[must_use]
pub fn run<P: Peer>(plan: &Plan) -> Option<Audit> {
    if P::ROLE == Role::Baseline || P::CLOCK == Clock::System {
        return None;
    }
    match plan.workload {
        Workload::Expire => Some(lateness::<P>(plan)),
        Workload::NextRandom | Workload::NextFirst if P::ANSWER != Answer::Absent => Some(answers::<P>(plan)),
        _ => None,
    }
}

fn lateness<P: Peer>(plan: &Plan) -> Audit {
    let (mut peer, mut handles) = fill::<P>(&plan.live, 0);
    let (mut expired, mut early_max, mut late_max) = (Vec::new(), 0, 0);
    let (mut tick, mut left) = (0, plan.live.len());
    while left > 0 {
        tick += 1;
        assert!(tick < 8 * plan.ticks, "{}: {left} timers are still pending at tick {tick}", P::NAME);
        let now = peer.now(tick);
        peer.advance(now, &mut expired);
        left -= expired.len();
        for id in expired.drain(..) {
            let due = plan.live[id as usize];
            early_max = early_max.max(due.saturating_sub(tick));
            late_max = late_max.max(tick.saturating_sub(due));
            peer.release(id, &mut handles[id as usize]);
        }
    }
    Audit::Lateness { early_max, late_max }
}

fn answers<P: Peer>(plan: &Plan) -> Audit {
    let (mut peer, mut handles) = fill::<P>(&plan.live, 0);
    let mut pending: BTreeSet<(u64, u32)> = plan.live.iter().copied().zip(0..).collect();
    let mut exact = 0;
    for &id in &plan.victims {
        let was_pending = peer.cancel(id, &mut handles[id as usize]);
        assert!(was_pending, "{}: timer {id} was not pending", P::NAME);
        pending.remove(&(plan.live[id as usize], id));
        let answer = peer.next_expiry().map(|now| peer.tick(now));
        let truth = pending.first().map(|&(due, _)| due);
        match P::ANSWER {
            Answer::Exact => assert_eq!(answer, truth, "{}: next expiry", P::NAME),
            Answer::LowerBound => assert!(answer <= truth, "{}: {answer:?} is after {truth:?}", P::NAME),
            Answer::Approximate | Answer::Absent => {}
        }
        exact += u32::from(answer == truth);
    }
    Audit::Answers { exact: f64::from(exact) / plan.victims.len() as f64 }
}
