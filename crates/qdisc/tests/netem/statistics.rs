//! What is random, held against its formulas: in intervals that hold 99 of 100 such runs, with fixed seeds.

use super::generator;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    Chance, Dequeued, Distribution, Enqueued, Netem, NetemDelay, NetemLoss, NetemSettings, Probability, Qdisc,
};

/// Half the width of an interval that holds 99 % of a normal distribution, in standard deviations.
const WITHIN: f64 = 2.576;

const PACKETS: u64 = 200_000;

fn percent(percent: f64) -> Probability {
    Probability::percent(percent).expect("0 to 100")
}

/// Which of so many packets were lost.
fn losses(loss: NetemLoss, seed: u64) -> Vec<bool> {
    let settings = NetemSettings { loss, ..NetemSettings::default() };
    let mut netem = Netem::new(settings, generator(seed), Nanos(0)).expect("they go together");
    let take = |at| {
        let verdict = netem.enqueue(Nanos(at), vec![0_u8; 60]);
        let _ = netem.dequeue(Nanos(at));
        verdict == Enqueued::Lost
    };
    (0..PACKETS).map(take).collect()
}

/// Goal: independent losses are as many as asked for. Method: 0.1, 1 and 30 %, of 200,000 packets.
#[test]
fn random_losses() {
    for (seed, share) in [(1, 0.1), (2, 1.0), (3, 30.0)] {
        let chance = Chance { probability: percent(share), ..Chance::default() };
        let lost = losses(NetemLoss::Random(chance), seed).iter().filter(|lost| **lost).count() as f64;
        let (mean, p) = (PACKETS as f64 * share / 100.0, share / 100.0);
        let off = (lost - mean).abs() / (mean * (1.0 - p)).sqrt();
        assert!(off < WITHIN, "{share} %: {lost} of {mean}");
    }
}

/// Goal: bursts are as long, and as many, as Gilbert's model has them. Method: `loss gemodel 1% 10%`:
/// geometric lengths with a mean of 10, gaps with a mean of 100.
#[test]
fn gilbert_bursts() {
    let model = NetemLoss::gilbert(percent(1.0), percent(10.0));
    let lost = losses(model, 4);
    let runs = |wanted: bool| -> Vec<f64> {
        let runs = lost.chunk_by(|one, next| one == next).filter(|run| run[0] == wanted);
        runs.map(|run| run.len() as f64).collect()
    };
    for (runs, p) in [(runs(true), 0.1_f64), (runs(false), 0.01)] {
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        let deviation = (1.0 - p).sqrt() / p / (runs.len() as f64).sqrt();
        assert!((mean - 1.0 / p).abs() < WITHIN * deviation, "{mean}, not {}", 1.0 / p);
    }
    let share = lost.iter().filter(|lost| **lost).count() as f64 / PACKETS as f64;
    let expected = model.mean().expect("it has one");
    // Neighbours are alike: the variance is that of independent losses times (2 - p - r) / (p + r).
    let deviation = (expected * (1.0 - expected) * (2.0 - 0.11) / 0.11 / PACKETS as f64).sqrt();
    assert!((share - expected).abs() < WITHIN * deviation, "{share}, not {expected}");
}

/// Goal: the four states lose what their stationary distribution says. Method: against `NetemLoss::mean`,
/// within three times the interval of independent losses, as neighbours are alike.
#[test]
fn four_states() {
    let [p13, p31, p32, p23, p14] = [1.0, 20.0, 10.0, 50.0, 0.5].map(percent);
    let model = NetemLoss::FourStates { p13, p31, p32, p23, p14 };
    let share = losses(model, 5).iter().filter(|lost| **lost).count() as f64 / PACKETS as f64;
    let expected = model.mean().expect("it has one");
    let deviation = (expected * (1.0 - expected) / PACKETS as f64).sqrt();
    assert!((share - expected).abs() < 3.0 * WITHIN * deviation, "{share}, not {expected}");
}

