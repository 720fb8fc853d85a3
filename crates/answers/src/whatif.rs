//! A recording's arms, cancels and awake intervals under another policy.
//!
//! One pass over the input feeds the explanation (what was recorded) and the load (what is replayed).

use crate::error::AnswerError;
use crate::explain::kernel_option;
use crate::reader::{LINES_PER_TURN, ReadSoFar, ReadWatch, open, refuse_empty};
use crate::whatif_comparison::{RecordedKernel, WhatifComparison};
use quietcore_core::CpuSet;
use quietcore_core::place::Policy;
use quietcore_explain::{Explain, ExplainOptions, Explanation};
use quietcore_trace::{EXPANSION_MAX, Header, KernelRelease, Progress, Record, visible, visible_path};
use quietcore_verify::whatif::{
    Excluded, INPUTS_MAX, LoadFacts, LoadReader, RecordedLoad, WhatifAnswer, WhatifQuestion, answer,
};
use std::path::{Path, PathBuf};

/// What is asked of a recording, and what it does not say itself.
#[derive(Clone, Debug)]
pub struct WhatifRequest {
    /// A file, or `@NAME` of the program.
    pub path: PathBuf,
    /// Where unpinned timers go; `None`: as the kernel of the recording placed them.
    pub policy: Option<Policy>,
    /// CPUs that neither pull nor are pulled; `None`: as recorded.
    pub exclude: Option<CpuSet>,
    /// CPUs that never go idle.
    pub keep_awake: CpuSet,
    /// The CPUs that must stay quiet; `None` takes the recording's list.
    pub isolated: Option<CpuSet>,
    /// The kernel's release, where the recording does not say.
    pub kernel: Option<String>,
    /// So many times its size a compressed recording may expand.
    pub expansion_max: u32,
}

impl WhatifRequest {
    /// The recording at `path`, with nothing changed.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            policy: None,
            exclude: None,
            keep_awake: CpuSet::new(),
            isolated: None,
            kernel: None,
            expansion_max: EXPANSION_MAX,
        }
    }
}

/// What was recorded, and what the replays came to.
#[derive(Debug)]
pub struct WhatifRun {
    report: Explanation,
    load: RecordedLoad,
    /// What the replays came to.
    pub answer: WhatifAnswer,
}

impl WhatifRun {
    /// Both side by side, as the JSON has them.
    #[must_use]
    pub fn comparison(&self) -> WhatifComparison<'_> {
        WhatifComparison {
            schema: 1,
            recorded: RecordedKernel::of(&self.report, &self.load),
            answer: &self.answer,
        }
    }
}

/// Replays the recording as it was and as it is asked for. Eight replays, some microseconds per input each.
///
/// # Errors
/// [`AnswerError`]: of reading, or the recording does not say what the question needs.
pub fn whatif(request: &WhatifRequest, watch: ReadWatch<'_>) -> Result<WhatifRun, AnswerError> {
    let (report, load) = read(request, watch)?;
    let question = WhatifQuestion {
        policy: request.policy.unwrap_or(load.policy()),
        excluded: request.exclude.clone().map_or(Excluded::AsRecorded, Excluded::These),
        kept_awake: request.keep_awake.clone(),
    };
    let answer = answer(&load, &question).map_err(|error| refused(&request.path, &error))?;
    Ok(WhatifRun { report, load, answer })
}

fn refused(path: &Path, why: &dyn std::fmt::Display) -> AnswerError {
    AnswerError::Usage(format!("{}: {why}", visible_path(path)))
}

/// Reads the recording once; a part of it when it has more inputs than are kept.
fn read(request: &WhatifRequest, watch: ReadWatch<'_>) -> Result<(Explanation, RecordedLoad), AnswerError> {
    let failed = |error| AnswerError::Read(request.path.clone(), error);
    let mut reader = open(&request.path, request.expansion_max)?;
    reader.read_header().map_err(failed)?;
    let options = options(request, reader.header())?;
    let facts = facts(&options, reader.header().hz);
    let (mut explain, mut load) = (Explain::new(options), LoadReader::new());
    let whole_from = reader.header().whole_from.unwrap_or_default();
    let mut take = |record: &Record<'_>| {
        if record.at < whole_from {
            return load.is_full();
        }
        load.take(record);
        if !load.is_full() {
            explain.take(record);
        }
        load.is_full()
    };
    let mut is_full = false;
    while !is_full {
        let turn = reader.read(LINES_PER_TURN, &mut |record| is_full = take(record)).map_err(failed)?;
        if turn == Progress::Finished {
            break;
        }
        if !watch(ReadSoFar::of(&reader)) {
            return Err(AnswerError::Interrupted);
        }
    }
    refuse_empty(&request.path, reader.tally())?;
    if reader.tally().clock_without_unit {
        let why = "its time stamps have no unit (clock counter or x86-tsc), so ticks cannot be placed; record \
                   with trace_clock mono";
        return Err(refused(&request.path, &why));
    }
    let mut report = explain.finish(reader.tally());
    if is_full {
        let cut = format!("only the first {INPUTS_MAX} arms, cancels and awake intervals were read");
        report.incomplete.push(cut);
    }
    let load = load.finish(facts).map_err(|error| refused(&request.path, &error))?;
    Ok((report, load))
}

