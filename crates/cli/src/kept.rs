//! A recording that is kept: its text goes to a file while it is read.

use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How much the text is compressed: the fastest level, as the machine has other things to do.
const LEVEL: i32 = 1;

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

/// Hands out the text of its source, and keeps it.
pub(crate) struct Kept<R> {
    source: R,
    file: Option<KeptText>,
    /// Why it could not be kept.
    failed: Option<CliError>,
}

impl<R> Kept<R> {
    pub(crate) fn new(source: R, file: Option<KeptText>) -> Self {
        Self { source, file, failed: None }
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
        if let Some(file) = &mut self.file
            && let Err(error) = file.write(&buffer[..count])
        {
            self.failed = Some(error);
            return Err(io::Error::other("the recording cannot be kept"));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::{Kept, KeptText};
    use std::io::Read;
    use std::path::PathBuf;

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
            let mut kept = Kept::new(text.as_bytes(), Some(KeptText::create(&path).expect("a file")));
            let mut read = String::new();
            kept.read_to_string(&mut read).expect("nothing fails");
            assert!(read == text && !path.exists(), "{name}");
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

    /// Goal: without a file nothing is kept, and nothing fails.
    #[test]
    fn nothing_is_kept_without_a_file() {
        let mut kept = Kept::new(&b"text"[..], None);
        let mut read = String::new();
        kept.read_to_string(&mut read).expect("nothing fails");
        assert_eq!((&*read, kept.file_bytes()), ("text", 0));
        assert!(kept.take_file().expect("nothing failed").is_none());
    }
}
