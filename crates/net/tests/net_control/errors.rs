//! What cannot be done, and what is said then.

use super::world::World;
use quietcore::net::TcControlError;
use quietcore::qdisc::ClassId;
use quietcore::qdisc::tc::{self, Classifier, Command, MatchAllOptions, TcParent};
use std::error::Error as _;

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
    for (line, text) in lines {
        let refused = world.refused(line);
        assert_eq!(refused, *text, "{line}");
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
    assert_refused(DISCIPLINES);
}

/// Lines and their errors.
const DISCIPLINES: &[(&str, &str)] = &[
    ("tc qd add dev eth2 root mq", "Cannot find device \"eth2\"; there is eth1"),
    ("tc qd show dev eth2", "Cannot find device \"eth2\"; there is eth1"),
    ("tc qd show dev \u{1b}[2J", "Cannot find device \"\\u{1b}[2J\"; there is eth1"),
    (
        "tc qd add dev eth1 root mq",
        "File exists: eth1 root has mq 1: already; use `replace`, or `del` it first",
    ),
    (
        "tc qd add dev eth1 parent 1:2 pfifo",
        "File exists: eth1 parent 1:2 has fq 4: already; use `replace`, or `del` it first",
    ),
    ("tc qd add dev eth1 parent 1:3 pfifo", "Specified class 1:3 not found; there is 1:1, 1:2"),
    ("tc qd add dev eth1 parent 1: pfifo", "Specified class 1: not found; there is 1:1, 1:2"),
    ("tc qd add dev eth1 parent 9:1 pfifo", "Failed to find qdisc with handle 9:; there is 1:, 2:, 3:, 4:"),
    (
        "tc qd add dev eth1 parent 3: handle 2: pfifo",
        "File exists: handle 2: is that of parent 1:1; name another, or none",
    ),
    (
        "tc qd add dev eth1 parent 3: handle 1: pfifo",
        "File exists: handle 1: is that of root; name another, or none",
    ),
    ("tc qd add dev eth1 parent 3: mq", "mq can only be a device's root; use `root`"),
    ("tc qd add dev eth1 parent 4:1 pfifo", "fq 4: has no classes; only classes have disciplines inside"),
    (
        "tc qd add dev eth1 parent 2:1 pfifo",
        "Device or resource busy: class 2:1 is held by classes below it; remove that first",
    ),
    ("tc qd add dev eth1 parent 2: pfifo", "Specified class 2: not found; there is 2:10"),
    ("tc qd add dev eth1 parent 3:7 pfifo", "Specified class 3:7 not found; there is 3:1"),
    ("tc qd add dev eth1 parent 2:11 pfifo", "Specified class 2:11 not found; there is 2:10"),
    (
        "tc qd change dev eth1 parent 3: pfifo",
        "Qdisc not found: eth1 parent 3: has its default; use `add` or `replace`",
    ),
    ("tc qd change dev eth1 parent 1:2 handle 5: fq", "Invalid handle: 5: is not there, but 4:"),
    (
        "tc qd change dev eth1 parent 1:2 handle 4: pfifo",
        "Invalid qdisc name: it is fq and cannot become pfifo; `del` it, or give another handle",
    ),
    (
        "tc qd replace dev eth1 parent 1:2 handle 4: pfifo",
        "Invalid qdisc name: it is fq and cannot become pfifo; `del` it, or give another handle",
    ),
    (
        "tc qd replace dev eth1 parent 1:2 handle 3: pfifo",
        "File exists: handle 3: is that of parent 2:10; name another, or none",
    ),
    ("tc qd change dev eth1 handle 9: pfifo", "Failed to find qdisc with handle 9:; there is 1:, 2:, 3:, 4:"),
    (
        "tc qd change dev eth1 parent 1:1 htb",
        "Change operation not supported by specified qdisc: htb; `del` it and add it again; its \
         classes can be changed",
    ),
    (
        "tc qd del dev eth1 handle 4:",
        "Classid cannot be zero: a discipline is deleted where it is; name its place: `root` or \
         `parent`",
    ),
    ("tc qd del dev eth1 handle 9:", "Failed to find qdisc with handle 9:; there is 1:, 2:, 3:, 4:"),
    (
        "tc qd del dev eth1 parent 3:",
        "Cannot delete qdisc with handle of zero: eth1 parent 3: has its default, there is nothing \
         to delete",
    ),
    ("tc qd del dev eth1 root handle 4:", "Invalid handle: 4: is not there, but 1:"),
    (
        "tc qd del dev eth1 root fq",
        "Invalid qdisc name: it is mq and cannot become fq; `del` it, or give another handle",
    ),
    (
        "tc qd ad dev eth1 root mqq",
        "tc qd ad dev eth1 root mqq\n                       ^^^\nunknown kind of qdisc `mqq`; \
         allowed: pfifo, bfifo, mq, netem, tbf, fq, htb, hfsc, cbq, prio, codel, fq_codel, cake, sfq, \
         red, pfifo_fast, noqueue, multiq, drr, ets, ingress, clsact, dev, root, parent, handle, est",
    ),
];

