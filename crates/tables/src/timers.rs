//! A row per timer that ran: armed where, held where, run where, for how long.
//!
//! Three CPUs per expiry, as `explain` counts them: armed on (the CPU of the timer's last start; a cancel
//! does not forget it, because one precedes every expiry), base, ran on. A row is there when the callback
//! ends, or its CPU begins another one. Memory is bounded: at most so many timers are remembered, and one
//! callback of each kind per CPU.

use crate::events::number_of;
use crate::layout::{Column, ColumnKind as Kind, TableLayout};
use crate::rows::TableRows;
use quietcore_core::{CpuId, CpuSet};
use quietcore_explain::TimerSide;
use quietcore_trace::{Event, IdentityTable, Record};
use std::collections::BTreeMap;

const ROW: &str = "One timer that ran: of the wheel, or an hrtimer.";
const COLUMNS: [Column; 17] = [
    Column::new("kind", Kind::Text, "`timer` (of the wheel) or `hrtimer`."),
    Column::new("timer", Kind::Unsigned, "The timer, as the trace names it."),
    Column::new("function", Kind::Text, "Its callback."),
    Column::new("armed_line", Kind::Unsigned, "Line of its last start; null where that is not in the input."),
    Column::new("armed_at_ns", Kind::Unsigned, "When that was; null likewise."),
    Column::new("armed_cpu", Kind::Cpu, "On which CPU; null likewise."),
    Column::new("armed_task", Kind::Text, "Which task that CPU was running; null likewise."),
    Column::new("base_cpu", Kind::Cpu, "The CPU whose base held it; null likewise, and of an hrtimer."),
    Column::new("expires_jiffies", Kind::Unsigned, "When it should run; null likewise, and of an hrtimer."),
    Column::new(
        "pinned",
        Kind::Boolean,
        "Whether it is bound to its CPU; null where the input does not say.",
    ),
    Column::new("ran_line", Kind::Unsigned, "Line where its callback begins."),
    Column::new("ran_at_ns", Kind::Unsigned, "When that was."),
    Column::new("ran_cpu", Kind::Cpu, "On which CPU."),
    Column::new("took_ns", Kind::Unsigned, "From begin to end of the callback; null without its end."),
    Column::new("pulled", Kind::Boolean, "Run by another CPU than the base's; null where that is not known."),
    Column::new(
        "foreign",
        Kind::Boolean,
        "Armed on a CPU not isolated, ran on an isolated one; null likewise.",
    ),
    Column::new(
        "between_isolated",
        Kind::Boolean,
        "Armed on one isolated CPU, ran on another; null likewise.",
    ),
];

pub(crate) fn layouts() -> Vec<TableLayout> {
    vec![TableLayout::new("timers", ROW, &COLUMNS)]
}

/// What is remembered of a timer between its start and its expiry.
#[derive(Clone, Debug)]
struct Armed {
    line: u64,
    at_ns: u64,
    cpu: CpuId,
    task: String,
    base: Option<CpuId>,
    expires_jiffies: Option<u64>,
    pinned: Option<bool>,
}

/// A callback that has begun.
#[derive(Debug)]
struct Running {
    kind: TimerKind,
    timer: u64,
    function: String,
    armed: Option<Armed>,
    line: u64,
    at_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TimerKind {
    Wheel,
    HighResolution,
}

/// Rows of timers, taken in batches.
#[derive(Debug)]
pub struct TimerTable {
    rows: TableRows,
    isolated: CpuSet,
    wheel: IdentityTable<Armed>,
    high_resolution: IdentityTable<Armed>,
    running: BTreeMap<(CpuId, TimerKind), Running>,
    /// Line of the last mark of lost events: a start before it need not be the timer's last.
    lost: u64,
}

impl TimerTable {
    /// Without rows; about these isolated CPUs, with at most so many timers (and as many hrtimers) in mind.
    #[must_use]
    pub fn new(isolated: CpuSet, identities_max: usize) -> Self {
        Self {
            rows: TableRows::new(TableLayout::new("timers", ROW, &COLUMNS)),
            isolated,
            wheel: IdentityTable::new(identities_max),
            high_resolution: IdentityTable::new(identities_max),
            running: BTreeMap::new(),
            lost: 0,
        }
    }

    /// The rows so far.
    pub fn rows(&mut self) -> &mut TableRows {
        &mut self.rows
    }

