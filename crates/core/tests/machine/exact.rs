//! Exact timers: when, and on which CPU, under both policies.

use crate::world::cpu;
use quietcore_core::place::{ExactPolicy, Policy};
use quietcore_core::topology::Topology;
use quietcore_core::{
    Actions, BaseKind, Context, Expiry, IdleDecision, Machine, Nanos, SequentialLock, Settings, TimerOptions,
    Turn,
};

type Exact = Machine<SequentialLock, u32>;

fn machine(settings: Settings) -> (Exact, Actions) {
    let machine =
        Machine::new(Topology::builder(4).build().expect("a machine"), settings).expect("housekeeping");
    let mut actions = Actions::new(4);
    for index in 0..4 {
        machine.online(cpu(index), Nanos(0), &mut actions).expect("offline");
    }
    (machine, actions)
}

fn take_turn(machine: &Exact, index: usize, now: u64, actions: &mut Actions) -> Vec<u32> {
    let (mut turn, mut ran) = (Turn::new(cpu(index)), Vec::new());
    machine.begin_turn(&mut turn, Nanos(now));
    while let Some(expired) = machine.next_expired(&mut turn, Nanos(now), actions) {
        ran.push(expired.payload());
        machine.finish(&mut turn, expired, Nanos(now), actions);
    }
    machine.check();
    ran
}

/// Goal: not a nanosecond early, and not a tick late: a CPU that sleeps does so until the timer. Method: a
/// pinned one, between two ticks.
#[test]
fn an_exact_timer_is_exact() {
    let (mut machine, mut actions) = machine(Settings::default());
    let timer = machine.add_exact(TimerOptions::new().pinned(), 7);
    let context = Context::on(cpu(1), Nanos(0));
    machine.arm(timer, Expiry::at(3_141_592), context, &mut actions).expect("known");
    let idle = machine.enter_idle(cpu(1), Nanos(0));
    assert_eq!(idle, IdleDecision::Sleep { until: Some(Nanos(3_141_592)) });
    assert_eq!(take_turn(&machine, 1, 3_141_591, &mut actions), []);
    assert_eq!(take_turn(&machine, 1, 3_141_592, &mut actions), [7]);
}

/// Goal: under `Pull` a sleeper's unpinned exact timer is run by an awake CPU; a pinned one is not. Method:
/// both on a CPU that sleeps; the last one awake looks.
#[test]
fn unpinned_exact_timers_are_pulled() {
    let (mut machine, mut actions) = machine(Settings::default());
    let context = Context::on(cpu(1), Nanos(0));
    for (options, payload) in [(TimerOptions::new(), 1), (TimerOptions::new().pinned(), 2)] {
        let timer = machine.add_exact(options, payload);
        let at = 5_000_000 + u64::from(payload);
        machine.arm(timer, Expiry::at(at), context, &mut actions).expect("known");
    }
    for index in [1, 2, 3] {
        let _ = machine.enter_idle(cpu(index), Nanos(0));
    }
    assert_eq!(take_turn(&machine, 0, 5_000_002, &mut actions), [1]);
    assert_eq!(take_turn(&machine, 1, 5_000_002, &mut actions), [2]);
}

/// Goal: the kernel's rule: an idle CPU's unpinned timer is pushed to a busy CPU only if that has an earlier
/// event, and then belongs to it; a busy CPU's next tick is such an event. Method: expiries before and at the
/// next tick, with and without a timer there that is earlier.
#[test]
fn the_kernels_rule_pushes_behind_an_earlier_event() {
    let settings =
        Settings { policy: Policy::Push, exact_policy: ExactPolicy::Kernel, ..Settings::default() };
    let (mut machine, mut actions) = machine(settings);
    let earlier = machine.add_exact(TimerOptions::new().pinned(), 1);
    let floating = machine.add_exact(TimerOptions::new(), 2);
    let _ = machine.enter_idle(cpu(2), Nanos(0));
    let from_idle = Context::on(cpu(2), Nanos(0));
    let goes_to = |expires, actions: &mut Actions| {
        let armed = machine.arm(floating, Expiry::at(expires), from_idle, actions).expect("known");
        assert_eq!(armed.base.kind, BaseKind::Local);
        armed.base.cpu
    };
    assert_eq!(goes_to(999_999, &mut actions), cpu(2), "nothing there is earlier");
    assert_eq!(goes_to(1_000_000, &mut actions), cpu(0), "the tick is as early");
    let busy = Context::on(cpu(0), Nanos(0));
    machine.arm(earlier, Expiry::at(500_000), busy, &mut actions).expect("known");
    let goes_to = |expires, actions: &mut Actions| {
        machine.arm(floating, Expiry::at(expires), from_idle, actions).expect("known").base.cpu
    };
    assert_eq!(goes_to(499_999, &mut actions), cpu(2), "it would be the first");
    assert_eq!(goes_to(500_000, &mut actions), cpu(0), "a timer there is as early");
    machine.check();
}

/// Goal: an exact timer that becomes the first of a sleeping CPU wakes it up, though another CPU could pull
/// it a tick later; a coarse one does not. Method: arms by a thread near that CPU.
#[test]
fn an_exact_first_kicks_a_coarse_one_is_published() {
    let (mut machine, mut actions) = machine(Settings::default());
    let (coarse, exact) =
        (machine.add_timer(TimerOptions::new(), 1), machine.add_exact(TimerOptions::new(), 2));
    let _ = machine.enter_idle(cpu(3), Nanos(0));
    let near = Context::near(cpu(3), Nanos(0));
    machine.arm(coarse, Nanos(50_000_000), near, &mut actions).expect("known");
    assert!(actions.is_empty(), "somebody is awake and will see it");
    assert_eq!(machine.hierarchy().published(cpu(3)).map(|at| at.0 / 8_000_000), Some(6));
    machine.arm(exact, Expiry::at(7_000_000), near, &mut actions).expect("known");
    assert_eq!(actions.take_kick(), Some(cpu(3)));
}
