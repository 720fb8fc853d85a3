//! A random runtime: how many lanes on how many CPUs, what is armed, and what goes wrong.
//!
//! Each plan draws first which kinds of faults exist at all, so that some runs have few of them and those
//! often ("swarm testing", as in TigerBeetle's simulator): rare combinations come up sooner.

use super::schedule::HostFaults;
use crate::engine::SimRandom;
use quietcore_core::realtime::Awareness;
use serde::{Serialize, Serializer};
use std::fmt;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// What a simulated runtime is and does, drawn from a seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuntimePlan {
    /// What it was drawn from; also of all other randomness.
    pub seed: u64,
    /// Lanes; without any the helper runs every timer.
    pub lanes: u16,
    /// Threads that stand in for lanes.
    pub spares: u16,
    /// CPUs of the host.
    pub host_cpus: u16,
    /// Length of a tick, in ns.
    pub tick: u64,
    /// Of silence, in ns.
    pub stall_after: u64,
    /// Threads that arm and cancel and are no lanes.
    pub strangers: u16,
    /// Timers of each of them.
    pub timers: u16,
    /// Timers of each lane, which it arms itself.
    pub lane_timers: u16,
    /// The longest delay of an arm, in ns.
    pub longest_delay: u64,
    /// How often the host's coarse clock moves, in ns.
    pub host_tick: u64,
    /// For how long threads arm, in ns.
    pub duration: u64,
    /// The faults that exist.
    pub faults: RuntimeFaults,
    /// Tasks and work that are woken and run, on one lane or on any.
    pub tasks: u16,
    /// Whether a normal one goes to the lane that wakes it, and not to the one that it ran on last.
    pub wakes_here: bool,
    /// What long softirqs mean for real-time ones.
    #[serde(serialize_with = "name_of_awareness")]
    pub awareness: Awareness,
}

/// What may go wrong; 0 where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuntimeFaults {
    /// Of a million steps of any thread, so many are followed by a stop.
    pub stops_per_million: u64,
    /// The longest stop, in ns.
    pub longest_stop: u64,
    /// Of a hundred steps, so many lose the CPU to a thread that waits for one.
    pub preemptions: u32,
    /// How late the end of a wait may be, in ns.
    pub late_timer: u64,
    /// How late a kick may arrive, in ns.
    pub late_kick: u64,
    /// Of a hundred callbacks, so many take long.
    pub long_callbacks: u32,
    /// Of a hundred turns, so many are followed by a wait in user code that the lane tells of.
    pub blocks: u32,
    /// The longest of those, in ns.
    pub longest_block: u64,
    /// Between two changes of isolation, in ns.
    pub isolation_every: u64,
    /// Between two times at which a lane is left and claimed again, in ns.
    pub hotplug_every: u64,
    /// Whether lanes get items besides timers, and how long the longest takes, in ns.
    pub longest_item: u64,
    /// The moment from which on some piece of user code forks, in ns; the run goes on with the child.
    pub fork_after: u64,
    /// Whether threads raise softirqs, and how long the longest handler takes, in ns.
    pub longest_handler: u64,
    /// For how long softirqs wait for real-time items at most, in ns.
    pub defer_limit: u64,
    /// The moment from which on one item does not end for very long, in ns.
    pub stuck_after: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's shape")]
fn name_of_awareness<S: Serializer>(awareness: &Awareness, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(awareness.name())
}

impl RuntimePlan {
    /// The plan of `seed`.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let random = &mut SimRandom::new(seed, 12);
        let lanes = match random.below(10) {
            0 => 0,
            1..6 => 1 + random.below(4),
            6..9 => 2 + random.below(15),
            _ => 16 + random.below(49),
        };
        let tick = [MS, MS, MS, 4 * MS][random.below(4) as usize];
        let strangers = 1 + random.below(3) as u16;
        let scale = 1 + lanes / 8;
        Self {
            seed,
            lanes: lanes as u16,
            spares: 1 + random.below(3) as u16,
            host_cpus: 1 + random.below(lanes + 2) as u16,
            tick,
            stall_after: tick * (2 + random.below(4)),
            strangers,
            timers: 1 + random.below(12) as u16,
            lane_timers: random.below(4) as u16,
            host_tick: [MS, 4 * MS, 10 * MS][random.below(3) as usize],
            longest_delay: [5 * MS, 40 * MS, 300 * MS][random.below(3) as usize],
            duration: (40 + random.below(160)) * MS / scale,
            faults: RuntimeFaults::draw(random),
            tasks: 0,
            wakes_here: false,
            awareness: Awareness::Both,
        }
        .with_tasks(random)
    }

    fn with_tasks(self, random: &mut SimRandom) -> Self {
        let tasks = 1 + random.below(2 * u64::from(self.lanes) + 8).min(40) as u16;
        let exist = self.lanes > 0 && self.faults.longest_item > 0;
        let (wakes_here, awareness) = (random.chance(40), Awareness::ALL[random.below(4) as usize]);
        // The softirqs of a lane that is stuck wait for it, and all timers for a spare that is, when every
        // lane is isolated.
        let can_be_stuck = exist && self.faults.longest_handler == 0 && self.faults.isolation_every == 0;
        let is_stuck = random.chance(50) && can_be_stuck;
        let stuck_after = MS + random.below(30 * MS);
        let faults = RuntimeFaults { stuck_after: if is_stuck { stuck_after } else { 0 }, ..self.faults };
        Self { tasks: if exist { tasks } else { 0 }, wakes_here, awareness, faults, ..self }
    }

    /// How long all items take that may wait at a time, in ns.
    pub(super) fn items_take(&self) -> u64 {
        u64::from(self.tasks) * self.faults.longest_item
    }

    /// Timers of the run: those of strangers, then those of lanes.
    pub(super) fn all_timers(&self) -> u32 {
        self.strangers_timers() + u32::from(self.lanes) * u32::from(self.lane_timers)
    }

    /// Those whose softirqs are raised: all or none.
    pub(super) const fn lanes_with_softirqs(&self) -> u16 {
        if self.faults.longest_handler > 0 { self.lanes } else { 0 }
    }

    pub(super) fn strangers_timers(&self) -> u32 {
        u32::from(self.strangers) * u32::from(self.timers)
    }

    pub(super) fn host_faults(&self) -> HostFaults {
        HostFaults {
            stops_per_million: self.faults.stops_per_million,
            longest_stop: self.faults.longest_stop,
            preemptions: self.faults.preemptions,
            late_timer: self.faults.late_timer,
            late_wake: self.faults.late_kick,
        }
    }
}

