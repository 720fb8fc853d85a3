//! What goes wrong: stalls, isolation that changes, CPUs that come and go.

use super::context::{NotedEvent, RunAccess};
use super::event::SimEvent;
use super::events::World;
use super::tasks::{InterruptState, Program, RunLevel, SimTaskState, SoftirqState};
use super::why;

/// After how long a CPU that was in the middle of something is tried again.
const RETRY: u64 = 20_000;

impl World<'_> {
    pub(crate) fn stall_begins(&mut self, fault: u16) {
        let stall = self.plan().faults.stalls[usize::from(fault)];
        let cpu = stall.cpu.index() as u16;
        self.push_in(stall.every, SimEvent::StallBegin(fault));
        if !self.cpu(cpu).is_online || self.cpu(cpu).is_stalled {
            return;
        }
        self.note(NotedEvent::Stall, cpu, stall.blocked);
        if self.cpu(cpu).is_asleep {
            // What blocks is a task, so it wakes the CPU first.
            self.cpu_time.wake_up(cpu);
        } else {
            self.cpu_time.pause(cpu);
        }
        self.cpu_time.leave_idle(cpu);
        let this = self.cpu(cpu);
        if this.hard == InterruptState::FallingAsleep {
            this.hard = InterruptState::None;
        }
        this.is_stalled = true;
        self.tasks().renew_priority(cpu);
        self.push_in(stall.blocked, SimEvent::StallEnd(fault));
    }

    pub(crate) fn stall_ends(&mut self, fault: u16) {
        let cpu = self.plan().faults.stalls[usize::from(fault)].cpu.index() as u16;
        let this = self.cpu(cpu);
        if !this.is_online || !std::mem::replace(&mut this.is_stalled, false) {
            return;
        }
        self.note(NotedEvent::Stall, cpu, 0);
        self.tasks().renew_priority(cpu);
        self.cpu(cpu).pending |= why::WAKEUP;
        if self.cpu(cpu).hard == InterruptState::None && self.is_kernel() {
            self.begin_interrupt(cpu, 0);
        } else {
            if !self.is_kernel() {
                self.cpu_time.look_around(cpu);
            }
            self.proceed(cpu);
        }
    }

    /// One CPU of the fault's set becomes isolated, or no longer is.
    pub(crate) fn isolate(&mut self, fault: u16) {
        let flips = &self.plan().faults.isolation[usize::from(fault)];
        let cpu = flips.cpus[self.random().below(flips.cpus.len() as u64) as usize];
        self.push_in(flips.every, SimEvent::Isolate(fault));
        let mut flipped = self.flipped.clone();
        if !flipped.remove(cpu) {
            flipped.insert(cpu);
        }
        // Refused when no housekeeping CPU would be left.
        let is_done = self.timers().set_isolated(&flipped);
        let cpu = cpu.index() as u16;
        if is_done {
            self.flipped = flipped;
            self.note(NotedEvent::Isolate, cpu, 0);
        }
        self.timers().renew_masks();
        self.timers().carry_out(u16::MAX);
        if is_done {
            self.tasks().renew_priority(cpu);
            if self.timers().is_isolated(cpu) && self.tasks().has_guests(cpu) {
                self.cpu_time.pause(cpu);
                self.tasks().evict(cpu);
                self.proceed(cpu);
            }
        }
    }

    /// One CPU of the fault's set goes offline or comes back.
    pub(crate) fn plug(&mut self, fault: u16) {
        let flips = &self.plan().faults.hotplug[usize::from(fault)];
        let cpu = flips.cpus[self.random().below(flips.cpus.len() as u64) as usize].index() as u16;
        let this = self.cpu(cpu);
        let has_softirqs = !this.softirqs.is_quiet() || !this.arrived.is_empty();
        let is_busy = this.is_stalled
            || this.hard != InterruptState::None
            || !matches!(this.soft, SoftirqState::None)
            || has_softirqs;
        if this.is_online && is_busy {
            self.push_in(RETRY, SimEvent::Plug(fault));
            return;
        }
        self.push_in(flips.every, SimEvent::Plug(fault));
        if self.cpu(cpu).is_online {
            self.unplug(cpu);
            self.timers().carry_out(u16::MAX);
        } else {
            self.plug_in(cpu);
            self.timers().carry_out(u16::MAX);
            self.proceed(cpu);
        }
    }

    fn unplug(&mut self, cpu: u16) {
        // Refused when no housekeeping CPU would be left.
        if !self.timers().offline(cpu) {
            return;
        }
        self.timers().answered(cpu);
        self.note(NotedEvent::Offline, cpu, 0);
        if self.cpu(cpu).is_asleep {
            self.cpu_time.account_idle(cpu);
        } else {
            self.cpu_time.pause(cpu);
        }
        self.cpu_time.set_tick(cpu, false);
        let this = self.cpu(cpu);
        (this.is_online, this.is_asleep) = (false, false);
        (this.level, this.pending, this.last_task) = (RunLevel::None, 0, None);
        this.wakeup_generation = this.wakeup_generation.wrapping_add(1);
        let mut tasks: Vec<u32> = this.current.take().into_iter().collect();
        while let Some((_, task)) = this.realtime.pop() {
            tasks.push(task);
        }
        tasks.extend(this.queues.iter_mut().flat_map(std::mem::take));
        let contact = self.timers().contact(cpu);
        (contact.in_idle, contact.is_parked) = (false, false);
        self.timers().renew_masks();
        self.tasks().renew_priority(cpu);
        let heir = self.tasks().online_near(cpu);
        for task in tasks {
            let this = &mut self.tasks().all[task as usize];
            if matches!(this.program, Program::Ksoftirqd) {
                this.state = SimTaskState::Blocked; // nothing is left for it
                continue;
            }
            let may_move = self.tasks().all[task as usize].may_move;
            let target = if may_move { self.tasks().find_room(task, heir) } else { heir };
            self.tasks().move_task(task, target);
        }
    }

    fn plug_in(&mut self, cpu: u16) {
        self.timers().online(cpu);
        self.note(NotedEvent::Online, cpu, 0);
        let this = self.cpu(cpu);
        this.is_online = true;
        self.timers().renew_masks();
        self.tasks().renew_priority(cpu);
        self.cpu_time.set_tick(cpu, true);
        // Loops that belong here come back; others are woken here next time.
        for task in 0..self.tasks().all.len() as u32 {
            let this = self.tasks().all[task as usize];
            let at = usize::from(this.cpu);
            let waits =
                this.is_loop() && this.state == SimTaskState::Runnable && this.home == cpu && this.cpu != cpu;
            if waits && self.tasks().cpus[at].current != Some(task) {
                let queues = &mut self.tasks().cpus[at].queues;
                queues.iter_mut().for_each(|queue| queue.retain(|other| *other != task));
                self.tasks().move_task(task, cpu);
            }
        }
    }
}
