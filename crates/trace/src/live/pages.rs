//! What a recording is read from: the pages of each CPU's buffer, or the kernel's own text.
//!
//! Pages are what the kernel hands out cheapest. They need the names of functions, which a kernel with
//! `kernel.kptr_restrict=2` does not tell; there, and where pages have a form that is not known here, the
//! kernel's text is read.

use super::tracefs::LiveError;
use crate::binary::{EventFormats, KernelNames, LinePrinter, PageLayout, RingPages, RingText};
use quietcore_core::{CpuId, Nanos};
use rustix::fs::{Mode, OFlags};
use rustix::time::ClockId;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The text that describes a page is shorter than that.
const HEADER_BYTES: usize = 4096;
/// An event is in its CPU's buffer so long after its moment, even if an interrupt came while it was written.
const WRITTEN_WITHIN: Nanos = Nanos(1_000_000);

/// The events of a recording as text; reading takes them out of the kernel's buffers, and never blocks: it
/// fails with `WouldBlock` when there are none.
#[derive(Debug)]
pub struct LiveText(Form);

#[derive(Debug)]
enum Form {
    Pages(Box<RingText<CpuFiles>>),
    Text(File),
}

/// The files `per_cpu/cpuN/trace_pipe_raw`.
#[derive(Debug)]
struct CpuFiles {
    files: Vec<File>,
    page_bytes: usize,
    has_stopped: bool,
}

impl LiveText {
    /// What is read of the instance at `path`, of which the events in `tracepoints` are to be on; `symbols`
    /// is what `/proc/kallsyms` says.
    pub(super) fn open(path: &Path, tracepoints: &[&str], symbols: &str) -> Result<Self, LiveError> {
        match pages(path, tracepoints, symbols)? {
            Some(pages) => Ok(Self(Form::Pages(Box::new(pages)))),
            None => open(&path.join("trace_pipe")).map(|file| Self(Form::Text(file))),
        }
    }

    /// Recording has stopped: what is in the buffers is all there will be.
    pub fn recording_stopped(&mut self) {
        match &mut self.0 {
            Form::Pages(pages) => pages.pages_mut().has_stopped = true,
            Form::Text(_) => {}
        }
    }

    /// Whether the kernel makes the text, which costs the machine more.
    #[must_use]
    pub fn is_the_kernels(&self) -> bool {
        matches!(self.0, Form::Text(_))
    }
}

impl Read for LiveText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Form::Pages(pages) => match pages.read(buffer)? {
                0 => Err(ErrorKind::WouldBlock.into()),
                count => Ok(count),
            },
            Form::Text(file) => file.read(buffer),
        }
    }
}

/// A reader of pages, if these and their names can be read.
fn pages(path: &Path, tracepoints: &[&str], symbols: &str) -> Result<Option<RingText<CpuFiles>>, LiveError> {
    let events = path.join("events");
    let text = |path: &Path| fs::read_to_string(path).map_err(|error| LiveError::at(path, error));
    let Some(layout) = layout(path)? else { return Ok(None) };
    let mut names = KernelNames::default();
    if !names.set_symbols(symbols) {
        return Ok(None);
    }
    names.hide_addresses();
    names.ask_for_tasks(|pid| {
        let comm = fs::read(format!("/proc/{pid}/comm")).ok()?;
        Some(comm.trim_ascii_end().to_vec())
    });
    let mut formats = EventFormats::default();
    for tracepoint in tracepoints {
        if !formats.add(&text(&events.join(tracepoint).join("format"))?) {
            return Ok(None);
        }
    }
    let (mut cpus, mut files) = (Vec::new(), Vec::new());
    for (cpu, folder) in per_cpu(path)? {
        files.push(open(&folder.join("trace_pipe_raw"))?);
        cpus.push(cpu);
    }
    let files = CpuFiles { files, page_bytes: layout.bytes(), has_stopped: false };
    Ok(Some(RingText::new(files, layout, LinePrinter::new(formats, names), cpus)))
}

/// The layout of the instance's pages, which may be larger than the kernel's.
fn layout(path: &Path) -> Result<Option<PageLayout>, LiveError> {
    let header = path.join("events/header_page");
    // The kernel hands it out in one piece, or cuts it.
    let (mut text, mut file) = (vec![0; HEADER_BYTES], open(&header)?);
    let count = file.read(&mut text).map_err(|error| LiveError::at(&header, error))?;
    let layout = std::str::from_utf8(&text[..count]).ok().and_then(PageLayout::parse);
    Ok(match fs::read_to_string(path.join("buffer_subbuf_size_kb")) {
        Ok(kib) => {
            let bytes = kib.trim().parse().ok().and_then(|kib: usize| kib.checked_mul(1024));
            layout.zip(bytes).and_then(|(layout, bytes)| layout.with_bytes(bytes))
        }
        Err(_) => layout, // up to 6.7 they are all alike
    })
}

/// The CPUs of an instance with their folders, in order.
pub(super) fn per_cpu(path: &Path) -> Result<Vec<(CpuId, PathBuf)>, LiveError> {
    let folder = path.join("per_cpu");
    let failed = |error| LiveError::at(&folder, error);
    let mut cpus = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
        cpus.extend(number.and_then(|number| CpuId::new(number).ok()).map(|cpu| (cpu, entry.path())));
    }
    cpus.sort();
    Ok(cpus)
}

