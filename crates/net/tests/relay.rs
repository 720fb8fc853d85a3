//! The relay, on real sockets of loopback: what goes in comes out once, at the peer and nowhere else.

mod common;

use common::{PATIENCE, lanes};
use proptest::prelude::*;
use quietcore::net::{
    Control, DeviceError, Network, Relay, RelayEnd, RelayError, RelayOptions, RelaySide, RelayStatistics,
};
use quietcore::qdisc::filter::U32Key;
use quietcore::qdisc::{
    Chance, Fifo, FifoLimit, Netem, NetemDelay, NetemLoss, NetemSettings, Packet, Probability,
};
use quietcore::{Machine, Nanos};
use quietcore_testing::left_out;
use std::error::Error;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const SIDES: [RelaySide; 2] = [RelaySide::A, RelaySide::B];

fn start() -> (Network, &'static Machine) {
    common::start(lanes("0-1"))
}

fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("loopback has ports");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    socket
}

fn end(listen: &str, peer: &UdpSocket) -> RelayEnd {
    RelayEnd { listen: listen.parse().expect("an address"), peer: peer.local_addr().expect("bound") }
}

/// A relay between two sockets.
struct Bench {
    relay: Relay,
    peers: [UdpSocket; 2],
}

impl Bench {
    fn new((network, machine): &(Network, &'static Machine)) -> Self {
        Self::at((network, machine), ["127.0.0.1:0"; 2])
    }

    fn at((network, machine): (&Network, &'static Machine), addresses: [&str; 2]) -> Self {
        let peers = addresses.map(socket);
        let options = RelayOptions::new(end(addresses[0], &peers[0]), end(addresses[1], &peers[1]));
        Self { relay: Relay::start(network, machine, options).expect("starts"), peers }
    }

    fn send(&self, side: RelaySide, payload: &[u8]) {
        let sent = self.peers[side as usize].send_to(payload, self.relay.address(side));
        assert_eq!(sent.expect("loopback takes it"), payload.len());
    }

    /// What the peer of that side got.
    fn next(&self, side: RelaySide) -> Vec<u8> {
        let mut buffer = vec![0; 65_536];
        let (length, from) = self.peers[side as usize].recv_from(&mut buffer).expect("something comes");
        assert_eq!(from, self.relay.address(side), "the relay answers from where it listens");
        buffer.truncate(length);
        buffer
    }

    /// Waits for figures that must come.
    fn wait(&self, side: RelaySide, holds: impl Fn(&RelayStatistics) -> bool) -> RelayStatistics {
        let end = Instant::now() + PATIENCE;
        loop {
            let statistics = self.relay.statistics(side);
            if holds(&statistics) {
                return statistics;
            }
            assert!(Instant::now() < end, "{statistics:?} in the end");
            thread::yield_now();
        }
    }
}

fn is_silent(socket: &UdpSocket) -> bool {
    socket.set_nonblocking(true).expect("possible");
    let heard = socket.recv_from(&mut [0; 10]);
    socket.set_nonblocking(false).expect("possible");
    matches!(heard, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn netem(
    machine: &Machine,
    settings: NetemSettings,
) -> impl quietcore::qdisc::Qdisc<quietcore::qdisc::IpPacket> + use<> {
    let mut state = 1_u64;
    let random = move || {
        // Any spread numbers do (the multiplier is Knuth's).
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 32) as u32
    };
    Netem::new(settings, random, machine.now()).expect("they go together")
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..1_200), 1..30)
}

/// Goal: what comes in at an end is asked by the filters of its device, behind the sender's discipline.
/// Method: three datagrams, of which those of 100 bytes are dropped where they come in; what is counted
/// where.
#[test]
fn what_comes_in_is_filtered() {
    let started = start();
    let bench = Bench::new(&started);
    let control = Control::new(started.1, 1);
    for (side, name) in SIDES.into_iter().zip(["a", "b"]) {
        control.add_device(name, Arc::clone(bench.relay.device(side))).expect("another name");
    }
    for line in [
        "tc qdisc add dev a root handle 1: pfifo",
        "tc qdisc add dev b clsact",
        "tc filter add dev b ingress basic match 'meta(pkt_len gt 100)' action drop",
    ] {
        control.execute_line(line).expect(line);
    }
    [10, 100, 20].into_iter().for_each(|length| bench.send(RelaySide::A, &vec![7; length]));
    assert_eq!([(); 2].map(|()| bench.next(RelaySide::B).len()), [10, 20]);
    bench.send(RelaySide::B, &[7; 100]);
    assert_eq!(bench.next(RelaySide::A).len(), 100, "the other way is another one");
    let [sent, came] = [("a", "1:"), ("b", "ffff:")].map(|(device, handle)| {
        let shown = control.execute_line(&format!("tc -s qdisc show dev {device} handle {handle}"));
        shown.expect("it can be shown").to_string()
    });
    assert!(sent.contains(" 3 pkt (dropped 0,"), "{sent}");
    assert!(came.contains(" 3 pkt (dropped 1,"), "{came}");
    assert_eq!(SIDES.map(|side| bench.relay.device(side).filtered()), [0, 1]);
    drop(bench);
    started.1.shutdown();
}

/// Goal: datagrams arrive as they were sent, in order, both ways at once, and those of strangers do not.
/// Method: random datagrams of both peers and of a stranger, mixed.
#[test]
fn datagrams_of_the_peers_arrive_and_no_others() {
    let shared = start();
    let payloads = || (payloads(), payloads(), payloads());
    proptest!(ProptestConfig::with_cases(40), |((there, back, strange) in payloads())| {
        let bench = Bench::new(&shared);
        let stranger = socket("127.0.0.1:0");
        for at in 0..there.len().max(back.len()).max(strange.len()) {
            if let Some(payload) = there.get(at) {
                bench.send(RelaySide::A, payload);
            }
            if let Some(payload) = back.get(at) {
                bench.send(RelaySide::B, payload);
            }
            if let Some(payload) = strange.get(at) {
                stranger.send_to(payload, bench.relay.address(SIDES[at % 2])).expect("loopback takes it");
                // A peer at the other's door is a stranger, too.
                bench.peers[0].send_to(payload, bench.relay.address(RelaySide::B)).expect("as above");
            }
        }
        for payload in &there {
            prop_assert_eq!(&bench.next(RelaySide::B), payload);
        }
        for payload in &back {
            prop_assert_eq!(&bench.next(RelaySide::A), payload);
        }
        let at = |side: usize| (strange.len() + 1 - side) / 2 + side * strange.len();
        let a = bench.wait(RelaySide::A, |a| a.strangers == at(0) as u64);
        let b = bench.wait(RelaySide::B, |b| b.strangers == at(1) as u64);
        prop_assert!(is_silent(&stranger) && bench.peers.iter().all(is_silent));
        prop_assert_eq!([a.received, b.received], [there.len() as u64, back.len() as u64]);
        prop_assert_eq!([a.sent, b.sent], [back.len() as u64, there.len() as u64]);
        let bytes = |all: &[Vec<u8>]| all.iter().map(|payload| payload.len() as u64).sum::<u64>();
        prop_assert_eq!([a.received_bytes, b.sent_bytes], [bytes(&there); 2]);
        prop_assert_eq!([b.received_bytes, a.sent_bytes], [bytes(&back); 2]);
        prop_assert_eq!((a.refused, a.unsent, b.refused, b.unsent), (0, 0, 0, 0));
    });
    shared.1.shutdown();
}

/// Goal: no more leave than came in, times the duplicates that were asked for. Method: netem that duplicates
/// and loses at random; the discipline's own count, the relay's and the peer's are one.
#[test]
fn what_leaves_is_what_came_times_duplicates() {
    let shared = start();
    let chance = || {
        (0..=u32::MAX)
            .prop_map(|share| Chance { probability: Probability::from_share(share), ..Chance::default() })
    };
    let given = || (payloads(), chance(), chance());
    proptest!(ProptestConfig::with_cases(30), |((sent, duplicate, loss) in given())| {
        let bench = Bench::new(&shared);
        let loss = NetemLoss::Random(loss);
        let settings = NetemSettings { duplicate, loss, ..NetemSettings::default() };
        bench.relay.device(RelaySide::A).graft(0, netem(shared.1, settings));
        for payload in &sent {
            bench.send(RelaySide::A, payload);
        }
        bench.wait(RelaySide::A, |a| a.received == sent.len() as u64);
        let queue = bench.relay.device(RelaySide::A).statistics(0).qdisc;
        let b = bench.wait(RelaySide::B, |b| b.sent >= queue.sent_packets);
        let queue = bench.relay.device(RelaySide::A).statistics(0).qdisc;
        prop_assert_eq!((queue.qlen, b.sent), (0, queue.sent_packets));
        prop_assert!(b.sent <= 2 * sent.len() as u64, "{:?} of {}", b, sent.len());
        let mut at = 0;
        for _ in 0..b.sent {
            // In order; some twice, some not at all.
            let payload = bench.next(RelaySide::B);
            let found = sent[at..].iter().position(|one| *one == payload);
            prop_assert!(found.is_some(), "{:?} after {} of {:?}", payload, at, sent);
            at += found.unwrap_or_default();
        }
        prop_assert!(is_silent(&bench.peers[1]));
    });
    shared.1.shutdown();
}

/// Goal: all are doubled if that is asked for, none more often. Method: netem that always duplicates.
#[test]
fn always_duplicated_is_exactly_twice() {
    let shared = start();
    let bench = Bench::new(&shared);
    let duplicate = Chance { probability: Probability::ALWAYS, ..Chance::default() };
    let settings = NetemSettings { duplicate, ..NetemSettings::default() };
    bench.relay.device(RelaySide::B).graft(0, netem(shared.1, settings));
    for number in 0..50_u8 {
        bench.send(RelaySide::B, &[number; 100]);
        assert_eq!([(); 2].map(|()| bench.next(RelaySide::A)), [vec![number; 100], vec![number; 100]]);
    }
    assert_eq!(bench.relay.statistics(RelaySide::A).sent, 100);
    assert!(bench.peers.iter().all(is_silent));
    drop(bench);
    shared.1.shutdown();
}

/// Goal: disciplines act on what passes, and filters see it as packets of the peer. Method: a delay, which no
/// datagram undercuts, and a queue of nothing.
#[test]
fn disciplines_act_on_datagrams() {
    let shared = start();
    let bench = Bench::new(&shared);
    let delay = NetemDelay { latency: Nanos(20_000_000), ..NetemDelay::default() };
    let settings = NetemSettings { delay, ..NetemSettings::default() };
    bench.relay.device(RelaySide::A).graft(0, netem(shared.1, settings));
    for number in 0..5 {
        let began = Instant::now();
        bench.send(RelaySide::A, &[number]);
        assert_eq!(bench.next(RelaySide::B), [number]);
        assert!(began.elapsed() >= Duration::from_millis(20), "it came early");
    }
    let queue = bench.relay.device(RelaySide::A).statistics(0).qdisc;
    assert_eq!((queue.sent_packets, queue.sent_bytes), (5, 5 * 29), "headers count");
    bench.relay.device(RelaySide::A).graft(0, Fifo::new(FifoLimit::Packets(0)));
    bench.send(RelaySide::A, b"lost");
    bench.wait(RelaySide::A, |a| a.received == 6);
    assert_eq!(bench.relay.device(RelaySide::A).statistics(0).qdisc.dropped, 1);
    assert!(is_silent(&bench.peers[1]));
    drop(bench);
    shared.1.shutdown();
}

/// Goal: a queue's memory is bounded in bytes, whatever its limit in packets; what is above is counted, and
/// no discipline sees it. Method: a delay that no datagram of the test outlives, and room for two of five.
#[test]
fn memory_is_bounded_in_bytes() {
    let shared = start();
    let peers = ["127.0.0.1:0"; 2].map(socket);
    let options = RelayOptions::new(end("127.0.0.1:0", &peers[0]), end("127.0.0.1:0", &peers[1]));
    let options = options.memory_max(150_000);
    let bench = Bench { relay: Relay::start(&shared.0, shared.1, options).expect("starts"), peers };
    let delay = NetemDelay { latency: Nanos(3_600_000_000_000), ..NetemDelay::default() };
    let settings = NetemSettings { delay, limit: u32::MAX, ..NetemSettings::default() };
    bench.relay.device(RelaySide::A).graft(0, netem(shared.1, settings));
    for number in 1..=5 {
        bench.send(RelaySide::A, &[7; 60_000]);
        bench.wait(RelaySide::A, |a| a.received == number);
    }
    let queue = bench.relay.device(RelaySide::A).statistics(0);
    assert_eq!((queue.over_memory, queue.qdisc.qlen, queue.qdisc.dropped), (3, 2, 0));
    drop(bench);
    shared.1.shutdown();
}

/// Goal: filters find the ports of both ends. Method: a discipline that takes what comes from one port and
/// goes to the other.
#[test]
fn filters_see_the_peer() {
    #[derive(Debug)]
    struct OnlyBetween([u16; 2], Fifo<quietcore::qdisc::IpPacket>);

    impl quietcore::qdisc::Qdisc<quietcore::qdisc::IpPacket> for OnlyBetween {
        fn kind(&self) -> &'static str {
            "only"
        }
        fn enqueue(&mut self, now: Nanos, packet: quietcore::qdisc::IpPacket) -> quietcore::qdisc::Enqueued {
            let [from, to] = self.0;
            let between = U32Key {
                value: u32::from(from) << 16 | u32::from(to),
                mask: u32::MAX,
                offset: 20,
                next_header: false,
            };
            if between.is_met(packet.network_bytes(), 0, 0) == Some(true) {
                self.1.enqueue(now, packet)
            } else {
                quietcore::qdisc::Enqueued::Dropped
            }
        }
        fn dequeue(&mut self, now: Nanos) -> quietcore::qdisc::Dequeued<quietcore::qdisc::IpPacket> {
            self.1.dequeue(now)
        }
        fn reset(&mut self, now: Nanos) {
            self.1.reset(now);
        }
        fn statistics(&self) -> quietcore::qdisc::Statistics {
            self.1.statistics()
        }
    }

