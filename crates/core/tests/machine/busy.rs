//! A thread is stopped inside the lock of a group's events, or of a CPU's record: no call waits for it, what
//! could not be published is served all the same, and nothing of that is left when the thread goes on.

use crate::lock::BaseLock;
use crate::scene::{Scene, ms};
use crate::world::cpu;
use quietcore_core::tmigr::CpuState;
use quietcore_core::{
    BaseKind, Context, IdleDecision, MarkOutcome, Nanos, Settings, StallPolicy, TimerOptions,
};

/// CPUs below two groups: 0 to 7, and 8 and 9.
const TWO_GROUPS: usize = 10;

/// The groups of CPU 0 and of CPU 8, and the root above both.
const NEAR: usize = 0;
const FAR: usize = 1;
const ROOT: usize = 2;

/// Goal: the tests below stop where they say. Method: a CPU cannot go idle exactly when a group is busy whose
/// events it writes: its own one, also as the last one awake in it both above.
#[test]
fn locks_of_groups_are_found() {
    for (group, is_busy) in [(NEAR, true), (FAR, false), (ROOT, false)] {
        let mut scene = Scene::of(TWO_GROUPS);
        scene.arm_new((1, 50), 0, 0);
        let decision = BaseLock::of_group(group).while_frozen(|| scene.enter_idle(0, 1));
        assert_eq!(matches!(decision, IdleDecision::Stay { .. }), is_busy, "group {group}");
        scene.idle(8, 1);
        let decision = BaseLock::of_group(group).while_frozen(|| scene.enter_idle(9, 1));
        assert_eq!(matches!(decision, IdleDecision::Stay { .. }), group != NEAR, "group {group}");
    }
}

/// Goal: a CPU that cannot go idle keeps its tick, is awake for all others, and goes idle when it can; one
/// that was idle stays so, and wakes up in time for what it had to and for what is its own. Method: a busy
/// group and a busy record, the first time and again.
#[test]
fn a_cpu_that_cannot_go_idle_keeps_its_tick() {
    for is_record in [false, true] {
        let mut scene = Scene::of(2);
        let lock = if is_record { scene.lock_of_books(0) } else { BaseLock::of_group(NEAR) };
        scene.arm_new((1, 50), 0, 0);
        scene.idle(1, 0);
        assert_eq!(lock.while_busy(|| scene.enter_idle(0, 1)), IdleDecision::Stay { next: ms(2) });
        assert_eq!(scene.cpu_state(0), CpuState::Awake);
        scene.machine.check();
        assert_eq!(scene.enter_idle(0, 2), IdleDecision::Sleep { until: Some(ms(51)) });
        let _ = scene.arm_new((2, 40), 0, 3);
        assert_eq!(lock.while_busy(|| scene.enter_idle(0, 3)), IdleDecision::Stay { next: ms(4) });
        assert_eq!(scene.cpu_state(0), CpuState::Parked);
        assert_eq!(scene.machine.sleeps_until(cpu(0)), Some(ms(4)), "it wakes up by itself");
        assert_eq!(scene.enter_idle(0, 4), IdleDecision::Sleep { until: Some(ms(41)) });
        scene.machine.check();
    }
}

/// Goal: a spare that cannot stand down stays awake, and does so when it can. Method: the group is busy.
#[test]
fn a_spare_that_cannot_stand_down_stays() {
    let mut scene = Scene::of(2);
    let stand_down = |scene: &mut Scene, now| {
        let machine = std::rc::Rc::clone(&scene.machine);
        machine.stand_down(&scene.turns[1], ms(now), &mut scene.actions)
    };
    let decision = BaseLock::of_group(NEAR).while_frozen(|| stand_down(&mut scene, 1));
    assert_eq!(decision, IdleDecision::Stay { next: ms(2) });
    assert_eq!(scene.cpu_state(1), CpuState::Awake);
    assert_eq!(stand_down(&mut scene, 2), IdleDecision::Sleep { until: None });
    assert_eq!(scene.cpu_state(1), CpuState::Parked);
    assert_eq!(scene.machine.sleeps_until(cpu(1)), None, "no CPU takes it for one that overslept");
    scene.machine.check();
}

