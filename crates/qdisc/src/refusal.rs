//! Why a discipline or a class cannot be as a line of `tc` says.

use crate::ClassId;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// Why a discipline or a class cannot be as a line of `tc` says. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcRefusal {
    /// The value of an option.
    Setting {
        /// The kind.
        of: &'static str,
        /// The option's full name.
        option: &'static str,
        /// As it was typed; empty if it is missing.
        value: String,
        /// What can be done.
        remedy: String,
    },
    /// What the line asks for as a whole.
    NotPossible {
        /// What that is.
        what: String,
        /// What can be done.
        remedy: &'static str,
    },
    /// The discipline is of another kind than the options.
    OtherKind {
        /// The discipline's.
        found: &'static str,
        /// The options'.
        named: &'static str,
    },
    /// No table of delays can be had by that name.
    NoDistribution {
        /// The word behind `distribution`.
        name: String,
        /// Why, with the file that is meant, or where one was looked for.
        why: String,
    },
    /// There is no such class.
    UnknownClass(ClassId),
    /// There is such a class.
    ClassExists(ClassId),
    /// The class cannot go or change.
    ClassInUse {
        /// The class.
        class: ClassId,
        /// By what it is used.
        by: &'static str,
    },
}

impl TcRefusal {
    /// A kind that cannot be changed while it runs.
    pub(crate) fn unchangeable(kind: &str) -> Self {
        let what = format!("Change operation not supported by specified qdisc: {kind}");
        Self::NotPossible { what, remedy: "`del` it and add it again; its classes can be changed" }
    }

    /// An option that cannot be as it is.
    pub(crate) fn setting(
        of: &'static str,
        option: &'static str,
        value: impl ToString,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Setting { of, option, value: value.to_string(), remedy: remedy.into() }
    }
}

/// The words of `tc` and of the kernel are in front, so that they can be searched for.
impl fmt::Display for TcRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { of, option, value, remedy } => {
                write!(out, "{of}: `{option} {value}` cannot be: {remedy}")
            }
            Self::NotPossible { what, remedy } => write!(out, "{what}; {remedy}"),
            Self::OtherKind { found, named } => write!(
                out,
                "Invalid qdisc name: it is {found} and cannot become {named}; `del` it, or give another handle"
            ),
            // Quoted and escaped: it may be anything that fits into a line.
            Self::NoDistribution { name, why } => write!(
                out,
                "netem: no distribution data for {name:?}: {why}; there are uniform, normal, pareto, paretonormal, \
                 and files of numbers"
            ),
            Self::UnknownClass(class) => write!(out, "Specified class {class} not found"),
            Self::ClassExists(class) => {
                write!(out, "File exists: there is a class {class} already; use `change` or `replace`")
            }
            Self::ClassInUse { class, by } => {
                write!(out, "Device or resource busy: class {class} is held by {by}; remove that first")
            }
        }
    }
}

impl core::error::Error for TcRefusal {}
