//! What took a CPU away from its tasks: interrupts, softirqs, and for how long each time.
//!
//! They lie on top of each other: an interrupt comes in a softirq, a handler in an interrupt. Each counts for
//! the time in which nothing else was on top of it, so that all of a CPU's together are what it lost. One
//! whose begin is not in the input is not counted; one whose end is not counts, and has no time. None is on
//! top of itself: where a second one begins, the end of the first is missing. A mark of lost events ends all
//! that are open on its CPU, and so does a switch of tasks, which neither an interrupt nor a softirq lets
//! happen. (On PREEMPT_RT softirqs run in tasks: one that another task interrupts has no time.) Counted of
//! isolated CPUs; of all where none is.
//!
//! Source: Linux 6.12, kernel/trace/trace_osnoise.c, which takes the time of what comes on top off what is
//! below in the same way. Deviation: from events of a recording, by name, and softirqs by vector.

use super::report::Interruption;
use hdrhistogram::Histogram;
use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_trace::{Event, NameId, NameTable, Record, SoftirqStep, SpanStep};

/// So many are open at once at most, of a hostile input: more are ends that are missing.
const OPEN_MAX: usize = 64;
/// So many rows are kept; what finds no room is counted under a name of its own, by CPU and source.
const ROWS_MAX: usize = 2_048;

/// Keys of the processor's interrupts that are named by a reason, and of what finds no room.
const SENT: u64 = 1 << 32;
const OTHERS: u64 = u64::MAX;

/// The softirqs' names, by vector.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// A device's interrupt.
    Device,
    /// An interrupt that no device raised: the CPU's timer, or another CPU.
    Processor,
    Softirq,
    /// An interrupt that cannot be masked.
    Nmi,
}

impl Source {
    const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Processor => "processor",
            Self::Softirq => "softirq",
            Self::Nmi => "nmi",
        }
    }
}

/// What tells one thing from the others of its CPU: its source, and the number of an interrupt, a vector, or
/// a name.
type ThingKey = (Source, u64);

/// It has begun and not ended.
#[derive(Debug)]
struct Open {
    key: ThingKey,
    row: usize,
    since: Nanos,
    /// How long others were on top of it so far.
    above: u64,
}

/// All of a CPU that have the same name.
#[derive(Debug)]
struct Row {
    cpu: CpuId,
    source: Source,
    name: NameId,
    count: u64,
    /// Of those whose end was seen.
    total: u64,
    max: u64,
    /// When the longest one ended, and in which line.
    max_at: Nanos,
    max_line: u64,
    took: Histogram<u32>,
}

/// What is known of one CPU.
#[derive(Debug, Default)]
struct WatchedCpu {
    /// The last on top.
    open: Vec<Open>,
    /// Where each thing's row is; few, so they are looked through.
    rows: Vec<(ThingKey, usize)>,
}

fn softirq(vector: u8) -> &'static [u8] {
    SOFTIRQS.get(usize::from(vector)).copied().unwrap_or("(unknown)").as_bytes()
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct InterruptionCounts {
    cpus: Vec<WatchedCpu>,
    rows: Vec<Row>,
}

impl InterruptionCounts {
    /// Takes an event of a CPU that is watched: an isolated one, or any where none is.
    pub(super) fn take(&mut self, record: &Record<'_>, isolated: &CpuSet, names: &mut NameTable) {
        if !isolated.is_empty() && !isolated.contains(record.cpu) {
            return;
        }
        match record.event {
            Event::DeviceInterrupt { step: SpanStep::Entry, number, name } => {
                // Devices may share an interrupt: each handler has a row.
                let name = names.number(&[number.to_string().as_bytes(), b" ", name].concat());
                let row = self.row(record.cpu, (Source::Device, u64::from(name.get())), || name);
                self.begin(record, (Source::Device, number), row);
            }
            Event::DeviceInterrupt { step: SpanStep::Exit, number, .. } => {
                self.end(record, (Source::Device, number));
            }
            Event::SystemInterrupt { step, interrupt } => {
                let name = || names.number(interrupt.name().as_bytes());
                self.step(record, step, (Source::Processor, interrupt as u64), name);
            }
            Event::IpiHandled { step, reason } => {
                let name = names.number(reason);
                self.step(record, step, (Source::Processor, SENT + u64::from(name.get())), || name);
            }
            Event::Softirq { step, vector } => {
                let step = match step {
                    SoftirqStep::Raise => return,
                    SoftirqStep::Entry => SpanStep::Entry,
                    SoftirqStep::Exit => SpanStep::Exit,
                };
                let name = || names.number(softirq(vector));
                self.step(record, step, (Source::Softirq, u64::from(vector)), name);
            }
            Event::NmiHandled { handler, took } => {
                let name = names.number(handler);
                let row = self.row(record.cpu, (Source::Nmi, u64::from(name.get())), || name);
                self.rows[row].count += 1;
                self.rows[row].add(record, took.0);
                self.of(record.cpu).cover(took.0);
            }
            _ => {}
        }
    }

