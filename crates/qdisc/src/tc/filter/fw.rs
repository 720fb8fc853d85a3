//! `fw`: packets by their mark, which is the handle of a filter.
//!
//! Source: tc-fw(8); iproute2 6.1 by behaviour.

use super::super::action::FilterActions;
use super::super::error::{TcError, TcProblem};
use super::super::parent::write_id;
use super::super::property::TcProperties;
use super::super::words::{LineWords, OptionName};
use super::flow::{take_flow, why_not};
use super::handle::FilterHandle;
use crate::ClassId;
use alloc::string::ToString as _;
use core::fmt::{self, Formatter};

/// What a line says of a `fw` besides its handle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FwOptions {
    /// The class that packets go to.
    pub flow: Option<ClassId>,
    /// What is done with them.
    pub actions: FilterActions,
}

const OPTIONS: &[OptionName] = &[
    ("flowid", "flowid"),
    ("classid", "flowid"),
    ("indev", "indev"),
    ("action", "action"),
    ("police", "police"),
];

impl FwOptions {
    pub(super) fn take(words: &mut LineWords<'_>) -> Result<Self, TcError> {
        let mut options = Self::default();
        while words.take().is_some() {
            match words.full_name(OPTIONS, "option of fw")? {
                "flowid" => {
                    words.first_time(options.flow.as_ref(), "flowid")?;
                    options.flow = Some(take_flow(words)?);
                }
                name @ ("action" | "police") => options.actions.take(name, words)?,
                option => {
                    let why = why_not(option);
                    return Err(words.here(TcProblem::NotSupported(why), &[]));
                }
            }
        }
        Ok(options)
    }
}

impl fmt::Display for FwOptions {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("fw")?;
        write_id("flowid", self.flow, out)?;
        self.actions.fmt(out)
    }
}

/// What `tc` shows of a `fw`.
#[must_use]
pub fn describe_fw(handle: FilterHandle, flow: Option<ClassId>) -> TcProperties {
    let mut shown = TcProperties::default();
    shown.add("handle", "handle {} ", handle.to_string());
    if let Some(flow) = flow {
        shown.add("classid", "classid {} ", flow.to_string());
    }
    shown
}
