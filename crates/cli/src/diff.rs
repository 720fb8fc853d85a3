//! `quietcore diff BEFORE AFTER`: two recordings, or two reports, side by side: did the change help?
//!
//! Decides when a difference is more than chance: where it exceeds what the two halves of either recording
//! differ by, and, for counts, twice the spread of events that happen independently of each other (the root
//! of their number). A report in JSON has no halves.

use crate::args::DiffArgs;
use crate::error::CliError;
use crate::explain::{LINES_PER_TURN, options_of_file};
use crate::host;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::{Display, read_so_far};
use crate::reader;
use crate::text::{self, Page};
use quietcore_core::Nanos;
use quietcore_explain::{Explain, FigureUnit, figure_names, named_figures};
use quietcore_trace::{OpenError, Progress, Record, Tally, visible_path};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest report in JSON that is read.
const JSON_BYTES_MAX: u64 = 64 << 20;

/// The JSON of `quietcore diff --json`, schema 1.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    schema: u32,
    pub(crate) before: ComparedInput,
    pub(crate) after: ComparedInput,
    pub(crate) figures: Vec<ComparedFigure>,
}

/// One of the two.
#[derive(Debug, Serialize)]
pub(crate) struct ComparedInput {
    pub(crate) name: String,
    pub(crate) kernel: Option<String>,
    pub(crate) isolated: String,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) lost_events: u64,
    pub(crate) incomplete: Vec<String>,
}

/// A figure on both sides: counts per second, spans in ns.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ComparedFigure {
    pub(crate) figure: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) before: Option<f64>,
    pub(crate) after: Option<f64>,
    /// What may be chance; `null` where it is not known.
    pub(crate) chance: Option<f64>,
    /// `more`, `less`, `same`, or `unknown`.
    pub(crate) verdict: &'static str,
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

pub(crate) fn run(args: &DiffArgs) -> Result<CommandOutcome, CliError> {
    let (before, after) = (measure(args, &args.before)?, measure(args, &args.after)?);
    let comparison = compare(before, after);
    if args.json {
        output::print_json(&comparison)?;
    } else {
        Page::print(|page| text::differences(page, &comparison))?;
    }
    Ok(CommandOutcome::Fine)
}

fn measure(args: &DiffArgs, path: &Path) -> Result<Measured, CliError> {
    if path == Path::new("-") {
        let sentence = "diff reads its inputs twice; name two files".to_owned();
        return Err(CliError::Usage(sentence));
    }
    match report(path)? {
        Some(report) => Ok(measured_report(path, report)),
        None => measured_recording(args, path),
    }
}

/// The report that `path` holds, if it begins as JSON does.
fn report(path: &Path) -> Result<Option<Report>, CliError> {
    let failed = |error| CliError::Open(OpenError::Io { path: path.to_owned(), error });
    let mut file = File::open(path).map_err(failed)?;
    let mut front = [0; 1];
    if file.read(&mut front).map_err(failed)? == 0 || front != *b"{" {
        return Ok(None);
    }
    let mut json = "{".to_owned();
    file.take(JSON_BYTES_MAX).read_to_string(&mut json).map_err(failed)?;
    serde_json::from_str(&json).map(Some).map_err(|error| {
        CliError::Usage(format!(
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
fn measured_recording(args: &DiffArgs, path: &Path) -> Result<Measured, CliError> {
    let (mut wholes, mut span) = (Vec::new(), None);
    let tally = read(args, path, &mut wholes, 1, &mut |parts, record| {
        let (first, last) = span.unwrap_or((record.at, record.at));
        span = Some((record.at.min(first), record.at.max(last)));
        parts[0].take(record);
    })?;
    let report = wholes.remove(0).finish(&tally);
    let (first, last) = span.unwrap_or_default();
    let middle = Nanos(first.as_u64().midpoint(last.as_u64()));
    let mut halves = Vec::new();
    let tally = read(args, path, &mut halves, 2, &mut |parts, record| {
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

/// Reads the recording at `path` once, with so many explanations of what `visit` hands to each.
fn read(
    args: &DiffArgs,
    path: &Path,
    parts: &mut Vec<Explain>,
    count: usize,
    visit: &mut dyn FnMut(&mut [Explain], &Record<'_>),
) -> Result<Tally, CliError> {
    let failed = |error| CliError::Read(path.to_owned(), error);
    let mut reader = reader::open(path, args.expansion.max_expansion)?;
    reader.read_header().map_err(failed)?;
    let options = options_of_file(args.isolated.as_ref(), path, reader.header(), host::facts)?;
    parts.extend((0..count).map(|_| Explain::new(options.clone())));
    let mut display = Display::new();
    while reader.read(LINES_PER_TURN, &mut |record| visit(parts, record)).map_err(failed)?
        != Progress::Finished
    {
        display.show(|| read_so_far(&reader));
    }
    display.clear();
    reader::refuse_empty(path, reader.tally())?;
    Ok(reader.tally().clone())
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
