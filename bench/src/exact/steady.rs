//! How long operations take on average, at a steady number of live timers.
//!
//! One *setting* is a number of live timers and a spread of delays. Its queue is filled in random
//! order and then made to run for a while (pop the first, arm it again), so that no candidate still
//! owes work for the filling; then come the workloads, one after the other, on the same queue.

use super::load::{LONGEST, Quantiles, Random, START, Spread, at};
use super::{KINDS, Kind, Queue, Silent, with_queue};
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// How many timers an arm-and-cancel workload has in flight: one is cancelled as the 16th after it is armed.
const IN_FLIGHT: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    /// Arm one timer and cancel one: nanoseconds per pair
    ArmCancel,
    /// Arm a random live timer again
    Rearm,
    /// Pop the first and arm it again: nanoseconds per pair
    Hold,
    /// Nine times out of ten arm a random live timer again, else pop the first and arm it again
    Mixed,
    /// Arm all timers of an empty queue
    Fill,
    /// Pop all timers
    Drain,
}

impl Work {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::ArmCancel => "arm + cancel",
            Self::Rearm => "re-arm",
            Self::Hold => "pop + arm",
            Self::Mixed => "9 re-arms : 1 pop + arm",
            Self::Fill => "fill",
            Self::Drain => "drain",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    live: usize,
    spread: Spread,
    /// In this order; `Fill` and `Drain` frame the others.
    works: &'static [Work],
}

const fn setting(live: usize, spread: Spread, works: &'static [Work]) -> Setting {
    Setting { live, spread, works }
}

const IDLE: &[Work] = &[Work::ArmCancel];
const SMALL: &[Work] = &[Work::Rearm, Work::Hold, Work::Mixed];
const USUAL: &[Work] = &[Work::ArmCancel, Work::Rearm, Work::Hold, Work::Mixed];
const ALL: &[Work] = &[Work::Fill, Work::ArmCancel, Work::Rearm, Work::Hold, Work::Mixed, Work::Drain];

const SETTINGS: [Setting; 12] = [
    setting(0, Spread::Uniform, IDLE),
    setting(10, Spread::Uniform, SMALL),
    setting(100, Spread::Uniform, SMALL),
    setting(1_000, Spread::Uniform, USUAL),
    setting(10_000, Spread::Uniform, USUAL),
    setting(1_000_000, Spread::Uniform, ALL),
    setting(0, Spread::Logarithmic, IDLE),
    setting(10, Spread::Logarithmic, SMALL),
    setting(100, Spread::Logarithmic, SMALL),
    setting(1_000, Spread::Logarithmic, USUAL),
    setting(10_000, Spread::Logarithmic, USUAL),
    setting(1_000_000, Spread::Logarithmic, USUAL),
];

/// How much is measured.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    pub(crate) rounds: u32,
    /// Operations per workload and round.
    pub(crate) operations: usize,
    /// Settings with more live timers are left out.
    pub(crate) live_max: usize,
    pub(crate) kinds: Vec<Kind>,
}

/// Nanoseconds per operation of one candidate in one workload.
#[derive(Debug, Serialize)]
pub(crate) struct Rate {
    pub(crate) work: Work,
    pub(crate) live: usize,
    pub(crate) spread: Spread,
    pub(crate) queue: Kind,
    pub(crate) ns: Quantiles,
}

/// The random numbers of one round of one setting.
#[derive(Debug)]
struct Script {
    fill: Vec<u64>,
    delays: Vec<u64>,
    ids: Vec<u32>,
}

/// The rounds interleave: each runs every candidate, beginning with another one each time.
pub(crate) fn measure(extent: &Extent) -> Vec<Rate> {
    let mut rates = Vec::new();
    for (number, setting) in
        SETTINGS.iter().enumerate().filter(|(_, setting)| setting.live <= extent.live_max)
    {
        let mut spans = vec![vec![Vec::new(); KINDS.len()]; setting.works.len()];
        for round in 0..extent.rounds as usize {
            let script = script(setting, extent.operations, (number * 1_000 + round) as u64);
            for step in 0..extent.kinds.len() {
                let kind = extent.kinds[(round + step) % extent.kinds.len()];
                let round = with_queue!(kind, Silent, run(setting, &script));
                round.into_iter().enumerate().for_each(|(work, ns)| spans[work][kind as usize].push(ns));
            }
        }
        for (&work, spans) in setting.works.iter().zip(spans) {
            for (&queue, spans) in KINDS.iter().zip(spans).filter(|(_, spans)| !spans.is_empty()) {
                let (live, spread) = (setting.live, setting.spread);
                rates.push(Rate { work, live, spread, queue, ns: Quantiles::of(spans) });
            }
        }
        eprintln!("exact: averages with {} live, {} delays", setting.live, setting.spread.label());
    }
    rates
}