fn open(path: &Path) -> Result<File, LiveError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map(File::from);
    opened.map_err(|error| LiveError::at(path, error.into()))
}

impl RingPages for CpuFiles {
    fn read_page(&mut self, index: usize, page: &mut Vec<u8>) -> io::Result<bool> {
        page.resize(self.page_bytes, 0);
        let count = loop {
            match self.files[index].read(page) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break 0,
                read => break read?,
            }
        };
        page.truncate(count);
        Ok(count > 0)
    }

    fn complete_until(&mut self) -> Option<Nanos> {
        if self.has_stopped {
            return None;
        }
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        let now = Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64);
        Some(Nanos(now.as_u64().saturating_sub(WRITTEN_WITHIN.as_u64())))
    }
}

#[cfg(test)]
mod tests {
    use super::{LiveText, per_cpu};
    use crate::binary::made::{HEADER_PAGE, entry, format, page};
    use crate::live::LiveError;
    use std::fs;
    use std::io::{ErrorKind, Read};
    use std::path::PathBuf;

    const SYMBOLS: &str = "ffff0010 T first\nffff0020 T second\n";

    /// Files as an instance has them: CPUs 0 and 3 with an event each, one of them of later than now.
    fn instance(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("quietcore-pages-{name}-{}", std::process::id()));
        let event = entry(3, 0, &[7, 0, 0, 0, 1, 0, 0, 0, 0x10, 0, 0xff, 0xff]);
        for (cpu, at) in [("cpu0", 1_000), ("cpu3", u64::MAX / 2)] {
            fs::create_dir_all(path.join("per_cpu").join(cpu)).expect("a folder");
            fs::write(path.join("per_cpu").join(cpu).join("trace_pipe_raw"), page(at, 0, &event))
                .expect("a file");
        }
        let fields = "\tfield:unsigned int f;\toffset:8;\tsize:4;\tsigned:0;\n";
        fs::create_dir_all(path.join("events/x/call")).expect("a folder");
        fs::write(path.join("events/x/call/format"), format("call", 7, fields, r#""f=%ps", REC->f"#))
            .expect("a file");
        fs::write(path.join("events/header_page"), HEADER_PAGE).expect("a file");
        fs::write(path.join("trace_pipe"), "the kernel's text\n").expect("a file");
        path
    }

    fn read(text: &mut LiveText) -> String {
        let (mut read, mut buffer) = (Vec::new(), [0; 100]);
        loop {
            match text.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => read.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        String::from_utf8(read).expect("letters")
    }

    /// Goal: pages are read with the names of functions; what may not be the next waits until the recording
    /// has stopped.
    #[test]
    fn pages_are_read_with_names() {
        let path = instance("names");
        let mut text = LiveText::open(&path, &["x/call"], SYMBOLS).expect("all files are there");
        assert!(!text.is_the_kernels());
        let first = read(&mut text);
        assert!(first.contains("[000]") && first.ends_with("0.000001000: call: f=first\n"), "{first}");
        assert_eq!(read(&mut text), "");
        text.recording_stopped();
        let second = read(&mut text);
        assert!(second.contains("[003]") && second.lines().count() == 1, "{second}");
        fs::remove_dir_all(path).expect("it is there");
    }

    /// Goal: the kernel's own text is read where names are not told, or pages and events are of an unknown
    /// form. Method: each of them in turn.
    #[test]
    fn the_kernels_text_is_read_where_pages_cannot_be() {
        let path = instance("text");
        let hidden = SYMBOLS.replace("ffff00", "000000").replace("10", "00").replace("20", "00");
        let mut text = LiveText::open(&path, &["x/call"], &hidden).expect("all files are there");
        assert!(text.is_the_kernels());
        text.recording_stopped();
        assert_eq!(read(&mut text), "the kernel's text\n");
        let is_the_kernels =
            |path: &PathBuf| LiveText::open(path, &["x/call"], SYMBOLS).expect("files").is_the_kernels();
        for (subbuffer, expected) in [("8\n", false), ("x", true), ("9999999", true), ("4\n", false)] {
            fs::write(path.join("buffer_subbuf_size_kb"), subbuffer).expect("a file");
            assert_eq!(is_the_kernels(&path), expected, "{subbuffer}");
        }
        fs::write(path.join("events/header_page"), HEADER_PAGE.replace("size:8", "size:4")).expect("a file");
        assert!(is_the_kernels(&path));
        fs::write(path.join("events/header_page"), HEADER_PAGE).expect("a file");
        fs::write(path.join("events/x/call/format"), "name: call").expect("a file");
        assert!(is_the_kernels(&path));
        fs::remove_dir_all(path).expect("it is there");
    }

    /// Goal: a file that is missing is named.
    #[test]
    fn a_missing_file_is_named() {
        let path = instance("missing");
        fs::remove_file(path.join("events/x/call/format")).expect("it is there");
        let Err(LiveError::Io { path: named, .. }) = LiveText::open(&path, &["x/call"], SYMBOLS) else {
            panic!("opened without it");
        };
        assert!(named.ends_with("events/x/call/format"), "{}", named.display());
        fs::remove_dir_all(&path).expect("it is there");
        assert!(matches!(per_cpu(&path), Err(LiveError::Io { .. })));
    }
}
