//! What is asked of the kernel and has no safe call in rustix: a new network namespace and its cookie, and
//! the queues of TUN interfaces.
//!
//! Each function is one system call of one thread, and changes no memory of this process but its own.
#![allow(unsafe_code, reason = "the safe bindings lack these calls")]

use super::coalesce::Offload;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{self, IntegerSetter, Updater};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::UnshareFlags;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Longest name of an interface, and the byte that ends it.
const NAME_BYTES: usize = libc::IFNAMSIZ;
const SET_INTERFACE: ioctl::Opcode = ioctl::opcode::write::<libc::c_int>(b'T', 202);
const SET_OFFLOAD: ioctl::Opcode = ioctl::opcode::write::<libc::c_uint>(b'T', 208);
/// The kernel may leave checksums and the cutting of streams of TCP to us.
const OFFLOADS: libc::c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;

/// What the kernel reads and writes besides of requests that are not about flags.
const REST_BYTES: usize = size_of::<libc::ifreq>() - NAME_BYTES - size_of::<libc::c_short>();

/// `struct ifreq` with flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; NAME_BYTES],
    flags: libc::c_short,
    rest: [u8; REST_BYTES],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

/// Opens a queue of the TUN interface of that name in the calling thread's network namespace; the first one
/// makes it.
pub(super) fn open_tun_queue(name: &str, offload: Offload) -> io::Result<OwnedFd> {
    if name.is_empty() || name.len() >= NAME_BYTES || name.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_MULTI_QUEUE;
    let flags = if offload == Offload::On { flags | libc::IFF_VNET_HDR } else { flags };
    // All of them are bits of a short.
    let flags = flags as libc::c_short;
    let mut request = InterfaceRequest { name: [0; NAME_BYTES], flags, rest: [0; REST_BYTES] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    let open = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let queue = rustix::fs::open("/dev/net/tun", open, Mode::empty())?;
    // SAFETY: the kernel reads and writes a `struct ifreq`, of whose size the request is, and which lives
    // until the call returns; every pattern of bits is one.
    unsafe { ioctl::ioctl(&queue, Updater::<SET_INTERFACE, InterfaceRequest>::new(&mut request)) }?;
    if offload == Offload::On {
        // SAFETY: the argument is a number; the kernel reads and writes no memory.
        unsafe { ioctl::ioctl(&queue, IntegerSetter::<SET_OFFLOAD>::new_usize(OFFLOADS as usize)) }?;
    }
    Ok(queue)
}

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
