//! The pictures of a page: what is drawn, how large, and what is left out.

use crate::fixture;
use quietcore_lab::{
    Better, ComparisonVerdict, LabReport, RowReport, ScenarioComparison, ScenarioReport, ScenarioValue,
    html_page,
};

/// The pictures of one row, by the word their title has.
fn pictures(row: RowReport, titled: &str) -> Vec<String> {
    let page = html_page(&LabReport { rows: vec![row], ..fixture::report() });
    let has_title = |picture: &&str| picture.lines().next().is_some_and(|line| line.contains(titled));
    page.split("<svg ").skip(1).filter(has_title).map(|one| one.replace("</svg>", "")).collect()
}

/// The only one.
fn picture(row: RowReport, titled: &str) -> String {
    let mut all = pictures(row, titled);
    assert_eq!(all.len(), 1, "{titled}: {all:?}");
    all.remove(0)
}

/// Texts of a class, in their order.
fn texts<'a>(picture: &'a str, class: &str) -> Vec<&'a str> {
    let of_class = picture.lines().filter(|line| line.starts_with(&format!("<text class=\"{class}\"")));
    of_class.map(|line| line.split(['<', '>']).nth(2).expect("a text")).collect()
}

/// A number in the only element that begins with `element`.
fn attribute(picture: &str, element: &str, name: &str) -> f64 {
    let lines: Vec<&str> = picture.lines().filter(|line| line.starts_with(element)).collect();
    assert_eq!(lines.len(), 1, "{element}: {picture}");
    let value = lines[0].split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.expect("an attribute").parse().expect("a number")
}

/// `enqueue`, which has a variant of each role, two figures and one comparison.
fn enqueue(floor: Option<f64>, before: Option<f64>, after: Option<f64>) -> RowReport {
    fixture::rounds("enqueue", |variant, _| [[floor, before, after][variant]; 3])
}

/// Goal: bars and the noise floor are on one axis that holds the largest of all, and a variant without a
/// sample has no bar. Method: each of the three is the largest once, and is missing once; no bar at all.
#[test]
fn an_axis_holds_bars_and_floor() {
    let title = "arm and cancel, ns";
    for (values, ticks) in [
        ([90.0, 3.0, 2.0], ["0", "50.0", "100"].as_slice()),
        ([2.0, 350.0, 3.0], &["0", "100", "200", "300", "400"]),
        ([2.0, 3.0, 7.5], &["0", "2.00", "4.00", "6.00", "8.00"]),
    ] {
        let [floor, before, after] = values;
        let drawn = picture(enqueue(Some(floor), Some(before), Some(after)), title);
        assert_eq!(texts(&drawn, "tick"), ticks, "{values:?}");
        // From 224 at 0 to 48 at the last tick.
        let last: f64 = ticks[ticks.len() - 1].parse().expect("a number");
        let place = |value: f64| ((224.0 - value / last * 176.0) * 100.0).round() / 100.0;
        assert_eq!(attribute(&drawn, "<line class=\"floor\"", "y1"), place(floor), "{values:?}");
        assert_eq!(attribute(&drawn, "<rect class=\"before\"", "y"), place(before), "{values:?}");
        assert_eq!(attribute(&drawn, "<rect class=\"after\"", "y"), place(after), "{values:?}");
    }
    for (values, shown, width) in [
        ([None, Some(3.0), Some(2.0)], ["3.00", "2.00"].as_slice(), "270"),
        ([Some(1.0), None, Some(2.0)], &["2.00"], "242"),
        ([Some(1.0), Some(3.0), None], &["3.00"], "242"),
        ([None, None, Some(2.0)], &["2.00"], "170"),
    ] {
        let drawn = picture(enqueue(values[0], values[1], values[2]), title);
        assert_eq!(texts(&drawn, "value"), shown, "{values:?}");
        let head = drawn.lines().next().expect("a line");
        assert!(head.contains(&format!(" width=\"{width}\"")), "{values:?}: {head}");
    }
    assert_eq!(pictures(enqueue(Some(1.0), None, None), title), [""; 0]);
}

/// A row with one simulated comparison between two equal values, of a variant with this name.
fn simulated(name: &'static str, value: Option<f64>, ends: [Option<f64>; 2]) -> RowReport {
    let of = ScenarioValue { variant: name, value, halved: ends[0], doubled: ends[1] };
    let before = ScenarioValue { variant: "b", value: Some(100.0), halved: None, doubled: None };
    let compared = ScenarioComparison {
        what: "packets",
        unit: "per second",
        better: Better::Higher,
        before,
        after: of,
        ratio: None,
    };
    let scenario =
        ScenarioReport { scenario: "a.toml", costs: Vec::new(), holds: true, comparisons: vec![compared] };
    RowReport { simulated: Some(scenario), ..enqueue(None, Some(1.0), Some(1.0)) }
}

