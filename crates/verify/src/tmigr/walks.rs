//! The way up, the way down and a new first timer: what a CPU must write next, and what it changes.
//!
//! [`HierarchyState::take`] holds a line against what the CPU's walk says. A line comes after the change
//! that it shows: a word is that after the CPU's own transition. What the CPU does after a line without
//! writing another one is `settle`d: flags, and steps that find nothing to do.
//!
//! Source: the recordings, which this reproduces line by line, and the rules in docs/reference/verify.md.

use super::line::{CpuLine, HierarchyLine, LineContent, NEVER, NO_MIGRATOR, WordLine};
use super::queue::Behalf;
use super::state::{
    Carried, CpuModel, GroupChild, GroupIndex, GroupPlace, HierarchyState, Late, QueuedEvent, Visit, Walk,
};
use quietcore_core::tmigr::ChildMask;
use quietcore_trace::MigrationStep;

/// Steps between two lines of a CPU: more than a walk over all levels has.
const STEPS_MAX: usize = 64;

/// Why a line is not what the walk says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Difference {
    Expected(LineContent),
    /// It must not be written now.
    Why(&'static str),
}

/// What came of holding a line against one step of a walk.
pub(super) enum LineVerdict {
    Fits,
    /// The step wrote no line: the line is of a later one.
    Again,
    Differs(Difference),
}

/// `line` against what was expected.
pub(super) fn compared(expected: LineContent, line: &HierarchyLine) -> LineVerdict {
    if expected == line.what {
        LineVerdict::Fits
    } else {
        LineVerdict::Differs(Difference::Expected(expected))
    }
}

/// The same, unless something forbids the line.
fn compared_if(
    is_allowed: bool,
    why: &'static str,
    expected: LineContent,
    line: &HierarchyLine,
) -> LineVerdict {
    if is_allowed { compared(expected, line) } else { LineVerdict::Differs(Difference::Why(why)) }
}

impl HierarchyState {
    /// Takes a line of its CPU. The changes are made even when it differs.
    ///
    /// # Errors
    /// What was expected instead.
    pub(super) fn take(&mut self, line: &HierarchyLine) -> Result<(), Difference> {
        self.settle(line.cpu);
        for _ in 0..STEPS_MAX {
            match self.step(line) {
                LineVerdict::Fits => return Ok(()),
                LineVerdict::Differs(difference) => return Err(difference),
                LineVerdict::Again => self.settle(line.cpu),
            }
        }
        Err(Difference::Why("the walk does not end"))
    }

    fn step(&mut self, line: &HierarchyLine) -> LineVerdict {
        let Some(walk) = self.cpu(line.cpu).map(|cpu| cpu.walk) else {
            return self
                .take_growth(line)
                .unwrap_or(LineVerdict::Differs(Difference::Why("the CPU is in no group")));
        };
        match walk {
            Walk::None => self.begin(line),
            Walk::Up { group, mask } => {
                self.set_late(line.cpu, Late::Ignores(group));
                self.go_up(line, group, mask)
            }
            Walk::Down { group, child, carried } => {
                let is_idle = self.deactivate(group, child);
                self.set_walk(line.cpu, Walk::DownUpdate { group, child, carried, is_idle });
                let mask = self.mask_of(child);
                compared(self.word_line(false, group, mask), line)
            }
            Walk::DownUpdate { group, child, carried, is_idle } => {
                self.down_update(line, GroupPlace { group, child }, carried, is_idle)
            }
            Walk::DownEnd(carried) => self.down_end(line, carried),
            Walk::NewTimer { group, child, carried } => self.new_timer(line, group, child, carried),
            Walk::NewTimerEnd(Carried { next, first }) => {
                self.set_walk(line.cpu, Walk::None);
                let expected = self.cpu_line(line.cpu, MigrationStep::NewTimerIdle, first, next);
                self.set_wakeup(line.cpu, first);
                compared(expected, line)
            }
            _ => self.remote_step(line, walk),
        }
    }

