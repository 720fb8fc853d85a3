//! What runs goes on running: changes keep what is queued, and what is queued leaves by what is new.

use super::world::{World, parcel};
use quietcore::qdisc::tc::TcStyle;

/// Goal: `change` and `replace` of the same kind keep the queue, of netem its moments, too. Method: packets
/// that wait for an hour; another limit and delay; then a new netem, which drops them.
#[test]
fn netem_keeps_what_waits() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 5: netem delay 3600s");
    world.send_all(3, &parcel(1, 100));
    world.tc("tc qd change dev eth1 root netem limit 10
         tc qd replace dev eth1 root netem limit 10 delay 1us
         tc qd change dev eth1 handle 5: netem limit 10");
    let kept = world.qdisc("5:");
    let options = kept.options.text(TcStyle::default());
    assert_eq!((kept.statistics.qlen, options.as_str()), (3, "limit 10"));
    world.send(parcel(2, 100));
    assert_eq!(world.gate.next().1.port, 2, "by the new delay");
    assert_eq!(world.qdisc("5:").statistics.qlen, 3, "by the old one");
    world.tc("tc qd replace dev eth1 root handle 6: netem");
    assert_eq!(world.qdisc("6:").statistics.qlen, 0);
}

/// Goal: what waits leaves by the new rate, at once: the watchdog is armed anew. Method: a bucket that would
/// take years, changed to one that takes no time.
#[test]
fn tbf_is_run_again() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 5: tbf rate 8bit burst 100 limit 10kb");
    world.send_all(4, &parcel(1, 100));
    assert_eq!(world.gate.next().1.port, 1, "the bucket was full");
    assert_eq!(world.qdisc("5:").statistics.qlen, 3);
    world.tc("tc qd change dev eth1 root tbf rate 1gbit burst 10kb limit 10kb");
    world.gate.pass(3);
    let done = world.qdisc("5:").statistics;
    assert_eq!((done.sent_packets, done.qlen, done.dropped), (4, 0, 0));
}

/// Goal: a queue of mq whose discipline is deleted has the default one again, and mq is changed by its handle
/// as well. Method: a fifo that is deleted; the texts.
#[test]
fn a_queue_of_mq() {
    let world = World::new(2);
    world.tc("tc qd add dev eth1 root handle 1: mq
         tc qd add dev eth1 parent 1:2 handle 20: pfifo limit 50
         tc qd change dev eth1 handle 1: mq
         tc qd del dev eth1 parent 1:2");
    assert_eq!(
        world.show("tc qd show dev eth1"),
        "qdisc mq 1: root\n\
         qdisc pfifo 0: parent 1:2 limit 1000p\n\
         qdisc pfifo 0: parent 1:1 limit 1000p\n"
    );
    assert_eq!(
        world.refused("tc qd change dev eth1 handle 1: fq"),
        "Invalid qdisc name: it is mq and cannot become fq; `del` it, or give another handle"
    );
}

/// Goal: what a line made is a discipline as any other where it runs. Method: its kind, and a reset, of one
/// inside another that holds packets for years.
#[test]
fn a_discipline_where_it_runs() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: tbf rate 8bit burst 100 limit 10kb
         tc qd add dev eth1 parent 1: handle 2: pfifo limit 5");
    world.send_all(4, &parcel(1, 100));
    world.gate.next();
    let now = world.machine.now();
    let kind = world.device.with_qdisc(0, |qdisc| {
        qdisc.reset(now);
        qdisc.kind()
    });
    assert_eq!(kind, "tbf");
    let [outer, inner] = ["1:", "2:"].map(|handle| world.qdisc(handle).statistics);
    assert_eq!((outer.qlen, outer.dropped, inner.qlen), (0, 0, 0));
}