    let shared = start();
    let bench = Bench::new(&shared);
    let port = bench.peers[0].local_addr().expect("bound").port();
    let listen = bench.relay.address(RelaySide::A).port();
    let only = |ports| OnlyBetween(ports, Fifo::new(FifoLimit::Packets(10)));
    for (sent, ports) in [[port ^ 1, listen], [port, listen ^ 1]].into_iter().enumerate() {
        bench.relay.device(RelaySide::A).graft(0, only(ports));
        bench.send(RelaySide::A, b"another port's");
        bench.wait(RelaySide::A, |a| a.received == sent as u64 + 1);
    }
    bench.relay.device(RelaySide::A).graft(0, only([port, listen]));
    bench.send(RelaySide::A, b"its own");
    assert_eq!(bench.next(RelaySide::B), b"its own");
    drop(bench);
    shared.1.shutdown();
}

/// Goal: a peer that is not there is no error. Method: send to a closed port until the kernel tells, then
/// open it again.
#[test]
fn a_peer_that_is_away_is_counted_and_may_come_back() {
    let shared = start();
    let Bench { relay, peers: [one, other] } = Bench::new(&shared);
    let address = other.local_addr().expect("bound");
    drop(other);
    let bench = Bench { relay, peers: [one, socket("127.0.0.1:0")] };
    let end = Instant::now() + PATIENCE;
    while bench.relay.statistics(RelaySide::B).refused == 0 {
        bench.send(RelaySide::A, b"anybody there?");
        assert!(Instant::now() < end, "nobody was told: {:?}", bench.relay.statistics(RelaySide::B));
        thread::yield_now();
    }
    let Bench { relay, peers: [one, _] } = bench;
    let other = UdpSocket::bind(address).expect("it was ours");
    other.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let bench = Bench { relay, peers: [one, other] };
    bench.send(RelaySide::A, b"and now?");
    while bench.next(RelaySide::B) != b"and now?" {}
    drop(bench);
    shared.1.shutdown();
}

