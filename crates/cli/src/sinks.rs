//! Where the events of one input go: the explanation, and the files that were asked for.

use crate::args::ExplainArgs;
use crate::error::CliError;
use crate::output::AtomicFile;
use quietcore_trace::{Explain, Options, PerfettoWriter, Record, Report, Tally, openmetrics};
use std::io;
use std::path::{Path, PathBuf};

/// The files to write besides the report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Files<'a> {
    openmetrics: Option<&'a Path>,
    perfetto: Option<&'a Path>,
}

impl<'a> Files<'a> {
    pub(crate) fn of(args: &'a ExplainArgs) -> Self {
        Self { openmetrics: args.openmetrics.as_deref(), perfetto: args.perfetto.as_deref() }
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
    /// Opens the files first: a place that cannot be written is told before any work is done.
    pub(crate) fn new(options: Options, files: Files<'_>) -> Result<Self, CliError> {
        let create = |path: Option<&Path>| match path {
            Some(path) => Ok(Some((path.to_owned(), AtomicFile::create(path)?))),
            None => Ok::<_, CliError>(None),
        };
        let identities_max = options.identities_max;
        let openmetrics = create(files.openmetrics)?;
        let perfetto = create(files.perfetto)?
            .map(|(path, file)| (path, PerfettoWriter::with_identities_max(file, identities_max)));
        Ok(Self { explain: Explain::new(options), openmetrics, perfetto, perfetto_failed: None })
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
        finish: impl FnOnce(&mut Report),
    ) -> Result<Report, CliError> {
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
