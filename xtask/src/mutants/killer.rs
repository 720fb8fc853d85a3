//! What a mutant is, and who must notice it: a suite as a whole, or one named test of it.
//!
//! Decides how each suite is built and run. The suites of the hierarchy's steps and orderings are other
//! builds of the core (`--cfg site`, `--cfg loom`), each with a folder of its own.

use std::fmt;

#[derive(Clone, Copy, Debug)]
pub(super) struct Mutant {
    pub(super) name: &'static str,
    pub(super) rule: &'static str,
    pub(super) file: &'static str,
    /// Exactly once in the file, so that a changed file makes the list fail instead of going stale.
    pub(super) right: &'static str,
    pub(super) wrong: &'static str,
    pub(super) killers: &'static [Killer],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Killer {
    All(Suite),
    /// The test with exactly this name.
    Test(Suite, &'static str),
}

impl Killer {
    pub(super) const fn suite(self) -> Suite {
        match self {
            Self::All(suite) | Self::Test(suite, _) => suite,
        }
    }

    pub(super) const fn test(self) -> Option<&'static str> {
        match self {
            Self::All(_) => None,
            Self::Test(_, name) => Some(name),
        }
    }
}

impl fmt::Display for Killer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.test() {
            None => format!("{:?}", self.suite()),
            Some(test) => format!("{:?} {test}", self.suite()),
        };
        out.pad(&name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suite {
    /// The property tests of the crate `quietcore-wheel`.
    Properties,
    /// `quietcore verify` on the recording with timers on all levels.
    Verify,
    /// Sequential scripts on the hierarchy and on a list.
    Tree,
    /// The hierarchy, step by step.
    Site,
    /// The hierarchy under weak memory.
    Loom,
    /// Whole machines, one thread.
    Machine,
    /// The tests beside the core's code.
    Units,
    /// What is decided about timers without a lock, under weak memory: tests beside the core's code, too.
    Models,
    /// The words of threads, under weak memory: tests beside the code of `quietcore-live`.
    LiveModels,
    /// The same words, in one order of steps at a time.
    LiveUnits,
    /// Tasks, softirqs and work on real threads.
    Tasks,
    /// Lanes on real threads.
    Lanes,
    /// Packet schedulers in virtual time.
    Disciplines,
    /// Packet schedulers that are slower to ask: trees with curves, and estimates of idle time.
    Trees,
    /// Queues with controlled delay.
    Controlled,
    /// Packet schedulers of bands, and by deficit round robin.
    Rounds,
    /// The tests beside the code of packet schedulers and of tc's grammar.
    DisciplineUnits,
    /// Devices that run them on lanes.
    Devices,
    /// Lines of `tc` on such devices.
    Control,
    /// What a recording and a host are said to show, figure by figure.
    Figures,
    /// The tests beside the code of devices, of the relay, and of instances.
    DeviceUnits,
    /// The tests beside the code of the relay of streams.
    StreamUnits,
    /// The tests beside the command's code.
    CommandUnits,
    /// Futures on a clock that the test moves.
    Futures,
    /// Other projects' code on our timers.
    Adapters,
    /// Children that were forked by what a machine runs.
    Forks,
    /// Where the machine's own threads run.
    OwnThreads,
    /// What a machine leaves behind.
    MachineEnd,
    /// Programs in C.
    CPrograms,
    /// The tests beside the simulator's code.
    SimUnits,
    /// Whole runtimes on virtual threads.
    Runtimes,
    /// Random machines under random loads.
    RandomMachines,
    /// The tests beside the code of replays and of what-if.
    VerifyUnits,
    /// What-if on small and on real recordings.
    Whatif,
    /// The tests beside the lab's code.
    LabUnits,
    /// What the lab makes of fixed rounds.
    Lab,
    /// The command on hostile input.
    Hostile,
    /// The tests beside the code of `quietcore-trace`.
    TraceUnits,
    /// The tests beside the code of `quietcore-explain`.
    ExplainUnits,
    /// The explanation on traces of a few lines, and on the bundled recordings.
    Explanations,
    /// The tests beside the code of `quietcore-watch`.
    WatchUnits,
    /// The program that counts in the kernel, in a process.
    WatchProgram,
    /// The tests beside the code that answers for the command and for Python.
    AnswerUnits,
    /// The tests beside the code of tables.
    TableUnits,
    /// Recordings as tables, and read back.
    TableFiles,
}

struct SuiteProgram {
    package: &'static str,
    /// Cargo's arguments that choose its tests.
    targets: &'static str,
    /// The `--cfg` that it is built with, and the name of its folder below the tree's folder of builds.
    flag: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "a test looks whether they are there"))]
    /// Where the tests of a named killer are.
    tests: &'static str,
}

