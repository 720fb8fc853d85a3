//! The words of one line, and the way through them.
//!
//! LineWords are split at white space. Before them, `tc` or `quietcore tc` is skipped; behind them, a comment
//! (from a word that begins with `#`) and `2>/dev/null`. Quotes, `\` and variables mean nothing here.

use super::error::{TcError, TcProblem};
use super::scalar::Scalar;
use alloc::vec::Vec;
use core::ops::Range;

/// A word and the full name that it, or a beginning of it, stands for.
pub(crate) type OptionName = (&'static str, &'static str);

/// The way through the words of a line.
#[derive(Debug)]
pub(crate) struct LineWords<'a> {
    line: &'a str,
    spans: Vec<Range<usize>>,
    taken: usize,
}

impl<'a> LineWords<'a> {
    pub(crate) fn new(line: &'a str) -> Self {
        let mut spans = Vec::new();
        let mut rest = line;
        loop {
            rest = rest.trim_start();
            if rest.is_empty() || rest.starts_with('#') {
                break;
            }
            let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let start = line.len() - rest.len();
            spans.push(start..start + length);
            rest = &rest[length..];
        }
        spans.pop_if(|last| &line[last.clone()] == "2>/dev/null");
        let mut words = Self { line, spans, taken: 0 };
        let programs = [&["quietcore", "tc"][..], &["tc"]];
        let begins =
            |program: &&&[&str]| program.iter().enumerate().all(|(at, word)| words.word(at) == Some(*word));
        words.taken = programs.iter().find(begins).map_or(0, |program| program.len());
        words
    }

