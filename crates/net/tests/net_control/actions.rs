//! What filters do with packets besides choosing classes: actions, and `ingress` and `clsact`.

use crate::world::{Gate, NOT_IP, PATIENCE, Parcel, World, parcel};
use quietcore::net::Device;
use quietcore::qdisc::Enqueued;
use std::sync::Arc;
use std::time::Instant;

/// Ports of so many packets that leave next.
fn left(gate: &Gate, count: usize) -> Vec<u16> {
    (0..count).map(|_| gate.next().1.port).collect()
}

/// How many packets a discipline has sent and dropped.
fn counted(world: &World, handle: &str) -> (u64, u64) {
    let statistics = world.qdisc(handle).statistics;
    (statistics.sent_packets, statistics.dropped)
}

/// Sends a packet; says whether it was taken.
fn is_taken(device: &Device<Parcel>, port: u16) -> bool {
    device.send_through(0, parcel(port, 100)) != Enqueued::Dropped
}

const PRIO: &str = "tc qdisc add dev eth1 root handle 1: prio";

/// Goal: each kind of filter does what its actions say, in the order in which they are asked. Method: two
/// filters before one that drops all, and which of three ports are taken: 7 is for the first filter, 8 for
/// the second.
#[test]
fn actions_decide() {
    let u32_of = |port: u16| format!("prio 1 u32 match ip dport {port} 0xffff");
    let basic_of = |port: u16| format!("prio 1 basic match 'cmp(u16 at 2 layer 2 eq {port})'");
    let flower_of = |port: u16| format!("prio 1 flower ip_proto udp dst_port {port}");
    let fw_of = |port: u16| format!("prio 1 handle {port} fw");
    for (first, second, taken) in [
        (u32_of(7) + " action pass", u32_of(8) + " flowid 1:1", [true, true, false]),
        (u32_of(7) + " action drop", u32_of(8) + " flowid 1:1 action ok", [false, true, false]),
        // The next rule is for it, too.
        (u32_of(7) + " action continue", "prio 1 u32 match u32 0 0 action pass".into(), [true, true, true]),
        (u32_of(7) + " action pipe action drop", u32_of(8) + " action pipe", [false, true, false]),
        (u32_of(7) + " action continue", u32_of(8) + " action pass", [false, true, false]),
        (flower_of(7) + " action continue", flower_of(8) + " action pass", [false, true, false]),
        (flower_of(7) + " classid 1:1", flower_of(8) + " action drop", [true, false, false]),
        (fw_of(7) + " action pass", fw_of(8) + " action shot", [true, false, false]),
        (fw_of(7) + " action continue", fw_of(8) + " action pass", [false, true, false]),
        // The newest is asked first.
        ("prio 1 basic action pass".into(), basic_of(8) + " action continue", [true, true, true]),
        (basic_of(7) + " action pass", basic_of(8) + " action drop", [true, false, false]),
        // Asked anew for ever, it is dropped.
        (u32_of(7) + " action reclassify", u32_of(8) + " flowid 1:1", [false, true, false]),
        ("prio 1 matchall action continue".into(), "prio 2 matchall action pass".into(), [true, true, true]),
        (
            u32_of(7) + " action gact pass random determ drop 1",
            u32_of(8) + " action gact pass",
            [false, true, false],
        ),
        // What is too long exceeds; what exceeds is asked on.
        (
            u32_of(7) + " action police mtu 99 conform-exceed pipe/drop action pass",
            u32_of(8) + " action police mtu 100 conform-exceed drop/pipe action pass",
            [true, true, false],
        ),
        (
            u32_of(7) + " police mtu 99 drop",
            u32_of(8) + " police mtu 100 drop flowid :1",
            [false, true, false],
        ),
        (
            u32_of(7) + " action police mtu 100 conform-exceed pass/drop",
            u32_of(8) + " action police mtu 99 continue",
            [false, false, false],
        ),
    ] {
        let world = World::new(1);
        world.tc(PRIO);
        for filter in [first.as_str(), &second, "prio 3 matchall action drop"] {
            world.tc(&format!("tc filter add dev eth1 parent 1: protocol ip {filter}"));
        }
        let seen = [7, 8, 9].map(|port| is_taken(&world.device, port));
        assert_eq!(seen, taken, "{first}; {second}");
        let all = seen.iter().filter(|taken| **taken).count();
        world.gate.pass(all);
        assert_eq!(counted(&world, "1:"), (all as u64, 3 - all as u64), "{first}; {second}");
    }
}

