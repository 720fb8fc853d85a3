//! A CPU and its time: segments of interrupt, softirq and task, each on top of the next.
//!
//! At any moment a CPU does the topmost thing it has: an interrupt, a softirq, a real-time task, a task, a
//! task that only fills time, nothing. What it does has a rest of time; when something comes on top, the rest
//! is kept. Under `cooperative` nothing comes on top of a task: what arrives is looked at when the task ends.

use super::softirq::{Arrival, Softirqs};
use super::{Event, World};
use crate::scenario::names::Preempt;
use quietcore_core::realtime::{Priority, RealtimeQueue};
use quietcore_core::softirq::{Call, Vector};
use quietcore_core::{Expired, Nanos, Turn};
use std::collections::VecDeque;

/// Something to do for ever.
pub(super) const ENDLESS: u64 = u64::MAX;

/// Why a CPU is interrupted; bits.
pub(super) mod why {
    pub(in crate::world) const TICK: u8 = 1;
    pub(in crate::world) const KICK: u8 = 2;
    pub(in crate::world) const WAKEUP: u8 = 4;
    /// A device has work for a softirq.
    pub(in crate::world) const DEVICE: u8 = 8;
    /// The interval of a real-time task is over.
    pub(in crate::world) const HRTIMER: u8 = 16;
    /// A softirq has waited for real-time tasks long enough.
    pub(in crate::world) const LIMIT: u8 = 32;
    /// Somebody has armed a timer here.
    pub(in crate::world) const CALL: u8 = 64;
}

/// What a CPU spends its time on at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Nothing: asleep, offline, or stalled.
    None,
    Interrupt,
    Softirq,
    Task,
}

/// The topmost segment of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hard {
    None,
    /// An interrupt, or waking up.
    Interrupt,
    /// Pays for what the handlers of an interrupt did.
    Leaving,
    /// On its way to sleep; what arrives meanwhile is looked at first.
    FallingAsleep,
}

/// Where a CPU is in its softirqs: which handler runs, and where that of timers is.
#[derive(Debug)]
pub(super) enum Soft {
    None,
    /// Raised, not begun.
    Raised,
    /// Runs a timer's callback.
    Callback(Expired<u32>),
    /// Pays for what it did last.
    Finishing,
    /// The handler of another vector.
    Handler(Vector),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Cpu {
    pub(super) is_online: bool,
    pub(super) is_asleep: bool,
    /// A kick is on its way to it, or was not answered yet.
    pub(super) is_kicked: bool,
    /// A fault holds it.
    pub(super) is_stalled: bool,
    /// The machine was told that it has nothing to run.
    pub(super) in_idle: bool,
    /// The machine said that it may sleep: its books say idle.
    pub(super) is_parked: bool,
    pub(super) level: Level,
    pub(super) since: u64,
    /// Changes whenever a segment's end is no longer what was planned.
    pub(super) generation: u32,
    pub(super) hard: Hard,
    pub(super) hard_left: u64,
    /// Reasons to be looked at, of [`why`].
    pub(super) pending: u8,
    pub(super) soft: Soft,
    pub(super) soft_left: u64,
    pub(super) turn: Turn,
    pub(super) softirqs: Softirqs,
    /// What interrupts have brought and nobody has handled yet.
    pub(super) arrived: Vec<Arrival>,
    /// A call about a timer that was armed here.
    pub(super) call: Call,
    pub(super) current: Option<u32>,
    /// The task before, to know whether a switch costs anything.
    pub(super) last_task: Option<u32>,
    /// The priority of the task before, if it was a real-time one.
    pub(super) last_priority: Option<Priority>,
    pub(super) realtime: RealtimeQueue<u32>,
    /// Normal, fillers.
    pub(super) queues: [VecDeque<u32>; 2],
    pub(super) tick_is_on: bool,
    pub(super) tick_generation: u32,
    pub(super) wakeup_generation: u32,
    /// The last tick edge that a lane looked at.
    pub(super) looked_at: u64,
    pub(super) asleep_since: u64,
}

impl Cpu {
    pub(super) fn new(turn: Turn, limit: Nanos) -> Self {
        Self {
            is_online: true,
            is_asleep: false,
            is_kicked: false,
            is_stalled: false,
            in_idle: false,
            is_parked: false,
            level: Level::None,
            since: 0,
            generation: 0,
            hard: Hard::None,
            hard_left: 0,
            pending: 0,
            soft: Soft::None,
            soft_left: 0,
            turn,
            softirqs: Softirqs::new(limit),
            arrived: Vec::new(),
            call: Call::new(),
            current: None,
            last_task: None,
            last_priority: None,
            realtime: RealtimeQueue::new(),
            queues: [VecDeque::new(), VecDeque::new()],
            tick_is_on: false,
            tick_generation: 0,
            wakeup_generation: 0,
            looked_at: 0,
            asleep_since: 0,
        }
    }

