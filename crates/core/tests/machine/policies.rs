//! What each policy and rule is for, on the smallest machine that shows it.

use crate::world::{Kind, TICK, World};
use quietcore_core::place::{Exclusion, Isolation, Policy};
use quietcore_core::topology::Topology;
use quietcore_core::{CpuSet, Settings};

/// CPUs 0 to 7; 0 arms a timer and sleeps, 1 to 3 are busy.
fn run(settings: Settings) -> World {
    let mut world = World::new(Topology::builder(8).build().expect("a machine"), settings);
    (1..8).for_each(|cpu| world.online(cpu));
    let timer = world.add(Kind::Floating);
    (4..8).for_each(|cpu| world.sleep(cpu));
    world.arm(timer, 0, true, 20 * TICK);
    world.sleep(0);
    (0..40).for_each(|_| world.tick());
    assert_eq!(world.ran, 1, "the timer ran");
    world
}

fn isolated(list: &str) -> Isolation {
    let domain: CpuSet = list.parse().expect("a list");
    Isolation { domain, ..Isolation::default() }
}

/// Goal: under `Pull` the lowest busy CPU of the group runs a sleeper's timer; under `Stay` and `Push` (armed
/// while busy) its own CPU does. Method: one timer.
#[test]
fn who_runs_a_sleepers_timer() {
    let ran_on = |policy| run(Settings { policy, ..Settings::default() }).remote;
    assert_eq!(ran_on(Policy::Pull), [(0, 1)]);
    assert_eq!(ran_on(Policy::Stay), []);
    assert_eq!(ran_on(Policy::Push), []);
}

/// Goal: seed 001: without exclusion an isolated CPU pulls, with either rule a housekeeping CPU does. Method:
/// CPUs 1 and 2 are isolated, 3 is not.
#[test]
fn isolated_cpus_pull_unless_excluded() {
    let ran_on = |exclusion| {
        let settings = Settings { exclusion, isolation: isolated("1-2"), ..Settings::default() };
        run(settings).remote
    };
    assert_eq!(ran_on(Exclusion::Off), [(0, 1)]);
    assert_eq!(ran_on(Exclusion::V2), [(0, 3)]);
    assert_eq!(ran_on(Exclusion::Merged), [(0, 3)]);
}

/// Goal: isolating a CPU while it has timers moves them to a housekeeping CPU, and giving it back does no
/// harm. Method: three timers on CPU 5, one of them pinned.
#[test]
fn isolation_evacuates() {
    let mut world = World::new(Topology::builder(8).build().expect("a machine"), Settings::default());
    (1..8).for_each(|cpu| world.online(cpu));
    for kind in [Kind::Floating, Kind::Floating, Kind::Pinned] {
        let timer = world.add(kind);
        world.arm(timer, 5, true, 20 * TICK);
    }
    world.isolate(&"5".parse().expect("a list"));
    (0..30).for_each(|_| world.tick());
    world.isolate(&CpuSet::new());
    assert_eq!((world.ran, world.remote), (3, vec![(5, 0), (5, 0)]));
}

/// Goal: a deferrable timer that is long overdue runs in the first turn. Method: a CPU that was stuck.
#[test]
fn an_overdue_deferrable_timer_runs_when_its_cpu_turns() {
    let mut world = World::new(Topology::builder(1).build().expect("a machine"), Settings::default());
    world.add(Kind::Floating);
    let timer = world.add(Kind::Deferrable);
    world.arm(timer, 0, true, 28 * TICK);
    world.stick(0);
    (0..112).for_each(|_| world.tick());
    world.mark(0);
    world.unstick(0);
    world.tick();
    assert_eq!(world.ran, 1);
}

/// Goal: a pull leaves nothing behind to look for: no CPU has a reason to take a turn after it. Method: one
/// sleeper's timer, run by the next CPU.
#[test]
fn nobody_looks_for_what_was_pulled() {
    let world = run(Settings::default());
    assert_eq!(world.remote, [(0, 1)]);
    for index in 0..8 {
        let later = quietcore_core::Nanos(world.now + TICK);
        assert!(
            !world.machine.handle_tick(crate::world::cpu(index), later),
            "CPU {index} has a reason to look"
        );
    }
}
