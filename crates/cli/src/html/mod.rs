//! An explanation for a browser, `explain --html`: findings, when CPUs were taken away, who did it to whom,
//! for how long, and the table behind that.
//!
//! `lanes.rs`, `origins.rs` and `durations.rs` draw a picture each; frame and elements are those of
//! `quietcore_page`. A task that its CPU is there for is in no picture.

mod durations;
mod lanes;
mod origins;
mod source;

use crate::live::Own;
use crate::text::{about, main_cause, own_disturbance, questions, when, why};
use quietcore_core::Nanos;
use quietcore_explain::{Evidence, Explanation, Finding, Interruption, Severity};
use quietcore_page::escaped;
use std::cmp::Reverse;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// Rows of the table of what took CPUs away; the JSON has all of them.
const ROWS_MAX: usize = 100;

/// The whole file about the recording `name`, and what making it cost, if we did.
pub(crate) fn page(name: &str, report: &Explanation, own: Option<&Own>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "<h1>quietcore explain {}</h1>", escaped(name));
    facts(&mut out, report, own);
    findings(&mut out, &report.findings);
    out.push_str("<h2>The five questions</h2>\n<div class=\"wide\"><table>\n");
    for (question, wish, answer) in questions(report) {
        let question = escaped(&question.to_string());
        let answer = answer.as_deref().unwrap_or("not recorded");
        let _ = writeln!(
            out,
            "<tr><th>{question}</th><td>{}</td><td>{}</td></tr>",
            escaped(wish),
            escaped(answer)
        );
    }
    out.push_str("</table></div>\n");
    pictures(&mut out, report);
    table(&mut out, report);
    quietcore_page::page(&format!("quietcore explain {name}"), STYLE, &out)
}

fn facts(out: &mut String, report: &Explanation, own: Option<&Own>) {
    let list = |list: &str| if list.is_empty() { "none".to_owned() } else { list.to_owned() };
    let span = report.duration_ns.map_or("unknown".to_owned(), |nanos| Nanos(nanos).to_string());
    let preemption = if report.preempt_rt { ", PREEMPT_RT" } else { "" };
    let kernel = format!("{}{preemption}", report.kernel.as_deref().unwrap_or("unknown"));
    let cpus = format!("{} possible", report.cpus);
    let isolated = format!("{} (from the {})", list(&report.isolated), report.isolated_source);
    let recorded = format!("{span}, {} events, {} lost", report.events, report.lost_events);
    out.push_str("<div class=\"wide\"><table>\n");
    for (name, value) in [
        ("kernel", kernel),
        ("CPUs", cpus),
        ("isolated", isolated),
        ("nohz_full", list(&report.nohz_full)),
        ("recorded", recorded),
        ("ourselves", own.map_or(String::new(), own_disturbance)),
    ] {
        if value.is_empty() {
            continue;
        }
        let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", escaped(&value));
    }
    for (class, name, sentences) in
        [("broken", "INCOMPLETE", &report.incomplete), ("warning", "warning", &report.warnings)]
    {
        for sentence in sentences {
            let _ = writeln!(out, "<tr><th class=\"{class}\">{name}</th><td>{}</td></tr>", escaped(sentence));
        }
    }
    out.push_str("</table></div>\n");
}

