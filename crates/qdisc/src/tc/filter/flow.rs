//! What filters of all kinds are told: where packets go, and what there is not.

use super::super::error::{TcError, TcProblem};
use super::super::number::hexadecimal;
use super::super::scalar::{Scalar, Show};
use super::super::words::LineWords;
use crate::ClassId;
use core::fmt::{self, Formatter};

/// The class that packets go to: any number, of a class that is there or not.
struct FlowId(ClassId);

impl Show for FlowId {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {}", self.0)
    }
}

impl Scalar for FlowId {
    const ALLOWED: &'static [&'static str] = &["MAJOR:MINOR", ":MINOR", "MAJOR:"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let part = |text: &str| match text {
            "" => Some(0),
            text => hexadecimal(text).and_then(|number| u16::try_from(number).ok()),
        };
        let id = match word.split_once(':') {
            Some((major, minor)) => {
                part(major).zip(part(minor)).map(|(major, minor)| ClassId::new(major, minor))
            }
            None => hexadecimal(word).and_then(|number| u32::try_from(number).ok()).map(ClassId),
        };
        id.map(Self).ok_or(TcProblem::Malformed("a class"))
    }
}

/// Takes the class that packets go to.
pub(super) fn take_flow(words: &mut LineWords<'_>) -> Result<ClassId, TcError> {
    words.scalar::<FlowId>("flowid").map(|FlowId(class)| class)
}

/// Why an option that `tc` knows is not supported.
pub(super) fn why_not(option: &str) -> &'static str {
    match option {
        "indev" => "packets have not come in at another device",
        "link" => "packets have no link header here",
        "connection" => "connections are not tracked here",
        "tunnel" => "packets have not come through a tunnel here",
        "hardware" => "there is no hardware that filters",
        _ => "it does not exist here",
    }
}
