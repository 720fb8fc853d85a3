//! Isolation while the machine runs: nothing foreign begins on an isolated CPU, whatever was under way.

use crate::lock::was_interrupted;
use crate::scene::{Scene, cpus, ms};
use crate::world::cpu;
use quietcore_core::place::{ExactPolicy, Isolation};
use quietcore_core::tmigr::CpuState;
use quietcore_core::{
    Actions, BaseId, BaseKind, Context, Expiry, IdleDecision, MarkOutcome, Settings, TimerOptions, Turn,
};
use std::rc::Rc;

/// `isolated` is isolated completely just before this lock is taken.
fn isolate_before(scene: &Scene, (on, kind): (usize, BaseKind), isolated: &'static str) {
    let machine = Rc::clone(&scene.machine);
    scene.lock_of(on, kind).before(move || {
        let report = machine.set_isolated(&cpus(isolated), ms(7), &mut Actions::new(8)).expect("one is left");
        assert_eq!(report.left, cpus(isolated));
    });
}

/// Goal: a CPU that was isolated while it looked for work takes none. Method: it is isolated between the look
/// at the hierarchy and the lock of the base that is due.
#[test]
fn an_isolated_cpu_takes_nothing_over() {
    let mut scene = Scene::of(3);
    scene.arm_new((1, 5), 2, 0);
    scene.idle(2, 0);
    scene.idle(0, 0);
    scene.machine.begin_turn(&mut scene.turns[1], ms(7));
    isolate_before(&scene, (2, BaseKind::Global), "1");
    assert_eq!(scene.rest(1, 7), [], "CPU 1 is isolated");
    assert!(was_interrupted());
    scene.machine.exit_idle(cpu(0), ms(8));
    assert_eq!(scene.turn(0, 8), [1], "CPU 0 is not");
}

/// Goal: what a CPU has collected and not begun when it is isolated is run by others. Method: two timers of a
/// sleeper, isolated in the first; the sleeper's base is held by another thread for longer than the bound
/// just then, which isolation waits for.
#[test]
fn what_was_collected_before_is_given_back() {
    let (mut scene, expired) = Scene::pulled_from(BaseKind::Global);
    let lock = scene.lock_of(2, BaseKind::Global);
    let report = lock.while_busy(|| scene.isolate("1", 7));
    assert_eq!(report.still_running, cpus("1"));
    scene.finish(1, expired, 8);
    assert_eq!(scene.rest(1, 8), [], "CPU 1 is isolated");
    assert_eq!(scene.turn(0, 8), [2]);
}

/// Goal: the end of a run gives a CPU that is isolated, or offline, no foreign work. Method: a timer is due
/// again when its run on CPU 1, which has left meanwhile, ends.
#[test]
fn the_end_of_a_run_gives_a_cpu_that_left_nothing() {
    for is_offline in [false, true] {
        let mut scene = Scene::of(4);
        let again = scene.arm_new((1, 5), 2, 0);
        let other = scene.add(TimerOptions::new(), 2);
        for index in [2, 3, 0] {
            scene.idle(index, 0);
        }
        let expired = scene.start(1, 7);
        let _ = scene.arm(again, 9, Context::on(cpu(1), ms(7)));
        let _ = scene.arm(other, 9, Context::near(cpu(2), ms(7)));
        if is_offline {
            scene.machine.offline(cpu(1), ms(8), &mut scene.actions).expect("it is online");
        } else {
            scene.isolate("1", 8);
        }
        scene.machine.exit_idle(cpu(0), ms(12));
        assert_eq!(scene.turn(0, 12), [2], "the first one runs, and waits for its end");
        scene.finish(1, expired, 12);
        assert_eq!(scene.turn(1, 12), [], "CPU 1 has left");
        assert_eq!(scene.turn(0, 13), [1]);
    }
}