/// Goal: the same deep inside: those above look again. Method: htb, in its class netem, in that a tbf that
/// takes years; its change lets packets go.
#[test]
fn inside_of_others() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: htb default 10
         tc class add dev eth1 parent 1: classid 1:10 htb rate 1gbit
         tc qd add dev eth1 parent 1:10 handle 2: netem delay 1ms
         tc qd add dev eth1 parent 2: handle 3: tbf rate 8bit burst 100 limit 10kb");
    assert_eq!(
        world.show("tc qd show dev eth1"),
        "qdisc htb 1: root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000\n\
         qdisc netem 2: parent 1:10 limit 1000 delay 1ms\n\
         qdisc tbf 3: parent 2: rate 8bit burst 100b lat 1.01e+04s\n"
    );
    world.send_all(3, &parcel(1, 100));
    world.gate.next();
    world.tc("tc qd change dev eth1 parent 2:1 tbf rate 1gbit burst 10kb limit 10kb");
    world.gate.pass(2);
    // What is put into the middle drops what is inside, which is counted all the way up.
    world.tc("tc qd change dev eth1 parent 2:1 tbf rate 8bit burst 1000 limit 10kb");
    world.send_all(20, &parcel(1, 100));
    world.tc("tc qd replace dev eth1 parent 1:10 handle 4: pfifo limit 3");
    let all = world.qdisc("1:").statistics;
    assert_eq!((all.sent_packets + all.dropped, all.qlen), (23, 0));
}

/// Goal: disciplines inside of each other have an end. Method: eight in each other, and one more.
#[test]
fn eight_deep() {
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: tbf rate 1gbit burst 10kb limit 10kb");
    for inner in 2..=8 {
        let outer = inner - 1;
        let tbf = "tbf rate 1gbit burst 10kb limit 10kb";
        world.tc(&format!("tc qd add dev eth1 parent {outer}:1 handle {inner}: {tbf}"));
    }
    assert_eq!(
        world.refused("tc qd add dev eth1 parent 8:1 pfifo"),
        "eth1 parent 8:1 is inside of 8 others already; put it further up"
    );
    world.send(parcel(1, 100));
    world.gate.next();
    // How many there are beside each other does not matter.
    world.tc("tc qd del dev eth1 root
         tc qd add dev eth1 root handle 1: prio bands 9");
    for band in 1..=9 {
        world.tc(&format!("tc qd add dev eth1 parent 1:{band} pfifo"));
    }
    assert_eq!(world.show("tc qd show dev eth1").lines().count(), 10);
}

/// Goal: fq keeps its flows, and counts bands as they are then. Method: flows that are paced to years; other
/// bands, and no pacing: they leave when their time comes; a fifo keeps its packets with a lower limit.
#[test]
fn fq_and_fifos() {
    let world = World::new(1);
    world.tc(
        "tc qd add dev eth1 root handle 5: fq maxrate 8kbit flow_limit 50 quantum 100 initial_quantum 100",
    );
    for port in 0..4 {
        world.send(parcel(port, 100));
        world.send(parcel(port, 100));
    }
    world.tc("tc qd change dev eth1 root fq priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
         tc qd change dev eth1 root fq maxrate 1gbit");
    let told = world.qdisc("5:").options.text(TcStyle::default());
    assert!(
        told.contains("flow_limit 50p") && told.contains("quantum 100b") && told.contains("maxrate 1Gbit")
    );
    world.gate.pass(8);
    world.tc("tc qd replace dev eth1 root handle 6: pfifo limit 100");
    world.fill_ahead();
    for port in 0..5 {
        world.send(parcel(port, 100));
    }
    world.tc("tc qd change dev eth1 root pfifo limit 2");
    assert!(!world.device.send_through(0, parcel(6, 100)).is_accepted());
    world.drain_ahead();
    for port in 0..5 {
        assert_eq!(world.gate.next().1.port, port);
    }
}

/// Goal: the same lines give the same network again, another seed another one. Method: netem with losses, who
/// is lost, on worlds of their own; `seed` in the line decides alone.
#[test]
fn seeds() {
    let lost = |lines: &str| -> Vec<bool> {
        let world = World::new(1);
        world.tc(lines);
        let packets = (0..64).map(|_| world.device.send_through(0, parcel(1, 100)));
        packets.map(|verdict| verdict == quietcore::qdisc::Enqueued::Lost).collect()
    };
    let one = "tc qd add dev eth1 root netem loss 50%";
    assert_eq!(lost(one), lost(one));
    let second =
        "tc qd add dev eth1 root netem loss 50%\ntc qd replace dev eth1 root handle 5: netem loss 50%";
    assert_ne!(lost(one), lost(second), "the second one has a seed of its own");
    let named =
        |before: &str| format!("{before}\ntc qd replace dev eth1 root handle 6: netem loss 50% seed 7");
    assert_eq!(lost(&named("")), lost(&named(one)));
    assert_eq!(lost(&named("")), lost(&format!("{one}\ntc qd change dev eth1 root netem loss 50% seed 7")));
}
