//! What a machine has to do, CPU by CPU.

use super::error::Problem;
use super::names::Preempt;
use super::raw::{PrecisionName, RawLoads, RawPairs};
use super::urgent::{Cyclic, Device};
use super::value::{Cpus, Span, resolve as resolve_cpus, span_within, within};
use quietcore_core::{CpuId, CpuSet};
use toml::Spanned;

/// The most timers and tasks of one plan.
const INSTANCES_MAX: usize = 1_000_000;
/// A minute.
pub(super) const SPAN_MAX: u64 = 60_000_000_000;
/// Shorter loops would do nothing but loop.
pub(super) const LOOP_MIN: u64 = 1_000;

/// What names of CPUs mean on a machine.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) all: CpuSet,
    pub(super) isolated: CpuSet,
    pub(super) preempt: Preempt,
}

impl Places {
    pub(super) fn of(
        &self,
        cpus: &Spanned<Cpus>,
        every: Option<&Spanned<usize>>,
    ) -> Result<Vec<CpuId>, Problem> {
        resolve_cpus(cpus, every, &self.all, &self.isolated)
    }
}

/// A timer that is armed again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Periodic {
    pub(crate) period: u64,
    pub(crate) jitter: u64,
    /// How long the callback itself takes.
    pub(crate) callback: u64,
    pub(crate) pinned: bool,
    pub(crate) deferrable: bool,
    pub(crate) precision: PrecisionName,
}

/// One load on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) cpu: CpuId,
    pub(crate) kind: LoadKind,
}

