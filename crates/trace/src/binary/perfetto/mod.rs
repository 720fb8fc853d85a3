//! Traces of Perfetto with events of the kernel (its data source `linux.ftrace`).
//!
//! A trace is a sequence of packets, read from the front, so it may come from a pipe. A packet with events
//! has those of one CPU, so the file is in the order of time only from one reading of all CPUs to the next.
//! Events wait until so many have come that no earlier one can: up to [`WAITING_BYTES_MAX`]. If more come
//! between two readings, time may run back, which the reader tells.
//!
//! Not there: what the CPU was doing (the letters of a line), so a line has none; events that Perfetto has no
//! message for, as `timer_migration:*`, which it stores without the kernel's words.
//!
//! Source: Perfetto's published schema, the PyPI package `perfetto`, `perfetto_trace_pb2` (Apache-2.0).

mod bundle;
mod events;
mod packets;
mod symbols;
mod wire;

use super::bytes::invalid;
use super::line_printer::write_columns;
use super::names::KernelNames;
use super::print::one_line;
use super::text_block::TextBlock;
use crate::line::Task;
use bundle::{BundleCursor, BundledItem, NamedTask};
use packets::PerfettoPackets;
use quietcore_core::CpuId;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use symbols::PerfettoSymbols;
use wire::{BrokenMessage, WireFields};

pub(crate) use packets::begins_with_packet;

/// Events that wait for their turn need so many bytes at most.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// What an event needs besides its text.
const WAITING_BYTES_EACH: usize = 160;

/// Field numbers of messages.
mod field {
    /// `TracePacket`.
    pub(super) const FTRACE_EVENTS: u32 = 1;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const INTERNED_DATA: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const FTRACE_STATS: u32 = 34;
    pub(super) const SYSTEM_INFO: u32 = 45;
    /// A flag: names that were numbered before are void.
    pub(super) const STATE_CLEARED: u64 = 1;

    /// `FtraceStats`, its phase at the end of a trace, `FtraceCpuStats`.
    pub(super) const PHASE: u32 = 1;
    pub(super) const END_OF_TRACE: u64 = 2;
    pub(super) const CPU_STATS: u32 = 2;
    pub(super) const STATS_CPU: u32 = 1;
    pub(super) const OVERRUN: u32 = 3;
    pub(super) const DROPPED: u32 = 8;

    /// `SystemInfo`, `Utsname`.
    pub(super) const UTSNAME: u32 = 1;
    pub(super) const CPUS: u32 = 8;
    pub(super) const RELEASE: u32 = 3;
    pub(super) const MACHINE: u32 = 4;
}

/// The text of a trace, of which packets that are compressed may expand so many times.
pub(crate) fn read(file: impl Read + 'static, expansion_max: u32) -> impl Read {
    PerfettoText {
        packets: PerfettoPackets::new(file, expansion_max),
        bundle: None,
        symbols: PerfettoSymbols::default(),
        names: KernelNames::default(),
        waiting: WaitingItems::default(),
        cpus: Vec::new(),
        system: PerfettoSystem::default(),
        is_over: false,
        has_begun: false,
        text: TextBlock::default(),
    }
}

/// Events that others may still come before, in the order of time, and in that of the file where it is equal.
#[derive(Debug, Default)]
struct WaitingItems {
    items: BTreeMap<(u64, u64), (CpuId, BundledItem)>,
    bytes: usize,
    count: u64,
}

impl WaitingItems {
    fn add(&mut self, at: u64, cpu: CpuId, item: BundledItem) {
        self.bytes += Self::bytes(&item);
        self.count += 1;
        self.items.insert((at, self.count), (cpu, item));
    }

    fn take(&mut self) -> Option<(u64, CpuId, BundledItem)> {
        let ((at, _), (cpu, item)) = self.items.pop_first()?;
        self.bytes -= Self::bytes(&item);
        Some((at, cpu, item))
    }

