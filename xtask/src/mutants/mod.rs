//! `cargo xtask mutants`: breaks one rule at a time in a copy of the tree, and asks the tests.
//!
//! Decides what counts as noticed: the mutant compiles, and its killer fails (or hangs: a wheel that
//! loses a timer can search for ever). First the unchanged copy has to pass, so that a failure is the
//! mutant's. The working tree is never touched; the copy is in `target/mutants`, and shares what it builds of
//! other people's crates with the tree. Its own crates have another version: Cargo names what it builds after
//! a package's version and its path inside the workspace, so a mutant could pass for the tree's crate.

mod actions;
mod adapters;
mod around;
mod bases;
mod binary;
mod boundaries;
mod c_abi;
mod cake;
mod causes;
mod choice;
mod controlled;
mod drawn;
mod drawn_core;
mod ends;
mod figures;
mod files;
mod filters;
mod futures;
mod glue;
mod hierarchy;
mod killer;
mod kinds;
mod lanes;
mod list;
mod machine;
mod packets;
mod queues;
mod realtime;
mod schedulers;
mod simulated;
mod stopped;
mod streams;
mod tables;
mod turns;
mod verbs;
mod waiting;
mod watched;
mod words;

use crate::workspace::{Failure, Workspace, exit_code, run, shown, status};
use choice::Chooser;
pub(crate) use choice::{MutantChoice, ROTATION};
use killer::{Killer, Mutant, Suite};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A mutant may take this many times as long as the unchanged tree before it counts as hanging.
const PATIENCE: u32 = 5;
/// And at least so long, for a machine that is busy at times.
const PATIENCE_MIN: Duration = Duration::from_secs(30);
/// How long a suite of the unchanged tree may take. How long it takes says what its mutants may take.
const PATIENCE_UNCHANGED: Duration = Duration::from_secs(20 * 60);

/// All mutants, by what they break.
const LISTS: &[(&str, &[Mutant])] = &[
    ("rules of the wheel", list::RULES),
    ("bugs of the kernel's hierarchy, each fix undone", hierarchy::KERNEL_BUGS),
    ("steps of the hierarchy", hierarchy::STEPS),
    ("rules of stalls, on the hierarchy and bases", hierarchy::STALLS),
    ("memory orderings of the hierarchy", hierarchy::ORDERINGS),
    ("rules of the machine", machine::RULES),
    ("rules and orderings of bases", bases::RULES),
    ("ends and marks", ends::ENDS),
    ("real-time tasks and softirqs", realtime::REALTIME),
    ("words that threads share", words::WORDS),
    ("rules of lanes, tasks and softirqs", lanes::LANES),
    ("what lanes do on real threads", around::AROUND),
    ("rules of run queues", queues::QUEUES),
    ("rules of lanes that wait or are stuck", waiting::WAITING),
    ("turns, tokens and refusals", turns::TURNS),
    ("what a world does around the core", glue::GLUE),
    ("what readers drew in the core", drawn_core::DRAWN_CORE),
    ("what readers drew in the runtime", drawn::DRAWN),
    ("what callers ask for", verbs::VERBS),
    ("threads that are stopped inside a lock", stopped::STOPPED_INSIDE),
    ("packet schedulers and their queues", packets::PACKETS),
    ("streams through a relay", streams::STREAMS),
    ("figures of explain", figures::EXPLAIN),
    ("slices of Perfetto traces", figures::SLICES),
    ("texts of doctor", figures::DOCTOR),
    ("units of tc, htb, hfsc, cbq and netem", schedulers::SCHEDULERS),
    ("queues with controlled delay", controlled::CONTROLLED_QUEUES),
    ("cake: shaper, tins, hosts and COBALT", cake::CAKE),
    ("tables of netem, bands and rounds", kinds::KINDS),
    ("which packets filters are for", filters::FILTERS),
    ("what filters do with packets", actions::ACTIONS),
    ("boundaries of what listens and of what runs as root", boundaries::BOUNDARIES),
    ("futures that wait for time", futures::FUTURES),
    ("timers for other projects", adapters::ADAPTERS),
    ("the interface for C", c_abi::C_ABI),
    ("simulator's figures", simulated::SIMULATOR),
    ("figures of whatif", simulated::WHATIF),
    ("figures and verdicts of the lab", simulated::LAB),
    ("files, hostile input and terminals", files::FILES),
    ("pages of the kernel and files of other tools", binary::BINARY),
    ("answers, sweeps and tables", tables::TABLES),
    ("what takes CPUs away, and why", causes::CAUSES),
    ("what is counted in the kernel", watched::WATCHED),
];