impl Load {
    /// The longest that it keeps a CPU from its timers, in ns.
    pub(crate) const fn longest(&self) -> u64 {
        match self.kind {
            LoadKind::Periodic(Periodic { callback, .. }) => callback,
            LoadKind::Driver { work, .. } => work,
            LoadKind::Timeout { run, .. } | LoadKind::Sleeper { run, .. } => run,
            LoadKind::Busy { chunk, .. } => chunk,
            LoadKind::Softirq(device) => device.most,
            LoadKind::Realtime(thread) => thread.work,
            LoadKind::Remote { slow, .. } => slow,
            LoadKind::Pair { request, service, .. } => request + service,
            LoadKind::Measure | LoadKind::Enqueue { .. } => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadKind {
    Periodic(Periodic),
    /// A task that arms a timeout, works, cancels it, sleeps.
    Timeout {
        delay: u64,
        run: u64,
        sleep: u64,
    },
    /// A device interrupts every `period`; its handler arms a delayed work, whose timer hands `work` ns to
    /// the worker of the CPU where it runs.
    Driver {
        period: u64,
        jitter: u64,
        delay: u64,
        work: u64,
    },
    Sleeper {
        run: u64,
        sleep: u64,
        jitter: u64,
        rt: bool,
        precision: PrecisionName,
    },
    Busy {
        chunk: u64,
        normal: bool,
    },
    /// A busy loop that notices when it was away.
    Measure,
    /// A client here and a server there.
    Pair {
        server: CpuId,
        request: u64,
        service: u64,
        timeout: u64,
    },
    /// Arms and cancels one timer, over and over.
    Enqueue {
        delay: u64,
    },
    Softirq(Device),
    Realtime(Cyclic),
    /// Arms a timer on another CPU about when the tick of that is, `slow` ns after it decided to at most.
    Remote {
        target: CpuId,
        period: u64,
        slow: u64,
    },
}

/// Expands all loads; `pairs` is the number of pairs if the variants say it.
pub(super) fn resolve(raw: &RawLoads, places: &Places, pairs: Option<usize>) -> Result<Loads, Problem> {
    let mut loads = Expander { places, loads: Vec::new(), affinities: Vec::new() };
    timers(raw, &mut loads)?;
    for entry in &raw.timeout {
        let load = entry.get_ref();
        let [delay, run, sleep] = spans([&load.delay, &load.run, &load.sleep], [1, 0, LOOP_MIN])?;
        loads.add(
            &load.cpus,
            load.every.as_ref(),
            load.count.as_ref(),
            LoadKind::Timeout { delay, run, sleep },
        )?;
    }
    for entry in &raw.sleeper {
        let load = entry.get_ref();
        let [run, sleep] = spans([&load.run, &load.sleep], [0, LOOP_MIN])?;
        let jitter = optional(load.jitter.as_ref())?;
        let kind = LoadKind::Sleeper { run, sleep, jitter, rt: load.rt, precision: load.precision };
        loads.add(&load.cpus, load.every.as_ref(), load.count.as_ref(), kind)?;
    }
    for entry in &raw.busy {
        let load = entry.get_ref();
        let chunk =
            load.chunk.as_ref().map_or(Ok(1_000_000), |chunk| span_within(chunk, LOOP_MIN, SPAN_MAX))?;
        let kind = LoadKind::Busy { chunk, normal: load.normal };
        loads.add(&load.cpus, load.every.as_ref(), load.count.as_ref(), kind)?;
    }
    for entry in &raw.measure {
        let load = entry.get_ref();
        loads.add(&load.cpus, load.every.as_ref(), None, LoadKind::Measure)?;
    }
    for entry in &raw.enqueue {
        let load = entry.get_ref();
        let [delay] = spans([&load.delay], [1])?;
        loads.add(&load.cpus, load.every.as_ref(), None, LoadKind::Enqueue { delay })?;
    }
    for entry in &raw.pairs {
        loads.add_pairs(entry, pairs)?;
    }
    super::urgent::expand(raw, &mut loads)?;
    Ok(Loads { loads: loads.loads, affinities: loads.affinities })
}

fn timers(raw: &RawLoads, loads: &mut Expander<'_>) -> Result<(), Problem> {
    for entry in &raw.periodic {
        let load = entry.get_ref();
        let [period] = spans([&load.period], [LOOP_MIN])?;
        let periodic = Periodic {
            period,
            jitter: optional(load.jitter.as_ref())?,
            callback: optional(load.callback.as_ref())?,
            pinned: load.pinned,
            deferrable: load.deferrable,
            precision: load.precision,
        };
        loads.add(&load.cpus, load.every.as_ref(), load.count.as_ref(), LoadKind::Periodic(periodic))?;
    }
    for entry in &raw.driver {
        let load = entry.get_ref();
        let [period, delay, work] = spans([&load.period, &load.delay, &load.work], [LOOP_MIN, 1, 1])?;
        let kind = LoadKind::Driver { period, jitter: optional(load.jitter.as_ref())?, delay, work };
        loads.add(&load.cpus, load.every.as_ref(), load.count.as_ref(), kind)?;
    }
    Ok(())
}

pub(super) fn spans<const N: usize>(
    values: [&Spanned<Span>; N],
    least: [u64; N],
) -> Result<[u64; N], Problem> {
    let mut nanos = [0; N];
    for (place, value) in values.into_iter().enumerate() {
        nanos[place] = span_within(value, least[place], SPAN_MAX)?;
    }
    Ok(nanos)
}

pub(super) fn optional(value: Option<&Spanned<Span>>) -> Result<u64, Problem> {
    value.map_or(Ok(0), |value| span_within(value, 0, SPAN_MAX))
}

pub(super) struct Expander<'a> {
    pub(super) places: &'a Places,
    pub(super) loads: Vec<Load>,
    pub(super) affinities: Vec<CpuSet>,
}

/// All loads of a plan.
pub(super) struct Loads {
    pub(super) loads: Vec<Load>,
    pub(super) affinities: Vec<CpuSet>,
}

impl Expander<'_> {
    pub(super) fn add(
        &mut self,
        cpus: &Spanned<Cpus>,
        every: Option<&Spanned<usize>>,
        count: Option<&Spanned<usize>>,
        kind: LoadKind,
    ) -> Result<(), Problem> {
        let count = count.map_or(Ok(1), |count| within(count, 1, INSTANCES_MAX))?;
        let chosen = self.places.of(cpus, every)?;
        self.make_room(cpus, chosen.len().saturating_mul(count))?;
        for cpu in chosen {
            self.loads.extend(std::iter::repeat_n(Load { cpu, kind }, count));
        }
        Ok(())
    }

    pub(super) fn make_room<T>(&self, place: &Spanned<T>, count: usize) -> Result<(), Problem> {
        if self.loads.len().saturating_add(count) > INSTANCES_MAX {
            return Err(Problem::at(place, format!("more than {INSTANCES_MAX} timers and tasks in all")));
        }
        Ok(())
    }

    /// Clients and servers alternate over the CPUs, so that a pair sits side by side and 1 pair fills 2 CPUs.
    fn add_pairs(&mut self, entry: &Spanned<RawPairs>, varied: Option<usize>) -> Result<(), Problem> {
        let load = entry.get_ref();
        let count = match (&load.count, varied) {
            (_, Some(count)) if (1..=INSTANCES_MAX).contains(&count) => count,
            (Some(count), None) => within(count, 1, INSTANCES_MAX)?,
            (None, None) => {
                return Err(Problem::at(entry, "count is missing, here or as pairs in [variants]"));
            }
            (_, Some(_)) => return Err(Problem::at(entry, "the variants ask for no pair, or for too many")),
        };
        let [request, service, timeout] =
            spans([&load.request, &load.service, &load.timeout], [LOOP_MIN, LOOP_MIN, 1])?;
        let cpus = self.places.of(&load.cpus, None)?;
        self.make_room(entry, count.saturating_mul(2))?;
        for pair in 0..count {
            let (cpu, server) = (cpus[pair * 2 % cpus.len()], cpus[(pair * 2 + 1) % cpus.len()]);
            self.loads.push(Load { cpu, kind: LoadKind::Pair { server, request, service, timeout } });
        }
        Ok(())
    }
}
