//! A scenario with each value of a grid and each seed.
//!
//! Invariants: the order of the runs is that of the keys (the last one changes first), then of the seeds,
//! however many threads run them; a run with the same settings and seed has the same hash everywhere. Every
//! point of the grid is checked before the first run. Memory is bounded: a batch of runs is finished before
//! the next one begins.

use crate::bundled::{read_beside, read_scenario};
use crate::error::AnswerError;
use quietcore_sim::{Scenario, ScenarioSetting, SimOptions, SimOutcome, with_settings};
use quietcore_trace::visible_path;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The most runs of a sweep.
pub const RUNS_MAX: usize = 1_000_000;
/// The most points of a grid: each is a scenario that is read and kept.
const POINTS_MAX: usize = 4_096;
/// Runs of a batch, for each thread.
const BATCH: usize = 16;

/// A key and the values that it takes in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepKey {
    /// As [`ScenarioSetting::key`].
    pub key: String,
    /// As [`ScenarioSetting::value`].
    pub values: Vec<String>,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepRequest {
    /// A scenario's file, or one of the program, as `@isolated`.
    pub scenario: PathBuf,
    /// The grid; empty: the scenario as it is.
    pub keys: Vec<SweepKey>,
    /// The seeds; `None`: the scenario's own.
    pub seeds: Option<RangeInclusive<u64>>,
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepSoFar {
    /// Runs that are done.
    pub done: usize,
    /// All of them.
    pub of: usize,
}

/// One run.
#[derive(Clone, Debug)]
pub struct SweepRun {
    /// The values of the keys, in their order.
    pub values: Vec<String>,
    /// What it came to.
    pub outcome: SimOutcome,
}

/// One point of the grid.
#[derive(Clone, Debug)]
struct GridPoint {
    values: Vec<String>,
    scenario: Scenario,
}

/// A sweep that has been checked.
#[derive(Clone, Debug)]
pub struct Sweep {
    keys: Vec<String>,
    points: Vec<GridPoint>,
    seeds: RangeInclusive<u64>,
    runs: usize,
}

impl Sweep {
    /// Reads the scenario and checks every point of the grid.
    ///
    /// # Errors
    /// [`AnswerError::Usage`]: a key, a value, too many runs, or none.
    pub fn plan(request: &SweepRequest) -> Result<Self, AnswerError> {
        let path = &request.scenario;
        let refused = |why: String| AnswerError::Usage(format!("{}: {why}", visible_path(path)));
        let text = read_scenario(path).map_err(|error| refused(error.to_string()))?;
        let mut points = Vec::new();
        for values in grid(&request.keys).map_err(refused)? {
            let settings: Vec<ScenarioSetting> = request
                .keys
                .iter()
                .zip(&values)
                .map(|(key, value)| ScenarioSetting { key: key.key.clone(), value: value.clone() })
                .collect();
            let text = with_settings(&text, &settings).map_err(|error| refused(error.to_string()))?;
            let scenario = Scenario::parse(path, &text, &read_beside(path))
                .map_err(|error| AnswerError::Usage(format!("{error}{}", with(&settings))))?;
            points.push(GridPoint { values, scenario });
        }
        let own = points.first().map_or(1, |point| point.scenario.seed());
        let seeds = request.seeds.clone().unwrap_or(own..=own);
        let count = seeds.end().checked_sub(*seeds.start()).and_then(|span| span.checked_add(1));
        let runs = count
            .and_then(|count| usize::try_from(count).ok()?.checked_mul(points.len()))
            .filter(|runs| (1..=RUNS_MAX).contains(runs))
            .ok_or_else(|| refused(format!("a sweep has from 1 to {RUNS_MAX} runs")))?;
        Ok(Self { keys: request.keys.iter().map(|key| key.key.clone()).collect(), points, seeds, runs })
    }

    /// The keys, in their order.
    #[must_use]
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// How many runs there are: points of the grid times seeds, at least 1.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Does run `number`, from 0. `None` when `is_over` said so meanwhile.
    ///
    /// # Panics
    /// When there are fewer runs, or the core breaks an invariant; the message names the run.
    #[must_use]
    pub fn run_one(&self, number: usize, is_over: &dyn Fn() -> bool) -> Option<SweepRun> {
        assert!(number < self.runs, "run {number} of {}", self.runs);
        let seeds = self.runs / self.points.len();
        let point = &self.points[number / seeds];
        let mut scenario = point.scenario.clone();
        scenario.set_seed(self.seeds.start() + (number % seeds) as u64);
        // Without a place for Perfetto's tracks nothing can fail.
        let ran = scenario.run(SimOptions::default(), &mut |_| !is_over(), &mut |_| Ok(None));
        let outcome = ran.ok().flatten()?;
        Some(SweepRun { values: point.values.clone(), outcome })
    }

    /// Does all runs on so many threads and hands them to `take` in their order. `watch` is asked, by any
    /// thread, whether to go on.
    ///
    /// # Errors
    /// [`AnswerError::Interrupted`] when `watch` said no; those of `take`.
    ///
    /// # Panics
    /// When the core breaks an invariant.
    pub fn run<E: From<AnswerError>>(
        &self,
        threads: usize,
        watch: &(dyn Fn(SweepSoFar) -> bool + Sync),
        take: &mut dyn FnMut(SweepRun) -> Result<(), E>,
    ) -> Result<(), E> {
        let threads = threads.max(1);
        let batch = threads * BATCH;
        for first in (0..self.runs).step_by(batch) {
            let numbers = first..self.runs.min(first + batch);
            let done = Mutex::new(first);
            let is_over = || !watch(SweepSoFar { done: *lock(&done), of: self.runs });
            let (left, results) = (Mutex::new(numbers.clone()), Mutex::new(Vec::new()));
            std::thread::scope(|scope| {
                for _ in 0..threads.min(numbers.len()) {
                    scope.spawn(|| {
                        while let Some(number) = next_of(&left) {
                            let Some(run) = self.run_one(number, &is_over) else { return };
                            lock(&results).push((number, run));
                            *lock(&done) += 1;
                            if is_over() {
                                return;
                            }
                        }
                    });
                }
            });
            let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
            if results.len() < numbers.len() {
                return Err(AnswerError::Interrupted.into());
            }
            results.sort_by_key(|(number, _)| *number);
            results.into_iter().try_for_each(|(_, run)| take(run))?;
        }
        Ok(())
    }
}

fn next_of(left: &Mutex<std::ops::Range<usize>>) -> Option<usize> {
    lock(left).next()
}

/// A thread that panicked ends the sweep anyway.
fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All combinations of the values, the last key changing first.
fn grid(keys: &[SweepKey]) -> Result<Vec<Vec<String>>, String> {
    let mut points = vec![Vec::new()];
    for (place, key) in keys.iter().enumerate() {
        if keys[..place].iter().any(|before| before.key == key.key) {
            return Err(format!("{} is set twice; give all its values at once", key.key));
        }
        if points.len().saturating_mul(key.values.len()) > POINTS_MAX {
            return Err(format!("the grid has more than {POINTS_MAX} points"));
        }
        points = points
            .iter()
            .flat_map(|point| {
                key.values.iter().map(|value| [&point[..], std::slice::from_ref(value)].concat())
            })
            .collect();
    }
    Ok(points)
}

/// ` (with cpus=16, policy=push)`.
fn with(settings: &[ScenarioSetting]) -> String {
    let settings: Vec<String> =
        settings.iter().map(|setting| format!("{}={}", setting.key, setting.value)).collect();
    if settings.is_empty() { String::new() } else { format!(" (with {})", settings.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::{AnswerError, Sweep, SweepKey, SweepRequest, SweepRun};
    use std::collections::BTreeSet;

    fn request(keys: &[(&str, &[&str])], seeds: Option<std::ops::RangeInclusive<u64>>) -> SweepRequest {
        let key = |(key, values): &(&str, &[&str])| SweepKey {
            key: (*key).to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        SweepRequest { scenario: "@hotplug-storm".into(), keys: keys.iter().map(key).collect(), seeds }
    }

    fn rows(sweep: &Sweep, threads: usize) -> Vec<(Vec<String>, u64, u64)> {
        let mut rows = Vec::new();
        let mut take = |run: SweepRun| {
            let hash = run.outcome.variants[0].figures.hash;
            rows.push((run.values, run.outcome.seed, hash));
            Ok::<(), AnswerError>(())
        };
        sweep.run(threads, &|_| true, &mut take).expect("nothing stops it");
        rows
    }

    /// Goal: runs come in the order of keys and seeds, with the same hashes, on any number of threads, and
    /// no two of them are the same run. Method: a grid of four points and nine seeds (more than a batch),
    /// on one thread and on three.
    #[test]
    fn the_order_is_that_of_keys_and_seeds() {
        let keys: &[(&str, &[&str])] = &[("duration", &["20ms", "30ms"]), ("nodes", &["1", "2"])];
        let sweep = Sweep::plan(&request(keys, Some(3..=11))).expect("a sweep");
        assert_eq!((sweep.runs(), sweep.keys()), (36, &["duration".to_owned(), "nodes".to_owned()][..]));
        let (one, three) = (rows(&sweep, 1), rows(&sweep, 3));
        assert_eq!(one, three);
        let seeds: Vec<u64> = one.iter().map(|row| row.1).collect();
        assert_eq!(seeds, (0..4).flat_map(|_| 3..=11).collect::<Vec<_>>());
        let points: Vec<String> = one.iter().step_by(9).map(|row| row.0.join("/")).collect();
        assert_eq!(points, ["20ms/1", "20ms/2", "30ms/1", "30ms/2"]);
        assert_eq!(one.iter().map(|row| row.2).collect::<BTreeSet<_>>().len(), 36);
    }

    /// Goal: without seeds the scenario's own is taken; nothing is run of a sweep with a mistake, and the
    /// sentence says which. Method: a plan of each.
    #[test]
    fn a_mistake_is_named_before_the_first_run() {
        let own = Sweep::plan(&request(&[], None)).expect("a sweep");
        assert_eq!((own.runs(), own.seeds.clone()), (1, 6..=6));
        let refused = |keys, seeds| Sweep::plan(&request(keys, seeds)).expect_err("a mistake").to_string();
        let unknown = refused(&[("cpuz", &["1"])], None);
        assert!(
            unknown.starts_with("@hotplug-storm: cpuz: no such key; there are duration, cpus"),
            "{unknown}"
        );
        let value = refused(&[("cpus", &["24", "many"])], None);
        assert!(value.contains("cpus") && value.ends_with("(with cpus=many)"), "{value}");
        let twice = refused(&[("cpus", &["24"]), ("cpus", &["32"])], None);
        assert!(twice.contains("set twice"), "{twice}");
        let (later, sooner) = (2, 1);
        assert!(refused(&[], Some(later..=sooner)).contains("from 1 to 1000000 runs"));
        assert!(refused(&[], Some(0..=u64::MAX)).contains("from 1 to 1000000 runs"));
    }

    /// Goal: a watch ends the sweep, and what was not handed on is not handed on later. Method: one that
    /// says no after the first batch.
    #[test]
    fn a_watch_ends_the_sweep() {
        let sweep = Sweep::plan(&request(&[("duration", &["1ms"])], Some(1..=40))).expect("a sweep");
        let mut taken = 0;
        let mut take = |_| {
            taken += 1;
            Ok::<(), AnswerError>(())
        };
        let ended = sweep.run(1, &|at| at.done < 20, &mut take);
        assert!(matches!(ended, Err(AnswerError::Interrupted)), "{ended:?}");
        assert_eq!(taken, 16);
    }
}
