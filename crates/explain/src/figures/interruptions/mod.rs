//! What took a CPU away from its tasks: interrupts, softirqs, callbacks of timers, work items and tasks that
//! the CPU is not there for; for how long each time, and what had started it.
//!
//! They lie on top of each other: an interrupt comes in a softirq, a handler in an interrupt, all of them in
//! a task. Each counts for the time in which nothing else was on top of it, so that all of a CPU's together
//! are what it lost. One whose begin is not in the input is not counted; one whose end is not counts, and has
//! no time. None is on top of itself: where a second one begins, the end of the first is missing. A mark of
//! lost events ends all that are open on its CPU. A switch of tasks ends interrupts, which do not let it
//! happen, and so has missed their ends; softirqs (on PREEMPT_RT), callbacks in them and work items go on
//! when their task does. Counted of isolated CPUs; of all where none is, but for tasks and work items,
//! which are no disturbance there.
//!
//! What had started it: for a timer, what its CPU was doing at the last start; for a softirq, at the last
//! raise; for an interrupt that another CPU sent, at the last one of its kind to this CPU; for a task, at its
//! waking; for a work item, when it was queued. See [`cause`].
//!
//! Source: Linux 6.12, kernel/trace/trace_osnoise.c, which takes the time of what comes on top off what is
//! below in the same way. Deviation: from events of a recording, by name, softirqs by vector; and callbacks,
//! work items and causes, which that tracer does not know.

mod cause;
mod gap;
mod near;
mod row;
mod sent;
mod source;
mod stack;
#[cfg(test)]
mod tests;
mod timeline;

pub use gap::Gap;
pub use near::RecordedMoment;

pub(super) use cause::Initiator;

use super::kernel_threads::is_kernel_thread;
use super::report::{Interruption, MomentReport, TimelineReport, TookSpans};
use super::side::TimerSide;
use super::took::TookCounts;
use cause::{CauseId, CauseTable};
use gap::GapSearch;
use near::{NearSpans, SpanEnd};
use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_trace::{
    DisturbanceSource, Event, IdentityTable, Initiation, InterruptContext, IpiKind, IpiPurpose, NameId,
    NameTable, Record, SoftirqStep, SpanStep, Task, WakeStep,
};
use row::Row;
use sent::{SentIpi, SentIpis, Started};
use source::{SOFTIRQS, ThingKey, softirq};
use stack::{Open, SpanStack};
use std::collections::HashMap;
use timeline::Timeline;

/// So many rows are kept; what finds no room is counted under a name of its own, by CPU and source.
const ROWS_MAX: usize = 2_048;
/// So many work items, and so many tasks that were woken, are remembered.
const STARTED_MAX: usize = 65_536;
/// So many tasks at most are away from their CPU in the middle of something.
const AWAY_MAX: usize = 4_096;

/// Keys of the processor's interrupts that are named by a reason, and of what finds no room.
const SENT: u64 = 1 << 32;
const OTHERS: u64 = u64::MAX;
/// A callback has one key on its CPU, as none is on top of another one.
const CALLBACK: u64 = 0;

/// The function that a timer calls, by the kind of timer.
#[derive(Clone, Copy, Debug)]
pub(super) enum CallbackOf {
    Wheel(NameId),
    HighResolution(NameId),
}

/// What begins: what it is, where it is counted, how it is called, and why.
#[derive(Clone, Copy, Debug)]
struct BegunThing {
    key: ThingKey,
    row: ThingKey,
    name: NameId,
    cause: Option<CauseId>,
}