    fn word(&self, at: usize) -> Option<&'a str> {
        self.spans.get(at).map(|span| &self.line[span.clone()])
    }

    /// Whether no word is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.spans.len()
    }

    pub(crate) fn peek(&self) -> Option<&'a str> {
        self.word(self.taken)
    }

    pub(crate) fn take(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.taken += 1;
        Some(word)
    }

    /// Takes the next word if it is this one.
    pub(crate) fn take_if(&mut self, word: &str) -> bool {
        let is_it = self.peek() == Some(word);
        self.taken += usize::from(is_it);
        is_it
    }

    /// How many words are taken.
    pub(crate) const fn taken(&self) -> usize {
        self.taken
    }

    /// Reads the word that was the last one when so many were taken; an error is there.
    pub(crate) fn at<T>(
        &self,
        taken: usize,
        read: impl FnOnce(&str) -> Result<T, TcProblem>,
    ) -> Result<T, TcError> {
        let last = taken.saturating_sub(1);
        read(self.word(last).unwrap_or_default()).map_err(|problem| match self.spans.get(last) {
            Some(word) => TcError::new(self.line, word.clone(), problem, &[]),
            None => self.at_end(problem, &[]),
        })
    }

    /// The line from the next word on.
    pub(crate) fn rest(&self) -> &'a str {
        let begin = self.spans.get(self.taken).map_or(self.line.len(), |word| word.start);
        let end = self.spans.last().map_or(begin, |word| word.end);
        self.line.get(begin..end).unwrap_or_default()
    }

    /// Takes the words of so many bytes of that; says whether these end with a word.
    pub(crate) fn take_to(&mut self, bytes: usize) -> bool {
        let begin = self.spans.get(self.taken).map_or(self.line.len(), |word| word.start);
        while let Some(word) = self.spans.get(self.taken) {
            if word.end > begin + bytes {
                return word.start >= begin + bytes;
            }
            self.taken += 1;
        }
        true
    }

    /// An error in the word that has the byte `at` of the rest of the line, or behind the last one.
    pub(crate) fn inside(&self, at: usize, problem: TcProblem) -> TcError {
        let at = self.spans.get(self.taken).map_or(self.line.len(), |word| word.start + at);
        match self.spans.iter().find(|word| word.start <= at && at < word.end) {
            Some(word) => TcError::new(self.line, word.clone(), problem, &[]),
            None => self.at_end(problem, &[]),
        }
    }

    /// Takes the value of `option`, whatever it is.
    pub(crate) fn value(
        &mut self,
        option: &'static str,
        allowed: &[&'static str],
    ) -> Result<&'a str, TcError> {
        self.take().ok_or_else(|| self.at_end(TcProblem::MissingValue(option), allowed))
    }

    /// Takes a value of `option`.
    pub(crate) fn scalar<T: Scalar>(&mut self, option: &'static str) -> Result<T, TcError> {
        let word = self.value(option, T::ALLOWED)?;
        T::read(word).map_err(|problem| self.here(problem, T::ALLOWED))
    }

    /// Takes a further value, if the next word looks like one.
    pub(crate) fn optional<T: Scalar>(&mut self, option: &'static str) -> Result<Option<T>, TcError> {
        if self.peek().is_some_and(T::begins) { self.scalar(option).map(Some) } else { Ok(None) }
    }

    /// Complains unless the value that was just taken is in `range`.
    pub(crate) fn in_range(
        &self,
        value: impl Into<u32>,
        range: core::ops::RangeInclusive<u32>,
    ) -> Result<(), TcError> {
        if range.contains(&value.into()) {
            return Ok(());
        }
        let (low, high) = (alloc::format!("{}", range.start()), alloc::format!("{}", range.end()));
        Err(self.here(TcProblem::OutOfRange { low, high }, &[]))
    }

    /// Complains if the option that was just taken is there already.
    pub(crate) fn first_time<T>(&self, there: Option<&T>, option: &'static str) -> Result<(), TcError> {
        if there.is_some() { Err(self.here(TcProblem::Twice(option), &[])) } else { Ok(()) }
    }

    /// The full name of the word that was just taken: it may be a beginning that fits one name only.
    pub(crate) fn full_name(
        &self,
        names: &[OptionName],
        role: &'static str,
    ) -> Result<&'static str, TcError> {
        let word = self.taken.checked_sub(1).and_then(|last| self.word(last)).unwrap_or_default();
        if let Some((_, full)) = names.iter().find(|(name, _)| *name == word) {
            return Ok(full);
        }
        let mut fitting: Vec<OptionName> =
            names.iter().filter(|(name, _)| name.starts_with(word)).copied().collect();
        let every: Vec<&'static str> = names.iter().map(|(name, _)| *name).collect();
        let Some(&(_, first)) = fitting.first() else {
            return Err(self.here(TcProblem::Unknown(role), &every));
        };
        if fitting.iter().all(|(_, full)| *full == first) {
            return Ok(first);
        }
        fitting.dedup_by_key(|(_, full)| *full);
        let candidates: Vec<&'static str> = fitting.iter().map(|(name, _)| *name).collect();
        Err(self.here(TcProblem::Ambiguous(role), &candidates))
    }

    /// An error at the word that was just taken.
    pub(crate) fn here(&self, problem: TcProblem, allowed: &[&'static str]) -> TcError {
        match self.taken.checked_sub(1).and_then(|last| self.spans.get(last)) {
            Some(word) => TcError::new(self.line, word.clone(), problem, allowed),
            None => self.at_end(problem, allowed),
        }
    }

    /// An error at the next word.
    pub(crate) fn ahead(&self, problem: TcProblem, allowed: &[&'static str]) -> TcError {
        match self.spans.get(self.taken) {
            Some(word) => TcError::new(self.line, word.clone(), problem, allowed),
            None => self.at_end(problem, allowed),
        }
    }

    /// An error at the last word that stands for `option`.
    pub(crate) fn at_option(&self, names: &[OptionName], option: &str, problem: TcProblem) -> TcError {
        let stands_for = |span: &&Range<usize>| {
            let word = &self.line[(*span).clone()];
            names.iter().any(|(name, full)| *full == option && name.starts_with(word))
        };
        match self.spans.iter().rev().find(stands_for) {
            Some(word) => TcError::new(self.line, word.clone(), problem, &[]),
            None => self.at_end(problem, &[]),
        }
    }

    /// An error behind the last word.
    pub(crate) fn at_end(&self, problem: TcProblem, allowed: &[&'static str]) -> TcError {
        let end = self.spans.last().map_or(0, |word| word.end);
        TcError::new(self.line, end..end, problem, allowed)
    }
}
