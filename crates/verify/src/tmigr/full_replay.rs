//! A recording that has the hierarchy from its first group on: every line is compared.
//!
//! Lines are taken one by one. One that differs waits, with those after it, until an order of steps explains
//! all of them, or until [`WAIT_MAX`] lines have come: then it is unexplained, and the replay goes on with
//! what it expected. Memory: the steps that can be taken back and the lines that wait, both capped, and what
//! is known of each CPU and group.

use super::build::{TreeBuilder, TreeDifference};
use super::clock::{HierarchyClock, ShownJiffies, Wheels};
use super::counts::StepCounts;
use super::line::{CpuLine, HierarchyLine, LineContent, NEVER};
use super::order::{OrderedStep, StepOrder};
use super::search::Effort;
use super::walks::Difference;
use crate::base::{BaseName, TimerBaseKind};
use quietcore_trace::{Event, Header, InterruptContext, Migration, MigrationStep, Record, SoftirqStep};
use std::collections::{BTreeMap, BTreeSet};

// The numbers below bound how long an order is looked for. They decide what is found and what it costs,
// never what agrees: an order counts only if each of its lines is what the model computes. So any value is
// safe; one that is too small leaves a line unexplained, which is a mismatch and therefore seen. These
// explain every line of the recordings that `docs/reference/verify.md` lists.

/// Lines that a line waits for an explanation.
const WAIT_MAX: usize = 160;
/// At the end of the input fewer lines decide nothing.
const DECIDING: usize = 40;
/// Looking for an order is tried when so many lines wait: ever rarer, as each look costs more.
const LOOKS: [usize; 11] = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144];
/// Steps that searching may try: so many, and so many per line. Real recordings need a third of it.
const STEPS_FREE: u64 = 4_000_000;
const STEPS_PER_LINE: u64 = 80;

/// How hard to look, the cheapest first: back, choices, steps.
const EFFORTS: [(usize, u8, u64); 4] = [(10, 1, 400), (40, 1, 1_500), (40, 2, 4_000), (300, 1, 60_000)];
const LAST_EFFORT: (usize, u8, u64) = (300, 2, 100_000);
const STALL_EFFORT: (usize, u8, u64) = (150, 1, 20_000);

/// A CPU runs the global timers of another one.
#[derive(Clone, Copy, Debug)]
struct RemoteRun {
    of: u16,
    /// After the run, and before this line.
    from: u64,
    until: Option<u64>,
    /// The next event of that CPU: at the end, and just before.
    hidden: [u64; 2],
    /// That CPU is awake: what it starts from now on is no event.
    is_fixed: bool,
}

impl RemoteRun {
    /// Whether these are the timers that it runs.
    fn is_of(&self, base: BaseName) -> bool {
        base.kind == TimerBaseKind::Global && base.cpu.index() == usize::from(self.of)
    }
}

/// What is known of a CPU that wrote lines.
#[derive(Debug, Default)]
struct LineWriter {
    last: u64,
    /// The latest jiffies that any line had shown up to its last one.
    known: Option<u64>,
    /// The step whose interval ends with its next line.
    settle: Option<u64>,
    run: Option<RemoteRun>,
    /// Jiffies that it showed in a softirq.
    shown: Option<ShownJiffies>,
    /// The base of the timer that it took out last, if that is known.
    taken: Option<BaseName>,
}

#[derive(Debug)]
pub(super) struct FullReplay {
    order: StepOrder,
    builder: TreeBuilder,
    pub(super) clock: HierarchyClock,
    writers: BTreeMap<u16, LineWriter>,
    /// CPUs that run timers of others.
    runners: BTreeSet<u16>,
    /// The steps of each line that waits.
    pending: Vec<Vec<OrderedStep>>,
    /// An event that no line says was put back, and our wheels do not have the timers.
    is_blind: bool,
    /// Steps that searching tried.
    searched: u64,
    /// Levels were compared with the kernel's log.
    header: Option<Result<(), TreeDifference>>,
}

