//! The world: virtual CPUs that run the core's machine, one event at a time.
//!
//! An event is a moment at which something changes on one CPU: a segment of its time ends, its tick or its
//! alarm goes off, somebody kicks it, a fault begins. Between events time jumps. A CPU whose segment ends
//! before anything else happens goes straight on, without a turn through the queue: the result is the same.
//!
//! Where what is decided: `cpu.rs` the segments of a CPU; `step.rs` what ends with one; `turn.rs` timers;
//! `softirq.rs` other softirqs; `ksoftirqd.rs`; `realtime.rs` real-time tasks; `raise.rs` TIMER on
//! isolated CPUs; `packets/` transmit queues; `task.rs` what tasks do; `idle.rs` sleeping and waking;
//! `act.rs` kicks and alarms; `fault.rs` what goes wrong; `lock_costs.rs` locks and walks, and what they cost;
//! `sentinel.rs` nobody who turns. Invariants: the core decides where timers run, this world only when; every
//! cost is one of the plan's. Absent: memory, caches, frequencies; ticks that stop on busy `nohz_full` CPUs.

mod act;
mod cpu;
mod fault;
mod idle;
mod ksoftirqd;
mod lock_costs;
mod packets;
mod perfetto;
mod raise;
mod realtime;
mod record;
mod script;
mod sentinel;
mod setup;
mod softirq;
mod step;
mod task;
mod turn;

pub(crate) use perfetto::Exporter;

use crate::engine::{EventQueue, Random, TraceHash};
use crate::figures::{Figures, Recorder};
use crate::scenario::{Costs, Factor, Plan};
use cpu::Cpu;
use lock_costs::{Locks, Path};
use quietcore_core::place::Housekeeping;
use quietcore_core::{Actions, CpuId, CpuSet, Machine, Nanos, SequentialLock};
use std::io;
use task::Task;
use turn::Timer;

/// So many CPUs are looked at after every event, when invariants are checked.
const CHECKED_ALWAYS: usize = 16;

/// Events between two looks at whether to go on.
const EVENTS_PER_TURN: u64 = 100_000;

/// What happens. Small, because the queue copies it around; numbers are those of CPUs, tasks or faults.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The CPU turns for the first time.
    Begin(u16),
    /// What the CPU is doing ends, unless it was interrupted since (other generation).
    Segment(u16, u32),
    Tick(u16, u32),
    /// The alarm that an idle CPU set for itself.
    Wakeup(u16, u32),
    Kick(u16),
    /// A load begins.
    Start(u32),
    /// The alarm that the machine asked the world for.
    Alarm,
    /// Lanes: a look whether anybody turns.
    Sentinel,
    StallBegin(u16),
    StallEnd(u16),
    Isolate(u16),
    Plug(u16),
    /// This device interrupts.
    Device(u32),
    /// The interval of this real-time thread is over.
    Interval(u32),
    /// Something may have been held back long enough.
    DeferLimit(u16),
    /// Somebody armed a timer on this CPU.
    Call(u16),
    /// There is something for this transmit queue.
    Frames(u16),
    /// A packet of this queue was dropped a while ago.
    SendAgain(u16),
    /// The moment of this timer, which is an exact one.
    Watchdog(u32),
}

/// How to run a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOptions {
    pub(crate) factor: Factor,
    /// Compute the hash of the run.
    pub(crate) hash: bool,
    /// Check the machine's invariants after every event.
    pub(crate) check: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { factor: Factor::One, hash: true, check: false }
    }
}

/// Told how far a run is, in simulated time; says whether to go on.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(Nanos, u64) -> bool;

/// One run of a plan. See the module.
pub(crate) struct World<'p> {
    plan: &'p Plan,
    options: RunOptions,
    costs: Costs,
    now: u64,
    end: u64,
    queue: EventQueue<Event>,
    /// For faults and jitter.
    random: Random,
    machine: Machine<SequentialLock, u32>,
    actions: Actions,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    timers: Vec<Timer>,
    /// By CPU: its worker's task and the lengths of what waits for it.
    workers: Vec<task::Worker>,
    /// Devices that raise softirqs.
    sources: Vec<softirq::Source>,
    realtime: realtime::Realtime,
    packets: packets::Packets,
    locks: Locks,
    /// By CPU: its way up the hierarchy.
    paths: Vec<Path>,
    /// Isolated at this moment, in any way.
    isolated: CpuSet,
    /// Who may be given timers and tasks.
    housekeeping: Housekeeping,
    /// Isolated at run time, by a fault.
    flipped: CpuSet,
    /// When the alarm is that the machine asked for, if it is ahead.
    alarm: Option<Nanos>,
    sentinel: sentinel::Sentinel,
    /// CPUs that were kicked and have not answered yet.
    kicked: u32,
    /// The machine may have changed since the last check.
    is_touched: bool,
    recorder: Recorder,
    hash: TraceHash,
    exporter: Option<Exporter>,
    script: script::Script,
    events: u64,
}