/// Goal: a periodic timer does not stay with a CPU that was isolated during its run elsewhere. Method: armed
/// near CPU 2, pulled by CPU 0, which arms it again; CPU 2 is isolated before the run ends.
#[test]
fn a_timer_that_arms_itself_leaves_an_isolated_cpu() {
    let mut scene = Scene::of(3);
    let timer = scene.add(TimerOptions::new(), 1);
    let armed = scene.arm(timer, 5, Context::near(cpu(2), ms(0)));
    assert_eq!(armed.base.kind, BaseKind::Guest);
    scene.idle(2, 0);
    let expired = scene.start(0, 7);
    let _ = scene.arm(timer, 20, Context::on(cpu(0), ms(7)));
    scene.isolate("2", 7);
    scene.idle(2, 7);
    scene.finish(0, expired, 8);
    assert_eq!(scene.turn(2, 25), [], "CPU 2 is isolated");
    let (_, ran) = scene.ticks(0, 25..30);
    let (_, ran_by_1) = scene.ticks(1, 25..30);
    assert_eq!([ran, ran_by_1].concat(), [1]);
}

/// Goal: an isolated CPU runs nothing that a stranger armed who had looked before, not even at once. Method:
/// it is isolated just before the stranger takes its base's lock, and turns before that one moves the timer.
#[test]
fn a_stranger_that_looked_before() {
    let mut scene = Scene::of(3);
    let timer = scene.add(TimerOptions::new(), 1);
    let (machine, lock) = (Rc::clone(&scene.machine), scene.lock_of(2, BaseKind::Guest));
    lock.before(move || {
        machine.set_isolated(&cpus("2"), ms(7), &mut Actions::new(8)).expect("one is left");
        lock.before(move || {
            let mut turn = Turn::new(cpu(2));
            machine.begin_turn(&mut turn, ms(20));
            let ran = machine.next_expired(&mut turn, ms(20), &mut Actions::new(8));
            assert!(ran.is_none() && !turn.has_more(), "CPU 2 is isolated: {ran:?}");
        });
    });
    let armed = scene.arm(timer, 9, Context::near(cpu(2), ms(7)));
    assert!(was_interrupted() && armed.base.kind == BaseKind::Guest);
    assert_eq!([scene.turn(0, 20), scene.turn(1, 20)].concat(), [1]);
}

/// Goal: what a stranger armed on a CPU is foreign there, also while it runs. Method: the CPU is isolated
/// during the callback of such a timer, and of one that it armed itself.
#[test]
fn a_strangers_callback_is_waited_for() {
    for (context, is_foreign) in [(Context::near(cpu(1), ms(0)), true), (Context::on(cpu(1), ms(0)), false)] {
        let mut scene = Scene::of(2);
        let timer = scene.add(TimerOptions::new(), 1);
        let _ = scene.arm(timer, 5, context);
        let expired = scene.start(1, 7);
        let report = scene.isolate("1", 7);
        assert_eq!(report.still_running.contains(cpu(1)), is_foreign, "{report:?}");
        scene.finish(1, expired, 8);
        assert!(!scene.machine.runs_for_others(cpu(1)));
    }
}

/// Goal: a stranger's timer that is armed again while it runs on its own CPU leaves that when it is isolated
/// meanwhile. Method: armed again before and after the isolation, by the stranger and by the callback.
#[test]
fn armed_again_by_a_stranger() {
    for (is_isolated_first, context) in [
        (false, Context::near(cpu(1), ms(7))),
        (true, Context::near(cpu(1), ms(7))),
        (false, Context::on(cpu(1), ms(7))),
        (true, Context::on(cpu(1), ms(7))),
    ] {
        let mut scene = Scene::of(2);
        let timer = scene.add(TimerOptions::new(), 1);
        let _ = scene.arm(timer, 5, Context::near(cpu(1), ms(0)));
        let expired = scene.start(1, 7);
        if is_isolated_first {
            scene.isolate("1", 7);
        }
        let _ = scene.arm(timer, 9, context);
        if !is_isolated_first {
            scene.isolate("1", 7);
        }
        scene.finish(1, expired, 8);
        assert_eq!(scene.turn(1, 20), [], "CPU 1 is isolated");
        assert_eq!(scene.turn(0, 20), [1], "{is_isolated_first} {context:?}");
    }
}