impl FullReplay {
    /// `None` when the header does not say how many CPUs there are.
    pub(super) fn new(header: &Header, tick: u64) -> Option<Self> {
        let builder = TreeBuilder::new(header)?;
        Some(Self {
            order: StepOrder::new(tick),
            header: Some(builder.check_levels(header)),
            builder,
            clock: HierarchyClock::new(tick),
            writers: BTreeMap::new(),
            runners: BTreeSet::new(),
            pending: Vec::new(),
            is_blind: false,
            searched: 0,
        })
    }

    pub(super) fn groups(&self) -> u64 {
        self.order.state.group_count() as u64
    }

    /// The walks cannot be followed any more: more CPUs joined than there can be, or timers are not recorded.
    pub(super) fn is_lost(&self) -> bool {
        self.builder.is_full() || self.is_blind
    }

    /// Takes the next line of the input, before the timers' replay does.
    pub(super) fn take(&mut self, record: &Record<'_>, wheels: &mut Wheels<'_>, counts: &mut StepCounts) {
        self.clock.settle(wheels);
        let cpu = record.cpu.index() as u16;
        let writer = self.writers.entry(cpu).or_default();
        let before = std::mem::replace(&mut writer.last, record.line);
        if let Some(settle) = writer.settle.take() {
            self.order.close(settle, record.line);
        }
        match (&record.event, HierarchyLine::of(record)) {
            (_, Some(mut line)) => {
                counts.events += 1;
                self.observe(&mut line, record.at.0, wheels);
                self.take_line(line, before, record.at.0, wheels);
                if !self.pending.is_empty() {
                    self.explain(counts);
                }
            }
            (Event::Migration(migration), None) => self.build(record.line, migration, counts),
            _ => self.take_other(cpu, record, wheels),
        }
        self.writers.entry(cpu).or_default().known = self.clock.shown();
    }

    fn build(&mut self, line: u64, migration: &Migration, counts: &mut StepCounts) {
        let levels = self.header.take().unwrap_or(Ok(()));
        for built in [levels, self.builder.take(migration, &mut self.order.state)] {
            if let Err(difference) = built {
                counts.tree_mismatch(line, migration, difference);
            }
        }
        self.order.forget_history();
    }

    /// Other events: they show jiffies, and how long a CPU runs timers of another one.
    fn take_other(&mut self, cpu: u16, record: &Record<'_>, wheels: &mut Wheels<'_>) {
        let Some(writer) = self.writers.get_mut(&cpu) else { return };
        if let Some(run) = writer.run.as_mut().filter(|run| run.until.is_none()) {
            let is_hard = matches!(
                record.context,
                Some(InterruptContext::Interrupt | InterruptContext::InterruptInSoftirq)
            );
            let is_over = match record.event {
                Event::Softirq { step: SoftirqStep::Entry | SoftirqStep::Exit, .. } => !is_hard,
                Event::TimerExpireEntry { .. } => writer.taken.is_some_and(|base| !run.is_of(base)),
                _ => !is_hard && record.context != Some(InterruptContext::Softirq),
            };
            let next = self.clock.published(wheels, run.of, record.at.0);
            if !run.is_fixed {
                run.hidden = [next, if is_over { run.hidden[0] } else { next }];
            }
            if is_over {
                run.until = Some(record.line);
            } else if matches!(record.event, Event::TimerExpireEntry { .. }) && writer.taken.is_some() {
                run.from = record.line;
            }
        }
        let jiffies = match record.event {
            Event::TimerCancel { timer } => {
                writer.taken = wheels.base_of(timer);
                return;
            }
            Event::TimerStart(start) => start.expires.wrapping_sub(start.timeout.cast_unsigned()),
            Event::TimerExpireEntry { now, .. } => now,
            _ => return,
        };
        let shown = ShownJiffies { jiffies, at: record.at.0 };
        writer.shown = (record.context == Some(InterruptContext::Softirq)).then_some(shown);
        self.clock.show(shown);
    }

