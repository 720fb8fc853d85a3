//! netem against a recording of a real kernel: the same line, the same delays, as far as chance allows.

use super::Parcel;
use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, Netem, NetemDelay, NetemSettings, Qdisc};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const RECORDED: &str = include_str!("../recorded/netem-delays-linux-6.12.txt");
/// Microseconds by which the recorded machine let packets go after their moment, for nine of ten: its timers
/// were 2 us late and its softirqs, emulated, the rest.
const LATE: u64 = 300;

/// Delays of `count` packets in microseconds, sorted.
fn played(seed: u64, count: usize) -> Vec<u64> {
    let delay = NetemDelay { latency: Nanos(10_000_000), jitter: Nanos(3_000_000), ..NetemDelay::default() };
    let settings = NetemSettings { delay, ..NetemSettings::default() };
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut netem = Netem::new(settings, move || random.next_u32(), Nanos(0)).expect("they go together");
    let mut delays = Vec::with_capacity(count);
    for number in 0..count as u64 {
        let arrived = Nanos(number * 20_000_000);
        let parcel = Parcel { number, bytes: 100, flips: Vec::new(), is_capable: false, is_marked: false };
        assert!(netem.enqueue(arrived, parcel).is_accepted());
        let Dequeued::Throttled(until) = netem.dequeue(arrived) else { panic!("it has to wait") };
        assert!(netem.dequeue(until).packet().is_some());
        delays.push(until.since(arrived).0 / 1_000);
    }
    delays.sort_unstable();
    delays
}

/// Goal: a real netem's delays are such as ours gives. Method: the same number of packets, 200 seeds: each
/// quantile of the recording lies between the smallest and the largest of ours, and what the machine was
/// late.
#[test]
fn a_kernels_delays_are_such_as_ours() {
    let numbers = RECORDED.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    let mut recorded: Vec<u64> = numbers.map(|word| word.parse().expect("a number")).collect();
    recorded.sort_unstable();
    assert_eq!(recorded.len(), 6_182);
    assert!(recorded[0] >= 7_000, "never early: {}", recorded[0]);
    let plays: Vec<Vec<u64>> = (0..200).map(|seed| played(seed, recorded.len())).collect();
    for percent in [1, 5, 10, 25, 50, 75, 90] {
        let at = recorded.len() * percent / 100;
        let of_plays = || plays.iter().map(|play| play[at]);
        let (low, high) = (of_plays().min().expect("200"), of_plays().max().expect("200"));
        let measured = recorded[at];
        assert!((low..=high + LATE).contains(&measured), "p{percent}: {measured} us, ours {low} to {high}");
    }
}
