//! What a `trace.dat` says of its recording, and where its pages are.
//!
//! Source: trace-cmd 3.3, Documentation/trace-cmd/trace-cmd.dat.v6.5.txt and trace-cmd.dat.v7.5.txt. Beyond
//! what these say, a section's length in version 7 has eight bytes, and a BUFFER option has the length of its
//! pages before the count of its CPUs: so trace-cmd 3.1 writes them.

use super::compression::DatCompression;
use crate::binary::bytes::{DatCursor, ReadAt, invalid};
use crate::binary::tracing_data::{PART_BYTES_MAX, TracingData};
use quietcore_core::CpuId;
use std::io;

const OPTION_BYTES_MAX: u64 = 1 << 20;
const BUFFERS_MAX: usize = 64;
/// Options sections follow each other; a file that leads back to one of them is not read for ever.
const OPTIONS_MAX: usize = 4096;

/// What a file holds.
#[derive(Debug, Default)]
pub(crate) struct DatContents {
    pub(crate) tracing: TracingData,
    pub(crate) compression: DatCompression,
    pub(crate) buffers: Vec<DatBuffer>,
    clock: String,
    cpu_count: u32,
    uname: String,
    lost: u64,
}

/// The pages of one tracing instance.
#[derive(Debug, Default)]
pub(crate) struct DatBuffer {
    /// Empty for the one that is no instance.
    pub(crate) name: String,
    pub(crate) clock: String,
    pub(crate) page_bytes: usize,
    pub(crate) cpus: Vec<DatCpu>,
}

/// Where the pages of a CPU are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatCpu {
    pub(crate) cpu: CpuId,
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

/// Numbers of options; those of sections are the same.
mod option {
    pub(super) const DONE: u16 = 0;
    pub(super) const CPU_STATS: u16 = 2;
    pub(super) const BUFFER: u16 = 3;
    pub(super) const TRACE_CLOCK: u16 = 4;
    pub(super) const UNAME: u16 = 5;
    pub(super) const CPU_COUNT: u16 = 8;
    pub(super) const HEADER_INFO: u16 = 16;
    pub(super) const FTRACE_EVENTS: u16 = 17;
    pub(super) const EVENT_FORMATS: u16 = 18;
    pub(super) const KALLSYMS: u16 = 19;
    pub(super) const CMDLINES: u16 = 21;
}

impl DatContents {
    /// Reads all but the pages.
    pub(crate) fn read(file: &impl ReadAt) -> io::Result<Self> {
        let mut cursor = DatCursor::new(file, 0);
        cursor.skip(3)?;
        let version = cursor.bytes(7, 7, "the magic").and_then(|_| cursor.word())?;
        if cursor.byte()? != 0 {
            return Err(invalid(
                "it is of a big-endian machine, which is not read: trace-cmd report -i FILE",
            ));
        }
        cursor.byte()?;
        let page_bytes = cursor.u32()? as usize;
        let mut contents = Self::default();
        match &*version {
            "6" => contents.read_v6(cursor, page_bytes)?,
            "7" => contents.read_v7(cursor)?,
            other => {
                let other = other.escape_debug();
                return Err(invalid(format!("its format has version {other}; 6 and 7 are read")));
            }
        }
        Ok(contents)
    }

    /// The first line of the text: that of `trace-cmd report`, and what else the file says.
    pub(crate) fn first_line(&self) -> String {
        let mut line = format!("cpus={}", self.cpu_count);
        if !self.uname.is_empty() {
            line += &format!("; uname: {}", self.uname);
        }
        if self.lost > 0 {
            line += &format!("; lost events: {}", self.lost);
        }
        line + "\n"
    }

    fn read_v6(&mut self, mut cursor: DatCursor<'_, impl ReadAt>, page_bytes: usize) -> io::Result<()> {
        self.tracing.header_info(&mut cursor)?;
        self.tracing.ftrace_events(&mut cursor)?;
        self.tracing.event_formats(&mut cursor)?;
        self.tracing.kallsyms(&mut cursor)?;
        let printk = cursor.u32()?;
        cursor.skip(printk.into())?;
        self.tracing.cmdlines(&mut cursor)?;
        let cpus = cursor.u32()?;
        self.cpu_count = cpus;
        loop {
            match &*cursor.word()? {
                "options  " => self.options_v6(&mut cursor, page_bytes, cpus)?,
                "flyrecord" => break,
                "latency  " => return Err(invalid(LATENCY)),
                other => return Err(invalid(format!("{other:?} where its pages should begin"))),
            }
        }
        let cpus = cpus_v6(&mut cursor, cpus)?;
        self.buffers.push(DatBuffer { name: String::new(), clock: self.clock.clone(), page_bytes, cpus });
        Ok(())
    }

    fn options_v6(
        &mut self,
        cursor: &mut DatCursor<'_, impl ReadAt>,
        page_bytes: usize,
        cpus: u32,
    ) -> io::Result<()> {
        loop {
            let id = cursor.u16()?;
            if id == option::DONE {
                return Ok(());
            }
            let length = cursor.u32()?;
            let data = cursor.bytes(length.into(), OPTION_BYTES_MAX, "an option")?;
            if id != option::BUFFER {
                self.option(id, &data)?;
                continue;
            }
            let mut option = DatCursor::new(&*data, 0);
            let (at, name) = (option.u64()?, option.word()?);
            let mut buffer = DatCursor::new(cursor.file(), at);
            buffer.expect("flyrecord")?;
            let cpus = cpus_v6(&mut buffer, cpus)?;
            self.add_buffer(DatBuffer { name, clock: self.clock.clone(), page_bytes, cpus })?;
        }
    }

