//! The bugs that the kernel's hierarchy had, by name, each as the interleaving that showed it.
//!
//! Numbers are those of the table in `src/tmigr/README.md`, which also says how each fix is undone to see
//! that its test fails. CPUs 0 and 1 are in one group, 8 and 9 (9 and 10 with three levels) in another.

use crate::play::{Part, Scenario, Subject, all, explore, script};
use crate::script::Mover;
use crate::search::Search;
use crate::world::{World, two_groups};
use quietcore_core::script::Site;
use quietcore_core::tmigr::{ChildMask, CpuState, GroupId, Hierarchy, Pulled, Snapshot};
use quietcore_core::{CpuId, Nanos, SequentialLock};

/// Goal (1): the forecast knows a sibling's timer that was not carried up again. Method: T0 < T1 in one group
/// and T2 in another; the CPU of T0 wakes up and pulls, so the root sees only T2.
#[test]
fn quick_check_late_forecast() {
    let world = World::two_groups();
    for (cpu, expires) in [(0, 10), (1, 20), (8, 30)] {
        world.arm(cpu, expires);
    }
    [9, 8, 1, 0].into_iter().for_each(|cpu| world.park(cpu));
    world.wake(0);
    world.run_own(0, 10);
    world.look(0, 10);
    assert_eq!(world.forecast(0), Some(20), "CPU 1's timer is in the group, not at the root");
    world.park(0);
    assert_eq!(world.told(0), Some(20));
}

/// Goal (2): who goes idle without a timer of its own wakes up for a sibling's. Method: one, two and three
/// levels; and a sibling's timer behind one that goes away.
#[test]
fn deactivate_ignored_own_event_hides_sibling() {
    for world in [World::one_group(2), World::two_groups(), World::three_levels()] {
        world.arm(1, 10);
        let others = [10, 9, 8].into_iter().filter(|&cpu| world.book_or_none(cpu) == Some(CpuState::Awake));
        others.for_each(|cpu| world.park(cpu));
        world.park(1);
        world.park(0);
        assert_eq!(world.told(0), Some(10), "the last one wakes up for CPU 1");
        world.expect_rest();
    }
    let world = World::two_groups();
    world.arm(0, 10);
    world.arm(1, 20);
    [8, 9, 1].into_iter().for_each(|cpu| world.park(cpu));
    world.run_own(0, 10);
    world.park(0);
    assert_eq!(world.told(0), Some(20), "T1 < T2 and only T2 is left");
}

/// Goal (3): a CPU that was told to wake up for another's timer, which is gone by then, is not told so again.
/// Method: the other wakes up first and runs it; then the told one looks.
#[test]
fn ghost_wakeup_storm() {
    let world = two_groups(&[8, 9]);
    world.arm(1, 5);
    world.park(1);
    world.park(0);
    assert_eq!(world.told(0), Some(5));
    world.wake(1);
    world.run_own(1, 5);
    assert_eq!(world.look(0, 5), [0; 0], "CPU 1 is the migrator now");
    assert_eq!(world.told(0), None, "CPU 0 would wake up for ever");
    world.park(1);
    world.expect_rest();
}

/// Goal (5): two CPUs of a group with the same expiry are both pulled. Method: three levels; the migrator is
/// in another node, so all it sees is the group's event.
#[test]
fn stale_cpu_on_equal_expiry() {
    let world = World::three_levels();
    world.arm(0, 10);
    world.arm(1, 10);
    [0, 1, 10].into_iter().for_each(|cpu| world.park(cpu));
    assert_eq!(world.look(9, 10), [0, 1]);
    assert_eq!((world.ran(0), world.ran(1)), (vec![(10, 9)], vec![(10, 9)]));
}

/// Goal (7): a root that appears while a walk asks for the parent is either seen or not, not half. Method:
/// all orders of the last CPU going idle and growth without a CPU that could help, three preemptions.
#[test]
fn parent_pointer_read_twice() {
    let make = || {
        let world = World::two_nodes(8, &[0]);
        world.arm(0, 10);
        world
    };
    let found = all(make, &[|world| world.park(0), |world| world.connect(8)], 3);
    found.assert_more_than(300).assert_outcomes(&["0:10 alarm None"]);
}

