//! Two inputs side by side as text.

use super::page::Page;
use crate::terminal::Style;
use quietcore_answers::{ComparedFigure, ComparedInput, Comparison};
use quietcore_core::Nanos;
use quietcore_trace::visible;

const LABEL: usize = 6;

/// The whole comparison.
pub(crate) fn differences(page: &mut Page, comparison: &Comparison) {
    let Comparison { before, after, figures, .. } = comparison;
    page.styled_line(Style::Heading, "quietcore diff");
    input(page, "before", before);
    input(page, "after", after);
    page.blank();
    let line = |figure: &str, before: &str, after: &str, chance: &str, verdict: &str| {
        format!("  {figure:<18} {before:>14} {after:>14} {chance:>14}  {verdict}").trim_end().to_owned()
    };
    page.styled_line(Style::Heading, &line("", "before", "after", "may be chance", ""));
    for figure in figures.iter().filter(|figure| figure.before.is_some() || figure.after.is_some()) {
        let shown = |value: Option<f64>| shown(figure, value);
        let (before, after, chance) = (shown(figure.before), shown(figure.after), shown(figure.chance));
        let verdict = match figure.verdict {
            verdict @ "more" => page.styled(Style::Bad, verdict),
            verdict @ "less" => page.styled(Style::Good, verdict),
            verdict => verdict.to_owned(),
        };
        page.line(&line(figure.figure, &before, &after, &chance, &verdict));
    }
    page.blank();
    page.item(1, "", 0, NOTE);
}

const NOTE: &str = "more, less: the difference exceeds what halves of either recording differ by and, for counts, twice \
                    the root of their number; same: it does not; unknown: there is nothing to tell it from.";

fn input(page: &mut Page, label: &str, input: &ComparedInput) {
    let kernel = input.kernel.as_deref().map_or("unknown".to_owned(), visible);
    let span = input.duration_ns.map_or("unknown".to_owned(), |nanos| Nanos(nanos).to_string());
    let isolated = if input.isolated.is_empty() { "none" } else { &*input.isolated };
    let lost = page.lost(input.lost_events);
    let text = format!("{}: kernel {kernel}, isolated {isolated}, {span}, {lost}", input.name);
    page.item(2, label, LABEL, &text);
    for reason in &input.incomplete {
        let incomplete = page.styled(Style::Bad, "INCOMPLETE");
        page.item(2, &incomplete, 10, reason);
    }
}

/// A rate or a span, or that there is none.
fn shown(figure: &ComparedFigure, value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if figure.unit == "ns" => Nanos(value as u64).to_string(),
        Some(value) => format!("{value:.2}/s"),
    }
}
