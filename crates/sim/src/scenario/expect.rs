//! What a scenario expects of its figures: comparisons, per variant or between variants; and sums that it
//! shows.
//!
//! A line of `[expect]` is `KEY = ["left OP right", ..]`. The key says which variants it is about: a label,
//! where `*` stands for any value (`pull/*`), or `every`. A side is a CPU list, or numbers joined by `+ - *
//! /` (all with spaces around them): a number, a span (`3ms`), a figure (`foreign`), one CPU's (`gap_max.1`),
//! or another variant's (`throughput@push/*`, where `*` is what it is in the present variant). A figure
//! without a value never holds.

use super::error::ScenarioProblem;
use super::value::Span;
use crate::figures::{self, RunFigures};
use quietcore_core::{CpuId, CpuSet};
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// The most expectations, over all variants.
const EXPECTATIONS_MAX: usize = 4096;
const WORDS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operand {
    Number(f64),
    /// A figure of a variant, of one CPU or of all.
    Figure {
        name: &'static str,
        variant: usize,
        cpu: Option<CpuId>,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Side {
    CpuChoice(CpuSet),
    CpusOf {
        name: &'static str,
        variant: usize,
    },
    /// Operands, each with what joins it to those before.
    Numbers(Vec<(char, Operand)>),
}

/// One comparison about one variant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expectation {
    pub(crate) variant: usize,
    pub(crate) text: String,
    left: Side,
    comparison: Comparison,
    right: Side,
}

/// What a side amounts to.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64),
    CpuChoice(CpuSet),
    Absent,
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) if number.fract() == 0.0 => write!(out, "{number}"),
            Self::Number(number) => write!(out, "{number:.3}"),
            Self::CpuChoice(cpus) if cpus.is_empty() => write!(out, "none"),
            Self::CpuChoice(cpus) => write!(out, "{cpus}"),
            Self::Absent => write!(out, "no value"),
        }
    }
}

impl Expectation {
    /// Whether it holds, and what it compared.
    pub(crate) fn check(&self, figures: &[RunFigures]) -> (bool, String) {
        let (left, right) = (value(&self.left, figures), value(&self.right, figures));
        let holds = match (&left, &right) {
            (Value::Number(left), Value::Number(right)) => match self.comparison {
                Comparison::Equal => left == right,
                Comparison::Unequal => left != right,
                Comparison::Less => left < right,
                Comparison::AtMost => left <= right,
                Comparison::More => left > right,
                Comparison::AtLeast => left >= right,
            },
            (Value::CpuChoice(left), Value::CpuChoice(right)) => {
                (left == right) == (self.comparison == Comparison::Equal)
            }
            _ => false,
        };
        (holds, format!("{left} against {right}"))
    }
}

fn value(side: &Side, figures: &[RunFigures]) -> Value {
    match side {
        Side::CpuChoice(cpus) => Value::CpuChoice(cpus.clone()),
        Side::CpusOf { name, variant } => {
            figures[*variant].cpus(name).map_or(Value::Absent, |cpus| Value::CpuChoice(cpus.clone()))
        }
        Side::Numbers(terms) => {
            let mut sum = 0.0;
            let mut product = 0.0;
            for (join, operand) in terms {
                let number = match operand {
                    Operand::Number(number) => Some(*number),
                    Operand::Figure { name, variant, cpu: None } => figures[*variant].number(name),
                    Operand::Figure { name, variant, cpu: Some(cpu) } => {
                        figures[*variant].number_of(name, *cpu)
                    }
                };
                let Some(number) = number else { return Value::Absent };
                match join {
                    '*' => product *= number,
                    '/' => product /= number,
                    sign => {
                        sum += product;
                        product = if *sign == '-' { -number } else { number };
                    }
                }
            }
            let total = sum + product;
            if total.is_nan() { Value::Absent } else { Value::Number(total) }
        }
    }
}

/// A sum about one variant that is shown, not compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShownSum {
    pub(crate) variant: usize,
    pub(crate) text: String,
    side: Side,
}

impl ShownSum {
    /// What it amounts to; `None` when a figure in it has no value.
    pub(crate) fn number(&self, figures: &[RunFigures]) -> Option<f64> {
        match value(&self.side, figures) {
            Value::Number(number) => Some(number),
            Value::CpuChoice(_) | Value::Absent => None,
        }
    }
}

/// What a line of `[expect]` or `[show]` is about.
type Lines = BTreeMap<Spanned<String>, Vec<Spanned<String>>>;

