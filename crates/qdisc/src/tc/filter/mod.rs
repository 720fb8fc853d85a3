//! Filters: which packets go to which class.
//!
//! A filter has a priority, and of that one kind, one protocol; each kind gives handles of its own form.
//! Absent: chains, blocks, offloading. Source: tc(8), tc-matchall(8); iproute2 6.1.

mod basic;
mod ematch_text;
mod flow;
mod flower;
mod fw;
mod handle;
mod header_match;
mod offload;
mod protocol;
mod u32;
mod u32_show;

pub use basic::{BasicOptions, describe_basic};
use flow::take_flow;
pub use flower::{FlowerOptions, describe_flower};
pub use fw::{FwOptions, describe_fw};
pub use handle::FilterHandle;
pub use offload::FilterOffload;
pub use protocol::Protocol;
pub use u32::U32Options;

use super::action::FilterActions;
use super::error::TcError;
use super::json::TcJson;
use super::parent::{TcParent, write_id};
use super::property::{TcProperties, TcValue};
use super::verb::TcVerb;
use super::words::{LineWords, OptionName};
use crate::ClassId;
use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt::{self, Formatter};

/// `filter add`, `change`, `replace` or `del`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterCommand {
    /// What is done.
    pub verb: TcVerb,
    /// To which device.
    pub device: String,
    /// The discipline that it belongs to.
    pub place: Option<TcParent>,
    /// What kind of packets it looks at.
    pub protocol: Option<Protocol>,
    /// The lowest is asked first; 0 is as none.
    pub prio: Option<u16>,
    /// Which filter of its priority.
    pub handle: Option<FilterHandle>,
    /// What it decides by; known unless something is removed.
    pub classifier: Option<Classifier>,
}

/// What a filter decides by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Classifier {
    /// Words of a packet are as told.
    U32(U32Options),
    /// Every packet.
    MatchAll(MatchAllOptions),
    /// Its mark is the handle.
    Fw(FwOptions),
    /// Fields of headers are as told.
    Flower(FlowerOptions),
    /// Extended matches are true.
    Basic(BasicOptions),
}

/// What a line says of a `matchall`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchAllOptions {
    /// The class that packets go to.
    pub flow: Option<ClassId>,
    /// Who carries it out.
    pub offload: FilterOffload,
    /// What is done with them.
    pub actions: FilterActions,
}

/// The names of all classifiers.
pub(super) const CLASSIFIERS: &[&str] = &["u32", "fw", "flower", "basic", "matchall"];
const MATCHALL_OPTIONS: &[OptionName] = &[
    ("flowid", "flowid"),
    ("classid", "flowid"),
    ("skip_hw", "skip_hw"),
    ("skip_sw", "skip_sw"),
    ("action", "action"),
    ("police", "police"),
];

impl Classifier {
    /// Takes what stands behind `kind`, if that is one.
    pub(super) fn take(
        kind: &str,
        protocol: Option<Protocol>,
        words: &mut LineWords<'_>,
    ) -> Option<Result<Self, TcError>> {
        Some(match kind {
            "u32" => U32Options::take(words).map(Self::U32),
            "matchall" => MatchAllOptions::take(words).map(Self::MatchAll),
            "fw" => FwOptions::take(words).map(Self::Fw),
            "flower" => FlowerOptions::take(words, protocol).map(Self::Flower),
            "basic" => BasicOptions::take(words).map(Self::Basic),
            _ => return None,
        })
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::U32(_) => "u32",
            Self::MatchAll(_) => "matchall",
            Self::Fw(_) => "fw",
            Self::Flower(_) => "flower",
            Self::Basic(_) => "basic",
        }
    }
}

impl Classifier {
    /// What is done with packets that it is for.
    #[must_use]
    pub const fn actions(&self) -> &FilterActions {
        match self {
            Self::U32(U32Options { actions, .. })
            | Self::MatchAll(MatchAllOptions { actions, .. })
            | Self::Fw(FwOptions { actions, .. })
            | Self::Flower(FlowerOptions { actions, .. })
            | Self::Basic(BasicOptions { actions, .. }) => actions,
        }
    }
}

impl MatchAllOptions {
    fn take(words: &mut LineWords<'_>) -> Result<Self, TcError> {
        let mut options = Self::default();
        while words.take().is_some() {
            match words.full_name(MATCHALL_OPTIONS, "option of matchall")? {
                "flowid" => {
                    words.first_time(options.flow.as_ref(), "flowid")?;
                    options.flow = Some(take_flow(words)?);
                }
                "skip_hw" => options.offload = FilterOffload::SkipHardware,
                "skip_sw" => options.offload = FilterOffload::SkipSoftware,
                name => options.actions.take(name, words)?,
            }
        }
        Ok(options)
    }
}

impl fmt::Display for Classifier {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::U32(options) => options.fmt(out),
            Self::Fw(options) => options.fmt(out),
            Self::Flower(options) => options.fmt(out),
            Self::Basic(options) => options.fmt(out),
            Self::MatchAll(MatchAllOptions { flow, offload, actions }) => {
                out.write_str("matchall")?;
                offload.put(out)?;
                write_id("flowid", *flow, out)?;
                actions.fmt(out)
            }
        }
    }
}

/// What `tc` shows of a `matchall`.
#[must_use]
pub fn describe_match_all(
    handle: u32,
    flow: Option<ClassId>,
    offload: FilterOffload,
    asked: u64,
) -> TcProperties {
    let mut shown = TcProperties::default();
    shown.add("handle", "handle {} ", TcValue::new(format!("{handle:#x}"), TcJson::Unsigned(handle.into())));
    if let Some(flow) = flow {
        shown.add("flowid", "flowid {} ", flow.to_string());
    }
    offload.add_to(&mut shown, "\n  skip_hw", "\n  skip_sw");
    shown.mark("not_in_hw", "\n  not_in_hw");
    shown.statistics(|shown| shown.add("rule_hit", " (rule hit {})", asked));
    shown
}
