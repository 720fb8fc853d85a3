//! CPUs that come and go: what is armed on one that is not there, and what one that leaves had taken over.

use crate::scene::{Scene, ms};
use crate::world::cpu;
use quietcore_core::{
    Arm, ArmRefusal, BaseKind, Context, Expiry, MarkOutcome, Nanos, Settings, TimerOptions,
};

/// Goal: a timer that is armed from a CPU that was never online is not lost. Method: of two CPUs one is
/// online; armed in the other's name, near it, and near one that the machine does not have.
#[test]
fn an_arm_on_a_cpu_that_was_never_online() {
    let contexts = [Context::on(cpu(1), ms(0)), Context::near(cpu(1), ms(0)), Context::near(cpu(9), ms(0))];
    for context in contexts {
        let mut scene = Scene::offline(2, Settings::default());
        scene.machine.online(cpu(0), ms(0), &mut scene.actions).expect("it is offline");
        let timer = scene.add(TimerOptions::new(), 1);
        assert_eq!(scene.arm(timer, 5, context).base.cpu, cpu(0), "{context:?}");
        assert_eq!(scene.turn(0, 50), [1], "{context:?}");
        scene.machine.check();
    }
}

/// Goal: an arm that no CPU could run is refused. Method: no CPU is online yet; and one CPU that is not, by
/// name.
#[test]
fn an_arm_that_nobody_could_run_is_refused() {
    let mut scene = Scene::offline(2, Settings::default());
    let timer = scene.add(TimerOptions::new(), 1);
    let near = Context::near(cpu(1), ms(0));
    let result = scene.machine.arm(timer, ms(5), near, &mut scene.actions);
    assert_eq!(result, Err(ArmRefusal::NoSuchCpu { cpu: cpu(1) }));
    scene.machine.online(cpu(0), ms(0), &mut scene.actions).expect("it is offline");
    let result = scene.machine.arm(timer, Arm::at(ms(5)).on(cpu(1)), near, &mut scene.actions);
    assert_eq!(result, Err(ArmRefusal::NoSuchCpu { cpu: cpu(1) }));
    scene.machine.check();
}

/// Goal: a CPU that goes offline keeps no token, also when the base's lock is held by another thread for
/// longer than the bound just then. Method: it has collected two timers of a sleeper and run one; others
/// tick.
#[test]
fn a_cpu_that_leaves_keeps_no_token() {
    let (mut scene, expired) = Scene::pulled_from(BaseKind::Global);
    scene.finish(1, expired, 7);
    let lock = scene.lock_of(2, BaseKind::Global);
    let result = lock.while_busy(|| scene.machine.offline(cpu(1), ms(8), &mut scene.actions));
    assert_eq!(result, Ok(()));
    let (_, ran) = scene.ticks(0, 8..50);
    assert_eq!(ran, [2], "an offline CPU keeps the token");
    scene.machine.check();
}

/// CPU 1 runs a timer of CPU 2, which has armed itself again for 30 ms when CPU 2 goes offline; CPU 0, the
/// heir, sleeps. The run ends as `is_joined` says: with the next pop in one call, or alone.
fn an_adopted_run_ends(is_joined: bool) -> Scene {
    let mut scene = Scene::of(3);
    let timer = scene.arm_new((1, 5), 2, 0);
    scene.idle(2, 0);
    scene.idle(0, 0);
    let expired = scene.start(1, 7);
    let _ = scene.arm(timer, 30, Context::on(cpu(1), ms(7)));
    scene.machine.offline(cpu(2), ms(7), &mut scene.actions).expect("it is online");
    scene.idle(0, 7);
    scene.kicks();
    if is_joined {
        assert!(scene.finish_and_next(1, expired, 7).is_none(), "nothing else is due");
    } else {
        scene.finish(1, expired, 7);
    }
    scene
}

/// Goal: what a run leaves on a base that was adopted is published for the adopter, not for the dead. Method:
/// both ways of ending a run; the heir sleeps, and another CPU looks after it.
#[test]
fn the_end_of_a_run_tells_the_adopter() {
    for is_joined in [false, true] {
        let mut scene = an_adopted_run_ends(is_joined);
        let published = scene.machine.hierarchy().published(cpu(0));
        assert!(published.is_some_and(|at| ms(30) <= at && at <= ms(40)), "{published:?}");
        scene.machine.check();
        assert_eq!(scene.ticks(1, 30..40).1, [1]);
    }
}

