//! `sim`: how many timer events the simulator handles per second, and how much memory a large machine takes.
//!
//! A timer event is an arm, a cancel or an expiry. Two machines: one with many periodic timers, which is
//! timers and little else, and one of 1024 CPUs that sleep, wake up, arm and cancel. Every round runs each
//! with and without the hash. Memory is the largest resident size of this process, which does nothing else,
//! after the large machine;
//! `--only-memory` runs that alone.

use clap::Parser;
use quietcore_bench::MIB;
use quietcore_bench::machine::Machine;
use quietcore_bench::statistics::Summary;
use quietcore_sim::{Scenario, SimOptions};
use serde::Serialize;
use std::process::ExitCode;
use std::time::Instant;

/// Timers and little else: 8 CPUs, 500 timers each, 1 to 8 ms.
const TIMERS: &str = r#"
duration = "1s"
[machine]
cpus = 8
[[load.busy]]
cpus = "all"
chunk = "10ms"
[[load.periodic]]
cpus = "all"
count = 500
period = "1ms"
jitter = "7ms"
"#;

/// A large machine on which everything happens.
const LARGE: &str = r#"
duration = "100ms"
[machine]
cpus = 1024
nodes = 8
[[load.sleeper]]
cpus = "all"
run = "50us"
sleep = "5ms"
jitter = "5ms"
[[load.timeout]]
cpus = "all"
delay = "30s"
run = "20us"
sleep = "3ms"
"#;

/// Measures the simulator: timer events per second of one core, and memory.
#[derive(Debug, Parser)]
#[command(after_help = "Run it with --release on a machine that is otherwise idle.")]
struct Args {
    /// How often everything is measured
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Run the machine of 1024 CPUs once and show its memory
    #[arg(long)]
    only_memory: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    timer_events: u64,
    /// Millions per second.
    timer_events_per_us: Summary,
    /// Events of any kind, likewise.
    events_per_us: Summary,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    rounds: u32,
    rows: Vec<Row>,
    /// Largest resident size, in bytes; absent where the system does not say.
    resident_max: Option<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match measure(&args) {
        Ok(report) => {
            show(&args, &report);
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("sim: {problem}");
            ExitCode::from(2)
        }
    }
}

fn measure(args: &Args) -> Result<Report, String> {
    let mut rows = Vec::new();
    if args.only_memory {
        run(LARGE, true)?;
    } else {
        for (text, hash, name) in [
            (TIMERS, false, "8 CPUs, 4000 periodic timers"),
            (TIMERS, true, "the same with its hash"),
            (LARGE, false, "1024 CPUs, sleepers and timeouts"),
            (LARGE, true, "the same with its hash"),
        ] {
            rows.push(row(args.rounds, text, hash, name)?);
        }
    }
    Ok(Report { machine: Machine::here(), rounds: args.rounds, rows, resident_max: resident_max() })
}

fn row(rounds: u32, text: &str, hash: bool, name: &'static str) -> Result<Row, String> {
    let (mut timers, mut all, mut count) = (Vec::new(), Vec::new(), 0);
    run(text, hash)?; // not counted
    for _ in 0..rounds {
        let (seconds, timer_events, events) = run(text, hash)?;
        timers.push(timer_events as f64 / seconds / 1e6);
        all.push(events as f64 / seconds / 1e6);
        count = timer_events;
    }
    let of = |values: &[f64]| Summary::of(values).ok_or("no round was measured");
    Ok(Row { name, timer_events: count, timer_events_per_us: of(&timers)?, events_per_us: of(&all)? })
}

/// Seconds, timer events, events.
fn run(text: &str, hash: bool) -> Result<(f64, u64, u64), String> {
    let parsed = Scenario::parse("bench.toml".as_ref(), text, &|_| Err(std::io::ErrorKind::NotFound.into()));
    let scenario = parsed.map_err(|error| error.to_string())?;
    let options = SimOptions { hash, ..SimOptions::default() };
    let began = Instant::now();
    let outcome =
        scenario.run(options, &mut |_| true, &mut |_| Ok(None)).map_err(|error| error.to_string())?;
    let seconds = began.elapsed().as_secs_f64();
    let outcome = outcome.ok_or("it was stopped")?;
    let figures = &outcome.variants[0].figures;
    Ok((seconds, figures.arms + figures.cancels + figures.expiries, figures.events))
}

fn resident_max() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

fn show(args: &Args, report: &Report) {
    if args.json {
        match serde_json::to_string_pretty(report) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("sim: {error}"),
        }
        return;
    }
    let machine = &report.machine;
    println!("{}, {} CPUs, Linux {}, {}", machine.cpu, machine.cores, machine.kernel, machine.rustc);
    if !report.rows.is_empty() {
        println!(
            "\n{:<36} {:>12} {:>26} {:>16}",
            "", "timer events", "million/s (min to max)", "all events, M/s"
        );
    }
    for row in &report.rows {
        let of = row.timer_events_per_us;
        let speed = format!("{:.2} ({:.2} to {:.2})", of.median, of.min, of.max);
        println!(
            "{:<36} {:>12} {:>26} {:>16.2}",
            row.name, row.timer_events, speed, row.events_per_us.median
        );
    }
    if let Some(bytes) = report.resident_max {
        println!("\nlargest resident size: {} MiB", bytes / MIB);
    }
}
