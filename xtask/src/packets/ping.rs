//! What ping sees through `delay 10ms 3ms distribution normal loss gemodel 1% 10%`.
//!
//! The model is played often, with draws of its own: the figures of a real run have to be where 99 of 100
//! plays are. What the way itself costs is measured in the same run, through the same device without a
//! discipline, and added to the model one by one; the smallest of it is the floor that no round trip may be
//! below.

use super::chance::{Draws, interval_99, quantile};
use super::link::PacketLink;
use super::tools::{Tools, must};
use crate::workspace::{Failure, capture};

const LINE: &str =
    "qdisc add dev eth1 root netem limit 10000 delay 10ms 3ms distribution normal loss gemodel 1% 10%";
const COUNT: usize = 1_000;
/// How often the model is played.
const PLAYS: usize = 4_000;
/// Milliseconds.
const LATENCY: f64 = 10.0;
/// Milliseconds.
const JITTER: f64 = 3.0;
/// From the good state to the bad one, in which everything is lost, and back.
const GILBERT: (f64, f64) = (0.01, 0.10);

pub(super) fn check(tools: &Tools) -> Result<(), Failure> {
    let link = PacketLink::ours(tools, &["--queues", "1"])?;
    let way = ping(&link)?;
    println!("  the way alone: {}", shown(&way));
    must(way.len() == COUNT, "nothing is lost without a discipline")?;
    link.tc(LINE)?;
    let trips = ping(&link)?;
    println!("  through netem: {}", shown(&trips));
    println!("{}", link.tc("-s qdisc show dev eth1")?.trim_end());
    let floor = (LATENCY - 4.0 * JITTER).max(0.0) + way.first().copied().unwrap_or(0.0);
    let least = trips.first().copied().unwrap_or(0.0);
    must(
        least >= floor,
        &format!("the shortest trip, {least:.3} ms, is not below the floor, {floor:.3} ms"),
    )?;

    let mut draws = Draws(2_026);
    let (low, high) = interval_99(PLAYS, || lost(&mut draws) as f64);
    let missing = COUNT - trips.len();
    must(
        (low..=high).contains(&(missing as f64)),
        &format!("lost {missing} of {COUNT}; 99 % of the model's plays lose {low:.0} to {high:.0}"),
    )?;
    type Figure = (&'static str, fn(&[f64]) -> f64);
    let figures: [Figure; 5] = [
        ("mean", mean),
        ("deviation", deviation),
        ("p10", |sorted| quantile(sorted, 0.10)),
        ("p50", |sorted| quantile(sorted, 0.50)),
        ("p90", |sorted| quantile(sorted, 0.90)),
    ];
    for (name, figure) in figures {
        let (low, high) = interval_99(PLAYS, || figure(&played(&mut draws, &way, trips.len())));
        let measured = figure(&trips);
        must(
            (low..=high).contains(&measured),
            &format!("{name} {measured:.3} ms; 99 % of the model's plays have {low:.3} to {high:.3}"),
        )?;
    }
    Ok(())
}

/// Round trips in ms, sorted.
fn ping(link: &PacketLink<'_>) -> Result<Vec<f64>, Failure> {
    let mut command = link.inside("a", "ping");
    command.args(["-n", "-c", &COUNT.to_string(), "-i", "0.01", link.address]);
    let text = capture(&mut command)?;
    let trip = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse::<f64>().ok();
    let mut trips: Vec<f64> = text.lines().filter_map(trip).collect();
    trips.sort_by(f64::total_cmp);
    if let Some(summary) = text.lines().rev().find(|line| line.starts_with("rtt")) {
        println!("  ping says: {summary}");
    }
    Ok(trips)
}

fn shown(sorted: &[f64]) -> String {
    let at = |share| quantile(sorted, share);
    let (count, mean) = (sorted.len(), mean(sorted));
    format!(
        "{count} trips, min {:.3} p50 {:.3} mean {mean:.3} p99 {:.3} max {:.3} ms",
        at(0.0),
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

fn deviation(figures: &[f64]) -> f64 {
    let middle = mean(figures);
    (figures.iter().map(|it| (it - middle).powi(2)).sum::<f64>() / figures.len() as f64).sqrt()
}

/// How many of a run are lost.
fn lost(draws: &mut Draws) -> usize {
    let (worse, better) = GILBERT;
    let mut is_bad = false;
    let one = |_: &usize| {
        is_bad = if is_bad { draws.uniform() >= better } else { draws.uniform() < worse };
        is_bad
    };
    (0..COUNT).filter(one).count()
}

/// Trips of a run of the model, sorted: a delay that is not negative, and what the way costs.
fn played(draws: &mut Draws, way: &[f64], count: usize) -> Vec<f64> {
    let mut trip = || {
        let delay = LATENCY + JITTER * draws.normal().clamp(-4.0, 4.0);
        delay.max(0.0) + way[(draws.uniform() * way.len() as f64) as usize]
    };
    let mut trips: Vec<f64> = (0..count).map(|_| trip()).collect();
    trips.sort_by(f64::total_cmp);
    trips
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the model is the one that the line names. Method: its mean loss, p / (p + r), and mean delay.
    #[test]
    fn the_model_loses_what_it_should() {
        let mut draws = Draws(3);
        let losses: usize = (0..400).map(|_| lost(&mut draws)).sum();
        let share = losses as f64 / (400 * COUNT) as f64;
        assert!((share - 0.01 / 0.11).abs() < 0.01, "{share}");
        let trips = played(&mut draws, &[0.5], 100_000);
        assert!((mean(&trips) - 10.5).abs() < 0.05 && (deviation(&trips) - 3.0).abs() < 0.05);
    }
}
