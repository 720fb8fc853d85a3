//! The script of seed 000, as typed, and what is shown of it.

use super::world::{World, parcel};
use quietcore::qdisc::tc::TcStyle;
use quietcore::qdisc::{ClassId, Enqueued};

const ADDED: [(u32, u32); 8] = [
    (70_000, 6),
    (70_000, 8),
    (70_000, 10),
    (70_000, 12),
    (70_000, 14),
    (70_000, 16),
    (80_000, 18),
    (90_000, 20),
];

fn script() -> Vec<String> {
    let mut lines = vec!["tc qd add dev eth1 root handle 1: mq".to_string()];
    for (queue, (limit, delay)) in ADDED.iter().enumerate() {
        let place = format!("parent 1:{} est 1sec 4sec", queue + 1);
        lines.push(format!("tc qd add dev eth1 {place} netem limit {limit} delay {delay}ms"));
    }
    lines
}

/// Goal: the script does what it does on Linux, and is shown as there. Method: all its lines, the first of
/// which is refused as on a fresh device; then the list, with and without statistics.
#[test]
fn the_script_of_the_seed() {
    let world = World::new(8);
    let refused = world.refused("tc qd del dev eth1 root 2>/dev/null");
    assert!(refused.starts_with("Cannot delete qdisc with handle of zero"), "{refused}");
    script().iter().for_each(|line| world.tc(line));
    let mut expected = "qdisc mq 1: root\n".to_string();
    // The kernel's order, which is by handles.
    for class in [1, 5, 3, 7, 2, 4, 6, 8] {
        let (handle, (limit, delay)) = (0x8000 + class, ADDED[class - 1]);
        expected += &format!("qdisc netem {handle:x}: parent 1:{class} limit {limit} delay {delay}ms\n");
    }
    assert_eq!(world.show("tc qd show dev eth1"), expected);
    // Nothing was sent: all figures are 0 but those of the lock, which are ours.
    let shown = world.show("tc -s -q qd show dev eth1");
    let mut lines = shown.lines();
    for expected in [
        "qdisc mq 1: root",
        " Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)",
        " backlog 0b 0p requeues 0",
        "qdisc netem 8001: parent 1:1 limit 70000 delay 6ms",
        " Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)",
        " rate 0bit 0pps backlog 0b 0p requeues 0",
    ] {
        // The seed is ours, too.
        let line = lines.next().and_then(|line| line.split(" seed ").next());
        assert_eq!(line, Some(expected), "{shown}");
    }
    let ours = lines.next().expect("a line of ours");
    let figures = "dequeued at home 0 elsewhere 0 off lanes 0, watchdogs 0 elsewhere 0, delay timers 0, dropped for want of memory 0, lock taken ";
    assert!(ours.starts_with(&format!(" [quietcore] queue 0: {figures}")), "{ours}");
}

/// Goal: mq's figures are the sums of its queues', and each queue's packets are delayed. Method: a packet
/// through each queue of the script.
#[test]
fn sums_of_queues() {
    let world = World::new(8);
    script().iter().for_each(|line| world.tc(line));
    for queue in 0..8 {
        assert!(world.device.send_through(queue, parcel(queue as u16, 100)).is_accepted());
    }
    let mut queues: Vec<usize> = (0..8).map(|_| world.gate.next().0).collect();
    queues.sort_unstable();
    assert_eq!(queues, [0, 1, 2, 3, 4, 5, 6, 7]);
    let reports = world.qdiscs("tc -s qd show dev eth1");
    assert_eq!((reports[0].statistics.sent_bytes, reports[0].statistics.sent_packets), (800, 8));
    assert!(reports[1..].iter().all(|report| report.statistics.sent_packets == 1));
    assert!(
        reports[1..].iter().all(|report| report.queue.is_some_and(|queue| queue.statistics.watchdogs > 0))
    );
}

/// The lines without ours, and without what is in front of each.
fn figures(text: String) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.contains("[quietcore]"));
    lines.map(|line| line.trim_start().to_owned()).collect()
}

