//! What a bundle holds: events of one CPU, each in a message, and switches and wake-ups of tasks in columns.
//!
//! Perfetto writes switches and wake-ups as columns of numbers (`CompactSched`), in which each time is the
//! distance from the one before and a name is a number; which task ran before a switch, and which one woke
//! another, is what the events before it say. A bundle is taken apart one event at a time, so its size does
//! not count for memory more than once.

use super::events::{EventFields, write_event};
use super::symbols::{PerfettoSymbols, SequenceSymbols};
use super::wire::{BrokenMessage, WireFields, varint};
use quietcore_core::CpuId;

/// A task's name has so many bytes at most, with its zero.
const COMM_BYTES: usize = 16;
/// Different names in the columns of one bundle.
const COMMS_MAX: usize = 65_536;
/// `FtraceEvent.sched_switch`.
const SCHED_SWITCH: u32 = 4;

/// `FtraceEventBundle`.
mod field {
    pub(super) const CPU: u32 = 1;
    pub(super) const EVENT: u32 = 2;
    pub(super) const LOST_EVENTS: u32 = 3;
    pub(super) const COMPACT_SCHED: u32 = 4;

    /// `FtraceEvent`.
    pub(super) const TIMESTAMP: u32 = 1;
    pub(super) const PID: u32 = 2;
    pub(super) const COMMON_FLAGS: u32 = 5;

    /// `CompactSched`: the names, and the columns of both kinds; times first.
    pub(super) const NAMES: u32 = 5;
    pub(super) const SWITCHES: [u32; 5] = [1, 2, 3, 4, 6];
    pub(super) const WAKINGS: [u32; 5] = [7, 8, 9, 10, 11];
}

/// A task, as a switch or a wake-up names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamedTask {
    pub(super) pid: i32,
    /// If it is known.
    pub(super) priority: Option<i32>,
    comm: [u8; COMM_BYTES],
}

impl NamedTask {
    pub(super) fn new(pid: i32, priority: Option<i32>, comm: &[u8]) -> Self {
        let mut task = Self { pid, priority, comm: [0; COMM_BYTES] };
        let length = comm.len().min(COMM_BYTES - 1);
        task.comm[..length].copy_from_slice(&comm[..length]);
        task
    }

    pub(super) fn comm(&self) -> &[u8] {
        &self.comm[..memchr::memchr(0, &self.comm).unwrap_or(COMM_BYTES)]
    }
}

/// What happened on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BundledItem {
    /// Events before this moment were lost.
    Lost,
    /// From one task to the next; in columns the first is not named.
    Switch { previous: Option<NamedTask>, state: u64, next: NamedTask },
    /// A wake-up from a column: who wakes is not named.
    Waking { task: NamedTask, target: u64 },
    /// Any other event, in the kernel's words.
    Event { pid: i32, text: Box<[u8]> },
}

/// A part of the bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    at: usize,
    end: usize,
}

/// Columns, of which some rows were taken.
#[derive(Clone, Copy, Debug, Default)]
struct CompactColumns {
    columns: [Part; 5],
    /// The time of the last row.
    at: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct BundleCursor {
    bytes: Vec<u8>,
    pub(super) cpu: CpuId,
    sequence: u64,
    /// A mark of lost events comes before the first event.
    pub(super) has_lost: bool,
    events_at: usize,
    switches: CompactColumns,
    wakings: CompactColumns,
    comms: Vec<Part>,
}

impl BundleCursor {
    pub(super) fn new(bytes: &[u8], sequence: u64) -> Result<Self, BrokenMessage> {
        let mut cursor = Self {
            bytes: bytes.to_vec(),
            cpu: CpuId::default(),
            sequence,
            has_lost: false,
            events_at: 0,
            switches: CompactColumns::default(),
            wakings: CompactColumns::default(),
            comms: Vec::new(),
        };
        let mut fields = WireFields::of(bytes);
        while let Some(next) = fields.next() {
            let (number, value) = next?;
            match number {
                field::CPU => {
                    let cpu = value.number().and_then(|cpu| CpuId::new(cpu).ok());
                    cursor.cpu = cpu.ok_or(BrokenMessage)?;
                }
                field::LOST_EVENTS => cursor.has_lost = value.number() == Some(1),
                field::COMPACT_SCHED => {
                    let compact = value.bytes().ok_or(BrokenMessage)?;
                    let end = bytes.len() - fields.left();
                    cursor.find_columns(Part { at: end - compact.len(), end })?;
                }
                _ => {}
            }
        }
        Ok(cursor)
    }

    /// Where the columns and names are.
    fn find_columns(&mut self, compact: Part) -> Result<(), BrokenMessage> {
        let mut fields = WireFields::of(&self.bytes[compact.at..compact.end]);
        while let Some(next) = fields.next() {
            let (number, value) = next?;
            let end = compact.end - fields.left();
            let part = Part { at: end - value.bytes().map_or(0, <[u8]>::len), end };
            if number == field::NAMES && self.comms.len() < COMMS_MAX {
                self.comms.push(part);
            }
            for (columns, numbers) in
                [(&mut self.switches, field::SWITCHES), (&mut self.wakings, field::WAKINGS)]
            {
                if let Some(column) = numbers.iter().position(|&of| of == number) {
                    columns.columns[column] = part;
                }
            }
        }
        Ok(())
    }

