//! A relay with one proxy, the server behind it, and a small client of HTTP.

use quietcore_net::stream::{ProxyConfig, ProxyCounts, StreamRelay, StreamRelayOptions, Toxic};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) relay: StreamRelay,
    pub(crate) server: TcpListener,
    pub(crate) listen: String,
}

pub(crate) fn options() -> StreamRelayOptions {
    StreamRelayOptions::new("0".parse().expect("a list")).seed(7)
}

impl World {
    /// With a proxy `db` and these toxics.
    pub(crate) fn new(toxics: impl IntoIterator<Item = Toxic>) -> Self {
        let relay = StreamRelay::start(options().interface("127.0.0.1:0")).expect("it starts");
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let upstream = server.local_addr().expect("an address").to_string();
        let shown = relay.create(ProxyConfig::new("db", "localhost:0", upstream)).expect("it listens");
        for toxic in toxics {
            relay.add_toxic("db", toxic).expect("a toxic");
        }
        Self { relay, server, listen: shown.config.listen }
    }

    /// A connection, as both programs have it.
    pub(crate) fn connect(&self) -> [TcpStream; 2] {
        let client = TcpStream::connect(&self.listen).expect("it listens");
        let (server, _) = self.server.accept().expect("it connects");
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(PATIENCE)).expect("it can");
            stream.set_nodelay(true).expect("it can");
        }
        [client, server]
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.ask_as("test", method, path, body)
    }

    /// Status and body; of a certain program.
    pub(crate) fn ask_as(&self, agent: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        ask(
            self.relay.interface_address().expect("it has one"),
            &format!(
                "{method} {path} HTTP/1.1\r\nhost: a\r\nuser-agent: {agent}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
                body.len()
            ),
        )
    }

    /// Of the proxy, when all has ended.
    pub(crate) fn end(self) -> ProxyCounts {
        let counts = self.relay.end();
        let (name, counts) = &counts[0];
        assert_eq!((name.as_str(), counts.open), ("db", 0));
        for way in [counts.upstream, counts.downstream] {
            assert_eq!((way.came, way.held), (way.went + way.dropped, 0), "{counts:?}");
        }
        *counts
    }
}

fn ask(address: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.split(' ').nth(1).expect("a status").parse().expect("a number"), body.trim_end().to_owned())
}

pub(crate) fn read_exactly(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).expect("that many bytes");
    bytes
}

pub(crate) fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("a proper end");
    bytes
}
