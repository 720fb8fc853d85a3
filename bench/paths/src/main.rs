//! `quietcore-paths`: the runtime's hot paths, each in a loop, for a tool that counts instructions.
//!
//! One thread drives lane 0 of 0 and 1. A tick is a second long and nothing is ever late, so that no round
//! does more than the one before, however slow the tool makes it; paths of timers that a tick makes due wait
//! for short ones. Prints no figures: what counts is the difference between many rounds and a few. `cargo
//! xtask instructions` does that.

mod packets;

use clap::Parser;
use quietcore_live::task::WorkOptions;
use quietcore_live::time::{Instant, sleep, sleep_until};
use quietcore_live::{Cpu, CpuId, Machine, Nanos, Precision, TimerOptions};
use quietcore_net::Network;
use std::error::Error;
use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

/// Runs one path in a loop.
#[derive(Debug, Parser)]
struct Args {
    /// Which one
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(names()))]
    #[arg(required_unless_present = "list")]
    path: Option<String>,
    /// How many rounds
    #[arg(default_value_t = 1)]
    rounds: u32,
    /// Print their names instead
    #[arg(long)]
    list: bool,
}

const TICK: Duration = Duration::from_secs(1);
/// Of paths that wait for ticks.
const SHORT_TICK: Duration = Duration::from_millis(1);
/// Far behind the end of the run, in a level of the wheel that is not the finest.
const FAR: Duration = Duration::from_secs(1000);

struct Path {
    name: &'static str,
    is_isolated: bool,
    tick: Duration,
    run: fn(&mut Lane, u32),
}

impl Path {
    const fn new(name: &'static str, run: fn(&mut Lane, u32)) -> Self {
        Self { name, is_isolated: false, tick: TICK, run }
    }

    const fn isolated(name: &'static str, run: fn(&mut Lane, u32)) -> Self {
        Self { is_isolated: true, ..Self::new(name, run) }
    }

    const fn short(name: &'static str, run: fn(&mut Lane, u32)) -> Self {
        Self { tick: SHORT_TICK, ..Self::new(name, run) }
    }
}

/// The lane of the calling thread.
struct Lane {
    machine: &'static Machine,
    network: Network,
    cpu: Cpu,
    far: Nanos,
}

/// How many timers are due in one turn.
const MANY: u32 = 64;

const PATHS: [Path; 19] = [
    Path::new("arm_at", |lane, rounds| pairs(lane.machine, lane.far, rounds)),
    Path::new("arm_after", |lane, rounds| {
        let timer = lane.machine.timer(TimerOptions::new(), |_| ());
        for _ in 0..rounds {
            let _ = black_box(timer.arm_after(FAR));
            let _ = black_box(timer.cancel());
        }
    }),
    Path::new("arm_exact", |lane, rounds| {
        let timer = lane.machine.timer(TimerOptions::new().precision(Precision::Exact), |_| ());
        for _ in 0..rounds {
            let _ = black_box(timer.arm_at(lane.far));
            let _ = black_box(timer.cancel());
        }
    }),
    Path::new("arm_again", |lane, rounds| {
        let timer = lane.machine.timer(TimerOptions::new(), |_| ());
        for round in 0..rounds {
            let _ = black_box(timer.arm_at(lane.later(round)));
        }
    }),
    Path::new("sleep_until", |lane, rounds| {
        let far = lane.far;
        lane.entered(|_| sleeps(far, rounds));
    }),
    Path::new("sleep", |lane, rounds| {
        let mut context = Context::from_waker(Waker::noop());
        lane.entered(|_| {
            for _ in 0..rounds {
                let _ = black_box(pin!(sleep(FAR)).poll(&mut context));
            }
        });
    }),
    Path::new("sleep_reset", |lane, rounds| {
        let mut context = Context::from_waker(Waker::noop());
        lane.entered(|lane| {
            let mut sleep = pin!(sleep_until(Instant::from(lane.far)));
            for round in 0..rounds {
                sleep.as_mut().reset(Instant::from(lane.later(round)));
                let _ = black_box(sleep.as_mut().poll(&mut context));
            }
        });
    }),
    Path::new("foreign_arm_at", |lane, rounds| {
        let (machine, far) = (lane.machine, lane.far);
        elsewhere(move || pairs(machine, far, rounds));
    }),
    Path::new("foreign_sleep_until", |lane, rounds| {
        let (machine, far) = (lane.machine, lane.far);
        elsewhere(move || {
            let _entered = machine.enter();
            sleeps(far, rounds);
        });
    }),
    Path::new("expire", |lane, rounds| {
        let timer = lane.machine.timer(TimerOptions::new().precision(Precision::Exact), |_| ());
        for _ in 0..rounds {
            let _ = black_box(timer.arm_at(Nanos(1)));
            assert_eq!(lane.cpu.turn().ran, 1, "it was due");
        }
    }),
    Path::short("expire_callbacks", |lane, rounds| {
        let timers: Vec<_> = (0..MANY).map(|_| lane.machine.timer(TimerOptions::new(), |_| ())).collect();
        for _ in 0..rounds / MANY {
            let soon = lane.soon();
            for timer in &timers {
                let _ = black_box(timer.arm_at(soon));
            }
            lane.expire_all(MANY);
        }
    }),
    Path::short("expire_futures", |lane, rounds| {
        let mut context = Context::from_waker(Waker::noop());
        lane.entered(|lane| {
            let mut sleeps: Vec<_> = (0..MANY).map(|_| Box::pin(sleep(FAR))).collect();
            for _ in 0..rounds / MANY {
                let soon = Instant::from(lane.soon());
                let mut armed = 0;
                for sleep in &mut sleeps {
                    sleep.as_mut().reset(soon);
                    armed += u32::from(black_box(sleep.as_mut().poll(&mut context)).is_pending());
                }
                lane.expire_all(armed);
            }
        });
    }),
    Path::new("turn", |lane, rounds| lane.turns(rounds)),
    Path::isolated("isolated_turn", |lane, rounds| lane.turns(rounds)),
    Path::isolated("isolated_turn_armed", |lane, rounds| {
        let timer = lane.machine.timer(TimerOptions::new().pinned(), |_| ());
        let _ = black_box(timer.arm_at(lane.far));
        lane.turns(rounds);
    }),
    Path::new("idle", |lane, rounds| {
        for _ in 0..rounds {
            let _ = black_box(lane.cpu.enter_idle());
            lane.cpu.exit_idle();
        }
    }),
    Path::new("spawn", |lane, rounds| {
        for _ in 0..rounds {
            drop(black_box(lane.machine.spawn(async {})));
            assert_eq!(lane.cpu.turn().items, 1, "it was alone");
        }
    }),
    Path::new("wake", |lane, rounds| {
        let task = lane.machine.spawn(Yields(rounds));
        while lane.cpu.turn().items > 0 {}
        assert!(task.is_ok_and(|task| task.is_finished()), "it has yielded often enough");
    }),
    Path::new("work", |lane, rounds| {
        let work = lane.machine.work(WorkOptions::new(), || ()).expect("the machine runs");
        for _ in 0..rounds {
            let _ = black_box(work.queue());
            assert_eq!(lane.cpu.turn().items, 1, "it was alone");
        }
    }),
];

