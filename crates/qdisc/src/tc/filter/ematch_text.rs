//! Extended matches as text: `cmp(u16 at 2 layer 2 eq 80) and not (meta(nf_mark eq 6) or ..)`.
//!
//! Source: tc-ematch(8); iproute2 6.1 by behaviour.

use super::super::error::TcProblem;
use super::super::number::{hexadecimal, integer};
use crate::filter::{
    Ematch, EmatchCompare, EmatchJoin, EmatchLayer, EmatchMeta, EmatchOperand, EmatchOperator, EmatchTerm,
    U32Key,
};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Parentheses in each other.
const DEPTH_MAX: usize = 8;
/// As many bytes as `nbyte` takes.
const PATTERN_MAX: usize = 255;

/// A part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Open,
    Close,
    Word(&'a str),
}

/// What is wrong, and where.
type Wrong = (usize, TcProblem);

/// The way through the text.
pub(super) struct Parser<'a> {
    text: &'a str,
    /// Where the next token is looked for, and where the last one began.
    at: usize,
    last: usize,
    depth: usize,
}

/// What separates words, besides blanks.
const fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"' | '\\')
}

impl<'a> Parser<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, last: 0, depth: 0 }
    }

    /// Where the list ends, quotes behind it included.
    pub(super) fn end(&self) -> usize {
        let rest = &self.text[self.at..];
        self.at + rest.len() - rest.trim_start_matches(is_quote).len()
    }

    fn wrong(&self, form: &'static str) -> Wrong {
        (self.last, TcProblem::Malformed(form))
    }

    /// The next token and where it ends, quotes taken for blanks.
    fn look(&self) -> Option<(usize, usize, Token<'a>)> {
        let rest = &self.text[self.at..];
        let skipped = rest.trim_start_matches(|c: char| c.is_whitespace() || is_quote(c));
        let begin = self.text.len() - skipped.len();
        let first = skipped.chars().next()?;
        if matches!(first, '(' | ')') {
            return Some((begin, begin + 1, if first == '(' { Token::Open } else { Token::Close }));
        }
        let is_end = |c: char| c.is_whitespace() || is_quote(c) || matches!(c, '(' | ')');
        let length = skipped.find(is_end).unwrap_or(skipped.len());
        Some((begin, begin + length, Token::Word(&skipped[..length])))
    }

    fn next(&mut self) -> Result<Token<'a>, Wrong> {
        let Some((begin, end, token)) = self.look() else {
            self.last = self.text.len();
            return Err((self.last, TcProblem::Missing { of: "a match", what: "its end, `)`" }));
        };
        (self.last, self.at) = (begin, end);
        Ok(token)
    }

    fn peek_word(&self) -> Option<&'a str> {
        match self.look()? {
            (.., Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Matches with `and` and `or` between them.
    pub(super) fn list(&mut self) -> Result<Vec<Ematch>, Wrong> {
        let mut list = Vec::new();
        loop {
            let mut one = self.one()?;
            one.join = match self.peek_word() {
                Some(word) if word.eq_ignore_ascii_case("and") => Some(EmatchJoin::And),
                Some(word) if word.eq_ignore_ascii_case("or") => Some(EmatchJoin::Or),
                _ => None,
            };
            let is_last = one.join.is_none();
            list.push(one);
            if is_last {
                return Ok(list);
            }
            self.next()?;
        }
    }

    fn one(&mut self) -> Result<Ematch, Wrong> {
        let mut is_negated = false;
        if self.peek_word().is_some_and(|word| word.eq_ignore_ascii_case("not")) {
            self.next()?;
            is_negated = true;
        }
        let term = match self.next()? {
            Token::Open => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(self.wrong("shallow enough: at most 8 parentheses are in each other"));
                }
                let list = self.list()?;
                self.expect(Token::Close)?;
                self.depth -= 1;
                EmatchTerm::Group(list)
            }
            Token::Word(kind) => self.term(kind)?,
            _ => return Err(self.wrong("a match, such as cmp(u8 at 9 layer 1 eq 6)")),
        };
        Ok(Ematch { is_negated, term, join: None })
    }

    fn expect(&mut self, token: Token<'_>) -> Result<(), Wrong> {
        if self.next()? == token {
            return Ok(());
        }
        Err(self.wrong(if token == Token::Open { "`(`" } else { "`)`, `and` or `or`" }))
    }

    fn term(&mut self, kind: &str) -> Result<EmatchTerm, Wrong> {
        let reason = match kind {
            "cmp" | "u32" | "nbyte" | "meta" => None,
            "ipset" => {
                Some("the kernel's sets of addresses are not there; match addresses with u32 or flower")
            }
            "ipt" | "canid" | "text" => Some("packets here do not go through what it asks"),
            _ => return Err((self.last, TcProblem::Unknown("kind of match"))),
        };
        if let Some(reason) = reason {
            return Err((self.last, TcProblem::NotSupported(reason)));
        }
        self.expect(Token::Open)?;
        if kind == "nbyte" {
            return self.bytes();
        }
        let mut words = Vec::new();
        loop {
            match self.next()? {
                Token::Close => break,
                Token::Word(word) => words.push(word),
                Token::Open => return Err(self.wrong("`)`")),
            }
        }
        let term = match kind {
            "cmp" => compare(&words).map(EmatchTerm::Compare),
            "u32" => key(&words).map(EmatchTerm::Word),
            _ => meta(&words),
        };
        term.map_err(|problem| (self.last, problem))
    }

    /// The bytes, in quotes or not, and where they are.
    fn bytes(&mut self) -> Result<EmatchTerm, Wrong> {
        let pattern = self.pattern()?;
        let mut words = Vec::new();
        loop {
            match self.next()? {
                Token::Close => break,
                Token::Word(word) => words.push(word),
                _ => return Err(self.wrong("`)`")),
            }
        }
        let mut words = words.into_iter();
        let (mut at, mut layer) = (None, EmatchLayer::Network);
        while let Some(word) = words.next() {
            match (word, words.next()) {
                ("at", Some(offset)) => at = offset_of(offset),
                ("layer", Some(name)) => layer = layer_of(name).map_err(|problem| (self.last, problem))?,
                _ => return Err(self.wrong("`at OFFSET` or `layer LAYER`")),
            }
        }
        let at = at.ok_or_else(|| self.wrong("complete: nbyte needs `at OFFSET`"))?;
        Ok(EmatchTerm::Bytes { pattern: pattern.as_bytes().into(), at, layer })
    }

    fn pattern(&mut self) -> Result<&'a str, Wrong> {
        let rest = &self.text[self.at..];
        let begin = self.text.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\\').len();
        self.last = begin;
        let pattern = match self.text[begin..].strip_prefix('"') {
            Some(rest) => {
                let length = rest.find('"').ok_or_else(|| self.wrong("closed: `\"` is missing"))?;
                self.at = begin + length + 2;
                rest[..length].trim_end_matches('\\')
            }
            None => match self.next()? {
                Token::Word(word) => word,
                _ => return Err(self.wrong("bytes")),
            },
        };
        if pattern.is_empty() || pattern.len() > PATTERN_MAX {
            return Err(self.wrong("a pattern of 1 to 255 bytes"));
        }
        Ok(pattern)
    }
}