    /// What the CPU does after its last line without writing another one.
    pub(super) fn settle(&mut self, cpu: u16) {
        self.settle_late(cpu);
        for _ in 0..STEPS_MAX {
            let Some(walk) = self.cpu(cpu).map(|cpu| cpu.walk) else { return };
            let next = match walk {
                Walk::DownUpdate { group, child: child @ GroupChild::Group(_), carried, is_idle } => {
                    if !self.is_silent(group, child, Behalf::Own) {
                        return;
                    }
                    self.after_down(group, carried, is_idle)
                }
                Walk::NewTimer { group, child: child @ GroupChild::Group(_), carried } => {
                    if !self.is_silent(group, child, Behalf::Own) {
                        return;
                    }
                    Walk::NewTimerEnd(carried)
                }
                Walk::RemoteUpdate { visit, of, group, child: child @ GroupChild::Group(_) } => {
                    if !self.is_silent(group, child, Behalf::Remote) {
                        return;
                    }
                    self.release(of);
                    Walk::Remote(visit)
                }
                Walk::Remote(visit) => self.visit(cpu, visit),
                Walk::RemoteEnd => {
                    let first = self.cpu(cpu).map_or(NEVER, |cpu| cpu.first);
                    self.set_wakeup(cpu, first);
                    Walk::None
                }
                _ => return,
            };
            self.set_walk(cpu, next);
        }
    }

    fn settle_late(&mut self, cpu: u16) {
        match self.cpu(cpu).map_or(Late::Nothing, |cpu| cpu.late) {
            Late::Nothing => return,
            Late::Activates => {
                self.set_ignored(cpu, true);
                if let Some(cpu) = self.cpu_mut(cpu) {
                    (cpu.is_idle, cpu.wakeup) = (false, NEVER);
                }
            }
            Late::Ignores(group) => {
                if let Some((parent, mask)) = self.group(group).parent {
                    self.group_mut(parent).events[usize::from(mask.slot())].is_ignored = true;
                }
            }
            Late::Claims(other) => {
                if let Some(other) = self.cpu_mut(other) {
                    (other.is_remote, other.wakeup) = (true, NEVER);
                }
            }
        }
        self.set_late(cpu, Late::Nothing);
    }

    /// Whether an update would write no line now; then it is done.
    fn is_silent(&mut self, group: GroupIndex, child: GroupChild, behalf: Behalf) -> bool {
        let mark = self.mark();
        let is_silent = self.update(group, child, NEVER, behalf).line.is_none();
        if !is_silent {
            self.undo_to(mark);
        }
        is_silent
    }

    /// A CPU that does nothing in the hierarchy writes a line.
    fn begin(&mut self, line: &HierarchyLine) -> LineVerdict {
        let Some(&cpu) = self.cpu(line.cpu) else { return LineVerdict::Again };
        match line.what {
            LineContent::Cpu(CpuLine { step, next, .. }) => self.begin_cpu(line, &cpu, step, next),
            LineContent::Word(WordLine { is_active: true, .. }) => self
                .take_growth(line)
                .unwrap_or(LineVerdict::Differs(Difference::Why("no tmigr_cpu_active came before it"))),
            LineContent::Word(_) => {
                let child = GroupChild::Cpu(line.cpu);
                let is_idle = self.deactivate(cpu.group, child);
                if line.publishes {
                    // Before the first word: a racing update of the group already counts the old event.
                    self.set_ignored(line.cpu, false);
                }
                let carried = Carried { next: NEVER, first: NEVER };
                self.set_walk(line.cpu, Walk::DownUpdate { group: cpu.group, child, carried, is_idle });
                let expected = self.word_line(false, cpu.group, Some(cpu.mask));
                compared_if(
                    cpu.is_available && !cpu.is_idle,
                    "the CPU is idle or not available",
                    expected,
                    line,
                )
            }
            LineContent::Update(_) => LineVerdict::Differs(Difference::Why("no walk is under way")),
            LineContent::Remote { .. } => {
                let group = self.group(cpu.group);
                let is_its = group.word.is_migrator_or_none(cpu.mask) || cpu.wakeup != NEVER;
                let expected = LineContent::Remote { group: group.identity, level: 0 };
                if let Some(cpu) = self.cpu_mut(line.cpu) {
                    cpu.first = NEVER;
                }
                let visit = Visit { group: cpu.group, mask: cpu.mask, now: line.now };
                self.set_walk(line.cpu, Walk::Remote(visit));
                let why = "the CPU is not the migrator of its group and has not to wake up for it";
                compared_if(cpu.is_available && is_its, why, expected, line)
            }
        }
    }

