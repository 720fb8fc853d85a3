//! What a machine refuses, and what it makes of CPUs that it does not have, or that may not take part.

use crate::scene::{Scene, cpus, ms};
use crate::world::cpu;
use quietcore_core::place::{ExactPolicy, Exclusion, Isolation, Policy};
use quietcore_core::tmigr::CpuState;
use quietcore_core::{
    Actions, Arm, ArmRefusal, BaseId, BaseKind, Context, CpuControlError, Expiry, MarkOutcome, Settings,
    StallPolicy, TimerOptions,
};

/// Goal: a CPU comes online once, goes offline once, and only if the machine has it; a refusal changes
/// nothing. Method: each of those on two CPUs.
#[test]
fn cpus_come_and_go_once() {
    let mut scene = Scene::of(2);
    let (machine, mut actions) = (&scene.machine, Actions::new(2));
    let unknown = Err(CpuControlError::UnknownCpu { cpu: cpu(9) });
    assert_eq!(machine.online(cpu(9), ms(1), &mut actions), unknown);
    assert_eq!(machine.offline(cpu(9), ms(1), &mut actions), unknown);
    let wrong = |is_online| Err(CpuControlError::WrongState { cpu: cpu(1), is_online });
    assert_eq!(machine.online(cpu(1), ms(1), &mut actions), wrong(true));
    assert_eq!(scene.cpu_state(1), CpuState::Awake);
    assert_eq!(machine.offline(cpu(1), ms(2), &mut actions), Ok(()));
    assert_eq!(machine.offline(cpu(1), ms(2), &mut actions), wrong(false));
    assert_eq!(machine.online(cpu(1), ms(3), &mut actions), Ok(()));
    scene.arm_new((7, 5), 1, 3);
    assert_eq!(scene.turn(1, 8), [7]);
    scene.machine.check();
}

/// Goal: a timer cannot be armed for a CPU that the machine does not have; a thread that says it is there
/// arms on a CPU that it has. Method: the first number beyond, and one far beyond.
#[test]
fn a_cpu_beyond_the_machine_is_none() {
    for beyond in [2, 900] {
        let mut scene = Scene::of(2);
        let timer = scene.add(TimerOptions::new(), 1);
        let arm = Arm::at(ms(5)).on(cpu(beyond));
        let refused = scene.machine.arm(timer, arm, Context::on(cpu(0), ms(0)), &mut scene.actions);
        assert_eq!(refused.map(|armed| armed.base), Err(ArmRefusal::NoSuchCpu { cpu: cpu(beyond) }));
        for context in [Context::near, Context::on] {
            let armed = scene.arm(timer, 5, context(cpu(beyond), ms(0)));
            assert_eq!(armed.base, BaseId { cpu: cpu(0), kind: BaseKind::Guest });
        }
    }
}

/// Goal: a deferrable timer wakes no CPU, also if it is armed for one. Method: a CPU that sleeps.
#[test]
fn a_deferrable_timer_for_a_cpu_does_not_wake_it() {
    let mut scene = Scene::of(2);
    let timer = scene.add(TimerOptions::new().deferrable(), 1);
    scene.idle(1, 0);
    let armed = scene.arm_as(timer, Arm::at(ms(5)).on(cpu(1)), Context::on(cpu(0), ms(0)));
    assert_eq!(armed.base, BaseId { cpu: cpu(1), kind: BaseKind::Deferrable });
    assert_eq!((scene.kicks(), scene.machine.sleeps_until(cpu(1))), (vec![], None));
}

/// Goal: under the old rule a timer that any CPU may run goes from an idle or isolated CPU to a busy one, and
/// stays on a busy one. Method: two CPUs, of which the first arms.
#[test]
fn the_old_rule_pushes() {
    let settings = |isolated: &str| Settings {
        policy: Policy::Push,
        isolation: Isolation { nohz_full: cpus(isolated), ..Isolation::default() },
        ..Settings::default()
    };
    let goes_to = |scene: &mut Scene| {
        let timer = scene.add(TimerOptions::new(), 1);
        scene.arm(timer, 5, Context::on(cpu(0), ms(0))).base
    };
    let on = |index| BaseId { cpu: cpu(index), kind: BaseKind::Global };
    let mut scene = Scene::new(2, settings(""));
    assert_eq!(goes_to(&mut scene), on(0), "it is busy");
    scene.idle(0, 0);
    assert_eq!(goes_to(&mut scene), on(1), "it is idle");
    let mut scene = Scene::new(2, settings("0"));
    assert_eq!(goes_to(&mut scene), on(1), "it is isolated");
}

/// Goal: under the kernel's rule for exact timers a pinned one stays on its CPU, idle or not. Method: beside
/// a busy CPU with an earlier event, to which one that is not pinned goes.
#[test]
fn the_kernels_rule_pushes_no_pinned_timer() {
    let settings =
        Settings { policy: Policy::Push, exact_policy: ExactPolicy::Kernel, ..Settings::default() };
    let mut scene = Scene::new(2, settings);
    scene.idle(0, 0);
    for (options, index) in [(TimerOptions::new().pinned(), 0), (TimerOptions::new(), 1)] {
        let timer = scene.add_exact(options, 1);
        let armed = scene.arm_as(timer, Expiry::at(5_500_000), Context::on(cpu(0), ms(0)));
        assert_eq!(armed.base, BaseId { cpu: cpu(index), kind: BaseKind::Local });
    }
}

/// Goal: the CPU that keeps time is the first that came online, until it leaves; where `nohz_full` CPUs exist
/// it takes part although it is isolated. Method: CPU 4 is `nohz_full`; two others are isolated at a time.
#[test]
fn the_cpu_that_keeps_time_takes_part() {
    let isolation = Isolation { nohz_full: cpus("4"), ..Isolation::default() };
    let settings = Settings { exclusion: Exclusion::Merged, isolation, ..Settings::default() };
    let mut scene = Scene::new(5, settings);
    assert_eq!(scene.isolate("0-1", 1).left, cpus("1"));
    assert_eq!(scene.isolate("", 2).joined, cpus("1"));
    scene.machine.offline(cpu(0), ms(3), &mut scene.actions).expect("others are left");
    assert_eq!(scene.isolate("1-2", 4).left, cpus("2"));
}

/// Goal: where no CPU pulls none could take over, and none counts as stalled. Method: each rule.
#[test]
fn only_cpus_that_pull_can_stall() {
    for policy in [Policy::Pull, Policy::Push, Policy::Stay] {
        let settings = Settings { policy, ..Settings::default() };
        assert_eq!(settings.stall_in_force() == StallPolicy::NEVER, policy != Policy::Pull);
    }
}

/// Goal: an alarm that went off is over: the next one is asked for, and no other moment counts as one.
/// Method: two timers of an absent CPU, while CPU 1 sleeps.
#[test]
fn an_alarm_goes_off_once() {
    let mut scene = Scene::of(2);
    scene.idle(1, 0);
    assert_eq!(scene.mark(0), MarkOutcome::Marked);
    let timer = scene.add(TimerOptions::new(), 1);
    let _ = scene.arm(timer, 10, Context::near(cpu(0), ms(0)));
    assert_eq!(scene.actions.take_alarm(), Some(ms(11)));
    scene.machine.handle_alarm(ms(11), &mut scene.actions);
    assert_eq!(scene.kicks(), [cpu(1)]);
    scene.machine.handle_alarm(ms(12), &mut scene.actions);
    assert_eq!(scene.kicks(), [], "it is over");
}
