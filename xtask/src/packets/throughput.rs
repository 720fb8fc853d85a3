//! One TCP stream (iperf3) through the kernel's veth, without a discipline and with `tbf`, and through ours,
//! without a delay; in turns, medians of rounds.

use super::link::PacketLink;
use super::tools::{Tools, must};
use crate::workspace::{Failure, capture};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

const ROUNDS: usize = 3;
const SECONDS: &str = "4";
/// What ours has to carry, in Gbit/s.
const WANTED: f64 = 2.0;
/// Far above what the link carries: what is seen is the cost of the discipline.
const KERNEL_TBF: &str = "qdisc add dev eth1 root tbf rate 40gbit burst 10m limit 10m";

pub(super) fn check(tools: &Tools) -> Result<(), Failure> {
    let mut figures: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let link = PacketLink::kernel()?;
        figures[0].push(stream(&link)?);
        link.tc(KERNEL_TBF)?;
        figures[1].push(stream(&link)?);
        drop(link);
        figures[2].push(stream(&PacketLink::ours(tools, &["--queues", "1"])?)?);
    }
    let names = ["kernel, veth", "kernel, veth with tbf", "ours, TUN"];
    let mut medians = [0.0; 3];
    for ((figures, name), median) in figures.iter_mut().zip(names).zip(&mut medians) {
        figures.sort_by(f64::total_cmp);
        *median = figures[ROUNDS / 2];
        println!("  {name}: {median:.2} Gbit/s ({:.2} to {:.2})", figures[0], figures[ROUNDS - 1]);
    }
    println!("  ours is {:.2} of veth with tbf", medians[2] / medians[1]);
    must(medians[2] >= WANTED, &format!("ours carries {WANTED} Gbit/s or more"))
}

/// Gbit/s that the receiver counted.
fn stream(link: &PacketLink<'_>) -> Result<f64, Failure> {
    let mut server = link.inside("b", "iperf3");
    let server = server.args(["-s", "-1", "-B", link.address]).stdout(Stdio::null()).spawn();
    let missing = |error| Failure::new(format!("iperf3 does not start: {error}"), "install iperf3");
    let mut server = server.map_err(missing)?;
    thread::sleep(Duration::from_millis(300));
    let mut client = link.inside("a", "iperf3");
    let text = capture(client.args(["-c", link.address, "-t", SECONDS, "-f", "m"]));
    // It ends by itself after one client; without one it would wait for ever.
    if text.is_err() {
        let _ = server.kill();
    }
    let _ = server.wait();
    let text = text?;
    let line = text.lines().find(|line| line.ends_with("receiver"));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    let at = words.iter().position(|word| *word == "Mbits/sec");
    let megabits = at.and_then(|at| words.get(at.checked_sub(1)?)?.parse::<f64>().ok());
    megabits.map(|it| it / 1e3).ok_or_else(|| Failure::new("iperf3 printed no result", "run it by hand"))
}
