//! `endure flips`: lanes are isolated in turns while four threads arm timers, queue work, spawn tasks and
//! spawn real-time tasks; nothing of theirs may begin on a lane that is isolated, and nothing may be lost.
//!
//! Each callback looks which thread it is on, and whether that drives the lane that is isolated. What is
//! isolated is written down when `set_isolated` has returned, and wiped out before the next call: so whatever
//! finds itself there began after the return, or `set_isolated` did not wait for it. A flip that says itself
//! that something was still running is not written down, and is counted. Lost is what has not run after
//! 20 s.

use crate::random::Random;
use crate::report::Report;
use crate::{LaneArguments, Outcome};
use core::time::Duration;
use quietcore_live::{
    CpuId, CpuSet, LaneThreads, Machine, Nanos, Precision, TimerOptions,
    task::{Priority, WorkOptions},
};
use rustix::thread::{Pid, gettid};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;

/// `endure flips`
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often a lane is isolated.
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// What the random delays follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    lanes: LaneArguments,
}

const PATIENCE: Duration = Duration::from_secs(20);

/// Of each kind at a time.
const BATCH: u64 = 8;

/// The longest time that a lane stays isolated here, and the longest delay of a timer.
const DWELL_MAX: u64 = 500_000;

/// What the threads do.
const KINDS: [&str; 4] = ["timers", "work", "tasks", "rt_tasks"];

type Threads = BTreeMap<i32, CpuId>;
type Played = Result<(u64, u64), Box<dyn Error + Send + Sync>>;

/// Of one kind.
#[derive(Clone, Debug, Default)]
struct Count {
    foreign: u64,
    /// Runs by lane; none is a thread that drives no lane.
    ran: BTreeMap<Option<CpuId>, u64>,
}

/// What callbacks find and leave.
struct Seen {
    lanes: Threads,
    isolated: RwLock<Option<CpuId>>,
    counts: [Mutex<Count>; 4],
}

impl Seen {
    /// A callback begins here.
    fn begin(&self, kind: usize) {
        let lane = self.lanes.get(&number(gettid())).copied();
        let isolated = *self.isolated.read().unwrap_or_else(PoisonError::into_inner);
        let mut count = lock(&self.counts[kind]);
        count.foreign += u64::from(isolated.is_some() && isolated == lane);
        *count.ran.entry(lane).or_default() += 1;
    }

    fn isolate(&self, lane: Option<CpuId>) {
        *self.isolated.write().unwrap_or_else(PoisonError::into_inner) = lane;
    }
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let lanes: Vec<CpuId> = arguments.lanes.set()?.iter().collect();
    if lanes.len() < 2 {
        return Ok(Report::skipped("flips", "needs two lanes"));
    }
    let machine = arguments.lanes.builder()?.lane_threads(LaneThreads::new()).start()?;
    let seen = Arc::new(Seen {
        lanes: lane_threads()?,
        isolated: RwLock::new(None),
        counts: core::array::from_fn(|_| Mutex::default()),
    });
    let (stops, threads): (Vec<Sender<()>>, Vec<_>) = (0..KINDS.len())
        .map(|kind| {
            let (stop, over) = channel();
            let (seen, random) = (Arc::clone(&seen), Random::new(arguments.seed, kind as u64));
            (stop, thread::spawn(move || load(machine, kind, &seen, random, &over)))
        })
        .unzip();
    let mut random = Random::new(arguments.seed, KINDS.len() as u64);
    let mut still_running = 0;
    for flip in 0..arguments.count {
        let lane = lanes[flip as usize % lanes.len()];
        let report = machine.set_isolated(&[lane].into_iter().collect::<CpuSet>())?;
        let is_clear = report.still_running.is_empty();
        still_running += u64::from(!is_clear);
        seen.isolate(Some(lane).filter(|_| is_clear));
        thread::sleep(Duration::from_nanos(random.below(DWELL_MAX)));
        seen.isolate(None);
        if flip % 7 == 0 {
            let _ = machine.set_isolated(&CpuSet::new())?;
        }
    }
    drop(stops);
    let (mut started, mut lost) = (0, 0);
    for thread in threads {
        let played = thread.join().map_err(|_| "a thread panicked")?;
        let (more, missing) = played.map_err(|error| error.to_string())?;
        (started, lost) = (started + more, lost + missing);
    }
    machine.shutdown();
    Ok(report(arguments.count, &seen, started, lost, still_running))
}