    /// Takes the steps of a line, or leaves it in `pending` when it differs.
    fn take_line(&mut self, line: HierarchyLine, before: u64, at: u64, wheels: &mut Wheels<'_>) {
        let (step, settle) = self.order.steps_of(line, before);
        let Some(writer) = self.writers.get_mut(&line.cpu) else { return };
        writer.settle = Some(self.order.last_settle());
        let run = writer.run.take();
        self.runners.remove(&line.cpu);
        let check = run.map(|run| {
            let interval = run.from..run.until.unwrap_or(line.number);
            self.order.check_of(line, run.of, interval, run.hidden)
        });
        if let LineContent::Cpu(CpuLine { step: MigrationStep::HandleRemote, cpu: of, .. }) = line.what {
            let state = &self.order.state;
            if let Some(sleeper) = state.cpu(of) {
                let expires = state.event_of(sleeper).expires;
                if expires != NEVER {
                    self.clock.handled(expires, at);
                }
                self.is_blind |= state.group(sleeper.group).parent.is_none() && !self.clock.is_trusted();
            }
            let next = self.clock.published(wheels, of, at);
            let hidden = [next; 2];
            writer.run = Some(RemoteRun { of, from: line.number, until: None, hidden, is_fixed: false });
            self.runners.insert(line.cpu);
        }
        let mut steps: Vec<OrderedStep> = check.into_iter().chain([step, settle]).collect();
        let len = self.order.len();
        if self.pending.is_empty() && steps.iter_mut().all(|step| self.order.take(step)) {
            self.order.trim();
            return;
        }
        if self.pending.is_empty() {
            self.order.drop_to(len);
        }
        self.pending.push(steps);
    }

    /// What the line tells about wheels and clocks.
    fn observe(&mut self, line: &mut HierarchyLine, at: u64, wheels: &mut Wheels<'_>) {
        use MigrationStep::{Active, Idle, NewTimerIdle};
        let number = line.number;
        if let LineContent::Cpu(CpuLine { step: Active, cpu, .. }) = line.what {
            for runner in &self.runners {
                let run = self.writers.get_mut(runner).and_then(|writer| writer.run.as_mut());
                let run = run.filter(|run| run.of == cpu && run.until.is_none() && !run.is_fixed);
                if let Some(run) = run {
                    run.hidden = [self.clock.published(wheels, cpu, at), run.hidden[0]];
                    run.is_fixed = true;
                }
            }
        }
        let writer = self.writers.get_mut(&line.cpu);
        let shown = writer.as_ref().and_then(|writer| writer.shown);
        let known = writer.as_ref().and_then(|writer| writer.known);
        if let Some(run) = writer.and_then(|writer| writer.run.as_mut()).filter(|run| run.until.is_none()) {
            run.until = Some(number);
            if !run.is_fixed {
                run.hidden = [self.clock.published(wheels, run.of, at), run.hidden[0]];
            }
        }
        match line.what {
            LineContent::Word(word) if !word.is_active => {
                line.publishes = self.clock.published(wheels, line.cpu, at) != NEVER;
            }
            LineContent::Remote { .. } => {
                line.now = self.clock.now(at, shown);
                line.earliest = self.clock.earliest(known, line.now);
            }
            LineContent::Cpu(CpuLine { step: Idle | NewTimerIdle, cpu, next, .. }) => {
                self.clock.compare(wheels, cpu, next);
            }
            _ => {}
        }
    }

    /// Looks for an order that explains the lines that wait.
    fn explain(&mut self, counts: &mut StepCounts) {
        while !self.pending.is_empty() {
            let waiting = self.pending.len();
            let is_last = waiting >= WAIT_MAX;
            if self.searched > STEPS_FREE + STEPS_PER_LINE * counts.events {
                counts.is_exhausted = true;
            } else if (is_last || LOOKS.contains(&waiting)) && self.look(waiting, is_last) {
                counts.order_open += 1;
                counts.waited_max = counts.waited_max.max(waiting as u64);
                self.pending.clear();
                self.order.trim();
                return;
            }
            if !is_last && !counts.is_exhausted {
                return;
            }
            self.give_up(counts);
            if counts.is_over() || self.is_blind {
                counts.events -= self.pending.len() as u64;
                self.pending.clear();
                return;
            }
            self.go_on();
        }
    }

