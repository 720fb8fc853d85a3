//! What programs see of toxics: bytes, their order, delays from below, and how connections end.

use super::world::{PATIENCE, World, options, read_all, read_exactly};
use quietcore_net::stream::{ProxyConfig, ProxyError, StreamRelay, StreamWay, Toxic, ToxicKind};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// Goal: without toxics all bytes pass, both ways at once, and one end does not end the other way. Method:
/// more than sockets and links hold, each direction in a thread of its own.
#[test]
fn streams_pass_both_ways() {
    let world = World::new([]);
    let [client, server] = world.connect();
    let length = 8 << 20;
    let send = |stream: &TcpStream| {
        let mut stream = stream.try_clone().expect("a clone");
        thread::spawn(move || {
            stream.write_all(&pattern(length)).expect("it takes all");
            stream.shutdown(Shutdown::Write).expect("it ends");
        })
    };
    let sends = [send(&client), send(&server)];
    let receive = |mut stream: TcpStream| thread::spawn(move || read_all(&mut stream) == pattern(length));
    for received in [receive(client), receive(server)] {
        assert!(received.join().expect("no panic"));
    }
    for thread in sends {
        thread.join().expect("no panic");
    }
    let counts = world.end();
    assert_eq!((counts.connections, counts.resets, counts.unreached), (1, 0, 0));
    assert_eq!((counts.upstream.went, counts.downstream.went), (length as u64, length as u64));
}

/// Goal: the end of one way is carried, and the other way goes on after it. Method: a server that answers
/// only when the request has ended.
#[test]
fn a_half_closed_connection_goes_on() {
    let world = World::new([Toxic::on(StreamWay::Upstream, ToxicKind::SlowClose { delay: 30 })]);
    let [mut client, mut server] = world.connect();
    let started = Instant::now();
    client.write_all(b"question").expect("it takes it");
    client.shutdown(Shutdown::Write).expect("it ends");
    assert_eq!(read_all(&mut server), b"question");
    assert!(started.elapsed() >= Duration::from_millis(30), "its end is slow");
    server.write_all(b"answer").expect("it takes it");
    drop(server);
    assert_eq!(read_all(&mut client), b"answer");
    assert_eq!(world.end().resets, 0);
}

/// Goal: a delay is at least what it was told, on its way alone; a toxic that is added holds for connections
/// that are there. Method: an echo before and after.
#[test]
fn latency_is_not_early() {
    let world = World::new([]);
    let [mut client, mut server] = world.connect();
    let mut turn = || {
        let started = Instant::now();
        client.write_all(b"x").expect("it takes it");
        read_exactly(&mut server, 1);
        server.write_all(b"y").expect("it takes it");
        read_exactly(&mut client, 1);
        started.elapsed()
    };
    turn();
    for way in StreamWay::BOTH {
        let toxic = Toxic::on(way, ToxicKind::Latency { latency: 40, jitter: 10 });
        world.relay.add_toxic("db", toxic).expect("a toxic");
    }
    for _ in 0..3 {
        assert!(turn() >= Duration::from_millis(60));
    }
    assert_eq!(world.ask("POST", "/reset", ""), (204, String::new()));
    turn();
    world.end();
}

/// Goal: a rate is not exceeded, a stream that is sliced, stalled and delayed is still the same stream.
/// Method: all at once; the rate's time from below.
#[test]
fn toxics_change_no_byte() {
    let kinds = [
        ToxicKind::Slicer { average_size: 1000, size_variation: 900, delay: 10 },
        ToxicKind::Loss { percent: 5.0, rto: 1 },
        ToxicKind::Latency { latency: 2, jitter: 2 },
        ToxicKind::Bandwidth { rate: 2_000 },
    ];
    let world = World::new(kinds.map(Toxic::new));
    let [mut client, mut server] = world.connect();
    let started = Instant::now();
    let sends = thread::spawn(move || {
        server.write_all(&pattern(300_000)).expect("it takes all");
    });
    assert!(read_all(&mut client) == pattern(300_000));
    assert!(started.elapsed() >= Duration::from_millis(150), "2 MB/s");
    sends.join().expect("no panic");
    let counts = world.end();
    assert!(counts.downstream.stalls > 0, "{counts:?}");
}

/// Goal: data that are limited end with a proper end, and the server is told. Method: fewer than are sent.
#[test]
fn limited_data_end_properly() {
    let world = World::new([Toxic::new(ToxicKind::LimitData { bytes: 1000 })]);
    let [mut client, mut server] = world.connect();
    client.write_all(b"question").expect("it takes it");
    read_exactly(&mut server, 8);
    server.write_all(&pattern(1500)).expect("it takes it");
    assert_eq!(read_all(&mut client), pattern(1000));
    assert_eq!(read_all(&mut server), b"");
    let counts = world.end();
    assert_eq!((counts.downstream.went, counts.downstream.dropped), (1000, 500));
}