/// Goal: a spare that could not get at what is due, and stands down, is woken for it a tick after its look,
/// not at once, for as long as that lasts. Method: the timer's base is busy, or its CPU's record, from before
/// the look until after the next.
#[test]
fn what_was_busy_is_looked_at_a_tick_later() {
    for is_record in [false, true] {
        let mut scene = Scene::of(2);
        scene.arm_new((7, 5), 0, 0);
        scene.idle(0, 0);
        let machine = std::rc::Rc::clone(&scene.machine);
        let lock = if is_record { scene.lock_of_books(0) } else { scene.lock_of(0, BaseKind::Global) };
        let mut ran = Vec::new();
        for now in [6, 7] {
            ran.extend(lock.while_busy(|| scene.tick(1, now).1));
            let later = Nanos(ms(now).0 + 300_000);
            let decision = machine.stand_down(&scene.turns[1], later, &mut scene.actions);
            assert_eq!(decision, IdleDecision::Sleep { until: None });
            assert_eq!(scene.actions.take_alarm(), Some(ms(now + 1)), "busy record: {is_record}");
            machine.check_at(later);
            machine.exit_idle(cpu(1), ms(now + 1));
        }
        ran.extend(scene.tick(1, 8).1);
        assert_eq!(ran, [7]);
        machine.check_at(ms(8));
    }
}

/// Goal: what another CPU left after a spare's turn is not put off. Method: the spare's turn finds nothing
/// that is its own to pull, as a CPU that is awake is the migrator; that one is marked absent.
#[test]
fn what_was_not_busy_is_not_put_off() {
    let mut scene = Scene::of(3);
    scene.arm_new((7, 5), 0, 0);
    scene.idle(0, 0);
    assert_eq!(scene.turn(2, 6), [], "CPU 1 is the migrator");
    assert_eq!(scene.mark(1), MarkOutcome::Marked);
    let later = Nanos(ms(6).0 + 300_000);
    let decision = scene.machine.stand_down(&scene.turns[2], later, &mut scene.actions);
    assert_eq!(decision, IdleDecision::Sleep { until: None });
    assert_eq!(scene.actions.take_alarm(), Some(ms(6)));
}

/// Goal: what became due after the spare's last look is not put off with what was busy. Method: the busy
/// timer is cancelled between the look and the standing down, its CPU publishes that, and another one is due.
#[test]
fn what_became_due_after_the_last_look_is_not_put_off() {
    let mut scene = Scene::of(3);
    let busy = scene.arm_new((7, 5), 0, 0);
    scene.arm_new((8, 6), 2, 0);
    scene.idle(0, 0);
    scene.idle(2, 0);
    let base = scene.lock_of(0, BaseKind::Global);
    assert_eq!(base.while_busy(|| scene.turn_at(1, Nanos(6_300_000))), []);
    let at = Context::on(cpu(0), ms(6));
    assert_eq!(scene.machine.cancel(busy, at), Ok(true));
    scene.machine.exit_idle(cpu(0), ms(7));
    scene.idle(0, 7);
    let decision = scene.machine.stand_down(&scene.turns[1], ms(8), &mut scene.actions);
    assert_eq!(decision, IdleDecision::Sleep { until: None });
    assert_eq!(scene.actions.take_alarm(), Some(ms(7)));
}

/// Goal: when the hierarchy cannot learn of a timer the CPU that has it wakes up, if it can; it runs it, and
/// nothing is left to repair. Method: a stranger arms on a CPU that sleeps, while the group is busy.
#[test]
fn a_cpu_that_cannot_be_published_wakes_up() {
    let mut scene = Scene::of(2);
    let timer = scene.add(TimerOptions::new(), 7);
    scene.idle(1, 0);
    let armed = |scene: &mut Scene| scene.arm(timer, 20, Context::near(cpu(1), ms(1)));
    let _ = BaseLock::of_group(NEAR).while_frozen(|| armed(&mut scene));
    assert_eq!(scene.kicks(), [cpu(1)]);
    assert!(scene.machine.watches_stalled(cpu(0), ms(1)), "CPU 0 does not sleep before it is published");
    scene.machine.exit_idle(cpu(1), ms(2));
    let (_, ran) = scene.ticks(1, 2..25);
    assert_eq!(ran, [7]);
    assert!(!scene.machine.watches_stalled(cpu(0), ms(25)));
    scene.machine.check();
}

