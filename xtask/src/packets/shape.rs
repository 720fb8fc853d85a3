//! `tbf` and `htb`: the same lines, the same packets, the kernel's device and ours. Who goes first must be
//! the same for every packet, and rates within 2 %.
//!
//! For the order, classes of `htb` have hardly any rate of their own and a ceil far above their parent's, so
//! that all of them borrow from one parent: who is next is then a matter of priorities and quanta alone, not
//! of the microsecond in which a packet came. What else the hosts say to each other (neighbours, routers) has
//! a class of its own beside them.

use super::link::PacketLink;
use super::load::{self, FIRST_PORT, ORDERED, PORTS, PacketArrival};
use super::tools::{Tools, must};
use crate::workspace::Failure;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

/// Bytes that headers add to a payload: UDP, IPv4, Ethernet.
const HEADERS: usize = 8 + 20 + 14;

const TBF: &str = "qdisc add dev eth1 root tbf rate 10mbit burst 5k limit 200k";

const HTB_RATES: &str = "
    qdisc add dev eth1 root handle 1: htb default 20
    class add dev eth1 parent 1: classid 1:1 htb rate 10mbit ceil 10mbit burst 5k cburst 5k
    class add dev eth1 parent 1:1 classid 1:10 htb rate 7mbit ceil 10mbit burst 5k cburst 5k
    class add dev eth1 parent 1:1 classid 1:20 htb rate 3mbit ceil 10mbit burst 5k cburst 5k
    qdisc add dev eth1 parent 1:10 handle 10: pfifo limit 50
    qdisc add dev eth1 parent 1:20 handle 20: pfifo limit 50";

const HTB_ORDER: &str = "
    qdisc add dev eth1 root handle 1: htb default 50
    class add dev eth1 parent 1: classid 1:1 htb rate 20mbit ceil 20mbit burst 5k cburst 5k
    class add dev eth1 parent 1:1 classid 1:10 htb rate 200bit ceil 1gbit burst 100b cburst 1m prio 0 quantum 1500
    class add dev eth1 parent 1:1 classid 1:20 htb rate 200bit ceil 1gbit burst 100b cburst 1m prio 1 quantum 1500
    class add dev eth1 parent 1:1 classid 1:30 htb rate 200bit ceil 1gbit burst 100b cburst 1m prio 1 quantum 4000
    class add dev eth1 parent 1:1 classid 1:40 htb rate 200bit ceil 1gbit burst 100b cburst 1m prio 2 quantum 1500
    class add dev eth1 parent 1: classid 1:50 htb rate 1mbit
    qdisc add dev eth1 parent 1:10 handle 10: pfifo limit 20000
    qdisc add dev eth1 parent 1:20 handle 20: pfifo limit 20000
    qdisc add dev eth1 parent 1:30 handle 30: pfifo limit 20000
    qdisc add dev eth1 parent 1:40 handle 40: pfifo limit 20000";

const TBF_ORDER: &str = "qdisc add dev eth1 root tbf rate 20mbit burst 5k limit 20m";

