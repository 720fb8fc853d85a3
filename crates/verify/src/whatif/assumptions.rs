//! What a replay takes for granted, as sentences. Each is true of every run it is printed with.

use super::load::{AwakeSource, INPUTS_MAX, RecordedLoad};
use super::question::{Excluded, WhatifQuestion};
use quietcore_core::place::Policy;

/// The sentences for this recording and this question.
pub(super) fn assumptions(load: &RecordedLoad, question: &WhatifQuestion) -> Vec<String> {
    let mut said: Vec<String> = [
        "Tasks do the same at the same time: arms and cancels happen when and where they were recorded, also \
         those that a timer's callback or the task it woke made.",
        "Awake intervals are those of the recording. Alarms of sleeping CPUs, and so wake-ups that are only for \
         a timer, follow from the replay.",
        "Ticks of all CPUs are at the same moments and none is missed or late, so lateness is that of the wheel \
         and of the policy alone.",
        "Within one tick sleeping CPUs come first, then the awake ones, both in the round from the CPU that did \
         something last. One awake CPU counts time for all; those whose tick comes before see the old time. A \
         recording does not say; foreign_range shows what other orders come to: all CPUs run their own timers \
         before any looks at those of others; all see the new time; sleeping CPUs are interrupted, and run their \
         own timers first, while another one is awake (isolated ones not counted). Real kernels mix the four.",
        "foreign_expected adds what differs by chance from run to run, if each foreign timer is independent of \
         the others.",
        "When a timer of a CPU runs and the recording has that CPU leave idle in the same tick, it is awake \
         before the next CPU looks.",
        "A timer that its callback armed again, on another CPU than its base's, stays in the base that it ran out \
         of.",
    ]
    .map(str::to_owned)
    .into();
    said.extend(awake_source(load));
    said.extend(tree(load, question));
    said.extend(asked(load, question));
    if load.is_cut {
        said.push(format!("Only the first {INPUTS_MAX} arms, cancels and awake intervals are replayed."));
    }
    said
}

fn awake_source(load: &RecordedLoad) -> Option<String> {
    match load.awake_source {
        AwakeSource::BaseIdle if load.never_idle.is_empty() => None,
        AwakeSource::BaseIdle => {
            Some(format!("CPUs {} never say that they are idle, so they count as awake.", load.never_idle))
        }
        AwakeSource::TickStop => Some(
            "This kernel does not say when a CPU leaves idle: a CPU is idle from tick_stop on, until the first \
             event of a task on it; shorter or silent awake intervals are empty."
                .to_owned(),
        ),
        AwakeSource::None => Some(
            "The recording has no events of idle CPUs (timer_base_idle or tick_stop), so every CPU counts as \
             awake all the time."
                .to_owned(),
        ),
    }
}

fn tree(load: &RecordedLoad, question: &WhatifQuestion) -> Option<String> {
    let pulls = question.policy == Policy::Pull || load.policy == Policy::Pull;
    (pulls && load.joining.is_empty()).then(|| {
        "The recording does not say which CPUs form a group: groups of eight in the order of their numbers, \
         on one NUMA node."
            .to_owned()
    })
}

