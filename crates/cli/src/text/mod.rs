//! Text for people: what each report looks like on a terminal.

mod calibration;
mod cause;
mod differences;
#[cfg(test)]
pub(crate) mod explanation_fixture;
mod finding;
mod idle;
mod lab;
#[cfg(test)]
#[path = "../../../lab/tests/lab/fixture.rs"]
pub(crate) mod lab_fixture;
mod osnoise;
mod page;
mod predict;
mod report;
mod runtimes;
mod sim;
mod verification;
mod watched;
mod whatif;
mod when;

pub(crate) use calibration::costs;
pub(crate) use cause::{main_cause, why};
pub(crate) use differences::differences;
pub(crate) use finding::findings;
pub(crate) use lab::{lab_row, lab_summary};
pub(crate) use page::Page;
pub(crate) use predict::predictions;
pub(crate) use report::{about, explanation, own_disturbance, question_rows, questions};
pub(crate) use runtimes::runtimes;
pub(crate) use sim::simulation;
pub(crate) use verification::verification;
pub(crate) use watched::watched;
pub(crate) use whatif::comparison;
pub(crate) use when::when;