fn layer_of(word: &str) -> Result<EmatchLayer, TcProblem> {
    match word {
        "link" | "0" => Ok(EmatchLayer::Link),
        "network" | "1" => Ok(EmatchLayer::Network),
        "transport" | "2" => Ok(EmatchLayer::Transport),
        _ => Err(TcProblem::Malformed("complete: a layer is link, network or transport")),
    }
}

fn operator_of(word: &str) -> Option<EmatchOperator> {
    match word {
        "eq" => Some(EmatchOperator::Equal),
        "gt" => Some(EmatchOperator::Greater),
        "lt" => Some(EmatchOperator::Less),
        _ => None,
    }
}

/// An offset of 16 bits; a negative one is as the kernel takes it, far behind.
fn offset_of(word: &str) -> Option<u16> {
    match word.strip_prefix('-') {
        Some(rest) => u16::try_from(integer(rest)?).ok().map(u16::wrapping_neg),
        None => u16::try_from(integer(word)?).ok(),
    }
}

fn number_of(word: &str) -> Option<u32> {
    u32::try_from(integer(word)?).ok()
}

fn compare(words: &[&str]) -> Result<EmatchCompare, TcProblem> {
    let malformed = TcProblem::Malformed("complete: cmp(u8|u16|u32 at OFFSET [layer LAYER] eq|gt|lt VALUE)");
    let (size, rest) = words.split_first().ok_or_else(|| malformed.clone())?;
    let bytes = match *size {
        "u8" => 1,
        "u16" => 2,
        "u32" => 4,
        _ => return Err(malformed),
    };
    let (mut at, mut told) = (None, None);
    let (mut layer, mut mask, mut swapped) = (EmatchLayer::Network, 0, false);
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if *word == "trans" {
            swapped = true;
            continue;
        }
        let value = rest.next().ok_or_else(|| malformed.clone())?;
        match *word {
            "at" => at = offset_of(value),
            "layer" => layer = layer_of(value)?,
            "mask" => mask = number_of(value).ok_or_else(|| malformed.clone())?,
            operator => told = operator_of(operator).zip(number_of(value)),
        }
        if operator_of(word).is_none() && !matches!(*word, "at" | "layer" | "mask") {
            return Err(malformed);
        }
    }
    let (at, (operator, value)) = at.zip(told).ok_or(malformed)?;
    Ok(EmatchCompare { bytes, at, layer, mask, swapped, operator, value })
}