fn root_word(world: &World) -> Snapshot {
    let root = world.tree.tree().root().expect("there is one");
    world.tree.group_state(root).expect("it is there")
}

/// One group that grows; CPU 0 is the last one awake and has a timer.
fn last_one_awake() -> World {
    World::two_nodes(8, &[0, 1]).with_timers(&[0, 1], &[1])
}

/// Goal (8): growth does not make the old root active when it was active only a moment ago. Method: the last
/// one goes idle and walks through between growth's look at the old root and its write to the new one.
#[test]
fn root_growth_false_active() {
    let parts: [Part; 2] = [|world| world.park(0), |world| world.connect(8)];
    let (idler, grower) = (Mover(0), Mover(1));
    let lines = [grower.until(Site::BeforeCas), idler.to_end(), grower.to_end()];
    let world = script(last_one_awake(), &parts, &lines);
    let word = root_word(&world);
    assert!(!word.is_active(), "everybody is idle, the root is {word}");
    all(last_one_awake, &parts, 3).assert_more_than(300);
}

/// Goal (16): a CPU that is unavailable is no group's migrator, however busy it is. Method: housekeeping CPUs
/// 0 and 8, the others unavailable and waking up and going idle at will; the housekeepers sleep and are told.
#[test]
fn isolated_cpu_becomes_permanent_migrator() {
    let world = two_groups(&[]);
    for isolated in [1, 9] {
        world.set_unavailable(isolated);
    }
    world.park(8);
    world.park(0);
    for isolated in [1, 9] {
        world.wake(isolated);
        assert_eq!(world.look(isolated, 50), [0; 0], "CPU {isolated} pulls");
        world.park(isolated);
        world.wake(isolated);
    }
    let words =
        (0..3).filter_map(|group| world.tree.group_state(world.tree.tree().groups()[group].parent?.0));
    assert!(words.into_iter().all(|word| word.migrator().is_none()), "an isolated CPU is a migrator");
    assert_eq!(world.told(0), Some(10));
    world.expect_rest();
}

/// Goal (17): joining, leaving and growth take their locks in one order, whatever they meet. Method: all
/// orders of the three, two preemptions; the order is asserted after each run.
#[test]
fn availability_lock_order() {
    let make = || World::two_nodes(8, &[0, 1]);
    let parts: [Part; 3] = [
        |world| world.set_unavailable(1),
        |world| world.connect(8),
        |world| {
            world.set_unavailable(0);
            world.set_available(0);
        },
    ];
    let outcome = |world: &World| format!("{:?} {:?}", world.cpu_state(0), world.cpu_state(1));
    explore(&Scenario { make: &make, parts: &parts, outcome }, Search::new(2))
        .assert_more_than(1000)
        .assert_outcomes(&["Awake Unavailable"]);
}

/// Goal (18): the old root is idle, or was made idle a moment ago, by a walker that saw no parent; growth
/// gives the new root what is, not what the CPU that grows it would have. Method: all orders of one that goes
/// idle and growth, three preemptions; then of one that goes idle, one that wakes up, and growth, two
/// preemptions.
#[test]
fn root_growth_activates_inactive_root() {
    let parts: [Part; 2] = [|world| world.park(0), |world| world.connect(8)];
    let outcome = |world: &World| {
        let word = root_word(world);
        assert!(!word.is_active(), "everybody is idle, the root is {word}");
        format!("{:?}", world.told(0))
    };
    explore(&Scenario { make: &last_one_awake, parts: &parts, outcome }, Search::new(3))
        .assert_more_than(300);

    let parts: [Part; 3] = [|world| world.park(0), |world| world.wake(1), |world| world.connect(8)];
    let outcome = |world: &World| {
        let child = ChildMask::new(0).expect("0 is below 8");
        assert_eq!(root_word(world).migrator(), Some(child), "CPU 1 is awake below the old root");
        format!("{:?}", world.told(0))
    };
    explore(&Scenario { make: &last_one_awake, parts: &parts, outcome }, Search::new(2))
        .assert_more_than(1000);
}

