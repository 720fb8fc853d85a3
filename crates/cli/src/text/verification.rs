//! A verification as text: what was compared, the classes, the first line that differs.

use super::page::Page;
use crate::terminal::Style;
use quietcore_trace::visible;
use quietcore_verify::{Check, HierarchyCounts, Mismatch, Verification};

/// Width of the labels.
const LABEL: usize = 10;

/// The whole verification of `name`.
pub(crate) fn verification(page: &mut Page, name: &str, verification: &Verification) {
    header(page, name, verification);
    page.heading("Compared, line by line, with quietcore's wheel");
    table(page, verification);
    if verification.timer_starts > 0 {
        page.heading("timer_start by clock");
        classes(page, verification);
    }
    notes(page, verification);
    hierarchy(page, &verification.tmigr);
    page.blank();
    verdict(page, verification);
}

fn header(page: &mut Page, name: &str, verification: &Verification) {
    page.styled_line(Style::Heading, &format!("quietcore verify {}", visible(name)));
    let kernel = verification.kernel.as_deref().map_or("unknown".to_owned(), visible);
    let hz = verification.hz.map_or("HZ unknown".to_owned(), |hz| format!("HZ={hz}"));
    let bases = verification.bases_per_cpu.map_or(String::new(), |bases| format!(", {bases} bases per CPU"));
    page.item(2, "kernel", LABEL, &format!("{kernel}, {hz}, {} levels{bases}", verification.levels));
    let begin = match verification.begins_at_boot {
        Some(true) => ", from boot on",
        Some(false) => ", on a running machine",
        None => "",
    };
    let lost = page.lost(verification.lost_events);
    page.item(2, "recorded", LABEL, &format!("{} events{begin}, {lost}", verification.events));
    for reason in &verification.incomplete {
        let label = page.styled(Style::Bad, "INCOMPLETE");
        page.item(2, &label, LABEL, reason);
    }
    let missing = match verification.not_recorded.as_slice() {
        [] => return,
        missing => missing.join(", "),
    };
    page.item(2, "absent", LABEL, &format!("not recorded, so not compared: {missing}"));
}

fn table(page: &mut Page, verification: &Verification) {
    page.line(&format!("  {:<20} {:>9} {:>9} {:>9} {:>10}", "", "lines", "exact", "by class", "mismatches"));
    let mut row = |name: &str, [total, exact, by_class]: [Option<u64>; 3], mismatches: u64| {
        let cell = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
        let wrong = format!("{mismatches:>10}");
        let wrong = if mismatches == 0 { wrong } else { page.styled(Style::Bad, &wrong) };
        let cells = format!("{:>9} {:>9} {:>9}", cell(total), cell(exact), cell(by_class));
        page.line(&format!("  {name:<20} {cells} {wrong}"));
    };
    let by_class = verification.classes.total();
    let starts = [verification.timer_starts, verification.exact, by_class].map(Some);
    row("timer_start", starts, verification.mismatches);
    let cancels = verification.cancels;
    row("timer_cancel", [Some(cancels.total), None, None], cancels.mismatches);
    let expiries = verification.expiries;
    let counts = [expiries.total, expiries.exact, expiries.classes.start_unseen].map(Some);
    row("timer_expire_entry", counts, expiries.mismatches);
    if let Some(runs) = verification.runs {
        row("runs of a bucket", [Some(runs.total), None, None], runs.mismatches);
    }
}

fn classes(page: &mut Page, verification: &Verification) {
    let exact = verification.exact;
    let share = match verification.timer_starts {
        0 => String::new(),
        starts => format!(" ({:.2} %)", exact as f64 * 100.0 / starts as f64),
    };
    page.item(2, &format!("{:<16} {exact:>8}", "exact"), 26, &format!("clock = jiffies{share}"));
    for (name, count) in verification.classes.named() {
        if count > 0 {
            page.item(2, &format!("{name:<16} {count:>8}"), 26, meaning(name));
        }
    }
}

/// One line per class; `docs/reference/verify.md` has the whole of it.
fn meaning(class: &str) -> &'static str {
    match class {
        "ahead_run" => "clock = jiffies + 1: the bucket of this jiffy was run already",
        "ahead_empty" => "clock = jiffies + 1: the bucket of this jiffy was emptied, then run",
        "behind_due" => "clock = the base's first bucket, due but not run yet",
        "behind_deleted" => "clock = a first bucket whose timers were cancelled, not looked at since",
        "tick_between" => "clock as it was: jiffies moved on before the event was written",
        "after_loss" => "state of the base unknown: right for a possible clock",
        _ => "",
    }
}

