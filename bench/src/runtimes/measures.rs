//! What is measured: which arguments a program gets, and which columns come of it.
//!
//! A measure is one or more runs of a program and one or more numbers of them. Sizes are decided here, for
//! all programs alike.

use super::child::Ran;
use serde::Serialize;

/// How much of everything.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sizes {
    /// Milliseconds of what is repeated.
    pub repeat_ms: u32,
    /// Timers that are pending where many are.
    pub others: u32,
    /// Timers that expire.
    pub expire: u32,
    /// Milliseconds to arm them in.
    pub lead_ms: u32,
    /// Milliseconds over which they expire.
    pub spread_ms: u32,
    /// Milliseconds of tasks that sleep in step.
    pub periodic_ms: u32,
    /// Sleeps of one task.
    pub sleeps: u32,
    /// Milliseconds without the task that blocks, and with it.
    pub blocked_ms: u32,
    /// Milliseconds of nothing.
    pub idle_ms: u32,
}

impl Sizes {
    /// For numbers.
    pub const FULL: Self = Self {
        repeat_ms: 300,
        others: 1_000_000,
        expire: 1_000_000,
        lead_ms: 4000,
        spread_ms: 1000,
        periodic_ms: 4000,
        sleeps: 1000,
        blocked_ms: 4000,
        idle_ms: 3000,
    };
    /// To see whether everything works.
    pub const QUICK: Self = Self {
        repeat_ms: 20,
        others: 10_000,
        expire: 10_000,
        lead_ms: 500,
        spread_ms: 100,
        periodic_ms: 300,
        sleeps: 20,
        blocked_ms: 300,
        idle_ms: 200,
    };
}

/// Which of two numbers is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Lower,
    Higher,
}

/// A number of the table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    pub unit: &'static str,
    pub better: Better,
    /// Of the runs of one round; `None` if they do not have it.
    pub value: fn(&[Ran]) -> Option<f64>,
}

/// What is measured together.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    pub name: &'static str,
    pub title: &'static str,
    /// The arguments of each run.
    pub runs: fn(&Sizes) -> Vec<String>,
    pub columns: &'static [Column],
}

/// All of them, in the order of the table.
pub const MEASURES: &[Measure] = &[
    Measure {
        name: "arm-cancel",
        title: "arm a timer for a delay and cancel it, on the runtime's workers",
        runs: |sizes| {
            pairs("place=home form=after", &[(1, 0), (2, 0), (1, sizes.others), (2, sizes.others)], sizes)
        },
        columns: PAIRS,
    },
    Measure {
        name: "arm-cancel-foreign",
        title: "the same on threads that are not the runtime's",
        runs: |sizes| {
            pairs("place=foreign form=after", &[(1, 0), (2, 0), (1, sizes.others), (2, sizes.others)], sizes)
        },
        columns: PAIRS,
    },
    Measure {
        name: "arm-cancel-at",
        title: "arm for a moment that is known beforehand (no clock is read) and cancel, among many",
        runs: |sizes| {
            let at =
                |place, threads| pairs(&format!("place={place} form=at"), &[(threads, sizes.others)], sizes);
            [at("home", 1), at("home", 2), at("foreign", 1), at("foreign", 2)].concat()
        },
        columns: &[
            lower("worker", "ns", |runs| figure(runs, 0)),
            lower("2 workers", "ns", |runs| figure(runs, 1)),
            lower("foreign", "ns", |runs| figure(runs, 2)),
            lower("2 foreign", "ns", |runs| figure(runs, 3)),
        ],
    },
    Measure {
        name: "remote-cancel",
        title: "cancel on one worker what another one armed",
        runs: |sizes| vec![format!("remote-cancel count=1000 time_ms={}", sizes.repeat_ms)],
        columns: &[lower("cancel", "ns", |runs| figure(runs, 0))],
    },
    Measure {
        name: "rearm",
        title: "move a random one of many to a random moment",
        runs: |sizes| vec![format!("rearm others={} time_ms={}", sizes.others, sizes.repeat_ms)],
        columns: &[lower("move", "ns", |runs| figure(runs, 0))],
    },
    Measure {
        name: "expire",
        title: "let many expire within a second: CPU time per timer, of the whole process",
        runs: |sizes| {
            let Sizes { expire, lead_ms, spread_ms, .. } = sizes;
            vec![format!("expire threads=2 count={expire} lead_ms={lead_ms} spread_ms={spread_ms}")]
        },
        columns: &[lower("CPU", "ns", |runs| cpu_per_event(runs, 0))],
    },
    Measure {
        name: "periodic",
        title: "1000 timers with a period of 100 ms",
        runs: |sizes| vec![format!("periodic count=1000 period_ms=100 time_ms={}", sizes.periodic_ms)],
        columns: &[
            lower("wake-ups", "/s", |runs| wake_ups(runs, 0)),
            lower("CPU", "%", |runs| cpu_percent(runs, 0)),
            lower("late", "us mean", |runs| mean(samples(runs, 0, "lateness")?)),
            lower("late", "us p99", |runs| quantile(samples(runs, 0, "lateness")?, 0.99)),
        ],
    },
    Measure {
        name: "sleep",
        title: "a task sleeps 1 ms: how much later it goes on",
        runs: |sizes| vec![format!("sleep count={} period_ms=1", sizes.sleeps)],
        columns: &[
            lower("late", "us p50", |runs| quantile(samples(runs, 0, "lateness")?, 0.5)),
            lower("late", "us p99", |runs| quantile(samples(runs, 0, "lateness")?, 0.99)),
            lower("CPU", "%", |runs| cpu_percent(runs, 0)),
        ],
    },
    Measure {
        name: "blocked",
        title: "64 tasks sleep 10 to 16 ms on 2 workers: alone, and while one more blocks its worker for \
                100 of every 120 ms",
        runs: |sizes| vec![format!("blocked count=64 time_ms={}", sizes.blocked_ms)],
        columns: &[
            higher("alone", "sleeps", |runs| count(samples(runs, 0, "calm")?)),
            lower("late", "us p50", |runs| quantile(samples(runs, 0, "calm")?, 0.5)),
            lower("late", "us p99", |runs| quantile(samples(runs, 0, "calm")?, 0.99)),
            lower("late", "us p99.9", |runs| quantile(samples(runs, 0, "calm")?, 0.999)),
            higher("blocked", "sleeps", |runs| count(samples(runs, 0, "blocked")?)),
            lower("late", "us p50", |runs| quantile(samples(runs, 0, "blocked")?, 0.5)),
            lower("late", "us p99", |runs| quantile(samples(runs, 0, "blocked")?, 0.99)),
            lower("late", "us p99.9", |runs| quantile(samples(runs, 0, "blocked")?, 0.999)),
        ],
    },
    Measure {
        name: "idle",
        title: "nothing is armed and nothing runs",
        runs: |sizes| vec![format!("idle time_ms={}", sizes.idle_ms)],
        columns: &[
            lower("wake-ups", "/s", |runs| wake_ups(runs, 0)),
            lower("CPU", "%", |runs| cpu_percent(runs, 0)),
        ],
    },
];

