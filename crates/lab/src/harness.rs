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
        sum += switches(&status);
    }
    Ok(sum)
}

/// Those that a thread made by itself, by its `status` in /proc.
fn switches(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::{LaneHarness, LaneMode, stay_on, switches, voluntary_switches};
    use crate::cpus::{allowed_cpus, two_cpus};
    use crate::plan::TrialContext;
    use crate::sync::StopFlag;
    use quietcore_live::{CpuId, Machine};
    use quietcore_testing::left_out;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    /// Goal: a thread's sleeps are counted, not when it was pushed off its CPU, and of all threads that are
    /// asked for. Method: a `status` with both counts; two threads that sleep three times each.
    #[test]
    fn sleeps_of_threads_are_counted() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t417\nnonvoluntary_ctxt_switches:\t23\n";
        assert_eq!((switches(status), switches("Name:\ta\n")), (417, 0));
        assert_eq!(voluntary_switches(|_| false).expect("it can be read"), 0);
        let (say, slept) = channel();
        let (end, ends) = channel::<()>();
        let sleeper = thread::spawn(move || {
            (0..3).for_each(|_| thread::sleep(Duration::from_millis(1)));
            let _ = say.send(());
            let _ = ends.recv();
        });
        (0..3).for_each(|_| thread::sleep(Duration::from_millis(1)));
        slept.recv().expect("it slept");
        let all = voluntary_switches(|_| true).expect("it can be read");
        let pid = format!("Pid:\t{}\n", rustix::thread::gettid().as_raw_nonzero());
        let ours = voluntary_switches(|status| status.contains(&pid)).expect("it can be read");
        drop(end);
        sleeper.join().expect("it only slept");
        assert!(ours >= 3 && all >= ours + 3, "{ours} of {all}");
    }

    /// Goal: a lane runs what it is given on its CPU, a CPU that is not there is refused by its number.
    /// Method: two lanes; a CPU that no machine has.
    #[test]
    fn a_lane_is_on_its_cpu() {
        let allowed = allowed_cpus().expect("it can be read");
        let cpus = match two_cpus(None, &allowed) {
            Ok(cpus) => cpus,
            Err(error) => return left_out("a_lane_is_on_its_cpu", error),
        };
        let start = |cpus: [CpuId; 2]| {
            let context = TrialContext::new(Duration::from_millis(1), cpus, StopFlag::default());
            let lanes = [(cpus[0], LaneMode::Parks), (cpus[1], LaneMode::Spins)];
            LaneHarness::start(Machine::builder(), &context, &lanes)
        };
        let harness = start(cpus).expect("two CPUs");
        for cpu in cpus {
            let (say, heard) = channel();
            let act = move || say.send(rustix::thread::sched_getcpu()).expect("the test listens");
            harness.on_lane(cpu, act).expect("the lane turns");
            assert_eq!(heard.recv().expect("it ran"), cpu.index());
        }
        drop(harness);
        let absent = CpuId::new(1_000).expect("a number");
        assert!(stay_on(absent).is_err());
    }
}
