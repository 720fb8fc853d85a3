//! `quietcore keep-awake`: housekeeping CPUs that stay in the kernel's timer hierarchy, so that isolated CPUs
//! run no timers of others. Until Ctrl-C; it changes no setting of the kernel.

mod sync;
mod turn;

use crate::args::KeepAwakeArgs;
use crate::error::CliError;
use crate::host;
use crate::outcome::CommandOutcome;
use crate::output::{self, say};
use crate::signals::SignalFlag;
use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_explain::{KeepAwakePlan, plan_keep_awake};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use sync::{AwakeCpus, SleeperTotals};

/// How often it is looked whether it is time to end.
const LOOK: Duration = Duration::from_millis(50);
/// So long isolated CPUs are watched at the start.
const WATCHED: Duration = Duration::from_millis(200);

/// What was kept awake: the JSON of `quietcore keep-awake --json`, schema 1.
#[derive(Debug, Serialize)]
struct KeptAwake {
    schema: u32,
    isolated: String,
    /// Isolated CPUs that were busy at the start: they may run others' timers until they are idle once.
    busy_before: String,
    tick_ns: u64,
    duration_ns: u64,
    cpus: Vec<KeptCpu>,
}

#[derive(Debug, Serialize)]
struct KeptCpu {
    cpu: u16,
    /// The group that it serves; groups without a housekeeping CPU are served by all.
    group: String,
    wakeups: u64,
    /// How often a sleeper stayed awake for up to a tick, as its partner had armed its timer in the same.
    turns_put_right: u64,
    cpu_ns: u64,
}

pub(crate) fn run(args: &KeepAwakeArgs) -> Result<CommandOutcome, CliError> {
    let facts = host::facts();
    let plan = plan_keep_awake(&facts, args.isolated.as_ref(), args.force)
        .map_err(|refusal| CliError::Usage(refusal.to_string()))?;
    let interrupt = SignalFlag::install()?;
    let busy = busy_of(&plan.isolated);
    let failed = |error: std::io::Error| CliError::Live(format!("cannot keep a CPU awake: {error}"));
    let (tick, began) = (sync::tick(), Instant::now());
    let awake = AwakeCpus::start(plan.cpus.iter().map(|(cpu, _)| *cpu)).map_err(failed)?;
    say(&announcement(&plan, &busy));
    let is_over = || interrupt.arrived() || args.span.is_some_and(|span| began.elapsed() >= span);
    while !is_over() && !awake.has_failed() {
        std::thread::sleep(LOOK);
    }
    let totals = awake.end().map_err(failed)?;
    let group = |cpu: CpuId| plan.cpus.iter().find(|(of, _)| *of == cpu).map(|(_, group)| group.to_string());
    let cpus = totals.into_iter().map(|SleeperTotals { cpu, wakeups, turns_put_right, cpu_nanos }| KeptCpu {
        cpu: cpu.index() as u16,
        group: group(cpu).unwrap_or_default(),
        wakeups,
        turns_put_right,
        cpu_ns: cpu_nanos,
    });
    let kept = KeptAwake {
        schema: 1,
        isolated: plan.isolated.to_string(),
        busy_before: busy.to_string(),
        tick_ns: tick.as_nanos() as u64,
        duration_ns: began.elapsed().as_nanos() as u64,
        cpus: cpus.collect(),
    };
    if args.json {
        output::print_json(&kept)?;
    } else {
        output::print(&text(&kept))?;
    }
    // It is there to be ended so.
    Ok(CommandOutcome::Fine)
}

fn announcement(plan: &KeepAwakePlan, busy: &CpuSet) -> String {
    let awake: CpuSet = plan.cpus.iter().map(|(cpu, _)| *cpu).collect();
    let mut text = format!(
        "CPUs {awake} stay awake, so that isolated CPUs {} run no timers of others; Ctrl-C ends it",
        plan.isolated
    );
    if !busy.is_empty() {
        let _ = write!(
            text,
            "\nisolated CPUs {busy} are busy already: one that is awake keeps running others' timers until it is \
             idle once. Stop what runs there for a moment, or begin this before it"
        );
    }
    text
}

