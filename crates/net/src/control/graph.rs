//! `class show -g`: classes as a tree.
//!
//! Roots stand in the reverse of the order in which classes are listed, others in that order. Source: `tc`
//! 6.1 by behaviour. Deviation: behind a tree of three levels and more `tc` ends with a line of blanks and
//! bars that belong to no class; here it is the one of the last list.

use super::report::ClassReport;
use core::fmt::Write as _;

/// What a column of a level has.
const BAR: &str = "|    ";
const BLANKS: &str = "     ";

/// Writes the tree of all classes.
pub(super) fn tree(reports: &[ClassReport]) -> String {
    let is_root = |report: &&ClassReport| {
        report
            .parent
            .is_none_or(|parent| !reports.iter().any(|other| other.id == parent && other.id != report.id))
    };
    let roots: Vec<&ClassReport> = reports.iter().rev().filter(is_root).collect();
    if roots.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let end = write_list(reports, &roots, "", &mut out);
    out + &end + "\n"
}

/// Writes classes of one parent behind `indent`; gives the line that ends the list.
fn write_list(all: &[ClassReport], list: &[&ClassReport], indent: &str, out: &mut String) -> String {
    let mut end = indent.to_owned();
    for (at, report) in list.iter().enumerate() {
        let is_last = at + 1 == list.len();
        let below: Vec<&ClassReport> = all.iter().filter(|other| other.parent == Some(report.id)).collect();
        // Writing to a string does not fail.
        let _ = writeln!(out, "{indent}+---({}) {} {}", report.id, report.kind, report.plain_options());
        let inside = format!("{indent}{}", if is_last { BLANKS } else { BAR });
        if report.shown.style.statistics {
            write_statistics(report, &inside, !below.is_empty(), out);
            match (below.is_empty(), is_last) {
                (false, _) => out.push_str(&format!("{inside}|\n")),
                (true, false) => out.push_str(&format!("{inside} \n")),
                (true, true) => {}
            }
        }
        if !below.is_empty() {
            let last = write_list(all, &below, &inside, out);
            if is_last {
                end = last.clone();
            }
            out.push_str(&last);
            out.push('\n');
        }
    }
    end
}

/// The lines of `-s` behind the columns of a class.
fn write_statistics(report: &ClassReport, inside: &str, has_children: bool, out: &mut String) {
    let column = if has_children { BAR } else { BLANKS };
    // The first level has one blank less.
    let indent = format!("{inside}{column}");
    let indent = if inside.len() == BAR.len() { &indent[..indent.len() - 1] } else { &indent };
    let Some(text) = report.plain_statistics() else { return };
    for line in text.lines() {
        let line = line.replace("pps backlog", &format!("pps{indent} backlog"));
        out.push_str(indent);
        out.push_str(&line);
        out.push('\n');
    }
}
