//! Seed 000 on a device of eight queues: the mail's lines of `tc`, eight senders, and on which CPU packets
//! leave when watchdogs are pinned, when they may move, and when they may move but nothing moves timers.
//!
//! Queues 1 to 4 belong to the first lane, 5 to 8 to the second. A dequeue is foreign where another CPU than
//! the queue's did it.

use super::link::PacketLink;
use super::tools::{Tools, must};
use crate::workspace::{Failure, capture};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const QUEUES: usize = 8;
/// The load lasts longer than what is measured.
const SECONDS: &str = "14";
/// Until then streams find their speed, and estimators have averaged.
const WARM_UP: Duration = Duration::from_secs(5);
/// Connections of each sender, so that every queue gets some.
const STREAMS: &str = "8";
/// From this share of foreign dequeues on, the seed's mechanism is seen.
const SEEN: f64 = 0.8;

/// How watchdogs are placed.
struct Variant {
    name: &'static str,
    options: &'static [&'static str],
    is_pinned: bool,
}

const VARIANTS: [Variant; 3] = [
    Variant {
        name: "movable, migration on (before)",
        options: &["--watchdog", "movable", "--policy", "push"],
        is_pinned: false,
    },
    Variant {
        name: "pinned (after)",
        options: &["--watchdog", "pinned", "--policy", "push"],
        is_pinned: true,
    },
    Variant {
        name: "movable, migration off",
        options: &["--watchdog", "movable", "--policy", "stay"],
        is_pinned: false,
    },
];

/// The mail's script, `tc` being ours: each queue 2 ms slower than the one before.
fn script() -> String {
    let mut lines = vec![
        "EST=\"est 1sec 4sec\"".to_owned(),
        "quietcore tc qd del dev eth1 root 2>/dev/null".to_owned(),
        "quietcore tc qd add dev eth1 root handle 1: mq".to_owned(),
    ];
    lines.extend((1..=QUEUES).map(|queue| {
        let (limit, delay) = (
            match queue {
                7 => 80_000,
                8 => 90_000,
                _ => 70_000,
            },
            4 + 2 * queue,
        );
        format!("quietcore tc qd add dev eth1 parent 1:{queue} $EST netem limit {limit} delay {delay}ms")
    }));
    lines.join("\n")
}

pub(super) fn check(tools: &Tools) -> Result<(), Failure> {
    for variant in &VARIANTS {
        println!("  -- {}", variant.name);
        let mut options = vec!["--queues", "8"];
        options.extend(variant.options);
        let link = PacketLink::ours(tools, &options)?;
        let folder = tools.quietcore.parent().map(|it| it.display().to_string()).unwrap_or_default();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
        // The script's first line fails on a device that is as it began, in the mail, too.
        capture(Command::new("sh").args(["-c", &script()]).env("PATH", path))?;
        let load = Load::start(&link)?;
        thread::sleep(WARM_UP);
        let profile = profile(&link)?;
        let shown = link.tc("-s qdisc show dev eth1")?;
        let json = link.tc("-j -s qdisc show dev eth1")?;
        drop(load);
        println!("{}", shown.trim_end());
        println!("  of all samples of the process in the queues' locks: {profile}");
        judge(variant, &shown, &json)?;
    }
    println!(
        "  two CPUs share everything here; the simulation of eight: quietcore sim scenarios/mq-netem.toml"
    );
    Ok(())
}

/// What must be so.
fn judge(variant: &Variant, shown: &str, json: &str) -> Result<(), Failure> {
    let lines: Vec<&str> = shown.lines().collect();
    let netem = lines.iter().filter(|line| line.starts_with("qdisc netem")).count();
    let rates = lines.iter().filter(|line| line.trim_start().starts_with("rate ")).count();
    must(netem == QUEUES && rates >= QUEUES, &format!("{netem} lines of netem, {rates} with a rate"))?;
    let (home, elsewhere) = (numbers(json, "dequeued_at_home"), numbers(json, "dequeued_elsewhere"));
    if home.len() != QUEUES || elsewhere.len() != QUEUES {
        return Err(Failure::new("the JSON does not tell where each queue's packets left", "look at it"));
    }
    let foreign: u64 = elsewhere.iter().sum();
    let share = |range: std::ops::Range<usize>| {
        let (home, elsewhere): (u64, u64) = (home[range.clone()].iter().sum(), elsewhere[range].iter().sum());
        elsewhere as f64 / (home + elsewhere).max(1) as f64
    };
    let shares = [share(0..QUEUES / 2), share(QUEUES / 2..QUEUES)];
    println!("  foreign dequeues: {foreign}; of queues 1-4 {:.4}, of queues 5-8 {:.4}", shares[0], shares[1]);
    if variant.is_pinned {
        return must(foreign == 0, "no packet left on a CPU that its queue does not belong to");
    }
    println!("  {}", why(variant, shares));
    Ok(())
}

