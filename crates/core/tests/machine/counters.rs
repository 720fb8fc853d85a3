//! What a machine counts, and what it says of a CPU without a lock.

use crate::scene::{Scene, ms};
use crate::world::cpu;
use quietcore_core::{
    Actions, ArmRefusal, At, BaseKind, Cancelled, Context, Counters, MarkOutcome, TimerOptions,
};

fn counters(scene: &Scene, index: usize) -> Counters {
    scene.machine.counters(cpu(index))
}

/// Goal: each period that began is counted once more, by how it ended, on the CPU that had it; the one that
/// ran for another is told apart. Method: on CPU 2, one timer is cancelled, one armed twice and run by
/// CPU 0, one pinned and run at home, one arms itself while it runs and is due before it ends.
#[test]
fn what_happened_to_timers_is_counted() {
    let mut scene = Scene::of(3);
    let cancelled = scene.arm_new((1, 5), 2, 0);
    let by = Context::on(cpu(2), ms(0));
    assert_eq!(scene.machine.cancel(cancelled, by), Ok(true));
    let moved = scene.arm_new((2, 5), 2, 0);
    let _ = scene.arm(moved, 6, by);
    scene.idle(2, 0);
    assert_eq!(scene.turn(0, 8), [2]);
    scene.machine.exit_idle(cpu(2), ms(8));
    scene.arm_pinned((3, 10), 2, 8);
    assert_eq!(scene.turn(2, 12), [3]);
    let again = scene.arm_new((4, 13), 2, 12);
    let expired = scene.start(2, 15);
    let _ = scene.arm(again, 16, Context::on(cpu(2), ms(15)));
    assert_eq!(scene.turn(0, 18), []);
    assert_eq!(scene.turn(2, 18), [], "it is due, and runs still");
    scene.finish(2, expired, 18);
    assert_eq!(scene.rest(2, 18), [4]);
    let found = counters(&scene, 2);
    assert_eq!((found.armed, found.superseded, found.cancelled), (6, 1, 1), "{found:?}");
    assert_eq!((found.ran_here, found.ran_elsewhere, found.waited), (3, 1, 1), "{found:?}");
    let begun_and_ended =
        (found.armed, found.superseded + found.cancelled + found.ran_here + found.ran_elsewhere);
    assert_eq!(begun_and_ended, (6, 6), "nothing is pending");
    assert_eq!(counters(&scene, 0), Counters::default(), "what it ran was not its own");
}

/// Goal: marks are counted for the CPU that was marked, with those that were put off and those that were
/// false; a token that was taken back, too. Method: one mark that finds a lock held, one that is true and
/// takes a token, one that is false, and an absence that the CPU announced itself.
#[test]
fn marks_are_counted_for_whom_they_are_made() {
    let mut scene = Scene::of(2);
    let lock = scene.lock_of(1, BaseKind::Guest);
    assert_eq!(lock.while_busy(|| scene.mark(1)), MarkOutcome::Busy);
    let found = counters(&scene, 1);
    assert_eq!((found.busy_marks, found.marks, found.false_marks), (1, 1, 0), "its duties were taken");
    assert!(scene.machine.return_from_absence(cpu(1), ms(20)), "after 20 ms: it was true");
    scene.arm_new((1, 25), 1, 20);
    let expired = scene.start(1, 30);
    assert_eq!(scene.mark(1), MarkOutcome::Marked);
    scene.finish(1, expired, 31);
    assert!(scene.machine.return_from_absence(cpu(1), ms(31)), "it was silent for 1 ms");
    scene.machine.go_absent(cpu(1), ms(60), &mut scene.actions);
    assert!(scene.machine.return_from_absence(cpu(1), ms(60)), "nobody had marked it");
    let found = counters(&scene, 1);
    assert_eq!((found.marks, found.false_marks, found.busy_marks, found.revoked), (2, 1, 1, 1), "{found:?}");
    assert_eq!(scene.machine.busy_marks(), 1);
    assert_eq!(counters(&scene, 0), Counters::default());
}

/// Goal: a mark that going idle ended is not held against the CPU when it later blocks of its own accord.
/// Method: marked, then asleep and awake without a turn, then absent by itself for no time.
#[test]
fn a_mark_that_idling_ended_is_not_false_later() {
    let mut scene = Scene::of(2);
    assert_eq!(scene.mark(1), MarkOutcome::Marked);
    scene.machine.exit_idle(cpu(1), ms(1));
    scene.machine.go_absent(cpu(1), ms(2), &mut scene.actions);
    assert!(scene.machine.return_from_absence(cpu(1), ms(2)));
    let found = counters(&scene, 1);
    assert_eq!((found.marks, found.false_marks), (1, 0));
}

