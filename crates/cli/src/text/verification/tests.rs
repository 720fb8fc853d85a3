//! The text of verifications: of a file of the tests, with counts that no recording has all of.

use super::verification;
use crate::terminal::Style;
use crate::text::Page;
use quietcore_trace::{Progress, TraceReader};
use quietcore_verify::{Check, Verification, Verify};

/// The verification of a text with two mismatches.
fn mismatch() -> Verification {
    let mut reader = TraceReader::new(&include_bytes!("../../../tests/data/mismatch.txt")[..]);
    reader.read_header().expect("a trace");
    let mut verify = Verify::new(reader.header());
    while verify.read(&mut reader, 1_000).expect("a trace") != Progress::Finished {}
    verify.finish(&reader)
}

fn text(of: &Verification) -> String {
    let mut page = Page::plain();
    verification(&mut page, "given.txt", of);
    page.into_text()
}

/// The same without any mismatch.
fn fine() -> Verification {
    let mut fine = mismatch();
    (fine.mismatches, fine.expiries.mismatches, fine.first_mismatch) = (0, 0, None);
    fine
}

/// Goal: every count stands in its row with its own sentence. Method: a snapshot of counts that all differ.
#[test]
fn every_count_has_its_row() {
    let mut of = mismatch();
    (of.events, of.lost_events, of.hz, of.begins_at_boot) = (1_001, 3, Some(1_000), Some(false));
    (of.timer_starts, of.exact, of.mismatches) = (256, 128, 107);
    let classes = &mut of.classes;
    (classes.ahead_run, classes.ahead_empty, classes.behind_due) = (1, 2, 3);
    (classes.behind_deleted, classes.tick_between, classes.after_loss) = (4, 5, 6);
    (of.cancels.total, of.cancels.mismatches) = (31, 7);
    (of.expiries.total, of.expiries.exact, of.expiries.mismatches) = (90, 61, 8);
    of.expiries.classes.start_unseen = 20;
    let runs = of.runs.as_mut().expect("it has flags");
    (runs.total, runs.of_several, runs.mismatches) = (52, 41, 9);
    let notes = &mut of.notes;
    (notes.two_places, notes.boot_gap, notes.swapped, notes.cancel_unseen) = (11, 12, 13, 14);
    (notes.interrupt_exit, notes.preempted, notes.forgotten) = (15, 16, 17);
    let tmigr = &mut of.tmigr;
    (tmigr.groups, tmigr.tree_mismatches, tmigr.events) = (18, 19, 600);
    (tmigr.exact, tmigr.order_open, tmigr.unexplained) = (500, 79, 22);
    (tmigr.next_events, tmigr.next_events_as_wheel) = (24, 23);
    of.not_recorded = vec!["bucket_expiry", "baseclk"];
    of.incomplete = vec!["One reason.".to_owned(), "Another one.".to_owned()];
    insta::assert_snapshot!("full", text(&of));
}

/// Goal: what of the hierarchy was not recorded is said, and so is what was compared instead.
#[test]
fn a_part_of_the_hierarchy_is_called_one() {
    let mut of = fine();
    (of.tmigr.groups, of.tmigr.events, of.tmigr.exact, of.tmigr.order_open) = (2, 30, 27, 3);
    of.tmigr.not_recorded = vec!["the tree".to_owned(), "queues".to_owned()];
    let shown = text(&of);
    let hierarchy = shown.split_once("quietcore's hierarchy\n").expect("a heading").1;
    assert_eq!(
        hierarchy,
        "  groups                  2  of up to eight children each\n\
        \x20 exact                  27  active mask and migrator: as the lines before give them\n\
        \x20 order_open              3  the same in another order of the CPUs, which the lines allow\n\
        \x20 unexplained             0  in no order\n\
        \x20 absent     not recorded, so not compared: the tree, queues\n\
        \n\
        every line agrees with the wheel and with the hierarchy\n"
    );
    of.tmigr.tree_mismatches = 4;
    assert!(text(&of).contains("\n  tree mismatches         4  lines that build another tree\n"));
}

/// Goal: a hierarchy of which only the tree differs is shown, and only what is wrong stands out. Method: in
/// colour, with nothing but such a tree, then with lines that differ.
#[test]
fn what_is_wrong_of_a_hierarchy_stands_out() {
    let mut of = fine();
    let bad = |of: &Verification| {
        let mut page = Page::coloured();
        verification(&mut page, "given.txt", of);
        let text = page.into_text();
        let begin = format!("  {}", Style::Bad.of("").split('m').next().expect("a code"));
        text.lines().filter(|line| line.starts_with(&begin)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(bad(&of).is_empty());
    let row = |label: &str, text: &str| format!("  {}  {text}", Style::Bad.of(label));
    of.tmigr.tree_mismatches = 3;
    assert_eq!(bad(&of), [row("tree mismatches         3", "lines that build another tree")]);
    of.tmigr.tree_mismatches = 0;
    (of.tmigr.events, of.tmigr.exact, of.tmigr.unexplained) = (7, 5, 2);
    assert_eq!(bad(&of), [row("unexplained             2", "in no order")]);
}

/// Goal: the verdict names what was compared. Method: with and without starts and a hierarchy.
#[test]
fn the_verdict_says_what_agrees() {
    for (starts, events, verdict) in [
        (7, 0, "every line agrees with the wheel"),
        (7, 1, "every line agrees with the wheel and with the hierarchy"),
        (0, 1, "every line of the hierarchy agrees; there is no timer_start"),
        (0, 0, "nothing was compared: there is no timer_start that says which bucket"),
    ] {
        let mut of = fine();
        (of.timer_starts, of.tmigr.events) = (starts, events);
        let shown = text(&of);
        assert_eq!(shown.lines().last(), Some(verdict));
        assert_eq!(shown.contains("timer_start by clock"), starts > 0);
    }
}

/// Goal: a mismatch says in what, how many there are, and what may hide its cause. Method: one of each kind.
#[test]
fn a_mismatch_says_in_what() {
    let mut of = fine();
    of.first_mismatch = mismatch().first_mismatch;
    of.mismatches = 1;
    let mut verdict = |kind, begins_at_boot| {
        let first = of.first_mismatch.as_mut().expect("it has one");
        (first.kind, of.begins_at_boot) = (kind, begins_at_boot);
        let shown = text(&of);
        assert!(!shown.contains("more       --json"), "{shown}");
        let line = shown.lines().find(|line| line.starts_with("MISMATCH")).expect("a verdict");
        (line.to_owned(), shown.contains("  note       The recording begins on a running machine"))
    };
    let line = |what: &str| format!("MISMATCH in line 13, a {what}");
    assert_eq!(verdict(Check::TimerCancel, Some(false)), (line("timer_cancel"), true));
    assert_eq!(verdict(Check::TimerCancel, Some(true)), (line("timer_cancel"), false));
    assert_eq!(verdict(Check::TimerCancel, None), (line("timer_cancel"), false));
    assert_eq!(verdict(Check::Tree, Some(false)), (line("line of the hierarchy"), false));
    assert_eq!(verdict(Check::Hierarchy, Some(false)), (line("line of the hierarchy"), false));
}
