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
        let variant = |rounds: &[f64]| rounds.iter().map(|value| vec![Some(*value); 7]).collect();
        let rounds = RowRounds::given(vec![variant(floor), variant(before), variant(after)]);
        let row = rounds.row(plan("oslat"), &fixture::context(10), String::new());
        row.comparisons.iter().map(|one| one.verdict).collect()
    };
    for (floor, before, after, expected) in [
        ([1.0, 1.0], [9.0, 9.5], [2.0, 3.0], ComparisonVerdict::Better),
        ([1.0, 1.0], [2.0, 3.0], [9.0, 9.5], ComparisonVerdict::Worse),
        ([1.0, 1.0], [2.0, 4.0], [3.0, 9.5], ComparisonVerdict::NoDifference),
        ([1.0, 1.0], [2.0, 9.5], [3.0, 4.0], ComparisonVerdict::NoDifference),
        ([1.0, 1.0], [3.0, 4.0], [2.0, 9.5], ComparisonVerdict::NoDifference),
        ([1.0, 9.0], [9.0, 9.5], [2.0, 3.0], ComparisonVerdict::NoDifference),
    ] {
        assert_eq!(verdicts(&floor, &before, &after), [expected; 3], "{floor:?} {before:?} {after:?}");
    }
    assert_eq!(verdicts(&[1.0], &[9.0], &[2.0]), [ComparisonVerdict::OneRound; 3]);
}

/// Goal: rounds in which nothing ran are never better, and a variant without a sample in one of its rounds is
/// compared with nothing. Method: the row blocked, in which the pull's lateness has no sample in all rounds,
/// and in one; then the stay's.
#[test]
fn no_sample_is_no_verdict() {
    let (stay, pull, p99) = (1, 3, 2);
    for (without, in_rounds) in [(pull, 0..3), (pull, 1..2), (stay, 0..3), (stay, 2..3)] {
        let row = fixture::rounds("blocked", |variant, _| {
            let value = |round: &usize| !(variant == without && in_rounds.contains(round));
            [0, 1, 2].map(|round| value(&round).then_some(if variant == pull { 40.0 } else { 99_000.0 }))
        });
        let compared = &row.comparisons[1];
        assert_eq!(compared.verdict, ComparisonVerdict::NotMeasured, "{without} {in_rounds:?}");
        assert_eq!(compared.ratio, None, "{without} {in_rounds:?}");
        let figure = &row.variants[without].figures[p99];
        assert_eq!(figure.rounds.len(), 3 - in_rounds.len(), "{without} {in_rounds:?}");
        assert_eq!(figure.median.is_none(), in_rounds.len() == 3, "{without} {in_rounds:?}");
        let said = "lateness p99: not measured in every round with stay and pull";
        assert!(row.words[1].starts_with(said), "{:?}", row.words);
    }
}

/// Goal: a figure that must be 0 must have been measured, and be 0, in every round. Method: one bad round
/// among good ones, at each place; one without a sample; none with any.
#[test]
fn an_exact_check_holds_in_every_round_or_not_at_all() {
    let (on, good) = (2, [Some(0.0); 3]);
    let checked = |foreign: [Option<f64>; 3]| {
        let of = |variant: usize, figure: usize| if (variant, figure) == (on, 0) { foreign } else { good };
        let row = fixture::rounds("oslat", of);
        let check = &row.exact_checks[0];
        (check.holds, check.found, row.words[0].clone())
    };
    let (holds, found, words) = checked(good);
    assert_eq!((holds, found), (true, Some(0.0)));
    assert!(words.ends_with("exactly 0 with exclusion on in every round, as it must be."), "{words}");
    for at in 0..3 {
        let (mut bad, mut missing) = (good, good);
        (bad[at], missing[at]) = (Some(7.0), None);
        let (holds, found, words) = checked(bad);
        assert_eq!((holds, found), (false, Some(7.0)), "round {at}");
        assert!(words.ends_with("must be 0 with exclusion on, and was 7.00."), "{words}");
        let (holds, found, words) = checked(missing);
        assert_eq!((holds, found), (false, None), "round {at}");
        assert!(
            words.ends_with("must be 0 with exclusion on, and was not measured in every round."),
            "{words}"
        );
    }
    // A bad round is one, whatever was not measured.
    let (holds, found, _) = checked([None, Some(7.0), Some(0.0)]);
    assert_eq!((holds, found), (false, Some(7.0)));
    assert_eq!((checked([None; 3]).0, checked([None; 3]).1), (false, None));
}

/// Goal: what must have one value and has another is said, and ends in exit code 1.
#[test]
fn a_broken_exact_check_is_said() {
    let mut report = fixture::report();
    assert!(report.holds());
    report.rows[0] = fixture::row("oslat", |_, figure| Some(if figure == 0 { 1.0 } else { 0.0 }));
    assert!(!report.holds());
    assert!(
        report.rows[0].words[0].starts_with("BROKEN: foreign, by thread id"),
        "{:?}",
        report.rows[0].words
    );
    assert!(html_page(&report).contains("<li class=\"broken\">BROKEN"));
}