/// Goal: a refusal that is noticed while nothing more is sent is counted, at the end that sent. Method: two
/// datagrams to a peer, which then closes, and a third; no later send could notice what became of it.
#[test]
fn a_refusal_is_counted_without_another_send() {
    let shared = start();
    let mut bench = Bench::new(&shared);
    for payload in [b"one", b"two"] {
        bench.send(RelaySide::A, payload);
        assert_eq!(bench.next(RelaySide::B), payload);
    }
    drop(std::mem::replace(&mut bench.peers[1], socket("127.0.0.1:0")));
    bench.send(RelaySide::A, b"anybody there?");
    // The kernel took the third, so it is sent; that no program listened came back afterwards, once.
    let b = bench.wait(RelaySide::B, |b| b.refused > 0);
    assert_eq!((b.sent, b.refused, b.unsent), (3, 1, 0));
    assert_eq!(bench.relay.statistics(RelaySide::A).refused, 0);
    drop(bench);
    shared.1.shutdown();
}

/// Goal: a dropped relay is gone. Method: its addresses are free at once, and its devices, which the test
/// still has, send nothing.
#[test]
fn a_dropped_relay_has_no_sockets() {
    let shared = start();
    for _ in 0..20 {
        let bench = Bench::new(&shared);
        let addresses = SIDES.map(|side| bench.relay.address(side));
        for address in addresses {
            let taken = UdpSocket::bind(address).expect_err("nobody else can have it");
            assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        }
        bench.send(RelaySide::A, b"on its way");
        let device = bench.relay.device(RelaySide::A).clone();
        let Bench { relay, peers } = bench;
        drop(relay);
        let _free = addresses.map(|address| UdpSocket::bind(address).expect("it is free"));
        let before = device.statistics(0).qdisc.sent_packets;
        assert!(device.send(quietcore::qdisc::IpPacket::new(vec![0; 60])).is_accepted());
        assert_eq!(device.statistics(0).qdisc.sent_packets, before + 1, "it went nowhere");
        drop(peers);
    }
    shared.1.shutdown();
}