/// Goal: timers of a CPU that goes offline go to one that runs them: an absent one could not run the pinned
/// ones. If only absent ones are left, the nearest takes them. Method: CPU 0 keeps house, CPU 1 is nearer to
/// CPU 2 or as near, and is marked; then CPU 0 is, too.
#[test]
fn an_absent_cpu_inherits_only_if_it_must() {
    for (absent, heir) in [(&[1][..], 0), (&[0, 1][..], 0)] {
        let mut scene = Scene::of(3);
        scene.arm_pinned((1, 5), 2, 0);
        for index in absent {
            scene.machine.go_absent(cpu(*index), ms(1), &mut scene.actions);
        }
        scene.machine.offline(cpu(2), ms(2), &mut scene.actions).expect("it is online");
        let next = [0, 1].map(|index| scene.machine.renewed_next_event(cpu(index)));
        let expected = [0, 1].map(|index| (index == heir).then_some(ms(6)));
        assert_eq!(next, expected, "{absent:?} are absent");
    }
    let mut scene = Scene::of(3);
    scene.arm_pinned((1, 5), 2, 0);
    scene.machine.go_absent(cpu(0), ms(1), &mut scene.actions);
    scene.machine.offline(cpu(2), ms(2), &mut scene.actions).expect("it is online");
    assert_eq!(scene.machine.renewed_next_event(cpu(1)), Some(ms(6)), "CPU 0 would be the nearest");
}

/// Goal: a CPU that is awake and may wait for the end of its tick is told of an exact timer that it takes
/// over, and only of such. Method: CPU 1 has a timer of ticks, pinned or not, or an exact one, and leaves.
#[test]
fn an_heir_is_told_of_exact_timers() {
    for is_exact in [false, true] {
        let mut scene = Scene::of(2);
        let _ = if is_exact {
            let timer = scene.add_exact(TimerOptions::new().pinned(), 1);
            scene.arm_as(timer, Expiry::at(ms(3).0), Context::on(cpu(1), ms(0)))
        } else {
            let timer = scene.add(TimerOptions::new().pinned(), 1);
            scene.arm(timer, 3, Context::on(cpu(1), ms(0)))
        };
        scene.machine.offline(cpu(1), ms(1), &mut scene.actions).expect("it is online");
        assert_eq!(scene.kicks(), if is_exact { vec![cpu(0)] } else { vec![] });
    }
}

/// Goal: the same for a timer that was running when its CPU left, and was armed again: the heir is told when
/// the run has ended. Method: CPU 1 runs a timer of CPU 2, arms it again before or after CPU 2 leaves, and
/// ends the run in both ways; the heir is CPU 0, which is awake or idle, or CPU 1 itself.
#[test]
fn an_heir_is_told_of_an_exact_timer_that_ran() {
    for case in 0..32_u32 {
        let [is_exact, is_idle, goes_on, is_late, is_own] = [0, 1, 2, 3, 4].map(|bit| case >> bit & 1 == 1);
        let (runner, other) = if is_own { (0, 1) } else { (1, 0) };
        let mut scene = Scene::of(3);
        let (exact, coarse) = (scene.add_exact(TimerOptions::new(), 1), scene.add(TimerOptions::new(), 1));
        let arm = |scene: &mut Scene, at, context| match is_exact {
            true => scene.arm_as(exact, Expiry::at(ms(at).0), context),
            false => scene.arm(coarse, at, context),
        };
        let _ = arm(&mut scene, 3, Context::on(cpu(2), ms(0)));
        [2, other].into_iter().for_each(|index| scene.idle(index, 0));
        let expired = scene.start(runner, 5);
        if !is_idle {
            scene.machine.exit_idle(cpu(other), ms(5));
        }
        if is_late {
            scene.machine.offline(cpu(2), ms(5), &mut scene.actions).expect("it is online");
        }
        let armed = arm(&mut scene, 7, Context::on(cpu(runner), ms(5)));
        assert_eq!(armed.base.cpu, cpu(2), "it stays until its run has ended");
        if !is_late {
            scene.machine.offline(cpu(2), ms(5), &mut scene.actions).expect("it is online");
        }
        let _ = scene.kicks();
        if goes_on {
            assert!(scene.finish_and_next(runner, expired, 5).is_none());
        } else {
            scene.finish(runner, expired, 5);
        }
        let is_told = is_exact && !is_own;
        assert_eq!(scene.kicks(), if is_told { vec![cpu(0)] } else { vec![] }, "{case}");
    }
}

/// Goal: the moment of an arm is an old one only where the delay counted from there ends in the finest level.
/// Method: both sides of 62 ticks; an old moment is not taken back.
#[test]
fn an_old_moment_serves_short_arms() {
    let scene = Scene::of(1);
    let moment = |at, read| scene.machine.moment_for_arm(at, ms(100), || read);
    assert_eq!(moment(Nanos(ms(162).0 - 1), ms(150)), ms(100));
    assert_eq!(moment(ms(162), ms(150)), ms(150));
    assert_eq!(moment(ms(162), ms(90)), ms(100), "the coarse clock is behind");
}

/// Goal: a CPU that comes online is not absent any more, also if it is isolated: else it would run none of
/// its own timers. Method: it was marked before it left.
#[test]
fn a_cpu_that_was_marked_and_left_runs_its_timers() {
    let mut scene = Scene::of(3);
    assert_eq!(scene.mark(1), MarkOutcome::Marked);
    scene.machine.offline(cpu(1), ms(1), &mut scene.actions).expect("it is online");
    let _ = scene.isolate("1", 2);
    scene.machine.online(cpu(1), ms(3), &mut scene.actions).expect("it is offline");
    scene.arm_new((1, 5), 1, 3);
    assert_eq!((scene.turn(1, 8), scene.turn(0, 8)), (vec![1], vec![]));
}
