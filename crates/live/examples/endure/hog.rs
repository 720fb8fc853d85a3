//! `endure hog`: a real-time loop takes a lane's CPU, and with it the lane; its global timers are on time all
//! the same.
//!
//! Everything is armed by the lane that will be stuck, before it is: sleeps and timeouts, and pinned
//! callbacks for comparison, which must wait. How late they are is noted where they are woken. A plain thread
//! beside them says how late the host itself is: on a host that is busy otherwise the bound says nothing.

use crate::lanes::stay_on;
use crate::quiet::{end, park, start};
use crate::report::Report;
use crate::watch::Guarded;
use crate::{LaneArguments, Outcome, StallHandling};
use clap::ValueEnum;
use core::future::{Future, pending};
use core::pin::Pin;
use core::task::{Context, Waker};
use core::time::Duration;
use quietcore_live::time::{self, Instant};
use quietcore_live::{Cpu, CpuId, Machine, Nanos, Precision, TimerHandle, TimerOptions};
use std::error::Error;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;
use std::thread;

/// `endure hog`
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long the loop runs.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// What the lane does when the loop comes.
    #[arg(long, value_enum, default_value_t = Lane::Busy)]
    lane: Lane,
    /// Judge only that nothing is early or lost: lateness says little in seconds, or on a shared host.
    #[arg(long)]
    counts_only: bool,
    #[command(flatten)]
    lanes: LaneArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lane {
    /// It turns all the time.
    Busy,
    /// It sleeps.
    Parked,
}

/// `endure burn`
#[derive(clap::Args)]
pub(crate) struct BurnArguments {
    #[arg(long)]
    seconds: u64,
}

/// Most lateness of 99 in 100 global timers, when stalls are handled; least, when they are not.
const HANDLED_MAX: Nanos = Nanos(4_000_000);
const UNHANDLED_MIN: Nanos = Nanos(100_000_000);

/// A host on which a plain sleep is that late (99 in 100) is too busy for a bound.
const NOISE_MAX: Nanos = Nanos(2_000_000);

/// How many global and how many pinned timers.
const GLOBAL: u64 = 3000;
const PINNED: u64 = 200;

/// From arming to the first moment, while the loop starts.
const LEAD: Duration = Duration::from_millis(500);

/// What has not run that long after the loop is lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// When each timer was due, and when it ran.
type Log = Arc<Mutex<Vec<(Nanos, Nanos)>>>;

/// Notes when it is woken.
struct Note {
    machine: &'static Machine,
    due: Nanos,
    log: Log,
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        note(&self.log, self.due, self.machine.now());
    }
}

fn note(log: &Log, due: Nanos, now: Nanos) {
    log.lock().unwrap_or_else(PoisonError::into_inner).push((due, now));
}

/// What the stuck lane has armed; dropped when all is over.
struct Armed {
    _futures: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _pinned: Vec<TimerHandle>,
}

/// `endure burn`: spins.
pub(crate) fn burn(arguments: &BurnArguments) -> Result<(), Box<dyn Error>> {
    let started = std::time::Instant::now();
    while started.elapsed() < Duration::from_secs(arguments.seconds) {
        core::hint::spin_loop();
    }
    Ok(())
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if let Err(why) = may_be_real_time() {
        return Ok(Report::skipped("hog", why));
    }
    let lanes: Vec<CpuId> = arguments.lanes.set()?.iter().collect();
    let [free, stuck] = lanes[..] else { return Err("this takes two lanes".into()) };
    let machine = arguments.lanes.builder()?.start()?;
    let (global, pinned) = (Log::default(), Log::default());
    // Started while this thread may still run anywhere, as the helper was.
    let free_lane = start(machine, free, "free", park)?;
    let span = Duration::from_secs(arguments.seconds);
    let (sender, receiver) = channel();
    let stuck_lane = start(machine, stuck, "stuck", {
        let plan = Plan { span, lane: arguments.lane, global: global.clone(), pinned: pinned.clone() };
        move |cpu| be_stuck(cpu, plan, &sender)
    })?;
    let armed = receiver.recv()?;
    stay_on(free)?;
    let began = machine.now();
    let noise = thread::spawn(move || host_noise(span));
    let mut hog = Guarded(start_hog(stuck, arguments.seconds)?);
    let status = hog.0.wait()?;
    if !status.success() {
        return Ok(Report::skipped("hog", format!("the loop could not be started: {status}")));
    }
    let ended = machine.now();
    await_all(&global, &pinned);
    let noise = noise.join().map_err(|_| "the host's noise was not measured")?;
    drop(armed);
    machine.shutdown();
    end(vec![free_lane, stuck_lane])?;
    Ok(report(arguments, &Seen { began, ended, noise, global: take(&global), pinned: take(&pinned) }))
}

fn may_be_real_time() -> Result<(), String> {
    let tried = Command::new("chrt").args(["-f", "90", "true"]).stderr(Stdio::null()).status();
    match tried {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("needs real-time rights (root, or ulimit -r 90)".to_owned()),
        Err(error) => Err(format!("chrt: {error}")),
    }
}

fn start_hog(cpu: CpuId, seconds: u64) -> std::io::Result<std::process::Child> {
    let program = std::env::current_exe()?;
    let mut command = Command::new("chrt");
    command.args(["-f", "90", "taskset", "-c", &cpu.to_string()]).arg(program);
    command.args(["burn", "--seconds", &seconds.to_string()]).stdin(Stdio::null()).spawn()
}

/// What a lane that is to be stuck arms.
struct Plan {
    span: Duration,
    lane: Lane,
    global: Log,
    pinned: Log,
}