/// Runs the chosen mutants, each killer `times` times, and as often on the unchanged tree before.
pub(crate) fn command(choice: MutantChoice<'_>, times: u32) -> ExitCode {
    match check(choice, times) {
        Ok(survivors) if survivors > 0 => ExitCode::FAILURE,
        result => exit_code("mutants", result.map(drop)),
    }
}

/// Prints a line per mutant and killer; returns how many killers noticed nothing, or not each time, or could
/// not be asked because the mutant does not compile.
///
/// # Errors
/// When a mutant does not apply, or the unchanged tree does not pass each time.
pub(crate) fn check(choice: MutantChoice<'_>, times: u32) -> Result<usize, Failure> {
    let workspace = Workspace::open()?;
    let firsts: Vec<Suite> =
        LISTS.iter().flat_map(|(_, mutants)| *mutants).map(|mutant| mutant.killers[0].suite()).collect();
    let chooser = Chooser::new(choice, &workspace, &firsts);
    let numbered =
        LISTS.iter().copied().flat_map(|(title, mutants)| mutants.iter().map(move |it| (title, it)));
    let chosen: Vec<(&str, &Mutant)> = numbered
        .enumerate()
        .filter(|(index, (title, mutant))| chooser.takes(*index, title, mutant))
        .map(|(_, chosen)| chosen)
        .collect();
    if chosen.is_empty() {
        return Err(Failure::new("no mutant has such a name", "see the lists in xtask/src/mutants"));
    }
    let mut copy = Copy::make(&workspace, times)?;
    let killers: Vec<Killer> = chosen.iter().flat_map(|(_, mutant)| mutant.killers).copied().collect();
    let mut suites: Vec<Suite> = vec![];
    for suite in killers.iter().map(|killer| killer.suite()) {
        if !suites.contains(&suite) {
            suites.push(suite);
        }
    }
    for (place, suite) in suites.iter().enumerate() {
        copy.expect_pass(*suite, &killers)?;
        println!("unchanged, suite {} of {} passes: {suite:?}", place + 1, suites.len());
    }
    let (mut survivors, mut last) = (0, "");
    for (title, mutant) in &chosen {
        if last != *title {
            println!("{title}:");
            last = title;
        }
        survivors += copy.check(mutant)?;
    }
    println!("mutants: {} checked{}, {survivors} survived", chosen.len(), chooser.left_out());
    Ok(survivors)
}

/// How many there are.
pub(crate) fn count() -> usize {
    LISTS.iter().map(|(_, mutants)| mutants.len()).sum()
}

#[cfg(test)]
fn all() -> impl Iterator<Item = &'static Mutant> {
    LISTS.iter().copied().flat_map(|(_, mutants)| mutants)
}

/// A copy of the tree, to be broken.
struct Copy<'a> {
    workspace: &'a Workspace,
    root: PathBuf,
    patience: Duration,
    /// How often a killer is asked, about a mutant and about the unchanged tree.
    times: u32,
}

impl<'a> Copy<'a> {
    fn make(workspace: &'a Workspace, times: u32) -> Result<Self, Failure> {
        let folder = workspace.target.join("mutants");
        let copy = Self { workspace, root: folder.join("tree"), patience: PATIENCE_MIN, times };
        let failed = |error: std::io::Error| {
            Failure::new(format!("cannot copy the tree to {}: {error}", copy.root.display()), "free the disk")
        };
        if copy.root.exists() {
            fs::remove_dir_all(&copy.root).map_err(failed)?;
        }
        fs::create_dir_all(&copy.root).map_err(failed)?;
        let parts = [
            "Cargo.toml",
            "Cargo.lock",
            "clippy.toml",
            ".cargo",
            "crates",
            "recordings",
            "scenarios",
            "xtask",
        ];
        for part in parts {
            copy_all(&workspace.root.join(part), &copy.root.join(part)).map_err(failed)?;
        }
        for (file, renamed) in
            [("Cargo.toml", as_mutants as fn(&str) -> String), ("Cargo.lock", lock_as_mutants)]
        {
            let path = copy.root.join(file);
            let text = fs::read_to_string(&path).map_err(failed)?;
            fs::write(&path, renamed(&text)).map_err(failed)?;
        }
        Ok(copy)
    }

    fn program(&self, suite: Suite, arguments: &[&str]) -> Command {
        let mut command = self.workspace.cargo(arguments);
        // The tree's own places, one for each set of flags: changing flags builds everything again.
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", self.workspace.target.join(suite.builds()));
        command.envs(suite.environment()).stdin(Stdio::null());
        command
    }

