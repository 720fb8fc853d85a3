//! `qdisc`: how many packets per second pass through netem with many of them queued, on one core.
//!
//! A step is: time passes, a packet comes, all that are due leave. As many packets as are to be queued come
//! within the mean delay, so that their number stays. The peer is what a program would write by hand: a
//! binary heap of moments, with the same delays. Rounds are interleaved; ratios are taken within a round.

use clap::Parser;
use fastrand::Rng;
use quietcore_bench::statistics::Summary;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    Chance, Dequeued, Distribution, Netem, NetemDelay, NetemLoss, NetemRate, NetemSettings, Packet,
    Probability, Qdisc,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

/// Measures netem in packets per second.
#[derive(Debug, Parser)]
#[command(after_help = "Run it with --release on a machine that is otherwise idle.")]
struct Args {
    /// Packets that are queued
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    queued: u32,
    /// Packets that pass per workload and round
    #[arg(long, value_name = "COUNT", default_value_t = 2_000_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    packets: u32,
    /// How often everything is measured
    #[arg(long, value_name = "COUNT", default_value_t = 7)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// What a front end hands over: a buffer of its own.
#[derive(Debug)]
struct Frame(Box<[u8; 64]>);

impl Packet for Frame {
    fn len(&self) -> u32 {
        1500
    }
}

/// The mean delay.
const LATENCY: u64 = 10_000_000;

type Setup = fn() -> NetemSettings;

const WORKLOADS: [(&str, Setup); 4] = [
    ("delay 10ms", || with(0, None)),
    ("delay 10ms 3ms", || with(3_000_000, None)),
    ("delay 10ms 3ms distribution normal loss gemodel 1% 10%", || {
        let percent = |percent| Probability::percent(percent).expect("0 to 100");
        NetemSettings {
            loss: NetemLoss::gilbert(percent(1.0), percent(10.0)),
            ..with(3_000_000, Some(Distribution::normal()))
        }
    }),
    ("delay 10ms reorder 25% rate 1000gbit", || NetemSettings {
        reorder: Chance {
            probability: Probability::percent(25.0).expect("0 to 100"),
            correlation: Probability::NEVER,
        },
        gap: 1,
        rate: NetemRate { bytes_per_second: 125_000_000_000, ..NetemRate::default() },
        ..with(0, None)
    }),
];

fn with(jitter: u64, distribution: Option<Distribution>) -> NetemSettings {
    let delay = NetemDelay {
        latency: Nanos(LATENCY),
        jitter: Nanos(jitter),
        distribution,
        correlation: Probability::NEVER,
    };
    NetemSettings { limit: u32::MAX, delay, ..NetemSettings::default() }
}

/// Packets per second; how many were queued in the end.
fn netem(args: &Args, settings: NetemSettings) -> (f64, u64) {
    let mut random = Rng::with_seed(7);
    let mut netem = Netem::new(settings, move || random.u32(..), Nanos(0)).expect("they go together");
    let (spacing, mut number) = (LATENCY as f64 / f64::from(args.queued), 0.0);
    let mut step = || {
        number += 1.0;
        let now = Nanos((number * spacing) as u64);
        let _ = black_box(netem.enqueue(now, Frame(Box::new([0; 64]))));
        while let Dequeued::Packet(packet) = netem.dequeue(now) {
            black_box(packet.0[0]);
        }
    };
    (0..2 * args.queued).for_each(|_| step());
    let began = Instant::now();
    (0..args.packets).for_each(|_| step());
    let rate = f64::from(args.packets) / began.elapsed().as_secs_f64();
    (rate, netem.statistics().qlen)
}

struct Waiting(u64, u64, Frame);

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// The same with uniform jitter and a heap, without losses and the rest.
fn heap(args: &Args, settings: &NetemSettings) -> f64 {
    let mut random = Rng::with_seed(7);
    let jitter = settings.delay.jitter.0;
    let mut heap = BinaryHeap::new();
    let (spacing, mut number) = (LATENCY as f64 / f64::from(args.queued), 0_u64);
    let mut step = || {
        number += 1;
        let now = (number as f64 * spacing) as u64;
        let extra = if jitter == 0 { 0 } else { random.u64(..2 * jitter) };
        heap.push(Reverse(Waiting(now + LATENCY - jitter + extra, number, Frame(Box::new([0; 64])))));
        while heap.peek().is_some_and(|Reverse(first)| first.0 <= now) {
            let Some(Reverse(first)) = heap.pop() else { break };
            black_box(first.2.0[0]);
        }
    };
    (0..2 * args.queued).for_each(|_| step());
    let began = Instant::now();
    (0..args.packets).for_each(|_| step());
    f64::from(args.packets) / began.elapsed().as_secs_f64()
}

fn main() {
    let args = Args::parse();
    let mut rates = vec![Vec::new(); WORKLOADS.len()];
    let mut heaps = vec![Vec::new(); WORKLOADS.len()];
    let mut queued = [0; WORKLOADS.len()];
    for round in 0..args.rounds {
        for turn in 0..WORKLOADS.len() {
            let at = (turn + round as usize) % WORKLOADS.len();
            let settings = (WORKLOADS[at].1)();
            heaps[at].push(heap(&args, &settings));
            let (rate, left) = netem(&args, settings);
            rates[at].push(rate);
            queued[at] = left;
        }
    }
    println!("netem, packets per second on one core: median of {} rounds (least to most)", args.rounds);
    println!("{:<56} {:>9}  {:>10}  by a heap's", "netem", "queued", "packets/s");
    for (at, (name, _)) in WORKLOADS.iter().enumerate() {
        let (Some(rate), Some(ratio)) = (Summary::of(&rates[at]), Summary::of_ratios(&rates[at], &heaps[at]))
        else {
            continue;
        };
        println!(
            "{name:<56} {:>9}  {:>10.0}  {:.2} ({:.0} to {:.0})",
            queued[at], rate.median, ratio.median, rate.min, rate.max
        );
    }
}