/// Goal: both versions of IP, also one at each end. Method: a datagram each way, a long one.
#[test]
fn ends_may_differ_in_version() {
    if let Err(error) = UdpSocket::bind("[::1]:0") {
        return left_out("ends_may_differ_in_version", format_args!("no IPv6: {error}"));
    }
    let (network, machine) = start();
    for addresses in [["[::1]:0", "[::1]:0"], ["127.0.0.1:0", "[::1]:0"]] {
        let bench = Bench::at((&network, machine), addresses);
        for side in SIDES {
            let other = SIDES[1 - side as usize];
            bench.send(side, &[9; 60_000]);
            assert_eq!(bench.next(other), [9; 60_000]);
        }
    }
    machine.shutdown();
}

/// Goal: each refusal has its reason, which names the address. Method: one of each.
#[test]
fn refusals() {
    let (network, machine) = start();
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let peer = socket("127.0.0.1:0");
    let good = end("127.0.0.1:0", &peer);
    let of =
        |listen, peer| RelayOptions::new(good, RelayEnd { listen: address(listen), peer: address(peer) });
    let refused = |options| {
        let error = Relay::start(&network, machine, options).expect_err("it must not");
        assert!(error.source().is_none(), "{error}");
        error.to_string()
    };
    for (listen, peer, outside) in [
        ("0.0.0.0:0", "127.0.0.1:9", "0.0.0.0:0"),
        ("127.0.0.1:0", "192.0.2.1:9", "192.0.2.1:9"),
        ("[::]:0", "[::1]:9", "[::]:0"),
    ] {
        let why = format!("{outside} is not on loopback, and `beyond_loopback` was not asked for");
        assert_eq!(refused(of(listen, peer)), why);
    }
    let no_peer = |peer| format!("{peer} is no peer: it must be the address and port of one program");
    for peer in ["127.0.0.1:0", "0.0.0.0:9", "224.0.0.1:9", "255.255.255.255:9"] {
        assert_eq!(refused(of("127.0.0.1:0", peer).beyond_loopback()), no_peer(peer));
    }
    // The same in other words.
    for peer in ["[::ffff:224.0.0.1]:9", "[::ffff:0.0.0.0]:9", "[::ffff:255.255.255.255]:9"] {
        assert_eq!(refused(of("[::]:0", peer).beyond_loopback()), no_peer(peer));
    }
    let versions = "127.0.0.1:0 and its peer [::1]:9 are of different versions of IP";
    assert_eq!(refused(of("127.0.0.1:0", "[::1]:9")), versions);
    let free = socket("127.0.0.1:0").local_addr().expect("bound").to_string();
    let itself = format!("the peer {free} is the relay itself");
    assert_eq!(refused(of(&free, &free)), itself);
    // Who listens to all addresses listens to this one.
    let everywhere = free.replace("127.0.0.1", "0.0.0.0");
    assert_eq!(refused(of(&everywhere, &free).beyond_loopback()), itself);
    let taken = peer.local_addr().expect("bound").to_string();
    let error = Relay::start(&network, machine, of(&taken, "127.0.0.1:9")).expect_err("it must not");
    let source = error.source().expect("the system's").to_string();
    assert_eq!(error.to_string(), format!("no socket at {taken}: {source}"));
    machine.shutdown();
    let (network, builder) = Network::new(Machine::builder());
    let machine = builder.start().expect("starts");
    let error = Relay::start(&network, machine, RelayOptions::new(good, good)).expect_err("it must not");
    assert_eq!(error.to_string(), DeviceError::NoLanes.to_string());
    assert_eq!(error.source().map(ToString::to_string), Some(DeviceError::NoLanes.to_string()));
    let error = RelayError::Poller(ErrorKind::OutOfMemory.into());
    assert_eq!(error.to_string(), "datagrams cannot be waited for: out of memory");
    machine.shutdown();
}

