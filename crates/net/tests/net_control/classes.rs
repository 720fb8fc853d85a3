//! Classes and filters: packets go where they are sent, and are shown there.

use super::world::{NOT_IP, World, parcel};
use quietcore::net::{Answer, FilterReport};

/// A tree of htb with a class per port, and one for the rest.
const TREE: &str = "
    tc qd add dev eth1 root handle 1: htb default 30
    tc class add dev eth1 parent 1: classid 1:1 htb rate 1gbit
    tc class add dev eth1 parent 1:1 classid 1:10 htb rate 100mbit ceil 1gbit prio 2
    tc class add dev eth1 parent 1:1 classid 1:20 htb rate 100mbit ceil 1gbit prio 1
    tc class add dev eth1 parent 1:1 classid 1:30 htb rate 100mbit ceil 1gbit prio 3
    tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10
    tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:20";

/// Packets of a class that were sent, and that are queued.
fn counted(world: &World, class: &str) -> (u64, u64) {
    let line = format!("tc -s class show dev eth1 classid {class}");
    let reports = world.classes(&line);
    let statistics = reports[0].statistics.expect("it is counted");
    (statistics.sent_packets, statistics.qlen)
}

/// Goal: filters send packets to their classes, and classes of a lower priority number go first. Method: with
/// a driver that has no room packets of three ports; who is queued where; then in which order they leave.
#[test]
fn htb_with_filters() {
    let world = World::new(1);
    world.tc(TREE);
    world.fill_ahead();
    for port in [7, 80, 53, 7, 80, 53] {
        world.send(parcel(port, 100));
    }
    for class in ["1:10", "1:20", "1:30"] {
        assert_eq!(counted(&world, class).1, 2, "{class}");
    }
    world.drain_ahead();
    let order: Vec<u16> = (0..6).map(|_| world.gate.next().1.port).collect();
    assert_eq!(order, [53, 53, 80, 80, 7, 7]);
    assert_eq!((counted(&world, "1:10"), counted(&world, "1:30")), ((2, 0), (2 + 16, 0)));
    assert_eq!(counted(&world, "1:1").0, 22, "with what is below");
}

/// Goal: classes and filters are shown as `tc` shows them. Method: the tree.
#[test]
fn as_shown() {
    let world = World::new(1);
    world.tc(TREE);
    world.tc("tc qd add dev eth1 parent 1:20 handle 20: pfifo");
    assert_eq!(
        world.show("tc class show dev eth1"),
        "class htb 1:1 root rate 1Gbit ceil 1Gbit burst 1375b cburst 1375b\n\
         class htb 1:10 parent 1:1 prio 2 rate 100Mbit ceil 1Gbit burst 1600b cburst 1375b\n\
         class htb 1:20 parent 1:1 leaf 20: prio 1 rate 100Mbit ceil 1Gbit burst 1600b cburst 1375b\n\
         class htb 1:30 parent 1:1 prio 3 rate 100Mbit ceil 1Gbit burst 1600b cburst 1375b\n"
    );
    assert_eq!(
        world.show("tc -s -d -q class show dev eth1 classid 1:10"),
        "class htb 1:10 parent 1:1 prio 2 quantum 200000 rate 100Mbit ceil 1Gbit linklayer ethernet \
         burst 1600b/1 mpu 0b cburst 1375b/1 mpu 0b level 0\n \
         Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)\n \
         backlog 0b 0p requeues 0\n \
         lended: 0 borrowed: 0 giants: 0\n \
         tokens: 2000 ctokens: 187\n \
         [quietcore] quantum is big, consider r2q change\n\n"
    );
    assert_eq!(
        world.show("tc filter show dev eth1"),
        "filter parent 1: protocol ip pref 1 u32 chain 0\n\
         filter parent 1: protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1\n\
         filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 *flowid 1:10 not_in_hw\n  \
         match 00000050/0000ffff at 20\n\
         filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::801 order 2049 key ht 800 bkt 0 *flowid 1:20 not_in_hw\n  \
         match 00000035/0000ffff at 20\n"
    );
}

