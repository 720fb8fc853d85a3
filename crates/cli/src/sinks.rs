//! Where the events of one input go: the explanation, and the files that were asked for.

use crate::args::ExplainArgs;
use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use crate::html;
use crate::live::Own;
use quietcore_explain::{Explain, ExplainOptions, Explanation, openmetrics};
use quietcore_trace::{PerfettoWriter, Record, Tally, visible_path};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The files to write besides the report, opened.
#[derive(Debug, Default)]
pub(crate) struct SinkFiles {
    /// What the input is called.
    name: String,
    html: Option<(PathBuf, AtomicFile)>,
    openmetrics: Option<(PathBuf, AtomicFile)>,
    perfetto: Option<(PathBuf, AtomicFile)>,
}

impl SinkFiles {
    /// Opens them before any work is done, so that a place that cannot be written is told first.
    pub(crate) fn open(args: &ExplainArgs) -> Result<Self, CliError> {
        let content = if args.live.is_some() { OutputContent::Live } else { OutputContent::Ordinary };
        let create = |path: &Option<PathBuf>| match path {
            Some(path) => Ok(Some((path.clone(), AtomicFile::create(path, content)?))),
            None => Ok::<_, CliError>(None),
        };
        let whole = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let named = [
            ("--html", &args.html),
            ("--perfetto", &args.perfetto),
            ("--openmetrics", &args.openmetrics),
            ("the trace", &args.trace),
        ];
        let named = named.map(|(name, path)| (name, path.as_deref().map(whole)));
        let pairs = named.iter().enumerate();
        let pairs = pairs.flat_map(|(place, one)| named[place + 1..].iter().map(move |other| (one, other)));
        for ((a, path), (b, other)) in pairs {
            if let (Some(path), true) = (path, path == other) {
                let path = visible_path(path);
                return Err(CliError::Usage(format!("{a} and {b} are the same file {path}; name two files")));
            }
        }
        Ok(Self {
            name: args.trace.as_deref().map_or("--live".to_owned(), visible_path),
            html: create(&args.html)?,
            openmetrics: create(&args.openmetrics)?,
            perfetto: create(&args.perfetto)?,
        })
    }
}

/// Takes every event once. Files appear at the end, whole, or not at all.
pub(crate) struct Sinks {
    explain: Explain,
    name: String,
    html: Option<(PathBuf, AtomicFile)>,
    openmetrics: Option<(PathBuf, AtomicFile)>,
    perfetto: Option<(PathBuf, PerfettoWriter<AtomicFile>)>,
    perfetto_failed: Option<io::Error>,
}

impl Sinks {
    pub(crate) fn new(options: ExplainOptions, files: SinkFiles) -> Self {
        let identities_max = options.identities_max;
        let perfetto = files
            .perfetto
            .map(|(path, file)| (path, PerfettoWriter::with_identities_max(file, identities_max)));
        let options = ExplainOptions { timeline: files.html.is_some(), ..options };
        Self {
            explain: Explain::new(options),
            name: files.name,
            html: files.html,
            openmetrics: files.openmetrics,
            perfetto,
            perfetto_failed: None,
        }
    }

    pub(crate) fn take(&mut self, record: &Record<'_>) {
        self.explain.take(record);
        if let (Some((_, perfetto)), None) = (&mut self.perfetto, &self.perfetto_failed) {
            self.perfetto_failed = perfetto.take(record).err();
        }
    }

    /// Ends the report with `finish` and writes the files; `own` is what recording cost, if we did.
    pub(crate) fn finish(
        self,
        tally: &Tally,
        unknown: Vec<(String, u64)>,
        own: Option<&Own>,
        finish: impl FnOnce(&mut Explanation),
    ) -> Result<Explanation, CliError> {
        let mut report = self.explain.finish(tally);
        report.unknown_events = unknown.into_iter().collect();
        finish(&mut report);
        if let Some((path, perfetto)) = self.perfetto {
            let failed = |error| CliError::Write(path.clone(), error);
            if let Some(error) = self.perfetto_failed {
                return Err(failed(error));
            }
            perfetto.finish().map_err(failed)?.finish()?;
        }
        if let Some((path, mut file)) = self.openmetrics {
            openmetrics(&report, &mut file).map_err(|error| CliError::Write(path, error))?;
            file.finish()?;
        }
        if let Some((path, mut file)) = self.html {
            let page = html::page(&self.name, &report, own);
            file.write_all(page.as_bytes()).map_err(|error| CliError::Write(path, error))?;
            file.finish()?;
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::SinkFiles;
    use crate::args::{Cli, CliVerb, ExplainArgs};
    use clap::Parser;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn args(words: &[&str]) -> ExplainArgs {
        let words = [&["quietcore", "explain"], words].concat();
        match Cli::try_parse_from(words).expect("options of explain").verb {
            Some(CliVerb::Explain(args)) => args,
            verb => panic!("{verb:?}"),
        }
    }

    /// Goal: a file is named once. Method: each two of the four are the same.
    #[test]
    fn two_files_are_two_names() {
        let refused = |words: &[&str]| SinkFiles::open(&args(words)).expect_err("the same").to_string();
        let both = refused(&["t", "--perfetto", "no/x", "--openmetrics", "no/x"]);
        assert_eq!(both, "--perfetto and --openmetrics are the same file no/x; name two files");
        let perfetto = refused(&["no/x", "--perfetto", "no/x", "--openmetrics", "no/y"]);
        assert_eq!(perfetto, "--perfetto and the trace are the same file no/x; name two files");
        let openmetrics = refused(&["no/x", "--perfetto", "no/y", "--openmetrics", "no/x"]);
        assert_eq!(openmetrics, "--openmetrics and the trace are the same file no/x; name two files");
        for other in ["--perfetto", "--openmetrics"] {
            let html = refused(&["t", "--html", "no/x", other, "no/x"]);
            assert_eq!(html, format!("--html and {other} are the same file no/x; name two files"));
        }
        let html = refused(&["no/x", "--html", "no/x"]);
        assert_eq!(html, "--html and the trace are the same file no/x; name two files");
    }

    /// Goal: what is made of the running kernel is for its owner alone. Method: all files, from a recording
    /// and live, beside a file that the standard library makes.
    #[test]
    fn live_files_are_private() {
        let folder = std::env::temp_dir().join(format!("quietcore-sinks-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let usual = folder.join("usual");
        std::fs::write(&usual, "").unwrap();
        let mode = |file: &Path| std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
        for (name, input) in [("live", ["--live", "1s"].as_slice()), ("file", &["no/trace"])] {
            let files = ["a", "b", "c"].map(|file| folder.join(format!("{name}-{file}")));
            let [a, b, c] = files.each_ref().map(|file| file.to_str().unwrap());
            let options = ["--perfetto", a, "--openmetrics", b, "--html", c];
            let opened = SinkFiles::open(&args(&[input, &options].concat())).unwrap();
            let sinks = [opened.perfetto, opened.openmetrics, opened.html].map(Option::unwrap);
            for (file, (named, mut sink)) in files.iter().zip(sinks) {
                assert_eq!(&named, file);
                sink.write_all(b"x").unwrap();
                sink.finish().unwrap();
                let expected = if name == "live" { 0o600 } else { mode(&usual) };
                assert_eq!(mode(file), expected, "{file:?}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
