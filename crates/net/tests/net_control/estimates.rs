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
    world.tc("tc class change dev eth1 classid 2:10 htb rate 100mbit");
    assert!(rates(&world)[2].is_some());
    let shown = world.show("tc -s class show dev eth1 classid 2:10");
    assert!(shown.contains("\n rate ") && shown.contains("pps backlog 0b 0p requeues 0\n"), "{shown}");
    assert!(!world.show("tc -s class show dev eth1 classid 2:20").contains("pps"));
}