    fn begin_cpu(
        &mut self,
        line: &HierarchyLine,
        cpu: &CpuModel,
        step: MigrationStep,
        next: u64,
    ) -> LineVerdict {
        let expected = |wakeup: u64| self.cpu_line(line.cpu, step, wakeup, next);
        match step {
            MigrationStep::Online | MigrationStep::Available => {
                let expected = expected(cpu.wakeup);
                if let Some(cpu) = self.cpu_mut(line.cpu) {
                    (cpu.is_available, cpu.is_idle) = (true, true);
                }
                compared(expected, line)
            }
            MigrationStep::Active => {
                let expected = expected(cpu.wakeup);
                self.set_late(line.cpu, Late::Activates);
                self.set_walk(line.cpu, Walk::Up { group: cpu.group, mask: cpu.mask });
                let is_allowed = cpu.is_available && cpu.is_idle;
                compared_if(is_allowed, "the CPU is active already or not available", expected, line)
            }
            MigrationStep::NewTimer => {
                let expected = expected(cpu.wakeup);
                let carried = Carried { next: NEVER, first: NEVER };
                let child = GroupChild::Cpu(line.cpu);
                self.set_walk(line.cpu, Walk::NewTimer { group: cpu.group, child, carried });
                let is_allowed = cpu.is_available && cpu.is_idle && !cpu.is_remote;
                compared_if(is_allowed, "the CPU is active, not available or being expired", expected, line)
            }
            MigrationStep::NewTimerIdle => {
                let event = self.event_of(cpu);
                let is_new = next != NEVER && (event.expires != next || event.is_ignored);
                let wakeup = if is_new { NEVER } else { cpu.wakeup };
                let expected = expected(wakeup);
                self.set_wakeup(line.cpu, wakeup);
                compared_if(!is_new || cpu.is_remote, "the new event was not queued", expected, line)
            }
            _ => LineVerdict::Differs(Difference::Why("no walk is under way")),
        }
    }

    /// The joining CPU activates the old root in the new one.
    fn take_growth(&mut self, line: &HierarchyLine) -> Option<LineVerdict> {
        let (root, old) = self.growth()?;
        let (_, mask) = self.group(old).parent?;
        let LineContent::Word(WordLine { is_active: true, group, .. }) = line.what else { return None };
        if group != self.group(root).identity || !self.group(old).word.is_active() {
            return None;
        }
        self.set_growth(None);
        self.set_late(line.cpu, Late::Ignores(old));
        Some(self.go_up(line, root, mask))
    }

    fn go_up(&mut self, line: &HierarchyLine, group: GroupIndex, mask: ChildMask) -> LineVerdict {
        let before = self.group(group).word;
        self.group_mut(group).word = before.with(mask);
        let above = self.group(group).parent.filter(|_| before.migrator().is_none());
        self.set_walk(line.cpu, above.map_or(Walk::None, |(group, mask)| Walk::Up { group, mask }));
        compared(self.word_line(true, group, Some(mask)), line)
    }

    /// Whether the group has no active child left. A child that became active again stays.
    fn deactivate(&mut self, group: GroupIndex, child: GroupChild) -> bool {
        let is_active = matches!(child, GroupChild::Group(below) if self.group(below).word.is_active());
        if let Some(mask) = self.mask_of(child).filter(|_| !is_active) {
            let change = self.group_mut(group);
            change.word = change.word.without(mask);
        }
        self.group(group).word.migrator().is_none()
    }

    fn after_down(&self, group: GroupIndex, carried: Carried, is_idle: bool) -> Walk {
        match self.group(group).parent.filter(|_| is_idle) {
            Some((parent, _)) => Walk::Down { group: parent, child: GroupChild::Group(group), carried },
            None => Walk::DownEnd(carried),
        }
    }

    fn down_update(
        &mut self,
        line: &HierarchyLine,
        at: GroupPlace,
        mut carried: Carried,
        is_idle: bool,
    ) -> LineVerdict {
        let GroupPlace { group, child } = at;
        if child == GroupChild::Cpu(line.cpu) {
            carried.next = match line.what {
                LineContent::Update(update) if update.child == 0 => update.next,
                _ => NEVER,
            };
            self.set_ignored(line.cpu, carried.next == NEVER);
        }
        let updated = self.update(group, child, carried.next, Behalf::Own);
        carried.first = updated.first.unwrap_or(carried.first);
        let next = self.after_down(group, carried, is_idle);
        self.set_walk(line.cpu, next);
        updated.line.map_or(LineVerdict::Again, |expected| compared(LineContent::Update(expected), line))
    }

