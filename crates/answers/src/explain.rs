//! A recording explained: about which CPUs, by which kernel, and what was left out of it.
//!
//! The isolated set is what was asked for, else the recording's list, else the host's.

use crate::error::AnswerError;
use crate::reader::{ReadWatch, open, open_with, read_all};
use quietcore_core::CpuSet;
use quietcore_explain::{Explain, ExplainOptions, Explanation, Facts};
use quietcore_trace::{
    EXPANSION_MAX, Header, IDENTITIES_MAX, KernelRelease, TraceReader, visible, visible_path,
};
use std::io::Read;
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// What is asked of a recording.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// A file, or `@NAME` of the program.
    pub path: PathBuf,
    /// The CPUs that must stay quiet; `None` takes the recording's list, else the host's.
    pub isolated: Option<CpuSet>,
    /// The kernel's release, as `6.12.30`, where the recording does not say.
    pub kernel: Option<String>,
    /// How many timers, and how many hrtimers, are remembered at most.
    pub identities_max: usize,
    /// So many times its size a compressed recording may expand.
    pub expansion_max: u32,
    /// So many threads read it at most; `None`: as many as help.
    pub threads: Option<NonZero<usize>>,
}

impl ExplainRequest {
    /// The recording at `path`, with nothing but what it says itself.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            isolated: None,
            kernel: None,
            identities_max: IDENTITIES_MAX,
            expansion_max: EXPANSION_MAX,
            threads: None,
        }
    }

    /// A reader of the recording.
    ///
    /// # Errors
    /// [`AnswerError`]: there is no such file, or none of this name in the program.
    pub fn open(&self) -> Result<TraceReader<Box<dyn Read>>, AnswerError> {
        match self.threads {
            Some(threads) => open_with(&self.path, self.expansion_max, threads.get()),
            None => open(&self.path, self.expansion_max),
        }
    }

    /// What an explanation of a recording with this header must know.
    ///
    /// # Errors
    /// [`AnswerError::Usage`]: its list of CPUs, or the release that was given, cannot be read.
    pub fn options(&self, header: &Header) -> Result<ExplainOptions, AnswerError> {
        let host = || Facts::read(Path::new("/"));
        let mut options = options_of_file(self.isolated.as_ref(), &self.path, header, host)?;
        options.kernel = kernel_option(self.kernel.as_deref())?.or(options.kernel);
        options.identities_max = self.identities_max;
        Ok(options)
    }
}

/// Explains a recording. Some tens of ns per event; memory bounded by the request.
///
/// # Errors
/// [`AnswerError`].
pub fn explain(request: &ExplainRequest, watch: ReadWatch<'_>) -> Result<Explanation, AnswerError> {
    let reader = request.open()?;
    explained(&request.path, reader, watch, &|header| request.options(header))
}

/// Explains what `source` holds with nothing but what it says itself; `path` is how errors call it.
///
/// # Errors
/// [`AnswerError`].
pub fn explain_source(path: &Path, source: impl Read) -> Result<Explanation, AnswerError> {
    explained(path, TraceReader::new(source), &mut |_| true, &|header| Ok(recorded_options(header)))
}

fn explained(
    path: &Path,
    mut reader: TraceReader<impl Read>,
    watch: ReadWatch<'_>,
    options: &dyn Fn(&Header) -> Result<ExplainOptions, AnswerError>,
) -> Result<Explanation, AnswerError> {
    reader.read_header().map_err(|error| AnswerError::Read(path.to_owned(), error))?;
    let options = options(reader.header())?;
    let partial = left_out(reader.header(), &options.isolated);
    let mut explain = Explain::new(options);
    read_all(path, &mut reader, watch, &mut |record| explain.take(record))?;
    let mut report = explain.finish(reader.tally());
    report.unknown_events = reader.unknown_events().into_iter().collect();
    report.warnings.extend(partial);
    Ok(report)
}

/// Says where a recording lacks events of the CPUs that are asked about: their interruptions are not all
/// there.
#[must_use]
pub fn left_out(header: &Header, isolated: &CpuSet) -> Option<String> {
    let whole = header.whole_on.as_ref()?;
    let is_whole = !isolated.is_empty() && isolated.difference(whole).is_empty();
    let sentence = || {
        format!(
            "softirqs, interrupts and switches of tasks are all in this recording for CPUs {whole} alone, which \
             were isolated: on others it has only what the five questions need"
        )
    };
    (!is_whole).then(sentence)
}

/// What a recording says itself.
#[must_use]
pub fn recorded_options(header: &Header) -> ExplainOptions {
    ExplainOptions {
        isolated: header.isolated.clone().unwrap_or_default(),
        isolated_source: "recording",
        nohz_full: header.nohz_full.clone().unwrap_or_default(),
        kernel: header.kernel.clone(),
        cpu_count: header.cpu_count,
        timer_migration: header.timer_migration,
        wall_clock: header.wall_clock,
        ..ExplainOptions::default()
    }
}

/// The isolated set: what was asked for, else the recording's list, else the host's.
///
/// # Errors
/// [`AnswerError::Usage`]: the recording's list cannot be read.
pub fn options_of_file(
    isolated: Option<&CpuSet>,
    path: &Path,
    header: &Header,
    host: impl FnOnce() -> Facts,
) -> Result<ExplainOptions, AnswerError> {
    let mut options = recorded_options(header);
    if let Some(isolated) = isolated {
        options.isolated = isolated.clone();
        options.isolated_source = "option";
    } else if let Some(text) = &header.isolated_unreadable {
        let path = visible_path(path);
        return Err(AnswerError::Usage(format!(
            "{path}: its header line \"# isolated: {}\" holds no CPU list; name the CPUs with --isolated LIST",
            visible(text)
        )));
    } else if header.isolated.is_none() && !header.is_recording {
        options.isolated = host().domain_isolated();
        options.isolated_source = "host";
    }
    Ok(options)
}

/// The release that was given for a recording that does not say, if one was.
///
/// # Errors
/// [`AnswerError::Usage`]: it is none.
pub fn kernel_option(text: Option<&str>) -> Result<Option<KernelRelease>, AnswerError> {
    let Some(text) = text else { return Ok(None) };
    KernelRelease::parse(text).map(Some).ok_or_else(|| {
        AnswerError::Usage(format!(
            "--kernel {text:?} is no release; give it as `uname -r` prints it, as 6.12.30"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::left_out;
    use quietcore_trace::TraceReader;

    /// Goal: a report about CPUs whose events were left out in part says so. Method: a recording that is
    /// whole on two CPUs, asked about them, one of them, others, and all; and one that leaves nothing out.
    #[test]
    fn what_was_left_out_is_told() {
        let told = |header: &str, isolated: &str| {
            let text = format!("{header}a-7 [000] 1.0: timer_cancel: timer=1\n");
            let mut reader = TraceReader::new(text.as_bytes());
            reader.read_header().expect("a header");
            left_out(reader.header(), &isolated.parse().expect("a list"))
        };
        for (isolated, is_told) in [("2-3", false), ("3", false), ("3-4", true), ("", true)] {
            let sentence = told("# whole on: 2-3\n", isolated);
            assert_eq!(sentence.is_some(), is_told, "{isolated}");
            assert!(sentence.is_none_or(|sentence| sentence.contains("for CPUs 2-3 alone")));
        }
        assert_eq!(told("", "3-4"), None);
    }
}
