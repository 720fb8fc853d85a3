//! A recording that is kept: its text goes to a file while it is read; or waits in memory, the oldest thrown
//! away, until it is known that it is wanted.

use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use quietcore_core::Nanos;
use quietcore_trace::parse_line;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much the text is compressed: the fastest level, as the machine has other things to do.
const LEVEL: i32 = 1;
/// Text that waits takes so much memory at most.
const WAITING_BYTES_MAX: usize = 512 << 20;

/// The file that text is kept in; it appears under its name when it is finished.
pub(crate) struct KeptText {
    path: PathBuf,
    form: Form,
}

enum Form {
    Plain(Counted),
    Zstd(zstd::Encoder<'static, Counted>),
}

/// Counts what is written.
struct Counted {
    file: AtomicFile,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl KeptText {
    /// Opens `path`, compressed if its name says so. It holds what tasks of all users did: its owner alone
    /// may read a new one.
    pub(crate) fn create(path: &Path) -> Result<Self, CliError> {
        let file = Counted { file: AtomicFile::create(path, OutputContent::Live)?, bytes: 0 };
        let form = match path.extension().and_then(|extension| extension.to_str()) {
            Some("zst") => {
                let encoder = zstd::Encoder::new(file, LEVEL);
                Form::Zstd(encoder.map_err(|error| CliError::Write(path.to_owned(), error))?)
            }
            Some("gz" | "xz" | "dat" | "data") => {
                return Err(CliError::Usage(format!(
                    "{}: recordings are text: name a .txt, or a .txt.zst for a compressed one",
                    quietcore_trace::visible_path(path)
                )));
            }
            _ => Form::Plain(file),
        };
        Ok(Self { path: path.to_owned(), form })
    }

    pub(crate) fn write(&mut self, text: &[u8]) -> Result<(), CliError> {
        let written = match &mut self.form {
            Form::Plain(file) => file.write_all(text),
            Form::Zstd(encoder) => encoder.write_all(text),
        };
        written.map_err(|error| CliError::Write(self.path.clone(), error))
    }

    /// How many bytes are in the file so far.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.form {
            Form::Plain(file) => file.bytes,
            Form::Zstd(encoder) => encoder.get_ref().bytes,
        }
    }

    /// Ends the file and gives it its name; says how long it is.
    pub(crate) fn finish(self) -> Result<u64, CliError> {
        let Self { path, form } = self;
        let counted = match form {
            Form::Plain(file) => file,
            Form::Zstd(encoder) => encoder.finish().map_err(|error| CliError::Write(path, error))?,
        };
        counted.file.finish().map(|()| counted.bytes)
    }
}

/// Text that may be wanted: what was read lately, in the order of time.
#[derive(Debug)]
pub(crate) struct WaitingText {
    before: Duration,
    bytes_max: usize,
    pieces: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    /// The first piece begins in the middle of a line.
    is_cut: bool,
}

impl WaitingText {
    /// Nothing yet; what is older than `before` is thrown away.
    pub(crate) fn new(before: Duration) -> Self {
        let (pieces, bytes_max) = (VecDeque::new(), WAITING_BYTES_MAX);
        Self { before, bytes_max, pieces, bytes: 0, is_cut: false }
    }

    fn take(&mut self, now: Instant, text: &[u8]) {
        self.bytes += text.len();
        self.pieces.push_back((now, text.to_owned()));
        while let Some((at, oldest)) = self.pieces.front() {
            // What was read at one time happened before it.
            let is_old = now.duration_since(*at) > self.before;
            if !is_old && self.bytes <= self.bytes_max {
                break;
            }
            self.is_cut = oldest.last() != Some(&b'\n');
            self.bytes -= oldest.len();
            self.pieces.pop_front();
        }
    }

    /// All of it, from the begin of a line.
    fn into_text(self) -> Vec<u8> {
        let text: Vec<u8> = self.pieces.into_iter().flat_map(|(_, piece)| piece).collect();
        let whole_from = text.iter().position(|&byte| byte == b'\n').map_or(text.len(), |end| end + 1);
        if self.is_cut { text[whole_from..].to_owned() } else { text }
    }
}

/// Hands out the text of its source, and keeps it.
pub(crate) struct Kept<R> {
    source: R,
    file: Option<KeptText>,
    /// Where text goes until [`Kept::keep_waiting`].
    waiting: Option<WaitingText>,
    /// How many lines of events were written.
    lines: u64,
    /// Why it could not be kept.
    failed: Option<CliError>,
}

impl<R> Kept<R> {
    /// What is read goes to `file`, or waits for [`Kept::keep_waiting`].
    pub(crate) fn new(source: R, file: Option<KeptText>, waiting: Option<WaitingText>) -> Self {
        Self { source, file, waiting, lines: 0, failed: None }
    }

    /// What waits is wanted, and so is all that comes; says when the first event of it happened, if text
    /// waited and its first line is one.
    pub(crate) fn keep_waiting(&mut self) -> Result<Option<Nanos>, CliError> {
        let (Some(waiting), Some(file)) = (self.waiting.take(), &mut self.file) else { return Ok(None) };
        let text = waiting.into_text();
        file.write(&text)?;
        self.lines += line_count(&text);
        let first = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        Ok(parse_line(first).ok().map(|record| record.at))
    }