/// Goal: options that cannot be are named, with their values. Method: a list.
#[test]
fn options() {
    assert_refused(OPTIONS);
}

/// Lines and their errors.
const OPTIONS: &[(&str, &str)] = &[
    (
        "tc qd replace dev eth1 root netem delay 0ms reorder 25%",
        "netem: `reorder 25%` cannot be: reordering is not possible without some delay",
    ),
    (
        "tc qd replace dev eth1 root netem delay 0ms reorder 25% 50% gap 5",
        "netem: `reorder 25% 50%` cannot be: reordering is not possible without some delay",
    ),
    (
        "tc qd replace dev eth1 root netem delay 0ms gap 5",
        "netem: `gap 5` cannot be: reordering is not possible without some delay",
    ),
    (
        "tc qd replace dev eth1 root netem slot 2ms 1ms",
        "netem: `slot 2ms 1ms` cannot be: the shortest spacing comes first",
    ),
    (
        "tc qd replace dev eth1 root netem rate 7bit",
        "netem: `rate 7bit` cannot be: a rate is one byte per second (8bit) at least",
    ),
    (
        "tc qd replace dev eth1 root netem delay 9000000000s",
        "netem: `delay 9e+09s` cannot be: 9000000000 s is longer than 100 years",
    ),
    (
        "tc qd replace dev eth1 root tbf rate 7bit burst 1kb limit 1kb",
        "tbf: `rate 7bit` cannot be: a rate is one byte per second (8bit) at least",
    ),
    (
        "tc qd replace dev eth1 root tbf rate 8bit burst 0 limit 1kb",
        "tbf: `burst 0b` cannot be: burst of 0 bytes lets no packet pass",
    ),
    (
        "tc qd replace dev eth1 root tbf rate 8bit burst 1 limit 0",
        "tbf: `limit 0b` cannot be: limit of 0 bytes lets no packet wait",
    ),
    (
        "tc qd replace dev eth1 root tbf rate 16bit burst 1 limit 1 peakrate 8bit mtu 1",
        "tbf: `peakrate 8bit` cannot be: peak rate of 1 bytes/s is not above the rate of 2 bytes/s",
    ),
    (
        "tc qd replace dev eth1 root fq quantum 0",
        "fq: `quantum 0` cannot be: quantum of 0 bytes lets no flow send",
    ),
    (
        "tc qd replace dev eth1 root fq weights 1 1 1",
        "fq: `weights 1` cannot be: weight 1 of band 0 is below 16384",
    ),
    ("tc qd replace dev eth1 root fq buckets 0", "fq: `buckets 0` cannot be: 0 buckets keep no flow"),
    ("tc qd replace dev eth1 root htb r2q 0", "htb: `r2q 0` cannot be: rates are divided by it: 1 at least"),
    (
        "tc qd replace dev eth1 root cbq bandwidth 1bit avpkt 1",
        "cbq: `bandwidth 1bit` cannot be: a rate is one byte per second (8bit) at least",
    ),
    (
        "tc qd replace dev eth1 root cbq bandwidth 8bit avpkt 0",
        "cbq: `avpkt 0b` cannot be: a usual packet has some bytes",
    ),
    (
        "tc qd replace dev eth1 root cbq bandwidth 8bit avpkt 1 ewma 31",
        "cbq: `ewma 31` cannot be: the estimate follows by 2^-1 to 2^-20: 1 to 20",
    ),
    (
        "tc qd replace dev eth1 parent 1:2 est 9sec 4sec pfifo",
        "est: `est 9s 4s` cannot be: an interval of 9 s is not up to 8 s",
    ),
    (
        "tc qd replace dev eth1 parent 1:2 est 1sec 1sec pfifo",
        "est: `est 1s 1s` cannot be: a time constant of 1 s does not go with an interval of 1 s",
    ),
];

/// Goal: classes and filters likewise. Method: a list.
#[test]
fn classes_and_filters() {
    assert_refused(CLASSES_AND_FILTERS);
}