/// Goal: an action of a filter that has a class leaves the class as it is. Method: bands, in the order in
/// which they leave; a filter of a protocol sees no other packet.
#[test]
fn classes_are_chosen_all_the_same() {
    let world = World::new(1);
    world.tc(PRIO);
    for line in [
        "protocol ip prio 1 u32 match ip dport 7 0xffff flowid 1:3 action pass",
        "protocol ip prio 1 u32 match ip dport 8 0xffff flowid 1:1 action pipe action gact pass",
        "protocol ip prio 2 matchall flowid 1:1 action continue",
        "protocol ip prio 3 matchall classid 1:2 action ok",
    ] {
        world.tc(&format!("tc filter add dev eth1 parent 1: {line}"));
    }
    world.fill_ahead();
    [7, 9, NOT_IP, 8].into_iter().for_each(|port| world.send(parcel(port, 100)));
    world.drain_ahead();
    assert_eq!(left(&world.gate, 4), [8, 9, NOT_IP, 7]);
}

/// Goal: what a filter drops is counted by its action, its discipline, and what that is in, and by nothing
/// else, as Linux 6.12 counts it. Method: three packets that a prio in a class of htb drops, and one that
/// passes.
#[test]
fn what_is_dropped_is_counted() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 root handle 1: htb default 1
        tc class add dev eth1 parent 1: classid 1:1 htb rate 1gbit
        tc qdisc add dev eth1 parent 1:1 handle 2: prio
        tc filter add dev eth1 parent 2: protocol ip prio 1 u32 match ip dport 7 0xffff action drop");
    assert_eq!([7, 7, 8, 7].map(|port| is_taken(&world.device, port)), [false, false, true, false]);
    world.gate.pass(1);
    assert_eq!((counted(&world, "1:"), counted(&world, "2:")), ((1, 3), (1, 3)));
    let class = &world.classes("tc -s class show dev eth1 classid 1:1")[0];
    assert_eq!(class.statistics.map(|counted| (counted.sent_packets, counted.dropped)), Some((1, 3)));
    let shown = world.show("tc -s filter show dev eth1 parent 2:");
    assert!(shown.contains("Sent 300 bytes 3 pkt (dropped 3, overlimits 0 requeues 0)"), "{shown}");
    assert!(shown.contains("(rule hit 4 success 3)"), "{shown}");
}

/// Goal: a packet that is reclassified is held against all filters 16 times more, as in Linux 6.12. Method:
/// what two packets are counted as by the action, which a guest counted as 34 there.
#[test]
fn reclassification_ends() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 clsact
        tc filter add dev eth1 egress matchall action reclassify");
    assert_eq!([7, 8].map(|port| is_taken(&world.device, port)), [false, false]);
    let shown = world.show("tc -s filter show dev eth1 egress");
    assert!(shown.contains("Sent 3400 bytes 34 pkt (dropped 0, overlimits 0 requeues 0)"), "{shown}");
    assert!(shown.contains("(rule hit 34)"), "{shown}");
    assert_eq!(counted(&world, "ffff:"), (2, 2));
}

