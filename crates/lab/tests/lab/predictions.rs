//! Predictions from fixed costs, and what is said of them.

use crate::fixture;
use quietcore_lab::{Prediction, Predictor, SCHEMA, StopFlag, allowed_cpus, number, two_cpus};
use quietcore_testing::left_out;
use std::time::Duration;

/// Goal: every case has a scenario that gives every figure that is asked for, and the same twice. Method: the
/// project's costs.
#[test]
fn every_case_is_answered() {
    let (once, again) = (fixture::predicted(), fixture::predicted());
    assert_eq!(once.predictions.len(), 10);
    for answer in &once.predictions {
        assert!(answer.predicted > 0.0 && answer.predicted.is_finite(), "{answer:?}");
        assert!(answer.measured.is_none());
    }
    let values = |all: &[Prediction]| all.iter().map(|one| one.predicted).collect::<Vec<f64>>();
    assert_eq!(values(&once.predictions), values(&again.predictions));
    assert_eq!((once.schema, once.complete), (SCHEMA, true));
    assert_eq!((once.tolerated_percent, once.span_ms), (30.0, 1_000));
    let line = |one: &Prediction| {
        let (figure, value) = (format!("{}: {}", one.question, one.what), number(one.predicted));
        let (halved, doubled) = (number(one.halved), number(one.doubled));
        format!("{figure:<52} {value:>7} {halved:>7} {doubled:>7} {}", one.unit)
    };
    let lines: Vec<String> = once.predictions.iter().map(line).collect();
    insta::assert_snapshot!("predicted", lines.join("\n"));
}

/// Goal: what was not measured before the run was stopped is not in the report, which says so. Method:
/// stopped before it begins.
#[test]
fn a_run_that_is_stopped_is_incomplete() {
    if let Err(error) = two_cpus(None, &allowed_cpus().expect("it can be read")) {
        return left_out("a_run_that_is_stopped_is_incomplete", error);
    }
    let (stop, costs) = (StopFlag::default(), fixture::predicted().costs);
    let predictor = Predictor::new(costs, Duration::from_millis(70), None, stop.clone()).expect("two CPUs");
    assert_eq!(predictor.predictions().len(), 10);
    stop.set();
    let report = predictor.measure(1, &mut |case, _| panic!("{case} begins")).expect("nothing is run");
    assert_eq!((report.complete, report.span_ms), (false, 70));
    assert!(report.predictions.iter().all(|one| one.measured.is_none()));
}