const DISCIPLINES: &str = concat!(
    "--test fq --test htb --test htb_recorded --test netem --test tbf --test prio --test tx_queue ",
    "--test filters --test inner --test police --test ip --test whole"
);

const ROUNDS: &str = "--test drr --test ets --test bands --test order_recorded";

/// The recording that reaches every level.
const RECORDING: &str = "recordings/g612-c4-levels.txt.zst";

impl Suite {
    fn program(self) -> SuiteProgram {
        let of = |package, targets, flag, tests| SuiteProgram { package, targets, flag, tests };
        match self {
            Self::Properties => of("quietcore-wheel", "--test property", "", "crates/wheel/tests/property"),
            Self::Verify => of("quietcore-cli", "", "", "crates/cli/src"),
            Self::Tree => {
                of("quietcore-core", "--test property_tmigr", "", "crates/core/tests/property_tmigr")
            }
            Self::Site => of("quietcore-core", "--test site", "site", "crates/core/tests/site"),
            Self::Loom => of("quietcore-core", "--test loom", "loom", "crates/core/tests/loom"),
            Self::Machine => of("quietcore-core", "--test machine", "", "crates/core/tests/machine"),
            Self::Units => of("quietcore-core", "--lib", "", "crates/core/src"),
            Self::Models => of("quietcore-core", "--lib", "loom", "crates/core/src"),
            Self::LiveModels => of("quietcore-live", "--test loom", "loom", "crates/live/src"),
            Self::LiveUnits => of("quietcore-live", "--lib", "", "crates/live/src"),
            Self::Tasks => of("quietcore-live", "--test tasks", "", "crates/live/tests/tasks"),
            Self::Lanes => of("quietcore-live", "--test lane", "", "crates/live/tests/lane"),
            Self::Disciplines => of("quietcore-qdisc", DISCIPLINES, "", "crates/qdisc/tests"),
            Self::Trees => of("quietcore-qdisc", "--test hfsc --test cbq", "", "crates/qdisc/tests"),
            Self::Controlled => of(
                "quietcore-qdisc",
                "--test codel --test sfq --test red --test cake",
                "",
                "crates/qdisc/tests",
            ),
            Self::Rounds => of("quietcore-qdisc", ROUNDS, "", "crates/qdisc/tests"),
            Self::DisciplineUnits => of("quietcore-qdisc", "--lib", "", "crates/qdisc/src"),
            Self::DeviceUnits => of("quietcore-net", "--lib", "", "crates/net/src"),
            Self::StreamUnits => of("quietcore-net", "--lib --features stream", "", "crates/net/src"),
            Self::CommandUnits => of("quietcore-cli", "--bin quietcore", "", "crates/cli/src"),
            Self::Devices => of("quietcore-net", "--test net", "", "crates/net/tests/net.rs"),
            Self::Control => of("quietcore-net", "--test net_control", "", "crates/net/tests/net_control"),
            Self::Figures => of("quietcore-explain", "--test figures", "", "crates/explain/tests/figures"),
            Self::Futures => of("quietcore-live", "--test time", "", "crates/live/tests/time"),
            Self::Adapters => of("quietcore", "--test adapters", "", "crates/quietcore/tests/adapters"),
            Self::Forks => of("quietcore-live", "--test turn_fork", "", "crates/live/tests/turn_fork.rs"),
            Self::OwnThreads => {
                of("quietcore-live", "--test own_threads", "", "crates/live/tests/own_threads.rs")
            }
            Self::MachineEnd => {
                of("quietcore-live", "--test machine_end", "", "crates/live/tests/machine_end.rs")
            }
            Self::CPrograms => of("quietcore-ffi", "--test c", "", "crates/ffi/tests/c.rs"),
            Self::SimUnits => of("quietcore-sim", "--lib", "", "crates/sim/src"),
            Self::Runtimes => of("quietcore-sim", "--test runtimes", "", "crates/sim/tests/runtimes.rs"),
            Self::RandomMachines => {
                of("quietcore-sim", "--test machines", "", "crates/sim/tests/machines.rs")
            }
            Self::VerifyUnits => of("quietcore-verify", "--lib", "", "crates/verify/src"),
            Self::Whatif => of("quietcore-verify", "--test whatif", "", "crates/verify/tests/whatif"),
            Self::LabUnits => of("quietcore-lab", "--lib", "", "crates/lab/src"),
            Self::Lab => of("quietcore-lab", "--test lab", "", "crates/lab/tests/lab"),
            Self::Hostile => of("quietcore-cli", "--test hostile", "", "crates/cli/tests/hostile.rs"),
            Self::TraceUnits => of("quietcore-trace", "--lib", "", "crates/trace/src"),
            Self::ExplainUnits => of("quietcore-explain", "--lib", "", "crates/explain/src"),
            Self::WatchUnits => of("quietcore-watch", "--lib", "", "crates/watch/src"),
            Self::WatchProgram => {
                of("quietcore-watch", "--test program", "", "crates/watch/tests/program.rs")
            }
            Self::Explanations => {
                of("quietcore-explain", "--test explain", "", "crates/explain/tests/explain.rs")
            }
            Self::AnswerUnits => of("quietcore-answers", "--lib", "", "crates/answers/src"),
            Self::TableUnits => of("quietcore-tables", "--lib", "", "crates/tables/src"),
            Self::TableFiles => {
                of("quietcore-tables", "--test recordings", "", "crates/tables/tests/recordings.rs")
            }
        }
    }

