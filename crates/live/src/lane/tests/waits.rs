//! Waits of lanes: when others count on them, and what is left behind.

use super::{Other, TICK, claim, cpu, pass, quiet, still, wait_for};
use crate::lane::{IdleUntil, WaitBy};
use crate::{Cpu, Machine, Nanos, Precision, TimerOptions};
use quietcore_core::lane::{Kick, Sleeper};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Whether the lane 0 waits, and what a kick of it comes to.
fn kick(machine: &'static Machine) -> (bool, Kick) {
    let place = &machine.lanes.slot(cpu(0)).expect("it is there").world;
    (place.is_waiting(), place.kick())
}

fn is_readable(lane: &Cpu) -> bool {
    let fd = lane.kick_fd().expect("it was claimed with one");
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&Timespec::default())).expect("a descriptor") == 1
}

/// Goal: others count on a lane as soon as its wait is over, and kick it for nothing no more. Method: each
/// kind of wait; what a kick comes to, before any turn.
#[test]
fn a_lane_is_awake_after_its_wait() {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    assert_eq!(kick(machine), (false, Kick::NotNeeded));
    let _ = lane.enter_idle();
    lane.exit_idle();
    assert_eq!(kick(machine), (false, Kick::NotNeeded));
    lane.park_unless(|| true);
    assert_eq!(kick(machine), (false, Kick::NotNeeded));
    let _ = lane.enter_idle();
    assert_eq!(kick(machine), (true, Kick::Woke));
    lane.turn();
    assert_eq!(kick(machine), (false, Kick::NotNeeded));
    drop(lane);
    assert_eq!(kick(machine), (false, Kick::Vacant));
    machine.shutdown();
}

/// Goal: a thread that leaves in the middle of a wait leaves none to the next one. Method: that has the same
/// descriptor, and is awake.
#[test]
fn a_wait_ends_with_its_thread() {
    let machine = still(quiet());
    for _ in 0..2 {
        let mut lane = Cpu::claim_with(machine, cpu(0), WaitBy::KickFd).expect("a free lane");
        assert_eq!((kick(machine), is_readable(&lane)), ((false, Kick::NotNeeded), false));
        let _ = lane.enter_idle();
        assert_eq!((kick(machine), is_readable(&lane)), ((true, Kick::Woke), true));
        drop(lane);
    }
    machine.shutdown();
}

/// Goal: no lane waits when its machine has ended, as the kick of the end came before. Method: a lane that
/// goes idle after the shutdown; with a clock that stands still, and with the kernel's, of which the cycle
/// counter may be ahead.
#[test]
fn no_lane_waits_after_the_end() {
    for machine in [still(quiet()), quiet().start().expect("it starts")] {
        let mut lane = claim(machine, 0);
        machine.shutdown();
        for pause in 0..64 {
            let now = machine.now();
            assert!(lane.enter_idle().until().is_some_and(|until| until <= now));
            lane.exit_idle();
            thread::sleep(Duration::from_micros(pause));
        }
    }
}

/// What a lane runs as its doze ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Timer,
    Item,
}

/// Goal: a lane that has dozed for a tick dozes on if it found something to run, a timer or an item, and else
/// sleeps. Method: it was woken early several times before, so that it dozes at all.
#[test]
fn a_lane_that_found_work_dozes_again() {
    for found in [Found::Nothing, Found::Timer, Found::Item] {
        let machine = still(quiet());
        let mut lane = claim(machine, 0);
        for _ in 0..4 {
            lane.turn();
            let _ = lane.enter_idle();
        }
        lane.turn();
        let timer = machine.timer(TimerOptions::new().pinned().precision(Precision::Exact), |_| ());
        let edge = Nanos(machine.now().0 + TICK);
        if found == Found::Timer {
            timer.arm_at(edge).expect("it runs");
        }
        assert_eq!(lane.enter_idle(), IdleUntil::Stay { until: edge }, "it dozes");
        machine.clock.freeze(edge);
        if found == Found::Item {
            drop(machine.spawn_on(cpu(0), async {}).expect("it runs"));
        }
        let stats = lane.turn();
        let expected = (u32::from(found == Found::Timer), u32::from(found == Found::Item));
        assert_eq!((stats.ran, stats.items), expected);
        let dozes = IdleUntil::Stay { until: Nanos(edge.0 + TICK) };
        let sleeps = IdleUntil::Sleep { until: None };
        let idle = if found == Found::Nothing { sleeps } else { dozes };
        assert_eq!(lane.enter_idle(), idle, "{found:?}");
        drop((timer, lane));
        machine.shutdown();
    }
}

/// Goal: a turn after the end of the machine reads the descriptor, so that a loop does not spin that waits
/// for other things, too. Method: the shutdown kicks a lane that is idle.
#[test]
fn a_turn_after_the_end_reads_the_descriptor() {
    let machine = still(quiet());
    let mut lane = Cpu::claim_with(machine, cpu(0), WaitBy::KickFd).expect("a free lane");
    let _ = lane.enter_idle();
    machine.shutdown();
    assert!(is_readable(&lane));
    lane.turn();
    assert!(!is_readable(&lane));
}

/// Goal: a lane does not wait while it has something that it collected of another one. Method: lane 1 sleeps
/// with more timers than a turn runs; lane 0 goes idle after its first turn.
#[test]
fn a_lane_that_has_collected_does_not_wait() {
    let machine = still(quiet());
    let (mut lane, other) = (claim(machine, 0), Other::claim(machine, 1));
    lane.turn();
    let timers = other.act(move |lane| {
        lane.turn();
        let timer = |_| machine.timer(TimerOptions::new().precision(Precision::Tick), |_| ());
        let timers: Vec<_> = (0..300).map(timer).collect();
        timers.iter().for_each(|timer| _ = timer.arm_at(Nanos(machine.now().0 + 5 * TICK)).expect("it runs"));
        while !matches!(lane.enter_idle(), IdleUntil::Sleep { .. }) {}
        timers
    });
    pass(machine, 6 * TICK);
    let stats = lane.turn();
    assert_eq!((stats.ran, stats.has_more), (256, true));
    let now = machine.now();
    assert!(matches!(lane.enter_idle(), IdleUntil::Stay { until } if until <= now));
    assert_eq!(lane.turn().ran, 44);
    drop(timers);
    other.leave();
    drop(lane);
    machine.shutdown();
}

/// Goal: a task that never leaves its thread ends there, also if another thread wakes it after the end of the
/// machine. Method: where its future is dropped; woken by a thread with a lane, and by one without.
#[test]
fn a_local_task_is_dropped_by_its_thread() {
    /// Tells on which thread it was dropped.
    struct Tell(std::sync::mpsc::Sender<thread::ThreadId>);

    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().id());
        }
    }

    for has_lane in [false, true] {
        let machine = still(quiet());
        let other = Other::claim(machine, 0);
        let lane = has_lane.then(|| claim(machine, 1));
        let ((sender, dropped), (wakers, waker)) = (channel(), channel());
        let thread = other.act(move |lane| {
            let tell = Tell(sender);
            let waits = async move {
                let _tell = tell;
                std::future::poll_fn(|context| {
                    wakers.send(context.waker().clone()).expect("the test waits");
                    std::task::Poll::<()>::Pending
                })
                .await;
            };
            drop(lane.spawn_local(waits).expect("it runs"));
            lane.turn();
            thread::current().id()
        });
        machine.shutdown();
        wait_for(&waker).wake();
        assert!(dropped.try_recv().is_err(), "its thread has not come to it");
        other.leave();
        assert_eq!(wait_for(&dropped), thread);
        drop(lane);
    }
}