/// Every expectation of every variant it is about.
pub(super) fn parse(raw: &Lines, labels: &[&str]) -> Result<Vec<Expectation>, ScenarioProblem> {
    each(raw, labels, |parser, line| parser.line(line))
}

/// Every sum to show, of every variant it is about.
pub(super) fn parse_shown(raw: &Lines, labels: &[&str]) -> Result<Vec<ShownSum>, ScenarioProblem> {
    each(raw, labels, |parser, line| {
        let words: Vec<&str> = line.split_whitespace().take(WORDS_MAX).collect();
        Ok(ShownSum { variant: parser.variant, text: words.join(" "), side: parser.side(&words)? })
    })
}

fn each<T>(
    raw: &Lines,
    labels: &[&str],
    parse: impl Fn(&Parser<'_>, &str) -> Result<T, String>,
) -> Result<Vec<T>, ScenarioProblem> {
    let mut found = Vec::new();
    for (key, lines) in raw {
        let pattern = key.get_ref().as_str();
        let meant: Vec<usize> =
            (0..labels.len()).filter(|&at| pattern == "every" || matches(pattern, labels[at])).collect();
        if meant.is_empty() {
            let known = labels.iter().take(12).copied().collect::<Vec<_>>().join(", ");
            return Err(ScenarioProblem::at(
                key,
                format!("no variant is called so; use every or one of {known}"),
            ));
        }
        for line in lines {
            for &variant in &meant {
                let parser = Parser { labels, variant };
                found.push(
                    parse(&parser, line.get_ref()).map_err(|problem| ScenarioProblem::at(line, problem))?,
                );
            }
            if found.len() > EXPECTATIONS_MAX {
                return Err(ScenarioProblem::at(
                    line,
                    format!("more than {EXPECTATIONS_MAX} lines over all variants"),
                ));
            }
        }
    }
    Ok(found)
}

fn matches(pattern: &str, label: &str) -> bool {
    let (mut patterns, mut parts) = (pattern.split('/'), label.split('/'));
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return true,
            (Some(pattern), Some(part)) if pattern == "*" || pattern == part => {}
            _ => return false,
        }
    }
}

struct Parser<'a> {
    labels: &'a [&'a str],
    variant: usize,
}

impl Parser<'_> {
    fn line(&self, text: &str) -> Result<Expectation, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.len() > WORDS_MAX {
            return Err(format!("has more than {WORDS_MAX} words"));
        }
        let found = words.iter().enumerate().find_map(|(at, word)| comparison(word).map(|found| (at, found)));
        let Some((at, comparison)) = found else {
            return Err("compares nothing; use = != < <= > or >= with spaces around it".to_owned());
        };
        let (left, right) = (self.side(&words[..at])?, self.side(&words[at + 1..])?);
        // A single number is a CPU list, too, where the other side is one.
        let (left, right) = match (&left, &right) {
            (Side::CpusOf { .. }, Side::Numbers(_)) => (left, cpus(&words[at + 1..])?),
            (Side::Numbers(_), Side::CpusOf { .. }) => (cpus(&words[..at])?, right),
            _ => (left, right),
        };
        let is_list = |side: &Side| !matches!(side, Side::Numbers(_));
        if is_list(&left) != is_list(&right) {
            return Err("compares a CPU list with a number".to_owned());
        }
        if is_list(&left) && !matches!(comparison, Comparison::Equal | Comparison::Unequal) {
            return Err("CPU lists are = or !=, nothing else".to_owned());
        }
        Ok(Expectation { variant: self.variant, text: words.join(" "), left, comparison, right })
    }

    fn side(&self, words: &[&str]) -> Result<Side, String> {
        if let [word] = words {
            if let Some((name, variant)) = self.figure_of(word, &figures::CPU_LISTS)? {
                return Ok(Side::CpusOf { name, variant });
            }
            if *word == "none" || (word.contains([',', '-']) && cpus(words).is_ok()) {
                return cpus(words);
            }
        }
        let mut terms = Vec::new();
        let mut join = '+';
        for (at, word) in words.iter().enumerate() {
            if at % 2 == 1 {
                join = match *word {
                    "+" => '+',
                    "-" => '-',
                    "*" => '*',
                    "/" => '/',
                    other => return Err(format!("{other:?} joins nothing; use + - * or /")),
                };
            } else {
                terms.push((join, self.operand(word)?));
            }
        }
        if words.len().is_multiple_of(2) {
            return Err("a side is empty or ends in the middle".to_owned());
        }
        Ok(Side::Numbers(terms))
    }

    fn operand(&self, word: &str) -> Result<Operand, String> {
        if let Some(number) = word.parse::<f64>().ok().filter(|number| number.is_finite()) {
            return Ok(Operand::Number(number));
        }
        if word.starts_with(|char: char| char.is_ascii_digit()) {
            return Span::parse(word).map(|span| Operand::Number(span.0 as f64));
        }
        if let Some((name, variant)) = self.figure_of(word, &number_names())? {
            return Ok(Operand::Figure { name, variant, cpu: None });
        }
        let (head, at) = word.split_once('@').map_or((word, None), |(head, at)| (head, Some(at)));
        if let Some((name, cpu)) = head.rsplit_once('.') {
            let whole = at.map_or(name.to_owned(), |at| format!("{name}@{at}"));
            let cpu = cpu.parse().ok().and_then(|number| CpuId::new(number).ok());
            if let (Some((name, variant)), Some(cpu)) = (self.figure_of(&whole, &figures::PER_CPU)?, cpu) {
                return Ok(Operand::Figure { name, variant, cpu: Some(cpu) });
            }
            return Err(format!("{head:?}: figures of one CPU are {}", figures::PER_CPU.join(", ")));
        }
        let known = [&number_names()[..], &figures::CPU_LISTS].concat().join(", ");
        Err(format!("there is no figure {head:?}; known are {known}"))
    }

    /// One of `names`, and the variant it is of; `None` when it is called otherwise.
    fn figure_of(&self, word: &str, names: &[&'static str]) -> Result<Option<(&'static str, usize)>, String> {
        let (head, at) = word.split_once('@').map_or((word, None), |(head, at)| (head, Some(at)));
        let Some(name) = names.iter().find(|name| **name == head) else { return Ok(None) };
        let Some(at) = at else { return Ok(Some((name, self.variant))) };
        let own: Vec<&str> = self.labels[self.variant].split('/').collect();
        let meant: Vec<&str> = at
            .split('/')
            .enumerate()
            .map(|(place, part)| if part == "*" { own.get(place).copied().unwrap_or("*") } else { part })
            .collect();
        let meant = meant.join("/");
        match self.labels.iter().position(|label| *label == meant) {
            Some(variant) => Ok(Some((name, variant))),
            None => Err(format!("{word:?}: no variant is called {meant:?}")),
        }
    }
}