/// Goal: a timer on a CPU that is absent, of which the hierarchy cannot learn, is run by one that is awake,
/// as long as the group is busy and also when it is not any more; where none is awake an alarm is asked for;
/// it is published when that is possible. Method: a stranger arms on an absent CPU while the group, or only
/// the root above it, is busy.
#[test]
fn what_an_absent_cpu_has_is_asked_for() {
    for (group, stays_busy) in [(NEAR, true), (NEAR, false), (ROOT, true), (ROOT, false)] {
        let mut scene = Scene::of(TWO_GROUPS);
        let timer = scene.add(TimerOptions::new(), 7);
        (0..8).filter(|index| *index != 1).for_each(|index| scene.idle(index, 0));
        scene.idle(9, 0);
        scene.machine.go_absent(cpu(1), ms(0), &mut scene.actions);
        let busy = BaseLock::of_group(group);
        let _ = busy.while_frozen(|| scene.arm(timer, 20, Context::near(cpu(1), ms(1))));
        assert_eq!((scene.actions.take_alarm(), scene.kicks()), (Some(ms(21)), vec![]));
        let serve = |scene: &mut Scene| scene.ticks(8, 2..24);
        let (_, ran) = if stays_busy { busy.while_frozen(|| serve(&mut scene)) } else { serve(&mut scene) };
        assert_eq!(ran, [7], "group {group}, busy for ever: {stays_busy}");
        let _ = scene.ticks(8, 24..26);
        assert!(!scene.machine.watches_stalled(cpu(8), ms(26)), "all is published");
        scene.machine.check();
    }
}

/// Goal: while a migrator that is stalled can be marked by none, each CPU that is awake runs what it looked
/// after; a lock is waited for by none; it is not looked after any more when it turns, is marked, or leaves.
/// Method: CPU 0 is stopped inside its record, or its group; CPU 1 ticks.
#[test]
fn a_cpu_that_turns_again_is_not_stuck() {
    for (is_record, ends_by) in [(true, "turn"), (false, "turn"), (true, "mark"), (false, "mark")] {
        let mut scene = Scene::of(3);
        scene.arm_new((2, 5), 2, 0);
        scene.arm_new((1, 5), 0, 0);
        scene.idle(2, 0);
        let lock = if is_record { scene.lock_of_books(0) } else { BaseLock::of_group(NEAR) };
        let (marked, ran) = lock.while_frozen(|| scene.ticks(1, 1..20));
        assert_eq!((marked, ran), (0, vec![2]), "CPU 0's own waits until it goes on");
        assert!(scene.machine.busy_marks() > 0);
        assert!(scene.machine.watches_stalled(cpu(1), ms(20)));
        if ends_by == "turn" {
            assert_eq!(scene.tick(0, 20).1, [1]);
        } else {
            assert_eq!(scene.mark(0), MarkOutcome::Marked);
        }
        let _ = scene.ticks(1, 20..22);
        let _ = scene.tick(0, 22);
        assert!(!scene.machine.watches_stalled(cpu(1), ms(22)), "ended by a {ends_by}");
        scene.machine.check();
    }
}

/// Goal: the same of a migrator that is stopped inside one of its bases while another thread is stopped
/// inside its group: its duties cannot be handed over. Method: CPU 0 stalls so; CPU 8, of another group,
/// ticks.
#[test]
fn a_cpu_whose_duties_cannot_be_handed_over_is_stuck() {
    let mut scene = Scene::of(9);
    scene.arm_new((2, 5), 2, 0);
    scene.arm_new((1, 5), 0, 0);
    (1..8).for_each(|index| scene.idle(index, 0));
    let base = scene.lock_of(0, BaseKind::Global);
    let ran = base.while_busy(|| BaseLock::of_group(NEAR).while_frozen(|| scene.ticks(8, 1..20)));
    assert_eq!(ran, (0, vec![2]), "CPU 0's own waits until it goes on");
    let _ = (scene.tick(0, 20), scene.ticks(8, 20..22), scene.tick(0, 22));
    assert!(!scene.machine.watches_stalled(cpu(8), ms(22)), "it goes on");
    scene.machine.check();
}