impl RuntimeFaults {
    fn draw(random: &mut SimRandom) -> Self {
        let mut exists = |percent| random.chance(percent);
        let (stops, preemptions, late) = (exists(40), exists(50), exists(40));
        let (long, blocks, items) = (exists(30), exists(30), exists(50));
        let (isolation, hotplug) = (exists(30), exists(25));
        let mut if_any = |is_any: bool, least: u64, most: u64| {
            let drawn = least + random.below(most - least);
            if is_any { drawn } else { 0 }
        };
        Self {
            stops_per_million: if_any(stops, 20, 800),
            longest_stop: if_any(stops, 100 * US, 40 * MS),
            preemptions: if_any(preemptions, 1, 20) as u32,
            late_timer: if_any(late, US, 300 * US),
            late_kick: if_any(late, US, 100 * US),
            long_callbacks: if_any(long, 1, 10) as u32,
            blocks: if_any(blocks, 1, 10) as u32,
            longest_block: if_any(blocks, MS, 60 * MS),
            isolation_every: if_any(isolation, MS, 30 * MS),
            hotplug_every: if_any(hotplug, 3 * MS, 30 * MS),
            longest_item: if_any(items, 5 * US, 8 * MS),
            fork_after: {
                let forks = if_any(true, 0, 100) < 15;
                if_any(forks, MS, 60 * MS)
            },
            longest_handler: {
                let softirqs = if_any(true, 0, 100) < 40;
                if_any(softirqs, 2 * US, 800 * US)
            },
            defer_limit: if_any(true, 100 * US, 20 * MS),
            // Drawn with the tasks.
            stuck_after: 0,
        }
    }

    /// Each kind with its measure, as text for people.
    #[must_use]
    pub const fn each(&self) -> [(&'static str, u64); 15] {
        [
            ("stops per million steps", self.stops_per_million),
            ("longest stop, ns", self.longest_stop),
            ("preemptions per 100 steps", self.preemptions as u64),
            ("timers late by up to, ns", self.late_timer),
            ("kicks late by up to, ns", self.late_kick),
            ("long callbacks of 100", self.long_callbacks as u64),
            ("blocks after 100 turns", self.blocks as u64),
            ("longest block, ns", self.longest_block),
            ("isolation changes every, ns", self.isolation_every),
            ("lanes come and go every, ns", self.hotplug_every),
            ("longest item, ns", self.longest_item),
            ("forks from, ns", self.fork_after),
            ("longest softirq, ns", self.longest_handler),
            ("deferred for, ns", if self.longest_handler > 0 { self.defer_limit } else { 0 }),
            ("an item does not end from, ns", self.stuck_after),
        ]
    }

    /// The kinds of faults, each switched off once: for finding the least that still fails.
    pub(super) fn without_one(self) -> Vec<Self> {
        let each = [
            Self { stops_per_million: 0, ..self },
            Self { preemptions: 0, ..self },
            Self { late_timer: 0, ..self },
            Self { late_kick: 0, ..self },
            Self { long_callbacks: 0, ..self },
            Self { blocks: 0, ..self },
            Self { isolation_every: 0, ..self },
            Self { hotplug_every: 0, ..self },
            Self { longest_item: 0, ..self },
            Self { fork_after: 0, ..self },
            Self { longest_handler: 0, ..self },
            Self { stuck_after: 0, ..self },
        ];
        each.into_iter().filter(|fewer| *fewer != self).collect()
    }
}

impl fmt::Display for RuntimePlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "seed {}: {} lanes and {} spares on {} CPUs, {} strangers with {} timers each",
            self.seed, self.lanes, self.spares, self.host_cpus, self.strangers, self.timers
        )
    }
}