/// Goal: an arm that chose its CPU before that was isolated does not leave its timer there. Method: isolated
/// just before the arm takes its first lock; a timer that was never armed, one that was there before, and one
/// that was on another CPU.
#[test]
fn an_arm_that_raced_with_isolation_is_evacuated() {
    for was_on in [None, Some(2), Some(1)] {
        let mut scene = Scene::of(3);
        let timer = scene.add(TimerOptions::new(), 1);
        if let Some(index) = was_on {
            let context = Context::near(cpu(index), ms(7));
            let _ = scene.arm(timer, 9, context);
            assert_eq!(scene.machine.cancel(timer, context), Ok(true));
        }
        isolate_before(&scene, (was_on.unwrap_or(2), BaseKind::Guest), "2");
        let armed = scene.arm(timer, 9, Context::near(cpu(2), ms(7)));
        assert!(was_interrupted() && armed.base.kind == BaseKind::Guest);
        assert_eq!(scene.turn(2, 20), [], "CPU 2 is isolated");
        let ran = [scene.turn(0, 20), scene.turn(1, 20)].concat();
        assert_eq!(ran, [1], "armed before on {was_on:?}");
    }
}

/// Goal: what such an arm has moved does not go to a CPU that leaves meanwhile. Method: as before; CPU 0, the
/// nearest that takes it, goes offline or is isolated, too, just before the timer is put there.
#[test]
fn who_leaves_meanwhile_gets_nothing_from_an_isolated_cpu() {
    for is_offline in [false, true] {
        let mut scene = Scene::of(3);
        let timer = scene.add(TimerOptions::new(), 1);
        let (machine, lock) = (Rc::clone(&scene.machine), scene.lock_of(0, BaseKind::Global));
        scene.lock_of(2, BaseKind::Guest).before(move || {
            let mut actions = Actions::new(3);
            let report = machine.set_isolated(&cpus("2"), ms(7), &mut actions);
            assert_eq!(report.map(|report| report.left), Ok(cpus("2")));
            lock.before(move || {
                let result = if is_offline {
                    machine.offline(cpu(0), ms(7), &mut actions)
                } else {
                    machine.set_isolated(&cpus("0,2"), ms(7), &mut actions).map(drop)
                };
                assert_eq!(result, Ok(()));
            });
        });
        let armed = scene.arm(timer, 9, Context::near(cpu(2), ms(7)));
        assert!(was_interrupted() && armed.base == BaseId { cpu: cpu(2), kind: BaseKind::Guest });
        assert_eq!(scene.turn(1, 20), [1], "CPU 0 has left");
        scene.machine.check();
    }
}

/// Goal: of a thread near an isolated CPU nothing goes there, of no kind, also when it was there before.
/// Method: two timers of each kind, one of which was armed and cancelled there before.
#[test]
fn nothing_armed_near_an_isolated_cpu_goes_there() {
    let mut scene = Scene::of(3);
    let options = [TimerOptions::new(), TimerOptions::new().deferrable(), TimerOptions::new().pinned()];
    let timers = [0, 1].map(|_| options.map(|options| scene.add(options, 0))).concat();
    let context = Context::near(cpu(2), ms(0));
    for timer in &timers[..3] {
        assert_eq!(scene.arm(*timer, 9, context).base.cpu, cpu(2));
        assert_eq!(scene.machine.cancel(*timer, context), Ok(true));
    }
    scene.isolate("2", 0);
    for timer in timers {
        let armed = scene.arm(timer, 9, Context::near(cpu(2), ms(7)));
        assert_ne!(armed.base.cpu, cpu(2), "{:?}", armed.base);
    }
    assert_eq!(scene.turn(2, 20), [], "CPU 2 is isolated");
}

