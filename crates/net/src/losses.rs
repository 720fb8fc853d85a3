//! What the system lost before a device saw it: packets for which the ring of the interface, or the buffer of
//! the socket that they come in at, had no room. The kernel counts them, and shows the counts below
//! `/proc/net`. No discipline knows of them, so its figures alone would say that nothing was lost.
//!
//! Source: Linux 6.12 net/core/net-procfs.c, net/ipv4/udp.c, by behaviour.

use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;

/// Words of an interface's line behind its name that precede the packets that it did not send.
#[cfg(feature = "tun")]
const BEFORE_UNSENT: usize = 11;
/// Words of a socket's line that precede its inode, and those between that and what it dropped.
const BEFORE_INODE: usize = 9;
const BEFORE_DROPPED: usize = 2;

/// A count that the kernel keeps.
#[derive(Debug)]
pub(crate) struct SystemLosses {
    /// Of the network namespace in which it was opened.
    file: File,
    of: LossPlace,
}

#[derive(Debug)]
enum LossPlace {
    #[cfg(feature = "tun")]
    Interface(String),
    /// Of that inode.
    Socket(u64),
}

impl SystemLosses {
    /// Packets that an interface of the calling thread's network namespace could not give out.
    #[cfg(feature = "tun")]
    pub(crate) fn of_interface(name: &str) -> io::Result<Self> {
        Ok(Self { file: File::open("/proc/thread-self/net/dev")?, of: LossPlace::Interface(name.to_owned()) })
    }

    /// Datagrams for which a socket had no room.
    pub(crate) fn of_socket(socket: &UdpSocket) -> io::Result<Self> {
        let table = if socket.local_addr()?.is_ipv4() { "udp" } else { "udp6" };
        let inode = rustix::fs::fstat(socket)?.st_ino;
        let file = File::open(format!("/proc/thread-self/net/{table}"))?;
        Ok(Self { file, of: LossPlace::Socket(inode) })
    }

    /// The count; `None` if the kernel does not say. Cost: a file is read, of a line for each interface or
    /// socket of the network namespace.
    pub(crate) fn count(&self) -> Option<u64> {
        let text = self.text().ok()?;
        let mut lines = text.lines();
        match &self.of {
            #[cfg(feature = "tun")]
            LossPlace::Interface(name) => lines.find_map(|line| of_interface(line, name)),
            LossPlace::Socket(inode) => lines.find_map(|line| of_socket(line, *inode)),
        }
    }

    fn text(&self) -> io::Result<String> {
        let (mut bytes, mut chunk) = (Vec::new(), [0; 16 << 10]);
        loop {
            match self.file.read_at(&mut chunk, bytes.len() as u64) {
                Ok(0) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(feature = "tun")]
fn of_interface(line: &str, name: &str) -> Option<u64> {
    let (own, counts) = line.split_once(':')?;
    let unsent = counts.split_ascii_whitespace().nth(BEFORE_UNSENT)?;
    (own.trim() == name).then(|| unsent.parse().ok()).flatten()
}

fn of_socket(line: &str, inode: u64) -> Option<u64> {
    let mut words = line.split_ascii_whitespace().skip(BEFORE_INODE);
    let is_own = words.next()?.parse() == Ok(inode);
    let dropped = words.nth(BEFORE_DROPPED)?;
    is_own.then(|| dropped.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{SystemLosses, of_interface, of_socket};
    use std::net::UdpSocket;

    /// Goal: the count is that of the interface or socket asked for, and no other number of its line. Method:
    /// lines as the kernel writes them, of which no two numbers are alike.
    #[test]
    fn counts_are_found_in_their_lines() {
        let line = "  eth1: 1 2 3 4 5 6 7 8    9 10 11 12 13 14 15 16";
        assert_eq!(of_interface(line, "eth1"), Some(12));
        assert_eq!((of_interface(line, "eth10"), of_interface(line, "eth")), (None, None));
        assert_eq!(of_interface("eth1:21 2 3 4 5 6 7 8 9 10 11 22 13 14 15 16", "eth1"), Some(22));
        assert_eq!(of_interface(" face |bytes    packets errs drop fifo", "eth1"), None);
        let line = "  312: 0100007F:1B58 0100007F:1B59 01 00000000:00000000 00:00000000 00000000     0        \
                    0 70421 2 00000000b17d2d9f 256001       ";
        assert_eq!((of_socket(line, 70_421), of_socket(line, 7_042)), (Some(256_001), None));
        assert_eq!(of_socket("   sl  local_address rem_address   st tx_queue", 70_421), None);
    }

    /// Goal: what a socket has no room for is counted, from 0 on, in whichever table it is. Method: a socket
    /// that nothing reads, with more datagrams than any buffer of it holds.
    #[test]
    fn what_a_socket_has_no_room_for_is_counted() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A host may be without IPv6.
            let Ok(full) = UdpSocket::bind(address) else { continue };
            let losses = SystemLosses::of_socket(&full).expect("there is a table");
            assert_eq!(losses.count(), Some(0));
            rustix::net::sockopt::set_socket_recv_buffer_size(&full, 1 << 12).expect("any size is taken");
            let sender = UdpSocket::bind(address).expect("a port is free");
            let to = full.local_addr().expect("it is bound");
            for _ in 0..100 {
                sender.send_to(&[0; 1_000], to).expect("it is sent");
            }
            full.set_nonblocking(true).expect("it is a socket");
            let held = (0..).take_while(|_| full.recv(&mut [0; 1_000]).is_ok()).count() as u64;
            assert!((1..100).contains(&held), "{held}");
            assert_eq!(losses.count(), Some(100 - held));
        }
    }
}
