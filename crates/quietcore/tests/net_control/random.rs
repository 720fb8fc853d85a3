//! Any commands in any order, with packets in between: nothing panics, handles stay unique, every packet is
//! sent, dropped and counted, or still queued.

use super::world::{Parcel, World, parcel};
use proptest::prelude::*;
use quietcore::net::{Answer, QdiscReport};
use quietcore::qdisc::Verdict;
use std::collections::BTreeSet;

fn qdisc_options() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "mq",
        "pfifo limit 5",
        "bfifo limit 1kb",
        "netem delay 1s limit 8",
        "netem delay 1ms 1ms loss 30% reorder 20%",
        "netem rate 8mbit",
        "tbf rate 8mbit burst 300 limit 1kb",
        "tbf rate 8bit burst 100 latency 1s",
        "fq maxrate 8mbit flow_limit 3",
        "fq priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
        "htb default 10",
        "hfsc default 10",
        "hfsc default 20",
        "cbq bandwidth 80mbit avpkt 100",
    ])
}

fn class_options() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "htb rate 8mbit ceil 80mbit",
        "htb rate 8bit prio 3",
        "hfsc sc rate 8mbit",
        "hfsc rt m1 80mbit d 1ms m2 8mbit",
        "hfsc ls rate 8mbit ul rate 8kbit",
        "cbq rate 8mbit allot 200 avpkt 100",
        "cbq rate 8kbit allot 200 avpkt 100 bounded prio 2",
    ])
}

fn verb() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["add", "add", "add", "change", "replace", "replace", "del"])
}

/// Small numbers, so that lines meet each other.
fn handle() -> impl Strategy<Value = u16> {
    1..5_u16
}

