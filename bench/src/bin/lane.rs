//! `lane`: what a lane's own steps cost: turns, idling without the wait, arming and cancelling on it.
//!
//! One thread drives one of two lanes, the other lane sleeps. Nanoseconds per step, the median of the rounds,
//! in each of which every row is measured once, in stretches between which the lane turns. Walks are timed
//! one by one, because a lane walks the hierarchy only when it expects to rest for longer than a tick: what
//! two readings of the clock cost is taken off, and what the lane said it would do is checked. Between a cold
//! walk's two ends the thread sleeps, between those of a warm one it computes. Three rows are no steps of a
//! lane, but for comparison: the clock, a mutex of the standard library, and a timer of the system that is
//! set after a sleep, as a walk does once or twice.

use clap::Parser;
use quietcore_bench::machine::Machine as Host;
use quietcore_bench::statistics::Summary;
use quietcore_live::{Cpu, CpuId, CpuSet, Machine, Nanos, TimerHandle, TimerOptions, lane::IdleUntil};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde::Serialize;
use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Measures the steps of a lane.
#[derive(Debug, Parser)]
#[command(after_help = "Run it with --release on a machine with two CPUs that is otherwise idle.")]
struct Args {
    /// How often everything is measured
    #[arg(long, value_name = "COUNT", default_value_t = 9)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Steps of a row.
const STEPS: u32 = 200_000;
/// Steps that are timed together. Between two stretches the lane turns: it would count as stuck after 2 ms.
const STRETCH: u32 = 4_000;
/// Walks that are timed one by one.
const WALKS: usize = 40;
/// Timers of which random ones are moved, all in the next hour, and how many in one call.
const MANY: usize = 1_000_000;
const TOGETHER: usize = 256;
/// A rest that a lane walks the hierarchy for.
const LONG_REST: Duration = Duration::from_millis(6);

/// A row: its name, and what it measures, in ns.
type Row = (&'static str, fn(&mut Lane) -> Result<f64, Box<dyn Error>>);

const ROWS: [Row; 17] = [
    ("a look at the clock", |lane| Ok(lane.each(|cpu| _ = black_box(cpu.machine().now())))),
    ("a mutex, locked and unlocked", |lane| {
        let mutex = Mutex::new(0_u64);
        Ok(lane.each(|_| *black_box(&mutex).lock().expect("nobody panics") += 1))
    }),
    ("turn, nothing due", |lane| Ok(lane.each(|cpu| _ = black_box(cpu.turn())))),
    ("isolated turn, nothing armed", |lane| {
        lane.isolated(|lane| Ok(lane.each(|cpu| _ = black_box(cpu.turn()))))
    }),
    ("isolated turn, a timer armed", |lane| {
        let timer = lane.machine.timer(TimerOptions::new().pinned(), |_| {});
        lane.isolated(|lane| {
            timer.arm_after(Duration::from_secs(3600))?;
            Ok(lane.each(|cpu| _ = black_box(cpu.turn())))
        })
    }),
    ("doze and back", |lane| lane.dozes()),
    ("idle and back: walk", |lane| lane.walks(sleeps)),
    ("idle and back: warm walk", |lane| lane.walks(computes)),
    ("isolated, idle and back: walk", |lane| lane.isolated(|lane| lane.walks(sleeps))),
    ("a timer set after a sleep", |_| timer_sets()),
    ("arm_at and cancel", |lane| {
        let timer = lane.machine.timer(TimerOptions::new(), |_| {});
        let at = lane.far();
        Ok(lane.each(|_| {
            let _ = black_box(timer.arm_at(at));
            black_box(timer.cancel());
        }))
    }),
    ("the same, marked as stuck", |lane| lane.stuck_pairs()),
    ("arm_after and cancel", |lane| {
        let timer = lane.machine.timer(TimerOptions::new(), |_| {});
        Ok(lane.each(|_| {
            let _ = black_box(timer.arm_after(Duration::from_secs(3600)));
            black_box(timer.cancel());
        }))
    }),
    ("arm_at later, again and again", |lane| {
        let timer = lane.machine.timer(TimerOptions::new(), |_| {});
        let mut at = lane.far();
        let each = lane.each(|_| {
            at.0 += 1_000_000;
            let _ = black_box(timer.arm_at(at));
        });
        timer.cancel();
        Ok(each)
    }),
    ("a random one of a million, arm_at", |lane| {
        Ok(lane.moves(|_, moves| {
            for (timer, at) in moves {
                let _ = black_box(timer.arm_at(*at));
            }
        }))
    }),
    ("random ones of a million, arm_many", |lane| {
        Ok(lane.moves(|machine, moves| {
            for moves in moves.chunks(TOGETHER) {
                let _ = black_box(machine.arm_many(moves.iter().copied()));
            }
        }))
    }),
    ("nothing", |lane| Ok(lane.each(|cpu| _ = black_box(cpu)))),
];

/// A timer, and where it is moved.
type Move<'t> = (&'t TimerHandle, Nanos);

/// This thread's lane.
struct Lane {
    machine: &'static Machine,
    cpu: Cpu,
}

fn each(steps: u32, mut step: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..steps {
        step();
    }
    start.elapsed().as_nanos() as f64 / f64::from(steps)
}

impl Lane {
    /// On the second of the first two CPUs that this process may use; the first one's lane sleeps.
    fn claim() -> Result<Self, Box<dyn Error>> {
        let allowed = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))?;
        let may_use = |number: &usize| allowed.is_set(*number).unwrap_or(false);
        let numbers: Vec<usize> = (0..nix::sched::CpuSet::count()).filter(may_use).take(2).collect();
        let [first, second] = numbers[..] else { return Err("lanes need two CPUs, and there is one".into()) };
        let (first, second) = (CpuId::new(first as u64)?, CpuId::new(second as u64)?);
        let lanes: CpuSet = [first, second].into_iter().collect();
        let machine = Machine::builder().lanes(lanes).start()?;
        let cpu = Cpu::claim(machine, second)?;
        thread::spawn(move || {
            let mut cpu = Cpu::claim(machine, first).expect("nobody has it");
            while machine.is_running() {
                if !cpu.turn().has_more {
                    cpu.park();
                }
            }
        });
        thread::sleep(Duration::from_millis(50)); // the other lane sleeps by then
        Ok(Self { machine, cpu })
    }

    fn far(&self) -> Nanos {
        Nanos(self.machine.now().0 + 3_600_000_000_000)
    }

    /// The mean of stretches between which the lane turns.
    fn each(&mut self, mut step: impl FnMut(&mut Cpu)) -> f64 {
        let stretches = STEPS / STRETCH;
        let all = (0..stretches).map(|_| {
            let _ = self.cpu.turn();
            each(STRETCH, || step(&mut self.cpu))
        });
        all.sum::<f64>() / f64::from(stretches)
    }

    /// Pairs on a lane that has not turned for long: others look after its timers, and learn of a first one.
    fn stuck_pairs(&mut self) -> Result<f64, Box<dyn Error>> {
        let timer = self.machine.timer(TimerOptions::new(), |_| {});
        let (at, before) = (self.far(), self.machine.stalls().last().map(|report| report.number));
        let _ = self.cpu.turn();
        let mut pair = || {
            let _ = black_box(timer.arm_at(at));
            black_box(timer.cancel());
        };
        let start = Instant::now();
        while self.machine.stalls().last().map(|report| report.number) == before {
            if start.elapsed() > Duration::from_secs(1) {
                return Err("a lane that does not turn was not marked".into());
            }
            each(STRETCH, &mut pair);
        }
        Ok(each(STEPS, pair))
    }

    /// Moves of random ones of many timers with callbacks to random moments, which are drawn beforehand.
    fn moves(&mut self, make: impl Fn(&'static Machine, &[Move<'_>])) -> f64 {
        let machine = self.machine;
        let timer = |_| machine.timer(TimerOptions::new(), |_| panic!("it is far away"));
        let timers: Vec<TimerHandle> = (0..MANY).map(timer).collect();
        let mut random = fastrand::Rng::with_seed(1);
        let now = machine.now().0;
        let mut moment = move || Nanos(now + random.u64(60_000_000_000..3_600_000_000_000));
        for timers in timers.chunks(STRETCH as usize) {
            let _ = self.cpu.turn();
            for timer in timers {
                timer.arm_at(moment()).expect("the machine runs");
            }
        }
        let mut random = fastrand::Rng::with_seed(2);
        let stretches = STEPS / STRETCH;
        let all = (0..stretches).map(|_| {
            let moves: Vec<Move<'_>> =
                (0..STRETCH).map(|_| (&timers[random.usize(..MANY)], moment())).collect();
            let _ = self.cpu.turn();
            each(1, || make(machine, &moves)) / f64::from(STRETCH)
        });
        all.sum::<f64>() / f64::from(stretches)
    }

    fn isolated<R>(&mut self, measure: impl FnOnce(&mut Self) -> R) -> R {
        let alone: CpuSet = [self.cpu.cpu()].into_iter().collect();
        self.machine.set_isolated(&alone).expect("the other one keeps house");
        let measured = measure(self);
        self.machine.set_isolated(&CpuSet::new()).expect("it may always come back");
        measured
    }

    /// Rests that end at once.
    fn dozes(&mut self) -> Result<f64, Box<dyn Error>> {
        // So many short ones that the next is expected to be short, too.
        for _ in 0..200 {
            let _ = self.cpu.enter_idle();
            self.cpu.exit_idle();
        }
        let mut slept = 0;
        let each = self.each(|cpu| {
            slept += u32::from(matches!(cpu.enter_idle(), IdleUntil::Sleep { .. }));
            cpu.exit_idle();
        });
        // One in a thousand comes when a tick ends, and goes on as a sleep.
        if slept > STEPS / 100 {
            return Err(format!("{slept} of {STEPS} rests were no dozes").into());
        }
        Ok(each)
    }

    /// Long rests, of which only the ends are timed; `rest` takes as long.
    fn walks(&mut self, rest: fn()) -> Result<f64, Box<dyn Error>> {
        let clock = each(STEPS, || _ = black_box(Instant::now()));
        let mut nanos = Vec::with_capacity(WALKS);
        let mut rests = 0;
        while nanos.len() < WALKS {
            rests += 1;
            if rests > 3 * WALKS {
                return Err("the lane dozes where it should sleep".into());
            }
            let start = Instant::now();
            let idle = self.cpu.enter_idle();
            let down = start.elapsed();
            rest();
            let start = Instant::now();
            self.cpu.exit_idle();
            let up = start.elapsed();
            let _ = self.cpu.turn();
            if matches!(idle, IdleUntil::Sleep { .. }) {
                nanos.push((down + up).as_nanos() as f64 - 2.0 * clock);
            }
        }
        Ok(Summary::of(&nanos).expect("there are some").median)
    }
}

