//! The lab's reports from fixed rounds.

use crate::fixture;
use crate::fixture::plan;
use quietcore_lab::{ComparisonVerdict, RowRounds, html_page};

/// Goal: the JSON keeps its shape. Method: a snapshot.
#[test]
fn json_of_fixed_rounds() {
    insta::assert_snapshot!(
        "json",
        serde_json::to_string_pretty(&fixture::report()).expect("it is plain data")
    );
}

/// Goal: the page is whole, needs nothing from elsewhere, and nothing that is read from a host becomes
/// markup. Method: a snapshot, and tags that must pair.
#[test]
fn html_of_fixed_rounds() {
    let page = html_page(&fixture::report());
    assert!(page.contains("&lt;b&gt;A &amp; B&lt;/b&gt; (a virtual machine)"), "escaped");
    assert!(page.contains("a processor &lt;&amp;&gt;"), "escaped");
    for absent in ["<script", "<link", "<img", "@import", "url(", "NaN", "inf"] {
        assert!(!page.contains(absent), "{absent}");
    }
    let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!elsewhere.contains("://"), "nothing from elsewhere");
    for tag in
        ["html", "head", "body", "style", "div", "figure", "svg", "table", "tr", "td", "ul", "li", "text"]
    {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    let body = page.split("</style>").nth(1).expect("a body");
    insta::assert_snapshot!("html", body);
}

/// Goal: a difference is called one only when no round contradicts it, and it exceeds the noise floor's
/// spread. Method: rounds of the three figures that oslat compares.
#[test]
fn verdicts_follow_from_rounds() {
    // By variant (floor, before, after) and round: the same value in all figures.
    let verdicts = |floor: &[f64], before: &[f64], after: &[f64]| -> Vec<ComparisonVerdict> {
        let variant = |rounds: &[f64]| rounds.iter().map(|value| vec![*value; 7]).collect::<Vec<Vec<f64>>>();
        let rounds = RowRounds::given(vec![variant(floor), variant(before), variant(after)]);
        let row = rounds.row(plan("oslat"), &fixture::context(10), String::new());
        row.comparisons.iter().map(|one| one.verdict).collect()
    };
    for (floor, before, after, expected) in [
        ([1.0, 1.0], [9.0, 9.5], [2.0, 3.0], ComparisonVerdict::Better),
        ([1.0, 1.0], [2.0, 3.0], [9.0, 9.5], ComparisonVerdict::Worse),
        ([1.0, 1.0], [2.0, 4.0], [3.0, 9.5], ComparisonVerdict::NoDifference),
        ([1.0, 9.0], [9.0, 9.5], [2.0, 3.0], ComparisonVerdict::NoDifference),
    ] {
        assert_eq!(verdicts(&floor, &before, &after), [expected; 3], "{floor:?} {before:?} {after:?}");
    }
    assert_eq!(verdicts(&[1.0], &[9.0], &[2.0]), [ComparisonVerdict::OneRound; 3]);
}

/// Goal: what must have one value and has another is said, and ends in exit code 1.
#[test]
fn a_broken_exact_check_is_said() {
    let mut report = fixture::report();
    assert!(report.holds());
    report.rows[0] = fixture::row("oslat", |_, figure| if figure == 0 { 1.0 } else { 0.0 });
    assert!(!report.holds());
    assert!(
        report.rows[0].words[0].starts_with("BROKEN: foreign, by thread id"),
        "{:?}",
        report.rows[0].words
    );
    assert!(html_page(&report).contains("<li class=\"broken\">BROKEN"));
}
