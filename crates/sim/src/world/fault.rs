//! What goes wrong: stalls, isolation that changes, CPUs that come and go.

use super::cpu::{Hard, Level, Soft, why};
use super::record::What;
use super::task::{Program, State};
use super::{Event, World, id};
use quietcore_core::Nanos;
use quietcore_core::place::Housekeeping;

/// After how long a CPU that was in the middle of something is tried again.
const RETRY: u64 = 20_000;

impl World<'_> {
    pub(super) fn stall_begins(&mut self, fault: u16) {
        let stall = self.plan.faults.stalls[usize::from(fault)];
        let cpu = stall.cpu.index() as u16;
        self.queue.push(Nanos(self.now + stall.every), Event::StallBegin(fault));
        if !self.cpu(cpu).is_online || self.cpu(cpu).is_stalled {
            return;
        }
        self.note(What::Stall, cpu, stall.blocked);
        if self.cpu(cpu).is_asleep {
            // What blocks is a task, so it wakes the CPU first.
            self.wake_up(cpu);
        } else {
            self.pause(cpu);
        }
        self.leave_idle(cpu);
        let this = self.cpu(cpu);
        if this.hard == Hard::FallingAsleep {
            this.hard = Hard::None;
        }
        this.is_stalled = true;
        self.renew_priority(cpu);
        self.queue.push(Nanos(self.now + stall.blocked), Event::StallEnd(fault));
    }

    pub(super) fn stall_ends(&mut self, fault: u16) {
        let cpu = self.plan.faults.stalls[usize::from(fault)].cpu.index() as u16;
        let this = self.cpu(cpu);
        if !this.is_online || !std::mem::replace(&mut this.is_stalled, false) {
            return;
        }
        self.note(What::Stall, cpu, 0);
        self.renew_priority(cpu);
        self.cpu(cpu).pending |= why::WAKEUP;
        if self.cpu(cpu).hard == Hard::None && self.is_kernel() {
            self.begin_interrupt(cpu, 0);
        } else {
            if !self.is_kernel() {
                self.look_around(cpu);
            }
            self.proceed(cpu);
        }
    }

    /// One CPU of the fault's set becomes isolated, or no longer is.
    pub(super) fn isolate(&mut self, fault: u16) {
        let flips = &self.plan.faults.isolation[usize::from(fault)];
        let cpu = flips.cpus[self.random.below(flips.cpus.len() as u64) as usize];
        self.queue.push(Nanos(self.now + flips.every), Event::Isolate(fault));
        let mut flipped = self.flipped.clone();
        if !flipped.remove(cpu) {
            flipped.insert(cpu);
        }
        // Refused when no housekeeping CPU would be left.
        let is_done = self.machine.set_isolated(&flipped, Nanos(self.now), &mut self.actions).is_ok();
        let cpu = cpu.index() as u16;
        if is_done {
            self.flipped = flipped;
            self.note(What::Isolate, cpu, 0);
        }
        self.renew_masks();
        self.carry_out(u16::MAX);
        if is_done {
            self.renew_priority(cpu);
            if self.is_isolated(cpu) && self.has_guests(cpu) {
                self.pause(cpu);
                self.evict(cpu);
                self.proceed(cpu);
            }
        }
    }

    /// One CPU of the fault's set goes offline or comes back.
    pub(super) fn plug(&mut self, fault: u16) {
        let flips = &self.plan.faults.hotplug[usize::from(fault)];
        let cpu = flips.cpus[self.random.below(flips.cpus.len() as u64) as usize].index() as u16;
        let this = self.cpu(cpu);
        let has_softirqs = !this.softirqs.is_quiet() || !this.arrived.is_empty();
        let is_busy =
            this.is_stalled || this.hard != Hard::None || !matches!(this.soft, Soft::None) || has_softirqs;
        if this.is_online && is_busy {
            self.queue.push(Nanos(self.now + RETRY), Event::Plug(fault));
            return;
        }
        self.queue.push(Nanos(self.now + flips.every), Event::Plug(fault));
        if self.cpu(cpu).is_online {
            self.unplug(cpu);
            self.carry_out(u16::MAX);
        } else {
            self.plug_in(cpu);
            self.carry_out(u16::MAX);
            self.proceed(cpu);
        }
    }

    fn unplug(&mut self, cpu: u16) {
        // Refused when no housekeeping CPU would be left.
        if self.machine.offline(id(cpu), Nanos(self.now), &mut self.actions).is_err() {
            return;
        }
        self.answered(cpu);
        self.note(What::Offline, cpu, 0);
        if self.cpu(cpu).is_asleep {
            self.account_idle(cpu);
        } else {
            self.pause(cpu);
        }
        self.set_tick(cpu, false);
        let this = self.cpu(cpu);
        (this.is_online, this.is_asleep, this.in_idle, this.is_parked) = (false, false, false, false);
        (this.level, this.pending, this.last_task) = (Level::None, 0, None);
        this.wakeup_generation = this.wakeup_generation.wrapping_add(1);
        let mut tasks: Vec<u32> = this.current.take().into_iter().collect();
        while let Some((_, task)) = this.realtime.pop() {
            tasks.push(task);
        }
        tasks.extend(this.queues.iter_mut().flat_map(std::mem::take));
        self.renew_masks();
        self.renew_priority(cpu);
        let heir = self.online_near(cpu);
        for task in tasks {
            let this = &mut self.tasks[task as usize];
            if matches!(this.program, Program::Ksoftirqd) {
                this.state = State::Blocked; // somebody else was faster: nothing is left for it
                continue;
            }
            let may_move = self.tasks[task as usize].may_move;
            let target = if may_move { self.find_room(task, heir) } else { heir };
            self.move_task(task, target);
        }
    }

    fn plug_in(&mut self, cpu: u16) {
        self.machine
            .online(id(cpu), Nanos(self.now), &mut self.actions)
            .expect("a CPU that went offline can come back");
        self.note(What::Online, cpu, 0);
        let this = self.cpu(cpu);
        this.is_online = true;
        self.renew_masks();
        self.renew_priority(cpu);
        self.set_tick(cpu, true);
        // Loops that belong here come back; others are woken here next time.
        for task in 0..self.tasks.len() as u32 {
            let this = self.tasks[task as usize];
            let at = usize::from(this.cpu);
            let waits =
                this.is_loop() && this.state == State::Runnable && this.home == cpu && this.cpu != cpu;
            if waits && self.cpus[at].current != Some(task) {
                self.cpus[at].queues.iter_mut().for_each(|queue| queue.retain(|other| *other != task));
                self.move_task(task, cpu);
            }
        }
    }

    /// Puts a runnable task into the queue of another CPU, and makes that notice.
    fn move_task(&mut self, task: u32, target: u16) {
        if matches!(self.tasks[task as usize].program, Program::Measure) {
            self.tasks[task as usize].away_since = None;
        }
        self.enqueue(task, target);
        if self.cpu(target).is_asleep {
            self.send_kick(target);
        }
    }

    /// Follows who is online and isolated now.
    pub(super) fn renew_masks(&mut self) {
        let isolation = self.machine.isolation();
        self.isolated = isolation.any();
        if let Ok(masks) = Housekeeping::new(&self.machine.online_cpus(), &isolation) {
            self.housekeeping = masks;
        }
    }
}