/// Goal: a prediction is held against the median of the rounds, and one that is off by more than 30 % says
/// what of its own figures could be the reason. Method: the first case, whose predictions and rounds are on
/// both sides of each limit.
#[test]
fn a_prediction_is_held_against_the_median() {
    let base = fixture::predicted();
    let judged = |(predicted, halved, doubled): (f64, f64, f64), rounds: &[f64], others: Option<f64>| {
        let mut report = base.clone();
        for one in &mut report.predictions {
            *one = Prediction { predicted, halved, doubled, ..one.clone() };
        }
        let rounds: Vec<_> = rounds.iter().map(|value| vec![Some(*value), Some(1.0)]).collect();
        report.judge("idle", &rounds, others);
        assert!(report.predictions[2].measured.is_none(), "another case");
        let live = report.predictions[0].measured.clone().expect("it has rounds");
        assert_eq!((live.others_percent, live.reason.is_none()), (others, live.within));
        (live.median, live.off_percent, live.reason.unwrap_or_default())
    };
    let hundred = (100.0, 90.0, 110.0);
    let not_simulated = "not simulated: threads of this process other than lanes, and wake-ups that one late \
                         wake-up saves";
    let unexplained =
        |range: &str| format!("not even half or twice the costs explain it ({range}); {not_simulated}");
    // The median of five, and of two; 30 % is within, on both sides.
    assert_eq!(judged(hundred, &[130.0, 70.0, 90.0, 120.0, 80.0], None), (90.0, Some(-10.0), String::new()));
    assert_eq!(judged(hundred, &[130.0, 60.0], None), (130.0, Some(30.0), String::new()));
    assert_eq!(judged((1_000.0, 1.0, 2.0), &[700.0], None), (700.0, Some(-30.0), String::new()));
    assert_eq!(judged(hundred, &[131.0], None), (131.0, Some(31.0), unexplained("90.0 to 110")));
    // Nothing was predicted.
    assert_eq!(judged((0.0, 0.0, 0.0), &[0.0], None), (0.0, Some(0.0), String::new()));
    assert_eq!(judged((0.0, 0.0, 0.0), &[5.0], None), (5.0, None, unexplained("0 to 0")));
    // More costs, less of it: the range is from doubled to halved.
    let range = "costs between half and twice those calibrated give 60.0 to 150";
    assert_eq!(judged((100.0, 150.0, 60.0), &[140.0], None), (140.0, Some(40.0), range.to_owned()));
    assert_eq!(judged((100.0, 60.0, 150.0), &[140.0], None), (140.0, Some(40.0), range.to_owned()));
    // Rounds past what was predicted; and past what half the costs give, which is something else.
    let outside = format!("the rounds went from 50.0 to 160, past it; {}", unexplained("80.0 to 90.0"));
    assert_eq!(judged((100.0, 80.0, 90.0), &[60.0, 50.0, 160.0], None), (60.0, Some(-40.0), outside));
    let inside = "costs between half and twice those calibrated give 40.0 to 45.0";
    assert_eq!(
        judged((100.0, 40.0, 45.0), &[45.0, 60.0, 35.0], None),
        (45.0, Some(-55.0), inside.to_owned())
    );
    // Others, from 5 % on.
    let others = format!("others took 5.00 % of all CPU time meanwhile; {}", unexplained("90.0 to 110"));
    assert_eq!(judged(hundred, &[200.0], Some(5.0)).2, others);
    assert_eq!(judged(hundred, &[200.0], Some(4.99)).2, unexplained("90.0 to 110"));
}

/// Goal: a throughput that is off says what a request takes more or less, where there were requests. Method:
/// fewer, more and none; none predicted.
#[test]
fn a_throughput_says_what_a_request_takes() {
    let base = fixture::predicted();
    let said = |predicted: f64, measured: f64| {
        let mut report = base.clone();
        for one in &mut report.predictions {
            *one = Prediction { predicted, halved: 7.0, doubled: 5.0, ..one.clone() };
        }
        report.judge("dbench", &[vec![Some(measured), None]], None);
        let live = report.predictions[8].measured.clone().expect("it has a round");
        assert!(report.predictions[9].measured.is_none(), "it has no sample");
        live.reason.and_then(|reason| Some(reason.split_once("about to wait")?.1.to_owned()))
    };
    let told = |text: &str| Some(text.to_owned());
    // Waking a lane: 12433 and 10423 ns.
    let longer = "; a request takes 750 us longer than simulated, where waking a lane costs 22.9 us";
    assert_eq!(said(4_000.0, 1_000.0), told(longer));
    let less = "; a request takes 125 us less than simulated, where waking a lane costs 22.9 us";
    assert_eq!(said(4_000.0, 8_000.0), told(less));
    assert_eq!(
        said(0.9, 0.5),
        told("; a request takes 888889 us longer than simulated, where waking a lane costs 22.9 us")
    );
    assert_eq!((said(4_000.0, 0.0), said(0.0, 4_000.0)), (told(""), told("")));
}

/// Goal: a prediction that is off says by how much and why, one that is not says nothing. Method: fixed
/// predictions, and rounds that hit, miss, scatter, and are missing.
#[test]
fn what_is_off_says_why() {
    let report = fixture::judged();
    let within: Vec<Option<bool>> =
        report.predictions.iter().map(|one| one.measured.as_ref().map(|live| live.within)).collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(within, [yes, yes, no, no, no, yes, None, None, no, no]);
    insta::assert_snapshot!(
        "predict-json",
        serde_json::to_string_pretty(&report.predictions).expect("it is plain data")
    );
}
