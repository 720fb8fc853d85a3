//! A row per event, with what events have in common and the fields that are asked for most.

use crate::layout::{Column, ColumnKind as Kind, TableLayout};
use crate::rows::{Cell, TableRows};
use quietcore_core::CpuId;
use quietcore_trace::{Event, HrtimerStart, IpiPurpose, Migration, Record, Task, TimerStart};
use std::borrow::Cow;

const COLUMNS: [Column; 21] = [
    Column::new("line", Kind::Unsigned, "Its line in the input, from 1."),
    Column::new("at_ns", Kind::Unsigned, "When, on the recording's clock."),
    Column::new("cpu", Kind::Cpu, "The CPU that it happened on."),
    Column::new("event", Kind::Text, "The tracepoint; null for one that quietcore has no type for."),
    Column::new("task", Kind::Text, "The task that the CPU was running; null where events were lost."),
    Column::new("pid", Kind::Signed, "Its thread id; 0 is the idle task."),
    Column::new("object", Kind::Unsigned, "The timer, hrtimer, work item or group, as the trace names it."),
    Column::new(
        "function",
        Kind::Text,
        "The callback, handler, purpose or text; null where it does not say.",
    ),
    Column::new("about_cpu", Kind::Cpu, "Whose base, the CPU that is woken, sent to, idle or chosen."),
    Column::new("other_task", Kind::Text, "The task that comes, is woken or moves."),
    Column::new("other_pid", Kind::Signed, "Its thread id."),
    Column::new("priority", Kind::Signed, "Its kernel priority: below 100 real-time or deadline."),
    Column::new("number", Kind::Unsigned, "Softirq vector, interrupt's number, idle state, or lost events."),
    Column::new("expires_jiffies", Kind::Unsigned, "When a wheel timer should run."),
    Column::new("timeout_jiffies", Kind::Signed, "That minus now; negative when it is already due."),
    Column::new("expires_ns", Kind::Unsigned, "The latest time of an hrtimer, on its own clock."),
    Column::new("pinned", Kind::Boolean, "Whether the timer is bound to its CPU."),
    Column::new("deferrable", Kind::Boolean, "Whether a wheel timer waits for its CPU to be awake."),
    Column::new(
        "begins",
        Kind::Boolean,
        "Of base and CPU idle: whether idle begins; of the tick: it stopped.",
    ),
    Column::new("took_ns", Kind::Unsigned, "How long it took, where the event says."),
    Column::new("lost", Kind::Boolean, "True: no event, a mark that events of this CPU were lost here."),
];

pub(crate) fn layouts() -> Vec<TableLayout> {
    vec![TableLayout::new("events", "One event of the recording.", &COLUMNS)]
}

/// What a row has beyond line, time, CPU and task.
#[derive(Debug, Default)]
struct EventFields<'a> {
    object: Option<u64>,
    function: Option<&'a [u8]>,
    about_cpu: Option<CpuId>,
    other: Option<Task<'a>>,
    priority: Option<i32>,
    number: Option<u64>,
    expires_jiffies: Option<u64>,
    timeout_jiffies: Option<i64>,
    expires_ns: Option<u64>,
    pinned: Option<bool>,
    deferrable: Option<bool>,
    begins: Option<bool>,
    took_ns: Option<u64>,
}

/// Rows of events, taken in batches.
#[derive(Debug)]
pub struct EventTable {
    rows: TableRows,
}

impl Default for EventTable {
    fn default() -> Self {
        Self::new()
    }
}

impl EventTable {
    /// Without rows.
    #[must_use]
    pub fn new() -> Self {
        Self { rows: TableRows::new(TableLayout::new("events", "One event of the recording.", &COLUMNS)) }
    }

    /// The rows so far.
    pub fn rows(&mut self) -> &mut TableRows {
        &mut self.rows
    }

    /// Adds the next event. Some hundreds of ns.
    pub fn take(&mut self, record: &Record<'_>) {
        let fields = fields(&record.event);
        let name = record.event.tracepoint();
        let is_lost = matches!(record.event, Event::Lost { .. });
        let task = (!is_lost).then(|| String::from_utf8_lossy(record.task.comm));
        let function = fields.function.and_then(text);
        let other = fields.other.map(|task| String::from_utf8_lossy(task.comm));
        self.rows.push(&[
            record.line.into(),
            record.at.as_u64().into(),
            number_of(record.cpu).into(),
            name.as_deref().into(),
            task.as_deref().into(),
            (!is_lost).then(|| i64::from(record.task.pid)).into(),
            fields.object.into(),
            function.as_deref().into(),
            fields.about_cpu.map(number_of).into(),
            other.as_deref().into(),
            fields.other.map(|task| i64::from(task.pid)).into(),
            fields.priority.map(i64::from).into(),
            fields.number.into(),
            fields.expires_jiffies.into(),
            fields.timeout_jiffies.into(),
            fields.expires_ns.into(),
            fields.pinned.into(),
            fields.deferrable.into(),
            fields.begins.into(),
            fields.took_ns.into(),
            Cell::Boolean(is_lost),
        ]);
    }
}

pub(crate) fn number_of(cpu: CpuId) -> u16 {
    cpu.index() as u16
}

