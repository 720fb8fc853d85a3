//! The kernel's bugs that are about bases and CPUs, on a whole machine. Numbers: the table in
//! `src/tmigr/README.md`.

use crate::lanes::{A, Lanes, at};
use crate::play::{Part, Scenario, explore};
use crate::search::Search;
use crate::world::id;
use quietcore_core::topology::Topology;
use quietcore_core::{
    Actions, Context, IdleDecision, Machine, Nanos, SequentialLock, Settings, TimerId, TimerOptions,
};

/// Two CPUs that are online, and a timer.
fn two_cpus() -> (Machine<SequentialLock, u32>, TimerId, Actions) {
    let topology = Topology::builder(2).build().expect("two CPUs");
    let mut machine = Machine::new(topology, Settings::default()).expect("nobody is isolated");
    let timer = machine.add_timer(TimerOptions::new(), 7);
    let mut actions = Actions::new(2);
    for cpu in 0..2 {
        machine.online(id(cpu), Nanos(0), &mut actions).expect("it is offline");
    }
    (machine, timer, actions)
}

/// Goal (4): a CPU whose tick is stopped arms a global timer on itself and is told to look again. Method: an
/// isolated one, which must be kicked; and one of a tree in which every CPU sleeps, where the alarm is asked
/// for.
#[test]
fn nohz_full_global_enqueue_no_self_kick() {
    let (machine, timer, mut actions) = two_cpus();
    machine.set_isolated(&"1".parse().expect("a list"), at(0), &mut actions).expect("CPU 0 is left");
    assert_eq!(machine.enter_idle(id(1), at(0)), IdleDecision::Sleep { until: None });
    machine.arm(timer, at(50), Context::on(id(1), at(1)), &mut actions).expect("it exists");
    assert_eq!(actions.take_kick(), Some(id(1)), "it sleeps for ever");
    machine.check();

    let (machine, timer, mut actions) = two_cpus();
    for cpu in 0..2 {
        assert_eq!(machine.enter_idle(id(cpu), at(0)), IdleDecision::Sleep { until: None });
    }
    machine.arm(timer, at(50), Context::on(id(1), at(1)), &mut actions).expect("it exists");
    assert_eq!(actions.take_alarm(), Some(at(51)), "nobody is awake at the tick after");
    machine.check();
}

/// Goal (21): an empty base is due never, however long it has been empty. Method: far beyond the kernel's
/// sentinel of 2^30 ticks.
#[test]
fn empty_base_sentinel_ages() {
    let (machine, _, _) = two_cpus();
    for ticks in [1 << 29, (1 << 30) - 1, 1 << 30, (1 << 30) + 2, 1 << 32] {
        assert!(!machine.handle_tick(id(0), at(ticks)), "something is due after {ticks} ticks");
        assert_eq!(machine.forecast_idle(id(0), at(ticks)), IdleDecision::Sleep { until: None }, "{ticks}");
    }
    assert_eq!(machine.enter_idle(id(0), at(1 << 31)), IdleDecision::Sleep { until: None });
    assert!(!machine.handle_tick(id(0), at(1 << 33)), "something is due");
}

/// Goal (21): two CPUs arm one timer that is on the base of a third; each finds the base that it is on by
/// then. Method: all orders, three preemptions; bases are checked after each.
#[test]
fn lock_timer_base_reload() {
    let parts: [Part<Lanes>; 2] = [|lanes| lanes.arm(A, 1, 0, 5), |lanes| lanes.arm(A, 2, 0, 6)];
    let scenario = Scenario { make: &Lanes::watched_by_w, parts: &parts, outcome: Lanes::lives };
    explore(&scenario, Search::new(3)).assert_more_than(10);
}

/// Goal (21): a CPU that comes back after a long time places its timers by the present. Method: 100,000 ticks
/// offline; a timer three ticks away is due in the fourth.
#[test]
fn stale_clk_on_hotplug() {
    let (machine, timer, mut actions) = two_cpus();
    machine.offline(id(1), at(1), &mut actions).expect("it is online");
    let now = 100_000;
    machine.online(id(1), at(now), &mut actions).expect("it is offline");
    machine.arm(timer, at(now + 3), Context::on(id(1), at(now)), &mut actions).expect("it exists");
    let _ = machine.enter_idle(id(0), at(now));
    let due = Some(at(now + 4));
    assert_eq!(machine.enter_idle(id(1), at(now)), IdleDecision::Sleep { until: due });
    machine.check();
}