/// What is known of one CPU.
#[derive(Debug, Default)]
struct CpuSpans {
    open: SpanStack,
    rows: HashMap<ThingKey, usize>,
    /// The last raise of each softirq.
    raised: [Option<Started<Initiator>>; SOFTIRQS.len()],
    /// The last one of each kind.
    sent: [SentIpis; IpiKind::COUNT],
    /// The last function that was queued for it, and by which CPU.
    queued: Option<Started<(CpuId, NameId)>>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct InterruptionCounts {
    isolated: CpuSet,
    cpus: Vec<CpuSpans>,
    rows: Vec<Row>,
    causes: CauseTable,
    works: IdentityTable<Started<Initiator>>,
    woken: IdentityTable<Started<Initiator>>,
    /// What tasks were in the middle of when they lost their CPU.
    away: HashMap<(CpuId, i32), Started<Vec<Open>>>,
    /// How many marks of lost events there were.
    marks: u64,
    /// Whether ends of timers' and of high-resolution timers' callbacks are in the input.
    ends: [bool; 2],
    near: Option<NearSpans>,
    timeline: Option<Timeline>,
    gap: Option<GapSearch>,
    /// By side: callbacks of timers that other CPUs had armed.
    took: [TookCounts; 2],
}

impl InterruptionCounts {
    /// Nothing yet; what is open around a moment is kept, if one is asked for.
    pub(super) fn new(isolated: CpuSet, at: Option<RecordedMoment>) -> Self {
        Self {
            isolated,
            cpus: Vec::new(),
            rows: Vec::new(),
            causes: CauseTable::default(),
            works: IdentityTable::new(STARTED_MAX),
            woken: IdentityTable::new(STARTED_MAX),
            away: HashMap::new(),
            marks: 0,
            ends: [false; 2],
            near: at.map(NearSpans::new),
            timeline: None,
            gap: None,
            took: [TookCounts::new(), TookCounts::new()],
        }
    }

    /// Looks for a stretch that is longer, too, if it is asked for.
    pub(super) fn with_gap(self, longer_than: Option<Nanos>) -> Self {
        Self { gap: longer_than.map(GapSearch::new), ..self }
    }

    /// The first stretch that is longer.
    pub(super) fn gap(&self) -> Option<Gap> {
        self.gap.as_ref()?.found()
    }

    /// Keeps when things took CPUs away, too, if it is asked for.
    pub(super) fn with_timeline(self, is_asked: bool) -> Self {
        Self { timeline: is_asked.then(Timeline::new), ..self }
    }

    /// How often a cause was forgotten, or had no room.
    pub(super) fn causes_missed(&self) -> u64 {
        self.causes.overflowed() + self.works.evicted() + self.woken.evicted()
    }

    /// Takes any event but a mark of lost ones and the begin of a timer's callback.
    pub(super) fn take(&mut self, record: &Record<'_>, names: &mut NameTable) {
        if let Some(timeline) = &mut self.timeline {
            timeline.reach(record.at);
        }
        match &record.event {
            Event::DeviceInterrupt { step: SpanStep::Entry, number, name } => {
                // Devices may share an interrupt: each handler has a row.
                let name = names.number(&[number.to_string().as_bytes(), b" ", name].concat());
                let row = (DisturbanceSource::Device, u64::from(name.get()));
                self.begin(
                    record,
                    BegunThing { key: (DisturbanceSource::Device, *number), row, name, cause: None },
                );
            }
            Event::DeviceInterrupt { step: SpanStep::Exit, number, .. } => {
                self.end(record, (DisturbanceSource::Device, *number));
            }
            Event::SystemInterrupt { step, interrupt } => {
                let key = (DisturbanceSource::Processor, *interrupt as u64);
                match step {
                    SpanStep::Entry => {
                        let name = names.number(interrupt.name().as_bytes());
                        let cause =
                            IpiKind::of(*interrupt).and_then(|ipi| self.take_sent(record.cpu, &[ipi]));
                        self.begin(record, BegunThing { key, row: key, name, cause });
                    }
                    SpanStep::Exit => self.end(record, key),
                }
            }
            Event::IpiHandled { step, reason } => {
                let name = names.number(reason);
                let key = (DisturbanceSource::Processor, SENT + u64::from(name.get()));
                match step {
                    SpanStep::Entry => {
                        let cause =
                            IpiKind::of_reason(reason).and_then(|ipis| self.take_sent(record.cpu, ipis));
                        self.begin(record, BegunThing { key, row: key, name, cause });
                    }
                    SpanStep::Exit => self.end(record, key),
                }
            }
            Event::Softirq { step, vector } => self.softirq(record, *step, *vector, names),
            Event::NmiHandled { handler, took } => {
                if self.is_counted(DisturbanceSource::Nmi, record.cpu) {
                    let name = names.number(handler);
                    let row = self.row(record.cpu, (DisturbanceSource::Nmi, u64::from(name.get())), name);
                    self.rows[row].begin(None);
                    self.rows[row].end(record, took.0, None);
                    let since = Nanos(record.at.0.saturating_sub(took.0));
                    let open = Open {
                        since,
                        ..Open::of(record, (DisturbanceSource::Nmi, 0), name, Some(row), None)
                    };
                    self.look(record.cpu, &open, Some(SpanEnd { at: record.at, own: took.0 }));
                    self.take_gap(record.cpu, &open, record.at);
                }
                self.of(record.cpu).open.cover(took.0);
            }
            _ => self.take_start(record, names),
        }
    }

