//! What cannot be done, and what is said then.

use super::world::World;

/// What there is when lines are refused.
const GIVEN: &str = "
    tc qd add dev eth1 root handle 1: mq
    tc qd add dev eth1 parent 1:1 handle 2: htb default 10
    tc class add dev eth1 parent 2: classid 2:1 htb rate 1mbit
    tc class add dev eth1 parent 2:1 classid 2:10 htb rate 1mbit
    tc filter add dev eth1 parent 2: prio 7 matchall flowid 2:10
    tc qd add dev eth1 parent 2:10 handle 3: netem
    tc qd add dev eth1 parent 1:2 handle 4: fq";

fn assert_refused(lines: &[(&str, &str)]) {
    let world = World::new(2);
    world.tc(GIVEN);
    let before = (
        world.show("tc qd show"),
        world.show("tc class show dev eth1"),
        world.show("tc filter show dev eth1 parent 2:"),
    );
    for (line, part) in lines {
        let refused = world.refused(line);
        assert!(refused.contains(part), "{line}\n{refused}");
        let after = (
            world.show("tc qd show"),
            world.show("tc class show dev eth1"),
            world.show("tc filter show dev eth1 parent 2:"),
        );
        assert_eq!(before, after, "{line} changed something");
    }
    // Not even the next handle.
    world.tc("tc qd replace dev eth1 parent 1:2 pfifo");
    assert!(world.show("tc qd show dev eth1 parent 1:2").starts_with("qdisc pfifo 8001:"));
}

/// Goal: every way in which a discipline cannot be had says why, and changes nothing. Method: a list.
#[test]
fn disciplines() {
    assert_refused(&[
        ("tc qd add dev eth2 root mq", "Cannot find device \"eth2\"; there is eth1"),
        ("tc qd show dev eth2", "Cannot find device"),
        ("tc qd show dev \u{1b}[2J", "Cannot find device \"\\u{1b}[2J\""),
        (
            "tc qd add dev eth1 root mq",
            "File exists: eth1 root has mq 1: already; use `replace`, or `del` it first",
        ),
        ("tc qd add dev eth1 parent 1:2 pfifo", "File exists: eth1 parent 1:2 has fq 4: already"),
        ("tc qd add dev eth1 parent 1:3 pfifo", "class 1:3 not found; there is 1:1, 1:2"),
        ("tc qd add dev eth1 parent 1: pfifo", "class 1: not found; there is 1:1, 1:2"),
        ("tc qd add dev eth1 parent 9:1 pfifo", "handle 9:; there is 1:, 2:, 3:, 4:"),
        ("tc qd add dev eth1 parent 3: handle 2: pfifo", "handle 2: is that of parent 1:1"),
        ("tc qd add dev eth1 parent 3: handle 1: pfifo", "handle 1: is that of root"),
        ("tc qd add dev eth1 parent 3: mq", "mq can only be a device's root; use `root`"),
        ("tc qd add dev eth1 parent 4:1 pfifo", "fq 4: has no classes"),
        ("tc qd add dev eth1 parent 2:1 pfifo", "class 2:1 is held by classes below it"),
        ("tc qd add dev eth1 parent 2:11 pfifo", "class 2:11 not found; there is 2:10"),
        ("tc qd change dev eth1 parent 3: pfifo", "Qdisc not found"),
        ("tc qd change dev eth1 parent 1:2 handle 5: fq", "Invalid handle: 5: is not there, but 4:"),
        ("tc qd change dev eth1 parent 1:2 pfifo", "it is fq and cannot become pfifo"),
        ("tc qd replace dev eth1 parent 1:2 handle 4: pfifo", "it is fq and cannot become pfifo"),
        ("tc qd replace dev eth1 parent 1:2 handle 3: pfifo", "handle 3: is that of parent 2:10"),
        ("tc qd change dev eth1 handle 9: pfifo", "handle 9:; there is 1:"),
        ("tc qd change dev eth1 parent 1:1 htb", "Change operation not supported by specified qdisc: htb"),
        ("tc qd del dev eth1 handle 4:", "Classid cannot be zero"),
        ("tc qd del dev eth1 handle 9:", "handle 9:; there is"),
        (
            "tc qd del dev eth1 parent 3:",
            "Cannot delete qdisc with handle of zero: eth1 parent 3: has its default",
        ),
        ("tc qd del dev eth1 root handle 4:", "Invalid handle: 4: is not there, but 1:"),
        ("tc qd del dev eth1 root fq", "it is mq and cannot become fq"),
        ("tc qd ad dev eth1 root mqq", "^^"),
    ]);
}

