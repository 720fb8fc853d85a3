//! `basic`: its options, and the grammar of extended matches.
//!
//! A match may be in quotes, or not: here they say nothing, but around the bytes of `nbyte`. Source:
//! tc-basic(8), tc-ematch(8); iproute2 6.1 by behaviour. Absent: `ipset`, `ipt`, `canid`, `text`, and those
//! `meta`s that a packet here does not have.

use super::super::action::FilterActions;
use super::super::error::{TcError, TcProblem};
use super::super::json::TcJson;
use super::super::parent::write_id;
use super::super::property::{TcProperties, TcValue};
use super::super::words::{LineWords, OptionName};
use super::ematch_text::Parser;
use super::flow::take_flow;
use crate::ClassId;
use crate::filter::{Ematch, EmatchJoin, EmatchTerm};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt::{self, Formatter, Write as _};

/// What a line says of a `basic`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasicOptions {
    /// What has to be true; nothing has, if it is empty.
    pub matches: Vec<Ematch>,
    /// The class that packets go to.
    pub flow: Option<ClassId>,
    /// What is done with them.
    pub actions: FilterActions,
}

const OPTIONS: &[OptionName] = &[
    ("match", "match"),
    ("flowid", "flowid"),
    ("classid", "flowid"),
    ("action", "action"),
    ("police", "police"),
];

impl BasicOptions {
    pub(super) fn take(words: &mut LineWords<'_>) -> Result<Self, TcError> {
        let mut options = Self::default();
        while words.take().is_some() {
            match words.full_name(OPTIONS, "option of basic")? {
                "match" => options.matches = take_matches(words)?,
                "flowid" => {
                    words.first_time(options.flow.as_ref(), "flowid")?;
                    options.flow = Some(take_flow(words)?);
                }
                name => options.actions.take(name, words)?,
            }
        }
        Ok(options)
    }
}

fn take_matches(words: &mut LineWords<'_>) -> Result<Vec<Ematch>, TcError> {
    let rest = words.rest();
    let mut parser = Parser::new(rest);
    let parsed = parser.list();
    let end = parser.end();
    match parsed {
        Ok(list) => {
            if words.take_to(end) {
                return Ok(list);
            }
            Err(words.ahead(TcProblem::Malformed("the end of a match"), &["and", "or"]))
        }
        Err((at, problem)) => Err(words.inside(at, problem)),
    }
}

impl fmt::Display for BasicOptions {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("basic")?;
        if !self.matches.is_empty() {
            write!(out, " match {}", OneLine(&self.matches))?;
        }
        write_id("flowid", self.flow, out)?;
        self.actions.fmt(out)
    }
}

/// Matches as they could be typed.
struct OneLine<'a>(&'a [Ematch]);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for Ematch { is_negated, term, join } in self.0 {
            out.write_str(if *is_negated { "not " } else { "" })?;
            match term {
                EmatchTerm::Group(list) => write!(out, "( {} )", OneLine(list))?,
                term => write!(out, "{}", Typed(term))?,
            }
            out.write_str(join_text(*join, " and ", " or "))?;
        }
        Ok(())
    }
}

const fn join_text(join: Option<EmatchJoin>, and: &'static str, or: &'static str) -> &'static str {
    match join {
        Some(EmatchJoin::And) => and,
        Some(EmatchJoin::Or) => or,
        None => "",
    }
}

/// A term that is no group, as it could be typed.
struct Typed<'a>(&'a EmatchTerm);

impl fmt::Display for Typed<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            EmatchTerm::Word(key) => {
                let next = if key.next_header { "nexthdr+" } else { "" };
                write!(out, "u32(u32 {:#x} {:#x} at {next}{})", key.value, key.mask, key.offset)
            }
            EmatchTerm::Bytes { pattern, at, layer } => {
                let text = String::from_utf8_lossy(pattern);
                write!(out, "nbyte(\"{text}\" at {at} layer {})", *layer as u8)
            }
            term => out.write_str(&super::ematch_text::shown(term)),
        }
    }
}

/// What `tc` shows of matches: each on a line of its own, those in parentheses further in; a line goes on
/// behind `)`.
fn lines(list: &[Ematch], depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let mut before = None;
    for Ematch { is_negated, term, join } in list {
        if let Some(join) = before {
            out.push_str(join_text(Some(join), "AND ", "OR "));
        }
        out.push_str(if *is_negated { "NOT " } else { "" });
        match term {
            EmatchTerm::Group(inside) => {
                let _ = write!(out, "(\n{indent}    ");
                lines(inside, depth + 1, out);
                let _ = write!(out, "{indent}  ) ");
            }
            term => {
                let _ = writeln!(out, "{}", super::ematch_text::shown(term));
                if join.is_some() {
                    let _ = write!(out, "{indent}  ");
                }
            }
        }
        before = *join;
    }
}

/// What `tc` shows of a `basic`.
#[must_use]
pub fn describe_basic(handle: u32, options: &BasicOptions) -> TcProperties {
    let mut shown = TcProperties::default();
    let word = TcValue::new(format!("{handle:#x}"), TcJson::Word(format!("{handle:x}")));
    shown.add("handle", "handle {} ", word);
    if let Some(flow) = options.flow {
        shown.add("flowid", "flowid {} ", flow.to_string());
    }
    if !options.matches.is_empty() {
        let mut text = String::new();
        lines(&options.matches, 0, &mut text);
        let line = OneLine(&options.matches).to_string();
        shown.add("ematch", "\n  {}", TcValue::new(text, TcJson::Word(line)));
    }
    shown
}
