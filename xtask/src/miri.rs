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
    /// For the command line.
    name: &'static str,
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
        name: "wheel",
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
        name: "bases",
        what: "bases, their arena and their locks",
        targets: &["-p", "quietcore-core", "--lib"],
        flags: &[],
        // Those whose timers are reached by address, by threads, or freed; any other takes as long there.
        names: &[
            "base::arena::",
            "base::timer::tests::",
            "base::tests::threads::",
            "base::tests::end::",
            "base::tests::many::",
        ],
        left_out: &[],
    },
    Subset {
        name: "words",
        what: "words of threads, in several orders",
        targets: &["-p", "quietcore-live", "--lib"],
        flags: &[OF_MACHINES, SEEDS],
        names: &["words::"],
        left_out: &WITHOUT_CALLS,
    },
    Subset {
        name: "timers",
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

pub(crate) fn command(name: Option<&str>) -> ExitCode {
    exit_code("miri", check(name))
}

/// Runs every subset and then the canary, or the subset of this name alone.
///
/// # Errors
/// When a test fails, the interpreter reports something, or it does not report the canary.
pub(crate) fn check(name: Option<&str>) -> Result<(), Failure> {
    if let Some(obstacle) = is_missing() {
        return Err(Failure::new(obstacle, "then run it again"));
    }
    let workspace = Workspace::open()?;
    let wanted = |subset: &&Subset| name.is_none_or(|name| name == subset.name);
    if !SUBSETS.iter().any(|subset| wanted(&subset)) {
        let names = SUBSETS.map(|subset| subset.name).join(", ");
        return Err(Failure::new("there is no such part", format!("name one of {names}")));
    }
    for subset in SUBSETS.iter().filter(wanted) {
        let begin = Instant::now();
        println!("miri: {}: {}", subset.name, subset.what);
        for (name, why) in subset.left_out {
            println!("miri: left out: {name}: {why}");
        }
        run(
            &mut subset.command(&workspace),
            "the report names lines; docs/design/STYLE.md has the rules of unsafe",
        )?;
        println!("miri: {}: {:.0} s", subset.name, begin.elapsed().as_secs_f64());
    }
    if name.is_some() { Ok(()) } else { check_canary(&workspace) }
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
        // One test at a time: there is one clock for all, and by the steps of others a lane would look stuck.
        command.args(self.targets).args(["--", "--test-threads=1"]).args(self.names);
        for (name, _) in self.left_out {
            command.args(["--skip", name]);
        }
        command.env("MIRIFLAGS", [&[FLAGS], self.flags].concat().join(" "));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Goal: a name in the list that no test has any more is noticed: the interpreter would run nothing and
    /// pass. Method: the last part of each name that is one test's, and the file of each module.
    #[test]
    fn every_name_is_there() {
        for subset in &SUBSETS {
            let folder = if subset.targets.contains(&"--test") { "tests" } else { "src" };
            let package = subset.targets[1].trim_start_matches("quietcore-");
            let root = crate::workspace::root().join(format!("crates/{package}/{folder}"));
            let names = subset.names.iter().chain(subset.left_out.iter().map(|(name, _)| name));
            for name in names {
                let last = name.trim_end_matches("::").rsplit("::").next().unwrap_or_default();
                assert!(is_there(&root, last), "{}: {name}", subset.name);
            }
        }
    }

    /// A file or folder of that name, or a function whose name begins so.
    fn is_there(folder: &std::path::Path, name: &str) -> bool {
        fs::read_dir(folder).expect("a folder of sources").any(|entry| {
            let path = entry.expect("it can be listed").path();
            let is_module = path.file_stem().is_some_and(|stem| stem == name);
            let is_below = path.is_dir() && is_there(&path, name);
            let has = |text: String| {
                [format!("fn {name}"), format!("mod {name} "), format!("!({name},")]
                    .iter()
                    .any(|words| text.contains(words))
            };
            is_module || is_below || (path.is_file() && fs::read_to_string(&path).is_ok_and(has))
        })
    }

    /// Goal: what is left out is left out, and each subset has the flags of all. Method: a command.
    #[test]
    fn what_is_left_out_is_skipped() {
        let workspace = Workspace::open().expect("a workspace");
        for subset in &SUBSETS {
            let command = subset.command(&workspace);
            let typed = shown(&command);
            assert!(
                subset.left_out.iter().all(|(name, _)| typed.contains(&format!("--skip {name}"))),
                "{typed}"
            );
            let mut flags = command.get_envs().filter(|(key, _)| *key == "MIRIFLAGS");
            let flags = flags.next().and_then(|(_, value)| value).map(|value| value.to_string_lossy());
            assert!(flags.is_some_and(|flags| flags.starts_with(FLAGS)), "{typed}");
        }
    }
}
