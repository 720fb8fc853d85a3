//! Runs a scenario: by a script, or in every order.

use crate::script::{Line, Script};
use crate::search::Search;
use crate::stage::{Crew, Ended, Point, Policy, text_of};
use crate::world::World;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a virtual CPU does.
pub(crate) type Part = fn(&World);

/// Parts that are played at the same time.
pub(crate) struct Scenario<'a> {
    pub(crate) make: fn() -> World,
    pub(crate) parts: &'a [Part],
    pub(crate) preemptions: usize,
    /// What is to be told apart at the end.
    pub(crate) outcome: fn(&World) -> String,
}

/// What a search found: how many runs, and which ends.
pub(crate) struct Found {
    pub(crate) runs: usize,
    outcomes: BTreeSet<String>,
}

impl Found {
    /// Exactly these ends were reached, so that a search cannot pass by exploring nothing.
    pub(crate) fn expect_outcomes(&self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(self.outcomes, expected, "the ends that {} runs reached", self.runs);
    }
}

/// Plays the parts in all orders; panics at the first that ends wrong, with the order.
pub(crate) fn explore(scenario: &Scenario<'_>) -> Found {
    let crew = Crew::new(scenario.parts.len());
    let mut search = Some(Search::new(scenario.preemptions));
    let mut found = Found { runs: 0, outcomes: BTreeSet::new() };
    while let Some(policy) = search {
        let world = Arc::new((scenario.make)());
        let ended = run(&crew, &world, scenario.parts, Box::new(policy));
        expect_good(&world, &ended, found.runs);
        found.runs += 1;
        found.outcomes.insert((scenario.outcome)(&world));
        expect_served(&world, &ended);
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

/// The same, where the ends are told apart by who was told what.
pub(crate) fn all(make: fn() -> World, parts: &[Part], preemptions: usize) -> Found {
    explore(&Scenario { make, parts, preemptions, outcome: told })
}

/// Plays the parts as the lines say, then each to its end; returns the world at rest.
pub(crate) fn script(world: World, parts: &[Part], lines: &[Line]) -> Arc<World> {
    let crew = Crew::new(parts.len());
    let world = Arc::new(world);
    let ended = run(&crew, &world, parts, Box::new(Script::new(lines)));
    expect_good(&world, &ended, 0);
    world
}

fn run(crew: &Crew, world: &Arc<World>, parts: &[Part], policy: Box<dyn Policy>) -> Ended {
    let bind = |&part: &Part| -> Arc<dyn Fn() + Send + Sync> {
        let world = Arc::clone(world);
        Arc::new(move || part(&world))
    };
    crew.run(parts.iter().map(bind).collect(), policy)
}

fn expect_good(world: &World, ended: &Ended, number: usize) {
    let result = match &ended.failure {
        Some(failure) => Err(failure.clone()),
        None => catch_unwind(AssertUnwindSafe(|| {
            world.expect_rest();
            world.expect_lock_order(&ended.nested);
        }))
        .map_err(|panic| text_of(&*panic)),
    };
    if let Err(problem) = result {
        panic!("run {number}: {problem}\n{}", story(world, ended));
    }
}

/// No moment of a test is later.
const LAST: u64 = 100;

fn expect_served(world: &World, ended: &Ended) {
    let result = catch_unwind(AssertUnwindSafe(|| world.expect_all_run(LAST)));
    if let Err(panic) = result {
        panic!("{}\n{}", text_of(&*panic), story(world, ended));
    }
}

/// What happened, a line per step.
fn story(world: &World, ended: &Ended) -> String {
    let name = |point: &Point| match point {
        Point::Lock(lock) => format!("before {}", world.lock_name(*lock)),
        Point::Blocked(lock) => format!("waits for {}", world.lock_name(*lock)),
        other => format!("{other:?}"),
    };
    let steps: Vec<_> = ended.trace.iter().map(|(cpu, point)| format!("  {cpu}: {}", name(point))).collect();
    steps.join("\n")
}
