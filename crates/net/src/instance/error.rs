//! Why there is no instance.

use crate::control::TcControlError;
use crate::relay::RelayError;
use crate::tun::TunError;
use core::fmt;
use quietcore_live::StartError;
use std::io;
use std::path::PathBuf;

/// Why an instance cannot be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum InstanceError {
    /// An instance of that name runs.
    NameTaken {
        /// The name.
        name: String,
        /// Its process, if its record could be read.
        pid: Option<u32>,
    },
    /// The folder of records is another user's, or no folder.
    FolderNotOwn(PathBuf),
    /// Other users can put something into the folder of records.
    FolderOpen(PathBuf),
    /// A record, or the folder of records, cannot be read or written.
    Record {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no control socket.
    Socket {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The machine does not start.
    Machine(StartError),
    /// A device has no place in the control.
    Control(TcControlError),
    /// The wire between TUN interfaces cannot be made.
    Tun(TunError),
    /// The relay cannot be made.
    Relay(RelayError),
}

impl fmt::Display for InstanceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken { name, pid } => {
                write!(out, "an instance {name} runs already")?;
                pid.iter().try_for_each(|pid| write!(out, " (process {pid})"))
            }
            Self::FolderNotOwn(folder) => {
                let remedy = "remove it, or set XDG_RUNTIME_DIR";
                write!(out, "{} is not a folder of this user: {remedy}", folder.display())
            }
            Self::FolderOpen(folder) => {
                write!(out, "{} is open to others: `chmod 700` it", folder.display())
            }
            Self::Record { path, error } => write!(out, "{}: {error}", path.display()),
            Self::Socket { path, error } => {
                write!(out, "there is no control socket at {}: {error}", path.display())
            }
            Self::Machine(error) => write!(out, "{error}"),
            Self::Control(error) => write!(out, "{error}"),
            Self::Tun(error) => write!(out, "{error}"),
            Self::Relay(error) => write!(out, "{error}"),
        }
    }
}

impl core::error::Error for InstanceError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::NameTaken { .. } | Self::FolderNotOwn(_) | Self::FolderOpen(_) => None,
            Self::Record { error, .. } | Self::Socket { error, .. } => Some(error),
            Self::Machine(error) => Some(error),
            Self::Control(error) => Some(error),
            Self::Tun(error) => Some(error),
            Self::Relay(error) => Some(error),
        }
    }
}

macro_rules! from {
    ($($error:ty => $variant:ident,)*) => {$(
        impl From<$error> for InstanceError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from! {
    StartError => Machine,
    TcControlError => Control,
    TunError => Tun,
    RelayError => Relay,
}

#[cfg(test)]
mod tests {
    use super::{InstanceError, RelayError, StartError, TcControlError, TunError};
    use std::error::Error;
    use std::io;

    /// Goal: each reason is told with its place and, where there is one, the remedy or what the system said.
    /// Method: one of each.
    #[test]
    fn each_reason_is_told() {
        let gone = || io::Error::other("it is gone");
        let taken = |pid| InstanceError::NameTaken { name: "qc".to_owned(), pid };
        for (error, shown) in [
            (taken(Some(77)), "an instance qc runs already (process 77)"),
            (taken(None), "an instance qc runs already"),
            (
                InstanceError::FolderNotOwn("/x".into()),
                "/x is not a folder of this user: remove it, or set XDG_RUNTIME_DIR",
            ),
            (InstanceError::FolderOpen("/x".into()), "/x is open to others: `chmod 700` it"),
        ] {
            assert_eq!(error.to_string(), shown);
            assert!(error.source().is_none(), "{shown}");
        }
        for (error, shown) in [
            (InstanceError::Record { path: "/x/qc.json".into(), error: gone() }, "/x/qc.json: it is gone"),
            (
                InstanceError::Socket { path: "/x/qc.sock".into(), error: gone() },
                "there is no control socket at /x/qc.sock: it is gone",
            ),
        ] {
            assert_eq!(error.to_string(), shown);
            assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("it is gone"));
        }
        for error in [
            InstanceError::from(StartError::NoCpu),
            InstanceError::from(TcControlError::DeviceExists("eth1".to_owned())),
            InstanceError::from(TunError::NamespaceTaken { name: "qc-a".to_owned() }),
            InstanceError::from(RelayError::Loop(([127, 0, 0, 1], 9).into())),
        ] {
            let source = error.source().expect("what it is made of").to_string();
            assert_eq!(error.to_string(), source);
            assert!(source.len() > 10, "{source:?}");
        }
    }
}