/// A task that lets others run so many times.
struct Yields(u32);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Lane {
    fn start(path: &Path) -> Result<Self, Box<dyn Error>> {
        let lanes = "0-1".parse()?;
        let mut builder = Machine::builder().lanes(lanes).tick(path.tick).stall_after(Duration::MAX);
        if path.is_isolated {
            builder = builder.isolated("0".parse()?);
        }
        let (network, builder) = Network::new(builder);
        let machine = builder.start()?;
        let far = Nanos(machine.now().0.saturating_add(u64::try_from(FAR.as_nanos())?));
        let mut cpu = Cpu::claim(machine, CpuId::new(0)?)?;
        while cpu.turn().has_more {}
        Ok(Self { machine, network, cpu, far })
    }

    /// Another moment in every second round.
    fn later(&self, round: u32) -> Nanos {
        Nanos(self.far.0 + u64::from(round % 2) * 100_000_000_000)
    }

    fn entered(&mut self, run: impl FnOnce(&mut Self)) {
        let _entered = self.machine.enter();
        run(self);
    }

    /// So far ahead that [`MANY`] timers can be armed before, also by a slow tool.
    fn soon(&self) -> Nanos {
        Nanos(self.machine.now().0 + 8 * SHORT_TICK.as_nanos() as u64)
    }

    /// Waits for the timers that were armed for [`soon`](Self::soon), and runs them: in one turn, unless a
    /// tool needs longer for that than a turn may take.
    fn expire_all(&mut self, armed: u32) {
        thread::sleep(10 * SHORT_TICK);
        let mut ran = 0;
        while ran < armed {
            ran += self.cpu.turn().ran;
        }
    }

    fn turns(&mut self, rounds: u32) {
        for _ in 0..rounds {
            let _ = black_box(self.cpu.turn());
        }
    }
}

fn pairs(machine: &'static Machine, far: Nanos, rounds: u32) {
    let timer = machine.timer(TimerOptions::new(), |_| ());
    for _ in 0..rounds {
        let _ = black_box(timer.arm_at(far));
        let _ = black_box(timer.cancel());
    }
}

fn sleeps(far: Nanos, rounds: u32) {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..rounds {
        let _ = black_box(pin!(sleep_until(Instant::from(far))).poll(&mut context));
    }
}

/// On a thread that drives no lane.
fn elsewhere(run: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(run).join()).expect("no panic");
}

fn names() -> impl Iterator<Item = &'static str> {
    PATHS.iter().map(|path| path.name).chain(packets::PATHS.iter().map(|(name, _)| *name))
}

fn run(name: &str, rounds: u32) -> Result<(), Box<dyn Error>> {
    if let Some(path) = PATHS.iter().find(|path| path.name == name) {
        (path.run)(&mut Lane::start(path)?, rounds);
    }
    if let Some((name, run)) = packets::PATHS.iter().find(|(one, _)| *one == name) {
        let lane = Lane::start(&Path::new(name, |_, _| ()))?;
        run(packets::Place { machine: lane.machine, network: &lane.network }, rounds);
    }
    Ok(())
}

fn main() -> ExitCode {
    let Args { path, rounds, .. } = Args::parse();
    let Some(path) = path else {
        names().for_each(|name| println!("{name}"));
        return ExitCode::SUCCESS;
    };
    match run(&path, rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("paths: {error}");
            ExitCode::FAILURE
        }
    }
}
