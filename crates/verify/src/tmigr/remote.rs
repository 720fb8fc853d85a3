//! One CPU expires the timers of idle ones: which groups it visits, which events it takes out, what it puts
//! back.
//!
//! `tmigr_handle_remote` is written once for each group that is visited, before it is asked whether this CPU
//! is its migrator; so the line of the next level follows exactly when it was, and when nothing is due (any
//! more). `tmigr_handle_remote_cpu` is written when an event that was taken out is really handled: its CPU
//! may have woken up meanwhile. After the timers have run, that CPU's next event is put back, unless it is
//! awake.
//!
//! At an idle top the put back event is in no line; it is what our wheel says (`clock.rs`).

use super::line::{CpuLine, HierarchyLine, LineContent, NEVER};
use super::queue::Behalf;
use super::state::{CpuModel, GroupChild, GroupIndex, GroupPlace, HierarchyState, Late, Visit, Walk};
use super::walks::{Difference, LineVerdict, compared};
use quietcore_trace::MigrationStep;
use std::ops::Range;

impl HierarchyState {
    /// The part of a remote walk that writes nothing: takes a due event out, or goes on.
    pub(super) fn visit(&mut self, cpu: u16, visit: Visit) -> Walk {
        let Visit { group, mask, now } = visit;
        if !self.group(group).word.is_migrator_or_none(mask) {
            return Walk::RemoteEnd;
        }
        let change = self.group_mut(group);
        if let Some(event) = change.pop_due(now) {
            return Walk::RemoteTaken(visit, event.cpu);
        }
        let (first, parent) = (change.next_expiry, change.parent);
        if let Some(cpu) = self.cpu_mut(cpu) {
            cpu.first = first;
        }
        parent.map_or(Walk::RemoteEnd, |(group, mask)| Walk::RemoteNext(Visit { group, mask, now }))
    }

    pub(super) fn remote_step(&mut self, line: &HierarchyLine, walk: Walk) -> LineVerdict {
        match walk {
            Walk::RemoteTaken(visit, of) => self.remote_taken(line, visit, of),
            Walk::RemoteRun(visit, of) => {
                let next = match self.sleeper(of) {
                    None => {
                        self.release(of);
                        Walk::Remote(visit)
                    }
                    Some(&CpuModel { group, .. }) => {
                        Walk::RemoteUpdate { visit, of, group, child: GroupChild::Cpu(of) }
                    }
                };
                self.set_walk(line.cpu, next);
                LineVerdict::Again
            }
            Walk::RemoteUpdate { visit, of, group, child } => {
                self.remote_update(line, visit, of, GroupPlace { group, child })
            }
            Walk::RemoteNext(visit) => {
                self.set_walk(line.cpu, Walk::Remote(visit));
                let group = self.group(visit.group);
                compared(LineContent::Remote { group: group.identity, level: group.level }, line)
            }
            _ => LineVerdict::Differs(Difference::Why("the walk does not end")),
        }
    }

    /// The timers of `of` have been run: it is looked at again. `hidden` is its next event, where no line
    /// says it.
    pub(super) fn check_after_run(&mut self, cpu: u16, hidden: u64) {
        self.settle(cpu);
        if let Some(cpu) = self.cpu_mut(cpu) {
            cpu.hidden = hidden;
        }
        let Some(Walk::RemoteRun(visit, of)) = self.cpu(cpu).map(|cpu| cpu.walk) else { return };
        match self.sleeper(of) {
            None => {}
            Some(&CpuModel { group, .. }) if self.is_idle_top(group) => {
                self.update(group, GroupChild::Cpu(of), hidden, Behalf::Remote);
            }
            Some(_) => return, // the lines will say
        }
        self.release(of);
        self.set_walk(cpu, Walk::Remote(visit));
        self.settle(cpu);
    }

    /// When queued events of the group and of those above it are due, in `span` and not at its first moment.
    pub(super) fn due_above(&self, group: u64, span: Range<u64>) -> Vec<u64> {
        let mut due = Vec::new();
        let mut next = self.number_of(group);
        while let Some(group) = next.map(|group| self.group(group)) {
            let queued = group.order[..usize::from(group.queued)].iter();
            due.extend(queued.map(|&slot| group.events[usize::from(slot)].expires));
            next = group.parent.map(|(parent, _)| parent);
        }
        due.retain(|expires| span.contains(expires) && *expires != span.start);
        due
    }

    /// No CPU expires its timers any more.
    pub(super) fn release(&mut self, of: u16) {
        if let Some(of) = self.cpu_mut(of) {
            of.is_remote = false;
        }
    }

    fn is_idle_top(&self, group: GroupIndex) -> bool {
        let group = self.group(group);
        group.parent.is_none() && !group.word.is_active()
    }

    /// The CPU, if others may expire its timers.
    fn sleeper(&self, cpu: u16) -> Option<&CpuModel> {
        self.cpu(cpu).filter(|cpu| cpu.is_available && cpu.is_idle)
    }

    fn remote_taken(&mut self, line: &HierarchyLine, visit: Visit, of: u16) -> LineVerdict {
        let Some(cpu) = self.cpu(of) else {
            self.set_walk(line.cpu, Walk::Remote(visit));
            return LineVerdict::Again;
        };
        let event = self.event_of(cpu);
        let gives_up = !cpu.is_available || cpu.is_remote || event.is_ignored || visit.now < event.expires;
        let expected = self.cpu_line(of, MigrationStep::HandleRemote, cpu.wakeup, NEVER);
        match line.what {
            LineContent::Cpu(CpuLine { step: MigrationStep::HandleRemote, cpu, .. }) if cpu == of => {
                self.set_late(line.cpu, Late::Claims(of));
                self.set_walk(line.cpu, Walk::RemoteRun(visit, of));
                if gives_up {
                    return LineVerdict::Differs(Difference::Why(
                        "that CPU's timers are not due, or not to be taken",
                    ));
                }
                compared(expected, line)
            }
            _ if gives_up => {
                self.set_walk(line.cpu, Walk::Remote(visit));
                LineVerdict::Again
            }
            _ => LineVerdict::Differs(Difference::Expected(expected)),
        }
    }

    fn remote_update(&mut self, line: &HierarchyLine, visit: Visit, of: u16, at: GroupPlace) -> LineVerdict {
        let GroupPlace { group, child } = at;
        let next = match (child, line.what) {
            (GroupChild::Group(_), _) => NEVER,
            (GroupChild::Cpu(_), _) if self.is_idle_top(group) => {
                self.cpu(line.cpu).map_or(NEVER, |cpu| cpu.hidden)
            }
            (GroupChild::Cpu(_), LineContent::Update(update)) => update.next,
            _ => {
                return LineVerdict::Differs(Difference::Why(
                    "a tmigr_update_events puts the next event back",
                ));
            }
        };
        let updated = self.update(group, child, next, Behalf::Remote);
        let next = match self.group(group).parent.filter(|_| !updated.is_done) {
            Some((parent, _)) => {
                Walk::RemoteUpdate { visit, of, group: parent, child: GroupChild::Group(group) }
            }
            None => {
                self.release(of);
                Walk::Remote(visit)
            }
        };
        self.set_walk(line.cpu, next);
        updated.line.map_or(LineVerdict::Again, |expected| compared(LineContent::Update(expected), line))
    }
}