    fn bytes(item: &BundledItem) -> usize {
        let text = if let BundledItem::Event { text, .. } = item { text.len() } else { 0 };
        text + WAITING_BYTES_EACH
    }
}

/// What is known of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct PerfettoCpu {
    /// What it runs.
    task: Option<NamedTask>,
    /// Events lost when the trace began, and when it ended.
    lost_before: u64,
    lost: u64,
    /// A bundle without events says that some were lost: those before the next one.
    owes_mark: bool,
    /// Marks that were printed without a number; each is of one event at least.
    marks: u64,
}

/// The machine that was traced.
#[derive(Debug, Default)]
struct PerfettoSystem {
    release: String,
    machine: String,
    /// How many CPUs it has, if that is said.
    cpus: u64,
}

/// See the module.
#[derive(Debug)]
struct PerfettoText<F> {
    packets: PerfettoPackets<F>,
    bundle: Option<BundleCursor>,
    symbols: PerfettoSymbols,
    names: KernelNames,
    waiting: WaitingItems,
    cpus: Vec<PerfettoCpu>,
    system: PerfettoSystem,
    is_over: bool,
    /// Whether the first line was written.
    has_begun: bool,
    text: TextBlock,
}

impl<F: Read> PerfettoText<F> {
    /// Makes the next piece of text, if there is any.
    fn fill(&mut self) -> io::Result<()> {
        self.text.begin();
        while !self.text.is_full() {
            if !self.is_over && self.waiting.bytes <= WAITING_BYTES_MAX {
                self.take_next()?;
                continue;
            }
            let next = self.waiting.take();
            if !std::mem::replace(&mut self.has_begun, true) {
                if next.is_none() {
                    return Err(invalid(
                        "it holds no events of the kernel: record with Perfetto's data source linux.ftrace",
                    ));
                }
                self.write_first_line();
            }
            match next {
                Some((at, cpu, item)) => self.print(at, cpu, item),
                None => {
                    self.write_losses();
                    break;
                }
            }
        }
        Ok(())
    }

    /// Takes an event of the bundle, or the next packet.
    fn take_next(&mut self) -> io::Result<()> {
        if let Some(bundle) = &mut self.bundle {
            let next = bundle.next(&mut self.symbols).map_err(|broken| broken.near(self.packets.place()))?;
            match next {
                Some((at, item)) => {
                    let cpu = bundle.cpu;
                    self.waiting.add(at, cpu, item);
                }
                None => {
                    cpu_mut(&mut self.cpus, bundle.cpu).owes_mark = bundle.has_lost;
                    self.bundle = None;
                }
            }
            return Ok(());
        }
        let Self { packets, symbols, system, cpus, bundle, .. } = self;
        let Some(packet) = packets.next()? else {
            self.is_over = true;
            return Ok(());
        };
        let read = read_packet(packet, symbols, system, cpus);
        *bundle = read.map_err(|broken| broken.near(self.packets.place()))?;
        if let Some(bundle) = bundle {
            bundle.has_lost |= cpu_mut(cpus, bundle.cpu).owes_mark;
        }
        Ok(())
    }

    /// As a `trace.dat` has it.
    fn write_first_line(&mut self) {
        let PerfettoSystem { release, machine, cpus } = &self.system;
        let text = self.text.text_mut();
        // Writing to memory does not fail.
        let _ = write!(text, "cpus={}", (*cpus).max(self.cpus.len() as u64));
        if !release.is_empty() {
            let begun = text.len();
            let _ = write!(text, "; uname: Linux perfetto {release} {machine}");
            one_line(&mut text[begun..]);
        }
        if self.symbols.is_one_unnamed {
            text.extend_from_slice(b"; functions have no names");
        }
        text.push(b'\n');
    }