fn place() -> impl Strategy<Value = String> {
    let minor = prop::sample::select(vec![0_u16, 1, 2, 0x10, 0x20]);
    prop_oneof![
        1 => Just("root".to_string()),
        4 => (handle(), minor).prop_map(|(major, minor)| format!("parent {major:x}:{minor:x}")),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Line(String),
    Send {
        queue: usize,
        port: u16,
        bytes: u32,
    },
    /// The driver opens, or closes.
    Gate(bool),
}

fn qdisc_line() -> impl Strategy<Value = Step> {
    let parts = (verb(), place(), prop::option::of(handle()), any::<bool>(), qdisc_options());
    parts.prop_map(|(verb, place, handle, is_estimated, options)| {
        let handle = handle.map_or_else(String::new, |handle| format!("handle {handle:x}:"));
        let est = if is_estimated { "est 250ms 1sec" } else { "" };
        let rest = if verb == "del" { String::new() } else { format!("{est} {options}") };
        Step::Line(format!("tc qdisc {verb} dev eth1 {place} {handle} {rest}"))
    })
}

fn class_line() -> impl Strategy<Value = Step> {
    let minors = prop::sample::select(vec![0_u16, 1, 0x10]);
    let minor = prop::sample::select(vec![1_u16, 0x10, 0x20]);
    (verb(), handle(), minors, minor, class_options()).prop_map(|(verb, major, above, minor, options)| {
        let rest = if verb == "del" { "" } else { options };
        Step::Line(format!(
            "tc class {verb} dev eth1 parent {major:x}:{above:x} classid {major:x}:{minor:x} {rest}"
        ))
    })
}

fn filter_line() -> impl Strategy<Value = Step> {
    let kind = prop::sample::select(vec!["matchall", "u32 match ip dport 2 0x3"]);
    (any::<bool>(), handle(), 0..3_u16, prop::sample::select(vec![1_u16, 0x10, 0x20]), kind).prop_map(
        |(is_added, major, prio, minor, kind)| {
            let prio = if prio == 0 { String::new() } else { format!("prio {prio}") };
            let verb = if is_added { "add" } else { "del" };
            let rest = if is_added { format!("{kind} flowid {major:x}:{minor:x}") } else { String::new() };
            Step::Line(format!("tc filter {verb} dev eth1 parent {major:x}: {prio} {rest}"))
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let packet = (0..2_usize, 0..8_u16, 1..200_u32);
    prop_oneof![
        4 => qdisc_line(),
        3 => class_line(),
        2 => filter_line(),
        6 => packet.prop_map(|(queue, port, bytes)| Step::Send { queue, port, bytes }),
        1 => any::<bool>().prop_map(Step::Gate),
    ]
}

fn reports(world: &World) -> Vec<QdiscReport> {
    let Ok(Answer::Qdiscs(reports)) = world.control.execute_line("tc -s -d qdisc show dev eth1") else {
        panic!("reports")
    };
    reports
}

/// Handles are unique, and parents are there.
fn check(world: &World, line: &str) {
    let reports = reports(world);
    let named: Vec<u16> =
        reports.iter().map(|report| report.handle.major()).filter(|major| *major > 0).collect();
    let unique: BTreeSet<u16> = named.iter().copied().collect();
    assert_eq!(named.len(), unique.len(), "after {line}: {reports:#?}");
    for report in &reports {
        let parent = report.parent.map_or(0, |parent| parent.major());
        assert!(parent == 0 || unique.contains(&parent), "after {line}: {report:?}");
    }
    for object in ["class", "filter"] {
        world.control.execute_line(&format!("tc -s -d {object} show dev eth1")).expect("it can be shown");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Goal: no sequence of commands panics, breaks the tree, or doubles a packet. Method: random lines, most
    /// of which meet each other, with packets and a driver that opens and closes.
    #[test]
    fn any_commands(steps in prop::collection::vec(step(), 1..60)) {
        let world = World::new(2);
        let (mut number, mut accepted) = (0, BTreeSet::new());
        for step in &steps {
            match step {
                Step::Line(line) => {
                    // Refused or not: nothing else is allowed.
                    if let Err(error) = world.control.execute_line(line) {
                        prop_assert!(!error.to_string().is_empty());
                    }
                    check(&world, line);
                }
                Step::Send { queue, port, bytes } => {
                    number += 1;
                    let packet = Parcel { number, ..parcel(*port, *bytes) };
                    if world.device.send_through(*queue, packet) == Verdict::Queued {
                        accepted.insert(number);
                    }
                }
                Step::Gate(true) => world.gate.open(),
                Step::Gate(false) => world.gate.close(),
            }
        }
        world.gate.open();
        let mut seen = BTreeSet::new();
        for (_, packet) in world.gate.sent_so_far() {
            prop_assert!(seen.insert(packet.number), "packet {} twice", packet.number);
            prop_assert!(accepted.contains(&packet.number) , "packet {} was not taken", packet.number);
        }
    }

    /// Goal: changes below a root lose no packet uncounted. Method: one root of a kind that has classes, which
    /// stays; random lines below it, and packets; what was taken was sent, dropped, or is queued.
    #[test]
    fn every_packet_is_accounted_for(
        root in prop::sample::select(vec!["htb default 10", "hfsc default 10", "cbq bandwidth 80mbit avpkt 100"]),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let world = World::new(1);
        world.tc(&format!("tc qd add dev eth1 root handle 1: {root}"));
        let mut given = 0;
        for step in &steps {
            match step {
                Step::Line(line) if line.contains(" root") || line.contains("duplicate") => {}
                Step::Line(line) => drop(world.control.execute_line(line)),
                Step::Send { port, bytes, .. } => {
                    let _ = world.device.send_through(0, parcel(*port, *bytes));
                    given += 1;
                }
                // Open: what is taken out ahead is counted as sent by the discipline, and as queued.
                Step::Gate(_) => {}
            }
            let counted = world.device.statistics(0).qdisc;
            prop_assert_eq!(counted.sent_packets + counted.dropped + counted.qlen, given, "after {:?}", step);
        }
    }
}
