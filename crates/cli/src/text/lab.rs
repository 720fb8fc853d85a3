//! Rows as text: one with everything, or all of them in short.
//!
//! A column per variant, medians, and the spread of the rounds below. What is simulated, and what others
//! measured elsewhere, stands apart under its own heading.

use super::page::{Page, in_lines};
use crate::terminal::Style;
use quietcore_lab::{
    Better, ComparisonVerdict, FigureComparison, FigureReport, LabReport, RowReport, ScenarioReport,
    ScenarioValue, ToolOutput, VariantReport, maybe, number,
};

const NAME: usize = 32;
const COLUMN: usize = 15;
const LABEL: usize = 16;
/// Variants side by side; more are shown in further tables.
const SIDE_BY_SIDE: usize = 4;

/// One row with everything.
pub(crate) fn lab_row(page: &mut Page, row: &RowReport) {
    page.styled_line(Style::Heading, &format!("quietcore lab {} (measured)", row.experiment));
    page.item(2, "question", 10, row.question);
    let how = format!(
        "{} rounds of {} ms each, on CPUs {}; medians, and the smallest and largest round",
        row.rounds, row.span_ms, row.cpus
    );
    page.item(2, "how", 10, &how);
    for variant in &row.variants {
        page.item(2, variant.name, LABEL, &format!("({}) {}", variant.role.name(), variant.what));
    }
    row.variants.chunks(SIDE_BY_SIDE).for_each(|variants| figures(page, variants));
    attachments(page, row);
    words(page, row);
    beside(page, row);
    costs(page, std::slice::from_ref(row));
}

/// All rows in short.
pub(crate) fn lab_summary(page: &mut Page, report: &LabReport) {
    page.styled_line(Style::Heading, "quietcore lab (measured on this machine, in this run)");
    for (name, value) in report.host.facts() {
        page.item(2, name, LABEL, &value);
    }
    for row in &report.rows {
        page.heading(&format!("{}: {}", row.experiment, row.question));
        let how = format!("{} rounds of {} ms on CPUs {}", row.rounds, row.span_ms, row.cpus);
        page.item(2, "again", LABEL, &format!("$ {}\n{how}", row.command));
        page.blank();
        if let Some(first) = row.comparisons.first() {
            let line = cells(["measured, medians", first.before, first.after, "ratio", "noise floor"]);
            page.styled_line(Style::Faint, &line);
        }
        row.comparisons.iter().filter(|one| one.has_sample()).for_each(|one| comparison(page, one));
        words(page, row);
        beside(page, row);
    }
    costs(page, &report.rows);
}

/// Whose costs the simulator used; all scenarios share them.
fn costs(page: &mut Page, rows: &[RowReport]) {
    let Some(simulated) = rows.iter().find_map(|row| row.simulated.as_ref()) else { return };
    page.blank();
    page.item(2, "costs", LABEL, &in_lines(&simulated.costs));
}

/// A figure's name for its column; one that is too long has a line of its own.
fn name(page: &mut Page, figure: &str, unit: &str) -> String {
    let name = format!("{figure}, {unit}");
    if name.len() <= NAME {
        return name;
    }
    page.line(&format!("  {name}"));
    String::new()
}

/// A name and four columns.
fn cells(of: [&str; 5]) -> String {
    let [name, columns @ ..] = of;
    let mut line = format!("  {name:<NAME$}");
    for column in columns {
        line.push_str(&format!(" {column:>COLUMN$}"));
    }
    line
}

fn comparison(page: &mut Page, of: &FigureComparison) {
    let name = name(page, of.figure, of.unit);
    let ratio = of.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
    let [before, after] = [of.before_median, of.after_median].map(maybe);
    let line = cells([&name, &before, &after, &ratio, &maybe(of.floor)]);
    let style = match of.verdict {
        ComparisonVerdict::Better => Style::Good,
        ComparisonVerdict::Worse => Style::Bad,
        ComparisonVerdict::NoDifference | ComparisonVerdict::OneRound | ComparisonVerdict::NotMeasured => {
            Style::Faint
        }
    };
    page.styled_line(style, &line);
}

