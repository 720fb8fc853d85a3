//! Exact timers: when, and on which CPU, under both policies.

use crate::scene::{Scene, ms};
use crate::world::cpu;
use quietcore_core::place::{ExactPolicy, Policy};
use quietcore_core::{BaseKind, Context, Expiry, IdleDecision, Nanos, Settings, TimerOptions};

/// Goal: not a nanosecond early, and not a tick late: a CPU that sleeps does so until the timer. Method: a
/// pinned one, between two ticks.
#[test]
fn an_exact_timer_is_exact() {
    let mut scene = Scene::of(4);
    let timer = scene.add_exact(TimerOptions::new().pinned(), 7);
    scene.arm_as(timer, Expiry::at(3_141_592), Context::on(cpu(1), ms(0)));
    assert_eq!(scene.enter_idle(1, 0), IdleDecision::Sleep { until: Some(Nanos(3_141_592)) });
    assert_eq!(scene.turn_at(1, Nanos(3_141_591)), []);
    assert_eq!(scene.turn_at(1, Nanos(3_141_592)), [7]);
    scene.machine.check();
}

/// Goal: under `Pull` a sleeper's unpinned exact timer is run by an awake CPU; a pinned one is not. Method:
/// both on a CPU that sleeps; the last one awake looks.
#[test]
fn unpinned_exact_timers_are_pulled() {
    let mut scene = Scene::of(4);
    for (options, payload) in [(TimerOptions::new(), 1), (TimerOptions::new().pinned(), 2)] {
        let timer = scene.add_exact(options, payload);
        scene.arm_as(timer, Expiry::at(5_000_000 + u64::from(payload)), Context::on(cpu(1), ms(0)));
    }
    [1, 2, 3].into_iter().for_each(|index| scene.idle(index, 0));
    assert_eq!(scene.turn_at(0, Nanos(5_000_002)), [1]);
    scene.machine.check();
    assert_eq!(scene.turn_at(1, Nanos(5_000_002)), [2]);
    scene.machine.check();
}

/// Goal: the kernel's rule: an idle CPU's unpinned timer is pushed to a busy CPU only if that has an earlier
/// event, and then belongs to it; a busy CPU's next tick is such an event. Method: expiries before and at the
/// next tick, with and without a timer there that is earlier.
#[test]
fn the_kernels_rule_pushes_behind_an_earlier_event() {
    let settings =
        Settings { policy: Policy::Push, exact_policy: ExactPolicy::Kernel, ..Settings::default() };
    let mut scene = Scene::new(4, settings);
    let earlier = scene.add_exact(TimerOptions::new().pinned(), 1);
    let floating = scene.add_exact(TimerOptions::new(), 2);
    scene.idle(2, 0);
    let goes_to = |scene: &mut Scene, expires| {
        let armed = scene.arm_as(floating, Expiry::at(expires), Context::on(cpu(2), ms(0)));
        assert_eq!(armed.base.kind, BaseKind::Local);
        armed.base.cpu
    };
    assert_eq!(goes_to(&mut scene, 999_999), cpu(2), "nothing there is earlier");
    assert_eq!(goes_to(&mut scene, 1_000_000), cpu(0), "the tick is as early");
    scene.arm_as(earlier, Expiry::at(500_000), Context::on(cpu(0), ms(0)));
    assert_eq!(goes_to(&mut scene, 499_999), cpu(2), "it would be the first");
    assert_eq!(goes_to(&mut scene, 500_000), cpu(0), "a timer there is as early");
    scene.machine.check();
}

/// Goal: an exact timer that becomes the first of a sleeping CPU wakes it up, though another CPU could pull
/// it a tick later; a coarse one does not. Method: arms by a thread near that CPU.
#[test]
fn an_exact_first_kicks_a_coarse_one_is_published() {
    let mut scene = Scene::of(4);
    let (coarse, exact) = (scene.add(TimerOptions::new(), 1), scene.add_exact(TimerOptions::new(), 2));
    scene.idle(3, 0);
    let near = Context::near(cpu(3), ms(0));
    scene.arm_as(coarse, ms(50), near);
    assert!(scene.actions.is_empty(), "somebody is awake and will see it");
    assert_eq!(scene.machine.hierarchy().published(cpu(3)).map(|at| at.0 / 8_000_000), Some(6));
    scene.arm_as(exact, Expiry::at(7_000_000), near);
    assert_eq!(scene.kicks(), [cpu(3)]);
}

/// Goal: a CPU that sleeps beside an awake one wakes up itself for exact timers, also for those of foreign
/// threads, and when it goes idle once more. Method: one of each kind; then one that comes while it is idle
/// and has something pinned within a tick.
#[test]
fn a_sleeper_wakes_up_for_every_exact_timer() {
    let micros = |micros: u64| Nanos(micros * 1_000);
    for is_foreign in [false, true] {
        let mut scene = Scene::of(2);
        let context = if is_foreign { Context::near(cpu(0), ms(0)) } else { Context::on(cpu(0), ms(0)) };
        let exact = scene.add_exact(TimerOptions::new(), 1);
        let _ = scene.arm_as(exact, Expiry::at(5_300_000), context);
        let idle = scene.machine.enter_idle_beside_others(cpu(0), ms(0));
        assert_eq!(idle, IdleDecision::Sleep { until: Some(micros(5_300)) }, "{is_foreign}");
    }
    let mut scene = Scene::of(2);
    let exact = [(); 2].map(|()| scene.add_exact(TimerOptions::new().pinned(), 1));
    let _ = scene.arm_as(exact[0], Expiry::at(10_900_000), Context::on(cpu(0), ms(5)));
    let idle = |scene: &Scene, now| scene.machine.enter_idle_beside_others(cpu(0), now);
    assert_eq!(idle(&scene, ms(5)), IdleDecision::Sleep { until: Some(micros(10_900)) });
    let foreign = scene.add_exact(TimerOptions::new(), 2);
    let _ = scene.arm_as(foreign, Expiry::at(10_300_000), Context::near(cpu(0), ms(6)));
    assert_eq!(idle(&scene, ms(10)), IdleDecision::Stay { next: micros(10_300) });
}

/// Goal: a CPU that stands down wakes up for its own exact timers. Method: one that is not pinned, beside an
/// awake CPU.
#[test]
fn who_stands_down_wakes_up_for_exact_timers() {
    let mut scene = Scene::of(2);
    let exact = scene.add_exact(TimerOptions::new(), 1);
    let _ = scene.arm_as(exact, Expiry::at(5_300_000), Context::on(cpu(1), ms(0)));
    let decision = scene.machine.stand_down(&scene.turns[1], ms(0), &mut scene.actions);
    assert_eq!(decision, IdleDecision::Sleep { until: Some(Nanos(5_300_000)) });
}
