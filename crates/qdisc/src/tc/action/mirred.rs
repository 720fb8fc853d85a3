//! `action mirred ...`: packets go to another device, or copies of them.
//!
//! Source: tc-mirred(8); iproute2 6.1 by behaviour.

use super::super::error::{TcError, TcProblem};
use super::super::line::take_device;
use super::super::words::LineWords;
use super::take_index;
use alloc::string::String;
use core::fmt::{self, Formatter};

/// Whether a packet goes to the other device, or a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirredKind {
    /// It goes there, and no further here.
    Redirect,
    /// A copy goes there.
    Mirror,
}

/// To which side of the other device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirredDirection {
    /// It is sent through it.
    Egress,
    /// As if it came in there.
    Ingress,
}

impl MirredKind {
    /// As it is typed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redirect => "redirect",
            Self::Mirror => "mirror",
        }
    }
}

impl MirredDirection {
    /// As it is typed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Egress => "egress",
            Self::Ingress => "ingress",
        }
    }
}

/// What was typed of a `mirred`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirredOptions {
    /// The packet, or a copy.
    pub kind: MirredKind,
    /// To which side.
    pub direction: MirredDirection,
    /// Of which device.
    pub device: String,
    /// What it is called; one that is there is meant, whatever else is said.
    pub index: Option<u32>,
}

const WORDS: &[&str] = &["egress", "ingress", "redirect", "mirror", "dev"];

impl MirredOptions {
    pub(super) fn take(words: &mut LineWords<'_>) -> Result<Self, TcError> {
        let (mut kind, mut direction, mut device, mut index) = (None, None, None, None);
        while let Some(word) = words.peek() {
            match word {
                "egress" | "ingress" if direction.is_none() && device.is_none() => {
                    words.take();
                    let is_egress = word == "egress";
                    direction =
                        Some(if is_egress { MirredDirection::Egress } else { MirredDirection::Ingress });
                }
                "redirect" | "mirror" if direction.is_some() && kind.is_none() => {
                    words.take();
                    kind = Some(if word == "redirect" { MirredKind::Redirect } else { MirredKind::Mirror });
                }
                "dev" if kind.is_some() && device.is_none() => {
                    words.take();
                    device = Some(take_device(words)?);
                }
                "index" if kind.is_some() => {
                    words.take();
                    take_index(words, &mut index)?;
                }
                "blockid" => {
                    words.take();
                    return Err(words.here(TcProblem::NotSupported("there are no blocks of filters"), WORDS));
                }
                _ => break,
            }
        }
        let missing = |what| words.at_end(TcProblem::Missing { of: "mirred", what }, WORDS);
        let direction = direction.ok_or_else(|| missing("`egress` or `ingress`"))?;
        let kind =
            kind.ok_or_else(|| words.ahead(TcProblem::MissingValue("mirred"), &["redirect", "mirror"]))?;
        let device = device.ok_or_else(|| words.ahead(TcProblem::MissingValue("mirred"), &["dev"]))?;
        Ok(Self { kind, direction, device, index })
    }
}

impl MirredOptions {
    /// What becomes of the packet here, as `tc` says it: `steal`, or the next action is asked.
    pub(super) const fn control(&self) -> &'static str {
        match self.kind {
            MirredKind::Redirect => "stolen",
            MirredKind::Mirror => "pipe",
        }
    }
}

impl fmt::Display for MirredOptions {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { kind, direction, device, index } = self;
        write!(out, "mirred {} {}", direction.name(), kind.name())?;
        index.map_or(Ok(()), |index| write!(out, " index {index}"))?;
        write!(out, " dev {device}")
    }
}