/// Goal: the whisker of what is simulated holds the value and both ends, whichever is the largest, and an end
/// that is missing is the value. Method: each order; a value that is missing has no picture.
#[test]
fn a_simulated_whisker_holds_its_value() {
    // 400 is the largest of each, so that 0 is at 224 and 100 are 44.
    for (value, ends, whisker) in [
        (Some(200.0), [Some(100.0), Some(400.0)], (180.0, 48.0)),
        (Some(200.0), [Some(400.0), Some(100.0)], (180.0, 48.0)),
        (Some(400.0), [Some(300.0), Some(200.0)], (136.0, 48.0)),
        (Some(200.0), [Some(400.0), Some(300.0)], (136.0, 48.0)),
        (Some(200.0), [None, Some(400.0)], (136.0, 48.0)),
        (Some(400.0), [Some(100.0), None], (180.0, 48.0)),
    ] {
        let drawn = picture(simulated("a", value, ends), "simulated: packets");
        let is_upright = |line: &&str| line.contains("whisker") && line.contains("x1=\"208\" ");
        let upright: Vec<&str> = drawn.lines().filter(is_upright).collect();
        let (low, high) = whisker;
        let expected = format!("<line class=\"whisker\" x1=\"208\" y1=\"{low}\" x2=\"208\" y2=\"{high}\"/>");
        assert_eq!(upright, [expected.as_str()], "{value:?} {ends:?}");
    }
    assert_eq!(pictures(simulated("a", None, [Some(1.0), Some(2.0)]), "simulated: packets"), [""; 0]);
}

/// Goal: a value stands above its whisker, or beside it where that is 24 or more from the bar. Method: 23.76
/// and 24.2 below the whisker's end, which is at 400 of an axis of 400.
#[test]
fn a_value_stands_near_its_bar() {
    for (value, place) in [
        (346.0, "x=\"208\" y=\"42\" text-anchor=\"middle\""),
        (345.0, "x=\"214\" y=\"66.2\" text-anchor=\"start\""),
    ] {
        let drawn = picture(simulated("a", Some(value), [None, Some(400.0)]), "simulated: packets");
        assert!(drawn.contains(&format!("<text class=\"value\" {place}>{value}<")), "{value}: {drawn}");
    }
}

/// Goal: only a name of more than fourteen letters is in two lines, divided at its last stroke. Method: names
/// of both lengths, with and without strokes.
#[test]
fn a_long_name_has_two_lines() {
    for (name, lines) in [
        ("push/movable/43", ["push/movable", "43"].as_slice()),
        ("push/movable/4", &["push/movable/4"]),
        ("push-movable-43", &["push-movable-43"]),
    ] {
        let drawn = picture(simulated(name, Some(1.0), [None, None]), "simulated: packets");
        assert_eq!(texts(&drawn, "name")[1..], *lines, "{name}");
    }
}

/// Goal: ticks are written out below a million, in millions from there on.
#[test]
fn large_ticks_are_in_millions() {
    let drawn = picture(simulated("a", Some(1_500_000.0), [None, None]), "simulated: packets");
    assert_eq!(texts(&drawn, "tick"), ["0", "500000", "1.00M", "1.50M"]);
}

/// `dbench` with these medians of `push` and `pull` by load; no other variant is measured.
fn dbench(push: [Option<f64>; 4], pull: [Option<f64>; 4]) -> RowReport {
    fixture::rounds("dbench", |variant, figure| {
        let of = match variant {
            1 => push.get(figure),
            3 => pull.get(figure),
            _ => None,
        };
        // Timeouts that ran are compared with nothing.
        [if figure == 11 { Some(900.0) } else { of.copied().flatten() }; 3]
    })
}

