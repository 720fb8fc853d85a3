//! A report for a browser: one file, no scripts, nothing from elsewhere, light and dark.
//!
//! `plot.rs` draws, `style.css` has what this page alone shows; the rest is `quietcore_page`'s. What was
//! measured, what is simulated and what others measured have sections and pictures of their own and never
//! share an axis.

mod plot;

use crate::plan::{Citation, VariantRole};
use crate::report::{ComparisonVerdict, FigureComparison, LabReport, RowReport, ScenarioReport, maybe};
use quietcore_page::{escaped, figure};
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// The whole file.
pub fn page(report: &LabReport) -> String {
    let mut out = String::new();
    out.push_str("<h1>quietcore lab</h1>\n");
    let quick = if report.quick { " This was the quick run: a first impression." } else { "" };
    let _ = writeln!(
        out,
        "<p class=\"lead\">Measured on one machine in one run, by quietcore {}; what is simulated, and what others \
         measured elsewhere, says so.{quick}</p>",
        escaped(report.quietcore)
    );
    if !report.complete {
        out.push_str("<p class=\"broken\">Interrupted: this is what was measured until then.</p>\n");
    }
    host(&mut out, report);
    overview(&mut out, report);
    report.rows.iter().for_each(|one| row(&mut out, one));
    quietcore_page::page("quietcore lab", STYLE, &out)
}

fn host(out: &mut String, report: &LabReport) {
    out.push_str("<h3>The machine</h3>\n<table>\n");
    for (name, value) in report.host.facts() {
        let _ = writeln!(out, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(&value));
    }
    out.push_str("</table>\n");
}

fn overview(out: &mut String, report: &LabReport) {
    out.push_str("<h3>In short</h3>\n<div class=\"wide\"><table>\n<tr><th>row</th><th>figure</th>");
    for name in ["before", "after", "ratio", "noise floor"] {
        let _ = write!(out, "<th class=\"number\">{name}</th>");
    }
    out.push_str("<th>after</th></tr>\n");
    for row in &report.rows {
        for one in row.comparisons.iter().filter(|one| one.has_sample()) {
            let name = escaped(row.experiment);
            let _ = write!(
                out,
                "<tr><td><a href=\"#{name}\">{name}</a></td><td>{}, {}</td>",
                escaped(one.figure),
                escaped(one.unit)
            );
            let ratio = one.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
            for cell in [maybe(one.before_median), maybe(one.after_median), ratio, maybe(one.floor)] {
                let _ = write!(out, "<td class=\"number\">{cell}</td>");
            }
            let (class, word) = verdict(one);
            let _ = writeln!(out, "<td class=\"{class}\">{word}</td></tr>");
        }
    }
    out.push_str("</table></div>\n");
}

const fn verdict(of: &FigureComparison) -> (&'static str, &'static str) {
    match of.verdict {
        ComparisonVerdict::Better => ("better", "better"),
        ComparisonVerdict::Worse => ("worse", "loses"),
        ComparisonVerdict::NoDifference => ("same", "no difference"),
        ComparisonVerdict::OneRound => ("same", "one round"),
        ComparisonVerdict::NotMeasured => ("same", "not measured"),
    }
}

fn row(out: &mut String, row: &RowReport) {
    let name = escaped(row.experiment);
    let _ = writeln!(out, "<h2 id=\"{name}\">{name}</h2>\n<p>{}</p>", escaped(row.question));
    let _ = writeln!(
        out,
        "<p class=\"aside\">{} rounds of {} ms on CPUs {}; again: <code>{}</code></p>",
        row.rounds,
        row.span_ms,
        escaped(&row.cpus),
        escaped(&row.command)
    );
    plots(out, row);
    out.push_str("<ul>\n");
    for sentence in &row.words {
        let class = match () {
            () if sentence.starts_with("BROKEN") => " class=\"broken\"",
            () if sentence.contains("LOSES") => " class=\"worse\"",
            () => "",
        };
        let _ = writeln!(out, "<li{class}>{}</li>", escaped(sentence));
    }
    out.push_str("</ul>\n");
    table(out, row);
    if let Some(simulated) = &row.simulated {
        sim(out, row, simulated);
    }
    if let Some(cited) = &row.cited {
        reference(out, cited);
    }
    attachments(out, row);
}

