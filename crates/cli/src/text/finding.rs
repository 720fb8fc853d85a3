//! Findings as text.

use super::page::Page;
use crate::terminal::Style;
use quietcore_explain::{Evidence, Finding, Severity};
use quietcore_trace::{visible, visible_lines};

/// All `findings`, each with what, why, change, prediction, verification and proof.
pub(crate) fn findings(page: &mut Page, findings: &[Finding]) {
    if findings.is_empty() {
        page.heading("Findings: none");
        return;
    }
    page.heading("Findings");
    for (number, finding) in findings.iter().enumerate() {
        if number > 0 {
            page.blank();
        }
        one(page, finding);
    }
}

fn one(page: &mut Page, finding: &Finding) {
    let style = match finding.severity {
        Severity::Note => Style::Faint,
        Severity::Warning => Style::Warning,
        Severity::Critical => Style::Bad,
    };
    let severity = page.styled(style, &finding.severity.to_string());
    page.line(&format!("  {severity} {} ({})", finding.id, finding.question));
    for (label, text) in [
        ("what", &finding.what),
        ("why", &finding.why),
        ("change", &finding.change),
        ("predicted", &finding.predicted),
        ("verify", &finding.verify),
    ] {
        if !text.is_empty() {
            page.item(4, label, 9, &visible_lines(text));
        }
    }
    for evidence in &finding.evidence {
        let text = match evidence {
            Evidence::Line { line, text } => format!("line {line}: {text}"),
            Evidence::File { path, text } => format!("{path}: {text}"),
        };
        page.item(4, "proof", 9, &visible(&text));
    }
}