fn report(flips: u64, seen: &Seen, started: u64, lost: u64, still_running: u64) -> Report {
    let counts = seen.counts.each_ref().map(|count| lock(count).clone());
    let ran = |count: &Count| count.ran.values().sum::<u64>();
    let mut report = Report::new("flips");
    report.at_least("flips", flips, 1);
    report.figure("started", started);
    report.at_least("callbacks", counts.iter().map(ran).sum::<u64>(), 1);
    for (name, count) in KINDS.into_iter().zip(&counts) {
        report.at_least(name, ran(count), 1);
    }
    let mut by_lane = BTreeMap::<Option<CpuId>, u64>::new();
    for (lane, ran) in counts.iter().flat_map(|count| &count.ran) {
        *by_lane.entry(*lane).or_default() += ran;
    }
    let text = |(lane, ran): (&Option<CpuId>, &u64)| {
        format!("{}:{ran}", lane.map_or_else(|| "none".to_owned(), |lane| lane.to_string()))
    };
    report.figure("by_lane", by_lane.iter().map(text).collect::<Vec<_>>().join(","));
    report.figure("flips_that_waited_in_vain", still_running);
    report.at_most("foreign", counts.iter().map(|count| count.foreign).sum(), 0);
    report.at_most("lost", lost, 0);
    report
}

/// One kind of load, a batch at a time: how much it started, and what of it never ran.
fn load(
    machine: &'static Machine,
    kind: usize,
    seen: &Arc<Seen>,
    mut random: Random,
    over: &Receiver<()>,
) -> Played {
    let (sender, receiver) = channel();
    let tell = || {
        let (seen, sender) = (Arc::clone(seen), sender.clone());
        // No thread listens any more when something was lost.
        move || {
            seen.begin(kind);
            let _ = sender.send(());
        }
    };
    let timers: Vec<_> = [Precision::Coarse, Precision::Tick, Precision::Exact]
        .into_iter()
        .cycle()
        .take(BATCH as usize)
        .map(|precision| {
            let tell = tell();
            machine.timer(TimerOptions::new().precision(precision), move |_| tell())
        })
        .collect();
    let works: Result<Vec<_>, _> = (0..BATCH).map(|_| machine.work(WorkOptions::new(), tell())).collect();
    let works = works.map_err(|error| error.to_string())?;
    let mut started = 0;
    while over.try_recv() == Err(TryRecvError::Empty) {
        let mut tasks = Vec::new();
        for at in 0..BATCH as usize {
            let tell = tell();
            match kind {
                0 => _ = timers[at].arm_at(Nanos(machine.now().0 + random.below(DWELL_MAX)))?,
                1 => _ = works[at].queue()?,
                2 => tasks.push(machine.spawn(async move { tell() })?),
                _ => tasks.push(machine.spawn_rt(Priority::HIGHEST, async move { tell() })?),
            }
        }
        started += BATCH;
        for come in 0..BATCH {
            if receiver.recv_timeout(PATIENCE).is_err() {
                return Ok((started, BATCH - come));
            }
        }
    }
    Ok((started, 0))
}

/// The threads that play lanes, by the names that the machine gives them.
pub(crate) fn lane_threads() -> Result<Threads, Box<dyn Error>> {
    let mut threads = Threads::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let path = entry?.path();
        let name = fs::read_to_string(path.join("comm"))?;
        let cpu = name.trim().strip_prefix("quietcore-").and_then(|cpu| cpu.parse::<u64>().ok());
        let thread = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        if let (Some(cpu), Some(thread)) = (cpu, thread) {
            threads.insert(thread, CpuId::new(cpu)?);
        }
    }
    Ok(threads)
}

fn number(thread: Pid) -> i32 {
    thread.as_raw_nonzero().get()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
