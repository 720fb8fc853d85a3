//! What is asked of the kernel and has no safe call in rustix: a new network namespace, and its cookie.
//!
//! Each function is one system call of one thread, and changes no memory of this process but its own.
#![allow(unsafe_code, reason = "the safe bindings lack these calls")]

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::UnshareFlags;
use std::io;
use std::os::fd::AsRawFd;

/// Moves the calling thread, and no other, into a new network namespace.
pub(super) fn enter_new_network() -> io::Result<()> {
    // SAFETY: what is unshared is the network namespace, which no memory and no descriptor refers to; with
    // the table of descriptors (`FILES`) descriptors of other threads would mean something else here.
    Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// The number of the calling thread's network namespace, which the kernel gives to no other one until it is
/// booted again; 0 before Linux 5.14, which has none.
pub(super) fn network_cookie() -> io::Result<u64> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `cookie`, whose size that is, and the new length to
    // `length`; both live until the call returns, and the descriptor is open.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    match io::Error::last_os_error() {
        _ if result == 0 => Ok(cookie),
        error if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(0),
        error => Err(error),
    }
}