/// Goal: the alarm, and a silence, wake up a CPU that can come: not one that was stopped on its way to sleep,
/// unless there is no other. Method: CPUs 0 and 1 are parked, and one base of CPU 0, or of both, is busy.
#[test]
fn the_alarm_wakes_one_that_is_not_stopped() {
    for kind in [BaseKind::Local, BaseKind::Global, BaseKind::Guest] {
        let mut scene = Scene::of(2);
        let timer = scene.add(TimerOptions::new(), 7);
        (0..2).for_each(|index| scene.idle(index, 0));
        let _ = scene.arm(timer, 20, Context::near(cpu(1), ms(1)));
        let machine = std::rc::Rc::clone(&scene.machine);
        let lock = scene.lock_of(0, kind);
        lock.while_frozen(|| machine.handle_alarm(ms(21), &mut scene.actions));
        assert_eq!(scene.kicks(), [cpu(1)], "alarm, {kind:?}");
        assert!(lock.while_frozen(|| machine.handle_silence(ms(22), &mut scene.actions)));
        assert_eq!(scene.kicks(), [cpu(1)], "silence, {kind:?}");
    }
    let mut scene = Scene::of(1);
    let timer = scene.add(TimerOptions::new(), 7);
    scene.idle(0, 0);
    let _ = scene.arm(timer, 20, Context::near(cpu(0), ms(1)));
    let machine = std::rc::Rc::clone(&scene.machine);
    let lock = scene.lock_of(0, BaseKind::Global);
    lock.while_frozen(|| machine.handle_alarm(ms(21), &mut scene.actions));
    assert_eq!(scene.kicks(), [cpu(0)], "there is no other");
}

/// Goal: what a stalled CPU has collected of others and not run is run by others, though it cannot be marked;
/// also what a CPU has that is about to block. Method: CPU 1 has two timers of CPU 2, and is in the first;
/// its record or its group is busy for ever.
#[test]
fn what_a_stuck_cpu_collected_is_taken_back() {
    for (is_record, blocks) in [(true, false), (false, false), (true, true), (false, true)] {
        let (mut scene, expired) = Scene::pulled_from(BaseKind::Global);
        let lock = if is_record { scene.lock_of_books(1) } else { BaseLock::of_group(NEAR) };
        let (_, ran) = lock.while_frozen(|| {
            if blocks {
                scene.machine.go_absent(cpu(1), ms(7), &mut scene.actions);
            }
            scene.ticks(0, 8..30)
        });
        assert_eq!(ran, [2], "record {is_record}, blocks {blocks}");
        scene.finish(1, expired, 30);
        assert_eq!(scene.rest(1, 30), [], "it has lost the token");
        let _ = (scene.ticks(1, 31..33), scene.ticks(0, 31..34));
        assert!(!scene.machine.watches_stalled(cpu(0), ms(33)), "nothing is left to repair");
        scene.machine.check();
    }
}

/// Goal: what a stalled CPU has collected is run by others once its mark is complete. Method: CPU 0 is in the
/// first of two timers; a lock of its own is busy when it is marked, and comes free while it hangs on.
#[test]
fn what_a_marked_cpu_collected_is_taken_back() {
    let mut scene = Scene::of(2);
    for payload in [1, 2] {
        scene.arm_new((payload, 5), 0, 0);
    }
    let expired = scene.start(0, 8);
    let lock = scene.lock_of(0, BaseKind::Local);
    let _ = lock.while_frozen(|| scene.ticks(1, 8..12));
    let (_, ran) = scene.ticks(1, 12..20);
    assert_eq!((ran, scene.machine.is_marked(cpu(0))), (vec![3 - expired.payload()], true));
    scene.finish(0, expired, 20);
    assert_eq!(scene.rest(0, 20), [], "it has lost the token");
}

