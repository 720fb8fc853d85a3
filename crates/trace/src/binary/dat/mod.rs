//! `trace.dat`, the file of trace-cmd: versions 6 and 7, of little-endian machines.
//!
//! It is read as text like any recording: see [`RingText`].

mod chunks;
mod compression;
mod contents;

use super::bytes::{ReadAt, invalid};
use super::tracing_data::TracingData;
use super::{LinePrinter, PageLayout, RingText};
use chunks::DatPages;
use contents::{DatBuffer, DatContents};
use std::io::{self, Read};

/// Pages of all CPUs, of which one each is in memory, have so many bytes at most.
const PAGES_BYTES_MAX: usize = 64 << 20;

/// The text of a file whose compressed pages may expand so many times.
pub(crate) fn read(file: impl ReadAt + 'static, expansion_max: u32) -> io::Result<impl Read> {
    let contents = DatContents::read(&file)?;
    let first_line = contents.first_line();
    let DatContents { tracing: TracingData { layout, formats, names }, compression, buffers, .. } = contents;
    let buffer = only_one(buffers)?;
    if formats.common().is_none() {
        return Err(invalid("it describes no events"));
    }
    let layout = layout.and_then(|layout: PageLayout| layout.with_bytes(buffer.page_bytes));
    let layout = layout.ok_or_else(|| {
        invalid("its pages are not those of a little-endian machine of 64 bits: trace-cmd report -i FILE")
    })?;
    if buffer.cpus.len().saturating_mul(layout.bytes()) > PAGES_BYTES_MAX {
        return Err(invalid(format!(
            "it has {} CPUs with pages of {} bytes",
            buffer.cpus.len(),
            layout.bytes()
        )));
    }
    let pages = DatPages::new(file, compression, layout.bytes(), &buffer.cpus, expansion_max)?;
    let printer = LinePrinter::new(formats, names);
    let printer = if has_unit(&buffer.clock) { printer } else { printer.without_unit() };
    let cpus = buffer.cpus.iter().map(|cpu| cpu.cpu);
    let text = RingText::new(pages, layout, printer, cpus);
    Ok(io::Cursor::new(first_line).chain(text))
}

/// The buffer that has pages.
fn only_one(buffers: Vec<DatBuffer>) -> io::Result<DatBuffer> {
    let has_pages = |buffer: &DatBuffer| buffer.cpus.iter().any(|cpu| cpu.bytes > 0);
    let mut full: Vec<_> = buffers.into_iter().filter(has_pages).collect();
    match full.len() {
        0 => Err(invalid("no event is in it")),
        1 => Ok(full.remove(0)),
        _ => {
            let name = |buffer: &DatBuffer| {
                if buffer.name.is_empty() { "the main one".to_owned() } else { format!("{:?}", buffer.name) }
            };
            let names: Vec<_> = full.iter().map(name).collect();
            Err(invalid(format!(
                "it has the events of several buffers ({}); choose one: trace-cmd report -i FILE -B NAME",
                names.join(", ")
            )))
        }
    }
}

/// Whether a clock counts ns.
fn has_unit(clock: &str) -> bool {
    !matches!(clock, "counter" | "x86-tsc" | "ppc-tb")
}

#[cfg(test)]
mod tests;