fn findings(out: &mut String, findings: &[Finding]) {
    if findings.is_empty() {
        out.push_str("<h2>Findings: none</h2>\n");
        return;
    }
    out.push_str("<h2>Findings</h2>\n");
    for finding in findings {
        let class = match finding.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Critical => "broken",
        };
        let question = finding.question.to_string();
        let _ = writeln!(
            out,
            "<section class=\"finding\"><h3><span class=\"{class}\">{}</span> {} <small>{}</small></h3>\n<dl>",
            finding.severity,
            escaped(finding.id),
            escaped(&question)
        );
        for (label, text) in [
            ("what", &finding.what),
            ("why", &finding.why),
            ("change", &finding.change),
            ("predicted", &finding.predicted),
            ("verify", &finding.verify),
        ] {
            if !text.is_empty() {
                let _ = writeln!(out, "<dt>{label}</dt><dd>{}</dd>", with_commands(text));
            }
        }
        for evidence in &finding.evidence {
            let text = match evidence {
                Evidence::Line { line, text } => format!("line {line}: {text}"),
                Evidence::File { path, text } => format!("{path}: {text}"),
            };
            let _ = writeln!(out, "<dt>proof</dt><dd>{}</dd>", escaped(&text));
        }
        out.push_str("</dl></section>\n");
    }
}

/// A text whose lines that begin with `$` are commands to copy.
fn with_commands(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("$ ") {
        Some(command) => format!("<pre>{}</pre>", escaped(command)),
        None => format!("{} ", escaped(line)),
    };
    text.split('\n').map(line).collect()
}

fn pictures(out: &mut String, report: &Explanation) {
    let rows = disturbances(report);
    out.push_str("<h2>What took CPUs away from their tasks</h2>\n");
    if rows.is_empty() {
        out.push_str("<p class=\"aside\">Nothing that is recorded.</p>\n");
        return;
    }
    if report.isolated.is_empty() {
        out.push_str(
            "<p class=\"aside\">No CPU is isolated, so all of them are shown; their tasks and work items are \
             not.</p>\n",
        );
    }
    for picture in [lanes::picture(report, &rows), origins::picture(&rows), durations::picture(&rows)] {
        out.push_str(&picture.unwrap_or_default());
    }
}

/// What took CPUs away, without the tasks that they are there for.
fn disturbances(report: &Explanation) -> Vec<&Interruption> {
    report.interruptions.iter().filter(|row| !row.own).collect()
}

fn table(out: &mut String, report: &Explanation) {
    let mut rows = disturbances(report);
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|row| Reverse((row.total_ns, row.count)));
    out.push_str("<h3>All of it, the longest in all first</h3>\n<div class=\"wide\"><table>\n<tr>");
    for name in ["CPU", "times", "in all", "p99", "longest", "until"] {
        let _ = write!(out, "<th class=\"number\">{name}</th>");
    }
    out.push_str("<th>what</th><th>why</th></tr>\n");
    let about = about(report);
    for row in rows.iter().take(ROWS_MAX) {
        let span =
            |nanos: Option<u64>| nanos.map_or("-".to_owned(), |nanos| format!("{about}{}", Nanos(nanos)));
        let until = row.max_at_ns.map_or("-".to_owned(), |at| when(report, at));
        let times = format!("{about}{}", row.count);
        out.push_str("<tr>");
        let numbers =
            [row.cpu.to_string(), times, span(row.total_ns), span(row.p99_ns), span(row.max_ns), until];
        for cell in numbers {
            let _ = write!(out, "<td class=\"number\">{cell}</td>");
        }
        let _ = writeln!(out, "<td>{} {}</td><td>{}</td></tr>", row.source, escaped(&row.name), causes(row));
    }
    out.push_str("</table></div>\n");
    if let Some(more) = rows.len().checked_sub(ROWS_MAX).filter(|&more| more > 0) {
        let _ = writeln!(out, "<p class=\"aside\">... and {more} more; --json has all.</p>");
    }
}

/// The most frequent cause of a row, and the others for readers who open them.
fn causes(row: &Interruption) -> String {
    let mut out = escaped(&main_cause(row).unwrap_or_default());
    if row.causes.len() > 1 {
        out.push_str("<details><summary>others</summary><ul>\n");
        for cause in &row.causes[1..] {
            let _ = writeln!(out, "<li>{} {}</li>", cause.count, escaped(&why(&cause.steps)));
        }
        out.push_str("</ul></details>");
    }
    out
}

#[cfg(test)]
mod tests;
