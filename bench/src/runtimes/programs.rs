//! The peers: which program each is, how it is made, and what to know about its numbers.

/// How a program comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A binary of `peers/rust`, whose feature has the same name.
    Rust {
        binary: &'static str,
        /// Whose version is shown.
        package: &'static str,
        /// A configuration that the compiler is given.
        cfg: Option<&'static str>,
    },
    /// `peers/c/NAME.c` and a library that pkg-config knows.
    C { file: &'static str, library: &'static str },
    /// `peers/go`.
    Go,
    /// `peers/java`.
    Java,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    pub source: Source,
    /// Before a measure's own.
    pub arguments: &'static [&'static str],
    pub note: &'static str,
}

const fn tokio(name: &'static str, mode: &'static [&'static str], note: &'static str) -> Program {
    // What is offered as stable is measured without the configuration that offers the rest.
    let cfg = if mode.is_empty() { None } else { Some("tokio_unstable") };
    Program { name, source: Source::Rust { binary: "tokio", package: "tokio", cfg }, arguments: mode, note }
}

const fn quietcore(name: &'static str, mode: &'static [&'static str], note: &'static str) -> Program {
    let source = Source::Rust { binary: "quietcore", package: "quietcore-live", cfg: None };
    Program { name, source, arguments: mode, note }
}

/// All of them, in the order of the table.
pub const PROGRAMS: &[Program] = &[
    quietcore(
        "quietcore",
        &["mode=helper"],
        "Sleep under tokio's executor, whose own timers are off; a helper thread expires them",
    ),
    quietcore(
        "quietcore lanes",
        &["mode=lanes"],
        "Sleep under async-executor on 2 lanes, which expire them themselves",
    ),
    quietcore("quietcore exact", &["mode=helper+exact"], "as quietcore, with Precision::Exact: no ticks"),
    quietcore("lanes exact", &["mode=lanes+exact"], "as quietcore lanes, with Precision::Exact"),
    quietcore(
        "quietcore calls",
        &["mode=lanes+callbacks"],
        "2 lanes; timers with callbacks in place of sleeps, those of pairs made beforehand; expire: coarse",
    ),
    quietcore(
        "calls stuck",
        &["mode=lanes+callbacks+stuck"],
        "as quietcore calls, on lanes that do not turn meanwhile: others look after their timers",
    ),
    quietcore(
        "quietcore tokio",
        &["mode=lanes+tokio"],
        "Sleep on 2 lanes that host a current-thread runtime of tokio each; tasks stay on their lane",
    ),
    tokio("tokio", &[], "multi_thread, one wheel for all workers; Sleep polled once and dropped; reset"),
    tokio("tokio eager", &["mode=eager"], "the same with enable_eager_driver_handoff, which is unstable"),
    tokio("tokio alt", &["mode=alt"], "enable_alt_timer, which is unstable: a wheel per worker"),
    tokio("tokio alt+eager", &["mode=alt+eager"], "both"),
    Program {
        name: "async-io",
        source: Source::Rust { binary: "async-io", package: "async-io", cfg: None },
        arguments: &[],
        note: "Timer polled once and dropped; async-executor on 2 threads in async_io::block_on",
    },
    Program {
        name: "glommio",
        source: Source::Rust { binary: "glommio", package: "glommio", cfg: None },
        arguments: &[],
        note: "2 executors that share nothing: a task stays with the blocked one",
    },
    Program {
        name: "Go",
        source: Source::Go,
        arguments: &[],
        note: "GOMAXPROCS=2; AfterFunc, Stop, Reset; tasks are goroutines in time.Sleep; what blocks is a \
               system call",
    },
    Program {
        name: "DPDK",
        source: Source::C { file: "dpdk", library: "libdpdk" },
        arguments: &[],
        note: "rte_timer, --no-huge --no-pci --no-shconf; 2 lcores that poll without rest, pinned by DPDK; \
               expire: nobody polls until all are due",
    },
    Program {
        name: "libuv",
        source: Source::C { file: "uv", library: "libuv" },
        arguments: &[],
        note: "2 loops that share nothing; callbacks in place of tasks",
    },
    Program {
        name: "libevent",
        source: Source::C { file: "event", library: "libevent_pthreads" },
        arguments: &[],
        note: "2 bases with locks; callbacks in place of tasks",
    },
    Program {
        name: "Netty",
        source: Source::Java,
        arguments: &[],
        note: "HashedWheelTimer with ticks of 1 ms, 512 buckets, callbacks on a pool of 2 threads",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: rows can be told apart and asked for. Method: the whole table.
    #[test]
    fn names_are_unique() {
        for (at, program) in PROGRAMS.iter().enumerate() {
            assert!(PROGRAMS[..at].iter().all(|other| other.name != program.name), "{}", program.name);
            assert!(!program.note.is_empty(), "{}", program.name);
        }
    }
}
