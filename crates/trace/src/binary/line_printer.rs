//! One event as one line of text, as tracefs prints it.
//!
//! Source: Linux 6.18 Documentation/trace/ftrace.rst (the columns, their letters). Times have nine decimals,
//! as those of `trace-cmd report -t` do, where tracefs prints six.

use super::format::EventFormats;
use super::names::KernelNames;
use super::print::one_line;
use crate::line::Task;
use quietcore_core::CpuId;
use std::io::Write;

/// The kernel pads a task's name and its number to so many columns.
const COMM_COLUMNS: usize = 16;
const PID_COLUMNS: usize = 7;

/// Prints the events of a recording.
#[derive(Debug)]
pub(crate) struct LinePrinter {
    formats: EventFormats,
    names: KernelNames,
    /// Moments are in ns.
    has_unit: bool,
}

impl LinePrinter {
    pub(crate) fn new(formats: EventFormats, names: KernelNames) -> Self {
        Self { formats, names, has_unit: true }
    }

    /// The same, of a clock that counts something else than ns.
    pub(crate) fn without_unit(self) -> Self {
        Self { has_unit: false, ..self }
    }

    /// What functions and tasks are called.
    pub(crate) fn names_mut(&mut self) -> &mut KernelNames {
        &mut self.names
    }

    /// Prints an event that happened on `cpu` at `at`.
    pub(crate) fn print(&mut self, cpu: CpuId, at: u64, event: &[u8], text: &mut Vec<u8>) {
        let Self { formats, names, has_unit } = self;
        let format = formats.of(event);
        // Of a switch of tasks, the name of the one that the CPU was running.
        if let Some(format) = format {
            format.learn_tasks(event, names);
        }
        if let Some(common) = formats.common() {
            let pid = common.pid(event);
            write_task(Task { comm: names.task(pid), pid }, text);
            write_place(cpu, &common.letters(event), text);
            write_time(at, *has_unit, text);
        }
        match format {
            Some(format) => {
                text.extend_from_slice(format.name().as_bytes());
                text.extend_from_slice(b": ");
                format.write(event, names, text);
            }
            None => text.extend_from_slice(b"unknown_event:"),
        }
        text.push(b'\n');
    }

    /// Prints that events of `cpu` were lost; how many, if that is known.
    pub(crate) fn print_lost(&self, cpu: CpuId, count: Option<u64>, text: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = match count {
            Some(count) => writeln!(text, "CPU:{cpu} [LOST {count} EVENTS]"),
            None => writeln!(text, "CPU:{cpu} [LOST EVENTS]"),
        };
    }
}

/// What stands before an event of which it is not known what the CPU was doing: no letters.
pub(crate) fn write_columns(task: Task<'_>, cpu: CpuId, at: u64, text: &mut Vec<u8>) {
    write_task(task, text);
    write_place(cpu, b"", text);
    write_time(at, true, text);
}

/// `              sh-42      `
fn write_task(Task { comm, pid }: Task<'_>, text: &mut Vec<u8>) {
    text.resize(text.len() + COMM_COLUMNS.saturating_sub(comm.len()), b' ');
    let begun = text.len();
    text.extend_from_slice(comm);
    one_line(&mut text[begun..]);
    text.push(b'-');
    let begun = text.len();
    text.extend_from_slice(itoa::Buffer::new().format(pid).as_bytes());
    text.resize(text.len().max(begun + PID_COLUMNS), b' ');
}

/// ` [003] d.s2. `
fn write_place(cpu: CpuId, letters: &[u8], text: &mut Vec<u8>) {
    text.extend_from_slice(b" [");
    write_padded(cpu.index() as u64, 3, b'0', text);
    text.extend_from_slice(b"] ");
    text.extend_from_slice(letters);
    text.push(b' ');
}

/// `    0.008000000: `
fn write_time(at: u64, has_unit: bool, text: &mut Vec<u8>) {
    if has_unit {
        write_padded(at / 1_000_000_000, 5, b' ', text);
        text.push(b'.');
        write_padded(at % 1_000_000_000, 9, b'0', text);
    } else {
        write_padded(at, 12, b' ', text);
    }
    text.extend_from_slice(b": ");
}

fn write_padded(number: u64, width: usize, filling: u8, text: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number).as_bytes();
    text.resize(text.len() + width.saturating_sub(digits.len()), filling);
    text.extend_from_slice(digits);
}