fn facts(options: &ExplainOptions, hz: Option<u32>) -> LoadFacts {
    LoadFacts {
        cpu_count: options.cpu_count,
        hz,
        model: options.kernel.as_ref().map(KernelRelease::timer_model),
        timer_migration: options.timer_migration,
        isolated: options.isolated.clone(),
        nohz_full: options.nohz_full.clone(),
    }
}

/// The isolated set decides what is foreign, so it must be known: `--isolated`, or the recording's list.
fn options(request: &WhatifRequest, header: &Header) -> Result<ExplainOptions, AnswerError> {
    let (isolated, isolated_source) = match (&request.isolated, &header.isolated, &header.isolated_unreadable)
    {
        (Some(isolated), ..) => (isolated.clone(), "option"),
        (None, _, Some(text)) => {
            let why = format!(
                "its header line \"# isolated: {}\" holds no CPU list; name the CPUs with --isolated LIST",
                visible(text)
            );
            return Err(refused(&request.path, &why));
        }
        (None, Some(isolated), None) => (isolated.clone(), "recording"),
        (None, None, None) if header.is_recording => (CpuSet::new(), "recording"),
        (None, None, None) => {
            let why = "it does not say which CPUs must stay quiet; name them with --isolated LIST, as \
                       --isolated 1-7,9-15, or say --isolated none";
            return Err(refused(&request.path, &why));
        }
    };
    let kernel = kernel_option(request.kernel.as_deref())?.or_else(|| header.kernel.clone());
    Ok(ExplainOptions {
        isolated,
        isolated_source,
        nohz_full: header.nohz_full.clone().unwrap_or_default(),
        kernel,
        cpu_count: header.cpu_count,
        timer_migration: header.timer_migration,
        ..ExplainOptions::default()
    })
}

#[cfg(test)]
mod tests {
    use super::{WhatifRequest, facts, options};
    use quietcore_trace::{TimerModel, TraceReader};

    /// Goal: explanation and replay are about what the recording says of its machine, unless an option says
    /// otherwise. Method: a header of which no two facts are the same, alone and with both options.
    #[test]
    fn the_recording_says_of_which_machine_it_is() {
        let text = "# kernel: Linux 6.1.176, HZ=300\n# cpus: possible 0-11, online\n\
                    # isolated: 8-11; nohz_full: 4-7\n# sysctl kernel timer_migration: 0\n\
                    a-7 [000] 1.0: timer_cancel: timer=1\n";
        let mut reader = TraceReader::new(text.as_bytes());
        reader.read_header().expect("a header");
        let asked = |request: &WhatifRequest| options(request, reader.header()).expect("options");
        let (isolated, kernel) = ("3".parse().ok(), Some("6.19.2".to_owned()));
        let other = WhatifRequest { isolated, kernel, ..WhatifRequest::new("t") };
        let (own, other) = (asked(&WhatifRequest::new("t")), asked(&other));
        assert_eq!((own.isolated.to_string().as_str(), own.isolated_source), ("8-11", "recording"));
        assert_eq!((other.isolated.to_string().as_str(), other.isolated_source), ("3", "option"));
        for (options, kernel, isolated, model) in [
            (own, "6.1.176", "8-11", TimerModel::Push),
            (other, "6.19.2", "3", TimerModel::PullExcludesIsolated),
        ] {
            assert_eq!(options.kernel.as_ref().map(|kernel| kernel.text.as_str()), Some(kernel));
            assert_eq!((options.cpu_count, options.timer_migration), (Some(12), Some(false)));
            assert_eq!(options.nohz_full.to_string(), "4-7");
            let facts = facts(&options, reader.header().hz);
            assert_eq!(
                (facts.cpu_count, facts.hz, facts.timer_migration),
                (Some(12), Some(300), Some(false))
            );
            assert_eq!(
                (facts.isolated.to_string().as_str(), facts.nohz_full.to_string()),
                (isolated, "4-7".into())
            );
            assert_eq!(facts.model, Some(model));
        }
    }
}