    /// Events were lost on this CPU, or it went to another task: nothing is open there, as far as is known.
    pub(super) fn forget(&mut self, record: &Record<'_>) {
        self.of(record.cpu).open.clear();
    }

    fn of(&mut self, cpu: CpuId) -> &mut WatchedCpu {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize_with(cpu.index() + 1, WatchedCpu::default);
        }
        &mut self.cpus[cpu.index()]
    }

    fn step(&mut self, record: &Record<'_>, step: SpanStep, key: ThingKey, name: impl FnOnce() -> NameId) {
        match step {
            SpanStep::Entry => {
                let row = self.row(record.cpu, key, name);
                self.begin(record, key, row);
            }
            SpanStep::Exit => self.end(record, key),
        }
    }

    fn begin(&mut self, record: &Record<'_>, key: ThingKey, row: usize) {
        self.rows[row].count += 1;
        self.of(record.cpu).begin(Open { key, row, since: record.at, above: 0 });
    }

    fn end(&mut self, record: &Record<'_>, key: ThingKey) {
        if let Some((row, own)) = self.of(record.cpu).end(key, record.at) {
            self.rows[row].add(record, own);
        }
    }

    /// Where the row of a thing is; of one that finds no room, that of all such of its CPU and source.
    fn row(&mut self, cpu: CpuId, key: ThingKey, name: impl FnOnce() -> NameId) -> usize {
        let known = |key| move |(of, row): &(ThingKey, usize)| (*of == key).then_some(*row);
        if let Some(row) = self.of(cpu).rows.iter().find_map(known(key)) {
            return row;
        }
        let is_full = self.rows.len() >= ROWS_MAX;
        let (key, name) = if is_full { ((key.0, OTHERS), NameTable::OTHER) } else { (key, name()) };
        if let Some(row) = self.of(cpu).rows.iter().find_map(known(key)).filter(|_| is_full) {
            return row;
        }
        let row = self.rows.len();
        self.rows.push(Row::new(cpu, key.0, name));
        self.of(cpu).rows.push((key, row));
        row
    }

    /// All rows that `is_known` says the input can support, by CPU, source and name.
    pub(super) fn report(&self, names: &NameTable, is_known: impl Fn(&str) -> bool) -> Vec<Interruption> {
        let known = self.rows.iter().filter(|row| is_known(row.source.name()));
        let row = |row: &Row| {
            let measured = |value| (!row.took.is_empty()).then_some(value);
            Interruption {
                cpu: row.cpu.index() as u16,
                source: row.source.name(),
                name: names.text(row.name),
                count: row.count,
                total_ns: measured(row.total),
                p99_ns: measured(row.took.value_at_quantile(0.99).min(row.max)),
                max_ns: measured(row.max),
                max_at_ns: measured(row.max_at.0),
                max_line: measured(row.max_line),
            }
        };
        let mut rows: Vec<Interruption> = known.map(row).collect();
        rows.sort_by(|one, two| (one.cpu, one.source, &one.name).cmp(&(two.cpu, two.source, &two.name)));
        rows
    }
}

impl WatchedCpu {
    fn begin(&mut self, thing: Open) {
        self.open.retain(|open| open.key != thing.key);
        if self.open.len() >= OPEN_MAX {
            self.open.clear();
        }
        self.open.push(thing);
    }

    /// Its row, and how long nothing was on top of it; `None` if it began before the input did.
    fn end(&mut self, key: ThingKey, now: Nanos) -> Option<(usize, u64)> {
        let place = self.open.iter().rposition(|open| open.key == key)?;
        // What was on top of it has ended, too, and no event said so.
        self.open.truncate(place + 1);
        let Open { row, since, above, .. } = self.open.pop()?;
        let all = now.since(since).0;
        self.cover(all);
        Some((row, all.saturating_sub(above)))
    }

