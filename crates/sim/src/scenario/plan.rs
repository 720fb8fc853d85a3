//! A scenario with everything decided: one plan per variant, all checked before the first is run.
//!
//! Invariants: sizes are bounded whatever the file says (CPUs, timers and tasks, variants, expectations,
//! time); a plan names existing CPUs only.

use super::costs::CostTable;
use super::error::ScenarioProblem;
use super::expand::{Loads, Places};
use super::faults::Faults;
use super::idle_states::{self, IdleState};
use super::load::PlannedLoad;
use super::names::{
    AwarenessName, ExclusionName, KsoftirqdRule, Preempt, RaiseName, ScenarioPolicy, WakePlace, WatchdogName,
};
use super::packets::{self, TransmitQueue, Varied};
use super::raw::{RawMachine, RawScenario, RawVariants};
use super::value::span_within;
use super::{loads, topology};
use quietcore_core::place::{Exclusion, Isolation};
use quietcore_core::realtime::Awareness;
use quietcore_core::softirq::TimerRaise;
use quietcore_core::topology::Topology;
use quietcore_core::{CpuSet, Nanos};

const VARIANTS_MAX: usize = 256;
const MILLISECOND: u64 = 1_000_000;
/// For how long at most a softirq waits for real-time tasks, unless the scenario says.
const DEFER_LIMIT: u64 = 50 * MILLISECOND;
const HOUR: u64 = 3_600_000 * MILLISECOND;

/// One variant, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioPlan {
    /// The values of what is varied, joined by `/`; `only` when nothing is.
    pub(crate) label: String,
    pub(crate) seed: u64,
    pub(crate) duration: Nanos,
    pub(crate) topology: Topology,
    pub(crate) isolation: Isolation,
    pub(crate) exclusion: Exclusion,
    pub(crate) policy: ScenarioPolicy,
    pub(crate) wake: WakePlace,
    pub(crate) preempt: Preempt,
    pub(crate) tick: Nanos,
    pub(crate) skew: bool,
    pub(crate) awareness: Awareness,
    pub(crate) defer_limit: Nanos,
    pub(crate) ksoftirqd: KsoftirqdRule,
    pub(crate) timer_raise: Option<TimerRaise>,
    /// The shallowest first; empty where sleep has one depth.
    pub(crate) idle_states: Vec<IdleState>,
    pub(crate) costs: CostTable,
    pub(crate) loads: Vec<PlannedLoad>,
    /// Where real-time tasks may run, by the number in their loads.
    pub(crate) affinities: Vec<CpuSet>,
    pub(crate) transmit_queues: Vec<TransmitQueue>,
    pub(crate) faults: Faults,
}

/// One choice of what is varied.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    labels: Vec<String>,
    policy: Option<ScenarioPolicy>,
    exclusion: Option<Exclusion>,
    wake: Option<WakePlace>,
    awareness: Option<Awareness>,
    ksoftirqd: Option<KsoftirqdRule>,
    timer_raise: Option<TimerRaise>,
    cpus: Option<u16>,
    pub(super) pairs: Option<usize>,
    watchdog: Option<WatchdogName>,
    window: Option<u64>,
}

/// All plans of a scenario, in the order of its variants.
pub(super) fn plans(raw: &RawScenario, costs: &CostTable) -> Result<Vec<ScenarioPlan>, ScenarioProblem> {
    let choices = choices(raw.variants.as_ref())?;
    choices.iter().map(|choice| plan(raw, choice, costs)).collect()
}

fn choices(raw: Option<&RawVariants>) -> Result<Vec<Choice>, ScenarioProblem> {
    let Some(raw) = raw else {
        return Ok(vec![Choice { labels: vec!["only".to_owned()], ..Choice::default() }]);
    };
    let mut choices = vec![Choice::default()];
    extend(&mut choices, raw.policy.as_ref(), ScenarioPolicy::name, |choice, value| {
        choice.policy = Some(value)
    })?;
    let rule = |name: ExclusionName| name.rule().name();
    extend(&mut choices, raw.exclusion.as_ref(), rule, |choice, value| {
        choice.exclusion = Some(value.rule())
    })?;
    extend(&mut choices, raw.wake.as_ref(), wake_name, |choice, value| choice.wake = Some(value))?;
    let rule = |name: AwarenessName| name.rule().name();
    extend(&mut choices, raw.awareness.as_ref(), rule, |choice, value| {
        choice.awareness = Some(value.rule());
    })?;
    extend(&mut choices, raw.ksoftirqd.as_ref(), KsoftirqdRule::name, |choice, value| {
        choice.ksoftirqd = Some(value);
    })?;
    let rule = |name: RaiseName| name.rule().name();
    extend(&mut choices, raw.timer_raise.as_ref(), rule, |choice, value| {
        choice.timer_raise = Some(value.rule());
    })?;
    extend(&mut choices, raw.cpus.as_ref(), |cpus| cpus, |choice, value| choice.cpus = Some(value))?;
    extend(&mut choices, raw.pairs.as_ref(), |pairs| pairs, |choice, value| choice.pairs = Some(value))?;
    extend(&mut choices, raw.watchdog.as_ref(), WatchdogName::name, |choice, value| {
        choice.watchdog = Some(value);
    })?;
    extend(&mut choices, raw.window.as_ref(), |window| window, |choice, value| choice.window = Some(value))?;
    if choices.len() == 1 && choices[0].labels.is_empty() {
        choices[0].labels.push("only".to_owned());
    }
    Ok(choices)
}

