//! What a line of `tc` says: plain data, and its canonical text.
//!
//! Invariant: the text of a command that was parsed is parsed as the same command.

use super::filter::{FilterCommand, Protocol};
use super::kinds::{ClassOptions, QdiscOptions};
use super::parent::{TcParent, write_id};
use super::property::TcStyle;
use super::scalar::Show as _;
use super::value::OptionValue as _;
use super::verb::TcVerb;
use crate::ClassId;
use alloc::string::String;
use core::fmt::{self, Formatter};
use quietcore_core::Nanos;

/// A line of `tc`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Makes, changes or removes a discipline.
    Qdisc(QdiscCommand),
    /// Makes, changes or removes a class.
    Class(ClassCommand),
    /// Makes or removes a filter.
    Filter(FilterCommand),
    /// Shows what is there.
    Show(ShowCommand),
}

/// `est INTERVAL TIMECONST`: how rates are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimation {
    /// How often.
    pub interval: Nanos,
    /// How far the average reaches back.
    pub time_constant: Nanos,
}

/// `qdisc add`, `change`, `replace` or `del`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QdiscCommand {
    /// What is done.
    pub verb: TcVerb,
    /// To which device.
    pub device: String,
    /// Where; known if something is added or replaced.
    pub place: Option<TcParent>,
    /// What it is, or will be, called; its second number is 0.
    pub handle: Option<ClassId>,
    /// How its rates are estimated.
    pub est: Option<Estimation>,
    /// Its kind and options; known unless something is removed.
    pub options: Option<QdiscOptions>,
}

/// `class add`, `change`, `replace` or `del`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCommand {
    /// What is done.
    pub verb: TcVerb,
    /// To which device.
    pub device: String,
    /// The discipline, or the class, that it is in; nothing for the root.
    pub parent: Option<ClassId>,
    /// What it is, or will be, called; known if something is changed or removed.
    pub id: Option<ClassId>,
    /// How its rates are estimated.
    pub est: Option<Estimation>,
    /// Its kind and options; known unless something is removed.
    pub options: Option<ClassOptions>,
}

/// What there is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcObject {
    /// Disciplines.
    Qdisc,
    /// Classes.
    Class,
    /// Filters.
    Filter,
}

impl TcObject {
    /// As it is typed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qdisc => "qdisc",
            Self::Class => "class",
            Self::Filter => "filter",
        }
    }
}

/// `show`, of one device or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowCommand {
    /// What is shown.
    pub object: TcObject,
    /// Of which device; of all, if none is named, which only disciplines are.
    pub device: Option<String>,
    /// Only what is below this.
    pub place: Option<TcParent>,
    /// Only what is called so.
    pub id: Option<ClassId>,
    /// Of which protocol filters are.
    pub protocol: Option<Protocol>,
    /// Of which priority.
    pub prio: Option<u16>,
    /// `-s`, `-d`, `-iec`, `-p`, `-q`: what of what is known, and how.
    pub style: TcStyle,
    /// `-j`: as JSON.
    pub json: bool,
    /// `-g`: classes as a tree.
    pub graph: bool,
}

/// As `tc` takes it: full names of objects and options, `del`.
impl fmt::Display for Command {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Qdisc(command) => command.fmt(out),
            Self::Class(command) => command.fmt(out),
            Self::Filter(command) => command.fmt(out),
            Self::Show(command) => command.fmt(out),
        }
    }
}

/// Writes a blank and the value, if there is one.
pub(super) fn behind_blank(value: Option<&impl fmt::Display>, out: &mut Formatter<'_>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(out, " {value}"))
}

impl fmt::Display for Estimation {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("est")?;
        self.interval.show(out)?;
        self.time_constant.show(out)
    }
}

impl fmt::Display for QdiscCommand {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "qdisc {} dev {}", self.verb.name(), self.device)?;
        // These name their place and their handle themselves.
        if !matches!(self.options, Some(QdiscOptions::Ingress(_) | QdiscOptions::Clsact(_))) {
            behind_blank(self.place.as_ref(), out)?;
            write_id("handle", self.handle, out)?;
        }
        behind_blank(self.est.as_ref(), out)?;
        behind_blank(self.options.as_ref(), out)
    }
}

impl fmt::Display for ClassCommand {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "class {} dev {}", self.verb.name(), self.device)?;
        match (self.parent, self.verb) {
            // One of the two has to be named.
            (None, TcVerb::Add) => out.write_str(" parent root")?,
            (None, TcVerb::Replace) if self.id.is_none() => out.write_str(" parent root")?,
            (parent, _) => write_id("parent", parent, out)?,
        }
        write_id("classid", self.id, out)?;
        behind_blank(self.est.as_ref(), out)?;
        behind_blank(self.options.as_ref(), out)
    }
}

impl fmt::Display for FilterCommand {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "filter {} dev {}", self.verb.name(), self.device)?;
        behind_blank(self.place.as_ref(), out)?;
        if let Some(protocol) = self.protocol {
            write!(out, " protocol {protocol}")?;
        }
        self.prio.iter().try_for_each(|prio| prio.put("prio", out))?;
        self.handle.iter().try_for_each(|handle| write!(out, " handle {handle}"))?;
        behind_blank(self.classifier.as_ref(), out)
    }
}

impl fmt::Display for ShowCommand {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let TcStyle { statistics, details, binary, pretty, numeric, ours } = self.style;
        let flags = [
            (statistics, "-s "),
            (details, "-d "),
            (binary, "-iec "),
            (pretty, "-p "),
            (numeric, "-N "),
            (self.json, "-j "),
            (self.graph, "-g "),
            (ours, "-q "),
        ];
        for (given, flag) in flags {
            out.write_str(if given { flag } else { "" })?;
        }
        write!(out, "{} show", self.object.name())?;
        self.device.iter().try_for_each(|device| write!(out, " dev {device}"))?;
        behind_blank(self.place.as_ref(), out)?;
        self.protocol.iter().try_for_each(|protocol| write!(out, " protocol {protocol}"))?;
        self.prio.iter().try_for_each(|prio| prio.put("prio", out))?;
        write_id(if self.object == TcObject::Class { "classid" } else { "handle" }, self.id, out)
    }
}
