//! A descriptor that tokio's driver waits for.
#![allow(unsafe_code, reason = "tokio wants a promise that the descriptor stays what it is")]

use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers `descriptor` with the driver of the runtime that is entered; it is closed with the result.
pub(super) fn register(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped; the `AsyncFd` owns it, and
    // this crate neither takes it out again nor closes its number.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    registered.map_err(io::Error::from)
}