/// Goal: `parent` and `classid` choose classes: those of a parent, those at the top of htb for the root and
/// for its discipline, and for none all. Method: the names that are shown of htb's tree and of hfsc inside
/// it.
#[test]
fn chosen_classes() {
    let world = World::new(1);
    world.tc(TREE);
    world.tc("tc qd add dev eth1 parent 1:20 handle 2: hfsc
         tc class add dev eth1 parent 2: classid 2:1 hfsc sc rate 1gbit
         tc class add dev eth1 parent 2:1 classid 2:2 hfsc sc rate 1gbit");
    for (asked, shown) in [
        ("", "1:1 1:10 1:20 1:30 2:0 2:1 2:2"),
        ("root", ""),
        ("parent 1:", "1:1 1:10 1:20 1:30"),
        ("parent 1:1", "1:1 1:10 1:20 1:30"),
        ("parent 2:", "2:0 2:1 2:2"),
        ("parent 3:", ""),
        ("classid 1:10", "1:10"),
        ("parent 1: classid 1:10", "1:10"),
    ] {
        let reports = world.classes(&format!("tc class show dev eth1 {asked}"));
        let names: Vec<String> =
            reports.iter().map(|report| format!("{:x}:{:x}", report.id.major(), report.id.minor())).collect();
        assert_eq!(names.join(" "), shown, "{asked}");
    }
}

/// Goal: filters are asked by priority, then by age; one without a priority is asked before all; what is
/// deleted is not asked. Method: filters that contradict each other, and where a packet goes.
#[test]
fn order_of_filters() {
    let world = World::new(1);
    world.tc(TREE);
    world.fill_ahead();
    world.send(parcel(80, 100));
    assert_eq!(counted(&world, "1:10").1, 1);
    world.tc("tc filter add dev eth1 parent 1: prio 1 protocol ip u32 match ip dport 80 0xffff flowid 1:20");
    world.send(parcel(80, 100));
    assert_eq!(counted(&world, "1:10").1, 2, "the older one");
    world.tc("tc filter del dev eth1 parent 1:
         tc filter add dev eth1 parent 1: matchall flowid 1:30
         tc filter add dev eth1 parent 1: protocol ip u32 match ip dport 80 0xffff flowid 1:20");
    world.send(parcel(80, 100));
    assert_eq!(counted(&world, "1:20").1, 1, "the younger one is before the other");
    world.tc("tc filter del dev eth1 parent 1: prio 49151
         tc filter add dev eth1 parent 1: prio 2 matchall classid 1:99");
    world.send(parcel(80, 100));
    assert_eq!(counted(&world, "1:30").1, 1, "a class that is not there is as the default");
    world.drain_ahead();
    for _ in 0..4 {
        assert_eq!(world.gate.next().1.port, 80);
    }
}

/// Goal: a class with classes below it hands on by filters of its own, and so does a discipline inside a
/// class. Method: htb whose filter names an inner class, and hfsc in a leaf; ports that only the inner ones
/// know.
#[test]
fn filters_of_classes() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: htb default 30
         tc class add dev eth1 parent 1: classid 1:1 htb rate 1gbit
         tc class add dev eth1 parent 1:1 classid 1:10 htb rate 1gbit
         tc class add dev eth1 parent 1:1 classid 1:30 htb rate 1gbit
         tc filter add dev eth1 parent 1: prio 1 matchall flowid 1:1
         tc filter add dev eth1 parent 1:1 prio 1 u32 match ip dport 80 0xffff flowid 1:10
         tc qd add dev eth1 parent 1:10 handle 2: hfsc default 1
         tc class add dev eth1 parent 2: classid 2:1 hfsc sc rate 1gbit
         tc class add dev eth1 parent 2: classid 2:2 hfsc sc rate 1gbit
         tc filter add dev eth1 parent 2: prio 1 u32 match ip dport 80 0xffff flowid 2:2");
    world.fill_ahead();
    for port in [80, 7, 80] {
        world.send(parcel(port, 100));
    }
    for (class, qlen) in [("1:10", 2), ("1:30", 1), ("2:1", 0), ("2:2", 2)] {
        assert_eq!(counted(&world, class).1, qlen, "{class}");
    }
    world.drain_ahead();
    let mut ports: Vec<u16> = (0..3).map(|_| world.gate.next().1.port).collect();
    ports.sort_unstable();
    assert_eq!(ports, [7, 80, 80]);
    assert_eq!(counted(&world, "2:2"), (2, 0));
    assert!(
        world
            .show("tc class show dev eth1 parent 2:")
            .contains("class hfsc 2:2 parent 2: sc m1 0bit d 0us m2 1Gbit")
    );
}

/// Goal: classes of all three kinds are added, changed with packets in them, replaced and removed. Method:
/// per kind its lines; packets that were queued leave, those of removed classes are counted as dropped.
#[test]
fn classes_come_and_go() {
    for (root, options, others) in [
        ("htb default 10", "htb rate 100mbit", "htb rate 1gbit ceil 1gbit"),
        ("hfsc default 10", "hfsc sc rate 100mbit", "hfsc sc rate 100mbit ul rate 1gbit"),
        (
            "cbq bandwidth 1gbit avpkt 1000",
            "cbq rate 100mbit allot 1514 avpkt 1000",
            "cbq rate 1gbit allot 1514 avpkt 1000",
        ),
    ] {
        let world = World::new(1);
        world.tc(&format!("tc qd add dev eth1 root handle 1: {root}"));
        for class in ["1:10", "1:20"] {
            world.tc(&format!("tc class add dev eth1 parent 1: classid {class} {options}"));
        }
        world.tc("tc filter add dev eth1 parent 1: prio 1 u32 match ip dport 20 0xffff flowid 1:20
             tc filter add dev eth1 parent 1: prio 2 matchall flowid 1:10");
        world.fill_ahead();
        for port in [10, 20, 10, 20] {
            world.send(parcel(port, 100));
        }
        world.tc(&format!("tc class change dev eth1 classid 1:10 {others}"));
        world.tc(&format!("tc class replace dev eth1 parent 1: classid 1:10 {others}"));
        assert_eq!((counted(&world, "1:10").1, counted(&world, "1:20").1), (2, 2), "{root}");
        assert!(world.refused("tc class del dev eth1 classid 1:20").contains("held by a filter"));
        world.tc("tc filter del dev eth1 parent 1: prio 1
             tc class del dev eth1 classid 1:20");
        world.drain_ahead();
        for _ in 0..2 {
            assert_eq!(world.gate.next().1.port, 10, "{root}");
        }
        let all = world.qdisc("1:").statistics;
        assert_eq!((all.sent_packets, all.dropped, all.qlen), (18, 2, 0), "{root}");
        assert!(
            world.refused("tc class del dev eth1 classid 1:20").contains("not found; there is "),
            "{root}"
        );
    }
}

/// Goal: a change of a class of hfsc is of the curves that it names. Method: `sc`, then `ul`, then `ls`
/// alone.
#[test]
fn curves_are_merged() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: hfsc
         tc class add dev eth1 parent 1: classid 1:1 hfsc sc rate 1mbit
         tc class change dev eth1 classid 1:1 hfsc ls rate 2mbit ul rate 3mbit");
    let shown = world.show("tc class show dev eth1 classid 1:1");
    let curves = "rt m1 0bit d 0us m2 1Mbit ls m1 0bit d 0us m2 2Mbit ul m1 0bit d 0us m2 3Mbit";
    assert_eq!(shown, format!("class hfsc 1:1 parent 1: {curves}\n"));
}

/// Goal: what a line does not number gets the kernel's numbers, and what is deleted is that alone. Method: a
/// filter without a priority, which is behind all that have one; two of one priority, which share a table;
/// errors that name the priorities that there are, and that none is left.
#[test]
fn numbers_of_filters() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: htb
         tc class add dev eth1 parent 1: classid 1:10 htb rate 1gbit
         tc filter add dev eth1 parent 1: prio 5 u32 match ip dport 80 0xffff flowid 1:10
         tc filter add dev eth1 parent 1: prio 9 u32 match ip dport 81 0xffff flowid 1:10
         tc filter add dev eth1 parent 1: u32 match ip dport 82 0xffff flowid 1:10
         tc filter add dev eth1 parent 1: prio 5 u32 match ip dport 83 0xffff flowid 1:10");
    let numbers = || -> String {
        let shown = world.control.execute_line("tc -s filter show dev eth1 parent 1:");
        let Ok(Answer::Filters(reports)) = shown else { panic!("{shown:?}") };
        assert!(reports.iter().all(|report| report.device == "eth1" && report.shown.style.statistics));
        let named = |report: &FilterReport| Some(format!("{} {}", report.prio, report.handle?));
        reports.iter().filter_map(named).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(numbers(), "5 800::800, 5 800::801, 9 801::800, 49152 802::800");
    assert_eq!(
        world.refused("tc filter del dev eth1 parent 1: prio 6"),
        "Filter with specified priority/protocol not found: none has priority 6; there is 5, 9, 49152"
    );
    world.tc("tc filter del dev eth1 parent 1: prio 5");
    assert_eq!(numbers(), "9 801::800, 49152 802::800");
    world.tc("tc filter del dev eth1 parent 1: prio 9 handle 801::800 u32
         tc filter add dev eth1 parent 1: prio 3 matchall flowid 1:10
         tc filter del dev eth1 parent 1: prio 3 handle 1 matchall");
    assert_eq!(numbers(), "49152 802::800");
    world.tc("tc filter add dev eth1 parent 1: prio 32768 u32 match ip dport 84 0xffff flowid 1:10
         tc filter add dev eth1 parent 1: prio 32767 u32 match ip dport 84 0xffff flowid 1:10");
    assert_eq!(
        world.refused("tc filter add dev eth1 parent 1: matchall flowid 1:10"),
        "no priority is left before the first filter; name one with `prio`"
    );
}

/// Goal: filters of each kind send packets where they say, by priority, and a change sends them elsewhere.
/// Method: one of each for one port; the class counts.
#[test]
fn filters_of_each_kind() {
    for (filter, change) in [
        ("handle 800::5 u32 match ip dport 80 0xffff", "handle 800::5 u32"),
        ("handle 7 flower ip_proto udp dst_port 80", "handle 7 flower ip_proto udp dst_port 80"),
        (
            "handle 7 basic match cmp(u16 at 2 layer 2 eq 80)",
            "handle 7 basic match cmp(u16 at 2 layer 2 eq 80)",
        ),
        ("handle 80 fw", "handle 80 fw"),
        ("handle 0x10/0x1f fw", "handle 0x10/0x1f fw"),
        ("handle 800::5 u32 match mark 80 0xffff", "handle 800::5 u32"),
    ] {
        let world = World::new(1);
        world.tc("tc qd add dev eth1 root handle 1: htb default 30
             tc class add dev eth1 parent 1: classid 1:10 htb rate 1gbit
             tc class add dev eth1 parent 1: classid 1:20 htb rate 1gbit
             tc class add dev eth1 parent 1: classid 1:30 htb rate 1gbit");
        world.fill_ahead();
        let line = format!("dev eth1 parent 1: protocol ip prio 5 {filter} flowid 1:10");
        world.tc(&format!("tc filter add {line}"));
        let queued = |port| {
            world.send(parcel(port, 100));
            [counted(&world, "1:10").1, counted(&world, "1:20").1]
        };
        assert_eq!((queued(80), queued(81), queued(NOT_IP)), ([1, 0], [1, 0], [1, 0]), "{filter}");
        assert!(
            world.refused(&format!("tc filter add {line}")).contains("Filter already exists"),
            "{filter}"
        );
        assert!(world.refused("tc class del dev eth1 classid 1:10").contains("held by a filter"), "{filter}");
        world.tc(&format!("tc filter change dev eth1 parent 1: protocol ip prio 5 {change} flowid 1:20"));
        assert_eq!((queued(80), queued(81)), ([1, 1], [1, 1]), "{filter}");
        world.tc("tc filter del dev eth1 parent 1: protocol ip prio 5");
        assert_eq!(queued(80), [1, 1], "{filter}");
    }
}

/// Goal: of one priority, `flower`s that look at the same bits are asked together in the order of the first
/// of them, and of `basic`s the newest is first. Method: filters that contradict each other.
#[test]
fn order_in_one_priority() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: htb
         tc class add dev eth1 parent 1: classid 1:10 htb rate 1gbit
         tc class add dev eth1 parent 1: classid 1:20 htb rate 1gbit");
    world.fill_ahead();
    let queued = || {
        world.send(parcel(80, 100));
        [counted(&world, "1:10").1, counted(&world, "1:20").1]
    };
    let flower = "tc filter add dev eth1 parent 1: protocol ip prio 5 handle";
    world.tc(&format!(
        "{flower} 9 flower ip_proto udp dst_port 81 flowid 1:10
         {flower} 2 flower ip_proto udp flowid 1:20
         {flower} 3 flower ip_proto udp dst_port 80 flowid 1:10"
    ));
    assert_eq!(queued(), [1, 0], "ports are looked at first, as by the first one");
    world.tc("tc filter del dev eth1 parent 1: prio 5
         tc filter add dev eth1 parent 1: protocol ip prio 5 basic flowid 1:10
         tc filter add dev eth1 parent 1: protocol ip prio 5 basic flowid 1:20");
    assert_eq!(queued(), [1, 1]);
}

/// Goal: all that a u32 names has to be true, and `protocol ip` is IPv4 alone. Method: a u32 of which one
/// half is true, then matchalls of either protocol, and packets that are of IPv4 or not.
#[test]
fn what_filters_match() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: htb default 10
         tc class add dev eth1 parent 1: classid 1:10 htb rate 1gbit
         tc class add dev eth1 parent 1: classid 1:20 htb rate 1gbit
         tc filter add dev eth1 parent 1: prio 1 u32 match ip dport 80 0xff match ip src 10/8 flowid 1:20");
    world.fill_ahead();
    let queued = |port| {
        world.send(parcel(port, 100));
        (counted(&world, "1:10").1, counted(&world, "1:20").1)
    };
    assert_eq!(queued(80), (1, 0));
    world.tc("tc filter add dev eth1 parent 1: prio 2 protocol ip matchall flowid 1:20");
    assert_eq!((queued(80), queued(NOT_IP)), ((1, 1), (2, 1)));
    world.tc("tc filter add dev eth1 parent 1: prio 3 protocol all matchall flowid 1:20");
    assert_eq!(queued(NOT_IP), (2, 2));
}

/// Goal: a packet is handed on eight times and no more. Method: nine classes of hfsc in each other, each with
/// a filter for the next one; in the last there is a fifo, and a packet reaches it; then a tenth class.
#[test]
fn handed_on_eight_times() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: hfsc");
    let inner = |class: u32| {
        let parent = if class == 1 { "1:".into() } else { format!("1:{:x}", class - 1) };
        world.tc(&format!(
            "tc class add dev eth1 parent {parent} classid 1:{class:x} hfsc sc rate 1gbit
             tc filter add dev eth1 parent {parent} prio 1 matchall flowid 1:{class:x}"
        ));
    };
    (1..=9).for_each(inner);
    world.tc("tc qd add dev eth1 parent 1:9 handle 2: pfifo limit 5");
    let shown = world.show("tc class show dev eth1 classid 1:9");
    assert!(shown.starts_with("class hfsc 1:9 parent 1:8 leaf 2: sc "), "{shown}");
    world.send(parcel(80, 100));
    assert_eq!(world.gate.next().1.port, 80);
    inner(10);
    assert!(!world.device.send_through(0, parcel(80, 100)).is_accepted(), "the ninth is no leaf");
}
