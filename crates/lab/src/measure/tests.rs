//! Rounds of plans that measure nothing: what is kept of them, and what is said.

use super::{RowRounds, times};
use crate::plan::{
    Better, Compare, ExactCheck, PLAIN, RowPlan, RowVariant, ToolOutput, TrialContext, TrialFigures,
    VariantRole,
};
use crate::report::{ComparisonVerdict, RowReport};
use crate::slice::{Slice, SliceKind, SliceLog};
use crate::sync::StopFlag;
use quietcore_core::{CpuId, Nanos};
use std::cell::Cell;
use std::time::Duration;

thread_local! {
    /// Trials that this test ran.
    static TRIALS: Cell<u64> = const { Cell::new(0) };
    /// The trial in which the stop flag is set.
    static LAST: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Its figure is the trial's number, from 1; so are its line and its slice.
fn trial(context: &TrialContext) -> Result<TrialFigures, crate::LabError> {
    let number = TRIALS.get() + 1;
    TRIALS.set(number);
    context.attach("lines", vec![number.to_string()]);
    let (cpu, began) = (context.cpus[0], Nanos(number));
    let kind = SliceKind::Task { number: Some(number) };
    context.slices.push(|tid| Slice { kind, name: "trial", cpu, tid, began, ended: began });
    if number == LAST.get() {
        context.stop.set();
    }
    Ok(vec![Some(number as f64)])
}

const fn variant(name: &'static str, role: VariantRole) -> RowVariant {
    RowVariant { name, what: "a trial", role, run: trial }
}

const TWO: RowPlan = RowPlan {
    name: "two",
    question: "Which is less?",
    figures: &[("number", "trials")],
    variants: &[variant("old", VariantRole::Before), variant("new", VariantRole::After)],
    compares: &[Compare { figure: 0, better: Better::Lower }],
    ..PLAIN
};

fn context() -> TrialContext {
    let cpus = [2, 5].map(|number| CpuId::new(number).expect("a CPU"));
    let mut context = TrialContext::new(Duration::from_millis(70), cpus, StopFlag::default());
    context.slices = SliceLog::on();
    context
}

/// The rounds of [`TWO`], and what was told.
fn measured(context: &TrialContext, stop_in: u64) -> (RowRounds, Vec<String>) {
    TRIALS.set(0);
    LAST.set(stop_in);
    let mut told = Vec::new();
    let mut tell = |round, variant: &str| told.push(format!("{round} {variant}"));
    (RowRounds::measure(&TWO, context, 3, &mut tell).expect("no trial fails"), told)
}

/// Goal: figures are those of all rounds, lines and slices those of the last one. Method: three rounds of two
/// variants, numbered as they ran.
#[test]
fn the_last_round_leaves_lines_and_slices() {
    let context = context();
    let (rounds, told) = measured(&context, u64::MAX);
    assert_eq!(told, ["1 old", "1 new", "2 old", "2 new", "3 old", "3 new"]);
    assert_eq!(rounds.count(), 3);
    let of_variant = |figures: [f64; 3]| figures.map(|number| vec![Some(number)]).to_vec();
    assert_eq!(rounds.figures, [of_variant([1.0, 3.0, 5.0]), of_variant([2.0, 4.0, 6.0])]);
    let lines = |number: &str| Some(ToolOutput { format: "lines", lines: vec![number.to_owned()] });
    assert_eq!(rounds.attachments, [lines("5"), lines("6")]);
    let shown = rounds.slices.iter().map(|one| (one.row, one.variant, one.slices.len(), one.slices[0].began));
    let expected = [("two", "old", 1, Nanos(5)), ("two", "new", 1, Nanos(6))];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    let row = rounds.row(Box::leak(Box::new(TWO)), &context, "again".to_owned());
    assert_eq!((row.experiment, row.question), ("two", "Which is less?"));
    assert_eq!((&row.command[..], &row.cpus[..]), ("again", "2,5"));
    assert_eq!((row.span_ms, row.rounds, row.measured), (70, 3, true));
}

/// Goal: a round that was cut short does not count, whichever variant ran. Method: stopped in each of the
/// first four trials.
#[test]
fn a_round_that_was_cut_short_does_not_count() {
    for (stop_in, count, told) in [(1, 0, 1), (2, 0, 2), (3, 1, 3), (4, 1, 4)] {
        let (rounds, heard) = measured(&context(), stop_in);
        assert_eq!((rounds.count(), heard.len()), (count, told), "stopped in trial {stop_in}");
        let last = rounds.attachments[1].as_ref().map(|attachment| attachment.lines[0].as_str());
        assert_eq!(last, (count > 0).then_some("2"), "stopped in trial {stop_in}");
    }
}

/// A row whose variants have those rounds in every figure: of a noise floor, where there is one, of before,
/// and of after.
fn row(plan: RowPlan, variants: &[&[f64]]) -> RowReport {
    let figures = plan.figures.len();
    let rounds = |values: &&[f64]| values.iter().map(|value| vec![Some(*value); figures]).collect();
    RowRounds::given(variants.iter().map(rounds).collect()).row(
        Box::leak(Box::new(plan)),
        &context(),
        String::new(),
    )
}

const THREE: RowPlan = RowPlan {
    variants: &[
        variant("nothing", VariantRole::NoiseFloor),
        variant("old", VariantRole::Before),
        variant("new", VariantRole::After),
    ],
    ..TWO
};

/// Goal: the median of an even number of rounds is the larger of the two in the middle; smallest and largest
/// are the ends. Method: two rounds and five, out of order.
#[test]
fn a_figure_has_a_median_and_its_ends() {
    let row = row(TWO, &[&[9.0, 4.0], &[30.0, 1.0, 70.0, 20.0, 2.0]]);
    let of = |at: usize| {
        let figure = &row.variants[at].figures[0];
        [figure.smallest, figure.median, figure.largest].map(|value| value.expect("it has rounds"))
    };
    assert_eq!((of(0), of(1)), ([4.0, 9.0, 9.0], [1.0, 20.0, 70.0]));
    assert_eq!(row.variants[1].figures[0].rounds, [30.0, 1.0, 70.0, 20.0, 2.0]);
}

/// Goal: medians that differ by no more than the noise floor's rounds do are no difference; rounds that touch
/// are none, either. Method: both sides of each limit; without a noise floor any difference is one.
#[test]
fn a_difference_is_beyond_noise_and_overlap() {
    use ComparisonVerdict::{Better, NoDifference, Worse};
    for (floor, old, new, expected) in [
        // The floor's rounds differ by 4.
        ([1.0, 2.0, 5.0], [20.0, 21.0, 22.0], [16.0, 17.0, 18.0], NoDifference),
        ([1.0, 2.0, 5.0], [20.0, 21.0, 22.0], [15.0, 16.9, 18.0], Better),
        ([1.0, 2.0, 5.0], [15.0, 16.9, 18.0], [20.0, 21.0, 22.0], Worse),
        // One round of one is a round of the other, too.
        ([1.0, 1.0, 1.0], [20.0, 25.0, 26.0], [10.0, 12.0, 20.0], NoDifference),
        ([1.0, 1.0, 1.0], [10.0, 12.0, 20.0], [20.0, 25.0, 26.0], NoDifference),
        ([1.0, 1.0, 1.0], [20.0, 25.0, 26.0], [10.0, 12.0, 19.0], Better),
        // The medians are apart, the ends are not.
        ([1.0, 1.0, 1.0], [11.0, 25.0, 26.0], [10.0, 12.0, 13.0], NoDifference),
        ([1.0, 1.0, 1.0], [10.0, 12.0, 30.0], [24.0, 25.0, 26.0], NoDifference),
    ] {
        let compared = &row(THREE, &[&floor, &old, &new]).comparisons[0];
        assert_eq!(compared.verdict, expected, "{floor:?} {old:?} {new:?}");
        assert_eq!(compared.floor, Some(floor[1]), "{floor:?}");
        assert_eq!((compared.before_median, compared.after_median), (Some(old[1]), Some(new[1])));
        assert_eq!(compared.ratio, Some(new[1] / old[1]), "{old:?} {new:?}");
    }
    let compared = &row(TWO, &[&[1.0, 1.0], &[0.5, 0.5]]).comparisons[0];
    assert_eq!((compared.verdict, compared.ratio, compared.floor), (Better, Some(0.5), None));
}

/// Goal: a ratio is after by before, and nothing by nothing has none. Method: 0, and what is nearly nothing.
#[test]
fn a_ratio_is_after_by_before() {
    for (old, new, ratio) in [(1.0, 3.0, Some(3.0)), (4.0, 0.0, Some(0.0)), (0.0, 5.0, None)] {
        let compared = &row(TWO, &[&[old], &[new]]).comparisons[0];
        assert_eq!(compared.ratio, ratio, "{old} {new}");
        assert_eq!((compared.before_median, compared.after_median), (Some(old), Some(new)));
        assert_eq!((compared.before, compared.after), ("old", "new"));
        assert_eq!((compared.figure, compared.unit), ("number", "trials"));
    }
}

/// Goal: of what must have one value the farthest round is named. Method: rounds on both sides of 5.
#[test]
fn the_farthest_round_is_named() {
    let exact_checks = &[ExactCheck { variant: "new", figure: 0, value: 5.0 }];
    let row = row(RowPlan { exact_checks, ..TWO }, &[&[5.0; 3], &[5.0, 1.0, 8.0]]);
    let check = &row.exact_checks[0];
    assert_eq!((check.value, check.found, check.holds), (5.0, Some(1.0), false));
    assert_eq!((check.variant, check.figure, check.unit), ("new", "number", "trials"));
    let said = "BROKEN: number, trials, must be 5.00 with new, and was 1.00.";
    assert_eq!(row.words[0], said);
}

const NAMES: &[(&str, &str)] =
    &[("a", "ns"), ("b", "ns"), ("c", "ns"), ("d", "ns"), ("e", "ns"), ("f", "ns"), ("g", "ns")];

/// Compares the first figures: less is better, but for the second one.
const COMPARES: [Compare; 7] = {
    let mut all = [Compare { figure: 0, better: Better::Lower }; 7];
    let mut at = 1;
    while at < all.len() {
        all[at].figure = at;
        at += 1;
    }
    all[1].better = Better::Higher;
    all
};

/// The words of a row in which those of the first `count` figures are compared.
fn words(compares: &'static [Compare], rounds: usize) -> Vec<String> {
    let old = [Some(100.0), Some(100.0), Some(100.0), Some(100.0), Some(0.0), Some(40.0), Some(100.0)];
    let new = [Some(50.0), Some(80.0), Some(100.0), Some(125.0), Some(3.0), Some(0.0), None];
    let plan = RowPlan { figures: NAMES, compares, notes: &["A note.", "Another."], ..TWO };
    let of = |figures: [Option<f64>; 7]| vec![figures.to_vec(); rounds];
    let rounds = RowRounds::given(vec![of(old), of(new)]);
    rounds.row(Box::leak(Box::new(plan)), &context(), String::new()).words
}

/// Goal: up to five comparisons have a sentence each, more are told in groups; what was not measured comes
/// last and apart, notes behind all. Method: five, then all seven, of which six were measured.
#[test]
fn many_comparisons_are_told_in_groups() {
    const FIVE: [Compare; 5] = [COMPARES[0], COMPARES[1], COMPARES[2], COMPARES[3], COMPARES[6]];
    assert_eq!(
        words(&FIVE, 2),
        [
            "a: new is better than old, 50.0 against 100 ns, 1/2.00 of it.",
            "b: new LOSES to old, 80.0 against 100 ns, -20.0 %.",
            "c: no difference between new and old beyond what rounds differ by anyway (100 against 100 ns, +0.0 %).",
            "d: new LOSES to old, 125 against 100 ns, +25.0 %.",
            "g: not measured in every round with old and new, so nothing follows (- against 100 ns).",
            "A note.",
            "Another.",
        ]
    );
    const FIVE_MEASURED: [Compare; 5] = [COMPARES[0], COMPARES[1], COMPARES[2], COMPARES[3], COMPARES[4]];
    let five = words(&FIVE_MEASURED, 1);
    assert_eq!(five.len(), 7, "{five:?}");
    assert_eq!(five[4], "e: new against old: 3.00 against 0 ns; one round says nothing of the spread.");
    assert_eq!(
        words(&COMPARES, 2),
        [
            "new is better than old with a (-50.0 %), f (-100.0 %).",
            "new LOSES to old with b (-20.0 %), d (+25.0 %), e.",
            "new shows no difference beyond what rounds differ by anyway from old with c (+0.0 %).",
            "g: not measured in every round with old and new, so nothing follows (- against 100 ns).",
            "A note.",
            "Another.",
        ]
    );
    let one = words(&COMPARES, 1);
    let said = "new has one round only, which says nothing of the spread, against old with a (-50.0 %), \
                b (-20.0 %), d (+25.0 %), e, f (-100.0 %).";
    assert_eq!(one[1], said);
}

/// Goal: what others took is in the report, and from 5 % on in words. Method: both sides, and not known.
#[test]
fn what_others_took_is_said_from_a_twentieth_on() {
    for (percent, warns) in [(None, false), (Some(4.9), false), (Some(5.0), true), (Some(7.25), true)] {
        let mut row = row(TWO, &[&[1.0], &[2.0]]);
        let words = row.words.len();
        row.beside(percent);
        assert_eq!(row.others_percent, percent);
        assert_eq!(row.words.len(), words + usize::from(warns), "{percent:?}: {:?}", row.words);
        if percent == Some(7.25) {
            let said = "Others took 7.25 % of all CPU time meanwhile: these figures are not those of a quiet machine.";
            assert_eq!(row.words[words], said);
        }
    }
}

/// Goal: a ratio in words. Method: both sides of each limit.
#[test]
fn a_ratio_in_words() {
    for (ratio, said) in [
        (0.0, "nothing of it is left"),
        (0.004, "1/250 of it"),
        (0.6, "1/1.67 of it"),
        (1.0 / 1.5, "1/1.50 of it"),
        (0.67, "-33.0 %"),
        (1.0, "+0.0 %"),
        (1.49, "+49.0 %"),
        (1.5, "1.50 times as much"),
        (12.0, "12.0 times as much"),
        (-0.5, "-150.0 %"),
    ] {
        assert_eq!(times(ratio), said, "{ratio}");
    }
}