    /// Takes what starts something elsewhere or later, and what that becomes.
    fn take_start(&mut self, record: &Record<'_>, names: &mut NameTable) {
        match &record.event {
            Event::TimerExpireExit { .. } => self.end_callback(record, DisturbanceSource::Timer),
            Event::HrtimerExpireExit { .. } => self.end_callback(record, DisturbanceSource::Hrtimer),
            Event::IpiSendCpu { to, purpose } => {
                let ipi = if *to == record.cpu { IpiKind::Work } else { IpiKind::sent_to_one(purpose) };
                let sent = self.sent(record, *to, purpose, names);
                self.of(*to).sent[ipi as usize].send(sent);
            }
            Event::IpiSendMask { to, purpose } => {
                for cpu in to.iter() {
                    self.send_to_one_of(record, cpu, purpose, names);
                }
            }
            Event::CallQueued { to, function } => {
                let function = names.number(function);
                let queued = self.started((record.cpu, function));
                self.of(*to).queued = Some(queued);
            }
            Event::SchedWake { step: WakeStep::Waking, task, .. } => {
                let by = self.initiator(record, names);
                self.woken.insert(u64::from(task.pid.unsigned_abs()), self.started(by));
            }
            Event::SchedSwitch { previous, next, .. } => {
                self.switch(record, previous.pid, *next, names);
            }
            Event::WorkQueue { work, .. } => {
                let by = self.initiator(record, names);
                self.works.insert(*work, self.started(by));
            }
            Event::WorkStart { work, function } => {
                let by = self.works.remove(*work).and_then(|by| by.known(self.marks));
                let cause = by.and_then(|by| self.causes.chain(Initiation::Queued, None, by));
                let name = names.number(function);
                let row = (DisturbanceSource::Work, u64::from(name.get()));
                self.begin(record, BegunThing { key: work_key(record.task), row, name, cause });
            }
            Event::WorkEnd { .. } => self.end(record, work_key(record.task)),
            _ => {}
        }
    }

    /// A timer's callback begins; `armed_by` is what its CPU was doing at the timer's last start, if known.
    pub(super) fn take_callback(
        &mut self,
        record: &Record<'_>,
        callback: CallbackOf,
        armed_by: Option<Initiator>,
    ) {
        let (source, name) = match callback {
            CallbackOf::Wheel(function) => (DisturbanceSource::Timer, function),
            CallbackOf::HighResolution(function) => (DisturbanceSource::Hrtimer, function),
        };
        let cause = armed_by.and_then(|by| self.causes.chain(Initiation::Armed, None, by));
        let row = (source, u64::from(name.get()));
        self.begin(record, BegunThing { key: (source, CALLBACK), row, name, cause });
        if let (DisturbanceSource::Timer, Some(by)) = (source, armed_by) {
            let side = TimerSide::of(&self.isolated, by.cpu, record.cpu);
            self.of(record.cpu).open.came_from(side);
        }
    }