fn figures(page: &mut Page, variants: &[VariantReport]) {
    page.blank();
    let mut line = format!("  {:<NAME$}", "");
    for variant in variants {
        line.push_str(&format!(" {:>COLUMN$}", variant.name));
    }
    page.line(&line);
    let count = variants.first().map_or(0, |variant| variant.figures.len());
    for at in 0..count {
        let figures: Vec<&FigureReport> = variants.iter().map(|variant| &variant.figures[at]).collect();
        if figures.iter().all(|figure| figure.median.is_none()) {
            continue;
        }
        let name = name(page, figures[0].name, figures[0].unit);
        let mut medians = format!("  {name:<NAME$}");
        let mut spreads = format!("  {:<NAME$}", "");
        for figure in &figures {
            medians.push_str(&format!(" {:>COLUMN$}", maybe(figure.median)));
            let spread = match (figure.smallest, figure.largest) {
                (Some(smallest), Some(largest)) => format!("{} to {}", number(smallest), number(largest)),
                _ => String::new(),
            };
            spreads.push_str(&format!(" {spread:>COLUMN$}"));
        }
        page.line(&medians);
        page.styled_line(Style::Faint, spreads.trim_end());
    }
}

fn attachments(page: &mut Page, row: &RowReport) {
    let all: Vec<(&str, &ToolOutput)> = row
        .variants
        .iter()
        .filter_map(|variant| Some((variant.name, variant.attachment.as_ref()?)))
        .collect();
    let Some((_, first)) = all.first() else { return };
    let names = all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if let Some(lines) = side_by_side(&all) {
        page.heading(&format!("In the lines of {} (last round; a column each: {names})", first.format));
        lines.iter().for_each(|line| page.line(line));
        return;
    }
    for (name, attachment) in &all {
        page.heading(&format!("In the lines of {} (last round): {name}", attachment.format));
        attachment.lines.iter().for_each(|line| page.line(line));
    }
}

/// Lines of the form `head TAB value rest` with a value per variant; `None` where they are not such.
fn side_by_side(all: &[(&str, &ToolOutput)]) -> Option<Vec<String>> {
    let first = &all.first()?.1.lines;
    let mut lines = Vec::new();
    for (at, line) in first.iter().enumerate() {
        let (head, body) = line.split_once("\t ")?;
        let rest = body.split_once(' ').map_or(String::new(), |(_, rest)| format!(" {rest}"));
        let mut joined = format!("{head}\t");
        for (_, attachment) in all {
            let (other, body) = attachment.lines.get(at)?.split_once("\t ")?;
            if other != head {
                return None;
            }
            joined.push(' ');
            joined.push_str(body.split(' ').next().unwrap_or_default());
        }
        joined.push_str(&rest);
        lines.push(joined);
    }
    Some(lines)
}

fn words(page: &mut Page, row: &RowReport) {
    if row.words.is_empty() {
        return;
    }
    page.blank();
    for sentence in &row.words {
        let is_bad = sentence.starts_with("BROKEN") || sentence.contains("LOSES");
        let label = if is_bad { page.styled(Style::Bad, "!") } else { "-".to_owned() };
        page.item(2, &label, 1, sentence);
    }
}

/// What was not measured here.
fn beside(page: &mut Page, row: &RowReport) {
    if let Some(simulated) = &row.simulated {
        sim(page, simulated);
    }
    if let Some(cited) = &row.cited {
        page.blank();
        let of = cited.question;
        page.line(&format!("  Published elsewhere ({of}), for comparison only: measured by others"));
        for figure in cited.figures {
            page.item(4, figure.what, 46, figure.verbatim);
        }
    }
}

fn sim(page: &mut Page, simulated: &ScenarioReport) {
    page.blank();
    page.line(&format!("  Simulated ({}), and with all costs halved and doubled", simulated.scenario));
    for one in &simulated.comparisons {
        let ratio = one.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
        page.line(&format!("    {}, {}", one.what, one.unit));
        let named = |value: &ScenarioValue| format!("{} {}", value.variant, maybe(value.value));
        let verdict = match one.ratio {
            Some(1.0) => "no difference",
            Some(ratio) if (ratio < 1.0) == (one.better == Better::Lower) => "after is better",
            Some(_) => "after LOSES",
            None => "",
        };
        page.line(&format!(
            "      {:<26} {:<26} {ratio:>7}   {verdict}",
            named(&one.before),
            named(&one.after)
        ));
        let range = |value: &ScenarioValue| format!("{}, {}", maybe(value.halved), maybe(value.doubled));
        let line = format!("      {:<26} {}", range(&one.before), range(&one.after));
        page.styled_line(Style::Faint, &line);
    }
    if !simulated.holds {
        page.styled_line(Style::Bad, "    something that the scenario expects does not hold");
    }
}

#[cfg(test)]
mod tests {
    use crate::terminal::Style;
    use crate::text::lab_fixture as fixture;
    use crate::text::page::{COLUMNS, Page};
    use quietcore_lab::{Better, LabReport, PredictReport, ScenarioComparison, ToolOutput};