    /// Takes the next event.
    pub fn take(&mut self, record: &Record<'_>) {
        match record.event {
            Event::TimerStart(start) => {
                let mut armed = Armed::at(record);
                armed.base = Some(start.base);
                armed.expires_jiffies = Some(start.expires);
                armed.pinned = Some(start.pinned);
                self.wheel.insert(start.timer, armed);
            }
            Event::HrtimerStart(start) => {
                let armed = Armed { pinned: start.pinned, ..Armed::at(record) };
                self.high_resolution.insert(start.hrtimer, armed);
            }
            Event::TimerExpireEntry { timer, function, .. } => {
                self.begin(record, TimerKind::Wheel, timer, function);
            }
            Event::HrtimerExpireEntry { hrtimer, function, .. } => {
                self.begin(record, TimerKind::HighResolution, hrtimer, function);
            }
            Event::TimerExpireExit { timer } => self.end(record, TimerKind::Wheel, timer),
            Event::HrtimerExpireExit { hrtimer } => self.end(record, TimerKind::HighResolution, hrtimer),
            Event::Lost { .. } => {
                self.lost = record.line;
                self.write_running(record.cpu, TimerKind::Wheel, None);
                self.write_running(record.cpu, TimerKind::HighResolution, None);
            }
            _ => {}
        }
    }

    /// The input ended: callbacks whose end is not in it have no length.
    pub fn finish(&mut self) {
        let open: Vec<_> = self.running.keys().copied().collect();
        open.into_iter().for_each(|(cpu, kind)| self.write_running(cpu, kind, None));
    }

    fn begin(&mut self, record: &Record<'_>, kind: TimerKind, timer: u64, function: &[u8]) {
        // What began before on this CPU has lost its end.
        self.write_running(record.cpu, kind, None);
        let known = match kind {
            TimerKind::Wheel => &mut self.wheel,
            TimerKind::HighResolution => &mut self.high_resolution,
        };
        let armed = known.get_mut(timer).filter(|armed| armed.line > self.lost).cloned();
        let function = String::from_utf8_lossy(function).into_owned();
        let (line, at_ns) = (record.line, record.at.as_u64());
        self.running.insert((record.cpu, kind), Running { kind, timer, function, armed, line, at_ns });
    }

    fn end(&mut self, record: &Record<'_>, kind: TimerKind, timer: u64) {
        if self.running.get(&(record.cpu, kind)).is_some_and(|running| running.timer == timer) {
            self.write_running(record.cpu, kind, Some(record.at.as_u64()));
        }
    }

    fn write_running(&mut self, cpu: CpuId, kind: TimerKind, end_ns: Option<u64>) {
        if let Some(running) = self.running.remove(&(cpu, kind)) {
            self.write(cpu, &running, end_ns);
        }
    }

    fn write(&mut self, cpu: CpuId, ran: &Running, end_ns: Option<u64>) {
        let armed = ran.armed.as_ref();
        let side = armed.map(|armed| TimerSide::of(&self.isolated, armed.cpu, cpu));
        let base = armed.and_then(|armed| armed.base);
        self.rows.push(&[
            if ran.kind == TimerKind::Wheel { "timer" } else { "hrtimer" }.into(),
            ran.timer.into(),
            (&ran.function).into(),
            armed.map(|armed| armed.line).into(),
            armed.map(|armed| armed.at_ns).into(),
            armed.map(|armed| number_of(armed.cpu)).into(),
            armed.map(|armed| &armed.task).into(),
            base.map(number_of).into(),
            armed.and_then(|armed| armed.expires_jiffies).into(),
            armed.and_then(|armed| armed.pinned).into(),
            ran.line.into(),
            ran.at_ns.into(),
            number_of(cpu).into(),
            end_ns.and_then(|end| end.checked_sub(ran.at_ns)).into(),
            base.map(|base| base != cpu).into(),
            side.map(|side| side == Some(TimerSide::Foreign)).into(),
            side.map(|side| side == Some(TimerSide::BetweenIsolated)).into(),
        ]);
    }
}

impl Armed {
    fn at(record: &Record<'_>) -> Self {
        Self {
            line: record.line,
            at_ns: record.at.as_u64(),
            cpu: record.cpu,
            task: String::from_utf8_lossy(record.task.comm).into_owned(),
            base: None,
            expires_jiffies: None,
            pinned: None,
        }
    }
}
