//! Two recordings, or two reports, side by side: did the change help?
//!
//! Decides when a difference is more than chance: where it exceeds what the two halves of either recording
//! differ by, and, for counts, twice the spread of events that happen independently of each other (the root
//! of their number). A report in JSON has no halves.

use crate::bundled::name_of;
use crate::error::AnswerError;
use crate::explain::options_of_file;
use crate::reader::{ReadWatch, open, read_all};
use quietcore_core::{CpuSet, Nanos};
use quietcore_explain::{Explain, Facts, FigureUnit, figure_names, named_figures};
use quietcore_trace::{EXPANSION_MAX, OpenError, Record, Tally, visible_path};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest report in JSON that is read.
const JSON_BYTES_MAX: u64 = 64 << 20;

/// The JSON of `quietcore diff --json`, schema 1.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// 1.
    pub schema: u32,
    /// The first input.
    pub before: ComparedInput,
    /// The second.
    pub after: ComparedInput,
    /// In the order in which figures are listed.
    pub figures: Vec<ComparedFigure>,
}

/// One of the two.
#[derive(Debug, Serialize)]
pub struct ComparedInput {
    /// As it was named.
    pub name: String,
    /// The kernel's release, if it says.
    pub kernel: Option<String>,
    /// The isolated CPUs, a kernel list.
    pub isolated: String,
    /// From the first to the last event.
    pub duration_ns: Option<u64>,
    /// Events that were lost.
    pub lost_events: u64,
    /// Why its figures are approximate.
    pub incomplete: Vec<String>,
}

/// A figure on both sides: counts per second, spans in ns.
#[derive(Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// Its name.
    pub figure: &'static str,
    /// `/s` or `ns`.
    pub unit: &'static str,
    /// Of the first input; `None` where it is not known.
    pub before: Option<f64>,
    /// Of the second.
    pub after: Option<f64>,
    /// What may be chance; `null` where it is not known.
    pub chance: Option<f64>,
    /// `more`, `less`, `same`, or `unknown`.
    pub verdict: &'static str,
}

