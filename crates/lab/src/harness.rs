//! A machine with two lanes on two CPUs, for one variant of an experiment.

use crate::error::LabError;
use crate::plan::TrialContext;
use quietcore_live::{Cpu, CpuId, Machine, MachineBuilder, Nanos, Precision, TimerHandle, TimerOptions};
use std::fs;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Shuts the machine down and waits for its lanes when it is dropped.
pub(crate) struct LaneHarness {
    pub(crate) machine: &'static Machine,
    lanes: Vec<thread::JoinHandle<()>>,
}

/// What a lane does besides taking turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneMode {
    /// It waits when nothing is due.
    Parks,
    /// It never waits: a CPU with other work.
    Spins,
}

/// What a lane's thread does, until the machine was shut down.
pub(crate) type LaneBody = Box<dyn FnOnce(&'static Machine, Cpu) + Send>;

impl LaneHarness {
    /// Starts a machine with `builder`'s settings and a lane for each of `lanes`.
    pub(crate) fn start(
        builder: MachineBuilder,
        context: &TrialContext,
        lanes: &[(CpuId, LaneMode)],
    ) -> Result<Self, LabError> {
        let lanes = lanes.iter().map(|&(cpu, mode)| (cpu, mode.play()));
        Self::start_with(builder, context, lanes.collect())
    }

    /// The same with lanes that do something of their own.
    pub(crate) fn start_with(
        builder: MachineBuilder,
        context: &TrialContext,
        lanes: Vec<(CpuId, LaneBody)>,
    ) -> Result<Self, LabError> {
        let builder = builder.lanes(context.lanes());
        let machine = builder.start()?;
        let mut harness = Self { machine, lanes: Vec::new() };
        let (ready, started) = channel();
        let count = lanes.len();
        for (cpu, play) in lanes {
            let ready = ready.clone();
            harness.lanes.push(thread::spawn(move || lane(machine, cpu, play, &ready)));
        }
        drop(ready);
        for _ in 0..count {
            let said = started.recv().unwrap_or_else(|_| Err("a lane ended at once".to_owned()));
            said.map_err(LabError::Trial)?;
        }
        Ok(harness)
    }

    /// Runs `act` once on the lane of `cpu`, and returns when it has.
    pub(crate) fn on_lane(&self, cpu: CpuId, act: impl Fn() + Send + 'static) -> Result<(), LabError> {
        let (sender, done) = channel();
        let timer = self.machine.timer(tick().pinned(), move |_| {
            act();
            let _ = sender.send(());
        });
        timer.arm_on(cpu, self.machine.now())?;
        let long = Duration::from_secs(10);
        done.recv_timeout(long).map_err(|_| LabError::Trial(format!("the lane of CPU {cpu} does not turn")))
    }
}

impl Drop for LaneHarness {
    fn drop(&mut self) {
        self.machine.shutdown();
        for lane in self.lanes.drain(..) {
            // A lane that panicked has said so.
            let _ = lane.join();
        }
    }
}

/// What `sleep` uses, too.
pub(crate) fn tick() -> TimerOptions {
    TimerOptions::new().precision(Precision::Tick)
}

pub(crate) fn arm_now(machine: &Machine, timer: &TimerHandle) -> Result<bool, LabError> {
    Ok(timer.arm_at(Nanos(machine.now().0))?)
}

impl LaneMode {
    pub(crate) fn play(self) -> LaneBody {
        Box::new(move |machine, mut cpu| self.turns(machine, &mut cpu))
    }

    /// Until the machine is shut down.
    pub(crate) fn turns(self, machine: &Machine, cpu: &mut Cpu) {
        while machine.is_running() {
            if !cpu.turn().has_more && self == Self::Parks {
                cpu.park();
            }
        }
    }
}

pub(crate) fn spin(span: Duration) {
    let began = Instant::now();
    while began.elapsed() < span {
        std::hint::spin_loop();
    }
}

/// How often threads of this process went to sleep: those whose `status` in /proc `counts`.
pub(crate) fn voluntary_switches(counts: impl Fn(&str) -> bool) -> Result<u64, LabError> {
    let mut sum = 0;
    for entry in fs::read_dir("/proc/self/task").map_err(LabError::Threads)? {
        // A thread that has ended meanwhile is not woken up any more.
        let path = entry.map_err(LabError::Threads)?.path().join("status");
        let Some(status) = fs::read_to_string(path).ok().filter(|status| counts(status)) else { continue };
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        sum += line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

/// The calling thread runs on `cpu` and nowhere else from now on.
pub(crate) fn stay_on(cpu: CpuId) -> Result<(), String> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu.index());
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| error.to_string())
}

fn lane(machine: &'static Machine, number: CpuId, play: LaneBody, ready: &Sender<Result<(), String>>) {
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