fn notes(page: &mut Page, verification: &Verification) {
    let notes = verification.notes;
    let several = verification.runs.map_or(0, |runs| runs.of_several);
    let rows = [
        ("runs of several", several, "collected more than one timer: here the order shows"),
        ("two_places", notes.two_places, "starts for which the recording leaves two buckets possible"),
        ("boot_gap", notes.boot_gap, "timers that expired at boot while the events were off for a moment"),
        ("swapped", notes.swapped, "pairs of lines with equal time stamps in the wrong order"),
        ("start_unseen", verification.expiries.classes.start_unseen, "expiries of timers not started here"),
        ("cancel_unseen", notes.cancel_unseen, "timer_cancel lines of timers not started here"),
        ("interrupt_exit", notes.interrupt_exit, "expiries that an interrupt's exit came before (nohz_full)"),
        ("preempted", notes.preempted, "expiries before which ktimers/N was preempted (PREEMPT_RT)"),
        ("forgotten", notes.forgotten, "pending timers that were forgotten where lines are missing"),
    ];
    if rows.iter().all(|(_, count, _)| *count == 0) {
        return;
    }
    page.heading("Notes");
    for (name, count, text) in rows.into_iter().filter(|(_, count, _)| *count > 0) {
        page.item(2, &format!("{name:<16} {count:>8}"), 26, text);
    }
}

/// The timer migration hierarchy, if the recording has any of it.
fn hierarchy(page: &mut Page, tmigr: &HierarchyCounts) {
    if tmigr.groups == 0 && tmigr.events == 0 && tmigr.tree_mismatches == 0 {
        return;
    }
    page.heading("Timer migration, line by line, with quietcore's hierarchy");
    // A recording that begins later has no tree and no queues: the words are compared.
    let is_whole = tmigr.not_recorded.is_empty();
    let exact = if is_whole { "masks, migrator, events, wake-ups" } else { "active mask and migrator" };
    let rows = [
        ("groups", tmigr.groups, false, "of up to eight children each"),
        ("tree mismatches", tmigr.tree_mismatches, true, "lines that build another tree"),
        ("exact", tmigr.exact, false, &format!("{exact}: as the lines before give them")),
        (
            "order_open",
            tmigr.order_open,
            false,
            "the same in another order of the CPUs, which the lines allow",
        ),
        ("unexplained", tmigr.unexplained, true, "in no order"),
    ];
    for (name, count, is_wrong, text) in rows {
        if name == "tree mismatches" && count == 0 && !is_whole {
            continue;
        }
        let label = format!("{name:<16} {count:>8}");
        let label = if is_wrong && count > 0 { page.styled(Style::Bad, &label) } else { label };
        page.item(2, &label, 26, text);
    }
    if tmigr.next_events > 0 {
        let text = format!("of {} next events of idle CPUs are our wheel's", tmigr.next_events);
        page.item(2, &format!("{:<16} {:>8}", "as the wheel", tmigr.next_events_as_wheel), 26, &text);
    }
    if !tmigr.not_recorded.is_empty() {
        let text = format!("not recorded, so not compared: {}", tmigr.not_recorded.join(", "));
        page.item(2, "absent", LABEL, &text);
    }
}

fn verdict(page: &mut Page, verification: &Verification) {
    let Some(first) = &verification.first_mismatch else {
        let text = match verification.timer_starts {
            0 if verification.tmigr.events > 0 => {
                page.styled(Style::Good, "every line of the hierarchy agrees; there is no timer_start")
            }
            0 => "nothing was compared: there is no timer_start that says which bucket".to_owned(),
            _ if verification.tmigr.events > 0 => {
                page.styled(Style::Good, "every line agrees with the wheel and with the hierarchy")
            }
            _ => page.styled(Style::Good, "every line agrees with the wheel"),
        };
        page.line(&text);
        return;
    };
    let total = verification.mismatches_of_all_kinds();
    let of_more = if total == 1 { String::new() } else { format!(", the first of {total}") };
    let what = match first.kind {
        Check::Hierarchy | Check::Tree => "line of the hierarchy",
        kind => kind.name(),
    };
    let title = format!("MISMATCH in line {}, a {what}{of_more}", first.line);
    page.styled_line(Style::Bad, &title);
    mismatch(page, first);
    let is_timers = !matches!(first.kind, Check::Hierarchy | Check::Tree);
    if is_timers && verification.begins_at_boot == Some(false) {
        let hint = "The recording begins on a running machine: a timer that was armed before it and that it \
                    never shows can hold a base's clock back. A recording from boot on decides it.";
        page.item(2, "note", LABEL, hint);
    }
    if total > 1 {
        page.item(2, "more", LABEL, "--json lists the first twenty");
    }
}

fn mismatch(page: &mut Page, mismatch: &Mismatch) {
    for (label, text) in [
        ("event", &mismatch.event),
        ("expected", &mismatch.expected),
        ("recorded", &mismatch.recorded),
        ("why", &mismatch.why),
    ] {
        page.item(2, label, LABEL, &visible(text));
    }
}

#[cfg(test)]
mod tests;
