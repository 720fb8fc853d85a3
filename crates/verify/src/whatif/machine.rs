//! One virtual machine under one policy: bases and hierarchy of the core, and who is awake.
//!
//! It never decides who pulls: an awake CPU asks [`Hierarchy::requires_handle_remote`] in each of its
//! ticks, a sleeping one sleeps until the alarm that [`Hierarchy::deactivate`] and the wheel gave it, and
//! a CPU in a TIMER softirq runs its own bases and then [`Hierarchy::handle_remote`]. Source: Linux
//! 6.12, kernel/time/timer.c, kernel/time/timer_migration.c.
//!
//! Invariant: `deadlines` has exactly the CPUs with a deadline, each once; `awake` those that do not sleep.
//! Not here: the inputs, and in which order CPUs come within a tick (`replay.rs`).
//!
//! [`Hierarchy::requires_handle_remote`]: quietcore_core::tmigr::Hierarchy::requires_handle_remote
//! [`Hierarchy::deactivate`]: quietcore_core::tmigr::Hierarchy::deactivate
//! [`Hierarchy::handle_remote`]: quietcore_core::tmigr::Hierarchy::handle_remote

use super::bases::{LoadTimer, OwnerBase, WhatifBases};
use super::figures::{WhatifCounts, levels};
use super::load::{LoadArm, LoadBase, RecordedLoad};
use super::question::{Excluded, WhatifQuestion, WhatifQuestionError, possible};
use super::running::TimerRuns;
use quietcore_core::place::{Arming, Housekeeping, Policy, push_target};
use quietcore_core::tmigr::{CpuState, GroupId, Hierarchy, Pulled, Tree};
use quietcore_core::topology::Topology;
use quietcore_core::{CpuId, CpuSet, Nanos, SequentialLock};
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, Default)]
struct CpuAwake {
    is_asleep: bool,
    deadline: Option<u64>,
    /// The tick in which it was last woken.
    woken_in: Option<u64>,
}

#[derive(Debug)]
struct PushChoice {
    housekeeping: Housekeeping,
    topology: Topology,
}

#[derive(Debug)]
pub(super) struct WhatifMachine<'a> {
    load: &'a RecordedLoad,
    question: &'a WhatifQuestion,
    hierarchy: Option<Hierarchy<SequentialLock>>,
    /// The shape of the hierarchy again, for the numbers of its groups.
    tree: Tree,
    groups: Vec<GroupId>,
    push: Option<PushChoice>,
    cpus: Vec<CpuAwake>,
    deadlines: BTreeSet<(u64, CpuId)>,
    awake: BTreeSet<CpuId>,
    /// The CPU that did something last.
    last: CpuId,
    /// The awake CPU whose tick counts time for all, if any.
    timekeeper: Option<CpuId>,
    timers: TimerRuns<'a>,
}