fn key(words: &[&str]) -> Result<U32Key, TcProblem> {
    let malformed = || TcProblem::Malformed("complete: u32(u8|u16|u32 VALUE MASK at [nexthdr+]OFFSET)");
    let [size, value, mask, "at", place] = words else { return Err(malformed()) };
    let (next_header, place) = place.strip_prefix("nexthdr+").map_or((false, *place), |place| (true, place));
    let offset = number_of(place).and_then(|offset| i32::try_from(offset).ok()).ok_or_else(malformed)?;
    let mask = hexadecimal(mask).and_then(|mask| u32::try_from(mask).ok()).ok_or_else(malformed)?;
    let value = number_of(value).ok_or_else(malformed)?;
    let (high, shift) = match *size {
        "u8" => (0xff, 24 - 8 * (offset & 3) as u32),
        "u16" => (0xffff, if offset & 3 == 0 { 16 } else { 0 }),
        "u32" if offset & 3 == 0 => (u32::MAX, 0),
        _ => return Err(malformed()),
    };
    if value > high || mask > high {
        return Err(malformed());
    }
    Ok(U32Key { value: (value & mask) << shift, mask: mask << shift, offset: offset & !3, next_header })
}

const METAS: [(&str, EmatchMeta); 4] = [
    ("nf_mark", EmatchMeta::Mark),
    ("priority", EmatchMeta::Priority),
    ("pkt_len", EmatchMeta::Length),
    ("protocol", EmatchMeta::Protocol),
];
/// What the kernel knows of its packets, and is not known of those here.
const ABSENT: [&str; 11] = [
    "random",
    "dev",
    "vlan",
    "tc_index",
    "rt_iif",
    "sk_family",
    "pkt_type",
    "sk_rcvbuf",
    "data_len",
    "mac_len",
    "rtclassid",
];

fn meta(words: &[&str]) -> Result<EmatchTerm, TcProblem> {
    let mut words = words.iter().copied().peekable();
    let malformed = || TcProblem::Malformed("complete: meta(OBJECT eq|gt|lt OBJECT)");
    let left = operand(&mut words)?;
    if matches!(left, EmatchOperand::Value(_)) {
        return Err(malformed());
    }
    let operator = words.next().and_then(operator_of).ok_or_else(malformed)?;
    let right = operand(&mut words)?;
    if words.next().is_some() { Err(malformed()) } else { Ok(EmatchTerm::Meta(left, operator, right)) }
}

fn operand<'a>(
    words: &mut core::iter::Peekable<impl Iterator<Item = &'a str>>,
) -> Result<EmatchOperand, TcProblem> {
    let malformed = || TcProblem::Malformed("complete: nf_mark, priority, pkt_len, protocol or a number");
    let word = words.next().ok_or_else(malformed)?;
    if ABSENT.contains(&word) {
        return Err(TcProblem::NotSupported("packets here have no such thing"));
    }
    let Some((_, what)) = METAS.iter().find(|(name, _)| *name == word) else {
        return number_of(word).map(EmatchOperand::Value).ok_or_else(malformed);
    };
    let (mut shift, mut mask) = (0, 0);
    while let Some(word @ ("shift" | "mask")) = words.peek().copied() {
        words.next();
        let number = words.next().and_then(number_of).ok_or_else(malformed)?;
        if word == "mask" {
            mask = number;
        } else {
            shift = u8::try_from(number).map_err(|_| malformed())?;
        }
    }
    Ok(EmatchOperand::Meta { what: *what, shift, mask })
}

const fn operator_text(operator: EmatchOperator) -> &'static str {
    match operator {
        EmatchOperator::Equal => "eq",
        EmatchOperator::Greater => "gt",
        EmatchOperator::Less => "lt",
    }
}

fn operand_text(operand: EmatchOperand) -> String {
    let (what, shift, mask) = match operand {
        EmatchOperand::Value(value) => return format!("{value}"),
        EmatchOperand::Meta { what, shift, mask } => (what, shift, mask),
    };
    let name = METAS.iter().find(|(_, known)| *known == what).map_or("", |(name, _)| name);
    let shift = if shift == 0 { String::new() } else { format!(" shift {shift}") };
    let mask = if mask == 0 { String::new() } else { format!(" mask {mask:#010x}") };
    format!("{name}{shift}{mask}")
}

/// A term that is no group, as `tc` shows it.
pub(super) fn shown(term: &EmatchTerm) -> String {
    match term {
        EmatchTerm::Compare(EmatchCompare { bytes, at, layer, mask, swapped, operator, value }) => {
            let mask = if *mask == 0 { String::new() } else { format!("mask {mask:#x} ") };
            let trans = if *swapped { "trans " } else { "" };
            let (size, layer) = (8 * u32::from(*bytes), *layer as u8);
            format!("cmp(u{size} at {at} layer {layer} {mask}{trans}{} {value})", operator_text(*operator))
        }
        EmatchTerm::Word(U32Key { value, mask, offset, next_header }) => {
            let next = if *next_header { "nexthdr+" } else { "" };
            format!("u32({value:08x}/{mask:08x} at {next}{offset})")
        }
        EmatchTerm::Bytes { pattern, at, layer } => {
            let digits: String = pattern.iter().map(|byte| format!("{byte:02x} ")).collect();
            let plain =
                |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
            let text: String = pattern.iter().map(plain).collect();
            format!("nbyte({digits}\"{text}\" at {at} layer {})", *layer as u8)
        }
        EmatchTerm::Meta(left, operator, right) => {
            format!("meta({} {} {})", operand_text(*left), operator_text(*operator), operand_text(*right))
        }
        EmatchTerm::Group(_) => String::new(),
    }
}
