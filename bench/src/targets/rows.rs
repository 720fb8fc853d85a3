//! The rows of the table of targets: where each figure comes from, and what it should be.
//!
//! Targets were set in nanoseconds on one machine, whose limits stand in [`REFERENCE`]. On another one the
//! multiple of its own limit is what counts.

use crate::limits::Limits;

/// The limits of the machine on which the targets were set (2 virtual CPUs, 21 November 2026). What two of
/// its threads computed was not measured: twice as much at most.
pub const REFERENCE: Limits = Limits { lock: 9.4, clock: 23.0, miss: 300.0, two_threads: 2.0 };

/// Throughput of `grep -c` there, in MB/s.
pub const REFERENCE_GREP: f64 = 2221.0;

/// What a figure is a multiple of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Lock,
    Clock,
    /// One of each.
    LockAndClock,
    Miss,
    Grep,
    /// What two threads compute, in place of one.
    TwoThreads,
    /// Nothing: the figure itself counts.
    Itself,
}

/// Where a figure is in what a program prints.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// `lane`: a row.
    Lane(&'static str),
    /// `runtimes`: measure, peer, and the number of the column.
    Runtimes(&'static str, &'static str, usize),
    /// Two of those: the first divided by the second.
    Ratio(&'static str, usize, [&'static str; 2]),
    /// `sim`: a row, and which figure of it.
    Sim(&'static str, &'static str),
    /// `parser`: a way of reading.
    Parser(&'static str),
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    pub origin: Origin,
    pub unit: &'static str,
    pub limit: Limit,
    /// At most this on the reference machine, or at least, where more is better.
    pub target: f64,
    pub more_is_better: bool,
}

const fn at_most(
    name: &'static str,
    target: f64,
    unit: &'static str,
    limit: Limit,
    origin: Origin,
) -> Target {
    Target { name, origin, unit, limit, target, more_is_better: false }
}

const fn at_least(
    name: &'static str,
    target: f64,
    unit: &'static str,
    limit: Limit,
    origin: Origin,
) -> Target {
    Target { name, origin, unit, limit, target, more_is_better: true }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    at_most("lane, arm_at and cancel", 16.0, "ns", Limit::Lock, Origin::Lane("arm_at and cancel")),
    at_most(
        "lane, arm_after and cancel",
        28.0,
        "ns",
        Limit::LockAndClock,
        Origin::Lane("arm_after and cancel"),
    ),
    at_most(
        "lane, Sleep for a moment, polled and dropped",
        35.0,
        "ns",
        Limit::Lock,
        Origin::Runtimes("arm-cancel-at", "quietcore lanes", 0),
    ),
    at_most(
        "lane, Sleep for a delay, polled and dropped",
        50.0,
        "ns",
        Limit::LockAndClock,
        Origin::Runtimes("arm-cancel", "quietcore lanes", 0),
    ),
    at_most(
        "foreign thread, Sleep for a moment",
        38.0,
        "ns",
        Limit::Lock,
        Origin::Runtimes("arm-cancel-at", "quietcore", 2),
    ),
    at_least(
        "2 lanes over 1, callbacks",
        1.95,
        "x",
        Limit::TwoThreads,
        Origin::Runtimes("arm-cancel", "quietcore calls", 3),
    ),
    at_least(
        "2 foreign threads over 1",
        1.95,
        "x",
        Limit::TwoThreads,
        Origin::Runtimes("arm-cancel-foreign", "quietcore", 3),
    ),
    at_most(
        "move a random one of a million",
        330.0,
        "ns",
        Limit::Miss,
        Origin::Runtimes("rearm", "quietcore lanes", 0),
    ),
    at_most(
        "move one of a million, moment known",
        150.0,
        "ns",
        Limit::Miss,
        Origin::Lane("a random one of a million, arm_at"),
    ),
    at_most(
        "move 256 of a million at once",
        60.0,
        "ns",
        Limit::Miss,
        Origin::Lane("random ones of a million, arm_many"),
    ),
    at_most(
        "a million expire: callbacks, CPU each",
        130.0,
        "ns",
        Limit::Miss,
        Origin::Runtimes("expire", "quietcore calls", 0),
    ),
    at_most(
        "a million expire: futures, CPU each",
        160.0,
        "ns",
        Limit::Miss,
        Origin::Runtimes("expire", "quietcore", 0),
    ),
    at_most(
        "isolated turn, nothing armed",
        3.4,
        "ns",
        Limit::Clock,
        Origin::Lane("isolated turn, nothing armed"),
    ),
    at_most(
        "isolated turn, a timer armed",
        15.0,
        "ns",
        Limit::Clock,
        Origin::Lane("isolated turn, a timer armed"),
    ),
    at_most("doze and back", 40.0, "ns", Limit::Clock, Origin::Lane("doze and back")),
    at_most(
        "walk through the hierarchy, cold",
        3_000.0,
        "ns",
        Limit::Itself,
        Origin::Lane("idle and back: walk"),
    ),
    at_most(
        "walk through the hierarchy, warm",
        1_100.0,
        "ns",
        Limit::Itself,
        Origin::Lane("idle and back: warm walk"),
    ),
    at_most(
        "1000 timers of 100 ms under tokio, wake-ups",
        2_000.0,
        "/s",
        Limit::Itself,
        Origin::Runtimes("periodic", "quietcore", 0),
    ),
    at_most(
        "the same on lanes that host tokio, wake-ups",
        2_000.0,
        "/s",
        Limit::Itself,
        Origin::Runtimes("periodic", "quietcore tokio", 0),
    ),
    at_most(
        "beside a blocked worker, p99: helper to tokio eager",
        0.56,
        "x",
        Limit::Itself,
        Origin::Ratio("blocked", 6, ["quietcore", "tokio eager"]),
    ),
    at_most(
        "beside a blocked worker, p99: lanes to tokio eager",
        0.9,
        "x",
        Limit::Itself,
        Origin::Ratio("blocked", 6, ["quietcore lanes", "tokio eager"]),
    ),
    at_least(
        "simulator, 1024 CPUs, timer events",
        2.0,
        "M/s",
        Limit::Itself,
        Origin::Sim("1024 CPUs, sleepers and timeouts", "timer_events_per_us"),
    ),
    at_least(
        "simulator, 1024 CPUs, all events",
        6.0,
        "M/s",
        Limit::Itself,
        Origin::Sim("1024 CPUs, sleepers and timeouts", "events_per_us"),
    ),
    at_least("explain on one CPU", 1_500.0, "MB/s", Limit::Grep, Origin::Parser("explain")),
    at_least("explain on two CPUs", 2_500.0, "MB/s", Limit::Grep, Origin::Parser("explain_ahead")),
];

/// The peers that the rows name.
pub const PEERS: &[&str] =
    &["quietcore", "quietcore lanes", "quietcore calls", "quietcore tokio", "tokio eager"];

/// The measures of `runtimes` that they name.
pub const MEASURES: &[&str] =
    &["arm-cancel", "arm-cancel-foreign", "arm-cancel-at", "rearm", "expire", "periodic", "blocked"];
