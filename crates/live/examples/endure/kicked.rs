//! `endure kicked`: what the machine counts as kicks of an isolated lane that is parked, held against the
//! kernel's own count of the wake-ups of its thread.
//!
//! A tracing instance of its own records `sched_wakeup` of that one thread. Meanwhile exact timers are armed
//! there from elsewhere, for now, each when the thread sleeps again: so each arm is a kick, each kick ends a
//! sleep, and nothing else does. (A timer that was due later would end one more: by time. Two arms during
//! one sleep would be one wake-up.) Needs root and tracefs.

use crate::flips::lane_threads;
use crate::report::Report;
use crate::{LaneArguments, Outcome};
use core::time::Duration;
use quietcore_live::{CpuId, CpuSet, LaneThreads, Machine, Precision, TimerOptions};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

/// `endure kicked`
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many timers are armed.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    #[command(flatten)]
    lanes: LaneArguments,
}

const TRACING: &str = "/sys/kernel/tracing/instances";
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_micros(200);

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Some(lane) = arguments.lanes.set()?.iter().last() else {
        return Ok(Report::skipped("kicked", "needs a lane"));
    };
    let machine = arguments.lanes.builder()?.lane_threads(LaneThreads::new()).start()?;
    let _ = machine.set_isolated(&[lane].into_iter().collect::<CpuSet>())?;
    let threads = lane_threads()?;
    let found = threads.iter().find(|(_, cpu)| **cpu == lane).map(|(thread, _)| *thread);
    let thread = found.ok_or("the lane has no thread")?;
    await_sleep(thread)?;
    let instance = match Instance::new(thread) {
        Ok(instance) => instance,
        Err(error) => {
            machine.shutdown();
            return Ok(Report::skipped("kicked", format!("no tracing instance: {error}")));
        }
    };
    let before = kicks(machine, lane);
    let ran = arm(machine, lane, thread, arguments.count)?;
    let kicks = kicks(machine, lane) - before;
    let wake_ups = instance.wake_ups()?;
    drop(instance);
    machine.shutdown();
    let mut report = Report::new("kicked");
    report.figure("lane", lane.to_string());
    report.figure("arms", arguments.count);
    report.at_least("ran", ran, arguments.count);
    report.figure("wake_ups", wake_ups);
    report.at_least("kicks", kicks, wake_ups);
    report.at_most("difference", kicks.abs_diff(wake_ups), 0);
    Ok(report)
}

/// Arms a timer again and again, each time when the thread sleeps; says how many ran.
fn arm(machine: &'static Machine, lane: CpuId, thread: i32, count: u64) -> Result<u64, Box<dyn Error>> {
    let (sender, receiver) = channel();
    let options = TimerOptions::new().precision(Precision::Exact).pinned();
    // No thread listens any more when one was too late.
    let timer = machine.timer(options, move |_| _ = sender.send(()));
    for ran in 0..count {
        let _ = timer.arm_on(lane, machine.now())?;
        if receiver.recv_timeout(PATIENCE).is_err() {
            return Ok(ran);
        }
        await_sleep(thread)?;
    }
    Ok(count)
}

fn kicks(machine: &'static Machine, lane: CpuId) -> u64 {
    machine.metrics().cpus.iter().filter(|cpu| cpu.cpu == lane).map(|cpu| cpu.kicks).sum()
}

/// Until the kernel says that the thread sleeps in a call that waits (proc_pid_stat(5), the third field), and
/// still does a little later.
fn await_sleep(thread: i32) -> Result<(), Box<dyn Error>> {
    let path = format!("/proc/self/task/{thread}/stat");
    let end = Instant::now() + PATIENCE;
    let mut asleep = 0;
    while asleep < 2 {
        if Instant::now() > end {
            return Err("the lane does not go to sleep".into());
        }
        thread::sleep(PAUSE);
        let text = fs::read_to_string(&path)?;
        let sleeps = text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
        asleep = if sleeps { asleep + 1 } else { 0 };
    }
    Ok(())
}

/// A tracing instance, until it is dropped.
struct Instance(PathBuf);

impl Instance {
    fn new(thread: i32) -> std::io::Result<Self> {
        let path = Path::new(TRACING).join(format!("endure-{}", std::process::id()));
        fs::create_dir(&path)?;
        let instance = Self(path);
        let event = instance.0.join("events/sched/sched_wakeup");
        fs::write(event.join("filter"), format!("pid == {thread}"))?;
        fs::write(event.join("enable"), "1")?;
        Ok(instance)
    }

    fn wake_ups(&self) -> std::io::Result<u64> {
        fs::write(self.0.join("tracing_on"), "0")?;
        let text = fs::read_to_string(self.0.join("trace"))?;
        Ok(text.lines().filter(|line| line.contains(" sched_wakeup: ")).count() as u64)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            eprintln!("endure: cannot remove {}: {error}", self.0.display());
        }
    }
}