/// Lines and their errors.
const CLASSES_AND_FILTERS: &[(&str, &str)] = &[
    (
        "tc class add dev eth1 parent 2:1 classid 2:10 htb rate 1mbit",
        "File exists: there is a class 2:10 already; use `change` or `replace`",
    ),
    (
        "tc class add dev eth1 parent 2:1 classid 3:10 htb rate 1mbit",
        "class 3:10 cannot be below 2:1, which is of another discipline; let both begin with the \
         discipline's handle",
    ),
    (
        "tc class add dev eth1 parent 2: htb rate 1mbit",
        "`class add dev eth1 parent 2: htb rate 1mbit` names no class; name it with `classid`",
    ),
    (
        "tc class add dev eth1 parent 2: classid 2: htb rate 1mbit",
        "2: is the discipline itself; name a class: its number is not 0",
    ),
    (
        "tc class add dev eth1 parent 2: classid 2:7 hfsc sc rate 1mbit",
        "Invalid qdisc name: it is htb and cannot become hfsc; `del` it, or give another handle",
    ),
    (
        "tc class add dev eth1 parent 9: classid 9:7 htb rate 1mbit",
        "Failed to find qdisc with handle 9:; there is 1:, 2:, 3:, 4:",
    ),
    (
        "tc class add dev eth1 parent 4: classid 4:7 htb rate 1mbit",
        "fq 4: has no classes of its own; name a discipline whose classes are added",
    ),
    (
        "tc class add dev eth1 parent 1: classid 1:7 htb rate 1mbit",
        "the classes of mq 1:7 are the device's queues; they stay as they are",
    ),
    (
        "tc class add dev eth1 parent 2: classid 2:7 htb rate 7bit",
        "htb: `rate 7bit` cannot be: a rate is one byte per second (8bit) at least",
    ),
    (
        "tc class add dev eth1 parent 2: classid 2:7 htb rate 8bit quantum 0",
        "htb: `quantum 0` cannot be: it could never send: leave it out, or name a packet's size",
    ),
    (
        "tc class change dev eth1 classid 2:7 htb rate 1mbit",
        "Specified class 2:7 not found; there is 2:1, 2:10",
    ),
    (
        "tc class change dev eth1 parent 2: classid 2:10 htb rate 1mbit",
        "class 2:10 stays below 2:1; `del` it and add it again",
    ),
    ("tc class del dev eth1 classid 2:7", "Specified class 2:7 not found; there is 2:1, 2:10"),
    (
        "tc class del dev eth1 classid 2:1",
        "Device or resource busy: class 2:1 is held by classes below it; remove that first",
    ),
    (
        "tc class del dev eth1 classid 2:10",
        "Device or resource busy: class 2:10 is held by a filter; remove that first",
    ),
    (
        "tc filter add dev eth1 prio 1 matchall flowid 2:10",
        "mq 1: has no filters: the sender's CPU decides the queue; name a discipline with classes \
         as `parent`",
    ),
    (
        "tc filter add dev eth1 parent 4: prio 1 matchall flowid 4:1",
        "fq 4: has no classes to choose from; filters belong to a discipline with classes",
    ),
    (
        "tc filter add dev eth1 parent 2:9 prio 1 matchall flowid 2:10",
        "Specified class 2:9 not found; there is 2:1, 2:10",
    ),
    (
        "tc filter add dev eth1 parent 2: prio 7 matchall flowid 2:1",
        "File exists: a priority has one matchall; `del` it first, or name another `prio`",
    ),
    (
        "tc filter add dev eth1 parent 2: prio 7 protocol ip matchall flowid 2:1",
        "Protocol mismatch for filter with specified priority: 7 is of protocol all; name that, or another \
         `prio`",
    ),
    (
        "tc filter add dev eth1 parent 2: prio 7 u32 match ip dport 1 0xffff flowid 2:1",
        "Specified filter kind does not match existing one: priority 7 is matchall; use that, or another \
         `prio`",
    ),
    (
        "tc filter change dev eth1 parent 2: prio 8 matchall flowid 2:1",
        "there is no such filter to change; use `add` or `replace`",
    ),
    (
        "tc filter change dev eth1 parent 2: matchall flowid 2:1",
        "Invalid filter command with priority of zero: `change` needs `prio`",
    ),
    (
        "tc filter del dev eth1 parent 2: prio 8",
        "Filter with specified priority/protocol not found: none has priority 8; there is 7",
    ),
    (
        "tc filter del dev eth1 parent 2: prio 7 handle 2 matchall",
        "Specified filter handle not found: there is no 0x2; `filter show` lists them",
    ),
    (
        "tc filter del dev eth1 parent 2: matchall",
        "Cannot flush filters with protocol, handle or kind set: name a `prio`, or only the parent",
    ),
    (
        "tc filter add dev eth1 parent 2: prio 8 u32 flowid 2:10",
        "Selector not specified: say with `match` what has to be true",
    ),
    (
        "tc filter add dev eth1 parent 2: prio 8 handle 800::1 u32 divisor 2",
        "Divisor can only be used on a hash table: 800::1 is a rule; name a table, such as 2:",
    ),
    (
        "tc filter add dev eth1 parent 2: prio 8 u32 match u32 0 0 link 5:",
        "Specified hash table not found: there is no table 5:; make it with `divisor`",
    ),
    (
        "tc filter add dev eth1 parent 2: prio 8 u32 match u32 0 0 link 5:1",
        "u32 Link handle must be a hash table: 5:1 is a bucket; name a table, such as 2:",
    ),
    (
        "tc filter add dev eth1 parent 2: prio 8 fw flowid 2:10",
        "Invalid argument: name the mark, which is not 0, as `handle`",
    ),
    (
        "tc filter add dev eth1 parent 2: prio 8 protocol ip flower ip_proto tcp skip_sw flowid 2:10",
        "Operation not supported: there is no hardware that filters; leave `skip_sw` out",
    ),
];