/// Goal: a timeout lets nothing through and closes; a reset is a reset on both sides. Method: what reads see.
#[test]
fn connections_are_closed_and_reset() {
    let world = World::new([Toxic::new(ToxicKind::Timeout { timeout: 50 })]);
    let started = Instant::now();
    let [mut client, mut server] = world.connect();
    server.write_all(b"lost").expect("it takes it");
    assert_eq!(read_all(&mut client), b"");
    assert!(started.elapsed() >= Duration::from_millis(50), "begun when the server was reached");
    assert_eq!(world.end().resets, 0);
    let world = World::new([Toxic::new(ToxicKind::ResetPeer { timeout: 10 })]);
    let streams = world.connect();
    for mut stream in streams {
        let error = stream.read(&mut [0; 10]).expect_err("it is reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(world.end().resets, 1);
}

/// Goal: a reset of a program is carried to the other side; a server that is not there resets its client.
#[test]
fn resets_are_carried() {
    let world = World::new([]);
    let [client, mut server] = world.connect();
    // Closed with unread data, it is reset.
    server.write_all(b"unread").expect("it takes it");
    client.peek(&mut [0; 10]).expect("they arrive");
    drop(client);
    let error = server.read(&mut [0; 10]).expect_err("it is reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let World { relay, server, listen } = world;
    drop(server);
    let mut client = TcpStream::connect(&listen).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("it can");
    assert_eq!(client.read(&mut [0; 10]).expect_err("it is reset").kind(), ErrorKind::ConnectionReset);
    let counts = relay.end()[0].1;
    assert_eq!((counts.connections, counts.resets, counts.unreached), (2, 1, 1));
}

/// Goal: a receiver that does not read slows the sender down, and no more is held than may be. Method: writes
/// until nothing is taken any more, then all is read.
#[test]
fn a_slow_receiver_slows_its_sender() {
    let world = World::new([Toxic::on(StreamWay::Upstream, ToxicKind::Bandwidth { rate: 0 })]);
    let [mut client, mut server] = world.connect();
    client.set_write_timeout(Some(Duration::from_millis(300))).expect("it can");
    let mut sent = 0;
    while let Ok(length) = client.write(&pattern(251 * 100)[sent % 251..]) {
        sent += length;
        assert!(sent < 64 << 20, "nothing slows it down");
    }
    let held = world.relay.counts()[0].1.upstream.held;
    assert!(held > 0 && held <= 128 << 10, "{held}");
    assert_eq!(world.ask("DELETE", "/proxies/db/toxics/bandwidth_upstream", "").0, 204);
    client.shutdown(Shutdown::Write).expect("it ends");
    assert!(read_all(&mut server) == pattern(sent));
    assert_eq!(world.end().upstream.went, sent as u64);
}

/// Goal: when a relay ends its connections are closed, what is held is counted, and its port is free.
#[test]
fn an_end_leaves_nothing() {
    let world = World::new([Toxic::new(ToxicKind::Latency { latency: 3_600_000, jitter: 0 })]);
    let [mut client, mut server] = world.connect();
    server.write_all(b"late").expect("it takes it");
    while world.relay.counts()[0].1.downstream.held < 4 {
        thread::yield_now();
    }
    let listen = world.listen.clone();
    assert_eq!(world.end().downstream.dropped, 4);
    assert_eq!((read_all(&mut client), read_all(&mut server)), (vec![], vec![]));
    drop(TcpListener::bind(listen).expect("it is free"));
}

/// Goal: nothing beyond loopback is listened on or reached, unless that is asked for.
#[test]
fn a_relay_stays_on_loopback() {
    let relay = StreamRelay::start(options()).expect("it starts");
    for (listen, upstream) in [("0.0.0.0:0", "127.0.0.1:1"), ("127.0.0.1:0", "192.0.2.1:1")] {
        let refused = relay.create(ProxyConfig::new("a", listen, upstream)).expect_err("not on loopback");
        assert!(matches!(refused, ProxyError::NotLoopback { .. }), "{refused}");
    }
    drop(relay);
    assert!(StreamRelay::start(options().interface("0.0.0.0:0")).is_err());
    let relay = StreamRelay::start(options().beyond_loopback()).expect("it starts");
    relay.create(ProxyConfig::new("a", "0.0.0.0:0", "192.0.2.1:1")).expect("it was asked for");
}

/// Goal: the same seed gives the same delays. Method: the toxicity of a half: which of the connections have
/// it.
#[test]
fn chance_is_the_seeds() {
    let closed = || {
        let half = Toxic { toxicity: 0.5, ..Toxic::new(ToxicKind::LimitData { bytes: 0 }) };
        let world = World::new([half]);
        let is_closed: Vec<bool> = (0..20)
            .map(|_| {
                let [mut client, mut server] = world.connect();
                server.write_all(b"x").expect("it takes it");
                drop(server);
                read_all(&mut client).is_empty()
            })
            .collect();
        world.end();
        is_closed
    };
    let first = closed();
    assert!(first.contains(&true) && first.contains(&false), "{first:?}");
    assert_eq!(first, closed());
}