/// Goal (19): a CPU that wakes up for its own timer has it expired, and a pull that changes nothing ends.
/// Method: a parked CPU with a timer of its own; a pull that says that it published and did not.
#[test]
fn self_remote_livelock() {
    let world = World::one_group(1);
    world.arm(0, 10);
    world.park(0);
    assert_eq!(world.look(0, 10), [0]);
    assert_eq!(world.ran(0), [(10, 0)]);

    let tree: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    let cpu = CpuId::default();
    tree.connect(cpu);
    assert_eq!(tree.set_available(cpu, None), None);
    assert_eq!(tree.deactivate(cpu, Some(Nanos(10))), Some(Nanos(10)));
    let mut pulls = 0;
    tree.handle_remote(cpu, Nanos(10), &mut |_| {
        pulls += 1;
        assert!(pulls < 10, "the same event is pulled for ever");
        Pulled::Published
    });
    assert_eq!((pulls, tree.wakeup(cpu)), (1, Some(Nanos(10))), "it is tried again the next time");
    assert_eq!(tree.group_state(GroupId::default()).map(|word| word.migrator()), Some(None));
}

/// Goal (22): a sleeper whose timeout is run elsewhere, and who then wakes up, arms and sleeps again, is
/// served each time. Method: 50 rounds on three levels; each timer runs once, on the CPU that is awake.
#[test]
fn ping_pong() {
    let world = World::three_levels();
    [1, 10, 0].into_iter().for_each(|cpu| world.park(cpu));
    for round in 0..50 {
        world.wake(0);
        world.arm(0, round * 10 + 5);
        world.park(0);
        assert_eq!(world.told(0), None, "CPU 9 is awake");
        assert_eq!(world.look(9, round * 10 + 5), [0], "round {round}");
        world.expect_rest();
    }
    let ran: Vec<_> = (0..50).map(|round| (round * 10 + 5, 9)).collect();
    assert_eq!(world.ran(0), ran);
}

/// Goal (race S): who goes idle late does not clear the bit of a group that is active again. Method: CPU 0
/// stalls before it writes to the parent, CPU 1 wakes up meanwhile.
#[test]
fn race_s_late_idle_cpu() {
    let parts: [Part; 2] = [|world| world.park(0), |world| world.wake(1)];
    let (idler, waker) = (Mover(0), Mover(1));
    let lines = [idler.until_nth(Site::BeforeCas, 2), waker.to_end(), idler.to_end()];
    let world = script(two_groups(&[1, 8, 9]), &parts, &lines);
    let word = root_word(&world);
    assert!(word.is_active(), "CPU 1 is awake, the root is {word}");
}

/// Goal (race L): the last one goes idle and finds no event, while one is queued by a walker that took it for
/// awake. Method: the armer stalls before the group's lock, and before the root's.
#[test]
fn race_l_last_idle_against_new_timer() {
    let parts: [Part; 2] = [|world| world.park(0), |world| world.arm(1, 3)];
    let (idler, armer) = (Mover(0), Mover(1));
    for nth in [1, 2] {
        let make = || two_groups(&[1, 8, 9]);
        let lines = [armer.until(Site::BeforeGroupLock), idler.until_nth(Site::BeforeGroupLock, nth)];
        let rest = [armer.to_end(), idler.to_end()];
        let world = script(make(), &parts, &[&lines[..], &rest[..]].concat());
        let first = world.told(0).into_iter().chain(world.alarm()).min();
        assert_eq!(first, Some(3), "somebody wakes up for CPU 1's timer");
    }
    let one = || {
        let world = World::one_group(2);
        world.park(1);
        world
    };
    all(one, &parts, 3).assert_more_than(50);
}
