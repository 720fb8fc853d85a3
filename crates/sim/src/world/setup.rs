//! From a plan to a world at time 0: all CPUs online, nothing armed, every load about to begin.

use super::context::{RunAccess, RunContext, RunOptions};
use super::cpus::CpuLayer;
use super::device::DeviceSource;
use super::event::SimEvent;
use super::events::World;
use super::packets::SimQueue;
use super::perfetto::Exporter;
use super::softirqs::SoftirqLayer;
use super::tasks::{CyclicState, Program, TaskLayer};
use super::timers::{TimerLayer, TimerRole};
use crate::engine::SimRandom;
use crate::scenario::raw::PrecisionName;
use crate::scenario::{
    Cyclic, LoadKind, PlannedLoad, ScenarioPlan, SenderName, SoftirqDevice, TransmitQueue,
};
use quietcore_core::{CpuSet, Nanos, Precision, TimerOptions};

impl<'p> World<'p> {
    /// A world for `plan`, with its loads and faults scheduled.
    pub(crate) fn new(plan: &'p ScenarioPlan, options: RunOptions, exporter: Option<Exporter>) -> Self {
        let timers = TimerLayer::new(RunContext::new(plan, options, exporter));
        let softirqs = SoftirqLayer::new(TaskLayer::new(timers));
        let cpu_time = CpuLayer::new(softirqs);
        let mut world = Self { cpu_time, devices: Vec::new(), flipped: CpuSet::new() };
        world.begin();
        world
    }

    fn add_transmit_queue(&mut self, number: u16, load: TransmitQueue) {
        let watchdog = self.timers().add_watchdog(number, load.is_pinned);
        let sender = (load.sender == SenderName::Datagram).then_some(self.tasks().all.len() as u32);
        let cpu = load.cpu.index() as u16;
        let mut queue = SimQueue::new(load, self.plan().seed, number, watchdog);
        if sender.is_some() {
            self.tasks().add_task(Program::Sender { queue: number }, cpu);
            queue.sent_by(sender);
        }
        self.softirqs().packets.queues.push(queue);
        let _ = self.recorder().packets();
    }
}

