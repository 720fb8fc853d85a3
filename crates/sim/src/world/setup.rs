//! From a plan to a world at time 0: all CPUs online, nothing armed, every load about to begin.

use super::cpu::{Cpu, why};
use super::realtime::{Realtime, Thread};
use super::script::Script;
use super::softirq::Source;
use super::task::{Program, Task, Worker};
use super::turn::{Name, Role, Timer};
use super::{Event, Exporter, RunOptions, World, id, lock_costs, packets};
use crate::engine::{EventQueue, Random, TraceHash};
use crate::figures::Recorder;
use crate::scenario::raw::PrecisionName;
use crate::scenario::{Cyclic, Device, Load, LoadKind, Plan, SenderName, TransmitQueue};
use quietcore_core::place::{ExactPolicy, Housekeeping, Policy};
use quietcore_core::{
    Actions, CpuSet, Machine, Nanos, Precision, SequentialLock, Settings, TickLength, TimerOptions, Turn,
};

impl<'p> World<'p> {
    /// A world for `plan`, with its loads and faults scheduled.
    pub(crate) fn new(plan: &'p Plan, options: RunOptions, exporter: Option<Exporter>) -> Self {
        let cpu_count = plan.topology.cpu_count();
        let settings = Settings {
            policy: plan.policy.policy(),
            exclusion: plan.exclusion,
            // Where timers are pushed, those of the kernel's hrtimers are, too.
            exact_policy: match plan.policy.policy() {
                Policy::Push => ExactPolicy::Kernel,
                Policy::Pull | Policy::Stay => ExactPolicy::Pull,
            },
            isolation: plan.isolation.clone(),
            tick: TickLength::new(plan.tick).expect("a plan's tick is possible"),
            ..Settings::default()
        };
        let refused = "a plan leaves housekeeping CPUs";
        let machine: Machine<SequentialLock, u32> =
            Machine::new(plan.topology.clone(), settings).expect(refused);
        let housekeeping = Housekeeping::new(plan.topology.possible(), &plan.isolation).expect(refused);
        let mut world = Self {
            plan,
            options,
            costs: plan.costs.scaled(options.factor),
            now: 0,
            end: plan.duration.0,
            queue: EventQueue::new(plan.seed),
            random: Random::new(plan.seed, 1),
            machine,
            actions: Actions::new(cpu_count as u16),
            cpus: (0..cpu_count as u16).map(|cpu| Cpu::new(Turn::new(id(cpu)), plan.defer_limit)).collect(),
            tasks: Vec::new(),
            timers: Vec::new(),
            workers: (0..cpu_count).map(|_| Worker::default()).collect(),
            sources: Vec::new(),
            realtime: Realtime::new(cpu_count as u16),
            packets: packets::Packets::new(cpu_count),
            locks: lock_costs::Locks::new(cpu_count),
            paths: lock_costs::paths(&plan.topology),
            isolated: plan.isolation.any(),
            housekeeping,
            flipped: CpuSet::new(),
            alarm: None,
            sentinel: super::sentinel::Sentinel::default(),
            kicked: 0,
            is_touched: true,
            recorder: Recorder::new(cpu_count),
            hash: TraceHash::default(),
            exporter,
            script: Script::default(),
            events: 0,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        let mut starts = Random::new(self.plan.seed, 2);
        for (number, load) in self.plan.loads.iter().enumerate() {
            self.add_load(number as u32, load, &mut starts);
        }
        for (number, load) in self.plan.transmit_queues.iter().enumerate() {
            self.add_transmit_queue(number as u16, load.clone());
        }
        self.begin_packets();
        for cpu in 0..self.cpus.len() as u16 {
            self.machine.online(id(cpu), Nanos(0), &mut self.actions).expect("it was offline");
            self.carry_out(cpu);
            self.renew_priority(cpu);
        }
        for cpu in 0..self.cpus.len() as u16 {
            self.set_tick(cpu, true);
            self.queue.push(Nanos(0), Event::Begin(cpu));
        }
        let faults = &self.plan.faults;
        let mut push = |every: u64, event| self.queue.push(Nanos(starts.below(every)), event);
        for (number, stall) in faults.stalls.iter().enumerate() {
            push(stall.every, Event::StallBegin(number as u16));
        }
        for (number, flips) in faults.isolation.iter().enumerate() {
            push(flips.every, Event::Isolate(number as u16));
        }
        for (number, flips) in faults.hotplug.iter().enumerate() {
            push(flips.every, Event::Plug(number as u16));
        }
    }

    /// A load's tasks and timers; it begins at a random moment of its first period.
    fn add_load(&mut self, number: u32, load: &Load, starts: &mut Random) {
        let cpu = load.cpu.index() as u16;
        let coarse = TimerOptions::default();
        let first = self.tasks.len() as u32;
        let mut begin = 0;
        match load.kind {
            LoadKind::Periodic(periodic) => {
                let options = coarse.precision(precision(periodic.precision));
                let options = if periodic.pinned { options.pinned() } else { options };
                let options = if periodic.deferrable { options.deferrable() } else { options };
                let timer = self.add_timer(options, Role::Periodic(number));
                self.add_task(Program::Starter { timer }, cpu);
                begin = periodic.period;
            }
            LoadKind::Timeout { delay, run, sleep } => {
                let guard = self.add_timer(coarse, Role::Guard);
                let timer = self.add_timer(coarse, Role::Wake(first));
                self.add_task(Program::Timeout { delay, run, sleep, guard, timer }, cpu);
                begin = sleep;
            }
            LoadKind::Sleeper { run, sleep, jitter, rt, precision: wanted } => {
                let timer = self.add_timer(coarse.precision(precision(wanted)), Role::Wake(first));
                self.add_task(Program::Sleeper { run, sleep, jitter, is_rt: rt, timer }, cpu);
                begin = sleep;
            }
            LoadKind::Driver { period, jitter, delay, work } => {
                let timer = self.add_timer(coarse, Role::Work(work));
                self.add_task(Program::Driver { period, jitter, delay, timer }, cpu);
                begin = period;
            }
            LoadKind::Busy { chunk, normal } => self.add_task(Program::Busy { chunk, normal }, cpu),
            LoadKind::Measure => {
                self.recorder.measures(load.cpu);
                self.add_task(Program::Measure, cpu);
            }
            LoadKind::Pair { server, request, service, timeout } => {
                let guard = self.add_timer(coarse, Role::Guard);
                self.recorder.requests = Some(0);
                self.add_task(Program::Client { request, timeout, server: first + 1, guard }, cpu);
                self.add_task(Program::Server { service, client: first }, server.index() as u16);
                begin = request;
            }
            LoadKind::Softirq(device) => return self.add_device(number, cpu, device),
            LoadKind::Realtime(cyclic) => return self.add_thread(cpu, cyclic, starts),
            LoadKind::Remote { target, period, slow } => {
                let timer = self.add_timer(coarse, Role::Remote);
                let target = target.index() as u16;
                self.add_task(Program::Remote { target, period, slow, timer }, cpu);
                begin = period;
            }
            LoadKind::Enqueue { delay } => {
                let timer = self.add_timer(coarse, Role::Guard);
                self.recorder.rounds = Some((0, 0));
                self.add_task(Program::Enqueue { delay, timer }, cpu);
            }
        }
        if self.tasks[first as usize].is_loop() {
            // Fillers are there before anybody is idle.
            self.enqueue(first, cpu);
            return;
        }
        // A server waits for its first request.
        self.queue.push(Nanos(starts.below(begin + 1)), Event::Start(first));
    }

    fn add_device(&mut self, load: u32, cpu: u16, device: Device) {
        let mut source = Source::new(device, cpu, (self.plan.seed, load));
        let first = source.next_interval();
        self.queue.push(Nanos(first), Event::Device(self.sources.len() as u32));
        self.sources.push(source);
        let _ = self.recorder.softirqs();
    }

    fn add_transmit_queue(&mut self, number: u16, load: TransmitQueue) {
        let options = TimerOptions::default();
        let options = if load.is_pinned { options.pinned() } else { options };
        let watchdog = self.timers.len() as u32;
        let name = Name::Exact(self.machine.add_exact(options, watchdog));
        self.timers.push(Timer::new(name, Role::Watchdog(number), options));
        let sender = (load.sender == SenderName::Datagram).then_some(self.tasks.len() as u32);
        let cpu = load.cpu.index() as u16;
        let mut queue = packets::Queue::new(load, (self.plan.seed, u32::from(number)), watchdog);
        if sender.is_some() {
            self.add_task(Program::Sender { queue: number }, cpu);
            queue.sent_by(sender);
        }
        self.packets.queues.push(queue);
        let _ = self.recorder.packets();
    }

    /// It sleeps until its first interval is over.
    fn add_thread(&mut self, cpu: u16, cyclic: Cyclic, starts: &mut Random) {
        let (thread, task) = (self.realtime.threads.len() as u32, self.tasks.len());
        let due = 1 + starts.below(cyclic.interval);
        self.add_task(Program::Realtime { thread }, cpu);
        let this = &mut self.tasks[task];
        (this.priority, this.may_move) = (Some(cyclic.priority), !cyclic.pinned);
        self.realtime.threads.push(Thread::new(cyclic, task as u32, due));
        self.queue.push(Nanos(due), Event::Interval(thread));
        let _ = self.recorder.realtime();
    }

    pub(super) fn add_task(&mut self, program: Program, cpu: u16) {
        self.tasks.push(Task::new(program, cpu));
    }

    pub(super) fn add_timer(&mut self, options: TimerOptions, role: Role) -> u32 {
        let number = self.timers.len() as u32;
        let name = Name::Wheel(self.machine.add_timer(options, number));
        self.timers.push(Timer::new(name, role, options));
        number
    }

    /// A load begins, or a device interrupts: its task is woken by an interrupt of its own CPU.
    pub(super) fn start(&mut self, task: u32) {
        let home = self.tasks[task as usize].home;
        let _ = self.wake(task, home);
        let target = self.tasks[task as usize].cpu;
        self.interrupt(target, why::KICK);
    }
}

const fn precision(name: PrecisionName) -> Precision {
    match name {
        PrecisionName::Coarse => Precision::Coarse,
        PrecisionName::Tick => Precision::Tick,
    }
}