/// Goal: where there is nothing, errors say so. Method: a device as it begins, and a discipline without
/// classes.
#[test]
fn where_there_is_nothing() {
    let world = World::new(1);
    let filter = "tc filter add dev eth1 prio 1 matchall flowid 1:1";
    let remedy = "name a discipline with classes as `parent`";
    assert_eq!(
        world.refused(filter),
        format!("mq 0: has no filters: the sender's CPU decides the queue; {remedy}")
    );
    assert_eq!(
        world.refused("tc qd add dev eth1 parent 1:1 pfifo"),
        "Failed to find qdisc with handle 1:; there is none"
    );
    world.tc("tc qd add dev eth1 root handle 1: htb");
    assert_eq!(
        world.refused("tc qd add dev eth1 parent 1:5 pfifo"),
        "Specified class 1:5 not found; there is none"
    );
}

/// Goal: a command that no line gives is refused as well, with its text; the error of a line can be looked
/// at. Method: commands of lines of which a part is taken out.
#[test]
fn commands_made_by_hand() {
    let world = World::new(2);
    world.tc(GIVEN);
    let refused = |line: &str, take: &dyn Fn(&mut Command)| {
        let mut command = tc::parse(line).expect("a line");
        take(&mut command);
        world.control.execute(&command).expect_err(line).to_string()
    };
    let no_options = |command: &mut Command| match command {
        Command::Qdisc(command) => command.options = None,
        Command::Class(command) => command.options = None,
        Command::Filter(command) => command.classifier = None,
        other => panic!("{other}"),
    };
    assert_eq!(
        refused("tc qd add dev eth1 parent 3: fq", &no_options),
        "`qdisc add dev eth1 parent 3:` names no kind; name what it is to be: mq, netem, ..."
    );
    assert_eq!(
        refused("tc class add dev eth1 parent 2: classid 2:7 htb rate 1mbit", &no_options),
        "`class add dev eth1 parent 2: classid 2:7` names no kind; name that of the discipline"
    );
    assert_eq!(
        refused("tc filter add dev eth1 parent 2: prio 8 matchall flowid 2:1", &no_options),
        "Filter kind must be specified: u32, fw, flower, basic or matchall"
    );
    let no_flow = |command: &mut Command| {
        let Command::Filter(command) = command else { panic!("{command}") };
        command.classifier = Some(Classifier::MatchAll(MatchAllOptions::default()));
    };
    assert_eq!(
        refused("tc filter add dev eth1 parent 2: prio 8 matchall flowid 2:1", &no_flow),
        "Invalid argument: the filter says nothing; name the class with `flowid`"
    );
    let no_handle = |command: &mut Command| {
        let Command::Qdisc(command) = command else { panic!("{command}") };
        command.handle = None;
    };
    let no_discipline = |command: &mut Command| {
        let Command::Qdisc(command) = command else { panic!("{command}") };
        command.place = Some(TcParent::Parent(ClassId::new(0, 1)));
    };
    let unknown = "Failed to find qdisc with handle :0; there is 1:, 2:, 3:, 4:";
    assert_eq!(refused("tc qd change dev eth1 handle 4: fq", &no_handle), unknown);
    assert_eq!(refused("tc qd add dev eth1 parent 3: fq", &no_discipline), unknown);
    let line = world.control.execute_line("tc qd ad").expect_err("too short");
    assert_eq!(line.source().map(ToString::to_string), Some(line.to_string()));
    let other = TcControlError::DeviceExists("eth1".into());
    assert!(other.source().is_none());
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