/// Goal: filters that name one police share its bucket; others do not. Method: a bucket of 250 bytes that
/// takes minutes to fill, asked by two filters; then a second one like it.
#[test]
fn an_action_can_be_shared() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 root handle 1: prio
        tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dport 7 0xffff action police rate 8bit burst 250 index 4 drop
        tc filter add dev eth1 parent 1: protocol ip prio 2 u32 match ip dport 8 0xffff action police index 4
        tc filter add dev eth1 parent 1: protocol ip prio 3 u32 match ip dport 9 0xffff action police rate 8bit burst 250 drop");
    let taken = [7, 8, 7, 8, 9, 9, 9].map(|port| is_taken(&world.device, port));
    assert_eq!(taken, [true, true, false, false, true, true, false]);
    let shown = world.show("tc -s filter show dev eth1 parent 1:");
    assert_eq!(shown.matches("police 0x4 rate 8bit burst 250b mtu 2Kb action drop overhead 0b").count(), 2);
    assert_eq!(shown.matches("Sent 400 bytes 4 pkt (dropped 2, overlimits 2 requeues 0)").count(), 2);
    assert_eq!(shown.matches("ref 2 bind 2").count(), 2, "{shown}");
    assert_eq!(shown.matches("police 0x1 ").count(), 1, "{shown}");
    // With its last filter it is gone, and another one can have its number.
    world.tc("tc filter del dev eth1 parent 1: prio 1
        tc filter del dev eth1 parent 1: prio 2
        tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dport 7 0xffff action police rate 8bit burst 90 index 4 drop");
    assert!(!is_taken(&world.device, 7));
}

