//! In which order the CPUs changed the hierarchy: each line in turn, unless a later line shows otherwise.
//!
//! A line comes a moment after the change that it shows. So every step has an interval in which it happened,
//! in line numbers: a change between the line before it of the same CPU, of any kind, and its own line; what
//! the CPU does after a line between that and its next one; the look at a CPU whose timers were run between
//! their last expiry and the next line. Two steps may be taken in another order than that of the lines only
//! if their intervals overlap, and the lines are explained when there is an order in which each of them is
//! what the model computes (`search.rs` looks for it).
//!
//! Here: the steps in the order in which they were taken, so far as they can still be taken back.

use super::line::{HierarchyLine, LineContent};
use super::state::{CpuModel, GroupChild, GroupIndex, HierarchyState, Late, Walk};
use super::walks::Difference;
use std::collections::VecDeque;
use std::ops::Range;

/// Steps that can be taken back; a CPU that is stalled longer is not waited for.
const KEPT: usize = 1_200;
/// The end of an interval that is still open.
const OPEN: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) enum StepKind {
    /// A line, and the change that it shows.
    Line,
    /// What the CPU does after it.
    Settle,
    /// The CPU looks again at the CPU whose timers it ran; its next event may be one of these.
    Check { hidden: [u64; 2] },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OrderedStep {
    pub(super) kind: StepKind,
    pub(super) line: HierarchyLine,
    /// It happened after this line ...
    pub(super) from: u64,
    /// ... and before this one; of a [`StepKind::Settle`], the number of its end in [`StepOrder`].
    pub(super) until: u64,
    /// Groups that it may touch, a bit each; two groups can share one.
    pub(super) touches: u64,
    /// It differs, which was reported.
    pub(super) is_forced: bool,
    /// How many ticks `now` is taken to be off.
    pub(super) ticks: i64,
    /// Which of the hidden events is taken.
    pub(super) pick: u8,
}

impl OrderedStep {
    pub(super) fn is_line(&self) -> bool {
        matches!(self.kind, StepKind::Line)
    }

    pub(super) fn is_check(&self) -> bool {
        matches!(self.kind, StepKind::Check { .. })
    }
}

#[derive(Clone, Copy, Debug)]
struct Done {
    step: OrderedStep,
    mark: usize,
}

#[derive(Debug)]
pub(super) struct StepOrder {
    pub(super) state: HierarchyState,
    tick: u64,
    done: Vec<Done>,
    /// Ends of the intervals of [`StepKind::Settle`]; the first has the number `first_end`.
    ends: VecDeque<u64>,
    first_end: u64,
    /// What the last step that failed differs in.
    pub(super) difference: Option<Difference>,
    pub(super) spent: u64,
}

impl StepOrder {
    pub(super) fn new(tick: u64) -> Self {
        Self {
            state: HierarchyState::default(),
            tick,
            done: Vec::new(),
            ends: VecDeque::new(),
            first_end: 0,
            difference: None,
            spent: 0,
        }
    }

    /// The steps of a line whose CPU wrote its last line at `before`.
    pub(super) fn steps_of(&mut self, line: HierarchyLine, before: u64) -> (OrderedStep, OrderedStep) {
        let touches = self.touched_by(&line);
        let step = |kind, from, until| OrderedStep {
            kind,
            line,
            from,
            until,
            touches,
            is_forced: false,
            ticks: 0,
            pick: 0,
        };
        let end = self.first_end + self.ends.len() as u64;
        self.ends.push_back(OPEN);
        let settle = OrderedStep { touches: 0, ..step(StepKind::Settle, line.number, end) };
        (step(StepKind::Line, before, line.number), settle)
    }

    /// The look at CPU `of` after its timers were run, before `line`.
    pub(super) fn check_of(
        &self,
        line: HierarchyLine,
        of: u16,
        between: Range<u64>,
        hidden: [u64; 2],
    ) -> OrderedStep {
        let other = self.state.cpu(of).map_or(0, |cpu| bit(cpu.group));
        let touches = self.touched_by(&line) | other;
        let kind = StepKind::Check { hidden };
        let Range { start: from, end: until } = between;
        OrderedStep { kind, line, from, until, touches, is_forced: false, ticks: 0, pick: 0 }
    }

    /// The interval of the settling `step` ends here.
    pub(super) fn close(&mut self, step: u64, at: u64) {
        let index = step.checked_sub(self.first_end).and_then(|index| usize::try_from(index).ok());
        if let Some(end) = index.and_then(|index| self.ends.get_mut(index)) {
            *end = at;
        }
    }

    /// The number under which [`close`](Self::close) knows the step of [`steps_of`](Self::steps_of) before.
    pub(super) fn last_settle(&self) -> u64 {
        (self.first_end + self.ends.len() as u64).saturating_sub(1)
    }

    /// The line before which `step` happened.
    pub(super) fn until(&self, step: &OrderedStep) -> u64 {
        match step.kind {
            StepKind::Settle => {
                let index =
                    step.until.checked_sub(self.first_end).and_then(|index| usize::try_from(index).ok());
                index.and_then(|index| self.ends.get(index)).copied().unwrap_or(0)
            }
            _ => step.until,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.done.len()
    }

    /// What the step that was taken last touches.
    pub(super) fn touched_last(&self) -> u64 {
        self.done.last().map_or(0, |done| done.step.touches)
    }

    /// Takes `step` unless it differs.
    pub(super) fn take(&mut self, step: &mut OrderedStep) -> bool {
        let mark = self.state.mark();
        if self.run(step) {
            self.done.push(Done { step: *step, mark });
            return true;
        }
        self.state.undo_to(mark);
        false
    }

    /// Takes it as the model has it, whatever it says: `false` if it differs, in what is in `difference`.
    pub(super) fn force(&mut self, step: &mut OrderedStep) -> bool {
        let mark = self.state.mark();
        step.is_forced = true;
        self.run(step);
        step.is_forced = self.difference.is_some();
        self.done.push(Done { step: *step, mark });
        !step.is_forced
    }

    /// How many ticks before `now` the CPU of a `tmigr_handle_remote` read jiffies, if it stood still from
    /// then until its line: any number back to `earliest`, of which those tell that leave out an event more.
    pub(super) fn stalls(&self, line: &HierarchyLine) -> Vec<i64> {
        let LineContent::Remote { group, .. } = line.what else { return Vec::new() };
        let missed = self.state.due_above(group, line.earliest..line.now);
        missed.into_iter().map(|expires| -((line.now - expires) / self.tick + 1).cast_signed()).collect()
    }

    fn run(&mut self, step: &mut OrderedStep) -> bool {
        self.spent += 1;
        let cpu = step.line.cpu;
        match step.kind {
            StepKind::Settle => {
                let touches = self.touched_by_settling(cpu);
                if touches != 0 {
                    step.touches = touches;
                }
                self.state.settle(cpu);
                true
            }
            StepKind::Check { hidden } => {
                self.state.check_after_run(cpu, hidden[usize::from(step.pick)]);
                true
            }
            StepKind::Line => self.run_line(step),
        }
    }

    fn run_line(&mut self, step: &OrderedStep) -> bool {
        let ticks = self.tick.wrapping_mul(step.ticks.unsigned_abs());
        let now = step.line.now;
        let now = if step.ticks < 0 { now.saturating_sub(ticks) } else { now.saturating_add(ticks) };
        self.difference = self.state.take(&HierarchyLine { now, ..step.line }).err();
        let Some(difference) = self.difference else { return true };
        // What the CPU was to write was not written: it may be on any walk.
        let is_other = match difference {
            Difference::Expected(expected) => expected.name() != step.line.what.name(),
            Difference::Why(_) => true,
        };
        if step.is_forced && is_other {
            self.state.set_walk(step.line.cpu, Walk::None);
        }
        step.is_forced
    }

    /// Takes back all but the first `len` steps, and hands them out.
    pub(super) fn undo_to(&mut self, len: usize) -> Vec<OrderedStep> {
        let Some(first) = self.done.get(len) else { return Vec::new() };
        self.state.undo_to(first.mark);
        self.done.drain(len..).map(|done| done.step).collect()
    }

    /// The same without handing them out.
    pub(super) fn drop_to(&mut self, len: usize) {
        if let Some(first) = self.done.get(len) {
            self.state.undo_to(first.mark);
            self.done.truncate(len);
        }
    }

    /// How far back the last line of `cpu` is, and its last look for due events.
    pub(super) fn own_lines(&self, cpu: u16) -> Vec<usize> {
        let mut found = Vec::new();
        for (back, done) in (1..).zip(self.done.iter().rev()) {
            if done.step.line.cpu != cpu || !matches!(done.step.kind, StepKind::Line) {
                continue;
            }
            let is_visit = matches!(done.step.line.what, LineContent::Remote { level: 0, .. });
            if is_visit || found.is_empty() {
                found.push(back);
            }
            if is_visit {
                break;
            }
        }
        found
    }

    /// Steps of long ago are not taken back any more.
    pub(super) fn trim(&mut self) {
        if self.done.len() > 2 * KEPT {
            let cut = self.done.len() - KEPT;
            let mark = self.done[cut].mark;
            self.done.drain(..cut);
            self.done.iter_mut().for_each(|done| done.mark -= mark);
            self.state.forget_history(mark);
            let oldest = self.done.iter().filter(|done| matches!(done.step.kind, StepKind::Settle));
            let oldest = oldest.map(|done| done.step.until).min().unwrap_or(self.last_settle());
            while self.first_end < oldest && self.ends.len() > 1 {
                self.ends.pop_front();
                self.first_end += 1;
            }
        }
    }

    /// Nothing that was taken so far will be taken back.
    pub(super) fn forget_history(&mut self) {
        self.done = Vec::new();
        let mark = self.state.mark();
        self.state.forget_history(mark);
    }

    fn touched_by(&self, line: &HierarchyLine) -> u64 {
        let of = |identity: u64| self.state.number_of(identity).map_or(0, bit);
        match line.what {
            LineContent::Cpu(line) => {
                of(line.parent) | self.state.cpu(line.cpu).map_or(0, |cpu| bit(cpu.group))
            }
            LineContent::Word(line) => of(line.group) | of(line.parent),
            LineContent::Update(line) => of(line.group) | of(line.child),
            LineContent::Remote { group, .. } => of(group),
        }
    }

    /// What a CPU touches when it settles now; 0 for nothing.
    fn touched_by_settling(&self, cpu: u16) -> u64 {
        let Some(&CpuModel { group: own, walk, late, .. }) = self.state.cpu(cpu) else { return 0 };
        let of_cpu = |cpu: u16| self.state.cpu(cpu).map_or(0, |cpu| bit(cpu.group));
        let above = |group: GroupIndex| self.state.group(group).parent.map_or(0, |(parent, _)| bit(parent));
        let of_child = |child: GroupChild| match child {
            GroupChild::Cpu(cpu) => of_cpu(cpu),
            GroupChild::Group(group) => bit(group),
        };
        let late = match late {
            Late::Nothing => 0,
            Late::Activates => bit(own),
            Late::Ignores(group) => above(group),
            Late::Claims(cpu) => of_cpu(cpu),
        };
        let walk = match walk {
            Walk::None => 0,
            Walk::Up { group, .. } => bit(group),
            Walk::Down { group, child, .. }
            | Walk::DownUpdate { group, child, .. }
            | Walk::NewTimer { group, child, .. } => bit(group) | of_child(child),
            Walk::Remote(visit) => bit(visit.group) | above(visit.group),
            Walk::RemoteNext(visit) => bit(visit.group),
            Walk::RemoteTaken(visit, of) | Walk::RemoteRun(visit, of) => bit(visit.group) | of_cpu(of),
            Walk::RemoteUpdate { visit, of, group, child } => {
                bit(visit.group) | of_cpu(of) | bit(group) | of_child(child)
            }
            Walk::DownEnd(_) | Walk::NewTimerEnd(_) | Walk::RemoteEnd => bit(own),
        };
        if late | walk == 0 { 0 } else { late | walk | bit(own) }
    }
}

fn bit(group: GroupIndex) -> u64 {
    1 << (group % 64)
}
