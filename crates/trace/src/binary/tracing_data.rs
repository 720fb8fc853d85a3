//! What tools save of tracefs beside the events: formats, the layout of pages, names of functions and tasks.
//!
//! trace-cmd and perf save it in the same form, of which perf has the older version.

use super::bytes::{DatCursor, ReadAt, invalid};
use super::format::EventFormats;
use super::names::KernelNames;
use super::page::PageLayout;
use std::io;

/// The longest part that is read into memory: the names of all functions.
pub(crate) const PART_BYTES_MAX: u64 = 32 << 20;
/// The longest description of all events, and of one.
const FORMATS_BYTES_MAX: u64 = 16 << 20;
const FORMAT_BYTES_MAX: u64 = 1 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct TracingData {
    pub(crate) layout: Option<PageLayout>,
    pub(crate) formats: EventFormats,
    pub(crate) names: KernelNames,
}

impl TracingData {
    /// Reads the part of a `perf.data`, which has a head of its own.
    pub(crate) fn read_perf(&mut self, cursor: &mut DatCursor<'_, impl ReadAt + ?Sized>) -> io::Result<()> {
        cursor.skip(10)?;
        cursor.word()?;
        if cursor.byte()? != 0 {
            return Err(invalid("it is of a big-endian machine, which is not read: perf script"));
        }
        cursor.skip(5)?;
        self.header_info(cursor)?;
        self.ftrace_events(cursor)?;
        self.event_formats(cursor)?;
        // What follows are texts of older versions, and names of tasks, which its records have, too.
        self.kallsyms(cursor)
    }

    pub(crate) fn header_info(&mut self, cursor: &mut DatCursor<'_, impl ReadAt + ?Sized>) -> io::Result<()> {
        cursor.expect("header_page")?;
        let length = cursor.u64()?;
        let text = cursor.bytes(length, FORMAT_BYTES_MAX, "the description of pages")?;
        self.layout = std::str::from_utf8(&text).ok().and_then(PageLayout::parse);
        cursor.expect("header_event")?;
        let length = cursor.u64()?;
        cursor.skip(length)
    }

    pub(crate) fn ftrace_events(
        &mut self,
        cursor: &mut DatCursor<'_, impl ReadAt + ?Sized>,
    ) -> io::Result<()> {
        let (begun, count) = (cursor.at, cursor.u32()?);
        self.add_formats(cursor, count, begun)
    }

    pub(crate) fn event_formats(
        &mut self,
        cursor: &mut DatCursor<'_, impl ReadAt + ?Sized>,
    ) -> io::Result<()> {
        let begun = cursor.at;
        for _ in 0..cursor.u32()? {
            cursor.word()?;
            let count = cursor.u32()?;
            self.add_formats(cursor, count, begun)?;
        }
        Ok(())
    }

    /// Adds `count` formats of a part that begins at `begun`.
    fn add_formats(
        &mut self,
        cursor: &mut DatCursor<'_, impl ReadAt + ?Sized>,
        count: u32,
        begun: u64,
    ) -> io::Result<()> {
        for _ in 0..count {
            let length = cursor.u64()?;
            let left = FORMATS_BYTES_MAX.saturating_sub(cursor.at - begun);
            let text = cursor.bytes(length, FORMAT_BYTES_MAX.min(left), "the format of an event")?;
            // One that cannot be read leaves its events without a name.
            self.formats.add(&String::from_utf8_lossy(&text));
        }
        Ok(())
    }

    pub(crate) fn kallsyms(&mut self, cursor: &mut DatCursor<'_, impl ReadAt + ?Sized>) -> io::Result<()> {
        let length = cursor.u32()?;
        let text = cursor.bytes(length.into(), PART_BYTES_MAX, "the list of functions")?;
        self.names.set_symbols(&String::from_utf8_lossy(&text));
        Ok(())
    }

    pub(crate) fn cmdlines(&mut self, cursor: &mut DatCursor<'_, impl ReadAt + ?Sized>) -> io::Result<()> {
        let length = cursor.u64()?;
        let text = cursor.bytes(length, PART_BYTES_MAX, "the list of tasks")?;
        for line in text.split(|&byte| byte == b'\n') {
            let (pid, comm) = line.split_at(memchr::memchr(b' ', line).unwrap_or(line.len()));
            let pid = std::str::from_utf8(pid).ok().and_then(|pid| pid.parse().ok());
            // Of those that the kernel had forgotten.
            if let Some(pid) = pid.filter(|_| !comm.ends_with(b" <...>")) {
                self.names.name_task(pid, comm.trim_ascii_start());
            }
        }
        Ok(())
    }
}