    /// How long callbacks took isolated CPUs away whose timers other CPUs had armed.
    pub(super) fn callbacks_took(&self, side: TimerSide) -> TookSpans {
        self.took[side as usize].report()
    }

    /// Events were lost on this CPU: nothing is open there, as far as is known, nor is what was started
    /// anywhere and may have begun meanwhile.
    pub(super) fn forget(&mut self, mark: &Record<'_>) {
        self.of(mark.cpu).open.clear();
        self.marks += 1;
        if let Some(timeline) = &mut self.timeline {
            timeline.lose(mark.cpu, mark.at);
        }
        if let Some(gap) = &mut self.gap {
            gap.forget(mark.cpu);
        }
    }

    fn started<T>(&self, what: T) -> Started<T> {
        Started { what, marks: self.marks }
    }

    /// What the CPU of an event was doing then.
    pub(super) fn initiator(&mut self, record: &Record<'_>, names: &mut NameTable) -> Initiator {
        let cpu = record.cpu;
        let ends = self.ends;
        let may_be = |source| match source {
            DisturbanceSource::Timer => ends[0],
            DisturbanceSource::Hrtimer => ends[1],
            DisturbanceSource::Task => false,
            _ => true,
        };
        let pid = record.task.pid;
        let within = self.of(cpu).open.within(record.context, may_be);
        if let Some(open) =
            within.filter(|open| open.key.0 != DisturbanceSource::Work || open.key == work_key_of(pid))
        {
            return Initiator { cpu, source: open.key.0, name: open.name, cause: open.cause };
        }
        let source = match record.context {
            Some(InterruptContext::Interrupt | InterruptContext::InterruptInSoftirq) => {
                DisturbanceSource::Processor
            }
            Some(InterruptContext::Nmi) => DisturbanceSource::Nmi,
            Some(InterruptContext::Softirq) => DisturbanceSource::Softirq,
            Some(InterruptContext::Task) | None => DisturbanceSource::Task,
        };
        let name = if source == DisturbanceSource::Task { record.task.comm } else { b"(unknown)" };
        Initiator { cpu, source, name: names.number(name), cause: None }
    }

    fn of(&mut self, cpu: CpuId) -> &mut CpuSpans {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize_with(cpu.index() + 1, CpuSpans::default);
        }
        &mut self.cpus[cpu.index()]
    }

    fn softirq(&mut self, record: &Record<'_>, step: SoftirqStep, vector: u8, names: &mut NameTable) {
        let key = (DisturbanceSource::Softirq, u64::from(vector));
        match step {
            SoftirqStep::Raise => {
                let by = self.initiator(record, names);
                let by = self.started(by);
                if let Some(raised) = self.of(record.cpu).raised.get_mut(usize::from(vector)) {
                    *raised = Some(by);
                }
            }
            SoftirqStep::Entry => {
                let raised = self.of(record.cpu).raised.get_mut(usize::from(vector));
                let by = raised.and_then(Option::take).and_then(|by| by.known(self.marks));
                let cause = by.and_then(|by| self.causes.chain(Initiation::Raised, None, by));
                self.begin(record, BegunThing { key, row: key, name: names.number(softirq(vector)), cause });
            }
            SoftirqStep::Exit => self.end(record, key),
        }
    }

    /// One of several CPUs to which an interrupt is sent.
    fn send_to_one_of(
        &mut self,
        record: &Record<'_>,
        to: CpuId,
        purpose: &IpiPurpose<'_>,
        names: &mut NameTable,
    ) {
        let ipis = IpiKind::of_reason(purpose.reason).unwrap_or(&[IpiKind::CallSeveral]);
        let (pending, marks) = (self.of(to).sent, self.marks);
        let mut pending = ipis.iter().flat_map(|&ipi| pending[ipi as usize].known(marks));
        let is_on_its_way = |sent: SentIpi| sent.by.cpu == record.cpu;
        // Some processors have events of their own besides, which name no functions.
        if purpose.reason.is_empty() || !pending.any(is_on_its_way) {
            let sent = self.sent(record, to, purpose, names);
            self.of(to).sent[ipis[0] as usize].send(sent);
        }
    }

