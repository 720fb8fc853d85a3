//! Why a change of proxies was refused, and why there is no relay.

use quietcore_live::StartError;
use quietcore_tokio::lanes::{LaneSpawnError, LanesStartError};
use std::io;

/// Why a change of a relay's proxies or toxics was refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProxyError {
    /// What was sent is no JSON, or not of this form.
    Body {
        /// What is wrong with it.
        error: String,
    },
    /// A field that must be there.
    MissingField {
        /// Its name.
        field: &'static str,
    },
    /// A name that is too long, or a number that is out of its range.
    OutOfRange {
        /// What it is, and its range.
        what: &'static str,
    },
    /// There is no proxy of this name.
    ProxyNotFound,
    /// There is one already.
    ProxyExists,
    /// A way is `upstream` or `downstream`.
    StreamName,
    /// There is no such toxic.
    ToxicType,
    /// The proxy has no toxic of this name.
    ToxicNotFound,
    /// It has one already.
    ToxicExists,
    /// Not a host and a port.
    Address {
        /// What was written.
        address: String,
    },
    /// It is not on loopback, and leave to go beyond was not given.
    NotLoopback {
        /// What was written.
        address: String,
    },
    /// It cannot be listened on.
    Listen {
        /// What was written.
        address: String,
        /// Why.
        error: io::Error,
    },
    /// The relay ends.
    Ending,
}

impl core::fmt::Display for ProxyError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Body { error } => write!(out, "bad request body: {error}"),
            Self::MissingField { field } => write!(out, "missing required field: {field}"),
            Self::OutOfRange { what } => write!(out, "out of range: {what}"),
            Self::ProxyNotFound => write!(out, "proxy not found"),
            Self::ProxyExists => write!(out, "proxy already exists"),
            Self::StreamName => write!(out, "stream was invalid, can be either upstream or downstream"),
            Self::ToxicType => write!(out, "invalid toxic type"),
            Self::ToxicNotFound => write!(out, "toxic not found"),
            Self::ToxicExists => write!(out, "toxic already exists"),
            Self::Address { address } => write!(out, "{address:?} is no HOST:PORT"),
            Self::NotLoopback { address } => {
                write!(out, "{address} is not on loopback, and going beyond it was not asked for")
            }
            Self::Listen { address, error } => write!(out, "cannot listen on {address}: {error}"),
            Self::Ending => write!(out, "the relay ends"),
        }
    }
}

impl core::error::Error for ProxyError {}

impl ProxyError {
    /// What HTTP calls it.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::ProxyNotFound | Self::ToxicNotFound => 404,
            Self::ProxyExists | Self::ToxicExists => 409,
            Self::NotLoopback { .. } => 403,
            Self::Listen { .. } => 500,
            Self::Ending => 503,
            _ => 400,
        }
    }
}

impl From<LaneSpawnError> for ProxyError {
    fn from(_: LaneSpawnError) -> Self {
        Self::Ending
    }
}

/// Why there is no relay of streams.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamRelayError {
    /// No machine.
    Machine(StartError),
    /// No lanes.
    Lanes(LanesStartError),
    /// Its interface cannot be there.
    Interface(ProxyError),
}

impl core::fmt::Display for StreamRelayError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Machine(error) => write!(out, "{error}"),
            Self::Lanes(error) => write!(out, "{error}"),
            Self::Interface(error) => write!(out, "the interface: {error}"),
        }
    }
}

impl core::error::Error for StreamRelayError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Machine(error) => Some(error),
            Self::Lanes(error) => Some(error),
            Self::Interface(error) => Some(error),
        }
    }
}

impl From<StartError> for StreamRelayError {
    fn from(error: StartError) -> Self {
        Self::Machine(error)
    }
}

impl From<LanesStartError> for StreamRelayError {
    fn from(error: LanesStartError) -> Self {
        Self::Lanes(error)
    }
}
