//! Runs a scenario: by a script, or in every order.

use crate::lock::LockNumbers;
use crate::script::{Line, Script};
use crate::search::Search;
use crate::stage::{Crew, Ended, Point, Policy, text_of};
use crate::world::World;
use quietcore_core::tmigr::Tree;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What parts are played on.
pub(crate) trait Subject: Send + Sync + 'static {
    /// Its locks, and the tree whose groups some of them belong to.
    fn locks(&self) -> (LockNumbers, Tree);
    /// What must hold when no walk is under way.
    fn expect_rest(&self);
    /// Time goes to the end; what must have happened by then. A thread may have stopped for ever.
    fn expect_served(&self);
}

/// What a virtual CPU does.
pub(crate) type Part<W = World> = fn(&W);

/// Parts that are played at the same time.
pub(crate) struct Scenario<'a, W = World> {
    pub(crate) make: &'a dyn Fn() -> W,
    pub(crate) parts: &'a [Part<W>],
    /// What is to be told apart at the end.
    pub(crate) outcome: fn(&W) -> String,
}

/// What a search found: how many runs, and which ends.
pub(crate) struct Found {
    runs: usize,
    outcomes: BTreeSet<String>,
}

impl Found {
    pub(crate) fn assert_more_than(&self, runs: usize) -> &Self {
        assert!(self.runs > runs, "{} runs", self.runs);
        self
    }

    /// Exactly these ends were reached, so that a search cannot pass by exploring nothing.
    pub(crate) fn assert_outcomes(&self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(self.outcomes, expected, "the ends that {} runs reached", self.runs);
    }
}

/// Plays the parts in all orders of the search; panics at the first that ends wrong, with the order.
pub(crate) fn explore<W: Subject>(scenario: &Scenario<'_, W>, search: Search) -> Found {
    let crew = Crew::new(scenario.parts.len());
    let mut search = Some(search);
    let mut found = Found { runs: 0, outcomes: BTreeSet::new() };
    while let Some(policy) = search {
        let world = Arc::new((scenario.make)());
        let ended = run(&crew, &world, scenario.parts, Box::new(policy));
        expect_good(&*world, &ended, found.runs);
        found.runs += 1;
        found.outcomes.insert((scenario.outcome)(&world));
        expect_served(&*world, &ended, found.runs);
        search = ended.policy.into_search().and_then(Search::advance);
    }
    println!("explored {} orders, {} ends: {:?}", found.runs, found.outcomes.len(), found.outcomes);
    found
}

/// What all were told, and the alarm.
fn told(world: &World) -> String {
    let told: Vec<_> = (0..16).filter_map(|cpu| Some(format!("{cpu}:{}", world.told(cpu)?))).collect();
    format!("{} alarm {:?}", told.join(" "), world.alarm())
}

/// All orders with so many preemptions, where the ends are told apart by who was told what.
pub(crate) fn all(make: impl Fn() -> World, parts: &[Part], preemptions: usize) -> Found {
    explore(&Scenario { make: &make, parts, outcome: told }, Search::new(preemptions))
}

/// Plays the parts as the lines say, then each to its end; returns the world at rest.
pub(crate) fn script<W: Subject>(world: W, parts: &[Part<W>], lines: &[Line]) -> Arc<W> {
    let crew = Crew::new(parts.len());
    let world = Arc::new(world);
    let ended = run(&crew, &world, parts, Box::new(Script::new(lines)));
    expect_good(&*world, &ended, 0);
    world
}

/// Plays the parts as `policy` says; then the world is at rest, and time goes to the end. Returns how many
/// points virtual CPU 0 passed.
pub(crate) fn play<W: Subject>(crew: &Crew, world: W, parts: &[Part<W>], policy: Box<dyn Policy>) -> usize {
    let world = Arc::new(world);
    let ended = run(crew, &world, parts, policy);
    expect_good(&*world, &ended, 0);
    expect_served(&*world, &ended, 0);
    ended.trace.iter().filter(|(cpu, point)| *cpu == 0 && *point != Point::Done).count()
}

fn run<W: Subject>(crew: &Crew, world: &Arc<W>, parts: &[Part<W>], policy: Box<dyn Policy>) -> Ended {
    let bind = |&part: &Part<W>| -> Arc<dyn Fn() + Send + Sync> {
        let world = Arc::clone(world);
        Arc::new(move || part(&world))
    };
    crew.run(parts.iter().map(bind).collect(), policy)
}

fn expect_good(world: &impl Subject, ended: &Ended, number: usize) {
    let result = match &ended.failure {
        Some(failure) => Err(failure.clone()),
        None => catch_unwind(AssertUnwindSafe(|| {
            if !ended.points.contains(&Point::Frozen) {
                world.expect_rest();
            }
            expect_lock_order(world, &ended.nested);
        }))
        .map_err(|panic| text_of(&*panic)),
    };
    if let Err(problem) = result {
        panic!("run {number}: {problem}\n{}", story(world, ended));
    }
}

/// Locks nest in one order.
fn expect_lock_order(world: &impl Subject, nested: &BTreeSet<(usize, usize)>) {
    let (locks, tree) = world.locks();
    for &(outer, inner) in nested {
        let is_in_order = locks.rank(outer, &tree) < locks.rank(inner, &tree);
        assert!(is_in_order, "{} was taken while {} was held", locks.name(inner), locks.name(outer));
    }
}

fn expect_served(world: &impl Subject, ended: &Ended, number: usize) {
    let result = catch_unwind(AssertUnwindSafe(|| world.expect_served()));
    if let Err(panic) = result {
        panic!("run {number}: {}\n{}", text_of(&*panic), story(world, ended));
    }
}

/// What happened, a line per step.
fn story(world: &impl Subject, ended: &Ended) -> String {
    let (locks, _) = world.locks();
    let name = |point: &Point| match point {
        Point::Lock(lock) => format!("before {}", locks.name(*lock)),
        Point::Blocked(lock) => format!("waits for {}", locks.name(*lock)),
        Point::Took(lock) => format!("took {}", locks.name(*lock)),
        Point::GaveBack(lock) => format!("gave back {}", locks.name(*lock)),
        other => format!("{other:?}"),
    };
    let steps: Vec<_> = ended.trace.iter().map(|(cpu, point)| format!("  {cpu}: {}", name(point))).collect();
    format!("{}\n  at the end {:?}", steps.join("\n"), ended.points)
}
