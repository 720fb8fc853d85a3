//! Addresses as they are written: `HOST:PORT`, with brackets around IPv6, no host for all of this machine's.
//!
//! Invariant: without leave to go beyond it, nothing but loopback is listened on or connected to, whatever a
//! name is resolved to.

use super::error::ProxyError;
use crate::relay::Reach;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The longest name of a host.
const NAME_MAX: usize = 253;

/// An address that was looked at and not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostPort {
    host: String,
    port: u16,
}

fn is_loopback(host: &str) -> bool {
    let numbers = host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    numbers || host.eq_ignore_ascii_case("localhost")
}

impl HostPort {
    pub(super) fn parse(text: &str, reach: Reach) -> Result<Self, ProxyError> {
        let unreadable = || ProxyError::Address { address: text.to_owned() };
        let (host, port) = text.rsplit_once(':').ok_or_else(unreadable)?;
        let port = port.parse().map_err(|_| unreadable())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if bare.is_none() && host.contains(':') || host.len() > NAME_MAX {
            return Err(unreadable());
        }
        let host = bare.unwrap_or(host);
        if reach == Reach::Loopback && !is_loopback(host) {
            return Err(ProxyError::NotLoopback { address: text.to_owned() });
        }
        Ok(Self { host: host.to_owned(), port })
    }

    /// As it can be resolved.
    pub(super) fn parts(&self) -> (&str, u16) {
        (if self.host.is_empty() { "::" } else { &self.host }, self.port)
    }

    /// What can be listened on, or connected to, of what it was resolved to; IPv4 first, as it is usual.
    pub(super) fn usable(found: impl Iterator<Item = SocketAddr>, reach: Reach) -> Vec<SocketAddr> {
        let is_usable =
            |address: &SocketAddr| reach == Reach::Beyond || is_loopback(&address.ip().to_string());
        let mut usable: Vec<_> = found.filter(is_usable).collect();
        usable.sort_by_key(SocketAddr::is_ipv6);
        usable
    }

    /// Resolved, to be listened on. Waits for a resolver where it is a name of another machine.
    pub(super) fn to_listen(&self, reach: Reach) -> io::Result<Vec<SocketAddr>> {
        if self.host.is_empty() {
            // The first one takes connections of both versions, where there are both.
            let all = [IpAddr::from([0_u16; 8]), IpAddr::from([0_u8; 4])];
            return Ok(all.map(|ip| SocketAddr::new(ip, self.port)).into());
        }
        let usable = Self::usable(self.parts().to_socket_addrs()?, reach);
        if usable.is_empty() {
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "it has no address here"));
        }
        Ok(usable)
    }
}

#[cfg(test)]
mod tests {
    use super::HostPort;
    use crate::relay::Reach;

    /// Goal: what is on loopback is let through, other addresses only with leave, and what is no address
    /// never.
    #[test]
    fn addresses_are_on_loopback() {
        let parsed = |text: &str, reach| {
            let parsed = HostPort::parse(text, reach).map_err(|error| error.to_string());
            parsed.map(|parsed| (parsed.parts().0.to_owned(), parsed.parts().1))
        };
        for (text, host) in [
            ("127.0.0.1:80", "127.0.0.1"),
            ("127.8.0.1:80", "127.8.0.1"),
            ("LocalHost:80", "LocalHost"),
            ("[::1]:80", "::1"),
            ("[::ffff:127.0.0.1]:80", "::ffff:127.0.0.1"),
        ] {
            assert_eq!(parsed(text, Reach::Loopback), Ok((host.to_owned(), 80)), "{text}");
        }
        for (text, host) in [(":80", "::"), ("0.0.0.0:80", "0.0.0.0"), ("db.example:80", "db.example")] {
            let refused = parsed(text, Reach::Loopback).unwrap_err();
            assert!(refused.contains("not on loopback"), "{refused}");
            assert_eq!(parsed(text, Reach::Beyond), Ok((host.to_owned(), 80)), "{text}");
        }
        for text in ["", "80", "::1:80", "localhost:", "localhost:65536", "localhost:x", "[::1:80"] {
            assert!(parsed(text, Reach::Beyond).unwrap_err().contains("HOST:PORT"), "{text}");
        }
    }

    /// Goal: a name that leads elsewhere is of no use on loopback.
    #[test]
    fn what_is_resolved_is_on_loopback() {
        let found = ["[::1]:5", "192.0.2.1:5", "127.0.0.1:5"].map(|text| text.parse().unwrap());
        let usable = |reach| {
            let usable = HostPort::usable(found.into_iter(), reach);
            usable.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(usable(Reach::Loopback), ["127.0.0.1:5", "[::1]:5"]);
        assert_eq!(usable(Reach::Beyond), ["192.0.2.1:5", "127.0.0.1:5", "[::1]:5"]);
    }
}
