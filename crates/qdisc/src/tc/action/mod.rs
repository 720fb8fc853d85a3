//! What a filter's line says is to be done with packets: `action ...`, several of them, and the old
//! `police ...`.
//!
//! Without a kind a word is one of `gact`, as `action drop`. Source: tc-actions(8), tc-police(8),
//! tc-mirred(8); iproute2 6.1 by behaviour (`crates/net/tests/tc_recorded`). Absent: other kinds, `goto
//! chain`, `jump`, `trap`, `cookie`, `hw_stats`; `avrate` and `pkts_rate` of `police`.

mod gact;
mod mirred;
mod police;
mod show;

pub use gact::GactOptions;
pub use mirred::{MirredDirection, MirredKind, MirredOptions};
pub use police::PoliceOptions;
pub use show::{ActionUse, describe_actions};

use super::error::{TcError, TcProblem};
use super::words::LineWords;
use crate::action::ControlAction;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Formatter};

/// What is done with packets, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterAction {
    /// The same with every packet, or now and then something else.
    Gact(GactOptions),
    /// As long as packets keep to a rate something, and something else with others.
    Police(Box<PoliceOptions>),
    /// Packets go to another device.
    Mirred(MirredOptions),
}

/// What is done with the packets of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FilterActions {
    /// Nothing besides choosing a class.
    #[default]
    None,
    /// `action ...`, once or more often.
    List(Vec<FilterAction>),
    /// `police ...` without `action`, as before there were actions.
    Police(Box<PoliceOptions>),
}

/// All words for what becomes of a packet.
pub(super) const CONTROLS: &[&str] = &["pass", "ok", "drop", "shot", "pipe", "continue", "reclassify"];
/// Those that `tc` has besides.
const OTHER_CONTROLS: &[&str] = &["goto", "jump", "trap"];
const KINDS: &[&str] = &["gact", "police", "mirred"];
/// Kinds that `tc` has besides.
const OTHER_KINDS: &[&str] = &[
    "bpf",
    "connmark",
    "csum",
    "ct",
    "ctinfo",
    "gate",
    "ife",
    "ipt",
    "mpls",
    "nat",
    "pedit",
    "sample",
    "simple",
    "skbedit",
    "skbmod",
    "tunnel_key",
    "vlan",
    "xt",
];

/// What a word says is to become of a packet.
pub(super) fn control(word: &str) -> Option<ControlAction> {
    let is = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(word));
    Some(match word {
        _ if is(&["pass", "ok"]) => ControlAction::Pass,
        _ if is(&["drop", "shot"]) => ControlAction::Drop,
        _ if is(&["pipe"]) => ControlAction::Pipe,
        _ if is(&["continue"]) => ControlAction::Continue,
        _ if is(&["reclassify"]) => ControlAction::Reclassify,
        _ => return None,
    })
}

/// What the word that was just taken says is to become of a packet.
fn control_here(word: &str, words: &LineWords<'_>) -> Result<ControlAction, TcError> {
    control(word).ok_or_else(|| {
        if OTHER_CONTROLS.contains(&word) {
            let why = "there is one chain of filters, and their actions are asked in order";
            return words.here(TcProblem::NotSupported(why), CONTROLS);
        }
        words.here(TcProblem::Unknown("action"), &[CONTROLS, KINDS].concat())
    })
}

/// Takes a number that an action is called by.
fn take_index(words: &mut LineWords<'_>, before: &mut Option<u32>) -> Result<(), TcError> {
    words.first_time(before.as_ref(), "index")?;
    let index: u32 = words.scalar("index")?;
    // As to the kernel: it finds one.
    *before = (index != 0).then_some(index);
    Ok(())
}

impl FilterActions {
    /// Whether nothing is done.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Takes what stands behind `name`, which was just taken: `action` or `police`.
    pub(super) fn take(&mut self, name: &'static str, words: &mut LineWords<'_>) -> Result<(), TcError> {
        match (&self, name) {
            (Self::List(_), "action") | (Self::Police(_), "police") => {
                return Err(words.here(TcProblem::Twice(name), &[]));
            }
            (Self::List(_) | Self::Police(_), _) => {
                let problem = TcProblem::Excludes { option: "police", other: "action" };
                return Err(words.here(problem, &[]));
            }
            _ => {}
        }
        *self = if name == "police" {
            Self::Police(Box::new(PoliceOptions::take(words)?))
        } else {
            Self::List(take_list(words)?)
        };
        Ok(())
    }
}

/// Takes actions until the line ends, or the class of the filter comes.
fn take_list(words: &mut LineWords<'_>) -> Result<Vec<FilterAction>, TcError> {
    let mut list = Vec::new();
    let mut is_due = true;
    while let Some(word) = words.peek() {
        match word {
            "action" if is_due => {
                words.take();
                return Err(words.here(TcProblem::Unknown("action"), &[CONTROLS, KINDS].concat()));
            }
            "flowid" | "classid" if !is_due => break,
            _ => {}
        }
        words.take();
        is_due = word == "action";
        if !is_due {
            list.push(take_one(word, words)?);
        }
    }
    if !is_due {
        return Ok(list);
    }
    let problem = if list.is_empty() {
        TcProblem::MissingValue("action")
    } else {
        TcProblem::Missing { of: "action", what: "what is to be done" }
    };
    Err(words.at_end(problem, &[CONTROLS, KINDS].concat()))
}

fn take_one(word: &str, words: &mut LineWords<'_>) -> Result<FilterAction, TcError> {
    match word {
        "police" => PoliceOptions::take(words).map(|options| FilterAction::Police(Box::new(options))),
        "mirred" => MirredOptions::take(words).map(FilterAction::Mirred),
        "cookie" | "hw_stats" | "skip_hw" | "skip_sw" | "no_percpu" => {
            let why = "actions have no options but their own";
            Err(words.here(TcProblem::NotSupported(why), &[]))
        }
        other if OTHER_KINDS.contains(&other) => {
            Err(words.here(TcProblem::NotSupported("packets are not changed by filters"), KINDS))
        }
        _ => GactOptions::take(word, words).map(FilterAction::Gact),
    }
}

impl fmt::Display for FilterAction {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gact(options) => options.fmt(out),
            Self::Police(options) => options.fmt(out),
            Self::Mirred(options) => options.fmt(out),
        }
    }
}

/// Each behind a blank; nothing of none.
impl fmt::Display for FilterActions {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::List(list) => list.iter().try_for_each(|action| write!(out, " action {action}")),
            Self::Police(options) => write!(out, " {options}"),
        }
    }
}
