//! Why a command is not carried out: what is wrong, and what to do instead.
//!
//! The words of `tc` and of the kernel are in front, so that they can be searched for; what they leave out,
//! what there is instead, stands behind.

use core::fmt;
use quietcore_qdisc::ClassId;
use quietcore_qdisc::tc::{TcError, TcRefusal};

/// Why a command was not carried out. Nothing has changed then.
///
/// ```
/// use quietcore::Machine;
/// use quietcore::net::{Control, TcControlError};
///
/// let machine = Machine::start()?;
/// let control = Control::<Vec<u8>>::new(machine, 1);
/// let error = control.execute_line("tc qd del dev eth1 root").expect_err("there is no device");
/// assert!(matches!(error, TcControlError::UnknownDevice { .. }));
/// assert_eq!(error.to_string(), "Cannot find device \"eth1\"; there is none");
/// # machine.shutdown();
/// # Ok::<(), quietcore::StartError>(())
/// ```
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
    /// A device has that name already, or this one has a name.
    DeviceExists {
        /// The name.
        device: String,
    },
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
    /// A discipline has a kind for as long as it is there.
    OtherKind {
        /// What there is.
        found: &'static str,
        /// What the command names.
        named: &'static str,
    },
    /// No class has that name.
    UnknownClass {
        /// The name.
        class: ClassId,
        /// Those that there are.
        known: Vec<ClassId>,
    },
    /// There is such a class already.
    ClassExists {
        /// The name.
        class: ClassId,
    },
    /// Something holds the class.
    ClassInUse {
        /// The name.
        class: ClassId,
        /// What holds it.
        by: &'static str,
    },
    /// No filter is like that.
    UnknownFilter {
        /// The discipline or class.
        parent: ClassId,
        /// The priorities that there are.
        known: Vec<u16>,
    },
    /// What the command wants is not to be had there.
    NotPossible {
        /// What.
        what: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// An option has a value that it cannot have.
    Setting {
        /// The kind of discipline or class.
        of: &'static str,
        /// The option.
        option: &'static str,
        /// As it was typed, or what followed from it.
        value: String,
        /// What it can have.
        remedy: String,
    },
}

impl TcControlError {
    /// An option that cannot be as it is.
    pub(super) fn setting(
        of: &'static str,
        option: &'static str,
        value: impl ToString,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Setting { of, option, value: value.to_string(), remedy: remedy.into() }
    }

    /// What a discipline says, which has the classes `known`.
    pub(super) fn refused(refusal: TcRefusal, known: Vec<ClassId>) -> Self {
        match refusal {
            TcRefusal::Setting { of, option, value, remedy } => Self::Setting { of, option, value, remedy },
            TcRefusal::NotPossible { what, remedy } => Self::NotPossible { what, remedy },
            TcRefusal::OtherKind { found, named } => Self::OtherKind { found, named },
            TcRefusal::UnknownClass(class) => Self::UnknownClass { class, known },
            TcRefusal::ClassExists(class) => Self::ClassExists { class },
            TcRefusal::ClassInUse { class, by } => Self::ClassInUse { class, by },
            other => Self::NotPossible { what: other.to_string(), remedy: "type something else" },
        }
    }
}

impl From<TcError> for TcControlError {
    fn from(error: TcError) -> Self {
        Self::Line(error)
    }
}

/// Names, with something between them; "there is none" without any.
fn write_known<T: fmt::Display>(known: &[T], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some((first, others)) = known.split_first() else { return out.write_str("there is none") };
    write!(out, "there is {first}")?;
    others.iter().try_for_each(|other| write!(out, ", {other}"))
}

impl fmt::Display for TcControlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(error) => error.fmt(out),
            Self::UnknownDevice { device, known } => {
                write!(out, "Cannot find device \"{device}\"; ")?;
                write_known(known, out)
            }
            Self::DeviceExists { device } => write!(out, "there is a device \"{device}\" already"),
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
            Self::OtherKind { found, named } => write!(
                out,
                "Invalid qdisc name: it is {found} and cannot become {named}; `del` it, or give another handle"
            ),
            Self::UnknownClass { class, known } => {
                write!(out, "Specified class {class} not found; ")?;
                write_known(known, out)
            }
            Self::ClassExists { class } => {
                write!(out, "File exists: there is a class {class} already; use `change` or `replace`")
            }
            Self::ClassInUse { class, by } => {
                write!(out, "Device or resource busy: class {class} is held by {by}; remove that first")
            }
            Self::UnknownFilter { parent, known } => {
                write!(out, "Cannot find specified filter of {parent}; of priorities ")?;
                write_known(known, out)
            }
            Self::NotPossible { what, remedy } => write!(out, "{what}; {remedy}"),
            Self::Setting { of, option, value, remedy } => {
                write!(out, "{of}: `{option} {value}` cannot be: {remedy}")
            }
        }
    }
}

impl core::error::Error for TcControlError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Line(error) => Some(error),
            _ => None,
        }
    }
}
