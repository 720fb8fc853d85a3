//! Figures of idle states: how often each CPU was in which, and for how long.
//!
//! Invariant: the residencies of a CPU, all states together, are the time in which it was asleep.

use super::names::share;
use serde::Serialize;
use std::collections::BTreeMap;

/// One of a machine's idle states.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IdleStateFigures {
    /// As the scenario calls it.
    pub name: String,
    /// The time in it as a share of all CPUs' time.
    pub share: f64,
    /// CPU by CPU, without those that never were in it.
    pub by_cpu: BTreeMap<u16, CpuResidency>,
}

/// One CPU's residencies in an idle state.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuResidency {
    /// How often it was entered.
    pub entries: u64,
    /// For how long in all.
    pub total_ns: u64,
    /// The longest residency.
    pub max_ns: u64,
    /// Residencies that a wake-up ended before they were as long as the state's target.
    pub short: u64,
    /// `total_ns` as a share of the simulated time.
    pub share: f64,
}

impl IdleStateFigures {
    pub(super) fn sum(&self, of: fn(&CpuResidency) -> u64) -> u64 {
        self.by_cpu.values().map(of).sum()
    }
}

/// A state's residencies while a run goes on.
#[derive(Debug)]
struct StateResidencies {
    name: String,
    /// How long one should be at least, in ns.
    target: u64,
    by_cpu: Vec<CpuResidency>,
}

/// All states of all CPUs while a run goes on; nothing where the machine has no states.
#[derive(Debug, Default)]
pub(crate) struct ResidencyCounts(Vec<StateResidencies>);

impl ResidencyCounts {
    /// A state, one deeper than those before; a residency in it should be at least `target` ns long.
    pub(crate) fn add_state(&mut self, name: &str, target: u64, cpu_count: usize) {
        let by_cpu = vec![CpuResidency::default(); cpu_count];
        self.0.push(StateResidencies { name: name.to_owned(), target, by_cpu });
    }

    /// `cpu` is in `state` from now on.
    pub(crate) fn enter(&mut self, cpu: u16, state: u8) {
        if let Some(of_state) = self.0.get_mut(usize::from(state)) {
            of_state.by_cpu[usize::from(cpu)].entries += 1;
        }
    }

    /// It was there for so long.
    pub(crate) fn stayed(&mut self, cpu: u16, state: u8, span: u64) {
        if let Some(of_state) = self.0.get_mut(usize::from(state)) {
            let of_cpu = &mut of_state.by_cpu[usize::from(cpu)];
            of_cpu.total_ns += span;
            of_cpu.max_ns = of_cpu.max_ns.max(span);
        }
    }

    /// It was woken when it had been there for so long.
    pub(crate) fn woken(&mut self, cpu: u16, state: u8, span: u64) {
        if let Some(of_state) = self.0.get_mut(usize::from(state)) {
            of_state.by_cpu[usize::from(cpu)].short += u64::from(span < of_state.target);
        }
    }

    /// `None` without states.
    pub(super) fn finish(self, duration_ns: u64) -> Option<Vec<IdleStateFigures>> {
        let state = |of_state: StateResidencies| {
            let all = of_state.by_cpu.iter().map(|of_cpu| of_cpu.total_ns).sum();
            let cpu_time = duration_ns * of_state.by_cpu.len() as u64;
            let by_cpu = of_state.by_cpu.into_iter().enumerate().filter(|(_, of_cpu)| of_cpu.entries > 0);
            let with_share = |(cpu, of_cpu): (usize, CpuResidency)| {
                let share = share(of_cpu.total_ns, duration_ns).unwrap_or(0.0);
                (cpu as u16, CpuResidency { share, ..of_cpu })
            };
            IdleStateFigures {
                name: of_state.name,
                share: share(all, cpu_time).unwrap_or(0.0),
                by_cpu: by_cpu.map(with_share).collect(),
            }
        };
        (!self.0.is_empty()).then(|| self.0.into_iter().map(state).collect())
    }
}
