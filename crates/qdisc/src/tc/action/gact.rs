//! `action drop` and its like, or `action gact ...`.
//!
//! Source: tc-actions(8); iproute2 6.1 by behaviour.

use super::super::error::{TcError, TcProblem};
use super::super::words::LineWords;
use super::{CONTROLS, control_here, take_index};
use crate::action::{ControlAction, GactChoice, GactRandom};
use core::fmt::{self, Formatter};

/// What was typed of a `gact`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GactOptions {
    /// What becomes of packets.
    pub control: ControlAction,
    /// What becomes of some of them.
    pub random: Option<GactRandom>,
    /// What it is called; one that is there is meant, whatever else is said.
    pub index: Option<u32>,
}

const CHOICES: &[&str] = &["netrand", "determ"];

impl GactOptions {
    /// Takes the rest; `word` was just taken.
    pub(super) fn take(word: &str, words: &mut LineWords<'_>) -> Result<Self, TcError> {
        let mut options = Self::default();
        let word = if word == "gact" { words.value("gact", CONTROLS)? } else { word };
        if word != "index" {
            options.control = control_here(word, words)?;
            if words.take_if("random") {
                options.random = take_random(words)?;
            }
            if !words.take_if("index") {
                return Ok(options);
            }
        }
        take_index(words, &mut options.index)?;
        Ok(options)
    }
}

/// `random none` is as nothing.
fn take_random(words: &mut LineWords<'_>) -> Result<Option<GactRandom>, TcError> {
    let choice = match words.value("random", CHOICES)? {
        "netrand" => Some(GactChoice::Random),
        "determ" => Some(GactChoice::Counted),
        "none" => None,
        _ => return Err(words.here(TcProblem::Unknown("choice of random"), CHOICES)),
    };
    let word = words.value("random", CONTROLS)?;
    let control = control_here(word, words)?;
    let one_in: u16 = words.scalar("random")?;
    Ok(choice.map(|choice| GactRandom { choice, control, one_in }))
}

impl fmt::Display for GactOptions {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "gact {}", self.control)?;
        if let Some(GactRandom { choice, control, one_in }) = self.random {
            write!(out, " random {} {control} {one_in}", choice.name())?;
        }
        self.index.map_or(Ok(()), |index| write!(out, " index {index}"))
    }
}