/// The earlier of two ticks that may never come.
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl<'a> WhatifMachine<'a> {
    /// The machine before the first input.
    pub(super) fn new(
        load: &'a RecordedLoad,
        question: &'a WhatifQuestion,
    ) -> Result<Self, WhatifQuestionError> {
        let bases = WhatifBases::new(load.cpus, load.timers);
        let tally = WhatifCounts::new(load);
        let now = load.inputs.first().map_or(0, |input| input.tick);
        let mut machine = Self {
            load,
            question,
            hierarchy: (question.policy == Policy::Pull).then(|| Hierarchy::new(&load.nodes)),
            tree: Tree::new(levels(load)),
            groups: Vec::new(),
            push: match question.policy {
                Policy::Push => {
                    Some(PushChoice { housekeeping: question.housekeeping(load)?, topology: topology(load) })
                }
                Policy::Pull | Policy::Stay => None,
            },
            cpus: vec![CpuAwake::default(); usize::from(load.cpus)],
            deadlines: BTreeSet::new(),
            awake: possible(load).iter().collect(),
            last: CpuId::default(),
            timekeeper: None,
            timers: TimerRuns {
                load,
                bases,
                tally,
                now,
                owners: Vec::new(),
                last_runs: vec![None; load.timers],
            },
        };
        machine.begin();
        Ok(machine)
    }

    /// Gives every CPU that has no input for it its place in the tree; kept-awake ones are the first to be
    /// active.
    fn begin(&mut self) {
        for cpu in possible(self.load).iter().filter(|cpu| !self.load.joining.contains(*cpu)) {
            self.join(cpu);
        }
        let kept = &self.question.kept_awake;
        let present = possible(self.load).difference(&self.load.appearing);
        for cpu in present.intersection(kept).iter().chain(present.difference(kept).iter()) {
            self.appear(cpu);
        }
        for cpu in self.load.asleep_first.iter() {
            self.sleep(cpu);
        }
    }

    fn state(&mut self, cpu: CpuId) -> &mut CpuAwake {
        &mut self.cpus[cpu.index()]
    }

    pub(super) fn is_asleep(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].is_asleep
    }

    pub(super) fn set_now(&mut self, tick: u64) {
        if tick > self.timers.now + 1 {
            // In a tick before it, an awake CPU's tick began to count time.
            self.timekeeper = self.timekeeper.or_else(|| self.awake_in_turn().first().copied());
        }
        self.timers.now = tick;
    }

    pub(super) const fn now(&self) -> u64 {
        self.timers.now
    }

    /// A tick as the hierarchy counts time.
    fn nanos(&self, tick: u64) -> Nanos {
        Nanos(tick.saturating_mul(self.load.tick.as_u64()).min(u64::MAX - 1))
    }

    fn tick_of(&self, at: Nanos) -> u64 {
        at.as_u64() / self.load.tick.as_u64()
    }

    fn set_deadline(&mut self, cpu: CpuId, deadline: Option<u64>) {
        // What is overdue is seen to in the next tick.
        let deadline = deadline.map(|tick| tick.max(self.timers.now + 1));
        let old = std::mem::replace(&mut self.state(cpu).deadline, deadline);
        if old == deadline {
            return;
        }
        if let Some(tick) = old {
            self.deadlines.remove(&(tick, cpu));
        }
        if let Some(tick) = deadline {
            self.deadlines.insert((tick, cpu));
        }
    }

    /// Looks again at when a CPU has to do something, and tells the hierarchy.
    fn review(&mut self, cpu: CpuId) {
        if !self.is_asleep(cpu) {
            let [local, global, deferrable] = [LoadBase::Local, LoadBase::Global, LoadBase::Deferrable]
                .map(|kind| self.timers.next(cpu, kind));
            self.set_deadline(cpu, earlier(earlier(local, global), deferrable));
            return;
        }
        let (local, published) = self.timers.firsts(cpu);
        let others = match &self.hierarchy {
            Some(hierarchy) if hierarchy.cpu_state(cpu) != CpuState::Unavailable => {
                let _ = hierarchy.publish(cpu, published.map(|tick| self.nanos(tick)));
                hierarchy.wakeup(cpu).map(|at| self.tick_of(at))
            }
            _ => published,
        };
        self.set_deadline(cpu, earlier(local, others));
    }

    /// A CPU stops its tick.
    pub(super) fn sleep(&mut self, cpu: CpuId) {
        if self.is_asleep(cpu) || self.question.kept_awake.contains(cpu) {
            return;
        }
        self.state(cpu).is_asleep = true;
        self.awake.remove(&cpu);
        self.timekeeper = self.timekeeper.filter(|keeper| *keeper != cpu);
        let (local, published) = self.timers.firsts(cpu);
        let others = match &self.hierarchy {
            Some(hierarchy) => {
                let next = published.map(|tick| self.nanos(tick));
                hierarchy.deactivate(cpu, next).map(|at| self.tick_of(at))
            }
            None => published,
        };
        self.set_deadline(cpu, earlier(local, others));
    }

    /// A CPU leaves idle.
    pub(super) fn wake(&mut self, cpu: CpuId) {
        if !std::mem::take(&mut self.state(cpu).is_asleep) {
            return;
        }
        self.count_wakeup(cpu);
        self.awake.insert(cpu);
        if let Some(hierarchy) = &self.hierarchy {
            hierarchy.activate(cpu);
        }
        self.review(cpu);
    }

    /// Once per tick and CPU.
    fn count_wakeup(&mut self, cpu: CpuId) {
        let now = Some(self.timers.now);
        if std::mem::replace(&mut self.state(cpu).woken_in, now) != now {
            self.timers.tally.woken(cpu);
        }
    }

    /// A CPU gets its place in the tree.
    pub(super) fn join(&mut self, cpu: CpuId) {
        if let Some(hierarchy) = &self.hierarchy
            && hierarchy.connect(cpu)
        {
            let join = self.tree.join(self.load.nodes[cpu.index()]);
            self.groups.extend(join.new_groups);
        }
    }

    /// A CPU takes part from now on, unless the question says otherwise.
    pub(super) fn appear(&mut self, cpu: CpuId) {
        let is_excluded = self.question.is_excluded(cpu, self.load).unwrap_or(false);
        if is_excluded {
            return;
        }
        self.join(cpu);
        if let Some(hierarchy) = &self.hierarchy {
            hierarchy.set_available(cpu, None);
            self.review(cpu);
        }
    }

    /// A CPU takes no part any more. Under a question that names who is left out, only offline CPUs do so.
    pub(super) fn disappear(&mut self, cpu: CpuId, is_isolation: bool) {
        if is_isolation && self.question.is_excluded(cpu, self.load).is_some() {
            return;
        }
        let Some(hierarchy) = &self.hierarchy else { return };
        let orphaned = hierarchy.set_unavailable(cpu).is_some();
        self.review(cpu);
        let heir = possible(self.load).iter().find(|other| {
            self.hierarchy.as_ref().is_some_and(|hierarchy| hierarchy.cpu_state(*other) == CpuState::Parked)
        });
        if let (true, Some(heir)) = (orphaned, heir) {
            // The kernel wakes a CPU with empty work, so that the alarm has an owner again.
            self.wake(heir);
            self.sleep(heir);
        }
    }

    pub(super) fn arm(&mut self, place: u32, arm: &LoadArm) {
        if let Some((_, before)) = self.timers.bases.cancel(arm.timer)
            && self.load.recorded_cpu(before.arm).is_some()
        {
            self.timers.tally.superseded += 1;
        }
        let (base, armed_on) = self.target(arm);
        let pending = LoadTimer { timer: arm.timer, arm: place, armed_on };
        let now = self.load.jiffies(self.timers.now);
        self.timers.bases.arm(pending, OwnerBase { cpu: base, kind: arm.kind }, arm.expires, now);
        let before = self.cpus[base.index()].deadline;
        if !self.is_asleep(base) || arm.kind != LoadBase::Deferrable {
            self.review(base);
        }
        let after = self.cpus[base.index()].deadline;
        let is_first = after.is_some_and(|after| before.is_none_or(|before| after < before));
        if self.is_asleep(base) && base != arm.cpu && is_first {
            self.count_wakeup(base);
        }
    }

    pub(super) fn cancel(&mut self, timer: u32) {
        if let Some((cpu, _)) = self.timers.bases.cancel(timer)
            && !self.is_asleep(cpu)
        {
            self.review(cpu);
        }
    }

    /// The CPU whose base a timer goes into, and the one that puts it there. A timer that its own callback
    /// arms stays in the base that it ran out of, and runs its callback where this replay has it.
    fn target(&self, arm: &LoadArm) -> (CpuId, CpuId) {
        if arm.is_pinned {
            return (arm.base, arm.cpu);
        }
        let is_of_callback = self.load.policy != Policy::Push && arm.base != arm.cpu;
        if is_of_callback {
            // Otherwise its base was named, as that of a work item's CPU.
            let ran =
                self.timers.last_runs[arm.timer as usize].filter(|(tick, _)| tick + 1 >= self.timers.now);
            return ran.map_or((arm.base, arm.cpu), |(_, ran)| (ran.base, ran.cpu));
        }
        let Some(PushChoice { housekeeping, topology }) = &self.push else { return (arm.cpu, arm.cpu) };
        let arming = Arming { cpu: arm.cpu, is_idle: arm.is_idle };
        let target = push_target(arming, housekeeping, topology.domains(arm.cpu), |cpu| self.is_asleep(cpu));
        (target, arm.cpu)
    }

    /// The next tick in which a CPU has something to do, as far as the bases say.
    pub(super) fn next_due(&self) -> Option<u64> {
        let own = self.deadlines.first().map(|(tick, _)| *tick);
        let Some(hierarchy) = self.hierarchy.as_ref().filter(|_| !self.awake.is_empty()) else { return own };
        let groups = self.groups.iter().filter_map(|group| hierarchy.group_next_expiry(*group));
        earlier(own, groups.min().map(|at| self.tick_of(at)))
    }

    /// Who has a reason to look at its timers now: sleepers, then the awake ones; both in the round from the
    /// CPU that did something last.
    pub(super) fn due(&self) -> Vec<CpuId> {
        let late = self.deadlines.iter().take_while(|(tick, _)| *tick <= self.timers.now);
        let mut due: Vec<CpuId> = late.map(|(_, cpu)| *cpu).filter(|cpu| self.is_asleep(*cpu)).collect();
        due.sort_by_key(|cpu| self.distance(*cpu));
        due.append(&mut self.awake_in_turn());
        due
    }

    /// How far a CPU is, in the round, from the one that did something last.
    fn distance(&self, cpu: CpuId) -> usize {
        let round = self.cpus.len();
        (cpu.index() + round - self.last.index()) % round
    }

    fn awake_in_turn(&self) -> Vec<CpuId> {
        let mut awake: Vec<CpuId> = self.awake.iter().copied().collect();
        awake.sort_by_key(|cpu| self.distance(*cpu));
        awake
    }

    pub(super) fn note(&mut self, cpu: CpuId) {
        self.last = cpu;
    }

    /// Sleeping CPUs whose own unpinned timers are due, and which an interrupt may make look at them: kernels
    /// interrupt idle CPUs to balance load while another one is awake; neither is an isolated one.
    pub(super) fn interrupted(&mut self) -> Vec<CpuId> {
        let now = self.timers.now;
        let balanced = possible(self.load).difference(&self.load.facts.isolated);
        let mut sleepers: Vec<CpuId> = balanced.iter().filter(|cpu| self.is_asleep(*cpu)).collect();
        if sleepers.len() == balanced.len() {
            return Vec::new();
        }
        sleepers.retain(|cpu| self.timers.next(*cpu, LoadBase::Global).is_some_and(|tick| tick <= now));
        sleepers
    }

    /// Whether the time is up to date once a CPU's tick has come: a sleeper looks at the clock when it is
    /// woken; of the awake ones one counts for all, the first whose tick comes when there is none.
    pub(super) fn counts_time(&mut self, cpu: CpuId) -> bool {
        self.is_asleep(cpu) || *self.timekeeper.get_or_insert(cpu) == cpu
    }

    /// Whether a timer of a CPU's own bases, or its alarm, is due.
    pub(super) fn has_own(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].deadline.is_some_and(|tick| tick <= self.timers.now)
    }

    /// Whether a CPU has something to do in this tick.
    pub(super) fn has_reason(&self, cpu: CpuId) -> bool {
        let is_due = self.has_own(cpu);
        let now = self.nanos(self.timers.now);
        is_due || self.hierarchy.as_ref().is_some_and(|hierarchy| hierarchy.requires_handle_remote(cpu, now))
    }

    /// First half of a TIMER softirq: a CPU runs its own bases.
    pub(super) fn run_own(&mut self, cpu: CpuId) {
        if self.is_asleep(cpu) {
            self.count_wakeup(cpu);
        }
        for kind in [LoadBase::Local, LoadBase::Global, LoadBase::Deferrable] {
            self.timers.run(cpu, kind, cpu);
        }
    }

    /// Second half: it runs what the hierarchy wants it to.
    pub(super) fn run_others(&mut self, cpu: CpuId) {
        let Some(hierarchy) = &self.hierarchy else { return };
        let (timers, length) = (&mut self.timers, self.load.tick.as_u64());
        let now = Nanos(timers.now.saturating_mul(length).min(u64::MAX - 1));
        hierarchy.handle_remote(cpu, now, &mut |owner| {
            if hierarchy.cpu_state(owner) != CpuState::Parked {
                return Pulled::Left;
            }
            timers.run(owner, LoadBase::Global, cpu);
            let (_, published) = timers.firsts(owner);
            let next = published.map(|tick| Nanos(tick.saturating_mul(length).min(u64::MAX - 1)));
            let _ = hierarchy.publish(owner, next);
            Pulled::Published
        });
    }

    /// After a softirq: CPUs whose timers ran, for who asks what they cause; and the CPU's own next deadline.
    pub(super) fn settle(&mut self, cpu: CpuId, owners: &mut Vec<CpuId>) {
        std::mem::swap(owners, &mut self.timers.owners);
        self.timers.owners.clear();
        self.review(cpu);
    }

    pub(super) fn finish(self) -> (super::WhatifFigures, Vec<(u32, CpuId)>) {
        let left_out: CpuSet = match &self.hierarchy {
            Some(hierarchy) => possible(self.load)
                .iter()
                .filter(|cpu| hierarchy.cpu_state(*cpu) == CpuState::Unavailable)
                .collect(),
            None => match &self.question.excluded {
                Excluded::These(cpus) => cpus.clone(),
                Excluded::AsRecorded => CpuSet::new(),
            },
        };
        let pending = self.timers.bases.pending();
        let (mut figures, ran_on) = self.timers.tally.finish();
        figures.pending = pending;
        figures.policy = self.question.policy.name();
        figures.excluded = left_out.to_string();
        figures.kept_awake = self.question.kept_awake.to_string();
        (figures, ran_on)
    }
}

/// The machine as far as a recording shows it: NUMA nodes, and nothing below them.
fn topology(load: &RecordedLoad) -> Topology {
    let nodes = load.nodes.iter().max().map_or(1, |last| usize::from(*last) + 1);
    let mut lists = vec![CpuSet::new(); nodes];
    for (cpu, node) in possible(load).iter().zip(&load.nodes) {
        lists[usize::from(*node)].insert(cpu);
    }
    lists.retain(|list| !list.is_empty());
    let one_node = || Topology::builder(load.cpus).build();
    let built = Topology::builder(load.cpus).node_lists(&lists).build().or_else(|_| one_node());
    built.expect("one node holds every CPU")
}
