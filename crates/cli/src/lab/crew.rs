//! A machine with two lanes on two CPUs, for one variant of an experiment.

use super::plan::{Bench, cannot_start};
use crate::error::CliError;
use quietcore_live::{Builder, Cpu, CpuId, Machine, Nanos, Precision, TimerHandle, TimerOptions};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// Shuts the machine down and waits for its lanes when it is dropped.
pub(super) struct Crew {
    pub(super) machine: &'static Machine,
    lanes: Vec<thread::JoinHandle<()>>,
}

/// What a lane does besides taking turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It waits when nothing is due.
    Parks,
    /// It never waits: a CPU with other work.
    Spins,
}

/// What a lane's thread does, until the machine was shut down.
pub(super) type Play = Box<dyn FnOnce(&'static Machine, Cpu) + Send>;

impl Crew {
    /// Starts a machine with `builder`'s settings and a lane for each of `lanes`.
    pub(super) fn start(
        builder: Builder,
        bench: &Bench,
        lanes: &[(CpuId, Manner)],
    ) -> Result<Self, CliError> {
        let lanes = lanes.iter().map(|&(cpu, manner)| (cpu, manner.play()));
        Self::start_with(builder, bench, lanes.collect())
    }

    /// The same with lanes that do something of their own.
    pub(super) fn start_with(
        builder: Builder,
        bench: &Bench,
        lanes: Vec<(CpuId, Play)>,
    ) -> Result<Self, CliError> {
        let builder = builder.lanes(bench.lanes());
        let machine = builder.start().map_err(cannot_start)?;
        let mut crew = Self { machine, lanes: Vec::new() };
        let (ready, started) = channel();
        let count = lanes.len();
        for (cpu, play) in lanes {
            let ready = ready.clone();
            crew.lanes.push(thread::spawn(move || lane(machine, cpu, play, &ready)));
        }
        drop(ready);
        for _ in 0..count {
            let said = started.recv().unwrap_or_else(|_| Err("a lane ended at once".to_owned()));
            said.map_err(CliError::Live)?;
        }
        Ok(crew)
    }

    /// Runs `act` once on the lane of `cpu`, and returns when it has.
    pub(super) fn on_lane(&self, cpu: CpuId, act: impl Fn() + Send + 'static) -> Result<(), CliError> {
        let (sender, done) = channel();
        let timer = self.machine.timer(tick().pinned(), move |_| {
            act();
            let _ = sender.send(());
        });
        armed(timer.arm_on(cpu, self.machine.now()))?;
        let long = Duration::from_secs(10);
        done.recv_timeout(long).map_err(|_| CliError::Live(format!("the lane of CPU {cpu} does not turn")))
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.machine.shutdown();
        for lane in self.lanes.drain(..) {
            // A lane that panicked has said so.
            let _ = lane.join();
        }
    }
}

/// What `sleep` uses, too.
pub(super) fn tick() -> TimerOptions {
    TimerOptions::new().precision(Precision::Tick)
}

/// An arm on a running machine fails only if a lane is missing.
pub(super) fn armed<T>(result: Result<T, quietcore_live::ArmError>) -> Result<T, CliError> {
    result.map_err(|error| CliError::Live(format!("cannot arm a timer: {error}")))
}

/// Starts `timer` now.
pub(super) fn arm_now(machine: &Machine, timer: &TimerHandle) -> Result<bool, CliError> {
    armed(timer.arm_at(Nanos(machine.now().0)))
}

impl Manner {
    pub(super) fn play(self) -> Play {
        Box::new(move |machine, mut cpu| self.turns(machine, &mut cpu))
    }

    /// Until the machine is shut down.
    pub(super) fn turns(self, machine: &Machine, cpu: &mut Cpu) {
        while machine.is_running() {
            if !cpu.turn().has_more && self == Self::Parks {
                cpu.park();
            }
        }
    }
}

/// The calling thread runs on `cpu` and nowhere else from now on.
pub(super) fn stay_on(cpu: CpuId) -> Result<(), String> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu.index());
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| error.to_string())
}

fn lane(machine: &'static Machine, number: CpuId, play: Play, ready: &Sender<Result<(), String>>) {
    let claimed = Cpu::claim(machine, number).map_err(|error| error.to_string());
    match stay_on(number).and(claimed) {
        Ok(cpu) => {
            let _ = ready.send(Ok(()));
            play(machine, cpu);
        }
        Err(error) => {
            let _ = ready.send(Err(format!("cannot make a lane of CPU {number}: {error}")));
        }
    }
}
