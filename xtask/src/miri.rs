//! `cargo xtask miri`: tests under an interpreter that reports undefined behaviour, races and leaks.
//!
//! Runs a named subset: whole suites are hours there. [`SUBSETS`] says which tests, which are left out, and
//! why. The clock is the interpreter's own, which goes on with every step and jumps when all threads wait,
//! and the host's files are out of reach, so a run depends on its seed alone. What the runtime asks of the
//! kernel and the interpreter lacks has a stand-in beside the call (`cfg(miri)` in `crates/live`).
//!
//! Invariant: a run whose canary is not reported fails: a check that cannot fail proves nothing.

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::nightly::{self, CANARY, Component};
use crate::workspace::{Failure, Workspace, exit_code, run, shown};

/// How the interpreter names a race.
const RACE: &str = "Undefined Behavior: Data race detected";

/// For every subset: two CPUs, and what reaches for the host is refused without a word.
const FLAGS: &str = "-Zmiri-isolation-error=hide -Zmiri-num-cpus=2";

/// For tests with machines. These live as long as the process, on purpose, and so do their threads' parts.
/// The bindings of the futex make a pointer of a number, which no rule of provenance follows.
const OF_MACHINES: &str = "-Zmiri-ignore-leaks -Zmiri-permissive-provenance";

/// For words with a few threads: more orders of steps.
const SEEDS: &str = "-Zmiri-many-seeds=0..4";

/// Tests that are run together.
struct Subset {
    what: &'static str,
    /// Arguments of `cargo test`.
    targets: &'static [&'static str],
    /// Beside [`FLAGS`].
    flags: &'static [&'static str],
    /// Parts of names; none: all tests.
    names: &'static [&'static str],
    /// Parts of names that are not run, and why.
    left_out: &'static [(&'static str, &'static str)],
}

const SUBSETS: [Subset; 4] = [
    Subset {
        what: "the wheel and the exact queue, on nodes that are reached by address",
        targets: &["-p", "quietcore-wheel", "--test", "property"],
        flags: &[],
        // One shape of a wheel, and few timers: each case of the others is minutes.
        names: &[
            "random::two_by_four::intrusive",
            "exact::random_scripts_on_few_timers",
            "exact::bursts_come_sorted",
            "keys::",
            "hints::",
        ],
        left_out: &[],
    },
    Subset {
        what: "bases, their arena and their locks",
        targets: &["-p", "quietcore-core", "--lib"],
        flags: &[],
        names: &["base::"],
        left_out: &[],
    },
    Subset {
        what: "words of threads, in several orders",
        targets: &["-p", "quietcore-live", "--lib"],
        flags: &[OF_MACHINES, SEEDS],
        names: &["words::"],
        left_out: &WITHOUT_CALLS,
    },
    Subset {
        what: "timers, wakers and queues",
        targets: &["-p", "quietcore-live", "--lib"],
        flags: &[OF_MACHINES],
        names: &[
            "timer::ends::",
            "timer::tests::late_ends::",
            "timer::tests::many::the_last_arm_counts",
            "timer::tests::the_last_handle_cancels",
            "timer::tests::threads::cancel_sync_waits_for_the_run",
            "timer::tests::threads::a_task_waits_for_the_run",
            "timer::tests::threads::drops_meet_runs",
            "machine::tests::the_helper_wakes_what_is_due",
            "machine::tests::each_waker_is_counted",
            "virtual_time::tests::a_thread_that_waits_moves_time",
            "run_queue::",
            "task::poll::",
            "time::delay_queue::",
        ],
        left_out: &[],
    },
];

/// Tests of words that ask the kernel for what the interpreter lacks.
const WITHOUT_CALLS: [(&str, &str); 3] = [
    ("words::present_cpu::", "no thread moves between CPUs there"),
    ("words::park::tests::a_descriptor_is_readable", "there is no poll(2)"),
    ("words::park::tests::a_late_write_is_read", "there is no poll(2)"),
];

/// Why it cannot be run here.
pub(crate) fn is_missing() -> Option<&'static str> {
    nightly::lacks(Component::Miri)
}

pub(crate) fn command() -> ExitCode {
    exit_code("miri", check())
}

/// Runs every subset, and then the canary.
///
/// # Errors
/// When a test fails, the interpreter reports something, or it does not report the canary.
pub(crate) fn check() -> Result<(), Failure> {
    if let Some(obstacle) = is_missing() {
        return Err(Failure::new(obstacle, "then run it again"));
    }
    let workspace = Workspace::open()?;
    for subset in &SUBSETS {
        let begin = Instant::now();
        println!("miri: {}", subset.what);
        for (name, why) in subset.left_out {
            println!("miri: left out: {name}: {why}");
        }
        run(
            &mut subset.command(&workspace),
            "the report names lines; docs/design/STYLE.md has the rules of unsafe",
        )?;
        println!("miri: {}: {:.0} s", subset.what, begin.elapsed().as_secs_f64());
    }
    check_canary(&workspace)
}

/// The race that is made on purpose must be seen, or all that was not seen says nothing.
fn check_canary(workspace: &Workspace) -> Result<(), Failure> {
    let mut command = nightly::cargo(workspace, &["miri", "test", "-q", "--locked", "-p", "quietcore-live"]);
    command.args(["--lib", "--", "--exact", CANARY.0]);
    // The interpreter has an environment of its own.
    command.env("MIRIFLAGS", format!("{FLAGS} {OF_MACHINES} -Zmiri-env-set={}=1", CANARY.1));
    let output = command.stdout(Stdio::null()).output();
    let failed = |error| Failure::new(format!("`{}`: {error}", shown(&command)), "run it by hand");
    let said = output.map_err(failed)?.stderr;
    if !String::from_utf8_lossy(&said).contains(RACE) {
        let what = "the canary was not reported";
        return Err(Failure::new(what, "the interpreter sees no race: update the toolchain"));
    }
    println!("miri: the canary was reported, as it must be");
    Ok(())
}

impl Subset {
    fn command(&self, workspace: &Workspace) -> Command {
        let mut command = nightly::cargo(workspace, &["miri", "test", "--locked"]);
        command.args(self.targets).arg("--").args(self.names);
        for (name, _) in self.left_out {
            command.args(["--skip", name]);
        }
        command.env("MIRIFLAGS", [&[FLAGS], self.flags].concat().join(" "));
        command
    }
}