    pub(super) fn has_task(&self) -> bool {
        self.current.is_some()
            || !self.realtime.is_empty()
            || self.queues.iter().any(|queue| !queue.is_empty())
    }
}

impl World<'_> {
    pub(super) fn cpu(&mut self, cpu: u16) -> &mut Cpu {
        &mut self.cpus[usize::from(cpu)]
    }

    pub(super) fn is_kernel(&self) -> bool {
        self.plan.preempt == Preempt::Tick
    }

    /// Stops what `cpu` is doing, and keeps the rest.
    pub(super) fn pause(&mut self, cpu: u16) {
        let now = self.now;
        let this = &mut self.cpus[usize::from(cpu)];
        let spent = now - this.since;
        this.generation = this.generation.wrapping_add(1);
        match std::mem::replace(&mut this.level, Level::None) {
            Level::None => {}
            Level::Interrupt => this.hard_left = this.hard_left.saturating_sub(spent),
            Level::Softirq => this.soft_left = this.soft_left.saturating_sub(spent),
            Level::Task => {
                let task = this.current.expect("a CPU at task level has a task");
                self.task_pauses(task, spent);
            }
        }
    }

    /// Goes on with the topmost thing `cpu` has to do, until something else happens in the world first.
    pub(super) fn proceed(&mut self, cpu: u16) {
        loop {
            let Some((level, left)) = self.topmost(cpu) else { return };
            let now = self.now;
            let this = self.cpu(cpu);
            (this.level, this.since) = (level, now);
            if left == ENDLESS {
                return;
            }
            let end = now.saturating_add(left);
            let is_next = end <= self.end && self.queue.next_at().is_none_or(|next| end < next.0);
            if !is_next {
                let generation = self.cpu(cpu).generation;
                self.queue.push(Nanos(end), Event::Segment(cpu, generation));
                return;
            }
            self.now = end;
            self.events += 1;
            self.complete(cpu);
            if self.options.check {
                self.check();
            }
        }
    }

    /// What `cpu` does now, and how long; `None` when it does nothing.
    fn topmost(&mut self, cpu: u16) -> Option<(Level, u64)> {
        let this = self.cpu(cpu);
        if !this.is_online || this.is_stalled || this.is_asleep {
            return None;
        }
        let is_free = this.hard == Hard::None && matches!(this.soft, Soft::None);
        // What no task may run is still to be run before the CPU sleeps.
        if is_free && !self.pick(cpu) && !self.begin_round(cpu) {
            self.fall_asleep(cpu);
        }
        let this = self.cpu(cpu);
        if this.hard != Hard::None {
            return Some((Level::Interrupt, this.hard_left));
        }
        if !matches!(this.soft, Soft::None) {
            return Some((Level::Softirq, this.soft_left));
        }
        let task = this.current?;
        Some((Level::Task, self.task_resumes(cpu, task)))
    }

    /// The planned end of a segment.
    pub(super) fn segment_ends(&mut self, cpu: u16, generation: u32) {
        let this = self.cpu(cpu);
        if this.generation == generation && this.level != Level::None {
            self.complete(cpu);
            self.proceed(cpu);
        }
    }

    /// What `cpu` was doing is done.
    fn complete(&mut self, cpu: u16) {
        let this = self.cpu(cpu);
        this.generation = this.generation.wrapping_add(1);
        match std::mem::replace(&mut this.level, Level::None) {
            Level::None => {}
            Level::Interrupt => {
                this.hard_left = 0;
                self.interrupt_ends(cpu);
            }
            Level::Softirq => {
                this.soft_left = 0;
                self.softirq_step(cpu);
            }
            Level::Task => {
                let task = this.current.expect("a CPU at task level has a task");
                self.tasks[task as usize].left = 0;
                self.task_step(cpu, task);
                if !self.is_kernel() {
                    self.look_around(cpu);
                }
            }
        }
    }
}