    /// The next event, and when it happened.
    pub(super) fn next(
        &mut self,
        symbols: &mut PerfettoSymbols,
    ) -> Result<Option<(u64, BundledItem)>, BrokenMessage> {
        if self.has_lost
            && let Some(first) = self.first_at()?
        {
            self.has_lost = false;
            return Ok(Some((first, BundledItem::Lost)));
        }
        if let Some([at, state, pid, priority, comm]) = self.switches.next(&self.bytes)? {
            let next = self.task(pid, priority, comm);
            return Ok(Some((at, BundledItem::Switch { previous: None, state, next })));
        }
        if let Some([at, pid, target, priority, comm]) = self.wakings.next(&self.bytes)? {
            let task = self.task(pid, priority, comm);
            return Ok(Some((at, BundledItem::Waking { task, target })));
        }
        let sequence = self.sequence;
        match self.next_event()? {
            Some(event) => event.item(&mut symbols.of(sequence)).map(Some),
            None => Ok(None),
        }
    }

    /// When the first event happened, of whatever kind.
    fn first_at(&self) -> Result<Option<u64>, BrokenMessage> {
        let (mut switches, mut wakings) = (self.switches, self.wakings);
        let rows = [switches.next(&self.bytes)?, wakings.next(&self.bytes)?];
        let mut fields = WireFields::of(&self.bytes).filter_map(Result::ok);
        let event = fields.find_map(|(number, value)| value.bytes().filter(|_| number == field::EVENT));
        let event = event.map(BundledEvent::read).transpose()?;
        let times = rows.iter().flatten().map(|row| row[0]);
        Ok(times.chain(event.map(|event| event.at)).min())
    }

    fn next_event(&mut self) -> Result<Option<BundledEvent<'_>>, BrokenMessage> {
        let mut fields = WireFields::of(&self.bytes[self.events_at..]);
        while let Some(next) = fields.next() {
            if let (field::EVENT, value) = next? {
                self.events_at = self.bytes.len() - fields.left();
                return BundledEvent::read(value.bytes().ok_or(BrokenMessage)?).map(Some);
            }
        }
        self.events_at = self.bytes.len();
        Ok(None)
    }

    fn task(&self, pid: u64, priority: u64, comm: u64) -> NamedTask {
        let comm = usize::try_from(comm).ok().and_then(|index| self.comms.get(index));
        let comm = comm.map_or(&b"<...>"[..], |part| &self.bytes[part.at..part.end]);
        NamedTask::new(pid as i32, Some(priority as i32), comm)
    }
}

impl CompactColumns {
    /// The next row: its time, and the other columns; `None` behind the last. All columns have as many rows.
    fn next(&mut self, bytes: &[u8]) -> Result<Option<[u64; 5]>, BrokenMessage> {
        if self.columns[0].at == self.columns[0].end {
            return Ok(None);
        }
        let mut row = [0; 5];
        for (number, column) in row.iter_mut().zip(&mut self.columns) {
            let mut rest = &bytes[column.at..column.end];
            *number = varint(&mut rest).ok_or(BrokenMessage)?;
            column.at = column.end - rest.len();
        }
        self.at = self.at.wrapping_add(row[0]);
        row[0] = self.at;
        Ok(Some(row))
    }
}

/// An event in a message.
struct BundledEvent<'a> {
    at: u64,
    pid: i32,
    /// Which one, and its fields.
    event: Option<(u32, &'a [u8])>,
}

impl<'a> BundledEvent<'a> {
    fn read(message: &'a [u8]) -> Result<Self, BrokenMessage> {
        let mut read = Self { at: 0, pid: 0, event: None };
        for next in WireFields::of(message) {
            match next? {
                (field::TIMESTAMP, value) => read.at = value.number().ok_or(BrokenMessage)?,
                (field::PID, value) => read.pid = value.number().ok_or(BrokenMessage)? as i32,
                (field::COMMON_FLAGS, _) => {}
                (number, value) => read.event = value.bytes().map(|bytes| (number, bytes)),
            }
        }
        Ok(read)
    }

    fn item(self, symbols: &mut SequenceSymbols<'_>) -> Result<(u64, BundledItem), BrokenMessage> {
        let Self { at, pid, event } = self;
        let (number, message) = event.unwrap_or((0, &[]));
        if number == SCHED_SWITCH {
            let fields = EventFields::read(message)?;
            let task = |comm, pid, priority| {
                let comm = fields.bytes(comm).unwrap_or_default();
                Some(NamedTask::new(fields.number(pid)? as i32, Some(fields.number(priority)? as i32), comm))
            };
            let state = fields.number(4).unwrap_or(0);
            let (previous, next) = (task(1, 2, 3), task(5, 6, 7).ok_or(BrokenMessage)?);
            return Ok((at, BundledItem::Switch { previous, state, next }));
        }
        let mut text = Vec::new();
        write_event(number, message, symbols, &mut text)?;
        Ok((at, BundledItem::Event { pid, text: text.into() }))
    }
}