fn sleeps() {
    thread::sleep(LONG_REST);
}

fn computes() {
    let start = Instant::now();
    while start.elapsed() < LONG_REST {
        std::hint::spin_loop();
    }
}

/// What the system takes to set a timer just after a sleep, as near as a lane sets that of its sentinel.
fn timer_sets() -> Result<f64, Box<dyn Error>> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let clock = each(STEPS, || _ = black_box(Instant::now()));
    let mut nanos = Vec::with_capacity(WALKS);
    let (never, soon) = (Timespec::default(), Timespec { tv_sec: 0, tv_nsec: 2_000_000 });
    for _ in 0..WALKS {
        sleeps();
        let start = Instant::now();
        timerfd_settime(
            &timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: never, it_value: soon },
        )?;
        nanos.push(start.elapsed().as_nanos() as f64 - clock);
    }
    Ok(Summary::of(&nanos).expect("there are some").median)
}

#[derive(Serialize)]
struct Line {
    name: &'static str,
    ns: Summary,
}

#[derive(Serialize)]
struct Report {
    machine: Host,
    rounds: u32,
    rows: Vec<Line>,
}

fn measure(rounds: u32) -> Result<Report, Box<dyn Error>> {
    let mut lane = Lane::claim()?;
    let mut found = vec![Vec::new(); ROWS.len()];
    for round in 1..=rounds {
        eprintln!("lane: round {round} of {rounds}");
        for ((_, row), found) in ROWS.iter().zip(&mut found) {
            found.push(row(&mut lane)?);
        }
    }
    let rows = ROWS.iter().zip(&found);
    let rows =
        rows.map(|((name, _), found)| Line { name, ns: Summary::of(found).expect("a round at least") });
    Ok(Report { machine: Host::here(), rounds, rows: rows.collect() })
}

fn show(report: &Report) {
    let Host { cpu, cores, kernel, commit, rustc } = &report.machine;
    println!("machine   {cpu}, {cores} cores, Linux {kernel}");
    println!("commit    {}; {rustc}", commit.as_deref().unwrap_or("unknown"));
    println!("cells     ns: median, lowest, highest of {} rounds\n", report.rounds);
    for Line { name, ns } in &report.rows {
        println!("  {name:32} {:8.1} {:8.1} {:8.1}", ns.median, ns.min, ns.max);
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let report = match measure(args.rounds) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("lane: {error}");
            return ExitCode::from(2);
        }
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report).expect("it is numbers and text"));
    } else {
        show(&report);
    }
    ExitCode::SUCCESS
}