/// Goal: what a CPU may sleep until is known without a lock: pinned timers, its own and those of strangers,
/// but none that wakes no CPU; what others may run is told apart. Method: one of each, the latest first.
#[test]
fn the_next_event_of_a_cpu() {
    let mut scene = Scene::of(2);
    let context = Context::on(cpu(1), ms(0));
    let mut arm = |options, context, at| {
        let timer = scene.add(options, 0);
        let _ = scene.arm(timer, at, context);
        let machine = &scene.machine;
        let tick = |next: Option<quietcore_core::Nanos>| next.map(|next| next.0 / ms(1).0);
        (tick(machine.next_event(cpu(1))), tick(machine.next_global(cpu(1))))
    };
    assert_eq!(arm(TimerOptions::new().deferrable(), context, 1), (None, None));
    assert_eq!(arm(TimerOptions::new(), context, 40), (Some(41), Some(41)));
    assert_eq!(
        arm(TimerOptions::new(), Context::near(cpu(1), ms(0)), 30),
        (Some(31), Some(31)),
        "a stranger's"
    );
    assert_eq!(arm(TimerOptions::new().pinned(), context, 20), (Some(21), Some(31)));
    assert_eq!(scene.machine.next_event(cpu(0)), None);
}

/// Goal: a cancel that must not overlook a run says so and does nothing; a shutdown does its work all the
/// same, and the run's end is seen. Method: armed again while it runs, of both kinds.
#[test]
fn a_cancel_that_finds_a_run() {
    let mut scene = Scene::of(1);
    let timer = scene.arm_new((1, 5), 0, 0);
    let expired = scene.start(0, 8);
    let context = Context::on(cpu(0), ms(8));
    let _ = scene.arm(timer, 20, context);
    let machine = std::rc::Rc::clone(&scene.machine);
    assert_eq!(machine.cancel_unless_running(timer, context), Ok(Cancelled::Running));
    assert_eq!(machine.next_event(cpu(0)).map(|next| next.0 / ms(1).0), Some(21), "it is still armed");
    assert_eq!(machine.shutdown(timer, context), Ok(true));
    assert_eq!(machine.is_running(timer, context), Ok(true));
    scene.finish(0, expired, 8);
    assert_eq!(machine.is_running(timer, context), Ok(false));
    assert_eq!(machine.cancel_unless_running(timer, context), Ok(Cancelled::Idle));
    let refused = machine.arm(timer, ms(9), context, &mut Actions::new(1));
    assert_eq!(refused, Err(ArmRefusal::ShutDown));
    machine.check();
}

/// Goal: the end of a detached run stores the heartbeat and asks for nothing, also of a CPU that was isolated
/// meanwhile; both calls that hand out take something of each timer, through the turn's pull, too. Method:
/// CPU 0 pulls three detached timers of CPU 2, which is isolated in between.
#[test]
fn a_turn_takes_something_of_every_detached_timer() {
    let mut scene = Scene::of(3);
    for payload in 1..=3 {
        let timer = scene.add(TimerOptions::new().detached(), payload);
        let _ = scene.arm(timer, 5, Context::on(cpu(2), ms(0)));
    }
    scene.idle(2, 0);
    let machine = std::rc::Rc::clone(&scene.machine);
    machine.begin_turn(&mut scene.turns[0], ms(8));
    let mut taken = Vec::new();
    let mut take = |payload: u32, _| taken.push(payload);
    let at = At { now: ms(8), actions: &mut scene.actions };
    let (first, ()) = machine.next_expired_with(&mut scene.turns[0], at, &mut take).expect("pulled");
    assert!(first.is_detached() && first.base().cpu == cpu(2));
    let at = At { now: ms(8), actions: &mut scene.actions };
    let next = machine.finish_and_next_with(&mut scene.turns[0], first, at, &mut take);
    let (second, ()) = next.expect("pulled");
    scene.isolate("2", 8);
    scene.finish(0, second, 8);
    let rest = scene.rest(0, 8);
    assert_eq!((taken.len(), rest.len()), (2, 0), "the token was taken back");
    let mut all = taken;
    for index in [0, 1, 2] {
        all.extend(scene.turn(index, 10));
    }
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3]);
    machine.check();
}
