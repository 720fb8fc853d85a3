//! `prio` on a device: as typed, as shown, with filters and with another discipline in a band.

use crate::world::{World, parcel};

/// Goal: a line's bands and map are shown as `tc` shows them, with classes that no line adds. Method: the
/// texts; a change; what is inside a band.
#[test]
fn as_shown() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 root handle 1: prio");
    assert_eq!(
        world.show("tc qdisc show dev eth1"),
        "qdisc prio 1: root bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n"
    );
    world.tc("tc qdisc change dev eth1 root handle 1: prio bands 2 priomap 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
    world.tc("tc qdisc add dev eth1 parent 1:2 handle 20: pfifo limit 7");
    assert_eq!(
        world.show("tc qdisc show dev eth1"),
        "qdisc prio 1: root bands 2 priomap 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
         qdisc pfifo 20: parent 1:2 limit 7p\n"
    );
    assert_eq!(
        world.show("tc class show dev eth1"),
        "class prio 1:1 parent 1:\nclass prio 1:2 parent 1: leaf 20:\n"
    );
}

/// Goal: filters choose bands, and lower bands leave first. Method: a driver that has no room, three ports.
#[test]
fn filters_choose_bands() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 root handle 1: prio
        tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:1
        tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dport 7 0xffff flowid 1:3");
    world.fill_ahead();
    for port in [7, 80, 53, 7, 80, 53] {
        world.send(parcel(port, 100));
    }
    world.drain_ahead();
    let order: Vec<u16> = (0..6).map(|_| world.gate.next().1.port).collect();
    assert_eq!(order, [53, 53, 80, 80, 7, 7]);
}

/// Goal: what cannot be is refused with the reason.
#[test]
fn refusals() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 root handle 1: prio");
    for (line, reason) in [
        ("tc qdisc change dev eth1 root handle 1: prio bands 2", "priority 1 has band 2"),
        ("tc qdisc change dev eth1 root handle 1: prio bands 1", "out of range: from 2 to 16"),
        ("tc qdisc add dev eth1 parent 1:4 pfifo", "1:4"),
        ("tc class add dev eth1 parent 1: classid 1:4 htb rate 1mbit", "prio 1: has no classes of its own"),
        ("tc filter add dev eth1 parent 1:1 matchall flowid 1:2", "1:1"),
    ] {
        let refused = world.refused(line);
        assert!(refused.contains(reason), "{line}: {refused}");
    }
}
