//! An audio loop beside everything else that a program does: 256 frames at 48 kHz, every 5.333 ms, on time.
//!
//! A real-time task sleeps exactly until its next block is due, mixes it and looks how late it was. Beside it
//! run what would be in its way: normal tasks and work that compute, and packets, whose handler (NET_RX)
//! takes its time. Without awareness the mix waits behind the handler; with it the task goes to a lane
//! without packets, or the packets wait for it.
//!
//! ```sh
//! cargo run --release -p quietcore --example audio_loop -- --seconds 10
//! cargo run --release -p quietcore --example audio_loop -- --seconds 10 --awareness none
//! ```

use quietcore::time::{Duration, Instant, sleep, sleep_until};
use quietcore::{
    LaneThreads, Machine, Nanos, Precision, TimerHandle, TimerOptions,
    softirq::{Awareness, SoftirqRun, Vector},
    task::{JoinHandle, Priority, Work, WorkOptions},
};
use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};

const HELP: &str = "\
A real-time audio loop beside bulk work and packets: how late is it, and how many blocks does it miss?

usage: audio_loop [OPTIONS]

  --seconds COUNT    ends by itself after so long [10]; Ctrl-C ends it before that
  --awareness WHAT   none, place, defer or both: what is done about packets for its sake [both]
  --quiet            no bulk work and no packets: what the host itself does to it
  -h, --help         says this
";

const RATE: u64 = 48_000;
const FRAMES: usize = 256;
/// 5.333 ms.
const PERIOD: Duration = Duration::from_nanos(FRAMES as u64 * 1_000_000_000 / RATE);

/// Sources that are mixed.
const VOICES: usize = 64;

/// Normal tasks that compute all the time, and for how long between two waits.
const BULK_TASKS: usize = 2;
const BULK: Duration = Duration::from_micros(300);

/// Between two bursts of packets on a lane, and what the handler does with one.
const BURST_PERIOD: Duration = Duration::from_micros(4_100);
const BURST: Duration = Duration::from_micros(1_500);

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    None,
    BulkAndPackets,
}

#[derive(Clone, Copy, Debug)]
struct Options {
    seconds: u64,
    awareness: Awareness,
    load: Load,
}

impl Options {
    /// `None` when help was asked for.
    fn parse(mut words: impl Iterator<Item = String>) -> Outcome<Option<Self>> {
        let mut options = Self { seconds: 10, awareness: Awareness::Both, load: Load::BulkAndPackets };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--seconds" => options.seconds = value()?.parse()?,
                "--awareness" => options.awareness = awareness(&value()?)?,
                "--quiet" => options.load = Load::None,
                "-h" | "--help" => return Ok(None),
                _ => return Err(format!("audio_loop knows no `{word}`; --help lists what it knows").into()),
            }
        }
        Ok(Some(options))
    }
}

fn awareness(name: &str) -> Outcome<Awareness> {
    let known = Awareness::ALL.into_iter().find(|awareness| awareness.name() == name);
    Ok(known.ok_or_else(|| format!("there is no awareness `{name}`: none, place, defer, both"))?)
}

/// What is mixed: sines, each with its own step.
#[derive(Debug)]
struct Mixer {
    phases: [f32; VOICES],
    block: [f32; FRAMES],
}

impl Mixer {
    fn new() -> Self {
        Self { phases: core::array::from_fn(|voice| voice as f32 * 0.1), block: [0.0; FRAMES] }
    }

    fn mix(&mut self) {
        self.block.fill(0.0);
        for (voice, phase) in self.phases.iter_mut().enumerate() {
            let step = 0.01 + voice as f32 * 0.002;
            for sample in &mut self.block {
                *sample += phase.sin() / VOICES as f32;
                *phase += step;
            }
            *phase %= core::f32::consts::TAU;
        }
        // Here it would go to the device.
        black_box(&self.block);
    }
}

/// A block: how late its mix began, and whether it was there before the next one was due.
#[derive(Clone, Copy, Debug)]
struct Block {
    late: Duration,
    is_missed: bool,
}

/// Mixes a block per period for as long as the receiver is there.
async fn play(blocks: Sender<Block>) {
    let mut mixer = Mixer::new();
    let mut due = Instant::now() + PERIOD;
    loop {
        sleep_until(due).with_precision(Precision::Exact).await;
        let late = Instant::now() - due;
        mixer.mix();
        let next = due + PERIOD;
        let is_missed = Instant::now() > next;
        if blocks.send(Block { late, is_missed }).is_err() {
            return;
        }
        // The device plays on: blocks whose time is over are left out, and each of them was missed.
        due = next;
        while due + PERIOD < Instant::now() {
            due += PERIOD;
            let _ = blocks.send(Block { late: Instant::now() - due, is_missed: true });
        }
    }
}

