//! Rounds of softirqs: their passes, what of them waits for real-time tasks, and the handlers' work.
//!
//! The core decides: which vectors a pass takes and when a round is over (`Passes`), what waits for a
//! real-time task and for how long at most (`Deferral`), which of the two runners gets a vector (`Claims`).
//! This file is the time that it takes. A handler runs all the work that is there when it begins. What
//! arrives on top of it pauses it; tasks wait until the round is over.

use super::layer::SoftirqLayer;
use crate::world::context::{NotedEvent, RunAccess};
use crate::world::event::SimEvent;
use crate::world::tasks::{Program, SimTask, SimTaskState, SoftirqState};
use quietcore_core::Nanos;
use quietcore_core::softirq::{Budget, Passes, Runner, Step, Vector, VectorSet};
use quietcore_trace::SoftirqStep;

impl SoftirqLayer<'_> {
    /// What of `pending` waits for real-time tasks.
    pub(crate) fn hold(&mut self, cpu: u16, pending: VectorSet) -> VectorSet {
        if !self.plan().awareness.defers() || self.tasks.highest(cpu).is_none() {
            return VectorSet::EMPTY;
        }
        let now = self.now();
        let this = &mut self.tasks.cpus[usize::from(cpu)].softirqs;
        let held = this.deferral.hold(pending, Nanos(now));
        for vector in held.iter() {
            if this.held_since[vector.index()].is_none() {
                this.held_since[vector.index()] = Some(now);
                self.tasks.timers.run.recorder.softirqs().deferred += 1;
            }
        }
        if let Some(at) = this.deferral.limit_at() {
            self.look_at_limit(cpu, at.0);
        }
        held
    }

    /// Looks at `at` whether what is held back on `cpu` has waited long enough.
    pub(crate) fn look_at_limit(&mut self, cpu: u16, at: u64) {
        let now = self.now();
        let this = &mut self.tasks.cpus[usize::from(cpu)].softirqs;
        if this.limit_look.is_none_or(|look| at < look) {
            this.limit_look = Some(at);
            self.push(Nanos(at.max(now)), SimEvent::DeferLimit(cpu));
        }
    }

    /// `claimed` no longer waits: its handlers are about to run.
    pub(crate) fn claimed(&mut self, cpu: u16, claimed: VectorSet) {
        let now = self.now();
        let limit = self.plan().defer_limit.0;
        let this = &mut self.tasks.cpus[usize::from(cpu)].softirqs;
        this.deferral.ran(claimed);
        for vector in claimed.iter() {
            if let Some(since) = this.held_since[vector.index()].take() {
                let figures = self.tasks.timers.run.recorder.softirqs();
                figures.deferral_ns_max = figures.deferral_ns_max.max(now - since);
                figures.limit_reached += u64::from(now - since >= limit);
            }
        }
    }

    /// An interrupt is over, or a CPU has nothing else to do: softirqs run, if any may. Says whether one
    /// does.
    pub(crate) fn begin_round(&mut self, cpu: u16) -> bool {
        let now = self.now();
        if self.tasks.is_whole(cpu) {
            return false;
        }
        let is_urgent = self.tasks.is_outranked(cpu);
        let this = self.cpu(cpu);
        if this.softirqs.is_in_round() || this.softirqs.claims.pending().is_empty() {
            return this.softirqs.is_in_round();
        }
        let mut round = Passes::begin(Runner::Lane, Budget::default(), Nanos(now));
        if is_urgent {
            round.end_early();
        }
        this.softirqs.lane.round = Some(round);
        self.next_pass(cpu);
        !matches!(self.cpu(cpu).soft, SoftirqState::None)
    }

    /// The lane's next pass; the last one is over.
    fn next_pass(&mut self, cpu: u16) {
        loop {
            let now = Nanos(self.now());
            let pending = self.cpu(cpu).softirqs.claims.pending();
            let held = self.hold(cpu, pending);
            let this = &mut self.tasks.cpus[usize::from(cpu)].softirqs;
            let Some(round) = &mut this.lane.round else { return };
            let claimed = match round.next(pending, held, now) {
                Step::Run(wanted) => this.claims.claim(Runner::Lane, wanted),
                Step::End { .. } => VectorSet::EMPTY,
            };
            if claimed.is_empty() {
                if self.end_round(cpu, held) {
                    return;
                }
                continue;
            }
            (this.lane.rest, this.lane.pass_since) = (claimed, Some(now.0));
            self.claimed(cpu, claimed);
            return self.next_vector(cpu);
        }
    }

    /// The round of the lane is over, unless something has waited long enough. Says whether it is.
    fn end_round(&mut self, cpu: u16, held: VectorSet) -> bool {
        let now = Nanos(self.now());
        let keeps = self.plan().awareness.defers() && self.tasks.highest(cpu).is_some();
        let this = &mut self.tasks.cpus[usize::from(cpu)].softirqs;
        this.lane.round = None;
        let left = this.claims.pending();
        let overdue = left.intersection(VectorSet::LONG).difference(held);
        if keeps && !overdue.is_empty() {
            if overdue.difference(this.claims.active()).is_empty() {
                this.is_boosted = true;
            } else {
                // A round's first pass takes place whatever task waits.
                this.lane.round = Some(Passes::begin(Runner::Lane, Budget::default(), now));
                this.end_early();
                return false;
            }
        }
        self.cpu(cpu).soft = SoftirqState::None;
        if !left.intersection(VectorSet::MOVABLE).is_empty() {
            self.wake_ksoftirqd(cpu);
        }
        true
    }

    /// The lane's next handler of this pass, or the next pass.
    pub(crate) fn next_vector(&mut self, cpu: u16) {
        let now = self.now();
        let this = &mut self.tasks.cpus[usize::from(cpu)];
        let Some(vector) = this.softirqs.lane.rest.iter().next() else {
            let _ = this.softirqs.claims.finish(Runner::Lane);
            if let Some(since) = this.softirqs.lane.pass_since.take() {
                self.pass_ended(now - since);
            }
            return self.next_pass(cpu);
        };
        this.softirqs.lane.rest = this.softirqs.lane.rest.difference(vector.into());
        if vector == Vector::TIMER {
            this.softirqs.expired = 0;
            (this.soft, this.soft_left) = (SoftirqState::Raised, 0);
            let cost = self.tasks.timers.helper_begins(cpu);
            self.cpu(cpu).soft_left += cost;
            return;
        }
        let length = self.take_work(cpu, vector, Runner::Lane);
        let this = self.cpu(cpu);
        (this.soft, this.soft_left) = (SoftirqState::Handler(vector), length);
        self.export(|exporter| exporter.softirq(cpu, vector, SoftirqStep::Entry));
    }

    /// The handler of `vector` begins: how long it takes.
    pub(crate) fn take_work(&mut self, cpu: u16, vector: Vector, runner: Runner) -> u64 {
        let now = self.now();
        let mut length: u64 = 0;
        while let Some(work) = self.tasks.cpus[usize::from(cpu)].softirqs.work[vector.index()].pop_front() {
            self.recorder().delay(vector, now - work.raised_at);
            let figures = self.recorder().softirqs();
            match runner {
                Runner::Lane => figures.ran_inline += 1,
                Runner::Ksoftirqd => figures.ran_ksoftirqd += 1,
            }
            length = length.saturating_add(work.length);
        }
        if !self.packets.is_empty() {
            self.packets.begin_handler(cpu, vector);
        }
        self.note(NotedEvent::Handler, cpu, (vector.index() as u64) << 56 ^ length);
        length
    }

    pub(crate) fn pass_ended(&mut self, span: u64) {
        // A world without devices has no figures of softirqs.
        if let Some(figures) = &mut self.recorder().figures.softirqs {
            figures.pass_ns_max = figures.pass_ns_max.max(span);
        }
    }

    /// Wakes ksoftirqd of `cpu`, which exists from the first time on.
    fn wake_ksoftirqd(&mut self, cpu: u16) {
        let task = match self.cpu(cpu).softirqs.ksoftirqd {
            Some(task) => task,
            None => {
                let task = self.tasks.all.len() as u32;
                self.tasks.all.push(SimTask::new(Program::Ksoftirqd, cpu));
                self.cpu(cpu).softirqs.ksoftirqd = Some(task);
                task
            }
        };
        if self.tasks.all[task as usize].state == SimTaskState::Blocked {
            self.recorder().softirqs().ksoftirqd_wakeups += 1;
            self.tasks.enqueue(task, cpu);
        }
    }
}