fn plots(out: &mut String, row: &RowReport) {
    out.push_str("<div class=\"plots\">\n");
    let spread = "median; whisker: smallest and largest round";
    if plot::is_series(row) {
        if let Some(picture) = plot::series(row) {
            out.push_str(&figure("long", "All variants", spread, &picture));
        }
        if let (Some(picture), Some(first)) = (plot::differences(row), row.comparisons.first()) {
            let title = format!("{} against {}", first.after, first.before);
            let below = "difference of the medians; below 0 is a loss";
            out.push_str(&figure("long", &title, below, &picture));
        }
    } else {
        for one in &row.comparisons {
            let place = plot::place(row, one.figure);
            if let Some(picture) = place.and_then(|at| plot::measured(row, at)) {
                let below = format!("measured, {}; {spread}", one.better.name());
                out.push_str(&figure("measured", one.figure, &below, &picture));
            }
        }
    }
    for one in row.simulated.iter().flat_map(|simulated| &simulated.comparisons) {
        if let Some(picture) = plot::simulated(row, one) {
            let below = format!("simulated, {}; whisker: costs halved, doubled", one.better.name());
            out.push_str(&figure("simulated", one.what, &below, &picture));
        }
    }
    out.push_str("</div>\n");
}

fn table(out: &mut String, row: &RowReport) {
    out.push_str(
        "<h3>Measured</h3>\n<div class=\"wide\"><table>\n<tr><th>median, and smallest to largest round</th>",
    );
    for variant in &row.variants {
        let role = variant.role.name();
        let _ = write!(
            out,
            "<th class=\"number\" title=\"{}\">{}<small> {role}</small></th>",
            escaped(variant.what),
            escaped(variant.name)
        );
    }
    out.push_str("</tr>\n");
    let count = row.variants.first().map_or(0, |variant| variant.figures.len());
    for at in 0..count {
        if row.variants.iter().all(|variant| variant.figures[at].median.is_none()) {
            continue;
        }
        let first = &row.variants[0].figures[at];
        let _ = write!(out, "<tr><td>{}, {}</td>", escaped(first.name), escaped(first.unit));
        for variant in &row.variants {
            let figure = &variant.figures[at];
            let _ = write!(
                out,
                "<td class=\"number\">{}<small>{} to {}</small></td>",
                maybe(figure.median),
                maybe(figure.smallest),
                maybe(figure.largest)
            );
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n<p class=\"aside\">");
    for variant in &row.variants {
        let is = if variant.role == VariantRole::NoiseFloor { " (noise floor)" } else { "" };
        let _ = write!(out, "<b>{}</b>{is}: {}. ", escaped(variant.name), escaped(variant.what));
    }
    out.push_str("</p>\n");
}

fn sim(out: &mut String, row: &RowReport, simulated: &ScenarioReport) {
    let _ = writeln!(
        out,
        "<h3>Simulated</h3>\n<p class=\"aside\">Scenario {}, beside {} and never mixed with it. Costs: {}.</p>",
        escaped(simulated.scenario),
        escaped(row.experiment),
        escaped(&simulated.costs.join("; "))
    );
    out.push_str(
        "<div class=\"wide\"><table>\n<tr><th>figure (costs halved, doubled)</th><th class=\"number\">before</th>\
         <th class=\"number\">after</th><th class=\"number\">ratio</th></tr>\n",
    );
    for one in &simulated.comparisons {
        let _ = write!(out, "<tr><td>{}, {}</td>", escaped(one.what), escaped(one.unit));
        for value in [&one.before, &one.after] {
            let _ = write!(
                out,
                "<td class=\"number\">{} ({})<small>{}, {}</small></td>",
                maybe(value.value),
                escaped(value.variant),
                maybe(value.halved),
                maybe(value.doubled)
            );
        }
        let ratio = one.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
        let _ = writeln!(out, "<td class=\"number\">{ratio}</td></tr>");
    }
    out.push_str("</table></div>\n");
}

fn reference(out: &mut String, cited: &Citation) {
    let _ = writeln!(
        out,
        "<h3>Published elsewhere ({})</h3>\n<p class=\"aside\">For comparison only: measured by others, on other machines.</p>\n<table>",
        cited.question
    );
    for figure in cited.figures {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td><code>{}</code></td></tr>",
            escaped(figure.what),
            escaped(figure.verbatim)
        );
    }
    out.push_str("</table>\n");
}

fn attachments(out: &mut String, row: &RowReport) {
    for variant in &row.variants {
        let Some(attachment) = &variant.attachment else { continue };
        let _ = writeln!(
            out,
            "<details><summary>In the lines of {}: {} (last round)</summary><pre>{}</pre></details>",
            escaped(attachment.format),
            escaped(variant.name),
            escaped(&attachment.lines.join("\n"))
        );
    }
}