/// Goal: packets that come in are asked before the driver gets them, and counted where there is a filter, and
/// only there. Method: a device that is linked to `eth1`, and what reaches its driver; what the program says
/// has come in.
#[test]
fn what_comes_in_is_asked() {
    let world = World::new(1);
    let (peer, road) = world.add_device("eth2");
    peer.link_to(&world.device);
    let send = |ports: &[u16]| ports.iter().for_each(|port| assert!(is_taken(&peer, *port)));
    world.tc("tc qdisc add dev eth1 ingress");
    send(&[7]);
    assert_eq!(left(&road, 1), [7]);
    assert!(peer.keeps_whole(0), "nothing is asked of single packets");
    let ingress = || counted(&world, "ffff:");
    assert_eq!(ingress(), (0, 0), "there is no filter");
    world.tc("tc filter add dev eth1 ingress protocol ip prio 1 u32 match ip dport 7 0xffff action drop");
    assert!(!peer.keeps_whole(0));
    send(&[7, 8, 7, 9]);
    assert_eq!(left(&road, 2), [8, 9]);
    assert_eq!(ingress(), (4, 2));
    assert_eq!(world.device.receive(parcel(7, 100)), None);
    assert_eq!(world.device.receive(parcel(8, 100)), Some(parcel(8, 100)));
    assert_eq!(ingress(), (6, 3));
    // What is sent there is not asked.
    world.send(parcel(7, 100));
    assert_eq!(left(&world.gate, 1), [7]);
    world.tc("tc filter del dev eth1 ingress");
    send(&[7]);
    assert_eq!((left(&road, 1), ingress()), (vec![7], (6, 3)));
    world.tc("tc filter add dev eth1 parent ffff: matchall action drop
        tc qdisc del dev eth1 ingress");
    send(&[7]);
    assert_eq!(left(&road, 1), [7]);
    assert!(peer.keeps_whole(0));
}

/// Goal: a packet for which the driver has no room is asked once. Method: a bucket for two packets and a
/// driver without room, which gets one of them again and again.
#[test]
fn what_comes_back_is_not_asked_again() {
    let world = World::new(1);
    let (peer, road) = world.add_device("eth2");
    peer.link_to(&world.device);
    world.tc("tc qdisc add dev eth1 ingress
        tc filter add dev eth1 ingress matchall action police rate 8bit burst 200 drop");
    road.close();
    assert!(is_taken(&peer, 7));
    let end = Instant::now() + PATIENCE;
    while road.refused() < 3 {
        assert!(Instant::now() < end, "it is offered again and again: {} times", road.refused());
        std::thread::yield_now();
    }
    road.open();
    peer.wake_queue(0);
    assert_eq!(left(&road, 1), [7]);
    [8, 9].into_iter().for_each(|port| assert!(is_taken(&peer, port)));
    assert_eq!((left(&road, 1), counted(&world, "ffff:")), (vec![8], (3, 1)));
}

/// Goal: `clsact` asks what is sent before it is queued, on both ways of sending, and what comes in by other
/// filters. Method: single packets and several, before a discipline that counts what it sees.
#[test]
fn clsact_asks_both_ways() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 root handle 1: pfifo
        tc qdisc add dev eth1 clsact
        tc filter add dev eth1 egress protocol ip prio 1 u32 match ip dport 7 0xffff action drop
        tc filter add dev eth1 ingress protocol ip prio 1 u32 match ip dport 8 0xffff action drop");
    assert!(!world.device.keeps_whole(0));
    assert_eq!([7, 8].map(|port| is_taken(&world.device, port)), [false, true]);
    let home = world.device.home(0);
    world.device.send_all_on(home, 0, [7, 8, 7, 9].map(|port| parcel(port, 100)));
    assert_eq!(left(&world.gate, 3), [8, 8, 9]);
    assert_eq!((counted(&world, "1:"), counted(&world, "ffff:")), ((3, 0), (6, 3)));
    assert_eq!([7, 8].map(|port| world.device.receive(parcel(port, 100)).is_some()), [true, false]);
    assert_eq!(counted(&world, "ffff:"), (8, 4), "both ways are one count");
    assert_eq!(world.device.filtered(), 4);
    world.tc("tc filter del dev eth1 egress");
    assert!(world.device.keeps_whole(0));
    assert_eq!(world.show("tc filter show dev eth1 egress"), "");
    assert!(world.show("tc filter show dev eth1 ingress").contains("action drop"));
    assert!(is_taken(&world.device, 7));
}

/// Goal: `mirred` sends the packet, or a copy, through another device, with the discipline and the filters
/// that are there. Method: two devices; what reaches each driver.
#[test]
fn packets_go_to_another_device() {
    let world = World::new(1);
    let (_peer, road) = world.add_device("eth2");
    world.tc("tc qdisc add dev eth2 root handle 2: pfifo
        tc qdisc add dev eth1 clsact
        tc filter add dev eth1 egress protocol ip prio 1 u32 match ip dport 7 0xffff action mirred egress redirect dev eth2
        tc filter add dev eth1 egress protocol ip prio 1 u32 match ip dport 8 0xffff action mirred egress mirror dev eth2
        tc filter add dev eth1 egress protocol ip prio 1 u32 match ip dport 9 0xffff action mirred egress mirror dev eth2 action drop
        tc filter add dev eth1 ingress matchall action mirred egress mirror dev eth1 action mirred egress redirect dev eth2");
    assert_eq!([7, 8, 9].map(|port| is_taken(&world.device, port)), [true, true, false]);
    assert_eq!((left(&world.gate, 1), left(&road, 3)), (vec![8], vec![7, 8, 9]));
    assert_eq!((counted(&world, "ffff:"), counted_of(&world, "eth2")), ((3, 1), (3, 0)));
    // What comes in goes out again, there and, as a copy, here.
    assert_eq!(world.device.receive(parcel(5, 100)), None);
    assert_eq!((left(&world.gate, 1), left(&road, 1)), (vec![5], vec![5]));
    // What the other device drops is counted there, and as what the action could not send.
    world.tc("tc qdisc add dev eth2 clsact
        tc filter add dev eth2 egress matchall action drop");
    assert!(is_taken(&world.device, 7), "as the kernel says of what is taken elsewhere");
    let shown = world.show("tc -s filter show dev eth1 egress");
    assert!(shown.contains("Sent 200 bytes 2 pkt (dropped 0, overlimits 1 requeues 0)"), "{shown}");
}

/// How many packets the root of a device has sent and dropped.
fn counted_of(world: &World, device: &str) -> (u64, u64) {
    let root = &world.qdiscs(&format!("tc -s qdisc show dev {device} root"))[0].statistics;
    (root.sent_packets, root.dropped)
}

/// Goal: packets do not go round and round: as in Linux 6.12, one comes through a device twice, and copies of
/// copies are not made. Method: a device whose packets go to itself, by redirection and as copies; the counts
/// are those of a guest with three pings.
#[test]
fn nothing_goes_round_and_round() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 clsact
        tc filter add dev eth1 egress matchall action mirred egress redirect dev eth1");
    (0..3).for_each(|_| assert!(is_taken(&world.device, 7)));
    let shown = world.show("tc -s filter show dev eth1 egress");
    assert!(shown.contains("Sent 600 bytes 6 pkt (dropped 0, overlimits 6 requeues 0)"), "{shown}");
    assert_eq!(counted(&world, "ffff:"), (6, 3));
    world.tc("tc qdisc del dev eth1 clsact
        tc qdisc add dev eth1 clsact
        tc filter add dev eth1 egress matchall action mirred egress mirror dev eth1");
    (0..3).for_each(|_| assert!(is_taken(&world.device, 7)));
    let shown = world.show("tc -s filter show dev eth1 egress");
    assert!(shown.contains("Sent 600 bytes 6 pkt (dropped 0, overlimits 3 requeues 0)"), "{shown}");
    assert_eq!((left(&world.gate, 6).len(), counted(&world, "ffff:")), (6, (6, 0)));
}

/// Goal: what is sent to a device that has ended is dropped and counted. Method: a device that is no more.
#[test]
fn a_device_may_end() {
    let world = World::new(1);
    let (peer, _) = world.add_device("eth2");
    world.tc("tc qdisc add dev eth1 clsact
        tc filter add dev eth1 egress protocol ip prio 1 u32 match ip dport 7 0xffff action mirred egress redirect dev eth2
        tc filter add dev eth1 egress prio 2 matchall action mirred egress mirror dev eth2");
    world.control.remove_device("eth2");
    drop::<Arc<_>>(peer);
    assert_eq!([7, 8].map(|port| is_taken(&world.device, port)), [false, true]);
    assert_eq!((left(&world.gate, 1), counted(&world, "ffff:")), (vec![8], (2, 1)));
}

/// Goal: what cannot be is refused with the reason, and leaves nothing. Method: lines and their refusals.
#[test]
fn refusals() {
    let world = World::new(1);
    world.tc("tc qdisc add dev eth1 root handle 1: prio");
    let mirred = "matchall action mirred egress redirect dev eth1";
    for (line, reason) in [
        (
            format!("tc filter add dev eth1 parent 1: {mirred}"),
            "mirred in a filter of a discipline, which is asked under the lock of the queue; let it be a filter \
             of `clsact`, `egress`",
        ),
        (
            "tc filter add dev eth1 ingress matchall action drop".into(),
            "Parent Qdisc doesn't exists: eth1 has neither ingress nor clsact; `qdisc add dev DEVICE clsact` first",
        ),
        (
            "tc qdisc del dev eth1 ingress".into(),
            "Cannot find specified qdisc on specified device: eth1; it has neither ingress nor clsact; `add` one",
        ),
    ] {
        assert_eq!(world.refused(&line), reason, "{line}");
    }
    world.tc("tc qdisc add dev eth1 clsact");
    for (line, reason) in [
        (
            "tc filter add dev eth1 egress matchall action mirred egress redirect dev eth9",
            "Cannot find device \"eth9\"; there is eth1",
        ),
        (
            "tc filter add dev eth1 egress matchall action mirred ingress mirror dev eth1",
            "mirred ingress mirror dev eth1: what comes in at a device is not the device's to give on, but the \
             program's that runs it; use `mirred egress`",
        ),
        (
            "tc qdisc add dev eth1 ingress",
            "File exists: eth1 parent ffff:fff1 has clsact ffff: already; use `replace`, or `del` it first",
        ),
        (
            "tc qdisc add dev eth1 parent ffff:1 netem delay 1ms",
            "Operation not supported: clsact has no classes; only classes have disciplines inside",
        ),
        (
            "tc filter add dev eth1 parent ffff: matchall action drop",
            "Specified class doesn't exist: clsact has no filters of ffff:; say `ingress` or `egress`",
        ),
    ] {
        assert_eq!(world.refused(line), reason, "{line}");
    }
    assert_eq!(world.show("tc filter show dev eth1 egress"), "");
    assert!(world.refused("tc qdisc replace dev eth1 ingress").contains("clsact"));
}