/// Arms everything, as the lane of the CPU that is to be taken, and then turns for as long as it can.
fn be_stuck(cpu: Cpu, plan: Plan, sender: &Sender<Armed>) {
    let Plan { span, lane, global, pinned } = plan;
    let machine = cpu.machine();
    let first = machine.now().0 + LEAD.as_nanos() as u64;
    let moment = |number: u64, count: u64| Nanos(first + span.as_nanos() as u64 * number / count);
    let futures = (0..GLOBAL).map(|number| arm_future(machine, number, moment(number, GLOBAL), &global));
    let futures = futures.collect();
    let pinned = (0..PINNED).map(|number| arm_pinned(machine, moment(number, PINNED), &pinned)).collect();
    // The thread that waits for it may have ended, with an error of its own.
    let _ = sender.send(Armed { _futures: futures, _pinned: pinned });
    match lane {
        Lane::Busy => turn(cpu),
        Lane::Parked => park(cpu),
    }
}

fn turn(mut cpu: Cpu) {
    while cpu.machine().is_running() {
        let _ = cpu.turn();
    }
}

/// Sleeps of two precisions and timeouts, in turns.
fn arm_future(
    machine: &'static Machine,
    number: u64,
    due: Nanos,
    log: &Log,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let deadline = Instant::from(due);
    let mut future: Pin<Box<dyn Future<Output = ()> + Send>> = match number % 3 {
        0 => Box::pin(time::sleep_until(deadline)),
        1 => Box::pin(time::sleep_until(deadline).with_precision(Precision::Exact)),
        _ => Box::pin(async move {
            // It is over, or else it would not be polled again.
            let _ = time::timeout_at(deadline, pending::<()>()).with_precision(Precision::Tick).await;
        }),
    };
    let waker = Waker::from(Arc::new(Note { machine, due, log: log.clone() }));
    let _ = future.as_mut().poll(&mut Context::from_waker(&waker));
    future
}

fn arm_pinned(machine: &'static Machine, due: Nanos, log: &Log) -> TimerHandle {
    let log = log.clone();
    let options = TimerOptions::new().precision(Precision::Tick).pinned();
    let timer = machine.timer(options, move |_run| note(&log, due, machine.now()));
    timer.arm_at(due).expect("this thread is a lane");
    timer
}

/// How late a plain thread's sleeps of a millisecond are, for `span`, each in ns.
fn host_noise(span: Duration) -> Vec<Nanos> {
    const NAP: Duration = Duration::from_millis(1);
    // The default of 50 us is the thread's own.
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    let started = std::time::Instant::now();
    let mut late = Vec::new();
    while started.elapsed() < span {
        let before = std::time::Instant::now();
        thread::sleep(NAP);
        late.push(Nanos(before.elapsed().saturating_sub(NAP).as_nanos() as u64));
    }
    late
}

fn await_all(global: &Log, pinned: &Log) {
    let deadline = std::time::Instant::now() + PATIENCE;
    let count = |log: &Log| log.lock().unwrap_or_else(PoisonError::into_inner).len() as u64;
    while (count(global) < GLOBAL || count(pinned) < PINNED) && std::time::Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
}

fn take(log: &Log) -> Vec<(Nanos, Nanos)> {
    core::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What came of it.
struct Seen {
    began: Nanos,
    ended: Nanos,
    noise: Vec<Nanos>,
    global: Vec<(Nanos, Nanos)>,
    pinned: Vec<(Nanos, Nanos)>,
}

fn report(arguments: &Arguments, seen: &Seen) -> Report {
    // Due while the loop ran.
    let late = |log: &[(Nanos, Nanos)]| -> Vec<Nanos> {
        let during = log.iter().filter(|(due, _)| (seen.began..seen.ended).contains(due));
        during.map(|(due, now)| now.since(*due)).collect()
    };
    let early = seen.global.iter().chain(&seen.pinned).filter(|(due, now)| now < due).count();
    let (global, pinned) = (late(&seen.global), late(&seen.pinned));
    let [p50, p99] = [50, 99].map(|percent| percentile(&global, percent));
    let noise = percentile(&seen.noise, 99);
    let mut report = Report::new("hog");
    report.figure("lane", format!("{:?}", arguments.lane).to_lowercase());
    report.figure("stall_handling", format!("{:?}", arguments.lanes.stall_handling).to_lowercase());
    report.figure("real_time_limit", real_time_limit());
    report.at_least("timers", global.len() as u64, GLOBAL / 2);
    report.figure("p50_ns", p50.0);
    match arguments.lanes.stall_handling {
        _ if arguments.counts_only => report.figure("p99_ns", p99.0),
        StallHandling::On => report.at_most("p99_ns", p99.0, HANDLED_MAX.0),
        StallHandling::Off => report.at_least("p99_ns", p99.0, UNHANDLED_MIN.0),
    }
    report.figure("max_ns", percentile(&global, 100).0);
    report.figure("host_p99_ns", noise.0);
    if noise > NOISE_MAX && !arguments.counts_only {
        report.excuse(format!("99 in 100 plain sleeps are up to {} us late on this host", noise.0 / 1000));
    }
    report.at_most("early", early, 0);
    report.at_most("lost", GLOBAL - seen.global.len() as u64, 0);
    report.at_most("lost_pinned", PINNED - seen.pinned.len() as u64, 0);
    report.figure("pinned_late", pinned.iter().filter(|late| **late > HANDLED_MAX).count());
    report.figure("pinned_max_ns", percentile(&pinned, 100).0);
    report
}

fn percentile(values: &[Nanos], percent: usize) -> Nanos {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// What other threads get of a CPU on which a real-time one never stops.
fn real_time_limit() -> String {
    match fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us") {
        Ok(text) if text.trim() == "-1" => "off".to_owned(),
        Ok(text) => format!("{}us/s", text.trim()),
        Err(_) => "unknown".to_owned(),
    }
}
