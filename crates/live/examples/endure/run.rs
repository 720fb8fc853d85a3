//! `endure run`: random timers of all kinds on several threads; nothing may be early, lost or twice.
//!
//! It brings no disturbance of its own but stalls of its lanes; stops, quotas and affinities come from
//! outside, at any time. Lost is what has not run after ten seconds in which the process did run.

use crate::callbacks::Callbacks;
use crate::futures::{Exchange, Futures};
use crate::lanes::Player;
use crate::ledger::Tally;
use crate::periods::Periods;
use crate::queues::Queues;
use crate::random::Random;
use crate::report::Report;
use crate::scene::{Load, Rouser, Scene, play};
use crate::shared::Shared;
use crate::{LaneArguments, Outcome};
use core::time::Duration;
use quietcore_live::{CpuId, CpuSet, Machine, metrics::Metrics};
use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// `endure run`
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// For how long; until the end of the input if it is not given.
    #[arg(long)]
    seconds: Option<u64>,
    /// What the random actions follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads that are no lanes.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    #[command(flatten)]
    lanes: LaneArguments,
}

type Played = Result<Tally, Box<dyn Error + Send + Sync>>;

/// Streams of random numbers from here on say how lanes rest.
const RESTS: u64 = 1 << 32;

/// What the threads of a run have together.
#[derive(Clone)]
struct Stage {
    machine: &'static Machine,
    lanes: CpuSet,
    seed: u64,
    exchange: Exchange,
    shared: Shared,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let lanes = arguments.lanes.set()?;
    let machine = arguments.lanes.builder()?.start()?;
    let shared = Shared::new(machine);
    let stage = Stage { machine, lanes, seed: arguments.seed, exchange: Exchange::default(), shared };
    // Lanes come first and leave last: what is pinned to them needs them.
    let lanes = Cast::start(&stage, stage.lanes.iter().map(Some))?;
    let others = Cast::start(&stage, (0..arguments.threads).map(|_| None))?;
    wait(arguments.seconds)?;
    let mut tally = others.end()?;
    tally.merge(&lanes.end()?);
    tally.merge(&stage.shared.settle());
    let metrics = machine.metrics();
    machine.shutdown();
    Ok(report(&tally, &metrics))
}

/// Threads that play until they are told to end.
struct Cast {
    threads: Vec<JoinHandle<Played>>,
    /// Closed to tell them.
    stops: Vec<Sender<()>>,
}

impl Cast {
    /// A thread for each driver: of a CPU, or of none.
    fn start(stage: &Stage, players: impl Iterator<Item = Option<CpuId>>) -> Result<Self, Box<dyn Error>> {
        let mut cast = Self { threads: Vec::new(), stops: Vec::new() };
        for (number, cpu) in players.enumerate() {
            let (sender, stop) = channel();
            let stream = 2 * number as u64 + u64::from(cpu.is_some());
            let stage = stage.clone();
            cast.threads.push(thread::Builder::new().spawn(move || enter(&stage, cpu, stream, &stop))?);
            cast.stops.push(sender);
        }
        Ok(cast)
    }

    fn end(self) -> Result<Tally, Box<dyn Error>> {
        drop(self.stops);
        let mut sum = Tally::default();
        for thread in self.threads {
            let played = thread.join().map_err(|_| "a thread panicked")?;
            sum.merge(&played.map_err(|error| error.to_string())?);
        }
        Ok(sum)
    }
}

/// What each thread does.
fn enter(stage: &Stage, cpu: Option<CpuId>, stream: u64, stop: &Receiver<()>) -> Played {
    let machine = stage.machine;
    let _entered = machine.enter();
    let rests = Random::new(stage.seed, RESTS | stream);
    let player = cpu.map(|cpu| Player::new(machine, cpu, rests)).transpose()?;
    let rouser = player.as_ref().map_or_else(|| Rouser::Thread(thread::current()), Player::rouser);
    let mut scene = Scene::new(machine, Random::new(stage.seed, stream), rouser);
    let mut loads: Vec<Box<dyn Load>> = vec![
        Box::new(Callbacks::new(stage.lanes.clone(), &mut scene)),
        Box::new(Futures::new(stage.exchange.clone(), &mut scene)),
        Box::new(Periods::new(&mut scene)),
        Box::new(Queues::new(&scene)),
        Box::new(stage.shared.clone()),
    ];
    play_as(player, &mut loads, &mut scene, stop);
    Ok(scene.tally)
}

fn play_as(player: Option<Player>, loads: &mut [Box<dyn Load>], scene: &mut Scene, stop: &Receiver<()>) {
    match player {
        Some(mut player) => play(loads, scene, stop, || player.rest()),
        None => play(loads, scene, stop, || thread::park_timeout(Duration::from_millis(1))),
    }
}

fn wait(seconds: Option<u64>) -> Result<(), Box<dyn Error>> {
    match seconds {
        Some(seconds) => thread::sleep(Duration::from_secs(seconds)),
        None => _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?,
    }
    Ok(())
}

fn report(tally: &Tally, metrics: &Metrics) -> Report {
    let mut report = Report::new("run");
    report.at_least("armed", tally.armed, 1);
    report.at_least("ran", tally.ran, 1);
    report.figure("cancelled", tally.cancelled);
    report.figure("superseded", tally.superseded);
    report.figure("dropped", tally.dropped);
    report.at_most("early", tally.early, 0);
    report.at_most("lost", tally.lost, 0);
    report.at_most("twice", tally.twice, 0);
    if !tally.noticed.is_empty() {
        report.figure("noticed", serde_json::json!(tally.noticed));
    }
    report.figure("late_ns_max", tally.late_max.0);
    report.figure("marks", metrics.sum(|cpu| cpu.bases.marks));
    report.figure("false_marks", metrics.sum(|cpu| cpu.bases.false_marks));
    report.figure("kicks", metrics.sum(|cpu| cpu.kicks));
    report
}
