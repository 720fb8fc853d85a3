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
        "qdisc prio 1: root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n"
    );
    world.tc("tc qdisc change dev eth1 root handle 1: prio bands 2 priomap 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
    world.tc("tc qdisc add dev eth1 parent 1:2 handle 20: pfifo limit 7");
    assert_eq!(
        world.show("tc qdisc show dev eth1"),
        "qdisc prio 1: root refcnt 2 bands 2 priomap 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
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

/// Goal: what is around a prio looks at its next packet without taking it: a more urgent one that comes later
/// still goes first. Method: a tbf whose bucket takes years to fill, and a change that fills it.
#[test]
fn a_look_takes_nothing_out() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 root handle 1: tbf rate 8bit burst 100 limit 10kb
        tc qdisc add dev eth1 parent 1: handle 2: prio
        tc filter add dev eth1 parent 2: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 2:1
        tc filter add dev eth1 parent 2: protocol ip prio 1 u32 match ip dport 7 0xffff flowid 2:3");
    for port in [80, 7, 53] {
        world.send(parcel(port, 100));
    }
    assert_eq!(world.gate.next().1.port, 80, "the bucket was full");
    world.tc("tc qdisc change dev eth1 root tbf rate 1gbit burst 10kb limit 10kb");
    let order = [world.gate.next().1.port, world.gate.next().1.port];
    assert_eq!(order, [53, 7]);
}

/// Goal: what cannot be is refused with the reason.
#[test]
fn refusals() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 root handle 1: prio");
    for (line, reason) in [
        (
            "tc qdisc change dev eth1 root handle 1: prio bands 2",
            "prio: `priomap 2` cannot be: priority 1 has band 2: the last one is below the number of bands",
        ),
        (
            "tc qdisc add dev eth1 parent 1:2 handle 1: pfifo",
            "File exists: handle 1: is that of root; name another, or none",
        ),
        ("tc qdisc add dev eth1 parent 1:4 pfifo", "Specified class 1:4 not found; there is 1:1, 1:2, 1:3"),
        (
            "tc class add dev eth1 parent 1: classid 1:4 htb rate 1mbit",
            "prio 1: has no classes of its own; name a discipline whose classes are added",
        ),
        (
            "tc filter add dev eth1 parent 1:1 matchall flowid 1:2",
            "Specified class 1:1 not found; there is none",
        ),
    ] {
        assert_eq!(world.refused(line), reason, "{line}");
    }
    let bands = world.refused("tc qdisc change dev eth1 root handle 1: prio bands 1");
    assert!(bands.ends_with("`1` is out of range: from 2 to 16"), "{bands}");
}

/// Goal: pieces of streams stay whole only while no filter looks at single packets, and all inside agree.
/// Method: a prio without filters, with one, without again; a band that does not; inside of another prio.
#[test]
fn filters_see_packets_of_the_link() {
    let world = World::new(1);
    assert!(world.device.keeps_whole(0), "no discipline of its own");
    for (line, keeps) in [
        ("tc qdisc add dev eth1 root handle 1: prio", true),
        (
            "tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:1",
            false,
        ),
        ("tc filter del dev eth1 parent 1: prio 1", true),
        ("tc qdisc add dev eth1 parent 1:2 handle 2: prio", true),
        ("tc qdisc add dev eth1 parent 2:3 handle 3: netem delay 1ms 1ms", false),
        ("tc qdisc change dev eth1 parent 2:3 handle 3: netem delay 1ms", true),
        (
            "tc filter add dev eth1 parent 2: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 2:1",
            false,
        ),
        ("tc qdisc del dev eth1 parent 1:2", true),
        ("tc qdisc replace dev eth1 root netem delay 1ms loss 1%", false),
        ("tc qdisc del dev eth1 root", true),
    ] {
        world.tc(line);
        assert_eq!(world.device.keeps_whole(0), keeps, "{line}");
    }
}
