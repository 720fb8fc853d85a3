//! What a lane looks for once per tick.

use super::{Other, TICK, claim, cpu, pass, quiet, still, wait_for};
use crate::lane::WaitBy;
use quietcore_core::lane::{Kick, Sleeper};
use quietcore_core::place::Policy;
use std::sync::mpsc::channel;

/// Goal: a lane that turns takes what waits on one that is stuck, at the latest in the next tick, though no
/// thread tells it. Method: it has looked; then lane 0 is kept in a task with another task behind.
#[test]
fn a_lane_that_turns_finds_what_waits_elsewhere() {
    let machine = still(quiet());
    let mut lane = claim(machine, 1);
    lane.turn();
    let other = Other::claim(machine, 0);
    let ((sender, began), (release, until)) = (channel(), channel::<()>());
    let holder = async move {
        drop(machine.spawn(async {}).expect("it runs"));
        sender.send(()).expect("the test waits");
        let _ = until.recv();
    };
    drop(machine.spawn_on(cpu(0), holder).expect("it runs"));
    let turned = other.begin(|lane| lane.turn());
    super::wait_for(&began);
    let first = lane.turn();
    pass(machine, TICK);
    assert_eq!(first.items + lane.turn().items, 1);
    assert_eq!(machine.metrics().cpus[1].stolen, 1);
    release.send(()).expect("it waits");
    super::wait_for(&turned);
    other.leave();
    drop(lane);
    machine.shutdown();
}

/// Goal: a lane with more than it runs next wakes one that sleeps, once per tick. Method: tasks are left
/// while both are awake; then one goes idle, and the other turns.
#[test]
fn a_lane_that_looks_around_offers_what_it_has() {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    lane.turn();
    let other = Other::claim_with(machine, 1, WaitBy::KickFd);
    other.act(|lane| _ = lane.turn());
    for _ in 0..2 {
        drop(machine.spawn(async {}).expect("it runs"));
    }
    other.act(|lane| _ = lane.enter_idle());
    let place = &machine.lanes.slot(cpu(1)).expect("it is there").world;
    assert!(place.is_waiting());
    pass(machine, TICK);
    lane.turn();
    assert_eq!(place.kick(), Kick::NotNeeded, "it was kicked before");
    other.leave();
    drop(lane);
    machine.shutdown();
}

/// Goal: a lane that turns all the time, and has nothing due, takes what waits on a busy one, whatever the
/// policy of timers. Method: a task on lane 0 leaves another one there; lane 1 turns a tick later.
#[test]
fn a_lane_that_turns_helps() {
    for policy in [Policy::Pull, Policy::Push, Policy::Stay] {
        let machine = still(quiet().policy(policy));
        let mut lane = claim(machine, 0);
        let (other, (sender, taken)) = (Other::claim(machine, 1), channel());
        other.act(|lane| _ = lane.turn());
        let busy = async move {
            drop(machine.spawn(async {}).expect("it runs"));
            pass(machine, TICK);
            sender.send(other.act(|lane| lane.turn().items)).expect("the test waits");
            other.leave();
        };
        drop(machine.spawn_on(cpu(0), busy).expect("it runs"));
        lane.turn();
        assert_eq!(wait_for(&taken), 1, "{policy:?}");
        drop(lane);
        machine.shutdown();
    }
}
