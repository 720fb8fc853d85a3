//! Predictions from fixed costs, and what is said of them.

use crate::fixture;
use quietcore_lab::Prediction;

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