/// A class that a filter picks by source port.
fn filters(classes: &[&str]) -> String {
    let line = |(number, class): (u16, &&str)| {
        let (port, mask) = (FIRST_PORT + number * PORTS, !(PORTS - 1));
        format!(
            "filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip sport {port} {mask:#x} flowid {class}"
        )
    };
    (0..).zip(classes).map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn check(tools: &Tools) -> Result<(), Failure> {
    let htb_order = format!("{HTB_ORDER}\n{}", filters(&["1:10", "1:20", "1:30", "1:40"]));
    for (name, lines) in [("tbf", TBF_ORDER), ("htb", htb_order.as_str())] {
        let [kernel, ours] = both(tools, lines, "order")?;
        for (whose, arrivals) in [("kernel", &kernel), ("ours", &ours)] {
            let inversions = arrivals.windows(2).filter(|pair| pair[0].number > pair[1].number).count();
            println!("  {name}, {whose}: {} packets, {inversions} times one overtook", arrivals.len());
        }
        must(kernel.len() == ORDERED && ours.len() == ORDERED, "all packets arrived")?;
        let numbers = |arrivals: &[PacketArrival]| arrivals.iter().map(|it| it.number).collect::<Vec<_>>();
        let (kernel, ours) = (numbers(&kernel), numbers(&ours));
        if let Some(at) = (0..ORDERED).find(|&at| kernel[at] != ours[at]) {
            println!("  the first that differs is number {at}: kernel {}, ours {}", kernel[at], ours[at]);
        }
        must(kernel == ours, &format!("{name}: {ORDERED} packets left in the same order"))?;
    }
    let htb_rates = format!("{HTB_RATES}\n{}", filters(&["1:10", "1:20"]));
    for (name, lines) in [("tbf", TBF), ("htb", htb_rates.as_str())] {
        let [kernel, ours] = both(tools, lines, "steady:6")?;
        let classes: &[Option<u16>] = if name == "tbf" { &[None] } else { &[None, Some(0), Some(1)] };
        for &class in classes {
            let (kernel, ours) = (rate(&kernel, class), rate(&ours, class));
            let of = class.map_or("in all".to_owned(), |class| format!("class {class}"));
            println!("  {name}, {of}: kernel {:.3} Mbit/s, ours {:.3} Mbit/s", kernel / 1e6, ours / 1e6);
            let ratio = ours / kernel;
            must((ratio - 1.0).abs() <= 0.02, &format!("{name}, {of}: within 2 % (ratio {ratio:.4})"))?;
        }
    }
    Ok(())
}

/// The same on the kernel's device, then on ours.
fn both(tools: &Tools, lines: &str, script: &str) -> Result<[Vec<PacketArrival>; 2], Failure> {
    let kernel = {
        let link = PacketLink::kernel()?;
        link.script(lines)?;
        transfer(tools, &link, script)?
    };
    let link = PacketLink::ours(tools, &["--queues", "1"])?;
    link.script(lines)?;
    Ok([kernel, transfer(tools, &link, script)?])
}

/// Sends a script across a link.
fn transfer(tools: &Tools, link: &PacketLink<'_>, script: &str) -> Result<Vec<PacketArrival>, Failure> {
    let broke = |error: std::io::Error| Failure::new(format!("the receiver: {error}"), "run it again");
    let mut receiver = link.inside("b", &tools.own);
    receiver.args(["packets-load", "receive", link.address, "1000000"]).stdout(Stdio::piped());
    let mut receiver = receiver.spawn().map_err(broke)?;
    let Some(output) = receiver.stdout.take() else {
        return Err(Failure::new("the receiver has no output", "run it again"));
    };
    let (mut output, mut text) = (BufReader::new(output), String::new());
    output.read_line(&mut text).map_err(broke)?;
    let mut sender = link.inside("a", &tools.own);
    sender.args(["packets-load", "send", script, link.from, link.address]);
    let sent = crate::workspace::capture(&mut sender)?;
    output.read_to_string(&mut text).map_err(broke)?;
    let _ = receiver.wait();
    let arrivals = load::arrivals(&text);
    println!(
        "  {}: {}, arrived {}",
        if link.process().is_some() { "ours" } else { "kernel" },
        sent.trim(),
        arrivals.len()
    );
    Ok(arrivals)
}

/// Bits per second on the link, between a second after the first arrival and a second before the last.
fn rate(arrivals: &[PacketArrival], class: Option<u16>) -> f64 {
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else { return 0.0 };
    let (from, to) = (first.at + 1_000_000, last.at.saturating_sub(1_000_000));
    let inside = arrivals.iter().filter(|it| (from..to).contains(&it.at));
    let counted = inside.filter(|it| class.is_none_or(|class| class == it.class));
    let bits: usize = counted.map(|it| (it.bytes + HEADERS) * 8).sum();
    bits as f64 / (to.saturating_sub(from).max(1) as f64 / 1e6)
}
