//! Any commands in any order, with packets in between: nothing panics, handles stay unique, every packet is
//! sent, dropped and counted, or still queued.
//!
//! A step is numbers; what they mean is chosen from what there is then, so that most lines meet something.

use super::world::{Parcel, World, parcel};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use quietcore::net::{ClassReport, QdiscReport};
use quietcore::qdisc::{ClassId, Enqueued};
use std::collections::BTreeSet;

const QDISCS: [&str; 15] = [
    "mq",
    "pfifo limit 5",
    "bfifo limit 1kb",
    "netem delay 1s limit 8",
    "netem delay 1ms 1ms loss 30% reorder 20%",
    "netem rate 8mbit duplicate 0%",
    "tbf rate 8mbit burst 300 limit 1kb",
    "tbf rate 8bit burst 100 latency 1s",
    "fq maxrate 8mbit flow_limit 3",
    "fq priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
    "htb default 10",
    "htb default 2",
    "hfsc default 10",
    "hfsc default 20",
    "cbq bandwidth 80mbit avpkt 100",
];

const CLASSES: [&str; 9] = [
    "htb rate 8mbit ceil 80mbit",
    "htb rate 8mbit",
    "htb rate 8bit prio 3",
    "hfsc sc rate 8mbit",
    "hfsc rt m1 80mbit d 1ms m2 8mbit ls rate 1mbit",
    "hfsc ls rate 8mbit ul rate 8kbit",
    "cbq rate 8mbit allot 200 avpkt 100",
    "cbq rate 80mbit allot 200 avpkt 100",
    "cbq rate 8kbit allot 200 avpkt 100 bounded prio 2",
];

const FILTERS: [&str; 2] = ["matchall", "u32 match ip dport 2 0x3"];

#[derive(Clone, Debug)]
enum Step {
    Qdisc {
        verb: &'static str,
        place: Index,
        handle: Option<u16>,
        est: bool,
        options: Index,
    },
    Class {
        verb: &'static str,
        parent: Index,
        minor: u16,
        est: bool,
        options: Index,
    },
    Filter {
        is_added: bool,
        parent: Index,
        prio: u16,
        flow: Index,
        kind: Index,
    },
    Send {
        queue: usize,
        port: u16,
        bytes: u32,
    },
    /// The driver opens, or closes.
    Gate(bool),
}

fn verb() -> impl Strategy<Value = &'static str> {
    select(vec!["add", "add", "add", "change", "replace", "replace", "del"])
}

fn qdisc_step() -> impl Strategy<Value = Step> {
    let parts =
        (verb(), any::<Index>(), prop::option::weighted(0.3, 1..6_u16), any::<bool>(), any::<Index>());
    parts.prop_map(|(verb, place, handle, est, options)| Step::Qdisc { verb, place, handle, est, options })
}

fn class_step() -> impl Strategy<Value = Step> {
    let minor = select(vec![1_u16, 2, 0x10, 0x20]);
    let parts = (verb(), any::<Index>(), minor, any::<bool>(), any::<Index>());
    parts.prop_map(|(verb, parent, minor, est, options)| Step::Class { verb, parent, minor, est, options })
}

fn filter_step() -> impl Strategy<Value = Step> {
    let parts = (any::<bool>(), any::<Index>(), 0..3_u16, any::<Index>(), any::<Index>());
    parts.prop_map(|(is_added, parent, prio, flow, kind)| Step::Filter { is_added, parent, prio, flow, kind })
}

fn step() -> impl Strategy<Value = Step> {
    let packet = (0..2_usize, 0..8_u16, 1..200_u32);
    prop_oneof![
        4 => qdisc_step(),
        4 => class_step(),
        2 => filter_step(),
        8 => packet.prop_map(|(queue, port, bytes)| Step::Send { queue, port, bytes }),
        1 => any::<bool>().prop_map(Step::Gate),
    ]
}

fn qdiscs(world: &World) -> Vec<QdiscReport> {
    world.qdiscs("tc -s -d qdisc show dev eth1")
}

fn classes(world: &World) -> Vec<ClassReport> {
    world.classes("tc -s -d class show dev eth1")
}

/// One of what there is, if there is anything.
fn one_of<T: Clone>(from: &[T], index: &Index) -> Option<T> {
    if from.is_empty() { None } else { Some(index.get(from).clone()) }
}

