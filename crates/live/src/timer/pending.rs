//! What is armed right now, by what it runs: for a program that wants to know where its timers come from.
//!
//! Timers are looked at under the lock of their base, where nothing may be allocated: the groups of a base
//! lie in a table that was made before. If it is too small, the base is looked at again with a larger one.

use crate::job::Job;
use crate::stall::RunningCode;
use crate::{CpuId, Machine, Nanos};
use core::fmt;
use core::panic::Location;
use std::collections::HashMap;

/// Of so many kinds the timers of a CPU are expected to be.
const KINDS_EXPECTED: usize = 64;

/// Timers that are pending and run the same code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingTimers {
    /// The type of the closure, as the compiler names it; `a function` of a [`RawTimer`](super::RawTimer), `a
    /// task's waker` of futures.
    pub name: &'static str,
    /// The address of the function, for a debugger; 0 for futures.
    pub function: usize,
    /// Where they were armed, if the machine [records that](crate::MachineBuilder::arm_locations).
    pub armed: Option<&'static Location<'static>>,
    /// How many there are.
    pub count: usize,
    /// What the first of them is armed for, on the machine's clock; of a timer of ticks the start of its
    /// tick.
    pub first: Nanos,
    /// What the last of them is armed for.
    pub last: Nanos,
}

/// What tells one kind from another.
pub(super) type Kind = (usize, usize, Option<&'static Location<'static>>);

pub(super) type PendingKinds = HashMap<Kind, PendingTimers>;

impl Machine {
    /// How many timers are pending: futures, callbacks and delayed work that were armed and have not run.
    /// From any thread. Cost: each base's lock once. Nothing is pending in a forked child.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        if self.is_forked() { 0 } else { self.core.count_pending().map(|(_, count)| count).sum() }
    }

    /// What is pending, by the code that it will run, the most frequent first: to find where timers come from
    /// that were not expected. With [`arm_locations`](crate::MachineBuilder::arm_locations) callbacks are
    /// told apart by where they were armed, too.
    ///
    /// From any thread; timers may be armed and run meanwhile, so the counts are not of one moment. Cost:
    /// some 10 to 100 ns per timer; each base is locked while its timers are looked at, so that what is armed
    /// there waits. For debugging, not for a loop. Empty in a forked child.
    ///
    /// ```
    /// use core::time::Duration;
    ///
    /// let machine = quietcore::Machine::start()?;
    /// let timer = machine.timer(Default::default(), |_| println!("an hour is over"));
    /// timer.arm_after(Duration::from_secs(3600))?;
    /// let pending = machine.pending();
    /// assert_eq!((pending.len(), pending[0].count), (1, 1));
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn pending(&self) -> Vec<PendingTimers> {
        let mut all = PendingKinds::new();
        if self.is_forked() {
            // There the locks may be held for ever.
            return Vec::new();
        }
        let mut cpus: Vec<CpuId> = self.core.count_pending().filter(|of| of.1 > 0).map(|of| of.0).collect();
        cpus.dedup();
        for cpu in cpus {
            for (kind, here) in self.pending_of(cpu, KINDS_EXPECTED) {
                match all.get_mut(&kind) {
                    Some(known) => known.add(&here),
                    None => drop(all.insert(kind, here)),
                }
            }
        }
        let mut sorted: Vec<PendingTimers> = all.into_values().collect();
        sorted.sort_by(|one, other| {
            other.count.cmp(&one.count).then(one.first.cmp(&other.first)).then(one.name.cmp(other.name))
        });
        sorted
    }

    /// `room`: for how many kinds there is room at first.
    pub(super) fn pending_of(&self, cpu: CpuId, mut room: usize) -> PendingKinds {
        loop {
            let mut kinds = PendingKinds::with_capacity(room);
            let mut is_whole = true;
            self.core.for_each_pending(cpu, |payload, name, expires| {
                let timer = PendingTimers::of(Job::of_pending(payload, name), expires);
                let kind = (timer.name.as_ptr() as usize, timer.function, timer.armed);
                if let Some(known) = kinds.get_mut(&kind) {
                    known.add(&timer);
                } else if kinds.len() < room {
                    kinds.insert(kind, timer);
                } else {
                    is_whole = false;
                }
            });
            if is_whole {
                return kinds;
            }
            room *= 4;
        }
    }
}

/// A line: `3 of my::closure at 0x5581, armed at FILE:7:9, due 1.205 s to 3.000 s on the machine's
/// clock`.
impl fmt::Display for PendingTimers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} of {}", self.count, self.name)?;
        if self.function != 0 {
            write!(out, " at {:#x}", self.function)?;
        }
        if let Some(armed) = self.armed {
            write!(out, ", armed at {armed}")?;
        }
        let [first, last] = [self.first, self.last].map(|moment| moment.0 as f64 / 1e9);
        write!(out, ", due {first:.3} s to {last:.3} s on the machine's clock")
    }
}

impl PendingTimers {
    fn of(code: RunningCode, expires: Nanos) -> Self {
        let RunningCode { callback, function, location, .. } = code;
        Self { name: (callback.name)(), function, armed: location, count: 1, first: expires, last: expires }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}
