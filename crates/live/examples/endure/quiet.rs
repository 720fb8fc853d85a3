//! `endure quiet` and `endure busy`: no thread wakes up for nothing.
//!
//! Quiet: two lanes and the helper, with a thousand timers an hour away. Busy: one lane never stops turning
//! and runs a global timer a thousand times a second, the other sleeps. A child drives; its parent counts the
//! child's context switches, so that counting wakes no thread.

use crate::lanes::stay_on;
use crate::report::Report;
use crate::watch::{Growth, be_watched, watch};
use crate::{LaneArguments, Outcome};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Waker};
use core::time::Duration;
use quietcore_live::time::{self, Sleep};
use quietcore_live::{Cpu, CpuId, Machine, Nanos, Precision, TimerHandle, TimerOptions};
use std::error::Error;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// Most context switches in all: one for whatever was under way, and one more.
const SWITCHES_MAX: u64 = 2;

/// How many timers wait in a quiet machine, and for how long.
const TIMERS: u64 = 1000;
const FAR: Duration = Duration::from_secs(3600);

/// How often the busy lane runs a timer.
const PERIOD: Duration = Duration::from_millis(1);

/// A pause in the busy lane's turns that is a stall: the default of `MachineBuilder::stall_after`.
const STALL: Nanos = Nanos(2_000_000);

/// Names of threads in the child, as the kernel has them.
const BUSY: &str = "busy";
const PARKED: &str = "parked";

/// `endure quiet` and `endure busy`
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long the child is watched.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    #[command(flatten)]
    lanes: LaneArguments,
}

pub(crate) fn quiet(arguments: &Arguments) -> Outcome {
    let (growth, _) = watch_child("be-quiet", arguments)?;
    let mut report = Report::new("quiet");
    report.figure("seconds", arguments.seconds);
    report.figure("threads", growth.len());
    report.at_most("switches", growth.iter().map(|thread| thread.switches).sum(), SWITCHES_MAX);
    report.figure("by", by_thread(&growth));
    Ok(report)
}

pub(crate) fn busy(arguments: &Arguments) -> Outcome {
    let (growth, last_words) = watch_child("be-busy", arguments)?;
    let mut words = last_words.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(ran)), Some(Ok(stalls))) = (words.next(), words.next()) else {
        return Err(format!("the child said {last_words:?}").into());
    };
    let parked = growth.iter().find(|thread| thread.name == PARKED).ok_or("no thread is parked")?;
    let mut report = Report::new("busy");
    report.figure("seconds", arguments.seconds);
    report.at_least("ran", ran, arguments.seconds);
    report.at_most("parked_switches", parked.switches, SWITCHES_MAX);
    report.figure("stalls", stalls);
    report.figure("by", by_thread(&growth));
    if stalls > 0 {
        report.excuse(format!("the host took the busy lane's CPU for 2 ms and more {stalls} times"));
    }
    Ok(report)
}

fn watch_child(verb: &str, arguments: &Arguments) -> std::io::Result<(Vec<Growth>, String)> {
    let lanes = arguments.lanes.to_string();
    watch(&[verb, "--lanes", &lanes].map(str::to_owned), Duration::from_secs(arguments.seconds))
}

fn by_thread(growth: &[Growth]) -> String {
    let words: Vec<_> = growth.iter().map(|thread| format!("{}:{}", thread.name, thread.switches)).collect();
    words.join(",")
}

pub(crate) fn be_quiet(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let machine = arguments.lanes.builder()?.start()?;
    let _entered = machine.enter();
    let lanes = arguments.lanes.set()?;
    let players: Vec<_> =
        lanes.iter().map(|cpu| start(machine, cpu, PARKED, park)).collect::<Result<_, _>>()?;
    let timers = far_timers(machine, &lanes.iter().collect::<Vec<_>>())?;
    let sleeps = far_sleeps();
    be_watched()?;
    drop((timers, sleeps));
    machine.shutdown();
    end(players)
}

/// Callback timers of all kinds.
fn far_timers(machine: &'static Machine, lanes: &[CpuId]) -> Result<Vec<TimerHandle>, Box<dyn Error>> {
    let precisions = [Precision::Coarse, Precision::Tick, Precision::Exact];
    let far = Nanos(machine.now().0 + FAR.as_nanos() as u64);
    let make = |number: u64| {
        let options = TimerOptions::new().precision(precisions[number as usize % 3]);
        let timer = machine.timer(options, |_run| {});
        let at = Nanos(far.0 + number * 1_000_000);
        match lanes.get(number as usize % 5) {
            Some(cpu) => timer.arm_on(*cpu, at)?,
            None => timer.arm_at(at)?,
        };
        Ok(timer)
    };
    (0..TIMERS / 2).map(make).collect()
}

fn far_sleeps() -> Vec<Pin<Box<Sleep>>> {
    let mut sleeps: Vec<_> = (0..TIMERS / 2).map(|_| Box::pin(time::sleep(FAR))).collect();
    for sleep in &mut sleeps {
        let _ = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    sleeps
}

pub(crate) fn be_busy(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let machine = arguments.lanes.builder()?.start()?;
    let lanes: Vec<CpuId> = arguments.lanes.set()?.iter().collect();
    let [first, second] = lanes[..] else { return Err("this takes two lanes".into()) };
    let parked = start(machine, second, PARKED, park)?;
    let (sender, receiver) = channel();
    let spinner = start(machine, first, BUSY, move |cpu| spin(cpu, &sender))?;
    be_watched()?;
    machine.shutdown();
    end(vec![parked, spinner])?;
    let (ran, stalls) = receiver.recv()?;
    println!("{ran} {stalls}");
    Ok(())
}

/// Turns all the time; says at the end how often the timer ran and how often the turns paused.
fn spin(mut cpu: Cpu, sender: &Sender<(u64, u64)>) {
    let machine = cpu.machine();
    let (mut ran, mut stalls) = (0, 0);
    let timer = machine.timer(TimerOptions::new().precision(Precision::Tick), |_run| {});
    let mut turned = machine.now();
    // Armed here, and so on this lane's global base.
    timer.arm_periodic(turned, PERIOD).expect("the machine runs");
    while machine.is_running() {
        ran += u64::from(cpu.turn().ran);
        let now = machine.now();
        stalls += u64::from(now.since(turned) >= STALL);
        turned = now;
    }
    sender.send((ran, stalls)).expect("the child waits for it");
}

/// A lane with nothing to do but its timers.
pub(crate) fn park(mut cpu: Cpu) {
    while cpu.machine().is_running() {
        if !cpu.turn().has_more {
            cpu.park();
        }
    }
}

type Played = Result<(), Box<dyn Error + Send + Sync>>;

/// A thread that claims `number`, stays there, and does `what`.
pub(crate) fn start(
    machine: &'static Machine,
    number: CpuId,
    name: &str,
    what: impl FnOnce(Cpu) + Send + 'static,
) -> Result<JoinHandle<Played>, Box<dyn Error>> {
    let (sender, claimed) = channel();
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
        stay_on(number)?;
        let cpu = Cpu::claim(machine, number)?;
        // The thread that started this may be gone already.
        let _ = sender.send(());
        what(cpu);
        Ok(())
    })?;
    // If it ends without having said so, `end` says why.
    let _ = claimed.recv();
    Ok(thread)
}

pub(crate) fn end(threads: Vec<JoinHandle<Played>>) -> Result<(), Box<dyn Error>> {
    for thread in threads {
        thread.join().map_err(|_| "a lane panicked")?.map_err(|error| error.to_string())?;
    }
    Ok(())
}
