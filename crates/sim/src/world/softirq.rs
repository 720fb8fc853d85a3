//! Softirqs: raised by interrupts, run in passes when those end, and what is left by ksoftirqd.
//!
//! The core decides: which vectors a pass takes and when a round is over (`Passes`), what waits for a
//! real-time task and for how long at most (`Deferral`), who runs which vector (`Claims`). This file is the
//! time that it takes. A handler runs all the work that is there when it begins. What arrives on top of it
//! pauses it; tasks wait until the round is over. ksoftirqd is a normal task. It can be preempted in the
//! middle of a handler, and what it holds then waits with it, up to the limit of deferral: then it runs
//! before real-time tasks until its pass is over. Or (`ksoftirqd = "whole"`, a kernel without PREEMPT_RT) its
//! pass keeps everybody out: tasks, and softirqs of interrupts on top of it.
//!
//! Invariant: work that was raised has run or is queued here (`SoftirqFigures::lost`). Absent: budgets of
//! handlers, handlers that raise other vectors; RPS and threaded interrupts.

use super::cpu::{Hard, Soft, why};
use super::record::What;
use super::task::State;
use super::{Event, World};
use crate::engine::{Random, Tail, interval};
use crate::scenario::Device;
use quietcore_core::Nanos;
use quietcore_core::softirq::{Budget, Claims, Deferral, Passes, Raise, Runner, Step, Vector, VectorSet};
use std::collections::VecDeque;

const VECTORS: usize = 16;

/// Work that a device has for a vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) vector: Vector,
    raised_at: u64,
    length: u64,
}

/// What an interrupt brings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrival {
    Work(Work),
    /// This real-time task's interval is over.
    Wake(u32),
    /// A timer was armed on this CPU from elsewhere.
    Called(u16),
    /// There is something for this transmit queue.
    Frames(u16),
}

/// A device of a load.
#[derive(Debug)]
pub(super) struct Source {
    device: Device,
    cpu: u16,
    random: Random,
}

impl Source {
    /// Its own stream: the same work at the same times in every variant.
    pub(super) fn new(device: Device, cpu: u16, (seed, number): (u64, u32)) -> Self {
        Self { device, cpu, random: Random::new(seed, (1 << 32) + u64::from(number)) }
    }

    pub(super) fn next_interval(&mut self) -> u64 {
        interval(&mut self.random, self.device.interval)
    }

    fn work(&mut self, now: u64) -> Work {
        let Device { vector, least, median, most, tail, .. } = self.device;
        let tail = Tail { least, median, most, exponent: f64::from(tail) / 1_000.0 };
        Work { vector, raised_at: now, length: tail.draw(&mut self.random) }
    }
}

/// One of the two who run handlers on a CPU.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) round: Option<Passes>,
    /// What of its pass has not begun.
    pub(super) rest: VectorSet,
    /// Its handler, of ksoftirqd, which goes on packet by packet.
    pub(super) handler: Option<Vector>,
    /// Since when its pass runs, if it has one.
    pub(super) pass_since: Option<u64>,
}

/// The softirqs of a CPU.
#[derive(Debug)]
pub(super) struct Softirqs {
    pub(super) claims: Claims,
    deferral: Deferral,
    lane: Runs,
    pub(super) ksoftirqd_runs: Runs,
    /// By vector, in the order of arrival.
    work: [VecDeque<Work>; VECTORS],
    held_since: [Option<u64>; VECTORS],
    /// When the next look at the limit is, if one is ahead.
    limit_look: Option<u64>,
    /// Its task, once there is one.
    pub(super) ksoftirqd: Option<u32>,
    /// ksoftirqd holds what has waited long enough: it runs before everybody.
    pub(super) is_boosted: bool,
    /// Timers that ran in this TIMER handler, where that is counted.
    pub(super) expired: u32,
}

impl Softirqs {
    pub(super) fn new(limit: Nanos) -> Self {
        Self {
            claims: Claims::new(),
            deferral: Deferral::new(limit),
            lane: Runs::default(),
            ksoftirqd_runs: Runs::default(),
            work: [const { VecDeque::new() }; VECTORS],
            held_since: [None; VECTORS],
            limit_look: None,
            ksoftirqd: None,
            is_boosted: false,
            expired: 0,
        }
    }

    /// Whether anything is pending or runs.
    pub(super) fn is_quiet(&self) -> bool {
        self.claims.pending().union(self.claims.active()).is_empty()
    }

    pub(super) fn is_in_round(&self) -> bool {
        self.lane.round.is_some()
    }

    /// A task waits that should run instead of what runs: rounds end after their pass.
    pub(super) fn end_early(&mut self) {
        self.lane.round.iter_mut().for_each(Passes::end_early);
        self.ksoftirqd_runs.round.iter_mut().for_each(Passes::end_early);
    }

    fn left(&self) -> u64 {
        self.work.iter().map(|queue| queue.len() as u64).sum()
    }
}