/// Goal: the mean of each model is that of its formula. Method: by hand. Of four states, good times weigh
/// 0.2 * 0.4 = 0.08, losses in bursts 0.1 * 0.4 = 0.04, between them 0.1 * 0.3 = 0.03, and lone ones
/// 0.08 * 0.5 = 0.04: 0.08 of 0.19. Of good and bad times, (0.2 * 0.9 + 0.3 * 0.5) / 0.5.
#[test]
fn means_by_hand() {
    let [p13, p31, p32, p23, p14] = [10.0, 20.0, 30.0, 40.0, 50.0].map(percent);
    let [p, r, h, lost_in_good] = [20.0, 30.0, 10.0, 50.0].map(percent);
    let chance = |correlation| Chance { probability: percent(30.0), correlation: percent(correlation) };
    for (model, expected) in [
        (NetemLoss::None, Some(0.0)),
        (NetemLoss::Random(chance(0.0)), Some(0.3)),
        (NetemLoss::Random(chance(1.0)), None),
        (NetemLoss::FourStates { p13, p31, p32, p23, p14 }, Some(0.08 / 0.19)),
        (NetemLoss::GilbertElliott { p, r, h, lost_in_good }, Some(0.66)),
        (NetemLoss::gilbert(percent(0.0), percent(0.0)), None),
    ] {
        let mean = model.mean();
        let off = mean.zip(expected).map(|(mean, expected)| (mean - expected).abs());
        assert_eq!(mean.is_some(), expected.is_some(), "{model:?}: {mean:?}");
        assert!(off.is_none_or(|off| off < 1e-6), "{model:?}: {mean:?}, not {expected:?}");
    }
}

/// How long each packet waited that had all the time it wanted.
fn delays(delay: NetemDelay, seed: u64) -> Vec<f64> {
    let settings = NetemSettings { delay, ..NetemSettings::default() };
    let mut netem = Netem::new(settings, generator(seed), Nanos(0)).expect("they go together");
    let mut wait = |number: u64| {
        let sent = Nanos(number * 1_000_000_000);
        assert_eq!(netem.enqueue(sent, vec![0_u8; 60]), Enqueued::Queued);
        match netem.dequeue(sent) {
            Dequeued::Throttled(until) => {
                assert!(netem.dequeue(until).packet().is_some());
                (until.0 - sent.0) as f64
            }
            Dequeued::Packet(_) => 0.0,
            Dequeued::Empty => panic!("it was queued"),
        }
    };
    (1..=PACKETS / 4).map(&mut wait).collect()
}

fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    (mean, variance.sqrt())
}

/// Goal: `delay 10ms 3ms distribution normal`: mean and deviation, and nothing outside of four of them.
#[test]
fn normal_delays() {
    let delay = NetemDelay {
        latency: Nanos(10_000_000),
        jitter: Nanos(2_000_000),
        distribution: Some(Distribution::normal()),
        ..NetemDelay::default()
    };
    let values = delays(delay, 6);
    let (mean, deviation) = moments(&values);
    let count = values.len() as f64;
    assert!((mean - 1e7).abs() < WITHIN * 2e6 / count.sqrt(), "{mean}");
    // What the table clips takes a thousandth of the deviation.
    assert!((deviation / 2e6 - 1.0).abs() < WITHIN / (2.0 * count).sqrt() + 0.001, "{deviation}");
    assert!(values.iter().all(|value| (value - 1e7).abs() <= 8e6));
    let below = values.iter().filter(|value| **value < 8e6).count() as f64 / count;
    assert!((below - 0.158_655).abs() < WITHIN * (0.158_655 * 0.841_345 / count).sqrt(), "{below}");
}

/// Goal: jitter without a distribution is uniform, its lower end included and its upper end not.
#[test]
fn uniform_delays() {
    let delay = NetemDelay { latency: Nanos(50), jitter: Nanos(3), ..NetemDelay::default() };
    let values = delays(delay, 7);
    let count = values.len() as f64;
    for wanted in 47..53 {
        let share = values.iter().filter(|value| **value == f64::from(wanted)).count() as f64 / count;
        assert!((share - 1.0 / 6.0).abs() < WITHIN * (5.0 / 36.0 / count).sqrt(), "{wanted}: {share}");
    }
    assert!(values.iter().all(|value| (47.0..53.0).contains(value)));
}
