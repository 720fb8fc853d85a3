//! Marks: they end by themselves, they wait for no lock, and what a stalled CPU has is run by others.

use crate::lock::was_interrupted;
use crate::scene::{Scene, ms};
use crate::world::cpu;
use quietcore_core::tmigr::CpuState;
use quietcore_core::{BaseKind, Context, Expiry, IdleDecision, MarkOutcome, TimerOptions};
use std::rc::Rc;

/// Goal: a CPU that was marked, and turns, is awake again, though it has nothing to run. Method: marked
/// without need; its tick says that a turn is wanted, and that is enough.
#[test]
fn a_marked_cpu_returns_in_its_tick() {
    let mut scene = Scene::of(2);
    assert_eq!(scene.mark(1), MarkOutcome::Marked);
    scene.arm_new((1, 20), 0, 1);
    scene.idle(0, 1);
    assert_eq!(scene.cpu_state(1), CpuState::Absent);
    assert!(scene.machine.handle_tick(cpu(1), ms(2)), "it is to look");
    let (_, ran) = scene.ticks(1, 2..50);
    assert_eq!((scene.cpu_state(1), ran), (CpuState::Awake, vec![1]), "it looks after CPU 0, too");
    scene.machine.check();
}

/// Goal: a CPU that looks after no other takes a turn exactly if something is due on it or a mark waits for
/// its return, and is not asked for the time while nothing is armed. Method: CPU 1, isolated, with a timer of
/// each kind, before it is due and then; marked; both.
#[test]
fn an_isolated_cpu_turns_only_for_something() {
    for is_marked in [false, true] {
        let mut scene = Scene::of(2);
        if is_marked {
            assert_eq!(scene.mark(1), MarkOutcome::Marked);
        }
        let _ = scene.isolate("1", 1);
        let has_nothing = |scene: &Scene, now| scene.machine.has_nothing(cpu(1), || now);
        assert_eq!(scene.machine.has_nothing(cpu(1), || unreachable!("nothing is armed")), !is_marked);
        for options in [TimerOptions::new().pinned(), TimerOptions::new(), TimerOptions::new().deferrable()] {
            let timer = scene.add(options, 1);
            let _ = scene.arm(timer, 20, Context::on(cpu(1), ms(1)));
            assert_eq!(has_nothing(&scene, ms(20)), !is_marked, "{options:?}, before it is due");
            assert!(!has_nothing(&scene, ms(21)), "{options:?}");
            let _ = scene.machine.cancel(timer, Context::on(cpu(1), ms(1)));
            let _ = scene.machine.renewed_next_event(cpu(1));
        }
    }
}

/// Goal: each CPU is watched by another one, in a ring: one that does not turn is found though all others do,
/// whichever it is. Method: of four, one has a timer and never turns.
#[test]
fn each_is_watched_by_another() {
    for silent in 0..4 {
        let mut scene = Scene::of(4);
        scene.arm_new((1, 5), silent, 0);
        let (mut marked, mut ran) = (0, Vec::new());
        for now in 1..30 {
            for index in (0..4).filter(|index| *index != silent) {
                let (more, run) = scene.tick(index, now);
                marked += more;
                ran.extend(run);
            }
        }
        assert_eq!((marked, ran), (1, vec![1]), "CPU {silent}");
        assert_eq!(scene.cpu_state(silent), CpuState::Absent);
    }
}

/// Goal: a CPU that is the only one awake in its part of the tree is watched from another part, however high
/// the tree. Method: of two and of three levels; all sleep but CPU 0 and a far one, which has a timer and
/// never turns.
#[test]
fn each_is_watched_across_the_tree() {
    for (count, silent) in [(16, 9), (130, 73), (130, 129)] {
        let mut scene = Scene::of(count);
        scene.arm_new((1, 5), silent, 0);
        (1..count).filter(|index| *index != silent).for_each(|index| scene.idle(index, 0));
        let (mut marked, mut ran) = (0, Vec::new());
        for now in 1..30 {
            let (more, run) = scene.tick(0, now);
            marked += more;
            ran.extend(run);
        }
        assert_eq!((marked, ran), (1, vec![1]), "CPU {silent} of {count}");
        assert_eq!(scene.cpu_state(silent), CpuState::Absent);
    }
}