/// Of four runs: 1 and 2 threads, alone and among many.
const PAIRS: &[Column] = &[
    lower("alone", "ns", |runs| figure(runs, 0)),
    lower("CPU", "ns", |runs| cpu_per_event(runs, 0)),
    lower("2 threads", "ns", |runs| figure(runs, 1)),
    higher("scaling", "x", |runs| Some(2.0 * figure(runs, 0)? / figure(runs, 1)?)),
    lower("among many", "ns", |runs| figure(runs, 2)),
    lower("2 threads", "ns", |runs| figure(runs, 3)),
];

const fn lower(title: &'static str, unit: &'static str, value: fn(&[Ran]) -> Option<f64>) -> Column {
    Column { title, unit, better: Better::Lower, value }
}

const fn higher(title: &'static str, unit: &'static str, value: fn(&[Ran]) -> Option<f64>) -> Column {
    Column { title, unit, better: Better::Higher, value }
}

fn pairs(how: &str, threads_and_others: &[(u32, u32)], sizes: &Sizes) -> Vec<String> {
    let run = |(threads, others): &(u32, u32)| {
        format!("arm-cancel {how} threads={threads} others={others} time_ms={}", sizes.repeat_ms)
    };
    threads_and_others.iter().map(run).collect()
}

fn figure(runs: &[Ran], run: usize) -> Option<f64> {
    runs.get(run)?.figures.get("ns").copied()
}

fn samples<'a>(runs: &'a [Ran], run: usize, name: &str) -> Option<&'a [i64]> {
    runs.get(run)?.samples.get(name).map(Vec::as_slice)
}

fn cpu_per_event(runs: &[Ran], run: usize) -> Option<f64> {
    let window = runs.get(run)?.window?;
    (window.events > 0.0).then(|| window.cpu_ns / window.events)
}

fn cpu_percent(runs: &[Ran], run: usize) -> Option<f64> {
    let window = runs.get(run)?.window?;
    Some(window.cpu_ns / window.seconds / 1e7)
}

fn wake_ups(runs: &[Ran], run: usize) -> Option<f64> {
    let window = runs.get(run)?.window?;
    Some(window.wake_ups / window.seconds)
}

fn count(samples: &[i64]) -> Option<f64> {
    Some(samples.len() as f64)
}

fn mean(samples: &[i64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<i64>() as f64 / samples.len() as f64)
}

/// The smallest sample that is not below a `share` of all.
fn quantile(samples: &[i64], share: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).map(|&value| value as f64)
}

#[cfg(test)]
mod tests {
    use super::super::usage::Window;
    use super::*;

    /// Goal: quantiles are samples of the right rank. Method: 1 to 1000, and few.
    #[test]
    fn quantiles_are_nearest_ranks() {
        let samples: Vec<i64> = (1..=1000).rev().collect();
        let of = |share| quantile(&samples, share);
        assert_eq!((of(0.5), of(0.99), of(0.999)), (Some(500.0), Some(990.0), Some(999.0)));
        assert_eq!(quantile(&[7], 0.5), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(mean(&[1, 2, 6]), Some(3.0));
    }

    /// Goal: every column is a number if its runs are whole, and none without them. Method: runs that have
    /// everything, and none, for all measures.
    #[test]
    fn columns_need_their_runs() {
        let window = Window { seconds: 2.0, cpu_ns: 4e7, wake_ups: 10.0, preemptions: 0.0, events: 1e6 };
        let mut ran = Ran { window: Some(window), ..Ran::default() };
        ran.figures.insert("ns".to_owned(), 20.0);
        for name in ["lateness", "calm", "blocked"] {
            ran.samples.insert(name.to_owned(), vec![5]);
        }
        for measure in MEASURES {
            let runs = vec![ran.clone(); (measure.runs)(&Sizes::FULL).len()];
            for column in measure.columns {
                assert!((column.value)(&runs).is_some(), "{} {}", measure.name, column.title);
                assert_eq!((column.value)(&[]), None, "{} {}", measure.name, column.title);
            }
        }
        let runs = [ran];
        assert_eq!((cpu_per_event(&runs, 0), cpu_percent(&runs, 0)), (Some(40.0), Some(2.0)));
        assert_eq!(wake_ups(&runs, 0), Some(5.0));
    }
}