/// Goal: the two ways belong to the first two lanes; with one, to that. Method: both machines.
#[test]
fn ways_belong_to_the_first_lanes() {
    for (list, homes) in [("0-1", [0, 1]), ("0", [0, 0])] {
        let shared = common::start(lanes(list));
        let bench = Bench::new(&shared);
        assert_eq!(SIDES.map(|side| bench.relay.device(side).home(0).index()), homes);
        drop(bench);
        shared.1.shutdown();
    }
}

/// Goal: what rests on what datagrams do not tell is refused on a relay, with the reason. Method: `fq` with a
/// horizon, which devices of packets of the program itself take; what needs nothing of them, which is taken.
#[test]
fn what_datagrams_do_not_tell_is_refused() {
    let (network, machine) = start();
    let bench = Bench::new(&(network, machine));
    let control = Control::new(machine, 1);
    control.add_device("a", Arc::clone(bench.relay.device(RelaySide::A))).expect("the first of its name");
    let refused = control.execute_line("tc qdisc add dev a root fq horizon 50ms").expect_err("no SCM_TXTIME");
    assert_eq!(refused.exit_code(), 2);
    let said = refused.to_string();
    assert!(said.starts_with("fq: `horizon 50ms` cannot be: packets do not tell here when"), "{said}");
    control.execute_line("tc qdisc add dev a root fq maxrate 8mbit").expect("it needs no word of a packet");
    let changed = control.execute_line("tc qdisc change dev a root fq horizon_cap").expect_err("the same");
    assert!(changed.to_string().starts_with("fq: `horizon_cap` cannot be:"), "{changed}");
    drop(bench);
    machine.shutdown();
}