impl World<'_> {
    fn begin(&mut self) {
        let mut starts = SimRandom::new(self.plan().seed, 2);
        for (number, load) in self.plan().loads.iter().enumerate() {
            self.add_load(number as u32, load, &mut starts);
        }
        for (number, load) in self.plan().transmit_queues.iter().enumerate() {
            self.add_transmit_queue(number as u16, load.clone());
        }
        self.cpu_time.softirqs.begin_packets();
        for cpu in 0..self.tasks().cpus.len() as u16 {
            self.timers().online(cpu);
            self.timers().carry_out(cpu);
            self.tasks().renew_priority(cpu);
        }
        for cpu in 0..self.tasks().cpus.len() as u16 {
            self.cpu_time.set_tick(cpu, true);
            self.push(Nanos(0), SimEvent::Begin(cpu));
        }
        let faults = &self.plan().faults;
        let mut push = |every: u64, event| self.cpu_time.push(Nanos(starts.below(every)), event);
        for (number, stall) in faults.stalls.iter().enumerate() {
            push(stall.every, SimEvent::StallBegin(number as u16));
        }
        for (number, flips) in faults.isolation.iter().enumerate() {
            push(flips.every, SimEvent::Isolate(number as u16));
        }
        for (number, flips) in faults.hotplug.iter().enumerate() {
            push(flips.every, SimEvent::Plug(number as u16));
        }
    }

    /// A load's tasks and timers; it begins at a random moment of its first period.
    fn add_load(&mut self, number: u32, load: &PlannedLoad, starts: &mut SimRandom) {
        let cpu = load.cpu.index() as u16;
        let coarse = TimerOptions::default();
        let first = self.tasks().all.len() as u32;
        let mut begin = 0;
        match load.kind {
            LoadKind::Periodic(periodic) => {
                let options = coarse.precision(precision(periodic.precision));
                let options = if periodic.pinned { options.pinned() } else { options };
                let options = if periodic.deferrable { options.deferrable() } else { options };
                let timer = self.timers().add_timer(options, TimerRole::Periodic(number));
                self.tasks().add_task(Program::Starter { timer }, cpu);
                begin = periodic.period;
            }
            LoadKind::Timeout { delay, run, sleep } => {
                let guard = self.timers().add_timer(coarse, TimerRole::Guard);
                let timer = self.timers().add_timer(coarse, TimerRole::Wake(first));
                self.tasks().add_task(Program::Timeout { delay, run, sleep, guard, timer }, cpu);
                begin = sleep;
            }
            LoadKind::Sleeper { run, sleep, jitter, rt, precision: wanted } => {
                let timer =
                    self.timers().add_timer(coarse.precision(precision(wanted)), TimerRole::Wake(first));
                self.tasks().add_task(Program::Sleeper { run, sleep, jitter, is_rt: rt, timer }, cpu);
                begin = sleep;
            }
            LoadKind::Driver { period, jitter, delay, work } => {
                let timer = self.timers().add_timer(coarse, TimerRole::Work(work));
                self.tasks().add_task(Program::Driver { period, jitter, delay, timer }, cpu);
                begin = period;
            }
            LoadKind::Busy { chunk, normal } => self.tasks().add_task(Program::Busy { chunk, normal }, cpu),
            LoadKind::Measure => {
                self.recorder().measures(load.cpu);
                self.tasks().add_task(Program::Measure, cpu);
            }
            LoadKind::Pair { server, request, service, timeout } => {
                let guard = self.timers().add_timer(coarse, TimerRole::Guard);
                self.recorder().requests = Some(0);
                self.tasks().add_task(Program::Client { request, timeout, server: first + 1, guard }, cpu);
                self.tasks().add_task(Program::Server { service, client: first }, server.index() as u16);
                begin = request;
            }
            LoadKind::Softirq(device) => return self.add_device(number, cpu, device),
            LoadKind::Realtime(cyclic) => return self.add_thread(cpu, cyclic, starts),
            LoadKind::Remote { target, period, slow } => {
                let timer = self.timers().add_timer(coarse, TimerRole::Remote);
                let target = target.index() as u16;
                self.tasks().add_task(Program::Remote { target, period, slow, timer }, cpu);
                begin = period;
            }
            LoadKind::Enqueue { delay } => {
                let timer = self.timers().add_timer(coarse, TimerRole::Guard);
                self.recorder().rounds = Some((0, 0));
                self.tasks().add_task(Program::Enqueue { delay, timer }, cpu);
            }
        }
        if self.tasks().all[first as usize].is_loop() {
            // Fillers are there before any CPU goes idle.
            self.tasks().enqueue(first, cpu);
            return;
        }
        // A server waits for its first request.
        self.push(Nanos(starts.below(begin + 1)), SimEvent::Start(first));
    }

    fn add_device(&mut self, load: u32, cpu: u16, device: SoftirqDevice) {
        let mut source = DeviceSource::new(device, cpu, self.plan().seed, load);
        let first = source.next_interval();
        let number = self.devices.len() as u32;
        self.push(Nanos(first), SimEvent::Device(number));
        self.devices.push(source);
        let _ = self.recorder().softirqs();
    }

    /// It sleeps until its first interval is over.
    fn add_thread(&mut self, cpu: u16, cyclic: Cyclic, starts: &mut SimRandom) {
        let (thread, task) = (self.tasks().realtime.threads.len() as u32, self.tasks().all.len());
        let due = 1 + starts.below(cyclic.interval);
        self.tasks().add_task(Program::Realtime { thread }, cpu);
        let this = &mut self.tasks().all[task];
        (this.priority, this.may_move) = (Some(cyclic.priority), !cyclic.pinned);
        self.tasks().realtime.threads.push(CyclicState::new(cyclic, task as u32, due));
        self.push(Nanos(due), SimEvent::Interval(thread));
        let _ = self.recorder().realtime();
    }
}

const fn precision(name: PrecisionName) -> Precision {
    match name {
        PrecisionName::Coarse => Precision::Coarse,
        PrecisionName::Tick => Precision::Tick,
    }
}