fn number_names() -> [&'static str; figures::NUMBERS.len()] {
    figures::NUMBERS.map(|(name, _)| name)
}

fn comparison(word: &str) -> Option<Comparison> {
    Some(match word {
        "=" => Comparison::Equal,
        "!=" => Comparison::Unequal,
        "<" => Comparison::Less,
        "<=" => Comparison::AtMost,
        ">" => Comparison::More,
        ">=" => Comparison::AtLeast,
        _ => return None,
    })
}

fn cpus(words: &[&str]) -> Result<Side, String> {
    let text = words.concat();
    let list = if text == "none" { "" } else { &text };
    list.parse().map(Side::CpuChoice).map_err(|error| format!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::{Parser, matches, parse, parse_shown};
    use crate::figures::RunFigures;

    fn figures() -> Vec<RunFigures> {
        let with =
            |remote, throughput| RunFigures { remote, throughput: Some(throughput), ..RunFigures::default() };
        let mut all = vec![with(3, 90.0), with(5, 100.0), with(7, 200.0), with(9, 210.0)];
        all[0].pullers = "1,33".parse().unwrap();
        all[1].foreign_by_cpu = [(1, 6), (33, 8)].into();
        all[1].wakeups_by_cpu = [(1, 11), (33, 14)].into();
        (all[2].expiries, all[2].duration_ns) = (10, 4_000_000_000);
        all
    }

    const LABELS: [&str; 4] = ["pull/1", "push/1", "pull/2", "push/2"];

    /// Goal: comparisons mean what they say, and say what they compared. Method: one of each kind of side and
    /// operator, on known figures.
    #[test]
    fn comparisons_mean_what_they_say() {
        let figures = figures();
        for (variant, text, expected, compared) in [
            (0, "remote = 3", true, "3 against 3"),
            (0, "remote != 3", false, "3 against 3"),
            (0, "remote < 4", true, "3 against 4"),
            (0, "remote < 3", false, "3 against 3"),
            (0, "remote <= 3", true, "3 against 3"),
            (0, "remote > 3", false, "3 against 3"),
            (0, "remote >= 3", true, "3 against 3"),
            (0, "remote >= 4", false, "3 against 4"),
            (0, "pullers = 1,33", true, "1,33 against 1,33"),
            (0, "pullers = 1", false, "1,33 against 1"),
            (0, "pullers != none", true, "1,33 against none"),
            (1, "pullers = none", true, "none against none"),
            (1, "pullers@pull/1 = 1,33", true, "1,33 against 1,33"),
            (0, "throughput >= 0.9 * throughput@push/*", true, "90 against 90"),
            (2, "throughput >= 0.96 * throughput@push/*", false, "200 against 201.600"),
            (2, "throughput / throughput@pull/1 > 2", true, "2.222 against 2"),
            (0, "remote + 2 * remote - 1 = 8", true, "8 against 8"),
            (0, "1ms = 1000000", true, "1000000 against 1000000"),
            (0, "throughput@push/1 - 2 * 5 = 90", true, "90 against 90"),
            (0, "foreign.33@push/* = 8", true, "8 against 8"),
            (1, "foreign.1 + wakeups.33 = 20", true, "20 against 20"),
            (1, "foreign.2 + wakeups.3 = 0", true, "0 against 0"),
            (2, "expiries_per_s = 2.5", true, "2.500 against 2.500"),
            (2, "expiries_per_s@pull/1 = 0", true, "0 against 0"),
            (0, "gap_max > 0", false, "no value against 0"),
            (0, "0 / 0 = 0", false, "no value against 0"),
        ] {
            let parsed = Parser { labels: &LABELS, variant }.line(text);
            let expectation = parsed.unwrap_or_else(|problem| panic!("{text}: {problem}"));
            let found = expectation.check(&figures);
            assert_eq!(found, (expected, compared.to_owned()), "{text} for {}", LABELS[variant]);
        }
    }

    /// Goal: a sum is shown of each variant that it is about, or has no value. Method: two lines for two of
    /// the variants.
    #[test]
    fn sums_are_shown() {
        let lines = toml::from_str("\"pull/*\" = [\"remote  *  2\", \"gap_max\"]").expect("lines");
        let shown = parse_shown(&lines, &LABELS).expect("sums");
        let shown: Vec<_> =
            shown.iter().map(|sum| (sum.variant, sum.text.as_str(), sum.number(&figures()))).collect();
        let (twice, gap) = ("remote * 2", "gap_max");
        assert_eq!(shown, [(0, twice, Some(6.0)), (2, twice, Some(14.0)), (0, gap, None), (2, gap, None)]);
    }

    /// Goal: mistakes are named. Method: one of each kind, and a word of what is said about it.
    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("remote", "compares nothing"),
            ("", "compares nothing"),
            ("= 3", "empty"),
            ("remote = ", "empty"),
            ("remotes = 3", "no figure"),
            ("remote ^ 2 = 3", "joins nothing"),
            ("remote = 3 +", "in the middle"),
            ("remote@none = 3", "no variant"),
            ("pullers < 1,2", "nothing else"),
            ("pullers = remote", "not a CPU list"),
            ("remote.1 = 3", "of one CPU"),
            ("gap_max.9999 = 3", "of one CPU"),
            ("remote = 3q", "span"),
        ] {
            let problem = Parser { labels: &LABELS, variant: 0 }.line(text).expect_err(text);
            assert!(problem.contains(why), "{text}: {problem}");
        }
    }

    /// Goal: as many lines are taken as is said, and of many variants the first twelve are named. Method:
    /// both sides of the bound; a pattern that none of thirteen is.
    #[test]
    fn lines_and_names_are_bounded() {
        let lines = |pattern: &str, count| {
            let lines = vec!["\"remote = 3\""; count].join(", ");
            toml::from_str(&format!("\"{pattern}\" = [{lines}]")).expect("lines")
        };
        assert_eq!(parse(&lines("every", 2048), &LABELS[..2]).map(|found| found.len()).ok(), Some(4096));
        let problem = parse(&lines("every", 2049), &LABELS[..2]).expect_err("too many").problem;
        assert!(problem.contains("more than 4096 lines over all variants"), "{problem}");
        let labels: Vec<String> = (1..=13).map(|label| format!("v{label}")).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let problem = parse(&lines("w", 1), &labels).expect_err("there is no w").problem;
        assert!(problem.contains("v11, v12") && !problem.contains("v13"), "{problem}");
    }

    /// Goal: a star is one part of a label. Method: labels of one and two parts.
    #[test]
    fn a_star_is_one_part() {
        assert!(matches("pull/*", "pull/8") && matches("*", "off") && matches("off", "off"));
        assert!(!matches("pull/*", "push/8") && !matches("*", "pull/8") && !matches("pull", "pull/8"));
    }
}