/// Goal: a mark does not outlive an idle period: an arm for that CPU kicks it. Method: a marked CPU goes
/// idle; an absent one wakes up, and goes idle.
#[test]
fn going_idle_and_waking_up_end_a_mark() {
    for is_woken in [false, true] {
        let mut scene = Scene::of(2);
        if is_woken {
            scene.machine.go_absent(cpu(1), ms(0), &mut scene.actions);
            scene.machine.exit_idle(cpu(1), ms(1));
            assert_eq!(scene.cpu_state(1), CpuState::Awake);
        } else {
            assert_eq!(scene.mark(1), MarkOutcome::Marked);
        }
        assert_eq!(scene.enter_idle(1, 1), IdleDecision::Sleep { until: None });
        assert_eq!((scene.cpu_state(1), scene.machine.is_marked(cpu(1))), (CpuState::Parked, false));
        scene.arm_pinned((1, 20), 1, 2);
        assert_eq!(scene.kicks(), [cpu(1)], "it sleeps for ever");
        scene.machine.check();
    }
}

/// Goal: an exact timer that became due while it ran on a CPU that was marked meanwhile is told at the end of
/// that run to the CPU whose base it is on, which found nothing to run before; one of ticks is left to its
/// tick, and who is not absent runs it itself. Method: CPU 0 runs a timer of CPU 1, which arms it again.
#[test]
fn an_exact_timer_that_was_due_while_it_ran_is_told() {
    for (is_exact, is_marked) in [(true, true), (true, false), (false, true)] {
        let mut scene = Scene::of(2);
        let (exact, coarse) = (scene.add_exact(TimerOptions::new(), 1), scene.add(TimerOptions::new(), 1));
        let arm = |scene: &mut Scene, at, context| match is_exact {
            true => scene.arm_as(exact, Expiry::at(ms(at).0), context),
            false => scene.arm(coarse, at, context),
        };
        let _ = arm(&mut scene, 3, Context::near(cpu(1), ms(0)));
        scene.idle(1, 0);
        let expired = scene.start(0, 7);
        scene.machine.exit_idle(cpu(1), ms(7));
        let _ = arm(&mut scene, 7, Context::near(cpu(1), ms(7)));
        if is_marked {
            assert_eq!(scene.mark(0), MarkOutcome::Marked);
        }
        assert_eq!(scene.turn(1, 8), [], "it runs");
        let _ = scene.kicks();
        let next = scene.finish_and_next(0, expired, 8);
        assert_eq!(next.map(|expired| expired.payload()), (!is_marked).then_some(1));
        assert_eq!(scene.kicks(), if is_exact && is_marked { vec![cpu(1)] } else { vec![] });
    }
}

/// Goal: a timer that is due and waited for the end of its run goes along when its CPU is isolated or leaves.
/// Method: as above; when the run has ended no CPU has collected it.
#[test]
fn what_waited_for_a_run_goes_along() {
    for goes_offline in [false, true] {
        let mut scene = Scene::of(3);
        let timer = scene.add(TimerOptions::new(), 1);
        let _ = scene.arm(timer, 3, Context::near(cpu(1), ms(0)));
        scene.idle(1, 0);
        let expired = scene.start(0, 7);
        scene.machine.exit_idle(cpu(1), ms(7));
        let _ = scene.arm(timer, 7, Context::near(cpu(1), ms(7)));
        assert_eq!(scene.mark(0), MarkOutcome::Marked);
        assert_eq!(scene.turn(1, 8), [], "it runs");
        assert!(scene.finish_and_next(0, expired, 8).is_none());
        if goes_offline {
            scene.machine.offline(cpu(1), ms(8), &mut scene.actions).expect("it is online");
        } else {
            let _ = scene.isolate("1", 8);
        }
        assert_eq!(scene.turn(2, 9), [1], "goes offline: {goes_offline}");
        scene.machine.check_at(ms(9));
    }
}

/// Goal: an absent CPU is never kicked: it returns by itself. Method: a pinned timer for one that sleeps, and
/// for one that blocks.
#[test]
fn an_absent_cpu_is_not_kicked() {
    for is_absent in [false, true] {
        let mut scene = Scene::of(2);
        if is_absent {
            scene.machine.go_absent(cpu(1), ms(0), &mut scene.actions);
        } else {
            scene.idle(1, 0);
        }
        scene.arm_pinned((1, 20), 1, 2);
        assert_eq!(scene.kicks().is_empty(), is_absent);
    }
}