    /// What is on top was not there for so long.
    fn cover(&mut self, nanos: u64) {
        if let Some(below) = self.open.last_mut() {
            below.above = below.above.saturating_add(nanos);
        }
    }
}

impl Row {
    fn new(cpu: CpuId, source: Source, name: NameId) -> Self {
        let took = Histogram::new(2).expect("2 significant digits are in range");
        Self { cpu, source, name, count: 0, total: 0, max: 0, max_at: Nanos(0), max_line: 0, took }
    }

    fn add(&mut self, record: &Record<'_>, took: u64) {
        self.total = self.total.saturating_add(took);
        if took >= self.max {
            (self.max, self.max_at, self.max_line) = (took, record.at, record.line);
        }
        // The histogram grows to any value, so recording cannot fail.
        let recorded = self.took.record(took);
        debug_assert!(recorded.is_ok(), "a growing histogram takes every value");
    }
}

#[cfg(test)]
mod tests {
    use super::{CpuId, CpuSet, Event, InterruptionCounts, NameTable, Nanos, Record, SoftirqStep, SpanStep};
    use quietcore_trace::{SystemInterrupt, Task};

    fn record(cpu: u64, at: u64, event: Event<'_>) -> Record<'_> {
        let cpu = CpuId::new(cpu).expect("a small number");
        Record { line: at, task: Task { comm: b"", pid: 0 }, cpu, context: None, at: Nanos(at), event }
    }

    fn device(step: SpanStep) -> Event<'static> {
        Event::DeviceInterrupt { step, number: 27, name: b"eth0" }
    }

