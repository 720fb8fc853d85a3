//! `est`: rates are estimated while packets pass.

use super::world::{PATIENCE, World, parcel};
use quietcore::net::RateReport;
use std::time::Instant;

fn rates(world: &World) -> [Option<RateReport>; 3] {
    let qdiscs = world.qdiscs("tc -s qd show dev eth1");
    let classes = world.classes("tc -s class show dev eth1 classid 2:10");
    [qdiscs[0].rate, qdiscs[1].rate, classes[0].rate]
}

/// Goal: mq, a discipline and a class with `est` have rates, bits eight times the bytes, and those without
/// have none. Method: packets of 1250 bytes until all three see some; then a change without `est`, which
/// keeps it.
#[test]
fn rates_are_seen() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: est 250ms 1sec mq
         tc qd add dev eth1 parent 1:1 handle 2: est 250ms 1sec htb default 10
         tc class add dev eth1 parent 2: classid 2:10 est 250ms 1sec htb rate 1gbit
         tc class add dev eth1 parent 2: classid 2:20 htb rate 1gbit");
    let began = Instant::now();
    let seen = loop {
        world.send_all(10, &parcel(1, 1250));
        world.gate.pass(10);
        let seen = rates(&world).map(|rate| rate.expect("it is estimated"));
        if seen.iter().all(|rate| rate.packets_per_second > 100) {
            break seen;
        }
        assert!(began.elapsed() < PATIENCE, "{seen:?}");
    };
    for rate in seen {
        let bits = rate.packets_per_second * 1250 * 8;
        // Averages of whole packets and of bytes, each rounded down.
        assert!(rate.bits_per_second.abs_diff(bits) <= 2 * 1250 * 8, "{rate:?}");
    }
    world.tc("tc class change dev eth1 classid 2:10 htb rate 100mbit
         tc qd change dev eth1 root handle 1: mq");
    assert!(rates(&world)[0].is_some());
    assert!(rates(&world)[2].is_some());
    let shown = world.show("tc -s class show dev eth1 classid 2:10");
    assert!(shown.contains("\n rate ") && shown.contains("pps backlog 0b 0p requeues 0\n"), "{shown}");
    assert!(!world.show("tc -s class show dev eth1 classid 2:20").contains("pps"));
}

/// Goal: wherever an estimate is, it is told what was sent. Method: one alone, of a class among others, of
/// the only class, of a discipline without classes, and of one inside of another; packets until it says so.
#[test]
fn each_estimate_is_told() {
    let htb = "tc qd add dev eth1 root handle 1: htb default 10";
    let class = "tc class add dev eth1 parent 1: classid";
    let rate = "htb rate 1gbit";
    let est = "est 250ms 1sec";
    for lines in [
        format!("{htb}\n{class} 1:10 {est} {rate}\n{class} 1:20 {rate}"),
        format!("{htb}\n{class} 1:10 {est} {rate}"),
        format!("tc qd add dev eth1 root handle 1: {est} pfifo"),
        format!("{htb}\n{class} 1:10 {rate}\ntc qd add dev eth1 parent 1:10 handle 2: {est} pfifo"),
    ] {
        let world = World::new(1);
        world.tc(&lines);
        let began = Instant::now();
        loop {
            world.send_all(10, &parcel(1, 1250));
            world.gate.pass(10);
            let qdiscs = world.qdiscs("tc qd show dev eth1").into_iter().filter_map(|report| report.rate);
            let classes =
                world.classes("tc class show dev eth1").into_iter().filter_map(|report| report.rate);
            let rates: Vec<RateReport> = qdiscs.chain(classes).collect();
            assert_eq!(rates.len(), 1, "{lines}");
            if rates[0].packets_per_second > 0 {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{lines}");
        }
    }
}

/// Goal: a change with `est` begins an estimate where there was none. Method: mq, a discipline and a class.
#[test]
fn a_change_begins_an_estimate() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: mq
         tc qd add dev eth1 parent 1:1 handle 2: prio
         tc qd add dev eth1 parent 2:1 handle 3: htb
         tc class add dev eth1 parent 3: classid 3:10 htb rate 1gbit");
    let estimated = || {
        let qdiscs = world.qdiscs("tc qd show dev eth1");
        let class = world.classes("tc class show dev eth1 classid 3:10");
        [qdiscs[0].rate.is_some(), qdiscs[1].rate.is_some(), class[0].rate.is_some()]
    };
    assert_eq!(estimated(), [false, false, false]);
    world.tc("tc qd change dev eth1 root handle 1: est 1sec 4sec mq");
    assert_eq!(estimated(), [true, false, false]);
    world.tc("tc qd change dev eth1 parent 1:1 est 1sec 4sec prio");
    assert_eq!(estimated(), [true, true, false]);
    world.tc("tc class change dev eth1 classid 3:10 est 1sec 4sec htb rate 1gbit");
    assert_eq!(estimated(), [true, true, true]);
}
