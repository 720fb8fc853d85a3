//! What an experiment found: figures, and whether they are within the criterion's bounds.
//!
//! One line for people, one object for programs. An experiment that could not be made says why; that is
//! neither passed nor failed, and has an exit code of its own. Not here: what is measured.

use core::fmt::Display;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// What test drivers take for "not made" (automake, meson).
const NOT_MADE: u8 = 77;

/// How an experiment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// Which bound was not kept.
    Fail(String),
    /// It was not made, or its figures say nothing, and why.
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
    pub(crate) const fn new(experiment: &'static str) -> Self {
        Self { experiment, figures: Vec::new(), verdict: Verdict::Pass }
    }

    /// An experiment that cannot be made here.
    pub(crate) fn skipped(experiment: &'static str, why: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skipped(why.into()), ..Self::new(experiment) }
    }

    pub(crate) fn figure(&mut self, name: &'static str, value: impl Into<Value>) {
        self.figures.push((name, value.into()));
    }

    /// A figure with an upper bound.
    pub(crate) fn at_most<T: Copy + Display + PartialOrd + Into<Value>>(
        &mut self,
        name: &'static str,
        value: T,
        limit: T,
    ) {
        self.figure(name, value);
        if value > limit {
            self.fail(format!("{name} is {value}, more than {limit}"));
        }
    }

    /// A figure with a lower bound.
    pub(crate) fn at_least<T: Copy + Display + PartialOrd + Into<Value>>(
        &mut self,
        name: &'static str,
        value: T,
        limit: T,
    ) {
        self.figure(name, value);
        if value < limit {
            self.fail(format!("{name} is {value}, less than {limit}"));
        }
    }

    /// The first reason is kept.
    fn fail(&mut self, why: String) {
        if !matches!(self.verdict, Verdict::Fail(_)) {
            self.verdict = Verdict::Fail(why);
        }
    }

    /// If a bound was not kept so far, this says why that says nothing about the runtime. Bounds that no
    /// noise excuses come after it.
    pub(crate) fn excuse(&mut self, why: String) {
        if let Verdict::Fail(what) = &self.verdict {
            self.verdict = Verdict::Skipped(format!("{what}, but {why}"));
        }
    }

    pub(crate) fn print_line(&self) {
        let text = |(name, value): &(_, Value)| format!("{name}={value}");
        let figures: Vec<String> = self.figures.iter().map(text).collect();
        let (word, why) = match &self.verdict {
            Verdict::Pass => ("PASS", String::new()),
            Verdict::Fail(why) => ("FAIL", format!(" ({why})")),
            Verdict::Skipped(why) => ("SKIPPED", format!(" ({why})")),
        };
        println!("{word} {}{why} {}", self.experiment, figures.join(" "));
    }

    pub(crate) fn print_json(&self) {
        let (verdict, why) = match &self.verdict {
            Verdict::Pass => ("pass", None),
            Verdict::Fail(why) => ("fail", Some(why)),
            Verdict::Skipped(why) => ("skipped", Some(why)),
        };
        let owned = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone());
        let figures: Map<String, Value> = self.figures.iter().map(owned).collect();
        println!(
            "{}",
            json!({ "experiment": self.experiment, "verdict": verdict, "why": why, "figures": figures })
        );
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.verdict {
            Verdict::Pass => ExitCode::SUCCESS,
            Verdict::Fail(_) => ExitCode::FAILURE,
            Verdict::Skipped(_) => ExitCode::from(NOT_MADE),
        }
    }
}