/// Null where a format does not say the name.
fn text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes))
}

fn fields<'a>(event: &Event<'a>) -> EventFields<'a> {
    let none = EventFields::default();
    match *event {
        Event::TimerStart(start) => of_start(&start),
        Event::HrtimerStart(start) => of_hrtimer(&start),
        Event::TimerInit { timer } | Event::TimerCancel { timer } | Event::TimerExpireExit { timer } => {
            EventFields { object: Some(timer), ..none }
        }
        Event::TimerExpireEntry { timer, function, .. } => {
            EventFields { object: Some(timer), function: Some(function), ..none }
        }
        Event::HrtimerSetup { hrtimer }
        | Event::HrtimerCancel { hrtimer }
        | Event::HrtimerExpireExit { hrtimer } => EventFields { object: Some(hrtimer), ..none },
        Event::HrtimerExpireEntry { hrtimer, function, .. } => {
            EventFields { object: Some(hrtimer), function: Some(function), ..none }
        }
        Event::TimerBaseIdle { is_idle, cpu } => {
            EventFields { begins: Some(is_idle), about_cpu: Some(cpu), ..none }
        }
        Event::TickStop { success, dependency } => {
            EventFields { begins: Some(success), function: Some(dependency), ..none }
        }
        Event::CpuIdle { cpu, state } => EventFields {
            about_cpu: Some(cpu),
            number: state.map(u64::from),
            begins: Some(state.is_some()),
            ..none
        },
        Event::WorkQueue { work, function, cpu } => {
            EventFields { object: Some(work), function: Some(function), about_cpu: cpu, ..none }
        }
        Event::WorkStart { work, function } => {
            EventFields { object: Some(work), function: Some(function), ..none }
        }
        Event::WorkActivate { work } | Event::WorkEnd { work } => EventFields { object: Some(work), ..none },
        _ => of_task_or_interrupt(event),
    }
}

fn of_start<'a>(start: &TimerStart<'a>) -> EventFields<'a> {
    EventFields {
        object: Some(start.timer),
        function: Some(start.function),
        about_cpu: Some(start.base),
        expires_jiffies: Some(start.expires),
        timeout_jiffies: Some(start.timeout),
        pinned: Some(start.pinned),
        deferrable: Some(start.deferrable),
        ..EventFields::default()
    }
}

fn of_hrtimer<'a>(start: &HrtimerStart<'a>) -> EventFields<'a> {
    EventFields {
        object: Some(start.hrtimer),
        function: Some(start.function),
        expires_ns: Some(start.expires.as_u64()),
        pinned: start.pinned,
        ..EventFields::default()
    }
}

fn of_task_or_interrupt<'a>(event: &Event<'a>) -> EventFields<'a> {
    let none = EventFields::default();
    match *event {
        Event::SchedSwitch { next, next_priority, .. } => {
            EventFields { other: Some(next), priority: Some(next_priority), ..none }
        }
        Event::SchedWake { task, priority, target, .. } => {
            EventFields { other: Some(task), priority: Some(priority), about_cpu: Some(target), ..none }
        }
        Event::SchedMigrate { task, to, .. } => {
            EventFields { other: Some(task), about_cpu: Some(to), ..none }
        }
        Event::Softirq { vector, .. } => EventFields { number: Some(u64::from(vector)), ..none },
        Event::DeviceInterrupt { number, name, .. } => {
            EventFields { number: Some(number), function: Some(name), ..none }
        }
        Event::IpiHandled { reason, .. } => EventFields { function: Some(reason), ..none },
        Event::IpiSendCpu { to, purpose } => {
            EventFields { about_cpu: Some(to), function: Some(words(purpose)), ..none }
        }
        Event::IpiSendMask { purpose, .. } => EventFields { function: Some(words(purpose)), ..none },
        Event::CallQueued { to, function } => {
            EventFields { about_cpu: Some(to), function: Some(function), ..none }
        }
        Event::NmiHandled { handler, took } => {
            EventFields { function: Some(handler), took_ns: Some(took.as_u64()), ..none }
        }
        Event::Noise { name, took, .. } => {
            EventFields { function: Some(name), took_ns: Some(took.as_u64()), ..none }
        }
        Event::Mark { text } => EventFields { function: Some(text), ..none },
        Event::Lost { count } => EventFields { number: count, ..none },
        Event::Migration(Migration::Cpu { cpu, parent, .. } | Migration::ConnectCpu { cpu, parent, .. }) => {
            EventFields { about_cpu: Some(cpu), object: Some(parent), ..none }
        }
        Event::Migration(
            Migration::GroupSet { group, .. }
            | Migration::ConnectGroup { group, .. }
            | Migration::GroupState { group, .. }
            | Migration::UpdateEvents { group, .. }
            | Migration::HandleRemote { group, .. },
        ) => EventFields { object: Some(group), ..none },
        _ => none,
    }
}

/// What an interrupt is for: what is to be called, else what sends it, else the kernel's words.
fn words<'a>(purpose: IpiPurpose<'a>) -> &'a [u8] {
    let IpiPurpose { callsite, callback, reason } = purpose;
    [callback, callsite, reason].into_iter().find(|part| !part.is_empty()).unwrap_or_default()
}
