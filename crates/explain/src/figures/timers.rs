//! Wheel timers: armed where, in whose base, ran where.
//!
//! Three CPUs per expiry: armed on (`[CPU]` of the timer's last `timer_start`; a cancel does not
//! forget it, because one precedes every expiry), base (`cpu=` of that event), ran on (`[CPU]` of
//! `timer_expire_entry`). Pulled: ran on != base. Placed: ran on == base.

use super::count::CountPerCpu;
use super::interruptions::Initiator;
use super::report::ExampleExpiry;
use super::side::TimerSide;
use quietcore_core::{CpuId, CpuSet};
use quietcore_trace::{IdentityTable, NameId, NameTable, Record, TimerStart};
use std::collections::BTreeMap;

const EXAMPLES_PER_CPU: u64 = 2;
const EXAMPLES_MAX: usize = 64;
const CPU_FUNCTIONS_MAX: usize = 16_384;

/// What is remembered of a timer between its start and its expiry.
#[derive(Debug)]
struct ArmedAt {
    line: u64,
    by: Initiator,
    base: CpuId,
    /// The base of a remote expiry that no start has followed yet.
    expired_remotely_from: Option<CpuId>,
}

/// A callback begins.
#[derive(Debug)]
pub(super) struct TimerExpiry {
    pub(super) line: u64,
    pub(super) ran_on: CpuId,
    pub(super) timer: u64,
    pub(super) function: NameId,
}

/// Expiries on isolated CPUs of timers that were armed elsewhere.
#[derive(Debug, Default)]
pub(super) struct Disturbances {
    pub(super) pulled: CountPerCpu,
    pub(super) placed: CountPerCpu,
    pub(super) by_base: CountPerCpu,
    /// Those since their CPU was taken out of timer migration, or since the begin.
    pub(super) since_isolated: CountPerCpu,
    pub(super) by_function: BTreeMap<NameId, Kinds>,
    pub(super) by_cpu_function: BTreeMap<(CpuId, NameId), u64>,
    pub(super) examples: Vec<ExampleExpiry>,
}

/// One callback's share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kinds {
    pub(super) pulled: u64,
    pub(super) placed: u64,
}

impl Kinds {
    pub(super) fn total(self) -> u64 {
        self.pulled + self.placed
    }
}

/// All that is counted of wheel timers.
#[derive(Debug)]
pub(super) struct TimerCounts {
    armed: IdentityTable<ArmedAt>,
    /// Line of the last mark of lost events: a start before it need not be the timer's last.
    lost: u64,
    pub(super) expired_unknown_start: u64,
    pub(super) foreign: Disturbances,
    pub(super) between_isolated: Disturbances,
    pub(super) remote: CountPerCpu,
    pub(super) ping_pongs: u64,
}

impl TimerCounts {
    pub(super) fn new(identities_max: usize) -> Self {
        Self {
            armed: IdentityTable::new(identities_max),
            lost: 0,
            expired_unknown_start: 0,
            foreign: Disturbances::default(),
            between_isolated: Disturbances::default(),
            remote: CountPerCpu::default(),
            ping_pongs: 0,
        }
    }

    pub(super) fn evicted(&self) -> u64 {
        self.armed.evicted()
    }

    /// Events were lost: which CPU started a timer last is not known any more.
    pub(super) fn forget(&mut self, mark: &Record<'_>) {
        self.lost = mark.line;
    }

    /// A CPU was taken out of timer migration.
    pub(super) fn take_isolation(&mut self, cpu: CpuId) {
        self.foreign.since_isolated.reset(cpu);
        self.between_isolated.since_isolated.reset(cpu);
    }

    pub(super) fn take_start(&mut self, record: &Record<'_>, start: &TimerStart<'_>, by: Initiator) {
        let armed = ArmedAt { line: record.line, by, base: start.base, expired_remotely_from: None };
        let before = self.armed.insert(start.timer, armed).filter(|before| before.line > self.lost);
        if before.and_then(|timer| timer.expired_remotely_from) == Some(record.cpu) {
            self.ping_pongs += 1;
        }
    }

    /// Returns what its CPU was doing when it armed the timer, if that is known.
    pub(super) fn take_expiry(
        &mut self,
        expiry: &TimerExpiry,
        isolated: &CpuSet,
        names: &NameTable,
    ) -> Option<Initiator> {
        let Some(armed) = self.armed.get_mut(expiry.timer).filter(|armed| armed.line > self.lost) else {
            self.expired_unknown_start += 1;
            return None;
        };
        if expiry.ran_on != armed.base {
            armed.expired_remotely_from = Some(armed.base);
            self.remote.add(expiry.ran_on);
        }
        match TimerSide::of(isolated, armed.by.cpu, expiry.ran_on) {
            Some(TimerSide::Foreign) => self.foreign.add(expiry, armed, names),
            Some(TimerSide::BetweenIsolated) => self.between_isolated.add(expiry, armed, names),
            None => {}
        }
        Some(armed.by)
    }
}

impl Disturbances {
    pub(super) fn total(&self) -> u64 {
        self.pulled.total() + self.placed.total()
    }

    fn add(&mut self, expiry: &TimerExpiry, armed: &ArmedAt, names: &NameTable) {
        let name = expiry.function;
        let pulled = expiry.ran_on != armed.base;
        let (kind, counts) = if pulled { ("pulled", &mut self.pulled) } else { ("placed", &mut self.placed) };
        counts.add(expiry.ran_on);
        if counts.get(expiry.ran_on) <= EXAMPLES_PER_CPU && self.examples.len() < EXAMPLES_MAX {
            self.examples.push(ExampleExpiry {
                kind,
                function: names.text(name),
                armed_cpu: armed.by.cpu.index() as u16,
                armed_line: armed.line,
                base_cpu: armed.base.index() as u16,
                cpu: expiry.ran_on.index() as u16,
                line: expiry.line,
            });
        }
        self.by_base.add(armed.base);
        self.since_isolated.add(expiry.ran_on);
        let kinds = self.by_function.entry(name).or_default();
        *(if pulled { &mut kinds.pulled } else { &mut kinds.placed }) += 1;
        let key = (expiry.ran_on, name);
        let has_room =
            self.by_cpu_function.len() < CPU_FUNCTIONS_MAX || self.by_cpu_function.contains_key(&key);
        let key = if has_room { key } else { (expiry.ran_on, NameTable::OTHER) };
        *self.by_cpu_function.entry(key).or_default() += 1;
    }
}