    /// The unchanged copy passes what the killers of the suite run, so that a failure is a mutant's.
    fn expect_pass(&mut self, suite: Suite, killers: &[Killer]) -> Result<(), Failure> {
        let mut tests: Vec<&'static str> = vec![];
        let mut is_whole = false;
        for killer in killers.iter().filter(|killer| killer.suite() == suite) {
            is_whole |= killer.test().is_none();
            tests.extend(killer.test());
        }
        tests.sort_unstable();
        tests.dedup();
        let why = "make `cargo xtask ci` pass first";
        run(&mut self.program(suite, &suite.build()), why)?;
        for time in 1..=self.times {
            let begin = Instant::now();
            let tests = if is_whole { &[] } else { &*tests };
            let noticed = self.notices(suite, tests, PATIENCE_UNCHANGED)?;
            self.patience = self.patience.max(PATIENCE * begin.elapsed());
            if let Some(how) = noticed {
                let what =
                    format!("{suite:?} fails on the unchanged tree, run {time} of {}: {how}", self.times);
                return Err(Failure::new(what, why));
            }
        }
        Ok(())
    }

    /// Whether a mutant compiles; what the compiler says of those that do not is not shown.
    fn compiles(&self, suite: Suite) -> Result<bool, Failure> {
        let mut command = self.program(suite, &suite.build());
        Ok(status(command.stderr(Stdio::null()))?.success())
    }

