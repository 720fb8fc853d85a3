//! Why filters are not changed. The kernel's words are in front, so that they can be searched for.

use super::super::known::write_known;
use core::fmt;
use quietcore_qdisc::filter::{U32Address, U32Error};
use quietcore_qdisc::tc::{FilterHandle, Protocol};

/// Why a command about filters was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcFilterError {
    /// No filter has that priority.
    UnknownPriority {
        /// The priority; none if no filter is there at all.
        named: u16,
        /// Those that there are.
        known: Vec<u16>,
    },
    /// The priority is of another protocol.
    OtherProtocol {
        /// The priority.
        prio: u16,
        /// Its protocol.
        found: Protocol,
    },
    /// The priority is of another kind.
    OtherFilterKind {
        /// The priority.
        prio: u16,
        /// Its kind.
        found: &'static str,
    },
    /// No filter of the priority has that handle.
    UnknownFilter(FilterHandle),
    /// A filter of the priority has that handle.
    FilterExists(FilterHandle),
    /// A priority has one filter of that kind.
    OnlyOne(&'static str),
    /// A command that names no kind.
    NoKind,
    /// `change` of what is not there.
    NothingToChange,
    /// `change` without a priority.
    NoPriority,
    /// `del` of all with more than the parent.
    CannotFlush,
    /// All lower priorities are taken.
    NoPriorityLeft,
    /// The kind is not known here.
    UnknownKind(&'static str),
    /// What a `u32` looks at was not told.
    NoSelector,
    /// A table cannot be changed.
    TableIsNoRule(U32Address),
    /// A table's name has no bucket and no rule.
    NoTable(U32Address),
    /// A `fw` without a mark.
    NoMark,
    /// A filter that says nothing.
    NoClass,
    /// All `fw` of a priority have one mask.
    OtherMask(u32),
    /// A `flower` of that handle looks at the same things, and wants the same.
    SameKeys(FilterHandle),
    /// Only hardware could carry it out.
    NoHardware,
    /// A link to a bucket.
    NoLink(U32Address),
    /// Tables and rules of `u32`.
    U32(U32Error),
}

impl From<U32Error> for TcFilterError {
    fn from(error: U32Error) -> Self {
        Self::U32(error)
    }
}

impl TcFilterError {
    /// What is said where no figure is in it.
    const fn plain(&self) -> &'static str {
        match self {
            Self::NoKind => "Filter kind must be specified: u32, fw, flower, basic or matchall",
            Self::NothingToChange => "there is no such filter to change; use `add` or `replace`",
            Self::NoPriority => "Invalid filter command with priority of zero: `change` needs `prio`",
            Self::CannotFlush => {
                "Cannot flush filters with protocol, handle or kind set: name a `prio`, or only the parent"
            }
            Self::NoPriorityLeft => "no priority is left before the first filter; name one with `prio`",
            Self::NoSelector => "Selector not specified: say with `match` what has to be true",
            Self::NoMark => "Invalid argument: name the mark, which is not 0, as `handle`",
            Self::NoClass => "Invalid argument: the filter says nothing; name the class with `flowid`",
            Self::NoHardware => {
                "Operation not supported: there is no hardware that filters; leave `skip_sw` out"
            }
            _ => "",
        }
    }

    fn write_names(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TableIsNoRule(address) => {
                write!(out, "Key node id cannot be zero: {address} is a table, which cannot be changed")
            }
            Self::NoTable(address) => write!(
                out,
                "Divisor can only be used on a hash table: {address} is a rule; name a table, such as 2:"
            ),
            Self::NoLink(link) => write!(
                out,
                "u32 Link handle must be a hash table: {link} is a bucket; name a table, such as 2:"
            ),
            Self::U32(error) => write!(out, "{error}"),
            plain => out.write_str(plain.plain()),
        }
    }
}

impl fmt::Display for TcFilterError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPriority { named, known } => {
                let of = "Filter with specified priority/protocol not found";
                write!(out, "{of}: none has priority {named}; ")?;
                write_known(known, out)
            }
            Self::OtherProtocol { prio, found } => write!(
                out,
                "Protocol mismatch for filter with specified priority: {prio} is of protocol {found}; name \
                 that, or another `prio`"
            ),
            Self::OtherFilterKind { prio, found } => write!(
                out,
                "Specified filter kind does not match existing one: priority {prio} is {found}; use that, or \
                 another `prio`"
            ),
            Self::UnknownFilter(handle) => write!(
                out,
                "Specified filter handle not found: there is no {handle}; `filter show` lists them"
            ),
            Self::FilterExists(handle) => write!(
                out,
                "Filter already exists: there is a {handle}; use `replace`, or name another `handle`"
            ),
            Self::OnlyOne(kind) => {
                write!(out, "File exists: a priority has one {kind}; `del` it first, or name another `prio`")
            }
            Self::UnknownKind(kind) => {
                write!(out, "filters of the kind {kind} are not known here; use u32")
            }
            Self::OtherMask(mask) => write!(
                out,
                "Invalid argument: all filters of the priority have the mask {mask:#x}; use that, or another \
                 `prio`"
            ),
            Self::SameKeys(handle) => {
                write!(out, "File exists: filter {handle} is of the same packets; `replace` that")
            }
            other => other.write_names(out),
        }
    }
}

impl core::error::Error for TcFilterError {}