    fn look(&mut self, waiting: usize, is_last: bool) -> bool {
        let spent = self.order.spent;
        let is_found = self.look_harder(waiting, is_last);
        self.searched += self.order.spent - spent;
        is_found
    }

    fn look_harder(&mut self, waiting: usize, is_last: bool) -> bool {
        let more: Vec<OrderedStep> = self.pending.iter().flatten().copied().collect();
        let Some(first) = more.iter().find(|step| step.is_line()).copied() else {
            return false;
        };
        let efforts: &[(usize, u8, u64)] = if is_last { &[LAST_EFFORT] } else { &EFFORTS };
        for &(back, choices, steps) in efforts {
            let near = if back < 300 { u64::MAX } else { first.touches };
            if self.order.explain(&more, Effort { back, choices, steps, only: None, near }) {
                return true;
            }
        }
        // A CPU can stand still after it ran timers of another one; then only its own steps come earlier.
        let (back, choices, steps) = STALL_EFFORT;
        for runner in more.iter().filter(|step| step.is_check()).map(|step| Some(step.line.cpu)) {
            if self.order.explain(&more, Effort { back, choices, steps, only: runner, near: u64::MAX }) {
                return true;
            }
        }
        let own = if waiting == 1 { self.order.own_lines(first.line.cpu) } else { Vec::new() };
        own.into_iter().any(|back| {
            let steps = 60 * (back + more.len()) as u64;
            let only = Some(first.line.cpu);
            self.order.explain(&more, Effort { back, choices: 1, steps, only, near: u64::MAX })
        })
    }

    /// The first line that waits has no explanation.
    fn give_up(&mut self, counts: &mut StepCounts) {
        if self.pending.is_empty() {
            return;
        }
        for mut step in self.pending.remove(0) {
            if !step.is_line() {
                let _ = self.order.take(&mut step);
            } else if !self.order.force(&mut step) {
                if self.is_untimed(&step.line) {
                    // Nothing is known of the time: which events are due cannot be said.
                    self.is_blind = true;
                    counts.events -= 1 + self.pending.len() as u64;
                    self.pending.clear();
                    return;
                }
                counts.unexplained(&step.line, self.order.difference);
            }
        }
    }

    /// Without timers only events that were handled tell the time; whether one is due may be wrong then.
    fn is_untimed(&self, line: &HierarchyLine) -> bool {
        let handles = |what: &LineContent| {
            matches!(what, LineContent::Cpu(CpuLine { step: MigrationStep::HandleRemote, .. }))
        };
        let is_expected = match &self.order.difference {
            Some(Difference::Expected(expected)) => handles(expected),
            _ => false,
        };
        !self.clock.is_trusted() && (handles(&line.what) || is_expected)
    }

    /// Lines that waited for another one go on as far as they agree.
    fn go_on(&mut self) {
        while let Some(steps) = self.pending.first_mut() {
            let len = self.order.len();
            if !steps.iter_mut().all(|step| self.order.take(step)) {
                self.order.drop_to(len);
                return;
            }
            self.pending.remove(0);
        }
    }

    /// The end of the input.
    pub(super) fn finish(&mut self, counts: &mut StepCounts) {
        if self.pending.len() < DECIDING {
            counts.order_open += self.pending.len() as u64;
            self.pending.clear();
            return;
        }
        while !self.pending.is_empty() && !counts.is_over() && !self.is_blind {
            self.give_up(counts);
            self.go_on();
        }
        counts.events -= self.pending.len() as u64;
        self.pending.clear();
    }
}