/// Goal: a migrator that stalls is marked for what its group waits for, though it has no timer itself; what
/// waited is run. Method: CPU 0 looks after CPU 2 and stops; CPU 1 ticks.
#[test]
fn a_stalled_migrator_is_marked_for_its_group() {
    let mut scene = Scene::of(3);
    scene.arm_new((1, 5), 2, 0);
    scene.idle(2, 0);
    let (marked, ran) = scene.ticks(1, 1..200);
    assert_eq!((marked, ran), (1, vec![1]));
    assert_eq!(scene.cpu_state(0), CpuState::Absent);
}

/// Goal: a CPU that is the only one awake in its group is watched by the migrator of the group beside it.
/// Method: CPUs 0 and 8 are in two groups, their siblings asleep; CPU 8 stops with a timer that is overdue.
#[test]
fn a_stalled_migrator_is_marked_from_the_next_group() {
    let mut scene = Scene::of(10);
    scene.arm_new((1, 5), 8, 0);
    for index in (1..8).chain([9]) {
        scene.idle(index, 0);
    }
    let (marked, ran) = scene.ticks(0, 1..30);
    assert_eq!((marked, ran, scene.cpu_state(8)), (1, vec![1], CpuState::Absent));
}

/// Goal: what a CPU has collected and not run when it blocks is known to the others, though all of them
/// sleep. Method: CPU 0 blocks in the first of two callbacks; the alarm's kick goes to CPU 1.
#[test]
fn what_a_cpu_has_collected_is_published_when_it_blocks() {
    let mut scene = Scene::of(2);
    scene.arm_new((1, 5), 0, 0);
    scene.arm_new((2, 5), 0, 0);
    scene.idle(1, 0);
    let expired = scene.start(0, 7);
    scene.machine.go_absent(cpu(0), ms(7), &mut scene.actions);
    let alarm = scene.actions.take_alarm().expect("one is due, and no CPU is awake");
    assert!(alarm <= ms(7), "{alarm:?}");
    scene.machine.handle_alarm(ms(7), &mut scene.actions);
    assert_eq!(scene.kicks(), [cpu(1)]);
    scene.machine.exit_idle(cpu(1), ms(7));
    assert_eq!(scene.turn(1, 8), [3 - expired.payload()]);
    scene.finish(0, expired, 9);
}

/// Goal: a mark never waits for a lock, not even a third CPU's. Method: CPU 1 has collected CPU 2's GUEST
/// timers; a thread that does not go on holds each of CPU 2's locks in turn.
#[test]
fn a_mark_waits_for_no_third_cpu() {
    for kind in BaseKind::ALL {
        let (mut scene, expired) = Scene::pulled_from(BaseKind::Guest);
        let lock = scene.lock_of(2, kind);
        assert_eq!(lock.while_frozen(|| scene.mark(1)), MarkOutcome::Marked, "{kind:?}");
        let (_, ran) = scene.ticks(0, 8..300);
        assert_eq!(ran, [2], "{kind:?}: CPU 0 runs what CPU 1 had collected");
        scene.finish(1, expired, 300);
    }
}

/// Goal: tokens that could not be taken back at the mark are taken back by any watcher. Method: the base that
/// CPU 1 runs is held for longer than the bound just then.
#[test]
fn tokens_of_a_busy_base_are_taken_back_later() {
    let (mut scene, expired) = Scene::pulled_from(BaseKind::Global);
    let lock = scene.lock_of(2, BaseKind::Global);
    assert_eq!(lock.while_busy(|| scene.mark(1)), MarkOutcome::Marked);
    let (_, ran) = scene.ticks(0, 8..300);
    assert_eq!(ran, [2], "CPU 1 keeps the token");
    scene.finish(1, expired, 300);
    assert_eq!(scene.rest(1, 300), [], "it has lost the token");
}

/// Goal: a CPU that is stopped inside one of its locks gives its duties away at once, and comes back. Method:
/// the migrator is stopped inside its GLOBAL base; another CPU runs what it looked after.
#[test]
fn a_busy_mark_hands_the_duties_over() {
    let mut scene = Scene::of(3);
    scene.arm_new((2, 5), 0, 0);
    scene.arm_new((1, 5), 2, 0);
    scene.idle(2, 0);
    let lock = scene.lock_of(0, BaseKind::Global);
    let (marked, ran) = lock.while_frozen(|| scene.ticks(1, 1..100));
    assert_eq!((marked, ran), (0, vec![1]), "CPU 0's own waits for its lock");
    assert!(scene.machine.busy_marks() > 0);
    let (_, ran) = scene.tick(0, 100);
    assert_eq!((scene.cpu_state(0), ran), (CpuState::Awake, vec![2]));
    scene.machine.check();
}