impl World<'_> {
    /// A device interrupts: the CPU it belongs to, or one near that if that is offline.
    pub(super) fn device(&mut self, source: u32) {
        let now = self.now;
        let this = &mut self.sources[source as usize];
        let (wanted, work) = (this.cpu, this.work(now));
        let next = now + this.next_interval();
        self.queue.push(Nanos(next), Event::Device(source));
        self.recorder.softirqs().raised += 1;
        self.arrive(wanted, Arrival::Work(work), why::DEVICE);
    }

    /// An interrupt for `wanted` brings something.
    pub(super) fn arrive(&mut self, wanted: u16, arrival: Arrival, reason: u8) {
        let cpu = self.online_near(wanted);
        self.cpu(cpu).arrived.push(arrival);
        self.interrupt(cpu, reason);
    }

    /// What interrupts have brought is handled; returns what that costs.
    pub(super) fn handle_arrivals(&mut self, cpu: u16) -> u64 {
        if self.cpu(cpu).arrived.is_empty() {
            return 0;
        }
        let mut arrived = std::mem::take(&mut self.cpu(cpu).arrived);
        let mut cost = 0;
        for arrival in arrived.drain(..) {
            match arrival {
                Arrival::Work(work) => {
                    self.cpu(cpu).softirqs.work[work.vector.index()].push_back(work);
                    self.raise(cpu, work.vector);
                }
                Arrival::Wake(task) => cost += self.wake_realtime(task, cpu),
                Arrival::Called(of) => self.call_arrives(cpu, of),
                Arrival::Frames(queue) => cost += self.take_frames(cpu, queue),
            }
        }
        self.cpu(cpu).arrived = arrived;
        cost
    }

    pub(super) fn raise(&mut self, cpu: u16, vector: Vector) {
        let raise = self.cpus[usize::from(cpu)].softirqs.claims.raise(vector.into());
        if vector != Vector::TIMER {
            let news = u64::from(raise == Raise::News);
            self.note(What::Raise, cpu, (vector.index() as u64) << 1 | news);
        }
    }

    /// What of `pending` waits for real-time tasks.
    pub(super) fn hold(&mut self, cpu: u16, pending: VectorSet) -> VectorSet {
        if !self.plan.awareness.defers() || self.highest(cpu).is_none() {
            return VectorSet::EMPTY;
        }
        let now = self.now;
        let this = &mut self.cpus[usize::from(cpu)].softirqs;
        let held = this.deferral.hold(pending, Nanos(now));
        for vector in held.iter() {
            if this.held_since[vector.index()].is_none() {
                this.held_since[vector.index()] = Some(now);
                self.recorder.softirqs().deferred += 1;
            }
        }
        if let Some(at) = this.deferral.limit_at() {
            self.look_at_limit(cpu, at.0);
        }
        held
    }

    fn look_at_limit(&mut self, cpu: u16, at: u64) {
        let now = self.now;
        let this = &mut self.cpus[usize::from(cpu)].softirqs;
        if this.limit_look.is_none_or(|look| at < look) {
            this.limit_look = Some(at);
            self.queue.push(Nanos(at.max(now)), Event::DeferLimit(cpu));
        }
    }

    /// Something may have waited long enough.
    pub(super) fn defer_limit(&mut self, cpu: u16) {
        let now = self.now;
        let this = &mut self.cpus[usize::from(cpu)].softirqs;
        if this.limit_look.is_some_and(|look| look > now) {
            return; // one before this is ahead no longer
        }
        this.limit_look = None;
        match this.deferral.limit_at() {
            Some(at) if at.0 > now => self.look_at_limit(cpu, at.0),
            Some(_) => self.interrupt(cpu, why::LIMIT),
            None => {}
        }
    }

    /// `claimed` no longer waits: its handlers are about to run.
    pub(super) fn claimed(&mut self, cpu: u16, claimed: VectorSet) {
        let now = self.now;
        let limit = self.plan.defer_limit.0;
        let this = &mut self.cpus[usize::from(cpu)].softirqs;
        this.deferral.ran(claimed);
        for vector in claimed.iter() {
            if let Some(since) = this.held_since[vector.index()].take() {
                let figures = self.recorder.softirqs();
                figures.deferral_ns_max = figures.deferral_ns_max.max(now - since);
                figures.limit_reached += u64::from(now - since >= limit);
            }
        }
    }

    /// An interrupt is over, or a CPU has nothing else to do: softirqs run, if any may. Says whether one
    /// does.
    pub(super) fn begin_round(&mut self, cpu: u16) -> bool {
        let now = self.now;
        if self.is_whole(cpu) {
            return false;
        }
        let is_urgent = self.is_outranked(cpu);
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
        !matches!(self.cpu(cpu).soft, Soft::None)
    }

    /// The lane's next pass; the last one is over.
    fn next_pass(&mut self, cpu: u16) {
        loop {
            let now = Nanos(self.now);
            let pending = self.cpu(cpu).softirqs.claims.pending();
            let held = self.hold(cpu, pending);
            let this = &mut self.cpus[usize::from(cpu)].softirqs;
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
        let now = Nanos(self.now);
        let keeps = self.plan.awareness.defers() && self.highest(cpu).is_some();
        let this = &mut self.cpus[usize::from(cpu)].softirqs;
        this.lane.round = None;
        let left = this.claims.pending();
        let overdue = left.intersection(VectorSet::LONG).difference(held);
        if keeps && !overdue.is_empty() {
            if overdue.difference(this.claims.active()).is_empty() {
                this.is_boosted = true;
            } else {
                // A round's first pass takes place whoever waits.
                this.lane.round = Some(Passes::begin(Runner::Lane, Budget::default(), now));
                this.end_early();
                return false;
            }
        }
        self.cpu(cpu).soft = Soft::None;
        if !left.intersection(VectorSet::MOVABLE).is_empty() {
            self.wake_ksoftirqd(cpu);
        }
        true
    }

    /// The lane's next handler of this pass, or the next pass.
    pub(super) fn next_vector(&mut self, cpu: u16) {
        let now = self.now;
        let this = &mut self.cpus[usize::from(cpu)];
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
            (this.soft, this.soft_left) = (Soft::Raised, 0);
            let cost = self.helper_begins(cpu);
            self.cpu(cpu).soft_left += cost;
            return;
        }
        let length = self.take_work(cpu, vector, Runner::Lane);
        let this = self.cpu(cpu);
        (this.soft, this.soft_left) = (Soft::Handler(vector), length);
        self.export(|exporter, world| exporter.softirq(world, (cpu, vector), true));
    }

    /// The handler of `vector` begins: how long it takes.
    pub(super) fn take_work(&mut self, cpu: u16, vector: Vector, runner: Runner) -> u64 {
        let now = self.now;
        let mut length: u64 = 0;
        while let Some(work) = self.cpus[usize::from(cpu)].softirqs.work[vector.index()].pop_front() {
            self.recorder.delay(vector, now - work.raised_at);
            let figures = self.recorder.softirqs();
            match runner {
                Runner::Lane => figures.ran_inline += 1,
                Runner::Ksoftirqd => figures.ran_ksoftirqd += 1,
            }
            length = length.saturating_add(work.length);
        }
        if !self.packets.is_empty() {
            self.begin_handler(cpu, vector);
        }
        self.note(What::Handler, cpu, (vector.index() as u64) << 56 ^ length);
        length
    }

    pub(super) fn pass_ended(&mut self, span: u64) {
        // A world without devices has no figures of softirqs.
        if let Some(figures) = &mut self.recorder.figures.softirqs {
            figures.pass_ns_max = figures.pass_ns_max.max(span);
        }
    }

    /// What holds between any two events, whatever softirqs and real-time tasks do.
    pub(super) fn check_urgent(&self) {
        for (cpu, this) in self.cpus.iter().enumerate() {
            let (pending, active) = (this.softirqs.claims.pending(), this.softirqs.claims.active());
            for (vector, work) in this.softirqs.work.iter().enumerate() {
                let vector = Vector::from_index(vector as u8).expect("there are as many vectors");
                let is_known = work.is_empty() || pending.union(active).contains(vector);
                assert!(is_known, "CPU {cpu}: {} of {vector} that nobody will run", work.len());
            }
            let is_free = this.hard == Hard::None && matches!(this.soft, Soft::None);
            let ksoftirqd = this.softirqs.ksoftirqd.map(|task| self.tasks[task as usize].state);
            let has_left = is_free && this.is_online && !this.is_stalled && this.pending == 0;
            let is_woken = ksoftirqd == Some(State::Runnable);
            let waits = !pending.intersection(VectorSet::MOVABLE).is_empty();
            assert!(!(has_left && waits) || is_woken, "CPU {cpu}: {pending} pending, ksoftirqd sleeps");
            self.check_priority(cpu as u16);
        }
    }

    /// Work that waits at the end, also in interrupts that have not been handled; and what is held back.
    pub(super) fn finish_softirqs(&mut self) {
        let is_work = |arrival: &&Arrival| matches!(arrival, Arrival::Work(_));
        let of =
            |cpu: &super::cpu::Cpu| cpu.softirqs.left() + cpu.arrived.iter().filter(is_work).count() as u64;
        let left: u64 = self.cpus.iter().map(of).sum();
        let held = self.cpus.iter().flat_map(|cpu| cpu.softirqs.held_since.into_iter().flatten());
        let longest = held.map(|since| self.end - since).max().unwrap_or(0);
        if let Some(figures) = &mut self.recorder.figures.softirqs {
            figures.left = left;
            figures.deferral_ns_max = figures.deferral_ns_max.max(longest);
        }
    }
}