    fn timer(step: SpanStep) -> Event<'static> {
        Event::SystemInterrupt { step, interrupt: SystemInterrupt::LocalTimer }
    }

    fn softirq(step: SoftirqStep) -> Event<'static> {
        Event::Softirq { step, vector: 3 }
    }

    fn called(step: SpanStep) -> Event<'static> {
        Event::IpiHandled { step, reason: b"Function call interrupts" }
    }

    /// `cpu source name: count, total, longest at line` of each row.
    fn rows(isolated: &str, events: &[(u64, u64, Event<'_>)]) -> Vec<String> {
        let (mut counts, mut names) = (InterruptionCounts::default(), NameTable::new());
        let isolated: CpuSet = isolated.parse().expect("a list");
        for (cpu, at, event) in events {
            let record = record(*cpu, *at, event.clone());
            match event {
                Event::Lost { .. } | Event::SchedSwitch { .. } => counts.forget(&record),
                _ => counts.take(&record, &isolated, &mut names),
            }
        }
        let row = |row: super::Interruption| {
            let super::Interruption { cpu, source, name, count, .. } = row;
            let measured = (row.total_ns, row.max_ns, row.max_line);
            let (Some(total), Some(max), Some(line)) = measured else {
                assert_eq!((measured, row.p99_ns), ((None, None, None), None));
                return format!("{cpu} {source} {name}: {count}");
            };
            format!("{cpu} {source} {name}: {count}, {total}, {max} at {line}")
        };
        counts.report(&names, |_| true).into_iter().map(row).collect()
    }

    const ENTRY: SpanStep = SpanStep::Entry;
    const EXIT: SpanStep = SpanStep::Exit;

    /// Goal: each counts for the time in which nothing was on top of it. Method: a softirq, in it an
    /// interrupt of a device, in that a handler of what cannot be masked; and a second softirq.
    #[test]
    fn what_is_on_top_is_not_counted_below() {
        let events = [
            (1, 1_000, softirq(SoftirqStep::Raise)),
            (1, 1_000, softirq(SoftirqStep::Entry)),
            (1, 1_300, device(ENTRY)),
            (1, 1_450, Event::NmiHandled { handler: b"watchdog", took: Nanos(40) }),
            (1, 1_500, device(EXIT)),
            (1, 2_000, softirq(SoftirqStep::Exit)),
            (1, 3_000, softirq(SoftirqStep::Entry)),
            (1, 3_900, softirq(SoftirqStep::Exit)),
        ];
        let expected = [
            "1 device 27 eth0: 1, 160, 160 at 1500",
            "1 nmi watchdog: 1, 40, 40 at 1450",
            "1 softirq NET_RX: 2, 1700, 900 at 3900",
        ];
        assert_eq!(rows("1", &events), expected);
    }

    /// Goal: what has no begin is not counted; what has no end, or lost events before it, has no time; either
    /// leaves what is around it as it is. Method: each of them, on one of two CPUs.
    #[test]
    fn what_is_not_whole_has_no_time() {
        let task = Task { comm: b"a", pid: 1 };
        let switch = Event::SchedSwitch { previous: task, next: task, next_priority: 120 };
        let events = [
            (1, 1_000, device(EXIT)), // began earlier
            (1, 2_000, timer(ENTRY)),
            (1, 2_100, device(ENTRY)), // its end is missing
            (1, 2_400, timer(EXIT)),
            (2, 3_000, timer(ENTRY)),
            (1, 3_000, called(ENTRY)),
            (1, 3_500, Event::Lost { count: None }),
            (1, 4_000, called(EXIT)),
            (2, 4_000, timer(EXIT)),
            (1, 5_000, called(ENTRY)),
            (1, 6_000, called(ENTRY)), // the end of the one before is missing
            (1, 6_020, called(EXIT)),
            (1, 7_000, called(ENTRY)),
            (1, 8_000, switch), // it cannot be open here
            (1, 9_000, called(EXIT)),
            (1, 9_500, called(ENTRY)), // open at the end
        ];
        let expected = [
            "1 device 27 eth0: 1",
            "1 processor Function call interrupts: 5, 20, 20 at 6020",
            "1 processor local_timer: 1, 400, 400 at 2400",
            "2 processor local_timer: 1, 1000, 1000 at 4000",
        ];
        assert_eq!(rows("1-2", &events), expected);
    }

    /// Goal: handlers that share an interrupt have a row each. Method: two of one number, in turn.
    #[test]
    fn handlers_share_an_interrupt() {
        let handler = |name| Event::DeviceInterrupt { step: ENTRY, number: 9, name };
        let leave = || Event::DeviceInterrupt { step: EXIT, number: 9, name: b"" };
        let events =
            [(1, 10, handler(b"acpi")), (1, 14, leave()), (1, 14, handler(b"i2c")), (1, 20, leave())];
        assert_eq!(rows("1", &events), ["1 device 9 acpi: 1, 4, 4 at 14", "1 device 9 i2c: 1, 6, 6 at 20"]);
    }

    /// Goal: isolated CPUs are watched, and all where none is. Method: an interrupt on each of two.
    #[test]
    fn isolated_cpus_are_watched_or_all() {
        let events = [0, 1].map(|cpu| [(cpu, 10, called(ENTRY)), (cpu, 30 + cpu, called(EXIT))]).concat();
        let [first, second] = [
            "0 processor Function call interrupts: 1, 20, 20 at 30",
            "1 processor Function call interrupts: 1, 21, 21 at 31",
        ];
        assert_eq!(rows("1", &events), [second]);
        assert_eq!(rows("", &events), [first, second]);
    }

    /// Goal: a hostile input does not make the tables long. Method: more begins than lie on top of each
    /// other, and more names than rows.
    #[test]
    fn tables_are_bounded() {
        let begins = (0..100)
            .map(|number| (1, number, Event::Softirq { step: SoftirqStep::Entry, vector: number as u8 }));
        let begins: Vec<_> = begins.chain([(1, 200, softirq(SoftirqStep::Exit))]).collect();
        assert!(rows("1", &begins).contains(&"1 softirq NET_RX: 1".to_owned()), "it was forgotten");
        let names: Vec<String> = (0..super::ROWS_MAX + 5).map(|number| format!("handler_{number}")).collect();
        let nmi = |name: &'_ String| {
            (1, 7, Event::NmiHandled { handler: name.as_bytes().to_vec().leak(), took: Nanos(3) })
        };
        let many: Vec<_> = names.iter().map(nmi).collect();
        let rows = rows("1", &many);
        assert_eq!(rows.len(), super::ROWS_MAX + 1);
        assert!(rows.contains(&"1 nmi (other): 5, 15, 3 at 7".to_owned()), "{:?}", rows.first());
    }
}