    /// The package whose tests it has.
    pub(super) fn package(self) -> &'static str {
        self.program().package
    }

    /// Cargo's arguments that build it: those that run its tests, without running them.
    pub(super) fn build(self) -> Vec<&'static str> {
        if self == Self::Verify {
            return vec!["build", "-q", "--locked", "-p", "quietcore-cli"];
        }
        self.run().into_iter().take_while(|word| *word != "--").chain(["--no-run"]).collect()
    }

    /// Cargo's arguments that run it; the name of a test may follow.
    pub(super) fn run(self) -> Vec<&'static str> {
        let SuiteProgram { package, targets, .. } = self.program();
        if self == Self::Verify {
            return vec!["run", "-q", "--locked", "-p", package, "--", "verify", RECORDING, "--json"];
        }
        let words = ["test", "-q", "--locked", "-p", package];
        words.into_iter().chain(targets.split(' ')).chain(["--", "--exact"]).collect()
    }

    pub(super) fn environment(self) -> Vec<(&'static str, String)> {
        let flag = self.folder();
        let flags = (!flag.is_empty()).then(|| ("RUSTFLAGS", format!("--cfg {flag}")));
        // The first counterexample is enough; looking for a smaller one takes its time.
        let shrinking = [("PROPTEST_MAX_SHRINK_ITERS", "0"), ("PROPTEST_FAILURE_PERSISTENCE", "off")];
        let samples = matches!(
            self,
            Self::Properties
                | Self::Tree
                | Self::Machine
                | Self::Disciplines
                | Self::Trees
                | Self::Controlled
                | Self::Rounds
        );
        let shrinking = shrinking.into_iter().filter(|_| samples).map(|(key, value)| (key, value.to_owned()));
        flags.into_iter().chain(shrinking).collect()
    }

    /// Where it is built, below the tree's folder of builds. A library for C has one name whatever it is made
    /// of, so a mutant's would pass for the tree's.
    pub(super) fn builds(self) -> &'static str {
        if self == Self::CPrograms { "mutants-in-c" } else { self.folder() }
    }

    /// The flag that it is built with, if there is one.
    fn folder(self) -> &'static str {
        self.program().flag
    }

    /// Where the tests of a named killer are.
    #[cfg(test)]
    pub(super) fn tests(self) -> &'static str {
        self.program().tests
    }
}