/// Goal: an isolated CPU's own timers are its own: it takes back what others have collected on its bases.
/// Method: CPU 0 has collected CPU 2's timer when CPU 2 is isolated, and is stuck; CPU 2 sleeps, wakes up and
/// runs its own.
#[test]
fn a_token_on_an_isolated_cpus_base_is_taken_back() {
    let mut scene = Scene::of(3);
    scene.arm_new((1, 5), 2, 0);
    let own = scene.add(TimerOptions::new(), 3);
    scene.idle(2, 0);
    let expired = scene.start(0, 7);
    assert_eq!(scene.isolate("2", 7).left, cpus("2"));
    assert_eq!(scene.kicks(), [cpu(2)], "from now on its global timers are its own");
    scene.machine.exit_idle(cpu(2), ms(8));
    let _ = scene.arm(own, 12, Context::on(cpu(2), ms(8)));
    scene.idle(2, 8);
    assert!(scene.machine.handle_tick(cpu(2), ms(14)));
    assert_eq!(scene.turn(2, 14), [3]);
    scene.finish(0, expired, 14);
}

/// Goal: a CPU outside the hierarchy is told when others give back what they had collected of its timers: no
/// other CPU looks. Method: CPU 2 is isolated, and arms two timers that are due, just before CPU 0 locks its
/// base; CPU 0 is stuck in the first, and marked.
#[test]
fn who_is_outside_the_hierarchy_is_told() {
    let mut scene = Scene::of(3);
    scene.arm_new((1, 5), 2, 0);
    let own = [2, 3].map(|payload| scene.add(TimerOptions::new(), payload));
    scene.idle(2, 0);
    scene.machine.begin_turn(&mut scene.turns[0], ms(7));
    let machine = Rc::clone(&scene.machine);
    scene.lock_of(2, BaseKind::Global).before(move || {
        let mut actions = Actions::new(8);
        let report = machine.set_isolated(&cpus("2"), ms(7), &mut actions).expect("one is left");
        assert_eq!(report.evacuated, 1);
        for timer in own {
            let by = Context::on(cpu(2), ms(7));
            assert_eq!(machine.arm(timer, ms(4), by, &mut actions).map(|armed| armed.base.cpu), Ok(cpu(2)));
        }
        assert_eq!(actions.take_kick(), Some(cpu(2)));
    });
    let expired = scene.next(0, 7).expect("CPU 2's");
    assert!(was_interrupted());
    scene.kicks();
    assert_eq!(scene.mark(0), MarkOutcome::Marked);
    assert_eq!(scene.kicks(), [cpu(2)], "its timer is overdue, it sleeps, and nobody told it");
    assert_eq!(scene.turn(2, 8).len(), 1);
    scene.finish(0, expired, 8);
}

/// Goal: when the tick CPU goes offline its duty goes to one that is not isolated. Method: CPU 1 is isolated,
/// CPU 3 is `nohz_full`; what waits is not CPU 1's business.
#[test]
fn the_tick_goes_to_a_housekeeping_cpu() {
    let isolation = Isolation { domain: cpus("1"), nohz_full: cpus("3"), ..Isolation::default() };
    let mut scene = Scene::new(4, Settings { isolation, ..Settings::default() });
    assert_eq!(scene.cpu_state(1), CpuState::Unavailable);
    scene.machine.offline(cpu(0), ms(1), &mut scene.actions).expect("it is online");
    assert_eq!(scene.cpu_state(1), CpuState::Unavailable, "it keeps no time");
    scene.arm_new((1, 5), 2, 1);
    scene.idle(3, 1);
    scene.idle(2, 1);
    assert_eq!(scene.turn(1, 8), [], "CPU 1 is isolated");
}

/// Goal: the kernel's rule as it is: a CPU that is `nohz_full` stays in the hierarchy, so it can be asked to
/// pull. Method: isolated at run time as well; every other CPU sleeps.
#[test]
fn nohz_full_cpus_stay_in_the_hierarchy() {
    let isolation = Isolation { nohz_full: cpus("2"), ..Isolation::default() };
    let mut scene = Scene::new(3, Settings { isolation, ..Settings::default() });
    let report = scene.isolate("2", 0);
    assert!(report.left.is_empty());
    scene.arm_new((1, 5), 0, 0);
    scene.idle(0, 0);
    scene.idle(1, 0);
    assert_eq!((scene.cpu_state(2), scene.tick(2, 8).1), (CpuState::Awake, vec![1]));
}