/// Goal: options that cannot be are named, with their values. Method: a list.
#[test]
fn options() {
    assert_refused(&[
        (
            "tc qd replace dev eth1 root netem delay 0ms reorder 25%",
            "netem: `reorder 1` cannot be: reordering is not possible",
        ),
        ("tc qd replace dev eth1 root netem delay 0ms gap 5", "`gap 5`"),
        ("tc qd replace dev eth1 root netem slot 2ms 1ms", "`slot 2ms 1ms`"),
        ("tc qd replace dev eth1 root netem rate 7bit", "netem: `rate 7bit` cannot be: a rate is one byte"),
        ("tc qd replace dev eth1 root netem delay 9000000000s", "longer than 100 years"),
        ("tc qd replace dev eth1 root tbf rate 7bit burst 1kb limit 1kb", "tbf: `rate 7bit`"),
        ("tc qd replace dev eth1 root tbf rate 8bit burst 0 limit 1kb", "tbf: `burst 0b`"),
        ("tc qd replace dev eth1 root tbf rate 8bit burst 1 limit 0", "tbf: `limit 0b`"),
        (
            "tc qd replace dev eth1 root tbf rate 16bit burst 1 limit 1 peakrate 8bit mtu 1",
            "tbf: `peakrate 8bit`",
        ),
        ("tc qd replace dev eth1 root fq quantum 0", "fq: `quantum 0`"),
        ("tc qd replace dev eth1 root fq weights 1 1 1", "fq: `weights 1`"),
        ("tc qd replace dev eth1 root fq buckets 0", "fq: `buckets 0`"),
        ("tc qd replace dev eth1 root htb r2q 0", "htb: `r2q 0`"),
        ("tc qd replace dev eth1 root cbq bandwidth 1bit avpkt 1", "cbq: `bandwidth 1bit`"),
        ("tc qd replace dev eth1 root cbq bandwidth 8bit avpkt 0", "cbq: `avpkt 0b`"),
        ("tc qd replace dev eth1 root cbq bandwidth 8bit avpkt 1 ewma 31", "cbq: `ewma 31`"),
        ("tc qd replace dev eth1 parent 1:2 est 9sec 4sec pfifo", "est: `est 9s 4s` cannot be"),
        ("tc qd replace dev eth1 parent 1:2 est 1sec 1sec pfifo", "est: `est 1s 1s` cannot be"),
    ]);
}