    /// What is sent, with what is to be called there, or what sends it.
    fn sent(
        &mut self,
        record: &Record<'_>,
        to: CpuId,
        purpose: &IpiPurpose<'_>,
        names: &mut NameTable,
    ) -> Started<SentIpi> {
        let by = self.initiator(record, names);
        let queued = self.of(to).queued.take().and_then(|queued| queued.known(self.marks));
        let queued = queued.filter(|(from, _)| *from == record.cpu);
        let function = match queued {
            Some((_, function)) if purpose.calls_a_queue() => Some(function),
            _ => Some(purpose.function()).filter(|name| !name.is_empty()).map(|name| names.number(name)),
        };
        self.started(SentIpi { by, function })
    }

    /// Why an interrupt of one of these kinds came; the next one has another cause.
    fn take_sent(&mut self, cpu: CpuId, ipis: &[IpiKind]) -> Option<CauseId> {
        let of_cpu = self.of(cpu);
        let mut sent = None;
        for &ipi in ipis {
            sent = sent.or(of_cpu.sent[ipi as usize].take());
        }
        let SentIpi { by, function } = sent?.known(self.marks)?;
        self.causes.chain(Initiation::Sent, function, by)
    }

    /// The CPU goes from one task to another.
    fn switch(&mut self, record: &Record<'_>, previous: i32, next: Task<'_>, names: &mut NameTable) {
        let mut interrupted = Vec::new();
        while let Some((open, own)) = self.of(record.cpu).open.pop(record.at) {
            let ended = SpanEnd { at: record.at, own };
            let is_over = open.key.0 == DisturbanceSource::Task || open.key.0.is_of_a_task();
            self.look(record.cpu, &open, is_over.then_some(ended));
            // A task of a user is what its CPU is there for.
            let is_of_users = || {
                open.key.0 == DisturbanceSource::Task && !is_kernel_thread(names.text(open.name).as_bytes())
            };
            if is_over && self.gap.is_some() && !is_of_users() {
                self.take_gap(record.cpu, &open, record.at);
            }
            match (open.key.0, open.row) {
                (DisturbanceSource::Task, Some(row)) => self.rows[row].end(record, own, open.cause),
                (source, _) if source.is_of_a_task() => interrupted.push(Open { before: own, ..open }),
                _ => {}
            }
        }
        if !interrupted.is_empty() && self.away.len() < AWAY_MAX {
            self.away.insert((record.cpu, previous), self.started(interrupted));
        }
        let by = self.woken.remove(u64::from(next.pid.unsigned_abs()));
        let by = by.and_then(|by| by.known(self.marks));
        if next.pid != 0 && self.is_counted(DisturbanceSource::Task, record.cpu) {
            let cause = by.and_then(|by| self.causes.chain(Initiation::Woken, None, by));
            let name = names.number(next.comm);
            let row = (DisturbanceSource::Task, u64::from(name.get()));
            let key = (DisturbanceSource::Task, u64::from(next.pid.unsigned_abs()));
            self.begin(record, BegunThing { key, row, name, cause });
        }
        let goes_on = self.away.remove(&(record.cpu, next.pid)).and_then(|away| away.known(self.marks));
        for open in goes_on.into_iter().flatten().rev() {
            self.of(record.cpu).open.begin(Open { since: record.at, above: 0, ..open });
        }
    }

    fn begin(&mut self, record: &Record<'_>, begun: BegunThing) {
        let BegunThing { key, row, name, cause } = begun;
        let is_counted = self.is_counted(key.0, record.cpu);
        let row = is_counted.then(|| self.row(record.cpu, row, name));
        if let Some(row) = row {
            self.rows[row].begin(cause);
        }
        self.of(record.cpu).open.begin(Open::of(record, key, name, row, cause));
    }

    /// Whether it is asked what such things take from a CPU: from isolated ones, or from any where none is;
    /// there tasks and work items are no disturbance.
    fn is_counted(&self, source: DisturbanceSource, cpu: CpuId) -> bool {
        let is_any =
            self.isolated.is_empty() && !matches!(source, DisturbanceSource::Task | DisturbanceSource::Work);
        is_any || self.isolated.contains(cpu)
    }

