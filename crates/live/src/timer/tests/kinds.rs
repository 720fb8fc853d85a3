//! Timers on one lane, whose clock stands still: which of them stay, wake it, and are told to it.

use crate::lane::{IdleUntil, WaitBy};
use crate::timer::{Precision, TimerHandle, TimerOptions};
use crate::{Cpu, CpuId, Machine, Nanos};
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::mpsc::channel;
use std::thread;

const MS: u64 = 1_000_000;
const DAY: u64 = 86_400_000 * MS;

/// A machine with one lane, which this thread drives; its clock stands at the moment that is returned.
fn standing(waits: WaitBy) -> (&'static Machine, Cpu, u64) {
    let lanes = "0".parse().expect("a list of CPUs");
    let machine = Machine::builder().lanes(lanes).stall_after(Duration::MAX).start().expect("it starts");
    let start = machine.now().0 / 1_000_000_000 * 1_000_000_000 + 2_000_000_000;
    machine.clock.freeze(Nanos(start));
    let mut cpu = Cpu::claim_with(machine, CpuId::default(), waits).expect("no thread has it");
    cpu.turn();
    (machine, cpu, start)
}

fn is_pinned(timer: &TimerHandle) -> bool {
    timer.0.timer().is_pinned()
}

/// Goal: what an arm on a CPU pins stays there until an arm for a moment, and what was made pinned stays for
/// ever. Method: each verb after an arm there.
#[test]
fn pins_last_until_an_arm_for_a_moment() {
    let (machine, cpu, start) = standing(WaitBy::Park);
    let at = |millis: u64| Nanos(start + millis * MS);
    let made_pinned = TimerOptions::new().pinned();
    for (options, stays) in [(TimerOptions::new(), false), (made_pinned, true)] {
        let timer = machine.timer(options, |_| {});
        timer.arm_on(cpu.cpu(), at(50)).expect("it has a lane");
        assert!(is_pinned(&timer));
        timer.arm_on(cpu.cpu(), at(40)).expect("it has a lane");
        assert!(is_pinned(&timer), "a second arm there");
        timer.reduce(at(30)).expect("it is running");
        assert!(is_pinned(&timer), "reduced");
        timer.mod_pending(at(35)).expect("it is running");
        assert!(is_pinned(&timer), "moved");
        timer.arm_at(at(20)).expect("it is running");
        assert_eq!(is_pinned(&timer), stays, "armed for a moment");
    }
    drop(cpu);
    machine.shutdown();
}

/// Goal: a coarse timer that is armed on a CPU for a moment beyond the wheel's reach is not early. Method:
/// 100 days, of which the lane plays every one.
#[test]
fn an_arm_on_a_cpu_does_not_reach_too_far() {
    let (machine, mut cpu, start) = standing(WaitBy::Park);
    let (sender, ran) = channel();
    let timer =
        machine.timer(TimerOptions::new(), move |run| sender.send(run.scheduled()).expect("it waits"));
    let due = Nanos(start + 100 * DAY);
    timer.arm_on(cpu.cpu(), due).expect("it has a lane");
    let mut play = |day: u64| {
        machine.clock.freeze(Nanos(start + day * DAY));
        while cpu.turn().has_more
            || machine.core.renewed_next_event(cpu.cpu()).is_some_and(|at| at <= machine.now())
        {}
    };
    for day in 1..100 {
        play(day);
        assert!(ran.try_recv().is_err(), "day {day}");
    }
    (100..103).for_each(&mut play);
    assert_eq!(ran.try_iter().collect::<Vec<_>>(), [due]);
    drop(cpu);
    machine.shutdown();
}

/// Goal: a deferrable timer wakes no lane, and runs when that is awake anyway; an exact one is never
/// deferred. Method: for when the lane, idle, would wait.
#[test]
fn a_deferrable_timer_wakes_no_lane() {
    for (precision, wakes) in [(Precision::Coarse, false), (Precision::Tick, false), (Precision::Exact, true)]
    {
        let (machine, mut cpu, start) = standing(WaitBy::Park);
        let (sender, ran) = channel();
        let options = TimerOptions::new().deferrable().precision(precision);
        let timer = machine.timer(options, move |_| sender.send(()).expect("the test waits"));
        let due = Nanos(start + 50 * MS);
        timer.arm_at(due).expect("it is running");
        let until = cpu.enter_idle().until();
        assert_eq!(until.is_some_and(|until| until <= due), wakes, "{precision:?}: {until:?}");
        machine.clock.freeze(Nanos(start + 100 * MS));
        cpu.turn();
        assert_eq!(ran.try_iter().count(), 1, "{precision:?}");
        drop(cpu);
        machine.shutdown();
    }
}

fn is_kicked(cpu: &Cpu) -> bool {
    let descriptor = cpu.kick_fd().expect("it was claimed with one");
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&at_once)).expect("it can be polled") != 0
}

/// Goal: a lane that waits for less than a tick is told of a timer that is due before, and that keeps its
/// moment more exactly than a tick. Method: another thread arms one of each kind for the lane.
#[test]
fn a_lane_that_dozes_is_told_of_exact_timers() {
    for (precision, is_told) in [(Precision::Tick, false), (Precision::Exact, true)] {
        let (machine, mut cpu, start) = standing(WaitBy::KickFd);
        let soon = machine.timer(TimerOptions::new(), |_| {});
        soon.arm_at(Nanos(start + MS)).expect("it is running");
        let idle = cpu.enter_idle();
        assert!(matches!(idle, IdleUntil::Stay { .. }), "{idle:?}");
        let timer = machine.timer(TimerOptions::new().precision(precision), |_| {});
        let armed = thread::scope(|scope| scope.spawn(|| timer.arm_at(Nanos(start + 1_000))).join());
        assert_eq!(armed.expect("no panic"), Ok(false));
        assert_eq!(is_kicked(&cpu), is_told, "{precision:?}");
        cpu.exit_idle();
        drop(cpu);
        machine.shutdown();
    }
}