/// Goal: a CPU whose lock is busy hides no other one's timers, however high the tree. Method: the first and
/// the second of a far group sleep and have each something due; the first one's base is busy.
#[test]
fn a_busy_base_hides_no_neighbour() {
    for (count, first) in [(4, 2), (10, 8), (130, 72)] {
        let mut scene = Scene::of(count);
        for (payload, on) in [(1, first), (2, first + 1)] {
            scene.arm_new((payload, 5 + u64::from(payload)), on, 0);
        }
        (1..count).for_each(|index| scene.idle(index, 0));
        let lock = scene.lock_of(first, BaseKind::Global);
        let (_, ran) = lock.while_frozen(|| scene.ticks(0, 1..20));
        assert_eq!(ran, [2], "of {count}");
        assert_eq!(scene.ticks(0, 20..24).1, [1], "of {count}");
    }
}

/// Goal: beside a busy group, and while a CPU is stuck, what an isolated CPU has is its own. Method: CPU 1 is
/// isolated, sleeps and has a timer that it armed; CPU 2 sleeps; the group is busy when both are due.
#[test]
fn an_isolated_cpu_is_not_pulled_from_beside_a_busy_group() {
    for is_stuck in [false, true] {
        let mut scene = Scene::of(4);
        scene.isolate("1", 0);
        scene.arm_new((1, 5), 1, 0);
        scene.arm_new((2, 5), 2, 0);
        let idle = if is_stuck { [1, 2].as_slice() } else { [1, 2, 3].as_slice() };
        if is_stuck {
            scene.arm_new((3, 3), 3, 0);
        }
        idle.iter().for_each(|index| scene.idle(*index, 0));
        let (_, ran) = BaseLock::of_group(NEAR).while_frozen(|| scene.ticks(0, 1..20));
        assert_eq!(ran, [2], "CPU 3 is stuck: {is_stuck}");
        scene.machine.exit_idle(cpu(1), ms(20));
        assert_eq!(scene.turn(1, 20), [1]);
    }
}

/// Goal: an arm waits for no record of another CPU. Method: the record of the CPU that sleeps is busy for
/// ever.
#[test]
fn an_arm_waits_for_no_record() {
    let mut scene = Scene::of(2);
    let timer = scene.add(TimerOptions::new(), 7);
    scene.idle(1, 0);
    let lock = scene.lock_of_books(1);
    let _ = lock.while_frozen(|| scene.arm(timer, 20, Context::near(cpu(1), ms(1))));
    assert_eq!((scene.actions.take_alarm(), scene.kicks()), (Some(ms(21)), vec![cpu(1)]));
    assert_eq!(scene.ticks(0, 2..24).1, [7], "CPU 1 does not come");
}

/// Goal: a CPU that missed its wake-up and cannot be marked is pulled from. Method: CPU 1 sleeps until a
/// pinned timer, and has published nothing, as the other is due later; the group is busy for ever.
#[test]
fn a_cpu_that_overslept_is_pulled_from() {
    let mut scene = Scene::of(2);
    scene.arm_pinned((1, 5), 1, 0);
    scene.arm_new((2, 6), 1, 0);
    scene.idle(1, 0);
    let (_, ran) = BaseLock::of_group(NEAR).while_frozen(|| scene.ticks(0, 1..20));
    assert_eq!(ran, [2], "the pinned one waits for its lane");
}

/// Goal: what could not be published is published later also where no CPU is ever marked. Method: no stall is
/// one; a timer comes to an absent CPU while the group is busy; another CPU looks around.
#[test]
fn repairs_are_made_without_marks() {
    let settings =
        Settings { stall: StallPolicy { after: None, ..Default::default() }, ..Default::default() };
    let mut scene = Scene::new(2, settings);
    let timer = scene.add(TimerOptions::new(), 7);
    scene.machine.go_absent(cpu(1), ms(0), &mut scene.actions);
    let _ = BaseLock::of_group(NEAR).while_frozen(|| scene.arm(timer, 20, Context::near(cpu(1), ms(1))));
    assert!(scene.machine.watches_stalled(cpu(0), ms(1)));
    let _ = scene.tick(0, 2);
    assert!(!scene.machine.watches_stalled(cpu(0), ms(2)));
    assert_eq!(scene.enter_idle(0, 3), IdleDecision::Sleep { until: Some(ms(21)) });
}
