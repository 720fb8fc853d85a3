//! Events that reach a CPU: interrupts of all kinds, kicks, ticks, and the ends of its segments.
//!
//! What goes straight on (`proceed`) moves the time, so it comes last in each of these.

use super::context::{RunAccess, RunContext};
use super::cpus::CpuLayer;
use super::device::DeviceSource;
use super::event::SimEvent;
use super::softirqs::SoftirqLayer;
use super::tasks::{Arrival, ENDLESS, InterruptState, RunLevel, SimCpu, TaskLayer};
use super::timers::TimerLayer;
use super::why;
use crate::scenario::Cost;
use quietcore_core::{CpuSet, Nanos};

/// One run of a plan: the topmost layer, which events arrive at.
pub(crate) struct World<'p> {
    pub(crate) cpu_time: CpuLayer<'p>,
    pub(super) devices: Vec<DeviceSource>,
    /// Isolated at run time, by a fault.
    pub(super) flipped: CpuSet,
}

impl<'p> RunAccess<'p> for World<'p> {
    fn run(&self) -> &RunContext<'p> {
        self.cpu_time.run()
    }

    fn run_mut(&mut self) -> &mut RunContext<'p> {
        self.cpu_time.run_mut()
    }
}

impl<'p> World<'p> {
    pub(super) fn cpu(&mut self, cpu: u16) -> &mut SimCpu {
        self.cpu_time.cpu(cpu)
    }

    pub(super) fn timers(&mut self) -> &mut TimerLayer<'p> {
        self.cpu_time.timers()
    }

    pub(super) fn tasks(&mut self) -> &mut TaskLayer<'p> {
        self.cpu_time.tasks()
    }

    pub(super) fn softirqs(&mut self) -> &mut SoftirqLayer<'p> {
        &mut self.cpu_time.softirqs
    }

    /// The watchdog `timer` is due, unless it was moved: the device of the CPU that has it interrupts.
    pub(super) fn watchdog_due(&mut self, timer: u32) {
        let now = self.now();
        let this = &self.timers().all[timer as usize];
        if this.is_pending && this.expires == now {
            let base = this.base;
            self.interrupt(base, why::HRTIMER);
        }
    }
}