/// Goal: the kernel's rule for exact timers as it is: one that was pushed is its new CPU's own, and stays
/// when that is isolated; the report counts it. Method: CPU 0 is idle, CPU 1 has an earlier event.
#[test]
fn a_pushed_exact_timer_stays_and_is_reported() {
    let settings = Settings { exact_policy: ExactPolicy::Kernel, ..Settings::default() };
    let mut scene = Scene::new(3, settings);
    scene.arm_pinned((9, 3), 1, 0);
    let exact = scene.add_exact(TimerOptions::new(), 1);
    scene.idle(0, 0);
    let context = Context::on(cpu(0), ms(0));
    let armed = scene.arm_as(exact, Expiry::at(ms(10).as_u64()), context);
    assert_eq!((armed.base.cpu, armed.base.kind), (cpu(1), BaseKind::Local));
    assert_eq!(scene.isolate("1", 1).pinned_left, 2);
    assert_eq!(scene.turn(1, 11), [1, 9]);
}

/// Goal: when the last CPU that was awake is isolated, one that sleeps is woken for what others left to it,
/// also if the nearest is absent. Method: CPU 1 is absent and has left its timer to CPU 0, which is isolated;
/// CPU 2 sleeps.
#[test]
fn the_last_one_awake_leaves_somebody() {
    let mut scene = Scene::of(3);
    scene.arm_new((1, 20), 1, 0);
    scene.machine.go_absent(cpu(1), ms(1), &mut scene.actions);
    assert_eq!(scene.enter_idle(2, 1), IdleDecision::Sleep { until: None });
    let _ = (scene.kicks(), scene.isolate("0", 1));
    assert_eq!(scene.kicks(), [cpu(2)]);
}

/// Goal: a CPU that joins while it blocks leaves its timers to others, and one of them is woken if all sleep.
/// Method: CPU 1 is isolated, arms, and blocks; it joins while CPU 0 sleeps.
#[test]
fn what_a_blocked_cpu_brings_along_is_seen_to() {
    let mut scene = Scene::of(2);
    scene.isolate("1", 0);
    scene.arm_new((1, 20), 1, 0);
    scene.machine.go_absent(cpu(1), ms(1), &mut scene.actions);
    assert_eq!(scene.enter_idle(0, 1), IdleDecision::Sleep { until: None });
    assert_eq!((scene.actions.take_alarm(), scene.kicks()), (None, vec![]), "its timer is its own");
    assert_eq!(scene.isolate("", 2).joined, cpus("1"));
    let alarm = scene.actions.take_alarm().expect("no CPU is awake");
    scene.machine.handle_alarm(alarm, &mut scene.actions);
    assert_eq!(scene.kicks(), [cpu(0)]);
    scene.machine.exit_idle(cpu(0), alarm);
    assert_eq!(scene.turn_at(0, alarm), [1]);
}

/// Goal: a CPU that is not isolated any more is silent from then on: before, nothing was to be seen of its
/// turns. Method: CPU 1 is isolated for a second.
#[test]
fn a_cpu_that_joins_is_silent_from_then_on() {
    let mut scene = Scene::of(2);
    let _ = scene.isolate("1", 1);
    scene.isolate("", 1000);
    assert_eq!(scene.machine.silence(cpu(1)).since, ms(1000));
}

/// Goal: a report counts all timers that were moved. Method: those of two CPUs that are isolated at once.
#[test]
fn all_that_were_moved_are_counted() {
    let mut scene = Scene::of(4);
    for on in [1, 1, 2] {
        let timer = scene.add(TimerOptions::new(), 1);
        scene.arm(timer, 5, Context::near(cpu(on), ms(0)));
    }
    let report = scene.isolate("1-2", 1);
    assert_eq!((report.evacuated, report.pinned_left), (3, 0));
}