/// Goal: under overload every datagram is counted: what the relay did not receive the system lost ahead of
/// it, and says so. Method: more datagrams than are read meanwhile, until the sums are equal.
#[test]
fn what_is_lost_ahead_of_the_relay_is_counted() {
    let (network, machine) = start();
    let bench = Bench::new(&(network, machine));
    let control = Control::new(machine, 1);
    control.add_device("a", Arc::clone(bench.relay.device(RelaySide::A))).expect("the first of its name");
    let shown = |line: &str| control.execute_line(line).expect("it is right").to_string();
    assert!(!shown("tc -s qdisc show dev a").contains("overload"));
    let lost = || bench.relay.device(RelaySide::A).lost_ahead().expect("there is a /proc");
    assert_eq!(lost(), 0);
    let mut sent = 0;
    while lost() == 0 && sent < 2_000_000 {
        for _ in 0..20_000 {
            bench.send(RelaySide::A, &[7; 1_400]);
            sent += 1;
        }
    }
    assert!(lost() > 0, "{sent} datagrams were read as fast as they came");
    bench.wait(RelaySide::A, |statistics| statistics.received + lost() == sent);
    let device = bench.relay.device(RelaySide::A);
    let queue = || device.statistics(0);
    let counted = |of: &RelayStatistics| {
        let statistics = queue();
        of.received == statistics.qdisc.sent_packets + statistics.qdisc.dropped + statistics.over_memory
    };
    bench.wait(RelaySide::A, counted);
    let told = format!("overload {} pkt lost ahead of the queues", lost());
    assert!(shown("tc -s qdisc show dev a").contains(&told));
    assert!(!shown("tc qdisc show dev a").contains("overload"));
    let other = bench.relay.device(RelaySide::B).lost_ahead();
    assert_eq!(other, Some(0), "nothing came in there");
}