/// What is compared of an input: all of it, and its halves if they are known.
struct Measured {
    input: ComparedInput,
    figures: BTreeMap<String, Option<u64>>,
    halves: Option<[BTreeMap<&'static str, Option<u64>>; 2]>,
}

/// What is read of a report in JSON.
#[derive(Deserialize)]
struct Report {
    kernel: Option<String>,
    isolated: String,
    duration_ns: Option<u64>,
    lost_events: u64,
    incomplete: Vec<String>,
    figures: BTreeMap<String, Option<u64>>,
}

/// Which two are compared.
#[derive(Clone, Debug)]
pub struct DiffRequest {
    /// A recording, `@NAME` of the program, or a report of `quietcore explain --json`.
    pub before: PathBuf,
    /// Another one of the same load.
    pub after: PathBuf,
    /// The CPUs that must stay quiet; `None` takes the recording's list, else the host's.
    pub isolated: Option<CpuSet>,
    /// So many times its size a compressed recording may expand.
    pub expansion_max: u32,
}

impl DiffRequest {
    /// These two, about the CPUs that they say themselves.
    #[must_use]
    pub fn new(before: impl Into<PathBuf>, after: impl Into<PathBuf>) -> Self {
        Self { before: before.into(), after: after.into(), isolated: None, expansion_max: EXPANSION_MAX }
    }
}

/// Compares two inputs. Each recording is read twice.
///
/// # Errors
/// [`AnswerError`].
pub fn diff(request: &DiffRequest, watch: ReadWatch<'_>) -> Result<Comparison, AnswerError> {
    let before = measure(request, &request.before, watch)?;
    Ok(compare(before, measure(request, &request.after, watch)?))
}

fn measure(request: &DiffRequest, path: &Path, watch: ReadWatch<'_>) -> Result<Measured, AnswerError> {
    if path == Path::new("-") {
        let sentence = "diff reads its inputs twice; name two files".to_owned();
        return Err(AnswerError::Usage(sentence));
    }
    if name_of(path).is_some() {
        return measured_recording(request, path, watch);
    }
    match report(path)? {
        Some(report) => Ok(measured_report(path, report)),
        None => measured_recording(request, path, watch),
    }
}

/// The report that `path` holds, if it begins as JSON does.
fn report(path: &Path) -> Result<Option<Report>, AnswerError> {
    let failed = |error| AnswerError::Open(OpenError::Io { path: path.to_owned(), error });
    let mut file = File::open(path).map_err(failed)?;
    let mut front = [0; 1];
    if file.read(&mut front).map_err(failed)? == 0 || front != *b"{" {
        return Ok(None);
    }
    let mut json = "{".to_owned();
    file.take(JSON_BYTES_MAX).read_to_string(&mut json).map_err(failed)?;
    serde_json::from_str(&json).map(Some).map_err(|error| {
        AnswerError::Usage(format!(
            "{}: no report of `quietcore explain --json` with figures to compare: {error}",
            visible_path(path)
        ))
    })
}

fn measured_report(path: &Path, report: Report) -> Measured {
    let Report { kernel, isolated, duration_ns, lost_events, incomplete, figures } = report;
    let name = visible_path(path).to_string();
    let input = ComparedInput { name, kernel, isolated, duration_ns, lost_events, incomplete };
    Measured { input, figures, halves: None }
}

/// Reads a recording twice: whole, and its halves.
fn measured_recording(
    request: &DiffRequest,
    path: &Path,
    watch: ReadWatch<'_>,
) -> Result<Measured, AnswerError> {
    let mut span = None;
    let (mut wholes, tally) = read(request, path, watch, &mut |parts, record| {
        let (first, last) = span.unwrap_or((record.at, record.at));
        span = Some((record.at.min(first), record.at.max(last)));
        parts[0].take(record);
    })?;
    let report = wholes.remove(0).finish(&tally);
    let (first, last) = span.unwrap_or_default();
    let middle = Nanos(first.as_u64().midpoint(last.as_u64()));
    let (mut halves, tally) = read(request, path, watch, &mut |parts, record| {
        parts[usize::from(record.at > middle)].take(record);
    })?;
    let second = halves.remove(1).finish(&tally);
    let halves = [named_figures(&halves.remove(0).finish(&tally)), named_figures(&second)];
    let figures = named_figures(&report).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let input = ComparedInput {
        name: visible_path(path).to_string(),
        kernel: report.kernel,
        isolated: report.isolated,
        duration_ns: report.duration_ns,
        lost_events: report.lost_events,
        incomplete: report.incomplete,
    };
    Ok(Measured { input, figures, halves: Some(halves) })
}

/// Reads the recording at `path` once, with two explanations of what `visit` hands to each.
fn read(
    request: &DiffRequest,
    path: &Path,
    watch: ReadWatch<'_>,
    visit: &mut dyn FnMut(&mut [Explain], &Record<'_>),
) -> Result<(Vec<Explain>, Tally), AnswerError> {
    let mut reader = open(path, request.expansion_max)?;
    reader.read_header().map_err(|error| AnswerError::Read(path.to_owned(), error))?;
    let host = || Facts::read(Path::new("/"));
    let options = options_of_file(request.isolated.as_ref(), path, reader.header(), host)?;
    let mut parts = vec![Explain::new(options.clone()), Explain::new(options)];
    read_all(path, &mut reader, watch, &mut |record| visit(&mut parts, record))?;
    Ok((parts, reader.tally().clone()))
}

fn compare(before: Measured, after: Measured) -> Comparison {
    let figures = figure_names().map(|(figure, kind)| compared(figure, kind, &before, &after)).collect();
    Comparison { schema: 1, before: before.input, after: after.input, figures }
}

fn compared(figure: &'static str, kind: FigureUnit, before: &Measured, after: &Measured) -> ComparedFigure {
    let values = [before, after].map(|measured| measured.value(figure, kind));
    let chances = [before, after].map(|measured| measured.chance(figure, kind));
    let chance = chances.into_iter().flatten().reduce(f64::max);
    let verdict = match (values, chance) {
        ([Some(before), Some(after)], Some(chance)) if after - before > chance => "more",
        ([Some(before), Some(after)], Some(chance)) if before - after > chance => "less",
        ([Some(_), Some(_)], Some(_)) => "same",
        _ => "unknown",
    };
    let unit = if kind == FigureUnit::Span { "ns" } else { "/s" };
    let [before, after] = values;
    ComparedFigure { figure, unit, before, after, chance, verdict }
}

impl Measured {
    fn seconds(&self) -> Option<f64> {
        self.input.duration_ns.filter(|&nanos| nanos > 0).map(|nanos| nanos as f64 / 1e9)
    }

    fn count(&self, figure: &str) -> Option<f64> {
        self.figures.get(figure).copied().flatten().map(|value| value as f64)
    }

    /// A count per second, or a span.
    fn value(&self, figure: &str, kind: FigureUnit) -> Option<f64> {
        let value = self.count(figure)?;
        if kind == FigureUnit::Span { Some(value) } else { Some(value / self.seconds()?) }
    }

    /// How much of a difference may be chance.
    fn chance(&self, figure: &str, kind: FigureUnit) -> Option<f64> {
        let halves = self.halves.as_ref().and_then(|halves| {
            let [first, second] = halves.each_ref().map(|half| half.get(figure).copied().flatten());
            Some((first? as f64 - second? as f64).abs())
        });
        if kind == FigureUnit::Span {
            return halves;
        }
        let seconds = self.seconds()?;
        // Each half has half of the time.
        let halves = halves.map_or(0.0, |difference| 2.0 * difference / seconds);
        Some(halves.max(2.0 * self.count(figure)?.sqrt() / seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::{ComparedInput, Measured, compared};
    use quietcore_explain::FigureUnit::{self, Count, Span};
    use std::collections::BTreeMap;

    /// An input of two seconds in which the figure `foreign` is `value` and its halves are these.
    fn measured(value: Option<u64>, halves: Option<[u64; 2]>) -> Measured {
        let input = ComparedInput {
            name: "x".to_owned(),
            kernel: None,
            isolated: String::new(),
            duration_ns: Some(2_000_000_000),
            lost_events: 0,
            incomplete: vec![],
        };
        let halves = halves.map(|halves| halves.map(|half| BTreeMap::from([("foreign", Some(half))])));
        Measured { input, figures: BTreeMap::from([("foreign".to_owned(), value)]), halves }
    }

    fn verdict(kind: FigureUnit, before: Measured, after: Measured) -> (&'static str, Option<f64>) {
        let compared = compared("foreign", kind, &before, &after);
        (compared.verdict, compared.chance)
    }

    /// Goal: a difference counts if it is more than what halves differ by, and than chance alone. Method:
    /// counts on both sides of either limit, in both directions.
    #[test]
    fn a_difference_is_more_than_chance() {
        let even = |count| measured(Some(count), Some([count / 2, count / 2]));
        // Twice the root of 100 in two seconds is 10 per second.
        assert_eq!(verdict(Count, even(100), even(80)), ("same", Some(10.0)));
        assert_eq!(verdict(Count, even(100), even(78)), ("less", Some(10.0)));
        assert_eq!(verdict(Count, even(78), even(100)), ("more", Some(10.0)));
        let uneven = measured(Some(100), Some([80, 20]));
        assert_eq!(verdict(Count, uneven, even(0)), ("same", Some(60.0)));
        assert_eq!(verdict(Count, even(0), even(1)), ("same", Some(1.0)));
        assert_eq!(verdict(Count, even(0), even(6)).0, "more");
        assert_eq!(verdict(Count, measured(Some(100), None), measured(Some(78), None)), ("less", Some(10.0)));
    }

    /// Goal: spans are compared as they are, and only with halves; what is missing is not compared.
    #[test]
    fn spans_need_halves() {
        let span = |value, halves| measured(Some(value), halves);
        assert_eq!(verdict(Span, span(50, Some([45, 50])), span(60, Some([60, 58]))), ("more", Some(5.0)));
        assert_eq!(verdict(Span, span(50, Some([45, 50])), span(54, Some([54, 54]))), ("same", Some(5.0)));
        assert_eq!(verdict(Span, span(50, None), span(60, None)), ("unknown", None));
        assert_eq!(verdict(Count, measured(None, None), span(60, None)).0, "unknown");
        let mut short = span(5, None);
        short.input.duration_ns = None;
        assert_eq!(verdict(Count, short, span(60, None)).0, "unknown");
    }
}