    /// Goal: one row with everything, with three variants and with four, all in short. Method: snapshots of
    /// fixed rounds.
    #[test]
    fn text_of_fixed_rounds() {
        let report = fixture::report();
        let mut page = Page::plain();
        super::lab_row(&mut page, &report.rows[0]);
        insta::assert_snapshot!("row", page.into_text());
        let mut page = Page::plain();
        super::lab_row(&mut page, &report.rows[2]);
        insta::assert_snapshot!("row-of-four", page.into_text());
        let mut page = Page::plain();
        super::lab_summary(&mut page, &report);
        let text = page.into_text();
        for line in text.lines() {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
        insta::assert_snapshot!("summary", text);
    }

    /// Goal: no row is wider than a page, and all its variants and figures are there. Method: numbers of five
    /// digits; names, of which some are too long for their column.
    #[test]
    fn every_row_fits() {
        for plan in quietcore_lab::ROWS {
            let row =
                fixture::row(plan.name, |variant, figure| Some((10_000 + 100 * variant + figure) as f64));
            let mut page = Page::plain();
            super::lab_row(&mut page, &row);
            let shown = page.into_text();
            for (name, unit) in plan.figures {
                assert!(shown.contains(&format!("  {name}, {unit}")), "{name}: {shown}");
            }
            let mut page = Page::plain();
            super::lab_row(&mut page, &row);
            super::lab_summary(&mut page, &LabReport { rows: vec![row], ..fixture::report() });
            let text = page.into_text();
            for line in text.lines() {
                assert!(line.chars().count() <= COLUMNS, "{}: {line}", plan.name);
            }
            for variant in 0..plan.variants.len() {
                let figure = (10_000 + 100 * variant).to_string();
                assert!(text.split_whitespace().any(|word| word == figure), "{figure}: {text}");
            }
        }
    }

    /// Goal: output of a tool that has no columns stands one below the other, what is broken stands out, a
    /// simulation that contradicts itself says so, and each verdict of one is about the direction that is
    /// better. Method: a snapshot of one row.
    #[test]
    fn text_of_a_row_with_loose_ends() {
        let mut row = fixture::report().rows.swap_remove(0);
        for (variant, thread) in [(1, "T: 0 (  11) P:80"), (2, "T: 0 (  22) P:90")] {
            let lines = vec![thread.to_owned(), format!("{thread} again")];
            row.variants[variant].attachment = Some(ToolOutput { format: "cyclictest", lines });
        }
        let simulated = row.simulated.as_mut().expect("it has one");
        simulated.holds = false;
        let [lower, higher] = [Better::Lower, Better::Higher];
        for (what, better, ratio) in [
            ("less", lower, Some(0.25)),
            ("more", higher, Some(1.5)),
            ("too many", lower, Some(1.5)),
            ("too few", higher, Some(0.25)),
            ("as many", higher, Some(1.0)),
            ("none", lower, None),
        ] {
            let like = &simulated.comparisons[0];
            let (before, after) = (like.before.clone(), like.after.clone());
            simulated.comparisons.push(ScenarioComparison { what, unit: "ns", better, before, after, ratio });
        }
        simulated.comparisons.remove(0);
        row.words.push("BROKEN: this figure must have one value.".to_owned());
        let mut page = Page::plain();
        super::lab_row(&mut page, &row);
        insta::assert_snapshot!("loose-ends", page.into_text());
    }

    /// Goal: predictions and measurements side by side. Method: a snapshot of fixed rounds.
    #[test]
    fn text_of_fixed_predictions() {
        let mut page = Page::plain();
        crate::text::predictions(&mut page, &fixture::judged());
        insta::assert_snapshot!("predict", page.into_text());
    }

    /// Goal: what is within the tolerance is in another colour than what is not, and nothing is said to be
    /// missing of a whole run. Method: both, in colour, and what was not measured.
    #[test]
    fn predictions_that_are_off_stand_out() {
        let report = PredictReport { complete: true, ..fixture::judged() };
        let mut page = Page::coloured();
        crate::text::predictions(&mut page, &report);
        let text = page.into_text();
        let styled = |what: &str| {
            let line = text.lines().find(|line| line.contains(what)).expect("a line");
            let styles = [Style::Good, Style::Warning].map(|style| style.of(""));
            styles.map(|style| line.starts_with(style.split('m').next().expect("a code")))
        };
        assert_eq!(styled("wake-ups per second, pull"), [true, false]);
        assert_eq!(styled("arm and cancel, pull"), [false, true]);
        assert_eq!(styled(" 90000 "), [false, false]);
        assert!(text.ends_with("3 of 8 predictions are within the tolerance\n"), "{text}");
    }
}