/// Goal: a mark of which only the duties were handed over is completed though its CPU was isolated since;
/// when it is so no more it is absent, until it turns. Method: CPU 0 is stopped inside its GLOBAL base and is
/// isolated; CPU 1 looks before, during and after that.
#[test]
fn a_mark_outlives_an_isolation() {
    let mut scene = Scene::of(2);
    scene.arm_new((1, 5), 0, 0);
    let lock = scene.lock_of(0, BaseKind::Global);
    let _ = lock.while_busy(|| scene.ticks(1, 1..10));
    assert_eq!(scene.cpu_state(0), CpuState::Absent);
    scene.isolate("0", 10);
    let _ = scene.ticks(1, 11..14);
    assert!(scene.machine.is_marked(cpu(0)), "it has not turned");
    assert!(!scene.machine.watches_stalled(cpu(1), ms(14)), "the mark is complete");
    scene.isolate("", 14);
    assert_eq!(scene.cpu_state(0), CpuState::Absent);
    scene.machine.check();
    let _ = scene.ticks(0, 15..20);
    assert_eq!((scene.cpu_state(0), scene.machine.is_marked(cpu(0))), (CpuState::Awake, false));
    scene.machine.check();
}

/// Goal: a try that fails leaves the lock to its holder. Method: a mark of a CPU each of whose locks is held
/// in turn; this lock notices who gives it back.
#[test]
fn a_failed_try_leaves_the_lock_to_its_holder() {
    for kind in [BaseKind::Local, BaseKind::Global, BaseKind::Guest] {
        let mut scene = Scene::of(2);
        let lock = scene.lock_of(1, kind);
        assert_eq!(lock.while_busy(|| scene.mark(1)), MarkOutcome::Busy, "{kind:?}");
        assert_eq!(scene.machine.busy_marks(), 1);
        assert_ne!(scene.mark(1), MarkOutcome::Busy, "{kind:?}");
    }
}

/// Goal: true stalls cost no patience: every one is noticed as soon as the first. Method: three, of 100 ms,
/// before a turn, before a look at the neighbours, or inside a callback.
#[test]
fn a_true_stall_costs_no_patience() {
    for way_back in [Stuck::BeforeTurn, Stuck::BeforeLook, Stuck::InCallback] {
        let mut scene = Scene::of(2);
        let (timer, busy) = (scene.add(TimerOptions::new(), 1), scene.add(TimerOptions::new().pinned(), 2));
        let mut noticed = Vec::new();
        for start in [0, 120, 240] {
            scene.turn(1, start);
            let context = Context::on(cpu(1), ms(start));
            let _ = scene.arm(timer, start + 2, context);
            let _ = scene.arm(busy, start, context);
            let run = (way_back == Stuck::InCallback).then(|| scene.start(1, start + 1));
            let marked = |now: &u64| scene.tick(0, start + now).0 == 1;
            noticed.push((0..100).find(marked).expect("it is noticed"));
            assert_eq!(scene.cpu_state(1), CpuState::Absent);
            run.into_iter().for_each(|run| scene.finish(1, run, start + 100));
            if way_back == Stuck::BeforeLook {
                scene.tick(1, start + 100);
            }
            scene.turn(1, start + 100);
        }
        assert!(noticed.iter().all(|at| *at == noticed[0]), "{way_back:?}: {noticed:?} ms after it began");
        assert_eq!(scene.machine.counters(cpu(1)).false_marks, 0, "{way_back:?}");
    }
}

/// Where a CPU does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stuck {
    BeforeTurn,
    BeforeLook,
    InCallback,
}

/// Goal: a CPU that is slow, not stuck, gets twice the time. Method: marked without need twice within a
/// second; it comes back at once each time. The third mark takes longer.
#[test]
fn two_false_marks_double_the_time() {
    let mut scene = Scene::of(2);
    let timer = scene.add(TimerOptions::new(), 1);
    let mut noticed = Vec::new();
    for start in [5000, 5100, 5200] {
        scene.turn(1, start);
        let _ = scene.arm(timer, start, Context::on(cpu(1), ms(start)));
        let at = (0..90).find(|now| scene.tick(0, start + now).0 == 1).expect("it is noticed");
        // It turns again in the same ms: it was not stuck.
        assert!(scene.machine.return_from_absence(cpu(1), ms(start + at)));
        noticed.push(at);
        scene.tick(0, start + at);
    }
    assert_eq!(noticed[0], noticed[1], "{noticed:?}");
    assert!(noticed[2] > noticed[1], "{noticed:?} ms after its last turn");
}