/// Goal: classes and filters likewise. Method: a list.
#[test]
fn classes_and_filters() {
    assert_refused(&[
        ("tc class add dev eth1 parent 2:1 classid 2:10 htb rate 1mbit", "there is a class 2:10 already"),
        ("tc class add dev eth1 parent 2:1 classid 3:10 htb rate 1mbit", "class 3:10 cannot be below 2:1"),
        (
            "tc class add dev eth1 parent 2:5 classid 2:11 htb rate 1mbit",
            "class 2:5 not found; there is 2:1, 2:10",
        ),
        ("tc class add dev eth1 parent 2: htb rate 1mbit", "name it with `classid`"),
        ("tc class add dev eth1 parent 2: classid 2: htb rate 1mbit", "2: is the discipline itself"),
        (
            "tc class add dev eth1 parent 2: classid 2:7 hfsc sc rate 1mbit",
            "it is htb and cannot become hfsc",
        ),
        ("tc class add dev eth1 parent 9: classid 9:7 htb rate 1mbit", "handle 9:; there is 1:"),
        ("tc class add dev eth1 parent 4: classid 4:7 htb rate 1mbit", "fq 4: has no classes"),
        ("tc class add dev eth1 parent 1: classid 1:7 htb rate 1mbit", "the device's queues"),
        ("tc class add dev eth1 parent 2: classid 2:7 htb rate 7bit", "htb: `rate 7bit`"),
        ("tc class add dev eth1 parent 2: classid 2:7 htb rate 8bit quantum 0", "htb: `quantum 0`"),
        ("tc class change dev eth1 classid 2:7 htb rate 1mbit", "class 2:7 not found; there is 2:1, 2:10"),
        ("tc class change dev eth1 parent 2: classid 2:10 htb rate 1mbit", "class 2:10 stays below 2:1"),
        ("tc class del dev eth1 classid 2:7", "class 2:7 not found"),
        ("tc class del dev eth1 classid 2:1", "class 2:1 is held by classes below it"),
        ("tc class del dev eth1 classid 2:10", "class 2:10 is held by a filter"),
        ("tc filter add dev eth1 prio 1 matchall flowid 2:10", "mq 1: has no filters"),
        (
            "tc filter add dev eth1 parent 4: prio 1 matchall flowid 4:1",
            "fq 4: has no classes to choose from",
        ),
        (
            "tc filter add dev eth1 parent 2:9 prio 1 matchall flowid 2:10",
            "class 2:9 not found; there is 2:1, 2:10",
        ),
        ("tc filter add dev eth1 parent 2: prio 7 matchall flowid 2:1", "priority 7 of 2: has its matchall"),
        (
            "tc filter add dev eth1 parent 2: prio 7 protocol ip matchall flowid 2:1",
            "priority 7 of 2: is matchall of all",
        ),
        (
            "tc filter add dev eth1 parent 2: prio 7 u32 match ip dport 1 0xffff flowid 2:1",
            "priority 7 of 2: is matchall",
        ),
        (
            "tc filter add dev eth1 parent 2: prio 8 protocol ipv6 matchall flowid 2:1",
            "matchall: `protocol ipv6`",
        ),
        ("tc filter add dev eth1 parent 2: prio 0 matchall flowid 2:1", "matchall: `prio 0`"),
        (
            "tc filter add dev eth1 parent 2: prio 8 matchall flowid 3:1",
            "matchall: `flowid 3:1` cannot be: name another class of 2:",
        ),
        (
            "tc filter del dev eth1 parent 2: prio 8",
            "Cannot find specified filter of 2:; of priorities there is 7",
        ),
        ("tc filter del dev eth1 parent 2:1", "of 2:1; of priorities there is none"),
    ]);
}

/// Goal: a class of cbq that says otherwise than its discipline is refused. Method: bandwidth and packets.
#[test]
fn cbq_says_one_thing() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: cbq bandwidth 10mbit avpkt 1000");
    let class = "tc class add dev eth1 parent 1: classid 1:1 cbq";
    for (options, part) in [
        (
            "bandwidth 1mbit rate 1mbit allot 1514 avpkt 1000",
            "`bandwidth 1mbit` cannot be: the link's is 10mbit",
        ),
        ("rate 1mbit allot 1514 avpkt 500", "`avpkt 500b` cannot be: it is the discipline's here: 1000b"),
    ] {
        let refused = world.refused(&format!("{class} {options}"));
        assert!(refused.contains(part), "{refused}");
    }
    world.tc(&format!("{class} bandwidth 10mbit rate 1mbit allot 1514 avpkt 1000 bounded isolated prio 5"));
    assert!(
        world
            .show("tc class show dev eth1")
            .ends_with("class cbq 1:1 parent 1: rate 1Mbit (bounded,isolated) prio 5\n")
    );
}