impl World<'_> {
    /// Goes on with the topmost thing `cpu` has to do, until something else happens in the world first.
    pub(crate) fn proceed(&mut self, cpu: u16) {
        loop {
            let Some((level, left)) = self.cpu_time.topmost(cpu) else { return };
            let now = self.now();
            let this = self.cpu(cpu);
            (this.level, this.since) = (level, now);
            if left == ENDLESS {
                return;
            }
            let end = now.saturating_add(left);
            let is_next = end <= self.run().end && self.run().queue.next_at().is_none_or(|next| end < next.0);
            if !is_next {
                let generation = self.cpu(cpu).generation;
                self.push(Nanos(end), SimEvent::Segment(cpu, generation));
                return;
            }
            let run = self.run_mut();
            run.now = end;
            run.events += 1;
            self.cpu_time.complete(cpu);
            if self.run().options.check {
                self.check();
            }
        }
    }

    /// The planned end of a segment.
    pub(crate) fn segment_ends(&mut self, cpu: u16, generation: u32) {
        let this = self.cpu(cpu);
        if this.generation == generation && this.level != RunLevel::None {
            self.cpu_time.complete(cpu);
            self.proceed(cpu);
        }
    }

    /// Something arrives at `cpu` for `reason`.
    pub(crate) fn interrupt(&mut self, cpu: u16, reason: u8) {
        let is_kernel = self.is_kernel();
        let this = self.cpu(cpu);
        if !this.is_online {
            return;
        }
        this.pending |= reason;
        if this.is_stalled || this.hard != InterruptState::None {
            return;
        }
        if this.is_asleep {
            let woken = self.cpu_time.wake_up(cpu);
            self.begin_interrupt(cpu, woken);
        } else if is_kernel {
            self.cpu_time.pause(cpu);
            self.begin_interrupt(cpu, 0);
        }
    }

    /// `extra` is what waking up takes.
    pub(crate) fn begin_interrupt(&mut self, cpu: u16, extra: u64) {
        let entry = if self.is_kernel() { self.cost(Cost::Interrupt) } else { 0 };
        let this = self.cpu(cpu);
        (this.hard, this.hard_left) = (InterruptState::Interrupt, entry.saturating_add(extra));
        self.proceed(cpu);
    }

    pub(crate) fn tick(&mut self, cpu: u16, generation: u32) {
        let this = self.cpu(cpu);
        if !this.tick_is_on || this.tick_generation != generation {
            return;
        }
        self.push_in(self.plan().tick.0, SimEvent::Tick(cpu, generation));
        self.interrupt(cpu, why::TICK);
    }

    /// The alarm of an idle CPU.
    pub(crate) fn wakeup(&mut self, cpu: u16, generation: u32) {
        let this = self.cpu(cpu);
        if this.wakeup_generation == generation && self.timers().contact(cpu).in_idle {
            self.interrupt(cpu, why::WAKEUP);
        }
    }

    /// An interrupt for `wanted` brings something.
    pub(crate) fn arrive(&mut self, wanted: u16, arrival: Arrival, reason: u8) {
        let cpu = self.tasks().online_near(wanted);
        self.cpu(cpu).arrived.push(arrival);
        self.interrupt(cpu, reason);
    }

    /// A device interrupts: the CPU it belongs to, or one near that if that is offline.
    pub(crate) fn device(&mut self, source: u32) {
        let now = self.now();
        let this = &mut self.devices[source as usize];
        let (wanted, work) = (this.cpu, this.work(now));
        let next = now + this.next_interval();
        self.push(Nanos(next), SimEvent::Device(source));
        self.recorder().softirqs().raised += 1;
        self.arrive(wanted, Arrival::Work(work), why::DEVICE);
    }

    /// The interval of `thread` is over: an interrupt of the CPU where it went to sleep.
    pub(crate) fn interval_ends(&mut self, thread: u32) {
        let task = self.tasks().realtime.threads[thread as usize].task;
        let cpu = self.tasks().all[task as usize].cpu;
        self.arrive(cpu, Arrival::Wake(task), why::HRTIMER);
    }

    pub(crate) fn called(&mut self, cpu: u16) {
        self.arrive(cpu, Arrival::Called(cpu), why::CALL);
    }

    /// Frames have arrived for `queue`, or there is room for more: its CPU is interrupted.
    pub(crate) fn frames_arrive(&mut self, queue: u16) {
        let this = &mut self.cpu_time.softirqs.packets.queues[usize::from(queue)];
        (this.is_expected, this.is_polled) = (false, true);
        let home = this.home;
        self.arrive(home, Arrival::Frames(queue), why::DEVICE);
    }

    /// A load begins, or a device interrupts: its task is woken by an interrupt of its own CPU.
    pub(crate) fn start(&mut self, task: u32) {
        let home = self.tasks().all[task as usize].home;
        let _ = self.tasks().wake(task, home);
        let target = self.tasks().all[task as usize].cpu;
        self.interrupt(target, why::KICK);
    }

    /// A softirq of `cpu` may have waited long enough.
    pub(crate) fn defer_limit(&mut self, cpu: u16) {
        let now = self.now();
        let this = &mut self.cpu(cpu).softirqs;
        if this.limit_look.is_some_and(|look| look > now) {
            return; // one before this is ahead no longer
        }
        this.limit_look = None;
        match this.deferral.limit_at() {
            Some(at) if at.0 > now => self.cpu_time.softirqs.look_at_limit(cpu, at.0),
            Some(_) => self.interrupt(cpu, why::LIMIT),
            None => {}
        }
    }
}
