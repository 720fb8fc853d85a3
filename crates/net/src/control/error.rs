//! Why a command is not carried out: what is wrong, and what to do instead.
//!
//! The words of `tc` and of the kernel are in front, so that they can be searched for; what they leave out,
//! what there is instead, stands behind.

use super::filter::TcFilterError;
use super::known::write_known;
use core::fmt;
use quietcore_qdisc::ClassId;
use quietcore_qdisc::tc::{TcError, TcRefusal};

/// Why a command was not carried out. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcControlError {
    /// The line is no command.
    Line(TcError),
    /// No device has that name.
    UnknownDevice {
        /// The name.
        device: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A device has that name already, or this one has that name.
    DeviceExists(String),
    /// There is a discipline at that place already.
    QdiscExists {
        /// Which device.
        device: String,
        /// As it would be typed.
        place: String,
        /// What is there.
        kind: &'static str,
        /// Its handle.
        handle: ClassId,
    },
    /// Another discipline has that handle.
    HandleInUse {
        /// The handle.
        handle: ClassId,
        /// Where the other discipline is.
        place: String,
    },
    /// No discipline has that handle.
    UnknownHandle {
        /// The handle.
        handle: ClassId,
        /// Those that there are.
        known: Vec<ClassId>,
    },
    /// What is there is a default one, which no line made.
    DefaultQdisc {
        /// Which device.
        device: String,
        /// As it would be typed.
        place: String,
    },
    /// The place has another discipline than the command says.
    OtherHandle {
        /// The one that is there.
        found: ClassId,
        /// The one that the command names.
        named: ClassId,
    },
    /// No class has that name.
    UnknownClass {
        /// The name.
        class: ClassId,
        /// Those that there are.
        known: Vec<ClassId>,
    },
    /// A filter cannot be as the line says.
    Filter(TcFilterError),
    /// It cannot be as the line says.
    Refused(TcRefusal),
}

impl TcControlError {
    /// What `tc` exits with: 2 for the kernel's no.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Line(error) => error.exit_code(),
            Self::UnknownDevice { .. } | Self::Refused(TcRefusal::NoDistribution { .. }) => 1,
            _ => 2,
        }
    }

    /// What the command wants is not to be had there.
    pub(super) fn not_possible(what: impl Into<String>, remedy: &'static str) -> Self {
        Self::Refused(TcRefusal::NotPossible { what: what.into(), remedy })
    }

    /// An option that cannot be as it is.
    pub(super) fn setting(
        of: &'static str,
        option: &'static str,
        value: impl ToString,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Refused(TcRefusal::Setting { of, option, value: value.to_string(), remedy: remedy.into() })
    }

    /// Options of another kind than what is there.
    pub(super) const fn other_kind(found: &'static str, named: &'static str) -> Self {
        Self::Refused(TcRefusal::OtherKind { found, named })
    }

    /// A class that cannot go or change.
    pub(super) const fn in_use(class: ClassId, by: &'static str) -> Self {
        Self::Refused(TcRefusal::ClassInUse { class, by })
    }

    /// What a discipline says, which has the classes `known`.
    pub(super) fn refused(refusal: TcRefusal, known: Vec<ClassId>) -> Self {
        match refusal {
            TcRefusal::UnknownClass(class) => Self::UnknownClass { class, known },
            other => Self::Refused(other),
        }
    }
}

impl From<TcFilterError> for TcControlError {
    fn from(error: TcFilterError) -> Self {
        Self::Filter(error)
    }
}

impl From<TcError> for TcControlError {
    fn from(error: TcError) -> Self {
        Self::Line(error)
    }
}

impl fmt::Display for TcControlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(error) => error.fmt(out),
            Self::UnknownDevice { device, known } => {
                // Quoted and escaped: it may be anything that fits into a line.
                write!(out, "Cannot find device {device:?}; ")?;
                write_known(known, out)
            }
            Self::DeviceExists(device) => write!(out, "there is a device \"{device}\" already"),
            Self::QdiscExists { device, place, kind, handle } => write!(
                out,
                "File exists: {device} {place} has {kind} {handle} already; use `replace`, or `del` it first"
            ),
            Self::HandleInUse { handle, place } => {
                write!(out, "File exists: handle {handle} is that of {place}; name another, or none")
            }
            Self::UnknownHandle { handle, known } => {
                write!(out, "Failed to find qdisc with handle {handle}; ")?;
                write_known(known, out)
            }
            Self::DefaultQdisc { device, place } => write!(
                out,
                "Cannot delete qdisc with handle of zero: {device} {place} has its default, there is nothing to \
                 delete"
            ),
            Self::OtherHandle { found, named } => {
                write!(out, "Invalid handle: {named} is not there, but {found}")
            }
            Self::UnknownClass { class, known } => {
                write!(out, "Specified class {class} not found; ")?;
                write_known(known, out)
            }
            Self::Filter(error) => error.fmt(out),
            Self::Refused(refusal) => refusal.fmt(out),
        }
    }
}

impl core::error::Error for TcControlError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Line(error) => Some(error),
            Self::Filter(error) => Some(error),
            _ => None,
        }
    }
}