fn compute(length: Duration) {
    let end = std::time::Instant::now() + length;
    while std::time::Instant::now() < end {
        spin_loop();
    }
}

/// What must go on while the load is wanted.
#[derive(Debug)]
struct Bulk {
    tasks: Vec<JoinHandle<()>>,
    work: Work,
    timers: Vec<TimerHandle>,
}

/// Tasks and work that compute, and a timer per lane that is its network card.
fn start_bulk(machine: &'static Machine) -> Outcome<Bulk> {
    let busy = || async {
        loop {
            compute(BULK);
            sleep(Duration::from_millis(1)).await;
        }
    };
    let tasks = (0..BULK_TASKS).map(|_| machine.spawn(busy())).collect::<Result<_, _>>()?;
    let work = machine.work(WorkOptions::new(), || compute(BULK))?;
    let queued = work.clone();
    let every = machine.timer(TimerOptions::new(), move |_| _ = queued.queue());
    every.arm_periodic(machine.now(), Duration::from_millis(2))?;
    let mut timers = vec![every];
    for cpu in machine.lanes().iter() {
        // No lane has two bursts at the moment at which another one has.
        let later = BURST_PERIOD.as_nanos() as u64 * cpu.index() as u64 / 3;
        let first = Nanos(machine.now().0 + later);
        let card = machine.timer(TimerOptions::new(), move |run| {
            // A machine that ends takes no packets any more.
            let _ = run.timer().machine().raise(cpu, Vector::NET_RX);
        });
        card.arm_periodic(first, BURST_PERIOD)?;
        timers.push(card);
    }
    Ok(Bulk { tasks, work, timers })
}

/// NET_RX: a burst of packets, one after the other. It does not look whether a task waits for the CPU, as
/// handlers mostly do not (`SoftirqRun::should_end` would say).
fn receive(_run: &SoftirqRun<'_>) {
    compute(BURST);
}

impl Bulk {
    fn end(self) {
        self.timers.iter().for_each(|timer| _ = timer.cancel());
        self.tasks.iter().for_each(JoinHandle::abort);
        let _ = self.work.cancel();
    }
}

fn report(options: Options, machine: &Machine, blocks: &[Block]) -> Outcome<()> {
    let mut late: Vec<Duration> = blocks.iter().map(|block| block.late).collect();
    late.sort_unstable();
    let (Some(least), Some(most)) = (late.first(), late.last()) else {
        return Err("no block was due".into());
    };
    let average = late.iter().sum::<Duration>() / u32::try_from(late.len())?;
    let p99 = late[(late.len() - 1) * 99 / 100];
    let missed = blocks.iter().filter(|block| block.is_missed).count();
    let metrics = machine.metrics();
    println!("{} blocks of {PERIOD:.3?}, awareness {}", blocks.len(), options.awareness.name());
    println!("  late: min {least:.1?}, avg {average:.1?}, p99 {p99:.1?}, max {most:.1?}");
    println!("  missed: {missed}");
    println!(
        "  moved to another lane {} times; bursts: {} by lanes, {} by ksoftirqd, {} times deferred",
        metrics.sum(|cpu| cpu.migrations),
        metrics.sum(|cpu| cpu.softirqs),
        metrics.sum(|cpu| cpu.ksoftirqd_ran),
        metrics.sum(|cpu| cpu.deferred)
    );
    Ok(())
}

fn run(options: Options) -> Outcome<()> {
    let builder = Machine::builder().automatic_lanes().lane_threads(LaneThreads::new());
    let machine = builder.awareness(options.awareness).softirq(Vector::NET_RX, receive).start()?;
    let bulk = (options.load == Load::BulkAndPackets).then(|| start_bulk(machine)).transpose()?;
    let (sender, blocks) = channel();
    let player = machine.spawn_rt(Priority::HIGHEST, play(sender))?;
    // This thread only waits: for the end, or for Ctrl-C.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let end = tokio::time::sleep(Duration::from_secs(options.seconds));
        tokio::select! {
            () = end => Ok(()),
            signal = tokio::signal::ctrl_c() => signal,
        }
    })?;
    player.abort();
    if let Some(bulk) = bulk {
        bulk.end();
    }
    let outcome = report(options, machine, &blocks.try_iter().collect::<Vec<_>>());
    machine.shutdown();
    outcome
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("audio_loop: {error}");
            return ExitCode::from(2);
        }
    };
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("audio_loop: {error}");
            ExitCode::FAILURE
        }
    }
}