    fn down_end(&mut self, line: &HierarchyLine, Carried { next, first }: Carried) -> LineVerdict {
        use MigrationStep::{Idle, Offline, Unavailable};
        self.set_walk(line.cpu, Walk::None);
        let LineContent::Cpu(CpuLine { step: step @ (Idle | Offline | Unavailable), .. }) = line.what else {
            return LineVerdict::Differs(Difference::Expected(self.cpu_line(line.cpu, Idle, first, next)));
        };
        let wakeup = if step == Idle { first } else { NEVER };
        let expected = self.cpu_line(line.cpu, step, wakeup, next);
        if let Some(cpu) = self.cpu_mut(line.cpu) {
            cpu.wakeup = wakeup;
            cpu.is_idle |= step == Idle;
            cpu.is_available &= step == Idle;
        }
        compared(expected, line)
    }

    fn new_timer(
        &mut self,
        line: &HierarchyLine,
        group: GroupIndex,
        child: GroupChild,
        mut carried: Carried,
    ) -> LineVerdict {
        if child == GroupChild::Cpu(line.cpu) {
            let event = self.cpu(line.cpu).map(|cpu| self.event_of(cpu));
            let next = match line.what {
                LineContent::Update(update) if update.child == 0 => update.next,
                _ => NEVER,
            };
            let is_same = event.is_some_and(|event| event.expires == next && !event.is_ignored);
            if next == NEVER || is_same {
                return LineVerdict::Differs(Difference::Why(
                    "a new timer that changes the event was announced",
                ));
            }
            carried.next = next;
            self.set_ignored(line.cpu, false);
        }
        let updated = self.update(group, child, carried.next, Behalf::Own);
        carried.first = updated.first.unwrap_or(carried.first);
        let above = self.group(group).parent.filter(|_| !updated.is_done);
        let next = match above {
            Some((parent, _)) => Walk::NewTimer { group: parent, child: GroupChild::Group(group), carried },
            None => Walk::NewTimerEnd(carried),
        };
        self.set_walk(line.cpu, next);
        updated.line.map_or(LineVerdict::Again, |expected| compared(LineContent::Update(expected), line))
    }

    /// The event of a CPU in its group.
    pub(super) fn event_of(&self, cpu: &CpuModel) -> QueuedEvent {
        self.group(cpu.group).events[usize::from(cpu.mask.slot())]
    }

    fn set_ignored(&mut self, cpu: u16, is_ignored: bool) {
        if let Some(&CpuModel { group, mask, .. }) = self.cpu(cpu) {
            self.group_mut(group).events[usize::from(mask.slot())].is_ignored = is_ignored;
        }
    }

    pub(super) fn set_walk(&mut self, cpu: u16, walk: Walk) {
        if let Some(cpu) = self.cpu_mut(cpu) {
            cpu.walk = walk;
        }
    }

    pub(super) fn set_late(&mut self, cpu: u16, late: Late) {
        if let Some(cpu) = self.cpu_mut(cpu) {
            cpu.late = late;
        }
    }

    fn set_wakeup(&mut self, cpu: u16, wakeup: u64) {
        if let Some(cpu) = self.cpu_mut(cpu) {
            cpu.wakeup = wakeup;
        }
    }

    fn word_line(&self, is_active: bool, group: GroupIndex, mask: Option<ChildMask>) -> LineContent {
        let group = self.group(group);
        LineContent::Word(WordLine {
            is_active,
            group: group.identity,
            level: group.level,
            node: group.node,
            active: u32::from(group.word.active()),
            migrator: group.word.migrator().map_or(NO_MIGRATOR, |mask| u32::from(mask.bits())),
            parent: group.parent.map_or(0, |(parent, _)| self.group(parent).identity),
            child_mask: mask.map_or(0, |mask| u32::from(mask.bits())),
        })
    }

    pub(super) fn cpu_line(&self, cpu: u16, step: MigrationStep, wakeup: u64, next: u64) -> LineContent {
        let parent = self.cpu(cpu).map_or(0, |cpu| self.group(cpu.group).identity);
        LineContent::Cpu(CpuLine { step, cpu, parent, wakeup, next })
    }
}