/// Why the shares are what they are, where nothing is pinned.
fn why(variant: &Variant, shares: [f64; 2]) -> &'static str {
    match () {
        () if shares.iter().any(|share| *share >= SEEN) => {
            "one CPU serves the other's queues, as in the mail"
        }
        () if variant.options.contains(&"stay") => {
            "nothing moves timers; what a thread arms that plays no CPU (the one that waits for room in the \
             interface) belongs to the CPU that it happens to be on"
        }
        () => {
            "a watchdog moves only when the CPU that arms it is idle, and under this load both lanes, or their \
             ksoftirqds, run most of the time; `quietcore lab mq-netem` has one CPU that is idle"
        }
    }
}

/// All numbers that stand behind `key` in JSON text.
fn numbers(json: &str, key: &str) -> Vec<u64> {
    let key = format!("\"{key}\":");
    let digits = |rest: &str| {
        let rest = rest.trim_start();
        rest[..rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
    };
    json.split(&key).skip(1).filter_map(digits).collect()
}

/// Which share of the process's samples were in our queues' locks, as `perf` sees it; for 4 s.
fn profile(link: &PacketLink<'_>) -> Result<String, Failure> {
    let Some(process) = link.process() else { return Ok("nobody's".to_owned()) };
    let file = std::env::temp_dir().join(format!("quietcore-perf-{}", std::process::id()));
    let name = file.display().to_string();
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-e", "cpu-clock", "-g", "-o", &name, "-p", &process.to_string()]);
    capture(record.args(["--", "sleep", "4"]))?;
    let mut report = Command::new("perf");
    report.args([
        "report",
        "-i",
        &name,
        "--stdio",
        "--children",
        "-g",
        "none",
        "-F",
        "overhead_children,symbol",
    ]);
    let text = capture(&mut report);
    let _ = std::fs::remove_file(&file);
    let text = text?;
    // The function that takes a queue's lock, with all that it calls: waiting, and being woken.
    let share = |line: &str| line.trim().split('%').next()?.trim().parse::<f64>().ok();
    let of = |name: &str| -> f64 {
        let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains(name));
        lines.filter_map(share).fold(0.0, f64::max)
    };
    Ok(format!("{:.2} % waiting for a lock that is taken (lock_contended)", of("lock_contended")))
}

/// Eight senders and their receivers; dropped, they end.
struct Load(Vec<Child>);

impl Load {
    fn start(link: &PacketLink<'_>) -> Result<Self, Failure> {
        let mut load = Self(Vec::new());
        for side in ["b", "a"] {
            for port in 5_201..5_201 + QUEUES as u16 {
                let port = port.to_string();
                let mut command = link.inside(side, "iperf3");
                match side {
                    "b" => command.args(["-s", "-1", "-B", link.address, "-p", &port]),
                    _ => command.args(["-c", link.address, "-p", &port, "-P", STREAMS, "-t", SECONDS]),
                };
                let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
                let missing =
                    |error| Failure::new(format!("iperf3 does not start: {error}"), "install iperf3");
                load.0.push(child.map_err(missing)?);
            }
            thread::sleep(Duration::from_millis(500));
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the lines are the mail's, and figures are found. Method: first and last; a text with two.
    #[test]
    fn lines_and_figures() {
        let script = script();
        assert!(script.contains("parent 1:1 $EST netem limit 70000 delay 6ms"));
        assert!(script.ends_with("parent 1:8 $EST netem limit 90000 delay 20ms"));
        assert_eq!(script.lines().count(), 3 + QUEUES);
        let json = r#"[{"dequeued_elsewhere": 12,"x":1},{"dequeued_elsewhere":7}]"#;
        assert_eq!(numbers(json, "dequeued_elsewhere"), [12, 7]);
    }
}