/// Goal: what an isolated CPU ran when it was isolated leaves when that run is over, also if armed again
/// meanwhile; what it arms later is its own. Method: a timer of its own, armed again in its callback or by a
/// stranger, before and after the isolation, for a moment ahead and for one that is over.
#[test]
fn what_ran_when_it_was_isolated_leaves() {
    for (is_isolated_first, context, at) in [
        (false, Context::on(cpu(1), ms(7)), 20),
        (true, Context::on(cpu(1), ms(7)), 20),
        (true, Context::on(cpu(1), ms(7)), 3),
        (false, Context::near(cpu(0), ms(7)), 20),
        (true, Context::near(cpu(0), ms(7)), 20),
        (true, Context::near(cpu(0), ms(7)), 3),
    ] {
        let mut scene = Scene::of(2);
        let timer = scene.arm_new((1, 5), 1, 0);
        let expired = scene.start(1, 7);
        if is_isolated_first {
            scene.isolate("1", 7);
        }
        let _ = scene.arm(timer, at, context);
        if !is_isolated_first {
            scene.isolate("1", 7);
        }
        scene.finish(1, expired, 8);
        assert_eq!(scene.turn(1, 30), [], "CPU 1 is isolated: {is_isolated_first} {context:?} {at}");
        assert_eq!(scene.turn(0, 30), [1], "{is_isolated_first} {context:?} {at}");
        let own = scene.arm_new((2, 31), 1, 30);
        let expired = scene.start(1, 33);
        let _ = scene.arm(own, 35, Context::on(cpu(1), ms(33)));
        scene.finish(1, expired, 33);
        assert_eq!((scene.turn(0, 40), scene.turn(1, 40)), (vec![], vec![2]), "its own");
    }
}

/// Goal: that is so of a timer whose base the CPU inherits during the run. Method: CPU 0 runs a timer of CPU
/// 1, which goes offline meanwhile, and is isolated then.
#[test]
fn what_ran_for_one_that_left_leaves() {
    let mut scene = Scene::of(3);
    let timer = scene.arm_new((1, 5), 1, 0);
    scene.idle(1, 0);
    let expired = scene.start(0, 7);
    let _ = scene.arm(timer, 20, Context::on(cpu(0), ms(7)));
    scene.machine.offline(cpu(1), ms(7), &mut scene.actions).expect("it is online");
    scene.isolate("0", 7);
    scene.finish(0, expired, 8);
    assert_eq!(scene.turn(0, 30), [], "CPU 0 is isolated");
    assert_eq!(scene.turn(2, 30), [1]);
}

/// Goal: an isolated CPU that sleeps is not woken for a timer that leaves it in the same call. Method: a
/// timer of its own, which another CPU runs and arms again; and an arm that looked at the masks before.
#[test]
fn what_leaves_wakes_no_isolated_cpu() {
    let mut scene = Scene::of(3);
    let timer = scene.arm_new((1, 5), 2, 0);
    scene.idle(2, 0);
    let expired = scene.start(0, 7);
    let _ = scene.arm(timer, 20, Context::on(cpu(0), ms(7)));
    scene.isolate("2", 7);
    scene.idle(2, 7);
    let _ = scene.kicks();
    scene.finish(0, expired, 8);
    assert!(!scene.kicks().contains(&cpu(2)), "for what came to rest there");
    for is_exact in [false, true] {
        let mut scene = Scene::of(3);
        let (exact, coarse) = (scene.add_exact(TimerOptions::new(), 1), scene.add(TimerOptions::new(), 2));
        scene.idle(2, 0);
        isolate_before(&scene, (2, BaseKind::Guest), "2");
        let context = Context::near(cpu(2), ms(7));
        let armed = match is_exact {
            true => scene.arm_as(exact, Expiry::at(ms(9).0), context),
            false => scene.arm(coarse, 9, context),
        };
        assert!(was_interrupted() && armed.base.kind == BaseKind::Guest);
        assert!(!scene.kicks().contains(&cpu(2)), "for what was armed there; exact: {is_exact}");
    }
}