    fn print(&mut self, at: u64, cpu: CpuId, item: BundledItem) {
        let Self { names, cpus, text, .. } = self;
        let (of_cpu, text) = (cpu_mut(cpus, cpu), text.text_mut());
        let running = &mut of_cpu.task;
        match item {
            BundledItem::Lost => {
                *running = None;
                of_cpu.marks += 1;
                let _ = writeln!(text, "CPU:{cpu} [LOST EVENTS]");
            }
            BundledItem::Event { pid, text: event } => {
                let comm = names.task(pid);
                if running.is_none_or(|running| running.pid != pid) {
                    *running = Some(NamedTask::new(pid, None, comm));
                }
                write_columns(Task { comm, pid }, cpu, at, text);
                text.extend_from_slice(&event);
                text.push(b'\n');
            }
            BundledItem::Waking { task, target } => {
                names.learn_task(task.pid, task.comm());
                let waker = running.map(|running| running.pid);
                let pid = waker.unwrap_or(0);
                let comm = if waker.is_none() { &b"<...>"[..] } else { names.task(pid) };
                write_columns(Task { comm, pid }, cpu, at, text);
                // What woke it is not known: the event is counted under a name of its own.
                let name = if waker.is_some() { "sched_waking" } else { "sched_waking_by_unknown_task" };
                let _ = write!(text, "{name}: comm=");
                write_comm(&task, text);
                let (pid, priority) = (task.pid, task.priority.unwrap_or(0));
                let _ = writeln!(text, " pid={pid} prio={priority} target_cpu={target:03}");
            }
            BundledItem::Switch { previous, state, next } => {
                for task in previous.iter().chain([&next]) {
                    names.learn_task(task.pid, task.comm());
                }
                let before = previous.or(*running);
                *running = Some(next);
                let of_line = before.unwrap_or(next).pid;
                write_columns(Task { comm: names.task(of_line), pid: of_line }, cpu, at, text);
                match before {
                    Some(before) => write_switch(&before, state, text),
                    // Which task it was is not known: the event is counted under a name of its own.
                    None => text.extend_from_slice(b"sched_switch_from_unknown_task: "),
                }
                text.extend_from_slice(b"next_comm=");
                write_comm(&next, text);
                let _ = writeln!(text, " next_pid={} next_prio={}", next.pid, next.priority.unwrap_or(0));
            }
        }
    }

    /// What the counts at the end say beyond those at the begin.
    fn write_losses(&mut self) {
        for (index, cpu) in self.cpus.iter_mut().enumerate() {
            let count = cpu.lost.saturating_sub(cpu.lost_before);
            cpu.lost = cpu.lost_before;
            if std::mem::take(&mut cpu.owes_mark) {
                let _ = writeln!(self.text.text_mut(), "CPU:{index} [LOST EVENTS]");
                cpu.marks += 1;
            }
            // Those of the marks are among them.
            let count = count.saturating_sub(std::mem::take(&mut cpu.marks));
            if count > 0 {
                let _ = writeln!(self.text.text_mut(), "CPU:{index} [LOST {count} EVENTS]");
            }
        }
    }
}

impl BrokenMessage {
    fn near(self, place: u64) -> io::Error {
        invalid(format!("the packet that ends at byte {place} is broken"))
    }
}

fn cpu_mut(cpus: &mut Vec<PerfettoCpu>, cpu: CpuId) -> &mut PerfettoCpu {
    if cpus.len() <= cpu.index() {
        cpus.resize(cpu.index() + 1, PerfettoCpu::default());
    }
    &mut cpus[cpu.index()]
}