/// The line that a step means now, if it means one.
fn line(world: &World, step: &Step) -> Option<String> {
    let estimated = |est: bool| if est { "est 250ms 1sec" } else { "" };
    let classful: Vec<QdiscReport> =
        qdiscs(world).into_iter().filter(|report| ["htb", "hfsc", "cbq"].contains(&report.kind)).collect();
    match step {
        Step::Qdisc { verb, place, handle, est, options } => {
            let mut places: Vec<String> =
                classes(world).iter().map(|class| format!("parent {}", class.id)).collect();
            places.extend(["root", "root", "root", "parent 7:1"].map(String::from));
            let handle = handle.map_or_else(String::new, |handle| format!("handle {handle:x}:"));
            let options = if *verb == "del" { "" } else { options.get(&QDISCS) };
            Some(format!(
                "tc qdisc {verb} dev eth1 {} {handle} {} {options}",
                place.get(&places),
                estimated(*est)
            ))
        }
        Step::Class { verb, parent, minor, est, options } => {
            let qdisc = one_of(&classful, parent)?;
            let own = qdisc.handle.major();
            let mut parents: Vec<ClassId> = classes(world).iter().map(|class| class.id).collect();
            parents.retain(|id| id.major() == own);
            parents.push(qdisc.handle);
            let (above, id) = (parent.get(&parents), ClassId::new(own, *minor));
            let fit: Vec<&str> =
                CLASSES.into_iter().filter(|options| options.starts_with(qdisc.kind)).collect();
            let options = if *verb == "del" { "" } else { options.get(&fit) };
            Some(format!(
                "tc class {verb} dev eth1 parent {above} classid {id} {} {options}",
                estimated(*est)
            ))
        }
        Step::Filter { is_added, parent, prio, flow, kind } => {
            let handle = one_of(&classful, parent)?.handle;
            let mut ids: Vec<ClassId> = classes(world).iter().map(|class| class.id).collect();
            ids.retain(|id| id.major() == handle.major());
            ids.push(handle);
            let prio = if *prio == 0 { String::new() } else { format!("prio {prio}") };
            if !is_added {
                return Some(format!("tc filter del dev eth1 parent {} {prio}", parent.get(&ids)));
            }
            let (parent, flow, kind) = (parent.get(&ids), flow.get(&ids), kind.get(&FILTERS));
            Some(format!("tc filter add dev eth1 parent {parent} {prio} {kind} flowid {flow}"))
        }
        Step::Send { .. } | Step::Gate(_) => None,
    }
}

/// Handles are unique, and parents and classes are of disciplines that are there.
fn check(world: &World, line: &str) {
    let reports = qdiscs(world);
    let named: Vec<u16> =
        reports.iter().map(|report| report.handle.major()).filter(|major| *major > 0).collect();
    let unique: BTreeSet<u16> = named.iter().copied().collect();
    assert_eq!(named.len(), unique.len(), "after {line}: {reports:#?}");
    let parents = reports.iter().filter_map(|report| report.parent);
    let ids: Vec<ClassId> = classes(world).iter().map(|class| class.id).chain(parents).collect();
    for id in &ids {
        assert!(id.major() == 0 || unique.contains(&id.major()), "after {line}: {id}");
    }
    for id in ids.iter().filter(|id| id.major() > 0) {
        world.control.execute_line(&format!("tc filter show dev eth1 parent {id}")).expect("it can be shown");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Goal: no sequence of commands panics, breaks the tree, or doubles a packet. Method: random lines about
    /// what there is, with packets and a driver that opens and closes.
    #[test]
    fn any_commands(steps in prop::collection::vec(step(), 1..80)) {
        let world = World::new(2);
        let (mut number, mut accepted) = (0, BTreeSet::new());
        for step in &steps {
            if let Some(line) = line(&world, step) {
                // Refused or not: nothing else is allowed.
                if let Err(error) = world.control.execute_line(&line) {
                    prop_assert!(!error.to_string().is_empty());
                }
                check(&world, &line);
            }
            match step {
                Step::Send { queue, port, bytes } => {
                    number += 1;
                    let packet = Parcel { number, ..parcel(*port, *bytes) };
                    if world.device.send_through(*queue, packet) == Enqueued::Queued {
                        accepted.insert(number);
                    }
                }
                Step::Gate(true) => world.gate.open(),
                Step::Gate(false) => world.gate.close(),
                _ => {}
            }
        }
        world.gate.open();
        let mut seen = BTreeSet::new();
        for (_, packet) in world.gate.sent_so_far() {
            prop_assert!(seen.insert(packet.number), "packet {} twice", packet.number);
            prop_assert!(accepted.contains(&packet.number), "packet {} was not taken", packet.number);
        }
    }

    /// Goal: changes below a root lose no packet uncounted. Method: one root of a kind that has classes,
    /// which stays; random lines below it, and packets; what was given was sent, dropped, or is queued.
    #[test]
    fn every_packet_is_accounted_for(
        root in select(vec!["htb default 10", "hfsc default 10", "cbq bandwidth 80mbit avpkt 100"]),
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let world = World::new(1);
        world.tc(&format!("tc qd add dev eth1 root handle 1: {root}"));
        let mut given = 0;
        for step in &steps {
            let line = line(&world, step).filter(|line| !line.contains(" root "));
            if let Some(line) = &line {
                drop(world.control.execute_line(line));
            }
            if let Step::Send { port, bytes, .. } = step {
                let _ = world.device.send_through(0, parcel(*port, *bytes));
                given += 1;
            }
            let counted = world.device.statistics(0).qdisc;
            let all = counted.sent_packets + counted.dropped + counted.qlen;
            prop_assert_eq!(all, given, "after {:?}: {:?}", line, counted);
        }
    }
}
