//! Names of filters: each kind has its own form.

use super::super::error::TcProblem;
use super::super::number::integer;
use super::super::scalar::Scalar as _;
use crate::filter::U32Address;
use core::fmt::{self, Formatter};

/// Which filter of its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterHandle {
    /// Of `u32`: a rule, or a table.
    Rule(U32Address),
    /// Of `fw`: a mark, and which bits of it count.
    Mark {
        /// The mark.
        value: u32,
        /// All bits count, if none is told.
        mask: u32,
    },
    /// Of the others: a number.
    Number(u32),
}

impl FilterHandle {
    /// Reads the handle of a filter of some kind.
    pub(crate) fn read(kind: &str, word: &str) -> Result<Self, TcProblem> {
        if kind == "u32" {
            return U32Address::read(word).map(Self::Rule);
        }
        let number = |word: &str| {
            let number = integer(word).ok_or(TcProblem::Malformed("the number of a filter"))?;
            let range = |_| TcProblem::OutOfRange { low: "0".into(), high: "0xffffffff".into() };
            u32::try_from(number).map_err(range)
        };
        if kind == "fw" {
            let (value, mask) = word.split_once('/').unwrap_or((word, "0xffffffff"));
            return Ok(Self::Mark { value: number(value)?, mask: number(mask)? });
        }
        if matches!(kind, "matchall" | "basic") {
            // `tc` takes what these begin with, and 0 if that is no number.
            return Ok(Self::Number(u32::try_from(leading(word)).unwrap_or(u32::MAX)));
        }
        number(word).map(Self::Number)
    }
}

/// The number that a word begins with, as C reads one; 0 if it begins with none.
fn leading(word: &str) -> u128 {
    let ends = (0..=word.len()).rev().filter(|end| word.is_char_boundary(*end));
    ends.into_iter().find_map(|end| integer(&word[..end])).unwrap_or(0)
}

impl fmt::Display for FilterHandle {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(address) => address.fmt(out),
            Self::Mark { value, mask: u32::MAX } => write!(out, "{value:#x}"),
            Self::Mark { value, mask } => write!(out, "{value:#x}/{mask:#x}"),
            Self::Number(number) => write!(out, "{number:#x}"),
        }
    }
}