fn script(setting: &Setting, operations: usize, seed: u64) -> Script {
    let mut random = Random::new(seed);
    Script {
        fill: setting.spread.draws(setting.live, &mut random),
        delays: setting.spread.draws(operations, &mut random),
        ids: (0..operations).map(|_| random.below(setting.live.max(1) as u64) as u32).collect(),
    }
}

/// Nanoseconds per operation of each workload of `setting`.
fn run<Q: Queue>(setting: &Setting, script: &Script) -> Vec<f64> {
    let mut queue = Q::with_nodes(setting.live + IN_FLIGHT);
    let begin = Instant::now();
    for (id, delay) in script.fill.iter().enumerate() {
        queue.arm(id as u32, at(START + delay));
    }
    let fill = begin.elapsed();
    // Some of every setting's operations, but not all of them for a million timers.
    let mut now = hold(&mut queue, START, &script.delays[..script.delays.len() / 4]);
    let mut spans = Vec::new();
    for &work in setting.works {
        let begin = Instant::now();
        let operations = match work {
            Work::ArmCancel => arm_cancel(&mut queue, now, setting.live, script),
            Work::Rearm => rearm(&mut queue, now, script),
            Work::Hold => {
                now = hold(&mut queue, now, &script.delays);
                script.delays.len()
            }
            Work::Mixed => {
                now = mixed(&mut queue, now, script);
                script.delays.len()
            }
            Work::Fill => setting.live,
            Work::Drain => drain(&mut queue),
        };
        let span = if work == Work::Fill { fill } else { begin.elapsed() };
        spans.push(span.as_nanos() as f64 / operations as f64);
    }
    spans
}

fn arm_cancel<Q: Queue>(queue: &mut Q, now: u64, live: usize, script: &Script) -> usize {
    // With nothing live, nothing else is in flight either.
    let in_flight = if live == 0 { 1 } else { IN_FLIGHT };
    for (at_once, &delay) in script.delays.iter().enumerate() {
        queue.arm((live + at_once % in_flight) as u32, at(now + delay));
        black_box(queue.cancel((live + (at_once + 1) % in_flight) as u32));
    }
    for spare in live..live + in_flight {
        queue.cancel(spare as u32);
    }
    script.delays.len()
}

fn rearm<Q: Queue>(queue: &mut Q, now: u64, script: &Script) -> usize {
    for (&id, &delay) in script.ids.iter().zip(&script.delays) {
        queue.arm(id, at(now + delay));
    }
    script.ids.len()
}

/// The time at which it ends.
fn hold<Q: Queue>(queue: &mut Q, mut now: u64, delays: &[u64]) -> u64 {
    for &delay in delays {
        let Some(first) = queue.first() else { return now };
        now = queue.times(first).hard.max(now);
        if let Some(id) = queue.pop_expired(now) {
            queue.arm(id, at(now + delay));
        }
    }
    now
}

/// The time at which it ends.
fn mixed<Q: Queue>(queue: &mut Q, mut now: u64, script: &Script) -> u64 {
    for (ids, delays) in script.ids.chunks(10).zip(script.delays.chunks(10)) {
        for (&id, &delay) in ids.iter().zip(delays).skip(1) {
            queue.arm(id, at(now + delay));
        }
        now = hold(queue, now, &delays[..1]);
    }
    now
}

fn drain<Q: Queue>(queue: &mut Q) -> usize {
    let mut count = 0;
    let end = START + 1_000 * LONGEST;
    while let Some(id) = queue.pop_expired(end) {
        black_box(id);
        count += 1;
    }
    count
}
