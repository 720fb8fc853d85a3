//! Whose tests are run, and how many there are.

use std::path::Path;

/// Tests of one project, in a package of their own.
#[derive(Debug)]
pub(super) struct BorrowedSuite {
    /// Its folder below `tests/borrowed`, and below the target folder.
    pub(super) name: &'static str,
    /// Packages, and the files and folders that are taken of each.
    pub(super) takes: &'static [(&'static str, &'static [&'static str])],
    /// Files of tests with this word in their name are run or left out with a reason; without it, all are.
    pub(super) topic: Option<&'static str>,
    /// How many tests there are: with fewer some are lost, with more the packages have others.
    pub(super) tests: usize,
}

impl BorrowedSuite {
    /// Its package, for cargo.
    pub(super) fn package(&self) -> String {
        format!("{}-borrowed", self.name)
    }

    /// Whether the file or folder of tests called `name` is taken, without its ending.
    pub(super) fn runs(&self, name: &str) -> bool {
        let is_it =
            |path: &str| path == "tests" || Path::new(path).file_stem().is_some_and(|stem| stem == name);
        self.takes.iter().any(|(_, paths)| paths.iter().any(|path| is_it(path)))
    }

    /// Whether a file of tests called `name` is one that must be run or left out.
    pub(super) fn is_asked(&self, name: &str) -> bool {
        self.topic.is_none_or(|topic| name.split('_').any(|word| word == topic))
    }
}

/// All of them. The packages are pinned in `tests/borrowed/NAME/package.toml`.
pub(super) const SUITES: [BorrowedSuite; 4] = [
    BorrowedSuite {
        name: "tokio",
        takes: &[
            (
                "tokio",
                &[
                    "tests/time_sleep.rs",
                    "tests/time_timeout.rs",
                    "tests/time_interval.rs",
                    "tests/time_pause.rs",
                    "tests/time_panic.rs",
                    "tests/time_rt.rs",
                    "tests/rt_time_start_paused.rs",
                    "tests/support/panic.rs",
                ],
            ),
            ("tokio-util", &["tests/time_delay_queue.rs"]),
        ],
        topic: Some("time"),
        tests: 112,
    },
    BorrowedSuite { name: "tower", takes: &[("tower", &["src", "tests"])], topic: None, tests: 82 },
    BorrowedSuite {
        name: "hyper-util",
        takes: &[("hyper-util", &["src", "tests"])],
        topic: None,
        tests: 135,
    },
    BorrowedSuite {
        name: "quinn",
        takes: &[("quinn", &["src/tests.rs", "tests/many_connections.rs"])],
        topic: None,
        tests: 22,
    },
];
