//! Predictions from fixed costs, and what is said of them.

use super::questions::QUESTIONS;
use super::{Prediction, Report, judge, predicted, show};
use crate::lab::host::Host;
use crate::text::Page;
use quietcore_sim::CostTable;

fn costs() -> CostTable {
    let text = include_str!("../../../../../scenarios/costs.toml");
    CostTable::parse("costs.toml".as_ref(), text).expect("the project's own costs")
}

fn report() -> Report {
    let host = Host {
        kernel: Some("6.19.0".to_owned()),
        processor: None,
        is_virtual: None,
        cpus_online: "0-1".to_owned(),
        cpus_allowed: "0-1".to_owned(),
        isolated: String::new(),
        nohz_full: String::new(),
        load_average: None,
        governor: Some("performance".to_owned()),
        clock_source: None,
    };
    let predictions = Vec::new();
    Report {
        schema: 1,
        quietcore: "1.2.3",
        complete: true,
        host,
        costs: costs(),
        tolerated_percent: 30.0,
        span_ms: 1_000,
        predictions,
    }
}

/// Goal: every question has a scenario that gives every figure that is asked for, and costs matter nowhere
/// but in the scenario. Method: the project's costs, twice.
#[test]
fn every_question_is_answered() {
    for question in QUESTIONS {
        let answers = predicted(question, &costs()).expect(question.name);
        assert_eq!(answers.len(), question.asks.len(), "{}", question.name);
        for answer in &answers {
            assert!(answer.predicted > 0.0 && answer.predicted.is_finite(), "{answer:?}");
            assert!(answer.measured.is_none());
        }
        let again = predicted(question, &costs()).expect(question.name);
        let values = |all: &[Prediction]| all.iter().map(|one| one.predicted).collect::<Vec<f64>>();
        assert_eq!(values(&answers), values(&again), "{}", question.name);
    }
}

/// Goal: a prediction that is off says by how much and why, one that is not says nothing. Method: fixed
/// predictions, and rounds that hit, miss, scatter, and are missing.
#[test]
fn what_is_off_says_why() {
    let mut report = report();
    for (question, values) in QUESTIONS.iter().zip([100.0, 40.0, 1_000.0, 90_000.0, 10_000.0]) {
        for ask in question.asks {
            report.predictions.push(Prediction {
                question: question.name,
                what: ask.what,
                unit: ask.unit.0,
                predicted: values,
                halved: values * 0.9,
                doubled: values * 2.0,
                measured: None,
            });
        }
    }
    // Within, and nearly not.
    judge(&mut report, &QUESTIONS[0], (&[vec![110.0, 129.9]], Some(1.0)));
    // Far off, and between half and twice the costs.
    judge(&mut report, &QUESTIONS[1], (&[vec![400.0, 70.0]], Some(40.0)));
    // Rounds that scatter over the prediction.
    let scattered = [vec![900.0, 100.0], vec![5_000.0, 1_000.0], vec![5_000.0, 1_000.0]];
    judge(&mut report, &QUESTIONS[2], (&scattered, None));
    // Not measured.
    judge(&mut report, &QUESTIONS[3], (&[], None));
    judge(&mut report, &QUESTIONS[4], (&[vec![5_000.0, 20_000.0]], None));
    report.complete = false;
    let within: Vec<Option<bool>> =
        report.predictions.iter().map(|one| one.measured.as_ref().map(|live| live.within)).collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(within, [yes, yes, no, no, no, yes, None, None, no, no]);
    let mut page = Page::plain();
    show::write(&mut page, &report);
    insta::assert_snapshot!("predict", page.into_text());
    insta::assert_snapshot!(
        "predict-json",
        serde_json::to_string_pretty(&report.predictions).expect("it is plain data")
    );
}
