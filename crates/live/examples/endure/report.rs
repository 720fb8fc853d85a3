//! What an experiment found: figures, and whether its criterion was met.
//!
//! One line for people, one object for programs. An experiment that could not be made says why; that is
//! neither passed nor failed, and has an exit code of its own. Not here: what is measured.

use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// What test drivers take for "not made" (automake, meson).
const NOT_MADE: u8 = 77;

/// How an experiment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// The criterion was not met, and which.
    Fail(String),
    /// It was not made, or says nothing, and why.
    Skipped(String),
}

/// Figures in the order in which they were found, and the verdict.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    experiment: &'static str,
    figures: Vec<(&'static str, Value)>,
    verdict: Verdict,
}

impl Report {
    pub(crate) fn new(experiment: &'static str) -> Self {
        Self { experiment, figures: Vec::new(), verdict: Verdict::Pass }
    }

    /// An experiment that cannot be made here.
    pub(crate) fn skipped(experiment: &'static str, why: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skipped(why.into()), ..Self::new(experiment) }
    }

    pub(crate) fn figure(&mut self, name: &'static str, value: impl Into<Value>) {
        self.figures.push((name, value.into()));
    }

    /// Part of the criterion; the first that is not met is the reason.
    pub(crate) fn require(&mut self, is_met: impl Into<Met>, otherwise: impl FnOnce() -> String) {
        if is_met.into() == Met::No && self.verdict == Verdict::Pass {
            self.verdict = Verdict::Fail(otherwise());
        }
    }

    /// The figures say nothing, whatever they are.
    pub(crate) fn disregard(&mut self, why: String) {
        self.verdict = Verdict::Skipped(why);
    }

    pub(crate) fn print_line(&self) {
        let figures: Vec<String> = self.figures.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (word, why) = match &self.verdict {
            Verdict::Pass => ("PASS", String::new()),
            Verdict::Fail(why) => ("FAIL", format!(" ({why})")),
            Verdict::Skipped(why) => ("SKIPPED", format!(" ({why})")),
        };
        println!("{word} {}{why}: {}", self.experiment, figures.join(" "));
    }

    pub(crate) fn print_json(&self) {
        let (verdict, why) = match &self.verdict {
            Verdict::Pass => ("pass", None),
            Verdict::Fail(why) => ("fail", Some(why)),
            Verdict::Skipped(why) => ("skipped", Some(why)),
        };
        let figures: Map<String, Value> =
            self.figures.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let object = json!({
            "experiment": self.experiment, "verdict": verdict, "why": why, "figures": figures,
        });
        println!("{object}");
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.verdict {
            Verdict::Pass => ExitCode::SUCCESS,
            Verdict::Fail(_) => ExitCode::FAILURE,
            Verdict::Skipped(_) => ExitCode::from(NOT_MADE),
        }
    }
}

/// Whether a part of the criterion is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    Yes,
    No,
}

impl From<bool> for Met {
    fn from(is_met: bool) -> Self {
        if is_met { Self::Yes } else { Self::No }
    }
}