/// Goal: lines hold the compared figures alone, and leave out what was not measured. Method: a figure that is
/// not compared is far larger; one load without a sample with one variant, one with the other, one with both.
#[test]
fn lines_are_of_what_was_compared() {
    let row = dbench([Some(10.0), None, Some(15.0), None], [Some(20.0), Some(30.0), None, None]);
    let drawn = picture(row.clone(), "of all variants");
    assert_eq!(texts(&drawn, "tick"), ["0", "10.0", "20.0", "30.0"]);
    assert_eq!(texts(&drawn, "name")[..3], ["1 pair", "2 pairs", "4 pairs"]);
    let lines: Vec<&str> = drawn.lines().filter(|line| line.starts_with("<polyline")).collect();
    let line = |class: &str, points: &str| format!("<polyline class=\"{class}\" points=\"{points}\"/>");
    let expected = [
        line("floor", ""),
        // Variants are 9 apart around the middles 95, 169 and 243; 10 are 63.33.
        line("line-before", "90.5,160.67 238.5,129"),
        line("line-other", ""),
        line("line-after", "108.5,97.33 182.5,34"),
    ];
    assert_eq!(lines, expected);
    let percent = picture(row, "in percent");
    assert_eq!(texts(&percent, "name"), ["1 pair"]);
    assert_eq!(texts(&percent, "value"), ["+100.0"]);
}

/// Goal: differences go up and down from 0, whatever the largest is. Method: a loss alone, none, a win alone.
#[test]
fn differences_go_up_and_down() {
    for (pull, ticks, bar, value) in [
        (70.0, ["-30.0", "-20.0", "-10.0", "0"].as_slice(), (50.0, 158.0), 223.0),
        (100.0, &["0", "1.00"], (208.0, 0.0), 202.0),
        (130.0, &["0", "10.0", "20.0", "30.0"], (50.0, 158.0), 44.0),
    ] {
        let row = dbench([Some(100.0), None, None, None], [Some(pull), None, None, None]);
        let drawn = picture(row, "in percent");
        assert_eq!(texts(&drawn, "tick"), ticks, "{pull}");
        let of = |name| attribute(&drawn, "<rect", name);
        assert_eq!((of("y"), of("height")), bar, "{pull}");
        assert_eq!(attribute(&drawn, "<text class=\"value\"", "y"), value, "{pull}");
    }
}

/// Goal: a series is of more than two figures, all of one unit, whose names are numbers; all others are bars.
/// A row without a sample has no picture. Method: one of the conditions broken at a time.
#[test]
fn what_is_a_series() {
    let whole = dbench([Some(1.0); 4], [Some(2.0); 4]);
    let count =
        |row: &RowReport| ["of all variants", "in percent"].map(|title| pictures(row.clone(), title).len());
    let is_series = |row: &RowReport| count(row) == [1, 1];
    let with = |change: fn(&mut RowReport)| {
        let mut row = whole.clone();
        change(&mut row);
        row
    };
    assert!(is_series(&whole));
    assert!(is_series(&with(|row| row.comparisons.truncate(3))), "three");
    for (why, row) in [
        ("two", with(|row| row.comparisons.truncate(2))),
        ("none", with(|row| row.comparisons.clear())),
        ("a unit", with(|row| row.comparisons[1].unit = "ns")),
        ("a name", with(|row| row.comparisons[10].figure = "timeouts that ran")),
    ] {
        assert_eq!(count(&row), [0, 0], "{why}");
    }
    let empty = dbench([None; 4], [None; 4]);
    assert_eq!(count(&empty), [0, 0], "nothing measured");
    let before = dbench([Some(1.0); 4], [None; 4]);
    assert_eq!(count(&before), [1, 0], "nothing to compare with");
}

/// Goal: each verdict has its word and its colour. Method: one comparison with each.
#[test]
fn each_verdict_has_its_word() {
    for (verdict, cell) in [
        (ComparisonVerdict::Better, "better\">better"),
        (ComparisonVerdict::Worse, "worse\">loses"),
        (ComparisonVerdict::NoDifference, "same\">no difference"),
        (ComparisonVerdict::OneRound, "same\">one round"),
        (ComparisonVerdict::NotMeasured, "same\">not measured"),
    ] {
        let mut row = enqueue(Some(1.0), Some(3.0), Some(2.0));
        row.comparisons[0].verdict = verdict;
        let page = html_page(&LabReport { rows: vec![row], ..fixture::report() });
        assert!(page.contains(&format!("<td class=\"{cell}</td></tr>")), "{verdict:?}");
    }
}

/// Goal: a quick run and one that was interrupted say so, and no other does.
#[test]
fn quick_and_interrupted_are_said() {
    for (quick, complete) in [(false, true), (true, true), (false, false), (true, false)] {
        let page = html_page(&LabReport { quick, complete, ..fixture::report() });
        assert_eq!(page.contains("This was the quick run"), quick, "{quick} {complete}");
        assert_eq!(page.contains(">Interrupted: "), !complete, "{quick} {complete}");
    }
}
