//! Why there is no namespace, interface or wire.

use crate::options::DeviceError;
use core::fmt;
use std::io;

/// Why something of a TUN wire cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum TunError {
    /// A network namespace cannot be entered.
    Namespace {
        /// Its name.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// No network namespace can be made.
    NewNamespace(io::Error),
    /// The name of a network namespace of ours belongs to something else by now.
    NamespaceReplaced {
        /// The name.
        name: String,
    },
    /// There is a network namespace of that name, which this process did not make.
    NamespaceTaken {
        /// The name.
        name: String,
    },
    /// `ip` cannot be run.
    NoIp {
        /// What it was to do.
        arguments: String,
        /// Why not.
        error: io::Error,
    },
    /// `ip` failed.
    Ip {
        /// What it was to do.
        arguments: String,
        /// What it wrote to its standard error.
        said: String,
    },
    /// An interface cannot be made.
    Interface {
        /// Its name.
        name: String,
        /// The network namespace that it should be in.
        namespace: String,
        /// Why.
        error: io::Error,
    },
    /// The system refused what the wire needs.
    Wire {
        /// What that is.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// A device cannot be made.
    Device(DeviceError),
}

impl TunError {
    pub(super) fn wire(what: &'static str, error: impl Into<io::Error>) -> Self {
        Self::Wire { what, error: error.into() }
    }
}

impl fmt::Display for TunError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace { name, error } => {
                write!(out, "the network namespace {name} cannot be entered: {error}")
            }
            Self::NewNamespace(error) => write!(out, "no network namespace can be made: {error}"),
            Self::NamespaceReplaced { name } => {
                write!(
                    out,
                    "the network namespace {name} is not the one that was made here: it is left alone"
                )
            }
            Self::NamespaceTaken { name } => {
                write!(out, "the network namespace {name} is there already and is not ours")
            }
            Self::NoIp { arguments, error } => {
                let remedy = "it is part of iproute2, which has to be installed";
                write!(out, "ip {arguments} cannot be run: {error}; {remedy}")
            }
            Self::Ip { arguments, said } => write!(out, "ip {arguments} failed: {said}"),
            Self::Interface { name, namespace, error } => {
                write!(out, "the TUN interface {name} cannot be made in {namespace}: {error}")
            }
            Self::Wire { what, error } => write!(out, "{what}: {error}"),
            Self::Device(error) => write!(out, "{error}"),
        }
    }
}

impl core::error::Error for TunError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::NewNamespace(error)
            | Self::Namespace { error, .. }
            | Self::NoIp { error, .. }
            | Self::Interface { error, .. }
            | Self::Wire { error, .. } => Some(error),
            Self::Device(error) => Some(error),
            Self::NamespaceTaken { .. } | Self::NamespaceReplaced { .. } | Self::Ip { .. } => None,
        }
    }
}

impl From<DeviceError> for TunError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

#[cfg(test)]
mod tests {
    use super::TunError;
    use crate::options::DeviceError;
    use std::io;

    /// Goal: each refusal says what of, and why. Method: one of each kind, no two words alike.
    #[test]
    fn a_refusal_says_what_and_why() {
        let (name, namespace, arguments) = ("blue".to_owned(), "red".to_owned(), "link add".to_owned());
        let error = || io::Error::other("no room");
        let cases = [
            (
                TunError::Namespace { name: name.clone(), error: error() },
                "the network namespace blue cannot be entered: no room",
            ),
            (TunError::NewNamespace(error()), "no network namespace can be made: no room"),
            (
                TunError::NamespaceReplaced { name: name.clone() },
                "the network namespace blue is not the one that was made here: it is left alone",
            ),
            (
                TunError::NamespaceTaken { name: name.clone() },
                "the network namespace blue is there already and is not ours",
            ),
            (
                TunError::NoIp { arguments: arguments.clone(), error: error() },
                "ip link add cannot be run: no room; it is part of iproute2, which has to be installed",
            ),
            (TunError::Ip { arguments, said: "busy".to_owned() }, "ip link add failed: busy"),
            (
                TunError::Interface { name, namespace, error: error() },
                "the TUN interface blue cannot be made in red: no room",
            ),
            (TunError::wire("make a poller", error()), "make a poller: no room"),
            (TunError::Device(DeviceError::NoLanes), &DeviceError::NoLanes.to_string()),
        ];
        for (refusal, shown) in cases {
            assert_eq!(refusal.to_string(), shown);
        }
    }
}