    fn end(&mut self, record: &Record<'_>, key: ThingKey) {
        let Some((open, own)) = self.of(record.cpu).open.end(key, record.at) else { return };
        self.look(record.cpu, &open, Some(SpanEnd { at: record.at, own }));
        self.take_gap(record.cpu, &open, record.at);
        if let Some(row) = open.row {
            self.rows[row].end(record, own, open.cause);
        }
        if let Some(side) = open.side {
            self.took[side as usize].record(own);
        }
    }

    /// It has ended, its task has lost the CPU, or its end is not in the input.
    fn look(&mut self, cpu: CpuId, open: &Open, ended: Option<SpanEnd>) {
        if let (Some(timeline), Some(row), Some(ended)) = (&mut self.timeline, open.row, ended) {
            timeline.add(row, open.since, ended.at, ended.own.saturating_sub(open.before));
        }
        if let Some(near) = &mut self.near {
            near.take(cpu, open, ended);
        }
    }

    fn take_gap(&mut self, cpu: CpuId, open: &Open, until: Nanos) {
        if let Some(gap) = self.gap.as_mut().filter(|_| open.row.is_some()) {
            gap.take(cpu, open.since, until);
        }
    }

    fn end_callback(&mut self, record: &Record<'_>, source: DisturbanceSource) {
        self.ends[usize::from(source == DisturbanceSource::Hrtimer)] = true;
        self.end(record, (source, CALLBACK));
    }

    /// Where the row of a thing is; of one that finds no room, that of all such of its CPU and source.
    fn row(&mut self, cpu: CpuId, key: ThingKey, name: NameId) -> usize {
        if let Some(&row) = self.of(cpu).rows.get(&key) {
            return row;
        }
        let is_full = self.rows.len() >= ROWS_MAX;
        let (key, name) = if is_full { ((key.0, OTHERS), NameTable::OTHER) } else { (key, name) };
        let new = self.rows.len();
        let row = *self.of(cpu).rows.entry(key).or_insert(new);
        if row == new {
            self.rows.push(Row::new(cpu, key.0, name));
        }
        row
    }

    /// What was open around the moment that is asked for, and what still is.
    pub(super) fn report_moment(&mut self, names: &NameTable) -> Option<MomentReport> {
        let mut near = self.near.take()?;
        for (cpu, spans) in self.cpus.iter().enumerate() {
            let Ok(cpu) = CpuId::new(cpu as u64) else { continue };
            spans.open.iter().for_each(|open| near.take(cpu, open, None));
        }
        Some(near.report(&self.causes, names))
    }

    /// What the pieces of the rows' times are, if they are asked for.
    pub(super) fn report_timeline(&self) -> Option<TimelineReport> {
        self.timeline.as_ref().map(Timeline::report)
    }

    /// All rows that `is_known` says the input can support, by CPU, source and name.
    pub(super) fn report(&self, names: &NameTable, is_known: impl Fn(&str) -> bool) -> Vec<Interruption> {
        let report = |(place, row): (usize, &Row)| {
            let reported = row.report(&self.causes, names);
            let Some(timeline) = &self.timeline else { return reported };
            Interruption { taken_ns: timeline.row(place), durations: row.durations(), ..reported }
        };
        let known = self.rows.iter().enumerate().filter(|(_, row)| is_known(row.source.name()));
        let mut rows: Vec<Interruption> = known.map(report).collect();
        rows.sort_by(|one, two| (one.cpu, one.source, &one.name).cmp(&(two.cpu, two.source, &two.name)));
        row::mark_own(&mut rows);
        rows
    }
}

fn work_key(worker: Task<'_>) -> ThingKey {
    work_key_of(worker.pid)
}

fn work_key_of(pid: i32) -> ThingKey {
    (DisturbanceSource::Work, u64::from(pid.unsigned_abs()))
}
