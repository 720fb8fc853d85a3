//! What a mutant is, and who must notice it: a suite as a whole, or one named test of it.
//!
//! Decides how each suite is built and run. The suites of the hierarchy's steps and orderings are other
//! builds of the core (`--cfg site`, `--cfg loom`), each with a folder of its own.

use std::fmt;

/// One wrong line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mutant {
    pub(super) name: &'static str,
    /// The rule that it breaks.
    pub(super) rule: &'static str,
    pub(super) file: &'static str,
    /// Exactly once in the file, so that a changed file makes the list fail instead of going stale.
    pub(super) right: &'static str,
    pub(super) wrong: &'static str,
    pub(super) killers: &'static [Killer],
}

/// Who must notice.
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

/// A program that can fail.
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
    /// Packet schedulers in virtual time.
    Disciplines,
    /// Devices that run them on lanes.
    Devices,
}

/// The recording that reaches every level.
const RECORDING: &str = "recordings/g612-c4-levels.txt.zst";

impl Suite {
    pub(super) const ALL: [Self; 13] = [
        Self::Properties,
        Self::Verify,
        Self::Tree,
        Self::Site,
        Self::Loom,
        Self::Machine,
        Self::Units,
        Self::Models,
        Self::LiveModels,
        Self::LiveUnits,
        Self::Tasks,
        Self::Disciplines,
        Self::Devices,
    ];

    /// Cargo's arguments that build it: those that run its tests, without running them.
    pub(super) fn build(self) -> Vec<&'static str> {
        if self == Self::Verify {
            return vec!["build", "-q", "--locked", "-p", "quietcore-cli"];
        }
        self.run().iter().copied().take_while(|word| *word != "--").chain(["--no-run"]).collect()
    }

    /// Cargo's arguments that run it; the name of a test may follow.
    pub(super) const fn run(self) -> &'static [&'static str] {
        match self {
            Self::Properties => &["test", "-q", "--locked", "-p", "quietcore-wheel", "--test", "property"],
            Self::Verify => {
                &["run", "-q", "--locked", "-p", "quietcore-cli", "--", "verify", RECORDING, "--json"]
            }
            Self::Tree => &[
                "test",
                "-q",
                "--locked",
                "-p",
                "quietcore-core",
                "--test",
                "property_tmigr",
                "--",
                "--exact",
            ],
            Self::Site => {
                &["test", "-q", "--locked", "-p", "quietcore-core", "--test", "site", "--", "--exact"]
            }
            Self::Loom => {
                &["test", "-q", "--locked", "-p", "quietcore-core", "--test", "loom", "--", "--exact"]
            }
            Self::Machine => {
                &["test", "-q", "--locked", "-p", "quietcore-core", "--test", "machine", "--", "--exact"]
            }
            Self::Units | Self::Models => {
                &["test", "-q", "--locked", "-p", "quietcore-core", "--lib", "--", "--exact"]
            }
            Self::LiveModels => {
                &["test", "-q", "--locked", "-p", "quietcore-live", "--test", "loom", "--", "--exact"]
            }
            Self::LiveUnits => &["test", "-q", "--locked", "-p", "quietcore-live", "--lib", "--", "--exact"],
            Self::Tasks => {
                &["test", "-q", "--locked", "-p", "quietcore-live", "--test", "tasks", "--", "--exact"]
            }
            Self::Disciplines => &[
                "test",
                "-q",
                "--locked",
                "-p",
                "quietcore-qdisc",
                "--test",
                "fq",
                "--test",
                "htb",
                "--test",
                "htb_recorded",
                "--test",
                "netem",
                "--test",
                "tbf",
                "--test",
                "prio",
                "--test",
                "tx_queue",
                "--",
                "--exact",
            ],
            Self::Devices => {
                &["test", "-q", "--locked", "-p", "quietcore-net", "--test", "net", "--", "--exact"]
            }
        }
    }

    pub(super) const fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // The first counterexample is enough; looking for a smaller one takes its time.
            Self::Properties | Self::Tree | Self::Machine | Self::Disciplines => {
                &[("PROPTEST_MAX_SHRINK_ITERS", "0"), ("PROPTEST_FAILURE_PERSISTENCE", "off")]
            }
            Self::Verify | Self::Units | Self::LiveUnits | Self::Tasks | Self::Devices => &[],
            Self::Site => &[("RUSTFLAGS", "--cfg site")],
            Self::Loom | Self::Models | Self::LiveModels => &[("RUSTFLAGS", "--cfg loom")],
        }
    }

    /// Where it is built, below the tree's folder of builds.
    pub(super) const fn folder(self) -> &'static str {
        match self {
            Self::Properties
            | Self::Verify
            | Self::Tree
            | Self::Machine
            | Self::Units
            | Self::LiveUnits
            | Self::Tasks
            | Self::Disciplines
            | Self::Devices => "",
            Self::Site => "site",
            Self::Loom | Self::Models | Self::LiveModels => "loom",
        }
    }

    /// Where the tests of a named killer are.
    #[cfg(test)]
    pub(super) const fn tests(self) -> &'static str {
        match self {
            Self::Properties => "crates/wheel/tests/property",
            Self::Verify => "crates/cli/src",
            Self::Tree => "crates/core/tests/property_tmigr",
            Self::Site => "crates/core/tests/site",
            Self::Loom => "crates/core/tests/loom",
            Self::Machine => "crates/core/tests/machine",
            Self::Units | Self::Models => "crates/core/src",
            Self::LiveModels | Self::LiveUnits => "crates/live/src",
            Self::Tasks => "crates/live/tests/tasks",
            Self::Disciplines => "crates/qdisc/tests",
            Self::Devices => "crates/net/tests/net.rs",
        }
    }
}
