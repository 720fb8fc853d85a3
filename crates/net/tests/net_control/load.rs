//! Lines while packets pass.

use super::world::{PATIENCE, Parcel, World, parcel};
use quietcore::net::Control;
use quietcore::qdisc::Enqueued;
use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// What changes over and over, below a root that stays.
const LINES: [&str; 10] = [
    "tc class replace dev eth1 parent 1:1 classid 1:20 htb rate 100mbit ceil 1gbit prio 1",
    "tc qd replace dev eth1 parent 1:20 handle 20: netem delay 100us 50us",
    "tc qd change dev eth1 parent 1:20 netem delay 10us rate 1gbit",
    "tc filter add dev eth1 parent 1: prio 5 u32 match ip dport 1 0xffff flowid 1:20",
    "tc qd replace dev eth1 parent 1:10 handle 10: fq maxrate 1gbit",
    "tc qd add dev eth1 parent 20: handle 30: tbf rate 1gbit burst 100kb latency 1s",
    "tc qd change dev eth1 handle 10: fq maxrate 100mbit",
    "tc filter del dev eth1 parent 1: prio 5",
    "tc qd del dev eth1 parent 1:10",
    "tc class del dev eth1 classid 1:20",
];

/// Goal: no packet is lost uncounted, doubled, or left behind by commands that come while others send.
/// Method: two threads send, a third one changes classes, disciplines and filters below a htb; in the end all
/// that was taken has left, or was dropped and counted.
#[test]
fn commands_while_packets_pass() {
    const EACH: u64 = 3_000;
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root handle 1: est 250ms 1sec htb default 10
         tc class add dev eth1 parent 1: classid 1:1 htb rate 1gbit
         tc class add dev eth1 parent 1:1 classid 1:10 htb rate 1gbit");
    let (ends, ended) = mpsc::channel();
    thread::scope(|scope| {
        for sender in 0..2_u64 {
            let (device, ends) = (&world.device, ends.clone());
            scope.spawn(move || {
                let packets = (0..EACH)
                    .map(|number| Parcel { number: 2 * number + sender, ..parcel(sender as u16, 100) });
                let taken =
                    packets.filter(|packet| device.send_through(0, packet.clone()) == Enqueued::Queued);
                ends.send(taken.count() as u64).expect("the test waits");
            });
        }
        let mut rounds = 0;
        let mut taken = Vec::new();
        while taken.len() < 2 || rounds < 3 {
            LINES.iter().for_each(|line| world.tc(line));
            rounds += 1;
            taken.extend(ended.try_iter());
        }
    });
    let began = Instant::now();
    let done = loop {
        let done = world.device.statistics(0).qdisc;
        if done.qlen == 0 {
            break done;
        }
        assert!(began.elapsed() < PATIENCE, "left behind: {done:?}");
        thread::yield_now();
    };
    assert_eq!(done.sent_packets + done.dropped, 2 * EACH);
    let mut seen = BTreeSet::new();
    for _ in 0..done.sent_packets {
        assert!(seen.insert(world.gate.next().1.number), "twice");
    }
}

/// Goal: a control is shared by threads. Method: one per device, each with its own lines, at the same time;
/// all are carried out, and no handle is given twice.
#[test]
fn lines_from_many_threads() {
    let worlds: Vec<World> = (0..3).map(|_| World::new(2)).collect();
    let control = &Control::new(worlds[0].machine, 1);
    for (number, world) in worlds.iter().enumerate() {
        control.add_device(&format!("dev{number}"), world.device.clone()).expect("a new name");
    }
    thread::scope(|scope| {
        for number in 0..worlds.len() {
            scope.spawn(move || {
                for _ in 0..50 {
                    for line in
                        ["add DEV root est 250ms 1sec netem", "change DEV root netem limit 7", "del DEV root"]
                    {
                        let line = format!("tc qdisc {}", line.replace("DEV", &format!("dev dev{number}")));
                        control.execute_line(&line).expect("nobody else is there");
                    }
                }
                control
                    .execute_line(&format!("tc qd add dev dev{number} root pfifo"))
                    .expect("nobody is there");
            });
        }
    });
    let shown = control.execute_line("tc qd show").expect("it can be shown").to_string();
    let handles: BTreeSet<&str> =
        shown.lines().filter_map(|line| line.strip_prefix("qdisc pfifo 8")).collect();
    assert_eq!(handles.len(), 3, "{shown}");
}