/// Goal: a CPU whose own timers take all its time does not leave those that it looks after alone. Method: a
/// timer of 2 ms that is due again when it ends, on the migrator; another CPU watches.
#[test]
fn own_load_does_not_starve_the_pull() {
    let mut scene = Scene::of(3);
    scene.arm_new((1, 5), 2, 0);
    let busy = scene.arm_pinned((2, 1), 0, 0);
    scene.idle(2, 0);
    let (mut now, mut ran) = (2, Vec::new());
    while now < 500 {
        scene.machine.begin_turn(&mut scene.turns[0], ms(now));
        while let Some(expired) = scene.next(0, now) {
            ran.push(expired.payload());
            if expired.payload() == 2 {
                ran.extend(scene.ticks(1, now + 1..now + 3).1);
                let _ = scene.arm(busy, now, Context::on(cpu(0), ms(now + 2)));
                now += 2;
            }
            scene.finish(0, expired, now);
        }
    }
    assert!(ran.contains(&1), "{} runs of its own, none of CPU 2's", ran.len());
}

/// Goal: the way back ends a mark that came while it was under way, or is told that it lost. Method: a mark
/// comes in just before the way back takes its first lock.
#[test]
fn a_mark_that_races_with_the_way_back() {
    let mut scene = Scene::of(2);
    scene.machine.go_absent(cpu(1), ms(0), &mut scene.actions);
    let machine = Rc::clone(&scene.machine);
    scene.lock_of(1, BaseKind::Local).before(move || {
        let mark = machine.mark_absent(cpu(1), &mut quietcore_core::Actions::new(2));
        assert_eq!(mark, MarkOutcome::NotAwake);
    });
    assert!(scene.machine.return_from_absence(cpu(1), ms(1)));
    assert!(was_interrupted());
    assert_eq!(scene.cpu_state(1), CpuState::Awake);
    scene.machine.check();
}

/// Goal: a CPU that turns just before its neighbour, or the sentinel, marks it is left alone: it is asked
/// again under its locks. Method: it says so before the first of them is taken.
#[test]
fn a_cpu_that_turns_just_in_time_is_not_marked() {
    for is_sentinel in [false, true] {
        let mut scene = Scene::of(2);
        for now in 1..3 {
            assert_eq!(scene.machine.watch(cpu(0), ms(now), &mut scene.actions), 0);
        }
        let machine = Rc::clone(&scene.machine);
        scene.lock_of(1, BaseKind::Local).before(move || machine.keep_alive(cpu(1), ms(3)));
        if is_sentinel {
            let _ = scene.machine.handle_silence(ms(3), &mut scene.actions);
        } else {
            assert_eq!(scene.machine.watch_before_sleep(cpu(0), ms(3), &mut scene.actions), 0);
        }
        assert!(was_interrupted(), "it was about to be marked");
        assert_eq!(scene.cpu_state(1), CpuState::Awake, "by the sentinel: {is_sentinel}");
    }
}

/// Goal: a CPU that could not be marked is looked at until it turns, or has gone to sleep, and no longer.
/// Method: its record is held for a moment; it goes to sleep with a clock reading of before.
#[test]
fn who_could_not_be_marked_is_forgotten() {
    for sleeps in [false, true] {
        let mut scene = Scene::of(2);
        for now in 1..4 {
            assert_eq!(scene.machine.watch(cpu(0), ms(now), &mut scene.actions), 0);
        }
        let lock = scene.lock_of_books(1);
        assert_eq!(lock.while_frozen(|| scene.mark(1)), MarkOutcome::Busy);
        if sleeps {
            scene.idle(1, 0);
        } else {
            scene.machine.keep_alive(cpu(1), ms(3));
        }
        assert!(scene.machine.watches_stalled(cpu(0), ms(3)), "it has not looked again");
        let _ = scene.machine.watch(cpu(0), ms(4), &mut scene.actions);
        assert!(!scene.machine.watches_stalled(cpu(0), ms(4)), "it sleeps: {sleeps}");
    }
}