/// The events that a packet holds; what else it says is kept.
fn read_packet(
    packet: &[u8],
    symbols: &mut PerfettoSymbols,
    system: &mut PerfettoSystem,
    cpus: &mut Vec<PerfettoCpu>,
) -> Result<Option<BundleCursor>, BrokenMessage> {
    let (mut sequence, mut is_cleared) = (0, false);
    let (mut interned, mut bundle) = (None, None);
    for next in WireFields::of(packet) {
        match next? {
            (field::SEQUENCE, value) => sequence = value.number().unwrap_or(0),
            (field::SEQUENCE_FLAGS, value) => {
                is_cleared = value.number().unwrap_or(0) & field::STATE_CLEARED != 0;
            }
            (field::INTERNED_DATA, value) => interned = value.bytes(),
            (field::FTRACE_EVENTS, value) => bundle = value.bytes(),
            (field::FTRACE_STATS, value) => read_stats(value.bytes().unwrap_or_default(), cpus)?,
            (field::SYSTEM_INFO, value) => system.read(value.bytes().unwrap_or_default())?,
            _ => {}
        }
    }
    if is_cleared {
        symbols.forget(sequence);
    }
    symbols.learn(sequence, interned.unwrap_or_default())?;
    bundle.map(|bundle| BundleCursor::new(bundle, sequence)).transpose()
}

/// How many events were lost on each CPU, up to the begin of the trace, or to its end.
fn read_stats(stats: &[u8], cpus: &mut Vec<PerfettoCpu>) -> Result<(), BrokenMessage> {
    let mut is_end = false;
    for next in WireFields::of(stats) {
        match next? {
            (field::PHASE, value) => is_end = value.number() == Some(field::END_OF_TRACE),
            (field::CPU_STATS, value) => {
                let (mut cpu, mut lost) = (0, 0_u64);
                for next in WireFields::of(value.bytes().unwrap_or_default()) {
                    let (number, value) = next?;
                    match number {
                        field::STATS_CPU => cpu = value.number().unwrap_or(0),
                        field::OVERRUN | field::DROPPED => {
                            lost = lost.saturating_add(value.number().unwrap_or(0));
                        }
                        _ => {}
                    }
                }
                let cpu = cpu_mut(cpus, CpuId::new(cpu).map_err(|_| BrokenMessage)?);
                if is_end {
                    cpu.lost = cpu.lost.max(lost);
                } else {
                    cpu.lost_before = lost;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl PerfettoSystem {
    fn read(&mut self, info: &[u8]) -> Result<(), BrokenMessage> {
        for next in WireFields::of(info) {
            let (number, value) = next?;
            if number == field::CPUS {
                self.cpus = value.number().unwrap_or(0);
            }
            if number != field::UTSNAME {
                continue;
            }
            for next in WireFields::of(value.bytes().unwrap_or_default()) {
                let (number, value) = next?;
                let text = || String::from_utf8_lossy(value.bytes().unwrap_or_default()).replace(' ', "_");
                match number {
                    field::RELEASE => self.release = text(),
                    field::MACHINE => self.machine = text(),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// `sched_switch: prev_comm=sh prev_pid=42 prev_prio=120 prev_state=S ==> `
fn write_switch(previous: &NamedTask, state: u64, text: &mut Vec<u8>) {
    /// States of a task that does not run; a task that was preempted has none of them and `+`.
    const STATES: [&str; 8] = ["S", "D", "T", "t", "X", "Z", "P", "I"];
    const PREEMPTED: u64 = 0x100;
    text.extend_from_slice(b"sched_switch: prev_comm=");
    write_comm(previous, text);
    // Writing to memory does not fail.
    let _ = write!(text, " prev_pid={}", previous.pid);
    if let Some(priority) = previous.priority {
        let _ = write!(text, " prev_prio={priority}");
    }
    let states = (0..).zip(STATES).filter(|(bit, _)| state >> bit & 1 == 1).map(|(_, state)| state);
    let states: Vec<_> = states.collect();
    let states = if states.is_empty() { "R".to_owned() } else { states.join("|") };
    let _ = write!(text, " prev_state={states}{} ==> ", if state & PREEMPTED == 0 { "" } else { "+" });
}

fn write_comm(task: &NamedTask, text: &mut Vec<u8>) {
    let begun = text.len();
    text.extend_from_slice(task.comm());
    one_line(&mut text[begun..]);
}

impl<F: Read> Read for PerfettoText<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.text.is_empty() {
            self.fill()?;
        }
        Ok(self.text.hand_out(buffer))
    }
}

#[cfg(test)]
mod tests;