/// Goal: each queue's figures are its own, its class's and its discipline's; what the driver gave back
/// counts. Method: an mq of two queues, one with a discipline of its own; packets that leave through either,
/// then three that the discipline lets go and the driver gives back, until there is room again.
#[test]
fn figures_of_each_queue() {
    let world = World::new(2);
    world.tc("tc qd add dev eth1 root handle 1: mq
         tc qd add dev eth1 parent 1:2 handle 20: pfifo limit 50");
    for (queue, bytes) in [(0, 100), (1, 40), (1, 50)] {
        assert!(world.device.send_through(queue, parcel(7, bytes)).is_accepted());
        assert_eq!(world.gate.next().0, queue);
    }
    world.gate.close();
    for bytes in [60, 70, 80] {
        assert!(world.device.send_through(1, parcel(7, bytes)).is_accepted());
    }
    // How often they are given back meanwhile depends on the machine.
    let until = |word: &str, text: String| -> Vec<String> {
        figures(text).iter().map(|line| line.split(word).next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(
        until(" requeues", world.show("tc -s qdisc show dev eth1")),
        [
            "qdisc mq 1: root",
            "Sent 400 bytes 6 pkt (dropped 0, overlimits 0",
            "backlog 210b 3p",
            "qdisc pfifo 0: parent 1:1 limit 1000p",
            "Sent 100 bytes 1 pkt (dropped 0, overlimits 0",
            "backlog 0b 0p",
            "qdisc pfifo 20: parent 1:2 limit 50p",
            "Sent 300 bytes 5 pkt (dropped 0, overlimits 0",
            "backlog 210b 3p",
        ]
    );
    world.gate.open();
    world.device.wake_queue(1);
    world.gate.pass(3);
    let (requeues, refused) = (world.qdisc("20:").statistics.requeues, world.gate.refused());
    assert!(refused >= 3, "each found no room: {refused}");
    assert!(
        (6.max(refused)..=3 * refused).contains(&requeues),
        "with those behind it: {requeues} of {refused}"
    );
    assert_eq!(
        figures(world.show("tc -s qdisc show dev eth1")),
        [
            "qdisc mq 1: root",
            &format!("Sent 400 bytes 6 pkt (dropped 0, overlimits 0 requeues {requeues})"),
            &format!("backlog 0b 0p requeues {requeues}"),
            "qdisc pfifo 0: parent 1:1 limit 1000p",
            "Sent 100 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)",
            "backlog 0b 0p requeues 0",
            "qdisc pfifo 20: parent 1:2 limit 50p",
            &format!("Sent 300 bytes 5 pkt (dropped 0, overlimits 0 requeues {requeues})"),
            &format!("backlog 0b 0p requeues {requeues}"),
        ]
    );
    assert_eq!(
        figures(world.show("tc -s class show dev eth1")),
        [
            "class mq 1:1 root",
            "Sent 100 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)",
            "backlog 0b 0p requeues 0",
            "class mq 1:2 root leaf 20:",
            &format!("Sent 300 bytes 5 pkt (dropped 0, overlimits 0 requeues {requeues})"),
            &format!("backlog 0b 0p requeues {requeues}"),
        ]
    );
}

/// Goal: queues are shown in their order, with their disciplines, to a reader and to a program. Method: as
/// above, without packets.
#[test]
fn each_queue_is_shown() {
    let world = World::new(2);
    world.tc("tc qd add dev eth1 root handle 1: mq
         tc qd add dev eth1 parent 1:2 handle 20: pfifo limit 50");
    assert!(world.show("tc -s qdisc show dev eth1 handle 1:").starts_with("qdisc mq 1: root\n"));
    assert_eq!(
        world.show("tc qdisc show"),
        "qdisc mq 1: dev eth1 root\n\
         qdisc pfifo 0: dev eth1 parent 1:1 limit 1000p\n\
         qdisc pfifo 20: dev eth1 parent 1:2 limit 50p\n"
    );
    let reports = world.qdiscs("tc qdisc show dev eth1");
    let numbers = reports.iter().map(|report| (report.handle, report.queue.map(|queue| queue.number)));
    let handles = [1, 0, 0x20].map(|handle| ClassId::new(handle, 0));
    let expected = [(handles[0], None), (handles[1], Some(0)), (handles[2], Some(1))];
    assert_eq!(numbers.collect::<Vec<_>>(), expected);
    assert!(world.classes("tc class show dev eth1").iter().all(|class| class.device == "eth1"));
}

/// Goal: what is inside of a class is shown with its own figures, and fq with what it counts besides. Method:
/// packets through a fifo in a class; then some that go straight through an fq.
#[test]
fn figures_of_what_is_inside() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: htb default 10
         tc class add dev eth1 parent 1: classid 1:10 htb rate 1gbit
         tc qd add dev eth1 parent 1:10 handle 2: pfifo limit 5");
    world.send_all(3, &parcel(7, 70));
    world.gate.pass(3);
    assert_eq!(
        world.show("tc -s qd show dev eth1 handle 2:"),
        "qdisc pfifo 2: parent 1:10 limit 5p\n \
         Sent 210 bytes 3 pkt (dropped 0, overlimits 0 requeues 0)\n \
         backlog 0b 0p requeues 0\n"
    );
    world.tc("tc qd replace dev eth1 root handle 3: fq");
    for _ in 0..2 {
        world.send(parcel(7, 70));
        world.gate.next();
    }
    let figures = world.qdisc("3:").figures.text(TcStyle::default());
    assert!(figures.ends_with("\n  gc 0 highprio 2 throttled 0"), "{figures}");
}

/// Goal: the script can be pasted again and again. Method: twice more, with its first line; handles go on as
/// the kernel's do.
#[test]
fn again() {
    let world = World::new(8);
    for round in 0..3 {
        if round > 0 {
            world.tc("tc qd del dev eth1 root");
        }
        script().iter().for_each(|line| world.tc(line));
        let first = format!("qdisc netem {:x}: parent 1:1 ", 0x8001 + 8 * round);
        assert!(world.show("tc qd sh dev eth1 parent 1:1").starts_with(&first));
    }
    world.tc("tc qd del dev eth1 root");
    let shown = world.show("tc qd show dev eth1");
    assert!(shown.starts_with("qdisc mq 0: root\nqdisc pfifo 0: parent :8 limit 1000p\n"), "{shown}");
    assert_eq!(shown.lines().count(), 9);
}

/// Goal: a root discipline other than mq is one for all queues, until it goes. Method: packets through the
/// second queue, before, with and after a fifo at the root.
#[test]
fn one_root_for_all() {
    let world = World::new(2);
    for (line, queue) in [
        ("tc qd add dev eth1 root handle 5: pfifo limit 7", 0),
        ("tc qd replace dev eth1 root handle 6: mq", 1),
        ("tc qd replace dev eth1 root bfifo limit 10kb", 0),
        ("tc qd del dev eth1 root", 1),
    ] {
        world.tc(line);
        assert!(world.device.send_through(1, parcel(1, 100)).is_accepted());
        assert_eq!(world.gate.next().0, queue, "{line}");
    }
    world.tc("tc qd add dev eth1 root handle 5: pfifo limit 7");
    assert_eq!(world.show("tc qd show"), "qdisc pfifo 5: dev eth1 root refcnt 3 limit 7p\n");
}

/// Goal: every kind is shown with what it was told, and defaults. Method: a line each.
#[test]
fn kinds_as_shown() {
    let world = World::new(1);
    for (typed, shown) in [
        ("pfifo", "pfifo 5: root refcnt 2 limit 1000p"),
        ("bfifo limit 2kb", "bfifo 5: root refcnt 2 limit 2Kb"),
        ("tbf rate 500kbit burst 5kb latency 70ms", "tbf 5: root refcnt 2 rate 500Kbit burst 5Kb lat 70ms"),
        (
            "netem delay 100ms 10ms 25% distribution normal loss 0.3% 25% duplicate 1% reorder 25% 50%",
            "netem 5: root refcnt 2 limit 1000 delay 100ms  10ms 25% loss 0.3% 25% duplicate 1% \
             reorder 25% 50% gap 1",
        ),
        (
            "netem rate 1mbit loss gemodel 1% 10% seed 7",
            "netem 5: root refcnt 2 limit 1000 loss gemodel p 1% r 10% 1-h 100% 1-k 0% rate 1Mbit seed 7",
        ),
        (
            "netem slot 800us 1ms packets 32 loss state 1% ecn",
            "netem 5: root refcnt 2 limit 1000 loss state p13 1% p31 99% p32 0% p23 100% p14 0% slot 800us 1ms \
             packets 32 ecn",
        ),
        (
            "fq maxrate 10mbit nopacing",
            "fq 5: root refcnt 2 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 nopacing quantum 3028b initial_quantum 15140b maxrate 10Mbit \
             low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop",
        ),
        ("htb default 10", "htb 5: root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000"),
        ("hfsc default 1f", "hfsc 5: root refcnt 2 default 1f"),
        (
            "cbq bandwidth 10mbit avpkt 1000",
            "cbq 5: root refcnt 2 rate 10Mbit (bounded,isolated) prio no-transmit",
        ),
    ] {
        world.tc(&format!("tc qd add dev eth1 root handle 5: {typed}"));
        assert_eq!(world.show("tc qd show dev eth1"), format!("qdisc {shown}\n"), "{typed}");
        world.tc("tc qd del dev eth1 root");
    }
}

/// Goal: devices are apart, and handles are not given twice. Method: two devices; what is shown of one, of
/// both, and when one is gone.
#[test]
fn two_devices() {
    let (world, other) = (World::new(1), World::new(1));
    world.control.add_device("eth0", other.device.clone()).expect("another one");
    let taken = world.control.add_device("eth0", other.device.clone()).expect_err("it is there");
    assert_eq!(taken.to_string(), "there is a device \"eth0\" already");
    let named = world.control.add_device("eth7", world.device.clone()).expect_err("it has a name");
    assert_eq!(named.to_string(), "there is a device \"eth1\" already");
    world.tc("tc qd add dev eth0 root pfifo limit 7
         tc qd add dev eth1 root pfifo limit 8");
    assert_eq!(
        world.show("tc qd show"),
        "qdisc pfifo 8001: dev eth0 root refcnt 2 limit 7p\n\
         qdisc pfifo 8002: dev eth1 root refcnt 2 limit 8p\n"
    );
    assert_eq!(world.show("tc qd show dev eth1 root"), "qdisc pfifo 8002: root refcnt 2 limit 8p\n");
    assert!(world.refused("tc qd show dev eth2").ends_with("there is eth0, eth1"));
    world.tc("tc qd replace dev eth1 root handle 8003: pfifo limit 9
         tc qd replace dev eth0 root handle 8001: pfifo limit 7
         tc qd del dev eth1 root
         tc qd add dev eth1 root handle 8003: htb
         tc class add dev eth1 parent 8003: classid 8003:1 htb rate 1mbit
         tc qd add dev eth1 parent 8003:1 pfifo limit 6");
    assert!(world.show("tc qd show dev eth1").ends_with("qdisc pfifo 8004: parent 8003:1 limit 6p\n"));
    world.tc("tc qd del dev eth1 root
         tc qd add dev eth1 root handle 8002: pfifo limit 8");
    world.control.remove_device("eth0");
    world.control.add_device("eth9", other.device.clone()).expect("it is free again");
    let fresh = "qdisc mq 0: root\nqdisc pfifo 0: parent :1 limit 1000p\n";
    assert_eq!(world.show("tc qd show dev eth9"), fresh, "it begins anew");
    world.control.remove_device("eth9");
    assert!(world.refused("tc qd show dev eth0").ends_with("there is eth1"));
    assert_eq!(world.show("tc qd show"), "qdisc pfifo 8002: dev eth1 root refcnt 2 limit 8p\n");
}

/// Goal: the seed that a netem drew gives its network again. Method: `-q` shows it; a line that names it
/// loses the same packets.
#[test]
fn a_drawn_seed_is_shown() {
    let lost = |world: &World| -> Vec<bool> {
        let packets = (0..64).map(|_| world.device.send_through(0, parcel(1, 100)));
        packets.map(|verdict| verdict == Enqueued::Lost).collect()
    };
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 5: netem loss 50%");
    let shown = world.show("tc -q qd show dev eth1");
    let options = shown.trim_end().strip_prefix("qdisc netem 5: root refcnt 2 ").expect("it is there");
    let first = lost(&world);
    assert!(options.contains(" loss 50% seed "), "{options}");
    world.tc(&format!("tc qd replace dev eth1 root handle 6: netem {options}"));
    assert_eq!(lost(&world), first);
    // A line that names none leaves the seed as it is.
    world.tc("tc qd change dev eth1 root netem loss 50% seed 23
         tc qd change dev eth1 root netem loss 40%");
    let shown = world.show("tc -q qd show dev eth1");
    assert_eq!(shown, "qdisc netem 6: root refcnt 2 limit 1000 loss 40% seed 23\n");
}

/// Goal: what the grammar lets through at its edges does not panic. Method: the largest and smallest numbers,
/// in lines that may be refused, and packets of any length.
#[test]
fn edges() {
    let world = World::new(1);
    let most = u32::MAX;
    for options in [
        format!("netem limit {most} delay 100000000s 100000000s 100% distribution pareto rate 8bit 2147483647 1 2147483647"),
        "netem limit 0 delay 1ns 3000000000s 50% reorder 100% 100% gap 4294967295 duplicate 100% corrupt 100%".into(),
        format!("netem slot 0 9000000s packets {most} bytes {most} loss state 100% 100% 100% 100% 100%"),
        "netem slot distribution normal 0 9000000s rate 15tbit loss gemodel 0% 0% 0% 0% ecn".into(),
        format!("tbf rate 8bit burst {most} limit {most} overhead 65535 mpu {most} linklayer atm"),
        format!("tbf rate 8bit burst {most} latency 9000000000s peakrate 100000tbit mtu 1"),
        format!("fq limit {most} flow_limit {most} quantum {most} initial_quantum {most} maxrate 8bit horizon 9000000000s"),
        format!("fq refill_delay 9000000000s buckets {most} ce_threshold 0 timer_slack 9000000000s orphan_mask 0"),
        format!("pfifo limit {most}"),
        format!("htb default ffff r2q {most} direct_qlen {most}"),
        "hfsc default ffff".into(),
        format!("cbq bandwidth 100000tbit avpkt {most} allot {most} mpu {most} ewma 20"),
    ] {
        let line = format!("tc qd replace dev eth1 root handle 5: {options}");
        if let Err(error) = world.control.execute_line(&line) {
            panic!("{line}: {error}");
        }
        for class in [
            format!("htb rate 8bit ceil 100000tbit burst {most} cburst {most} prio 7 quantum {most} mtu {most}"),
            "hfsc rt m1 100000tbit d 9000000000s m2 0bit ls umax 4gb dmax 9000000000s rate 100000tbit".into(),
            format!("cbq rate 8bit allot {most} avpkt {most} maxburst {most} minburst {most} minidle {most} ewma 20"),
        ] {
            // Two of three are of other kinds.
            let _ = world.control.execute_line(&format!("tc class add dev eth1 parent 5: classid 5:ffff {class}"));
        }
        for bytes in [0, 1, 1_500, most, 1] {
            let _ = world.device.send_through(0, parcel(1, bytes));
        }
        assert!(world.show("tc -s -d qd show dev eth1").contains("5: root"), "{options}");
        assert!(world.show("tc -s -d class show dev eth1").lines().count() < 20);
        world.tc("tc qd del dev eth1 root");
    }
}
