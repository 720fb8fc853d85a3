//! Recordings in the kernel's binary form, printed as the text that tracefs makes of them.
//!
//! The kernel keeps events as bytes in pages, and says in text what the bytes mean. Printing them here is far
//! cheaper for the machine than letting the kernel do it, and the text is read like any other: there is one
//! way to read events. The text equals the kernel's but for times, which have nine decimals, and for the
//! names of objects, which the kernel makes of their addresses.

mod bytes;
mod dat;
mod expression;
mod expression_parser;
mod field;
mod format;
mod line_printer;
mod names;
mod page;
mod perf;
mod perfetto;
mod print;
mod ring_text;
mod text_block;
mod tracing_data;

pub(crate) use bytes::ReadAt;
pub(crate) use dat::read as read_trace_dat;
#[cfg(any(target_os = "linux", test))]
pub(crate) use format::EventFormats;
pub(crate) use line_printer::LinePrinter;
#[cfg(any(target_os = "linux", test))]
pub(crate) use names::KernelNames;
pub(crate) use page::PageLayout;
pub(crate) use perf::{RunningKernel, read as read_perf_data};
pub(crate) use perfetto::{begins_with_packet, read as read_perfetto};
pub(crate) use ring_text::{RingPages, RingText};

/// Pages and formats as a kernel has them, for tests.
#[cfg(test)]
pub(crate) mod made {
    pub(crate) use super::format::made::format;
    pub(crate) use super::page::made::{HEADER_PAGE, entry, page};
}
