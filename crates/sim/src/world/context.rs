//! What every layer of the world has at hand: the time, the plan and its costs, the queue of events, figures.
//!
//! Invariants: time never goes back; the hash of a run is fed here and nowhere else.

use super::event::SimEvent;
use super::perfetto::Exporter;
use crate::engine::{EventQueue, SimRandom, TraceHash};
use crate::figures::{RaiseFigures, Recorder, RunFigures};
use crate::scenario::names::Preempt;
use crate::scenario::{Cost, Costs, Factor, IdleState, LoadKind, Periodic, ScenarioPlan};
use quietcore_core::Nanos;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOptions {
    pub(crate) factor: Factor,
    pub(crate) hash: bool,
    /// Check the machine's invariants after every event.
    pub(crate) check: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { factor: Factor::One, hash: true, check: false }
    }
}

/// What the machine saw or did. The numbers are part of every hash: never change one, only add.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum NotedEvent {
    Tick = 1,
    Stay = 2,
    Sleep = 3,
    Wakeup = 4,
    Awake = 5,
    Kick = 6,
    Alarm = 7,
    Arm = 8,
    Cancel = 9,
    Turn = 10,
    Expire = 11,
    Finish = 12,
    Marked = 13,
    Stall = 14,
    Isolate = 15,
    Online = 16,
    Offline = 17,
    /// A device raised a vector.
    Raise = 18,
    /// A handler begins.
    Handler = 19,
    /// A real-time thread runs.
    Thread = 20,
    Called = 21,
    /// A packet leaves its queue.
    Packet = 22,
    /// A queue's watchdog has gone off.
    Watchdog = 23,
    /// A CPU chose an idle state; only where there are any.
    Depth = 24,
}

/// What a run has, whatever it simulates.
pub(crate) struct RunContext<'p> {
    pub(crate) plan: &'p ScenarioPlan,
    pub(crate) options: RunOptions,
    pub(crate) costs: Costs,
    /// Those of the plan, at the same scale.
    pub(crate) idle_states: Vec<IdleState>,
    pub(crate) now: u64,
    pub(crate) end: u64,
    pub(crate) queue: EventQueue<SimEvent>,
    /// For faults and jitter.
    pub(crate) random: SimRandom,
    pub(crate) recorder: Recorder,
    pub(crate) exporter: Option<Exporter>,
    /// The machine may have changed since the last check.
    pub(crate) is_touched: bool,
    /// Events handled so far.
    pub(crate) events: u64,
    hash: TraceHash,
}

impl<'p> RunContext<'p> {
    pub(crate) fn new(plan: &'p ScenarioPlan, options: RunOptions, exporter: Option<Exporter>) -> Self {
        let mut recorder = Recorder::new(plan.topology.cpu_count());
        let scaled = |state: &IdleState| {
            recorder.idle.add_state(&state.name, state.residency, plan.topology.cpu_count());
            let times = |ns| options.factor.times(ns);
            IdleState { entry: times(state.entry), exit: times(state.exit), ..state.clone() }
        };
        let idle_states = plan.idle_states.iter().map(scaled).collect();
        Self {
            plan,
            options,
            costs: plan.costs.scaled(options.factor),
            idle_states,
            now: 0,
            end: plan.duration.0,
            queue: EventQueue::new(plan.seed),
            random: SimRandom::new(plan.seed, 1),
            recorder,
            exporter,
            is_touched: true,
            events: 0,
            hash: TraceHash::default(),
        }
    }

    /// Feeds the hash: when, what, on which CPU, and one number more.
    #[inline]
    pub(crate) fn note(&mut self, what: NotedEvent, cpu: u16, value: u64) {
        // A tick only looks; the others have nothing to do with timers.
        let is_apart = matches!(
            what,
            NotedEvent::Tick
                | NotedEvent::Raise
                | NotedEvent::Handler
                | NotedEvent::Thread
                | NotedEvent::Called
                | NotedEvent::Packet
                | NotedEvent::Watchdog
                | NotedEvent::Depth
        );
        self.is_touched |= !is_apart;
        if self.options.hash {
            self.hash.feed(self.now);
            self.hash.feed((what as u64) << 16 | u64::from(cpu));
            self.hash.feed(value);
        }
    }

    /// The figures of the run, which is over; `lost` timers are overdue.
    pub(crate) fn finish(mut self, lost: u64) -> RunFigures {
        let figures = &mut self.recorder.figures;
        (figures.lost, figures.events, figures.hash) = (lost, self.events, self.hash.value());
        self.recorder.finish(self.end, &self.plan.isolation.any())
    }

    /// Shows the exporter something, if there is one.
    pub(crate) fn export(&mut self, show: impl FnOnce(&mut Exporter)) {
        if let Some(exporter) = &mut self.exporter {
            exporter.set_time(self.now, self.plan.tick.0);
            show(exporter);
        }
    }
}

/// A layer of the world: it belongs to a run, and reaches that run's context.
pub(crate) trait RunAccess<'p> {
    fn run(&self) -> &RunContext<'p>;
    fn run_mut(&mut self) -> &mut RunContext<'p>;

    fn now(&self) -> u64 {
        self.run().now
    }

    fn plan(&self) -> &'p ScenarioPlan {
        self.run().plan
    }

    fn cost(&self, cost: Cost) -> u64 {
        self.run().costs.of(cost)
    }

    fn random<'a>(&'a mut self) -> &'a mut SimRandom
    where
        'p: 'a,
    {
        &mut self.run_mut().random
    }

    fn recorder<'a>(&'a mut self) -> &'a mut Recorder
    where
        'p: 'a,
    {
        &mut self.run_mut().recorder
    }

    /// `event` happens at `at`.
    fn push(&mut self, at: Nanos, event: SimEvent) {
        self.run_mut().queue.push(at, event);
    }

    /// `event` happens so much later than now.
    fn push_in(&mut self, span: u64, event: SimEvent) {
        let run = self.run_mut();
        run.queue.push(Nanos(run.now + span), event);
    }

    fn note(&mut self, what: NotedEvent, cpu: u16, value: u64) {
        self.run_mut().note(what, cpu, value);
    }

    fn export(&mut self, show: impl FnOnce(&mut Exporter)) {
        self.run_mut().export(show);
    }

    /// Whether CPUs are those of a kernel, which interrupts tasks; else they are lanes.
    fn is_kernel(&self) -> bool {
        self.plan().preempt == Preempt::Tick
    }

    fn raise_figures<'a>(&'a mut self) -> &'a mut RaiseFigures
    where
        'p: 'a,
    {
        self.recorder().figures.timer_raise.get_or_insert_default()
    }

    /// The timer of this load, which is one.
    fn periodic(&self, load: u32) -> Periodic {
        match self.plan().loads[load as usize].kind {
            LoadKind::Periodic(periodic) => periodic,
            ref other => panic!("load {load} is no timer but {other:?}"),
        }
    }

    /// The next moment at which the tick of `cpu` goes off.
    fn next_edge(&self, cpu: u16) -> u64 {
        self.edge_after(cpu, self.now())
    }

    /// The first such moment after `at`.
    fn edge_after(&self, cpu: u16, at: u64) -> u64 {
        let tick = self.plan().tick.0;
        let cpu_count = self.plan().topology.cpu_count() as u64;
        let phase = if self.plan().skew { tick * u64::from(cpu) / cpu_count } else { 0 };
        let since = at.saturating_sub(phase);
        if at < phase { phase } else { phase + (since / tick + 1) * tick }
    }
}
