//! Where the events of one input go: the explanation, and the files that were asked for.

use crate::args::ExplainArgs;
use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use quietcore_explain::{Explain, ExplainOptions, Explanation, openmetrics};
use quietcore_trace::{PerfettoWriter, Record, Tally, visible_path};
use std::io;
use std::path::{Path, PathBuf};

/// The files to write besides the report, opened.
#[derive(Debug, Default)]
pub(crate) struct SinkFiles {
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
            ("--perfetto", &args.perfetto),
            ("--openmetrics", &args.openmetrics),
            ("the trace", &args.trace),
        ];
        let named = named.map(|(name, path)| (name, path.as_deref().map(whole)));
        for (first, second) in [(0, 1), (0, 2), (1, 2)] {
            let ((a, path), (b, other)) = (&named[first], &named[second]);
            if let (Some(path), true) = (path, path == other) {
                let path = visible_path(path);
                return Err(CliError::Usage(format!("{a} and {b} are the same file {path}; name two files")));
            }
        }
        Ok(Self { openmetrics: create(&args.openmetrics)?, perfetto: create(&args.perfetto)? })
    }
}

/// Takes every event once. Files appear at the end, whole, or not at all.
pub(crate) struct Sinks {
    explain: Explain,
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
        Self {
            explain: Explain::new(options),
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

    /// Ends the report with `finish` and writes the files.
    pub(crate) fn finish(
        self,
        tally: &Tally,
        unknown: Vec<(String, u64)>,
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
        Ok(report)
    }
}