const fn wake_name(wake: WakePlace) -> &'static str {
    match wake {
        WakePlace::Here => "here",
        WakePlace::Last => "last",
    }
}

/// Each choice so far, once with each value.
fn extend<T: Copy, N: ToString>(
    choices: &mut Vec<Choice>,
    values: Option<&toml::Spanned<Vec<T>>>,
    name: impl Fn(T) -> N,
    set: impl Fn(&mut Choice, T),
) -> Result<(), ScenarioProblem> {
    let Some(list) = values else { return Ok(()) };
    let (values, before) = (list.get_ref(), std::mem::take(choices));
    if values.is_empty() || values.len() * before.len() > VARIANTS_MAX {
        return Err(ScenarioProblem::at(
            list,
            format!("gives no variant, or more than {VARIANTS_MAX} in all"),
        ));
    }
    for choice in &before {
        for &value in values {
            let mut next = choice.clone();
            next.labels.push(name(value).to_string());
            set(&mut next, value);
            choices.push(next);
        }
    }
    Ok(())
}

fn plan(raw: &RawScenario, choice: &Choice, costs: &CostTable) -> Result<ScenarioPlan, ScenarioProblem> {
    let machine = &raw.machine;
    let topology = topology::build(machine, choice.cpus)?;
    let isolation = isolation(machine, topology.possible())?;
    let preempt = machine.preempt.unwrap_or(Preempt::Tick);
    let places = Places { all: topology.possible().clone(), isolated: isolation.any(), preempt };
    let tick = match &machine.tick {
        Some(tick) => span_within(tick, MILLISECOND / 10, 100 * MILLISECOND)?,
        None => MILLISECOND,
    };
    let duration = Nanos(span_within(&raw.duration, MILLISECOND, HOUR)?);
    let defer_limit = match &machine.defer_limit {
        Some(limit) => span_within(limit, 0, HOUR)?,
        None => DEFER_LIMIT,
    };
    let Loads { loads, affinities } = loads::resolve(&raw.load, &places, choice.pairs)?;
    let varied = Varied { watchdog: choice.watchdog, window: choice.window };
    let transmit_queues = packets::resolve(&raw.load.packets, &places, varied)?;
    if let (Some(entry), false) = (raw.load.packets.first(), raw.fault.hotplug.is_empty()) {
        return Err(ScenarioProblem::at(entry, "does not go with [[fault.hotplug]]: its CPUs stay"));
    }
    let exclusion = choice.exclusion.or(machine.exclusion.map(ExclusionName::rule));
    Ok(ScenarioPlan {
        label: choice.labels.join("/"),
        seed: raw.seed.as_ref().map_or(1, |seed| *seed.get_ref()),
        duration,
        isolation,
        exclusion: exclusion.unwrap_or_default(),
        policy: choice.policy.or(machine.policy).unwrap_or(ScenarioPolicy::Pull),
        wake: choice.wake.or(machine.wake).unwrap_or(WakePlace::Last),
        preempt,
        tick: Nanos(tick),
        skew: machine.skew.unwrap_or(true),
        awareness: choice.awareness.or(machine.awareness.map(AwarenessName::rule)).unwrap_or_default(),
        defer_limit: Nanos(defer_limit),
        ksoftirqd: choice.ksoftirqd.or(machine.ksoftirqd).unwrap_or_default(),
        timer_raise: choice.timer_raise.or(machine.timer_raise.map(RaiseName::rule)),
        idle_states: idle_states::resolve(&machine.idle_state)?,
        costs: costs.clone(),
        loads,
        affinities,
        transmit_queues,
        faults: super::faults::resolve(&raw.fault, &places)?,
        topology,
    })
}

fn isolation(machine: &RawMachine, all: &CpuSet) -> Result<Isolation, ScenarioProblem> {
    let mut isolation = Isolation::default();
    for (list, set) in
        [(&machine.isolated, &mut isolation.domain), (&machine.nohz_full, &mut isolation.nohz_full)]
    {
        let Some(list) = list else { continue };
        let cpus = &list.get_ref().0;
        if let Some(stranger) = cpus.difference(all).first() {
            return Err(ScenarioProblem::at(
                list,
                format!("CPU {stranger} does not exist; the machine has {all}"),
            ));
        }
        *set = cpus.clone();
    }
    if let Some(list) = machine.isolated.as_ref().or(machine.nohz_full.as_ref())
        && all.difference(&isolation.any()).is_empty()
    {
        return Err(ScenarioProblem::at(
            list,
            "leaves no housekeeping CPU; at least one must not be isolated",
        ));
    }
    Ok(isolation)
}