impl World<'_> {
    /// Runs to the end; `None` when `progress` said to stop.
    pub(crate) fn run(mut self, progress: Progress<'_>) -> io::Result<Option<Figures>> {
        if !self.run_events(progress) {
            return Ok(None);
        }
        self.finish().map(Some)
    }

    /// To the end, unless `progress` says to stop; says whether it was reached.
    fn run_events(&mut self, progress: Progress<'_>) -> bool {
        while self.queue.next_at().is_some_and(|next| next.0 <= self.end) {
            let Some((at, event)) = self.queue.pop() else { break };
            self.now = at.0;
            self.events += 1;
            self.handle(event);
            if self.options.check {
                self.check();
            }
            if self.events.is_multiple_of(EVENTS_PER_TURN) && !progress(Nanos(self.now), self.events) {
                return false;
            }
        }
        self.now = self.end;
        true
    }

    /// What goes straight on (`proceed`) moves the time, so it comes last in each of these.
    fn handle(&mut self, event: Event) {
        match event {
            Event::Begin(cpu) => self.proceed(cpu),
            Event::Segment(cpu, generation) => self.segment_ends(cpu, generation),
            Event::Tick(cpu, generation) => self.tick(cpu, generation),
            Event::Wakeup(cpu, generation) => self.wakeup(cpu, generation),
            Event::Kick(cpu) => self.kicked(cpu),
            Event::Start(task) => self.start(task),
            Event::Alarm => self.alarm(),
            Event::Sentinel => self.sentinel_looks(),
            Event::StallBegin(fault) => self.stall_begins(fault),
            Event::StallEnd(fault) => self.stall_ends(fault),
            Event::Isolate(fault) => self.isolate(fault),
            Event::Plug(fault) => self.plug(fault),
            Event::Device(source) => self.device(source),
            Event::Interval(thread) => self.interval_ends(thread),
            Event::DeferLimit(cpu) => self.defer_limit(cpu),
            Event::Call(cpu) => self.called(cpu),
            Event::Frames(queue) => self.frames_arrive(queue),
            Event::SendAgain(queue) => self.send_again(queue),
            Event::Watchdog(timer) => self.watchdog_due(timer),
        }
    }

    /// The invariants of the machine, after every event that could change it. They hold as soon as its
    /// actions are carried out: when no kick is on its way.
    fn check(&mut self) {
        assert!(self.actions.is_empty(), "an action was not carried out");
        // On large machines not after every event: it looks at all CPUs.
        let is_due = self.is_touched || self.cpus.len() <= CHECKED_ALWAYS;
        let has_urgent = !self.sources.is_empty() || !self.realtime.threads.is_empty();
        if is_due && (has_urgent || !self.packets.is_empty()) {
            self.check_urgent();
            self.check_packets();
        }
        if self.kicked == 0 && std::mem::take(&mut self.is_touched) {
            self.recorder.figures.checks += 1;
            self.machine.check();
        }
    }

    fn is_isolated(&self, cpu: u16) -> bool {
        self.isolated.contains(id(cpu))
    }

    fn finish(mut self) -> io::Result<Figures> {
        for cpu in 0..self.cpus.len() as u16 {
            self.account_idle(cpu);
        }
        if let Some(exporter) = self.exporter.take() {
            exporter.finish()?;
        }
        self.finish_softirqs();
        self.finish_packets();
        self.finish_realtime();
        self.recorder.figures.lost = self.lost();
        self.recorder.figures.events = self.events;
        self.recorder.figures.hash = self.hash.value();
        Ok(self.recorder.finish(self.end, &self.plan.isolation.any()))
    }
}

/// The number of a CPU as the core's type; numbers here are always of CPUs that exist.
fn id(cpu: u16) -> CpuId {
    CpuId::new(u64::from(cpu)).expect("CPUs of a plan are below the limit")
}
