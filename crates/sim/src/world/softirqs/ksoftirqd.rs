//! ksoftirqd: the normal task that runs what rounds of softirqs have left.
//!
//! It has rounds of its own, with the same passes; between two of them it lets its equals run. It can be
//! preempted in the middle of a handler; what it holds then waits with it, up to the limit of deferral: then
//! it runs before real-time tasks until its pass is over. Or (`ksoftirqd = "whole"`, a kernel without
//! PREEMPT_RT) its pass keeps out tasks, and softirqs of interrupts on top of it. The core says which vectors
//! it gets (`Claims`, `Runner::Ksoftirqd`).

use super::layer::SoftirqLayer;
use crate::world::context::RunAccess;
use crate::world::tasks::NextPart;
use quietcore_core::Nanos;
use quietcore_core::softirq::{Budget, Passes, Runner, Step, VectorSet};

impl SoftirqLayer<'_> {
    /// ksoftirqd goes on: the next handler, the next pass, the next round, or to sleep.
    pub(crate) fn ksoftirqd_part(&mut self, cpu: u16) -> NextPart {
        let is_urgent = self.tasks.is_outranked(cpu);
        loop {
            let now = self.now();
            if let Some(length) = self.handler_step(cpu) {
                return NextPart::Run(length);
            }
            let this = &mut self.tasks.cpus[usize::from(cpu)].softirqs;
            if let Some(vector) = this.ksoftirqd_runs.rest.iter().next() {
                this.ksoftirqd_runs.rest = this.ksoftirqd_runs.rest.difference(vector.into());
                let length = self.take_work(cpu, vector, Runner::Ksoftirqd);
                self.cpu(cpu).softirqs.ksoftirqd_runs.handler = Some(vector);
                if let Some(since) = &mut self.cpu(cpu).softirqs.ksoftirqd_runs.pass_since {
                    *since += length; // here: how long it works
                }
                return NextPart::Run(length);
            }
            if let Some(worked) = this.ksoftirqd_runs.pass_since.take() {
                let pending = this.claims.finish(Runner::Ksoftirqd);
                self.pass_ended(worked);
                self.stop_boost(cpu, pending);
            }
            let this = &mut self.tasks.cpus[usize::from(cpu)].softirqs;
            let begin = || Passes::begin(Runner::Ksoftirqd, Budget::default(), Nanos(now));
            let round = this.ksoftirqd_runs.round.get_or_insert_with(begin);
            if is_urgent && !this.is_boosted {
                round.end_early();
            }
            let claimed = match round.next(this.claims.pending(), VectorSet::EMPTY, Nanos(now)) {
                Step::Run(wanted) => this.claims.claim(Runner::Ksoftirqd, wanted),
                Step::End { .. } => VectorSet::EMPTY,
            };
            if claimed.is_empty() {
                this.ksoftirqd_runs.round = None;
                let is_over = this.claims.pending().intersection(VectorSet::MOVABLE).is_empty();
                return if is_over { NextPart::Block } else { NextPart::Yield(0) };
            }
            (this.ksoftirqd_runs.rest, this.ksoftirqd_runs.pass_since) = (claimed, Some(0));
            self.claimed(cpu, claimed);
        }
    }

    /// ksoftirqd's handler goes one packet further, if it has any.
    fn handler_step(&mut self, cpu: u16) -> Option<u64> {
        let vector = self.cpu(cpu).softirqs.ksoftirqd_runs.handler?;
        let length = self.packet_step(cpu, vector);
        let ksoftirqd_runs = &mut self.cpu(cpu).softirqs.ksoftirqd_runs;
        if length.is_none() {
            ksoftirqd_runs.handler = None;
        }
        if let Some(since) = &mut ksoftirqd_runs.pass_since {
            *since += length.unwrap_or(0); // as below: how long it works
        }
        length
    }

    /// ksoftirqd's pass is over: it goes on before all other tasks only if another vector has waited too
    /// long.
    fn stop_boost(&mut self, cpu: u16, pending: VectorSet) {
        if self.cpu(cpu).softirqs.is_boosted {
            let held = self.hold(cpu, pending);
            let overdue = pending.intersection(VectorSet::LONG).difference(held);
            self.cpu(cpu).softirqs.is_boosted = !overdue.is_empty();
        }
    }
}
