//! What it costs that a lane hosts a runtime of tokio, and how late timers are there. The figures of
//! docs/reference/tokio-lanes.md are this program's.
//!
//! ```sh
//! cargo run --release -p quietcore --features tokio --example tokio_lanes
//! ```

use quietcore::time::{Duration, Instant, sleep};
use quietcore::tokio::lanes::Lanes;
use quietcore::{CpuId, CpuSet, Machine, Precision, TimerOptions, lane::Pinning};
use std::error::Error;
use std::future::poll_fn;
use std::sync::mpsc::channel;
use std::task::Poll;
use std::thread;
use tokio::runtime::Builder;

/// Pairs of runs with a lane and without.
const ROUNDS: usize = 9;
const TRIPS: u32 = 5000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Late by how much 400 sleeps of 1 to 5 ms were, in us, sorted.
async fn sleeps() -> Vec<u128> {
    let mut late = Vec::new();
    for number in 0..400 {
        let due = Instant::now() + Duration::from_micros(1000 + 997 * number % 4000);
        sleep(due - Instant::now()).await;
        late.push((Instant::now() - due).as_micros());
    }
    late.sort_unstable();
    late
}

/// Lets the other tasks that are ready run first. tokio's own looks at the driver meanwhile, always; a task
/// that is woken by another one's poll, as here by its own, does not.
async fn let_others_run() {
    let mut is_first = true;
    poll_fn(|context| {
        if core::mem::take(&mut is_first) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// Beside `tasks` that compute for 50 us at a time, and are ready again at once.
async fn sleeps_beside(tasks: usize) -> Vec<u128> {
    let busy: Vec<_> = (0..tasks)
        .map(|_| {
            tokio::spawn(async {
                loop {
                    let start = std::time::Instant::now();
                    while start.elapsed() < Duration::from_micros(50) {
                        std::hint::spin_loop();
                    }
                    let_others_run().await;
                }
            })
        })
        .collect();
    let late = sleeps().await;
    busy.iter().for_each(tokio::task::JoinHandle::abort);
    late
}

/// The calling thread, and those that it starts, run on the first `count` CPUs from now on.
fn confine(count: usize) {
    let mut set = rustix::thread::CpuSet::new();
    (0..count).for_each(|cpu| set.set(cpu));
    // Where that is not allowed the figures are of threads that run anywhere.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// Microseconds of a round trip: another thread sends, the runtime's task answers. Both threads on the first
/// `cpus` CPUs.
async fn round_trips(cpus: usize) -> f64 {
    confine(cpus);
    let (to_task, mut received) = tokio::sync::mpsc::unbounded_channel::<()>();
    let (answer, answered) = channel();
    let stranger = thread::spawn(move || {
        let start = std::time::Instant::now();
        for _ in 0..TRIPS {
            to_task.send(()).expect("the task receives it");
            answered.recv().expect("the task answers");
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(TRIPS)
    });
    while received.recv().await.is_some() {
        answer.send(()).expect("the thread waits for it");
    }
    stranger.join().expect("it does not panic")
}

/// Nanoseconds of going once round the runtime: a task that is ready again at once.
async fn yields() -> f64 {
    let start = std::time::Instant::now();
    for _ in 0..200_000 {
        let_others_run().await;
    }
    start.elapsed().as_secs_f64() * 1e9 / 200_000.0
}

/// Of a runtime without a lane, on a thread of its own, as a lane's is.
fn plain<F: Future<Output = f64> + Send + 'static>(work: F) -> Outcome<f64> {
    let run = || {
        let runtime = Builder::new_current_thread().enable_all().event_interval(16).build()?;
        // As a task: the root is woken in another way.
        Ok(runtime.block_on(async { tokio::spawn(work).await.expect("it does not panic") }))
    };
    thread::spawn(run).join().expect("it does not panic").map_err(std::io::Error::into)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Rounds of both, in turn; prints the medians, and the median of the rounds' ratios.
fn compare(
    name: &str,
    on_lane: impl Fn() -> Outcome<f64>,
    without: impl Fn() -> Outcome<f64>,
) -> Outcome<()> {
    let (mut with, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        with.push(on_lane()?);
        bare.push(without()?);
        ratios.push(with[with.len() - 1] / bare[bare.len() - 1]);
    }
    let (with, bare, ratio) = (median(with), median(bare), median(ratios));
    println!("  {name:48} {with:8.1} on a lane, {bare:8.1} without one; ratio {ratio:.2}");
    Ok(())
}

fn show(name: &str, late: &[u128]) {
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
    println!("  {name:48} late us p50 {:6} p99 {:6} max {:6}", at(0.5), at(0.99), at(1.0));
}

/// How late exact timers are that this thread arms for `cpu`, due at once.
fn kicks(machine: &'static Machine, cpu: CpuId) -> Outcome<Vec<u128>> {
    let (sender, ran) = channel();
    let timer = machine.timer(TimerOptions::new().precision(Precision::Exact), move |run| {
        let _ = sender.send((run.cpu(), run.lateness()));
    });
    let mut late = Vec::new();
    for _ in 0..200 {
        thread::sleep(Duration::from_millis(3));
        timer.arm_on(cpu, machine.now())?;
        let (on, lateness) = ran.recv()?;
        assert_eq!(on, cpu, "it was armed for this lane");
        late.push(lateness.as_micros());
    }
    late.sort_unstable();
    Ok(late)
}

fn main() -> Outcome<()> {
    let machine = Machine::builder().automatic_lanes().start()?;
    let all: CpuSet = machine.lanes().clone();
    let cpu = all.first().ok_or("this process may run nowhere")?;
    println!("lane {cpu} of {all}");
    let only = || Lanes::builder(machine).cpus([cpu].into_iter().collect()).pinning(Pinning::Never);
    for cpus in [1, all.len()] {
        compare(
            &format!("round trip with another thread, {cpus} CPU(s), us"),
            || Ok(only().start()?.run(move || round_trips(cpus))?),
            || plain(round_trips(cpus)),
        )?;
    }
    compare(
        "a poll of a task that is always ready, ns",
        || Ok(only().start()?.run(yields)?),
        || plain(yields()),
    )?;
    let lanes = only().start()?;
    show("sleeps of 1 to 5 ms, nothing else", &lanes.run(sleeps)?);
    show("an exact timer that a stranger arms, due at once", &kicks(machine, cpu)?);
    drop(lanes);
    let mut late = [(61, Vec::new()), (16, Vec::new()), (1, Vec::new())];
    for _ in 0..ROUNDS / 3 {
        for (interval, late) in &mut late {
            let lanes = only().event_interval(*interval).start()?;
            late.extend(lanes.run(|| sleeps_beside(4))?);
        }
    }
    for (interval, mut late) in late {
        late.sort_unstable();
        show(&format!("beside 4 tasks of 50 us, event_interval {interval}"), &late);
    }
    machine.shutdown();
    Ok(())
}