fn text(kept: &KeptAwake) -> String {
    let seconds = kept.duration_ns as f64 / 1e9;
    let mut text = String::new();
    for cpu in &kept.cpus {
        let _ = writeln!(
            text,
            "CPU {} (group {}): awake for {seconds:.1} s with {:.0} wake-ups per second and {:.2} % of the CPU",
            cpu.cpu,
            cpu.group,
            cpu.wakeups as f64 / seconds,
            100.0 * cpu.cpu_ns as f64 / kept.duration_ns as f64
        );
    }
    text
}

/// Those of `cpus` that are busy for most of a while.
fn busy_of(cpus: &CpuSet) -> CpuSet {
    let before = idle_times();
    std::thread::sleep(WATCHED);
    let after = idle_times();
    let was_idle = |cpu: &CpuId| {
        let of = |times: &[(CpuId, Nanos)]| times.iter().find(|(of, _)| of == cpu).map(|(_, idle)| *idle);
        of(&before)
            .zip(of(&after))
            .is_none_or(|(before, after)| after.since(before) >= Nanos(WATCHED.as_nanos() as u64 / 2))
    };
    cpus.iter().filter(|cpu| !was_idle(cpu)).collect()
}

/// How long each CPU was idle, to a hundredth of a second, as `/proc/stat` says.
fn idle_times() -> Vec<(CpuId, Nanos)> {
    let text = std::fs::read_to_string(Path::new("/proc/stat")).unwrap_or_default();
    text.lines().filter_map(idle_time).collect()
}

/// `cpu3 user nice system idle iowait ...`, in hundredths of seconds.
fn idle_time(line: &str) -> Option<(CpuId, Nanos)> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let cpu = CpuId::new(words.next()?.parse().ok()?).ok()?;
    let idle: u64 = words.nth(3)?.parse().ok()?;
    let waiting: u64 = words.next()?.parse().ok()?;
    Some((cpu, Nanos((idle + waiting) * 10_000_000)))
}

#[cfg(test)]
mod tests {
    use super::{KeptAwake, KeptCpu, announcement, idle_time, text};
    use quietcore_explain::{Facts, plan_keep_awake};

    /// Goal: the idle times of CPUs are read, and other lines are not. Method: lines of a machine.
    #[test]
    fn idle_times_are_read() {
        let time = |line| idle_time(line).map(|(cpu, nanos)| (cpu.index(), nanos.0));
        assert_eq!(time("cpu3 100 2 30 4000 50 0 0 0 0 0"), Some((3, 40_500_000_000)));
        for other in ["cpu  100 2 30 4000 50 0 0 0 0 0", "intr 5", "cpu3 1 2", "cpu9999999 1 2 3 4 5"] {
            assert_eq!(time(other), None, "{other}");
        }
    }

    /// Goal: a person is told what is kept awake, what to do first, and what it cost.
    #[test]
    fn a_person_is_told_what_it_does() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../explain/tests/hosts/telco-6.12");
        let plan =
            plan_keep_awake(&Facts::read(root.as_ref()), Some(&"1-7,9-15".parse().expect("a list")), true);
        let plan = plan.expect("a plan");
        let said = announcement(&plan, &"".parse().expect("a list"));
        assert_eq!(
            said,
            "CPUs 0,8 stay awake, so that isolated CPUs 1-7,9-15 run no timers of others; Ctrl-C ends it"
        );
        let said = announcement(&plan, &"3".parse().expect("a list"));
        assert!(said.contains("\nisolated CPUs 3 are busy already: "), "{said}");
        let cpu =
            KeptCpu { cpu: 8, group: "8-15".into(), wakeups: 500, turns_put_right: 1, cpu_ns: 20_000_000 };
        let kept = KeptAwake {
            schema: 1,
            isolated: "1-7,9-15".into(),
            busy_before: String::new(),
            tick_ns: 4_000_000,
            duration_ns: 2_000_000_000,
            cpus: vec![cpu],
        };
        let expected =
            "CPU 8 (group 8-15): awake for 2.0 s with 250 wake-ups per second and 1.00 % of the CPU\n";
        assert_eq!(text(&kept), expected);
    }
}
