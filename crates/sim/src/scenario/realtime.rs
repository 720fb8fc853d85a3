//! Loads around softirqs and real-time tasks: devices, threads as those of cyclictest, arms on other CPUs.
//!
//! All of them need a kernel's CPUs (`preempt = "tick"`): lanes are not interrupted.

use super::error::ScenarioProblem;
use super::expand::{Expander, LOOP_MIN, SPAN_MAX, optional, spans};
use super::load::{Cyclic, LoadKind, PlannedLoad, SoftirqDevice};
use super::names::Preempt;
use super::raw::{RawLoads, RawRealtime, RawRemote, RawSoftirq};
use super::value::{span_within, within};
use quietcore_core::realtime::Priority;
use quietcore_core::softirq::{Vector, VectorSet};
use quietcore_core::{CpuId, CpuSet};
use toml::Spanned;

/// Thousandths in 1, for exponents.
const THOUSAND: f64 = 1_000.0;
const THREADS_MAX: usize = 10_000;

pub(super) fn expand(raw: &RawLoads, loads: &mut Expander<'_>) -> Result<(), ScenarioProblem> {
    for entry in &raw.softirq {
        needs_kernel(entry, loads)?;
        device(entry.get_ref(), loads)?;
    }
    for entry in &raw.realtime {
        needs_kernel(entry, loads)?;
        realtime(entry.get_ref(), loads)?;
    }
    for entry in &raw.remote {
        needs_kernel(entry, loads)?;
        remote(entry.get_ref(), loads)?;
    }
    Ok(())
}

fn needs_kernel<T>(entry: &Spanned<T>, loads: &Expander<'_>) -> Result<(), ScenarioProblem> {
    match loads.places.preempt {
        Preempt::Tick => Ok(()),
        Preempt::Cooperative => {
            Err(ScenarioProblem::at(entry, "needs preempt = \"tick\": nothing interrupts a task of a lane"))
        }
    }
}

fn device(load: &RawSoftirq, loads: &mut Expander<'_>) -> Result<(), ScenarioProblem> {
    let [interval] = spans([&load.interval], [LOOP_MIN])?;
    let least = span_within(&load.least, 1, SPAN_MAX)?;
    let median = span_within(&load.median, least, SPAN_MAX)?;
    let most = span_within(&load.most, median, SPAN_MAX)?;
    let exponent = within(&load.tail, 0.1, 10.0)?;
    let tail = (exponent * THOUSAND).round() as u32;
    let vector = vector(&load.vector)?;
    let kind = LoadKind::Softirq(SoftirqDevice { vector, interval, least, median, most, tail });
    loads.add(&load.cpus, load.every.as_ref(), load.count.as_ref(), kind)
}

/// One that ksoftirqd may run: of the others a device raises none.
fn vector(name: &Spanned<String>) -> Result<Vector, ScenarioProblem> {
    let found = VectorSet::LONG.iter().find(|vector| vector.name() == name.get_ref());
    found.ok_or_else(|| {
        let known: Vec<&str> = VectorSet::LONG.iter().map(Vector::name).collect();
        ScenarioProblem::at(
            name,
            format!("no device raises {:?}; known are {}", name.get_ref(), known.join(", ")),
        )
    })
}

fn realtime(load: &RawRealtime, loads: &mut Expander<'_>) -> Result<(), ScenarioProblem> {
    let [interval] = spans([&load.interval], [LOOP_MIN])?;
    let (step, work) = (optional(load.step.as_ref())?, optional(load.work.as_ref())?);
    let number = within(&load.priority, 1, 99)?;
    let priority = Priority::new(number).expect("between 1 and 99");
    let threads = load.threads.as_ref().map_or(Ok(1), |threads| within(threads, 1, THREADS_MAX))?;
    loads.make_room(&load.cpus, threads)?;
    let mut cpus = loads.places.of(&load.cpus, load.every.as_ref())?;
    if !load.pinned {
        // No task is moved to an isolated CPU, as with the kernel's isolcpus=domain.
        cpus.retain(|cpu| !loads.places.isolated.contains(*cpu));
    }
    if cpus.is_empty() {
        return Err(ScenarioProblem::at(
            &load.cpus,
            "isolated CPUs take no tasks that move; use pinned = true",
        ));
    }
    let affinity = loads.affinities.len() as u32;
    loads.affinities.push(cpus.iter().copied().collect::<CpuSet>());
    for thread in 0..threads {
        let interval = interval.saturating_add(step.saturating_mul(thread as u64)).min(SPAN_MAX);
        let cyclic = Cyclic { priority, interval, work, pinned: load.pinned, affinity };
        loads.loads.push(PlannedLoad { cpu: cpus[thread % cpus.len()], kind: LoadKind::Realtime(cyclic) });
    }
    Ok(())
}

fn remote(load: &RawRemote, loads: &mut Expander<'_>) -> Result<(), ScenarioProblem> {
    let [period] = spans([&load.period], [LOOP_MIN])?;
    let slow = span_within(&load.slow, 1, period)?;
    let from = loads.places.of(&load.from, None)?;
    let targets = loads.places.of(&load.cpus, None)?;
    loads.make_room(&load.cpus, targets.len())?;
    for (place, target) in targets.into_iter().enumerate() {
        let cpu: CpuId = from[place % from.len()];
        loads.loads.push(PlannedLoad { cpu, kind: LoadKind::Remote { target, period, slow } });
    }
    Ok(())
}
