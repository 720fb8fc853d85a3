//! `endure churn`: threads arm and cancel, on otherwise empty bases, and nothing else happens.
//!
//! Nothing may allocate, and no thread may enter the kernel: the memory in use is held against what it was,
//! and `strace` counts the calls (tests/live_timers.sh). Each thread stays on a CPU of its own while there
//! are enough, because what is measured is not the scheduler.

use crate::Outcome;
use crate::lanes::stay_on;
use crate::process::resident_kib;
use crate::report::Report;
use quietcore_live::{CpuId, Machine, Nanos, TimerOptions};
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

/// `endure churn`
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// How often they arm and cancel, all together.
    #[arg(long, default_value_t = 10_000_000)]
    pairs: u64,
}

/// How far away the timers are.
const DELAY: Nanos = Nanos(60_000_000_000);

/// Growth of memory that is allowed, whatever the number of pairs.
const GROWTH_KIB_MAX: u64 = 1023;

/// Pairs before anything is measured: stacks, thread-local data, the first alarm.
const WARM_UP: u64 = 1000;

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let machine = Machine::start()?;
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let numbers = (0..rustix::thread::CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number));
    let cpus: Vec<CpuId> = numbers.map(|number| CpuId::new(number as u64)).collect::<Result<_, _>>()?;
    let each = arguments.pairs / arguments.threads.max(1) as u64;
    play(machine, &cpus, arguments.threads, WARM_UP)?;
    let before = resident_kib()?;
    let spans = play(machine, &cpus, arguments.threads, each)?;
    let after = resident_kib()?;
    machine.shutdown();
    let mut report = Report::new("churn");
    report.figure("threads", arguments.threads);
    report.figure("pairs", each * arguments.threads as u64);
    let nanos: Vec<String> =
        spans.iter().map(|span| format!("{:.1}", span.as_nanos() as f64 / each as f64)).collect();
    report.figure("pair_ns", nanos.join(","));
    report.at_most("growth_kib", after.saturating_sub(before), GROWTH_KIB_MAX);
    Ok(report)
}

/// Each of the threads does that many pairs; says how long each took.
fn play(
    machine: &'static Machine,
    cpus: &[CpuId],
    threads: usize,
    pairs: u64,
) -> Result<Vec<Duration>, Box<dyn Error>> {
    let start = |number: usize| {
        let cpu = cpus[number % cpus.len()];
        thread::spawn(move || {
            stay_on(cpu)?;
            churn(machine, pairs).map_err(Box::<dyn Error + Send + Sync>::from)
        })
    };
    let threads: Vec<_> = (0..threads).map(start).collect();
    let join = |thread: thread::JoinHandle<Result<Duration, Box<dyn Error + Send + Sync>>>| {
        let span = thread.join().map_err(|_| "a thread panicked")?;
        span.map_err(|error| error.to_string().into())
    };
    threads.into_iter().map(join).collect()
}

fn churn(machine: &'static Machine, pairs: u64) -> Result<Duration, quietcore_live::ArmError> {
    let timer = machine.timer(TimerOptions::new(), |_run| {});
    let first = machine.now().0 + DELAY.0;
    let started = Instant::now();
    for pair in 0..pairs {
        // A little later each time, as timeouts are.
        let _ = timer.arm_at(Nanos(first + pair * 100))?;
        assert!(timer.cancel(), "it was pending, a minute away");
    }
    Ok(started.elapsed())
}