fn asked(load: &RecordedLoad, question: &WhatifQuestion) -> Vec<String> {
    let mut said = Vec::new();
    if question.policy == Policy::Push || load.policy == Policy::Push {
        said.push(
            "A push looks for a busy CPU among those that are not isolated, by node and then by number: caches \
             and hardware threads are not in a recording. Busy means that its tick runs."
                .to_owned(),
        );
    }
    if !question.kept_awake.is_empty() {
        said.push(format!(
            "Kept-awake CPUs ({}) are awake before all others and never go idle, so each stays the migrator of \
             its group unless another one of them is; what keeps them awake arms no timers.",
            question.kept_awake
        ));
    }
    if let Excluded::These(cpus) = &question.excluded
        && question.policy == Policy::Pull
    {
        let cpus = if cpus.is_empty() { "No CPU is".to_owned() } else { format!("CPUs {cpus} are") };
        said.push(format!("{cpus} left out of the hierarchy, from the beginning to the end."));
    }
    if load.policy != question.policy {
        said.push(format!(
            "The recording was made under {}; what its tasks would have done differently under {} is not known.",
            load.policy.name(),
            question.policy.name()
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::assumptions;
    use crate::whatif::load::{AwakeSource, FIRST_TICK, LoadFacts, RecordedLoad};
    use crate::whatif::question::{Excluded, WhatifQuestion};
    use quietcore_core::place::Policy;
    use quietcore_core::{CpuSet, Nanos};
    use quietcore_trace::TimerModel;

    const SILENT: &str = "CPUs 2-3 never say that they are idle, so they count as awake.";
    const TICK_STOP: &str = "This kernel does not say when a CPU leaves idle: ";
    const NO_IDLE: &str =
        "The recording has no events of idle CPUs (timer_base_idle or tick_stop), so every ";
    const GROUPS: &str = "The recording does not say which CPUs form a group: groups of eight ";
    const PUSH: &str = "A push looks for a busy CPU among those that are not isolated, ";
    const AWAKE: &str = "Kept-awake CPUs (1,4) are awake before all others ";
    const OUT: &str = "CPUs 3,5 are left out of the hierarchy, from the beginning to the end.";
    const NOBODY_OUT: &str = "No CPU is left out of the hierarchy, from the beginning to the end.";
    const CUT: &str = "Only the first 4000000 arms, cancels and awake intervals are replayed.";

    fn cpus(list: &str) -> CpuSet {
        list.parse().expect("a CPU list")
    }

    /// A recording that says all there is to say.
    fn load(policy: Policy) -> RecordedLoad {
        RecordedLoad {
            inputs: Vec::new(),
            functions: Vec::new(),
            timers: 0,
            first_jiffy: FIRST_TICK,
            tick: Nanos(4_000_000),
            cpus: 6,
            nodes: vec![0; 6],
            joining: cpus("0-5"),
            appearing: CpuSet::new(),
            asleep_first: CpuSet::new(),
            never_idle: CpuSet::new(),
            awake_source: AwakeSource::BaseIdle,
            model: TimerModel::Pull,
            policy,
            facts: LoadFacts::default(),
            ran_on: Vec::new(),
            is_cut: false,
        }
    }

    fn changed(policy: Policy, change: fn(&mut RecordedLoad)) -> RecordedLoad {
        let mut load = load(policy);
        change(&mut load);
        load
    }

    /// Goal: what a replay takes for granted is said where it is so, and only there. Method: each reason
    /// alone and absent; the beginnings of the sentences after the seven that are always there.
    #[test]
    fn a_sentence_is_there_when_it_is_true() {
        use Policy::{Pull, Push, Stay};
        let ask =
            |policy, excluded, awake: &str| WhatifQuestion { policy, excluded, kept_awake: cpus(awake) };
        let plain = |policy| ask(policy, Excluded::AsRecorded, "");
        let without = |policy, list: &str| ask(policy, Excluded::These(cpus(list)), "");
        let [push_pull, push_stay, pull_push, stay_push, stay_pull] = [
            (Push, Pull),
            (Push, Stay),
            (Pull, Push),
            (Stay, Push),
            (Stay, Pull),
        ]
        .map(|(was, is)| {
            let (was, is) = (was.name(), is.name());
            format!(
                "The recording was made under {was}; what its tasks would have done differently under {is} "
            )
        });
        let no_tree = |load: &mut RecordedLoad| load.joining = CpuSet::new();
        for (load, question, expected) in [
            (load(Pull), plain(Pull), vec![]),
            (load(Stay), plain(Stay), vec![]),
            (load(Push), plain(Push), vec![PUSH]),
            (load(Push), plain(Pull), vec![PUSH, &push_pull]),
            (load(Push), plain(Stay), vec![PUSH, &push_stay]),
            (load(Pull), plain(Push), vec![PUSH, &pull_push]),
            (load(Stay), plain(Push), vec![PUSH, &stay_push]),
            (load(Stay), plain(Pull), vec![&stay_pull]),
            (changed(Pull, |load| load.never_idle = cpus("2-3")), plain(Pull), vec![SILENT]),
            (changed(Pull, |load| load.awake_source = AwakeSource::TickStop), plain(Pull), vec![TICK_STOP]),
            (changed(Pull, |load| load.awake_source = AwakeSource::None), plain(Pull), vec![NO_IDLE]),
            (changed(Pull, no_tree), plain(Push), vec![GROUPS, PUSH, &pull_push]),
            (changed(Stay, no_tree), plain(Pull), vec![GROUPS, &stay_pull]),
            (changed(Stay, no_tree), plain(Stay), vec![]),
            (load(Pull), ask(Pull, Excluded::AsRecorded, "1,4"), vec![AWAKE]),
            (load(Pull), without(Pull, "3,5"), vec![OUT]),
            (load(Pull), without(Pull, ""), vec![NOBODY_OUT]),
            (load(Push), without(Push, "3,5"), vec![PUSH]),
            (changed(Pull, |load| load.is_cut = true), plain(Pull), vec![CUT]),
        ] {
            let said = assumptions(&load, &question);
            let said = &said[7..];
            let fits = said.len() == expected.len()
                && said.iter().zip(&expected).all(|(sentence, beginning)| sentence.starts_with(beginning));
            assert!(fits, "{expected:#?} wanted of {} under {question:?}: {said:#?}", load.policy.name());
        }
    }
}
