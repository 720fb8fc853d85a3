//! An experiment as a table: a column per variant, medians, and the spread of the rounds below.

use super::{Figure, Report, Role};
use crate::text::{Page, Style};

const NAME: usize = 26;
const COLUMN: usize = 17;

pub(super) fn report(page: &mut Page, report: &Report) {
    let title = page.styled(Style::Heading, &format!("quietcore lab {} (measured)", report.experiment));
    page.line(&title);
    page.item(2, "question", 10, report.question);
    let how = format!(
        "{} rounds of {} ms each, on CPUs {}; medians, and the smallest and largest round",
        report.rounds, report.span_ms, report.cpus
    );
    page.item(2, "how", 10, &how);
    for variant in &report.variants {
        let role = match variant.role {
            Role::NoiseFloor => "noise floor",
            Role::Before => "before",
            Role::After => "after",
        };
        page.item(2, variant.name, 16, &format!("({role}) {}", variant.what));
    }
    page.blank();
    let mut line = format!("  {:<NAME$}", "");
    for variant in &report.variants {
        line.push_str(&format!(" {:>COLUMN$}", variant.name));
    }
    page.line(&line);
    let count = report.variants.first().map_or(0, |variant| variant.figures.len());
    for at in 0..count {
        let figures: Vec<&Figure> = report.variants.iter().map(|variant| &variant.figures[at]).collect();
        let mut medians = format!("  {:<NAME$}", format!("{}, {}", figures[0].name, figures[0].unit));
        let mut spreads = format!("  {:<NAME$}", "");
        for figure in &figures {
            medians.push_str(&format!(" {:>COLUMN$}", number(figure.median)));
            let spread = format!("{} to {}", number(figure.smallest), number(figure.largest));
            spreads.push_str(&format!(" {spread:>COLUMN$}"));
        }
        page.line(&medians);
        let spreads = page.styled(Style::Faint, spreads.trim_end());
        page.line(&spreads);
    }
}

/// Three or four digits that mean something.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