    /// How many lines of events are in the file so far.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    pub(crate) fn source_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// How many bytes are in the file so far.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, KeptText::bytes)
    }

    /// The file, or why it is not whole.
    pub(crate) fn take_file(&mut self) -> Result<Option<KeptText>, CliError> {
        self.failed.take().map_or_else(|| Ok(self.file.take()), Err)
    }
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        let text = &buffer[..count];
        if let Some(waiting) = &mut self.waiting {
            waiting.take(Instant::now(), text);
        } else if let Some(file) = &mut self.file {
            if let Err(error) = file.write(text) {
                self.failed = Some(error);
                return Err(io::Error::other("the recording cannot be kept"));
            }
            self.lines += line_count(text);
        }
        Ok(count)
    }
}

fn line_count(text: &[u8]) -> u64 {
    text.iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::{Kept, KeptText, WaitingText};
    use quietcore_core::Nanos;
    use std::io::Read;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("quietcore-kept-{}-{name}", std::process::id()))
    }

    /// Goal: what is read is in the file, whole, plain or compressed as its name says, and only when it is
    /// finished. Method: a text in small pieces, into both.
    #[test]
    fn what_is_read_is_kept() {
        let text = "a line of a recording\n".repeat(1000);
        for name in ["plain.txt", "packed.txt.zst"] {
            let path = path(name);
            let mut kept = Kept::new(text.as_bytes(), Some(KeptText::create(&path).expect("a file")), None);
            let mut read = String::new();
            kept.read_to_string(&mut read).expect("nothing fails");
            assert!(read == text && !path.exists(), "{name}");
            assert_eq!(kept.lines(), 1000);
            let bytes =
                kept.take_file().expect("nothing failed").expect("it is kept").finish().expect("a file");
            let file = std::fs::read(&path).expect("it has its name");
            assert_eq!(file.len() as u64, bytes);
            let mut back = String::new();
            quietcore_trace::open(&path).expect("a file").read_to_string(&mut back).expect("text");
            assert!(back == text, "{name}");
            assert_eq!(file == text.as_bytes(), name == "plain.txt");
            std::fs::remove_file(&path).expect("it is ours");
        }
    }

    /// Goal: the name says what is in a file. Method: names of other kinds of files.
    #[test]
    fn another_kind_of_file_is_refused() {
        for name in ["x.gz", "x.txt.xz", "trace.dat", "perf.data"] {
            let Err(error) = KeptText::create(&path(name)) else { panic!("{name}: opened") };
            let sentence = "recordings are text: name a .txt, or a .txt.zst for a compressed one";
            assert!(error.to_string().ends_with(sentence), "{error}");
            assert!(!path(name).exists());
        }
    }

    /// Goal: text that waits is in the file once it is wanted, from the begin of a line, with all that comes
    /// after it. Method: a source whose first half is read before; its time, and the number of its lines.
    #[test]
    fn text_that_waits_is_kept_when_it_is_wanted() {
        let path = path("waits.txt");
        let line = "a-7 [000] 5.000001: timer_cancel: timer=1\n";
        let text = line.repeat(10);
        let waiting = Some(WaitingText::new(Duration::from_secs(60)));
        let mut kept = Kept::new(text.as_bytes(), Some(KeptText::create(&path).expect("a file")), waiting);
        let mut half = vec![0; text.len() / 2 - 3];
        kept.read_exact(&mut half).expect("it is there");
        assert_eq!(kept.file_bytes(), 0);
        assert_eq!(kept.keep_waiting().expect("a file"), Some(Nanos(5_000_001_000)));
        kept.read_to_string(&mut String::new()).expect("nothing fails");
        assert_eq!((kept.lines(), kept.keep_waiting().expect("a file")), (10, None));
        kept.take_file().expect("nothing failed").expect("it is kept").finish().expect("a file");
        assert_eq!(std::fs::read_to_string(&path).expect("it has its name"), text);
        std::fs::remove_file(&path).expect("it is ours");
    }

    /// Goal: what is too old is thrown away, and what is too much; the text that is left begins with a line.
    /// Method: pieces of a second each, cut in lines and at their ends.
    #[test]
    fn old_text_is_thrown_away() {
        let began = Instant::now();
        let left = |pieces: &[&str], bytes_max: usize| {
            let mut waiting = WaitingText { bytes_max, ..WaitingText::new(Duration::from_secs(2)) };
            for (second, piece) in pieces.iter().enumerate() {
                waiting.take(began + Duration::from_secs(second as u64), piece.as_bytes());
            }
            String::from_utf8(waiting.into_text()).expect("text")
        };
        let all = usize::MAX;
        assert_eq!(left(&["a\n", "b\n", "c\n"], all), "a\nb\nc\n");
        assert_eq!(left(&["a\n", "b\n", "c\n", "d\n", "e\n"], all), "c\nd\ne\n");
        assert_eq!(left(&["a\n", "b\nlong", " c\n", "d\n", "e\n"], all), "d\ne\n");
        assert_eq!(left(&["a\n", "bb\n", "c\n"], 5), "bb\nc\n");
        assert_eq!(left(&["a long line without an end"], 5), "");
    }

    /// Goal: without a file nothing is kept, and nothing fails.
    #[test]
    fn nothing_is_kept_without_a_file() {
        let mut kept = Kept::new(&b"text"[..], None, None);
        let mut read = String::new();
        kept.read_to_string(&mut read).expect("nothing fails");
        assert_eq!((&*read, kept.file_bytes()), ("text", 0));
        assert!(kept.take_file().expect("nothing failed").is_none());
    }
}