    fn read_v7(&mut self, mut cursor: DatCursor<'_, impl ReadAt>) -> io::Result<()> {
        let (name, _version) = (cursor.word()?, cursor.word()?);
        self.compression = DatCompression::of(&name)?;
        let (file, mut next, mut count) = (cursor.file(), cursor.u64()?, 0);
        while next != 0 {
            let section = self.section(file, next)?;
            let mut options = DatCursor::new(&*section, 0);
            next = loop {
                count += 1;
                if count > OPTIONS_MAX {
                    return Err(invalid(format!("it has more than {OPTIONS_MAX} options")));
                }
                let (id, length) = (options.u16()?, options.u32()?);
                let data = options.bytes(length.into(), OPTION_BYTES_MAX, "an option")?;
                match id {
                    option::DONE => break DatCursor::new(&*data, 0).u64()?,
                    option::BUFFER => self.buffer_v7(&data)?,
                    option::HEADER_INFO.. => self.part(file, id, DatCursor::new(&*data, 0).u64()?)?,
                    _ => self.option(id, &data)?,
                }
            };
        }
        Ok(())
    }

    /// Reads the section `id` at a place.
    fn part(&mut self, file: &impl ReadAt, id: u16, at: u64) -> io::Result<()> {
        let read: fn(&mut TracingData, &mut DatCursor<'_, [u8]>) -> io::Result<()> = match id {
            option::HEADER_INFO => TracingData::header_info,
            option::FTRACE_EVENTS => TracingData::ftrace_events,
            option::EVENT_FORMATS => TracingData::event_formats,
            option::KALLSYMS => TracingData::kallsyms,
            option::CMDLINES => TracingData::cmdlines,
            _ => return Ok(()),
        };
        let section = self.section(file, at)?;
        read(&mut self.tracing, &mut DatCursor::new(&*section, 0))
    }

    /// The bytes of the section at a place, expanded.
    fn section(&self, file: &impl ReadAt, at: u64) -> io::Result<Vec<u8>> {
        let mut cursor = DatCursor::new(file, at);
        let (_id, flags, _description, length) = (cursor.u16()?, cursor.u16()?, cursor.u32()?, cursor.u64()?);
        if flags & 1 == 0 {
            return cursor.bytes(length, PART_BYTES_MAX, "a section");
        }
        let (compressed, expanded) = (cursor.u32()?, cursor.u32()?);
        let bytes = cursor.bytes(compressed.into(), PART_BYTES_MAX, "a section")?;
        if u64::from(expanded) > PART_BYTES_MAX {
            return Err(invalid(format!("the section at byte {at} expands to {expanded} bytes")));
        }
        self.compression.expand(&bytes, expanded as usize)
    }

    fn buffer_v7(&mut self, data: &[u8]) -> io::Result<()> {
        let mut option = DatCursor::new(data, 0);
        let (_section, name, clock) = (option.u64()?, option.word()?, option.word()?);
        let (page_bytes, count) = (option.u32()? as usize, option.u32()?);
        let cpu = |_| {
            let cpu = cpu_id(option.u32()?)?;
            Ok(DatCpu { cpu, at: option.u64()?, bytes: option.u64()? })
        };
        let cpus = (0..count).map(cpu).collect::<io::Result<_>>()?;
        self.add_buffer(DatBuffer { name, clock, page_bytes, cpus })
    }

    fn add_buffer(&mut self, buffer: DatBuffer) -> io::Result<()> {
        if self.buffers.len() == BUFFERS_MAX {
            return Err(invalid(format!("it has more than {BUFFERS_MAX} buffers")));
        }
        self.buffers.push(buffer);
        Ok(())
    }

    /// Options that both versions have.
    fn option(&mut self, id: u16, data: &[u8]) -> io::Result<()> {
        let text = || String::from_utf8_lossy(data.strip_suffix(b"\0").unwrap_or(data)).into_owned();
        match id {
            option::CPU_STATS => self.lost += crate::buffer_counts::BufferCounts::read(&text()).lost,
            option::TRACE_CLOCK => {
                let text = text();
                let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                self.clock = chosen.map_or(String::new(), |(clock, _)| clock.to_owned());
            }
            option::UNAME => {
                self.uname = text().replace(|letter: char| letter.is_control(), " ");
            }
            option::CPU_COUNT => self.cpu_count = DatCursor::new(data, 0).u32()?,
            _ => {}
        }
        Ok(())
    }
}

/// Said of a file that holds text instead of pages.
const LATENCY: &str = "it holds the text of a latency tracer and no events: trace-cmd report -i FILE";

fn cpus_v6(cursor: &mut DatCursor<'_, impl ReadAt>, count: u32) -> io::Result<Vec<DatCpu>> {
    (0..count).map(|cpu| Ok(DatCpu { cpu: cpu_id(cpu)?, at: cursor.u64()?, bytes: cursor.u64()? })).collect()
}

fn cpu_id(number: u32) -> io::Result<CpuId> {
    CpuId::new(number.into()).map_err(|error| invalid(format!("it has a CPU {number}: {error}")))
}