    /// How the suite, or one of these tests of it, failed; `None` if it did not notice anything.
    fn notices(
        &self,
        suite: Suite,
        tests: &[&'static str],
        patience: Duration,
    ) -> Result<Option<String>, Failure> {
        let arguments: Vec<&str> = suite.run().into_iter().chain(tests.iter().copied()).collect();
        let mut command = self.program(suite, &arguments);
        match (suite, wait(&mut command, patience)?) {
            (_, None) => Ok(Some(format!("no end after {} s", patience.as_secs()))),
            (_, Some(status)) if status.success() => Ok(None),
            // Exit code 1 is a divergence; anything else is a broken command, which notices nothing.
            (Suite::Verify, Some(status)) if status.code() != Some(1) => {
                Err(Failure::new(format!("`{}` ended with {status}", shown(&command)), "run it by hand"))
            }
            (_, Some(status)) => Ok(Some(status.to_string())),
        }
    }

    /// Returns how many killers noticed nothing.
    fn check(&self, mutant: &Mutant) -> Result<usize, Failure> {
        let path = self.root.join(mutant.file);
        let right = fs::read_to_string(&path)
            .map_err(|error| Failure::new(format!("{}: {error}", mutant.file), "mend the list of mutants"))?;
        if right.matches(mutant.right).count() != 1 {
            let what = format!("mutant {}: its line is not exactly once in {}", mutant.name, mutant.file);
            return Err(Failure::new(what, "mend the lists in xtask/src/mutants"));
        }
        let write = |text: &str| {
            let failed = |error| Failure::new(format!("{}: {error}", path.display()), "free the disk");
            fs::write(&path, text).map_err(failed)
        };
        write(&right.replace(mutant.right, mutant.wrong))?;
        let result = self.ask(mutant);
        write(&right)?;
        result
    }

    fn ask(&self, mutant: &Mutant) -> Result<usize, Failure> {
        let mut survived = 0;
        for killer in mutant.killers {
            let begin = Instant::now();
            let mut kills = vec![];
            // One that does not compile says nothing about the tests; the others are asked all the same.
            let compiles = self.compiles(killer.suite())?;
            if compiles {
                for _ in 0..self.times {
                    kills.extend(self.notices(killer.suite(), killer.test().as_slice(), self.patience)?);
                }
            }
            let verdict = match kills.first() {
                None if !compiles => "DOES NOT COMPILE".to_owned(),
                None => "SURVIVED".to_owned(),
                Some(how) if kills.len() == self.times as usize => format!("killed ({how})"),
                Some(_) => format!("SURVIVED {} of {} times", self.times as usize - kills.len(), self.times),
            };
            survived += usize::from(kills.len() < self.times as usize);
            let seconds = begin.elapsed().as_secs_f64();
            let (name, rule) = (mutant.name, mutant.rule);
            println!("  {name:<28} {killer:<11} {verdict}, {seconds:.0} s: {rule}");
        }
        Ok(survived)
    }
}

/// Waits for a silent program and all it starts; `None` if it had to be ended.
fn wait(command: &mut Command, patience: Duration) -> Result<Option<ExitStatus>, Failure> {
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let failed = |error: std::io::Error| Failure::new(format!("cannot wait: {error}"), "run it again");
    let mut child = command.spawn().map_err(failed)?;
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(Some(status));
        }
        if begin.elapsed() > patience {
            // The group: cargo is only the parent of what hangs.
            let group = format!("-{}", child.id());
            run(Command::new("kill").args(["-KILL", "--", &group]), "end the process by hand")?;
            child.wait().map_err(failed)?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A manifest, or a package of a lock file, with the version that the crates of the copy have.
fn as_mutants(text: &str) -> String {
    let line = concat!("version = \"", env!("CARGO_PKG_VERSION"));
    text.replacen(&format!("\n{line}\"\n"), &format!("\n{line}+mutant\"\n"), 1)
}

/// A lock file whose packages without a source, those of the workspace, have the copy's version.
fn lock_as_mutants(text: &str) -> String {
    const HEAD: &str = "[[package]]";
    let packages = text.split(HEAD).enumerate().map(|(place, package)| match place {
        0 => package.to_owned(),
        _ if !package.contains("\nsource = ") => as_mutants(package),
        _ => package.to_owned(),
    });
    packages.collect::<Vec<_>>().join(HEAD)
}

/// Links stay links: a host of the tests has some that lead nowhere.
fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    if from.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    } else if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy_all(&from.join(&name), &to.join(&name))?;
        }
    } else {
        fs::copy(from, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what the copy builds is never taken for the tree's. Method: a package of the workspace and one
    /// of a registry with the same version, in a lock file; the tree's own manifest.
    #[test]
    fn the_copy_has_a_version_of_its_own() {
        let version = env!("CARGO_PKG_VERSION");
        let package = |name: &str, source: &str, version: &str| {
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{source}")
        };
        let source = "source = \"registry\"\n";
        let lock = |own: &str| {
            format!("version = 4\n\n{}\n{}", package("ours", "", own), package("theirs", source, version))
        };
        assert_eq!(lock_as_mutants(&lock(version)), lock(&format!("{version}+mutant")));
        let manifest = fs::read_to_string(crate::workspace::root().join("Cargo.toml")).expect("a manifest");
        assert_eq!(as_mutants(&manifest).len(), manifest.len() + "+mutant".len());
    }

    /// Goal: the list fits the tree, so that a changed line is noticed long before the mutants run.
    /// Method: every line is in its file, once, and the mutant differs.
    #[test]
    fn every_mutant_applies() {
        let counts = |mutant: &Mutant| {
            let text = fs::read_to_string(crate::workspace::root().join(mutant.file)).expect(mutant.file);
            (mutant.name, text.matches(mutant.right).count())
        };
        let unfit: Vec<_> = all().map(counts).filter(|(_, count)| *count != 1).collect();
        assert_eq!(unfit, [], "how often the line of each is there");
        for mutant in all() {
            assert_ne!(mutant.right, mutant.wrong, "{}", mutant.name);
            assert!(!mutant.killers.is_empty(), "{}", mutant.name);
            assert_eq!(all().filter(|other| other.name == mutant.name).count(), 1, "{}", mutant.name);
        }
    }

    /// Goal: a renamed test is noticed long before the mutants run. Method: each killer's name is
    /// `file::function` of its suite, or a function of its only file.
    #[test]
    fn every_named_killer_exists() {
        let mut named = 0;
        for (suite, name) in all().flat_map(|mutant| mutant.killers).filter_map(|killer| {
            let name = killer.test()?;
            Some((killer.suite(), name))
        }) {
            let (file, function) = name.rsplit_once("::").unwrap_or(("", name));
            let file = file.replace("::", "/");
            let module = crate::workspace::root().join(suite.tests()).join(file);
            // A module of its own, or at the end of what it tests.
            let paths = [
                module.with_extension("rs"),
                module.join("mod.rs"),
                module.parent().expect("a folder").with_extension("rs"),
            ];
            let path = paths.iter().find(|path| path.exists()).unwrap_or(&paths[0]);
            let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(text.contains(&format!("fn {function}(")), "{name} is not in {}", path.display());
            named += 1;
        }
        assert!(named > 0, "some killers are named");
    }

    /// Goal: a program that hangs is ended with its children. Method: one that
    /// ends, one that fails, one that would take ten minutes.
    #[test]
    fn waiting_returns_the_status() {
        let ended = wait(&mut Command::new("true"), PATIENCE_MIN).expect("it starts");
        assert!(ended.is_some_and(|status| status.success()));
        let failed = wait(&mut Command::new("false"), PATIENCE_MIN).expect("it starts");
        assert_eq!(failed.and_then(|status| status.code()), Some(1));
        let hung = wait(Command::new("sleep").arg("600"), Duration::from_millis(100)).expect("it starts");
        assert!(hung.is_none());
    }
}
