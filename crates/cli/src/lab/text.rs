//! Rows as text: one with everything, or all of them in short.
//!
//! A column per variant, medians, and the spread of the rounds below. What is simulated, and what others
//! measured elsewhere, stands apart under its own heading.

use super::plan::{Attachment, Better, Role};
use super::report::{Comparison, Figure, Report, Row, SimValue, Simulated, Verdict, maybe, number};
use crate::text::{Page, Style};

const NAME: usize = 32;
const COLUMN: usize = 15;
const LABEL: usize = 16;

/// One row with everything.
pub(super) fn row(page: &mut Page, row: &Row) {
    let title = page.styled(Style::Heading, &format!("quietcore lab {} (measured)", row.experiment));
    page.line(&title);
    page.item(2, "question", 10, row.question);
    let how = format!(
        "{} rounds of {} ms each, on CPUs {}; medians, and the smallest and largest round",
        row.rounds, row.span_ms, row.cpus
    );
    page.item(2, "how", 10, &how);
    for variant in &row.variants {
        page.item(2, variant.name, LABEL, &format!("({}) {}", role(variant.role), variant.what));
    }
    page.blank();
    figures(page, row);
    attachments(page, row);
    words(page, row);
    beside(page, row);
    costs(page, std::slice::from_ref(row));
}

/// All rows in short.
pub(super) fn summary(page: &mut Page, report: &Report) {
    let title = page.styled(Style::Heading, "quietcore lab (measured on this machine, in this run)");
    page.line(&title);
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
            let line = page.styled(Style::Faint, &line);
            page.line(&line);
        }
        row.comparisons.iter().for_each(|one| comparison(page, one));
        words(page, row);
        beside(page, row);
    }
    costs(page, &report.rows);
}

/// Where the simulator's costs are from; all scenarios share them.
fn costs(page: &mut Page, rows: &[Row]) {
    let Some(simulated) = rows.iter().find_map(|row| row.simulated.as_ref()) else { return };
    page.blank();
    page.item(2, "simulated with", LABEL, &format!("costs {}", simulated.costs));
}

pub(super) const fn role(role: Role) -> &'static str {
    match role {
        Role::NoiseFloor => "noise floor",
        Role::Before => "before",
        Role::After => "after",
    }
}

pub(super) const fn better(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    }
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

fn comparison(page: &mut Page, of: &Comparison) {
    let name = format!("{}, {}", of.figure, of.unit);
    let ratio = of.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
    let [before, after] = [of.before_median, of.after_median].map(number);
    let line = cells([&name, &before, &after, &ratio, &maybe(of.floor)]);
    let style = match of.verdict {
        Verdict::Better => Style::Good,
        Verdict::Worse => Style::Bad,
        Verdict::NoDifference | Verdict::OneRound => Style::Faint,
    };
    let line = page.styled(style, &line);
    page.line(&line);
}

fn figures(page: &mut Page, row: &Row) {
    let mut line = format!("  {:<NAME$}", "");
    for variant in &row.variants {
        line.push_str(&format!(" {:>COLUMN$}", variant.name));
    }
    page.line(&line);
    let count = row.variants.first().map_or(0, |variant| variant.figures.len());
    for at in 0..count {
        let figures: Vec<&Figure> = row.variants.iter().map(|variant| &variant.figures[at]).collect();
        if figures.iter().all(|figure| figure.median.is_none()) {
            continue;
        }
        let mut medians = format!("  {:<NAME$}", format!("{}, {}", figures[0].name, figures[0].unit));
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
        let spreads = page.styled(Style::Faint, spreads.trim_end());
        page.line(&spreads);
    }
}

fn attachments(page: &mut Page, row: &Row) {
    let all: Vec<(&str, &Attachment)> = row
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
fn side_by_side(all: &[(&str, &Attachment)]) -> Option<Vec<String>> {
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

fn words(page: &mut Page, row: &Row) {
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
fn beside(page: &mut Page, row: &Row) {
    if let Some(simulated) = &row.simulated {
        sim(page, simulated);
    }
    if let Some(seed) = &row.seed {
        page.blank();
        page.line(&format!("  Seed {}, for comparison only: measured by others, elsewhere", seed.id));
        for figure in seed.figures {
            page.item(4, figure.what, 46, figure.verbatim);
        }
    }
}

fn sim(page: &mut Page, simulated: &Simulated) {
    page.blank();
    page.line(&format!("  Simulated ({}), and with all costs halved and doubled", simulated.scenario));
    for one in &simulated.comparisons {
        let ratio = one.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
        page.line(&format!("    {}, {}", one.what, one.unit));
        let named = |value: &SimValue| format!("{} {}", value.variant, maybe(value.value));
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
        let range = |value: &SimValue| format!("{}, {}", maybe(value.halved), maybe(value.doubled));
        let line = format!("      {:<26} {}", range(&one.before), range(&one.after));
        let line = page.styled(Style::Faint, &line);
        page.line(&line);
    }
    if !simulated.holds {
        let line = page.styled(Style::Bad, "    something that the scenario expects does not hold");
        page.line(&line);
    }
}
