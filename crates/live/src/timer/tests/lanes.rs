//! Callback timers on lanes: where they run, and who may not wait.

use crate::timer::{Precision, TimerHandle, TimerOptions, WouldBlock};
use crate::{ArmError, Cpu, CpuId, Machine, Nanos};
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, ThreadId};

/// A machine with as many lanes as there are CPUs, the first of which this thread claims.
fn with_lane() -> (&'static Machine, Cpu) {
    let all = "0-1023".parse().expect("a list of CPUs");
    let machine = Machine::builder().lanes(all).start().expect("it starts");
    let first = machine.lane_set.first().expect("this process may run somewhere");
    let cpu = Cpu::claim(machine, first).expect("nobody has it");
    (machine, cpu)
}

/// A timer that says where it runs.
fn telling(machine: &'static Machine, options: TimerOptions) -> (TimerHandle, Receiver<(CpuId, ThreadId)>) {
    let (sender, receiver) = channel();
    let timer = machine.timer(options, move |run| {
        assert!(run.now() >= run.scheduled());
        sender.send((run.cpu(), thread::current().id())).expect("the test waits");
    });
    (timer, receiver)
}

fn play<T>(cpu: &mut Cpu, receiver: &Receiver<T>) -> T {
    loop {
        if let Ok(value) = receiver.try_recv() {
            return value;
        }
        if cpu.turn().ran == 0 {
            cpu.park();
        }
    }
}

/// Goal: periods on a CPU stay on its lane; one that has no lane is refused, and what the timer was armed for
/// stays. Method: as below; while the lane blocks a spare runs what is not bound to it.
#[test]
fn periods_stay_on_their_lane() {
    let (machine, mut cpu) = with_lane();
    let here = (cpu.cpu(), thread::current().id());
    for precision in [Precision::Coarse, Precision::Exact] {
        let (timer, ran) = telling(machine, TimerOptions::new().precision(precision));
        let (first, period) = (machine.now(), Duration::from_millis(2));
        let (other, ran_elsewhere) = telling(machine, TimerOptions::new().precision(Precision::Tick));
        cpu.begin_block();
        let armed = thread::scope(|scope| {
            let arm = || timer.arm_periodic_on(here.0, first, period);
            scope.spawn(arm).join().expect("no panic")
        });
        assert_eq!(armed, Ok(false));
        other.arm_after(Duration::from_millis(3)).expect("it is running");
        let elsewhere = ran_elsewhere.recv_timeout(Duration::from_secs(60)).expect("it runs");
        assert!(elsewhere.0 != here.0 && ran.try_recv().is_err());
        cpu.end_block();
        for _ in 0..3 {
            assert_eq!(play(&mut cpu, &ran), here);
        }
        let deadline = timer.deadline();
        let none = CpuId::new(4000).expect("a small number");
        assert_eq!(timer.arm_periodic_on(none, first, period), Err(ArmError::NoLane { cpu: none }));
        assert_eq!((timer.deadline(), timer.period()), (deadline, Some(period)));
        timer.cancel();
    }
    drop(cpu);
    machine.shutdown();
}

/// Goal: a pinned timer, and one that is armed on a CPU, runs on that CPU's lane, of either kind, once and
/// periodically; the next arm for a moment lets it go. Method: the lane is this thread; others arm.
#[test]
fn pinned_timers_run_on_their_lane() {
    let (machine, mut cpu) = with_lane();
    let here = (cpu.cpu(), thread::current().id());
    for precision in [Precision::Tick, Precision::Exact] {
        let options = TimerOptions::new().precision(precision);
        let (pinned, ran) = telling(machine, options.pinned());
        pinned.arm_after(Duration::from_millis(2)).expect("this is a lane");
        assert_eq!(play(&mut cpu, &ran), here);
        let first = Nanos(machine.now().0 + 1_000_000);
        pinned.arm_periodic(first, Duration::from_millis(2)).expect("this is a lane");
        assert_eq!((play(&mut cpu, &ran), play(&mut cpu, &ran)), (here, here));
        pinned.cancel();

        let (timer, ran) = telling(machine, options);
        thread::scope(|scope| {
            let armed = scope.spawn(|| timer.arm_on(here.0, machine.now()));
            assert_eq!(play(&mut cpu, &ran), here);
            assert_eq!(armed.join().expect("it does not panic"), Ok(false));
        });
        timer.arm_on(here.0, Nanos(machine.now().0 + 3_600_000_000_000)).expect("it has a lane");
        // A spare runs it while this lane does not turn.
        cpu.begin_block();
        assert_eq!(timer.arm_after(Duration::ZERO), Ok(true));
        let (cpu_of_run, thread_of_run) = ran.recv_timeout(Duration::from_secs(60)).expect("it runs");
        assert!(cpu_of_run != here.0 && thread_of_run != here.1, "{precision:?}: on {cpu_of_run:?}");
        cpu.end_block();
        let nobody = CpuId::new(1_000).expect("below the limit");
        assert_eq!(timer.arm_on(nobody, machine.now()), Err(ArmError::NoLane { cpu: nobody }));
    }
    drop(cpu);
    machine.shutdown();
}

/// Goal: an arm on a CPU ends the periods. Method: a periodic timer, for an hour ahead, is armed there; it
/// runs once, and is idle then.
#[test]
fn an_arm_on_a_cpu_ends_the_periods() {
    let (machine, mut cpu) = with_lane();
    let here = (cpu.cpu(), thread::current().id());
    let (timer, ran) = telling(machine, TimerOptions::new());
    let first = Nanos(machine.now().0 + 3_600_000_000_000);
    timer.arm_periodic(first, Duration::from_millis(1)).expect("it is running");
    assert_eq!(timer.arm_on(here.0, machine.now()), Ok(true));
    assert_eq!(play(&mut cpu, &ran), here);
    assert!(!timer.is_pending(), "a period follows");
    drop(cpu);
    machine.shutdown();
}

/// Goal: a lane does not wait for a run, but its timer is cancelled. Method: a run that is held on a spare
/// while the lane is away.
#[test]
fn a_lane_does_not_wait() {
    let (machine, mut cpu) = with_lane();
    let (began, has_begun) = channel();
    let (end, may_end) = channel();
    let timer = machine.timer(TimerOptions::new().precision(Precision::Tick), move |_| {
        began.send(()).expect("the test waits");
        may_end.recv_timeout(Duration::from_secs(60)).expect("the test goes on");
    });
    cpu.begin_block();
    timer.arm_after(Duration::ZERO).expect("it is running");
    has_begun.recv_timeout(Duration::from_secs(60)).expect("a spare runs it");
    timer.arm_after(Duration::from_secs(60)).expect("it is running");
    assert_eq!(timer.cancel_sync(), Err(WouldBlock));
    assert!(!timer.is_pending() && timer.is_running());
    end.send(()).expect("the callback waits");
    cpu.end_block();
    drop(cpu);
    assert_eq!(timer.cancel_sync(), Ok(false), "this thread is no lane any more");
    machine.shutdown();
}

/// Goal: shutting down waits for a callback that a thread of the program runs, in whichever turn it began,
/// and no other one starts after it. Method: two timers are due on this lane; the first one is held until
/// two threads have called `shutdown`, the second of which comes late.
#[test]
fn shutdown_waits_for_every_callback() {
    let (machine, mut cpu) = with_lane();
    let (began, has_begun) = channel();
    let (end, may_end) = channel();
    let options = TimerOptions::new().precision(Precision::Tick).pinned();
    let held = machine.timer(options, move |_| {
        began.send(()).expect("the test waits");
        may_end.recv_timeout(Duration::from_secs(60)).expect("the test goes on");
    });
    let (late, ran) = telling(machine, options);
    held.arm_after(Duration::ZERO).expect("it is running");
    late.arm_after(Duration::from_millis(1)).expect("it is running");
    let (ended, has_ended) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            has_begun.recv().expect("it runs");
            let callers = [(); 2].map(|()| {
                let ended = ended.clone();
                let caller = scope.spawn(move || {
                    machine.shutdown();
                    ended.send(()).expect("the test waits");
                });
                while machine.is_running() {
                    thread::yield_now();
                }
                caller
            });
            assert!(has_ended.recv_timeout(Duration::from_millis(20)).is_err(), "a callback runs still");
            end.send(()).expect("the callback waits");
            let _ = callers.map(|caller| caller.join().expect("it does not panic"));
        });
        thread::sleep(Duration::from_millis(5)); // both are due
        while cpu.turn().has_more || machine.is_running() {}
    });
    assert!(ran.try_recv().is_err(), "it was not to start any more");
    assert_eq!(cpu.turn().ran, 0);
    drop(cpu);
    assert!(!late.is_pending());
}

/// Goal: a callback may end its machine: it does not wait for itself, and nothing starts after it in the same
/// turn. Method: two timers are due on this lane, both of which would.
#[test]
fn a_callback_ends_the_machine() {
    let (machine, mut cpu) = with_lane();
    let (ran, runs) = channel();
    let options = TimerOptions::new().precision(Precision::Tick).pinned();
    let timers = [(); 2].map(|()| {
        let ran = ran.clone();
        machine.timer(options, move |_| {
            machine.shutdown();
            ran.send(()).expect("the test waits");
        })
    });
    for timer in &timers {
        timer.arm_after(Duration::ZERO).expect("it is running");
    }
    thread::sleep(Duration::from_millis(3)); // both are due
    assert_eq!((cpu.turn().ran, runs.try_iter().count()), (1, 1));
    drop(cpu);
    machine.shutdown();
}

/// Goal: a callback that ends its machine ends the tasks, too, whether or not a lane is there to do it.
/// Method: a task waits for ever on a lane that no thread drives; what has become of it when the callback
/// returns.
#[test]
fn a_callback_ends_the_tasks() {
    let machine = Machine::builder().lanes("0".parse().expect("a list")).start().expect("it starts");
    let task = machine.spawn(core::future::pending::<()>()).expect("it has a lane");
    let (sender, ends) = channel();
    let timer = machine.timer(TimerOptions::new(), move |_| {
        machine.shutdown();
        sender.send(task.is_finished()).expect("the test waits");
    });
    timer.arm_after(Duration::ZERO).expect("it is running");
    assert!(ends.recv_timeout(Duration::from_secs(20)).expect("the helper runs it"));
    machine.shutdown();
}

/// When `timer` is due that this thread arms `delay` ms from now, in ns past that moment.
fn lateness(machine: &'static Machine, cpu: CpuId, timer: &TimerHandle, delay: u64) -> u64 {
    let at = Nanos(machine.now().0 + delay * 1_000_000);
    timer.arm_at(at).expect("it is running");
    let due = machine.core.renewed_next_event(cpu).expect("it is armed");
    timer.cancel();
    due.0.checked_sub(at.0).expect("never early")
}

/// Goal: a coarse timer is late by an eighth of its own delay and a tick, however long ago its lane looked at
/// the clock. Method: a lane that does other things while the clock goes on:
/// it does not turn, it blocks, it is idle, a callback takes long; then it arms timers of several levels.
#[test]
fn a_long_absence_makes_no_timer_coarser() {
    let (machine, mut cpu) = with_lane();
    let here = cpu.cpu();
    let timer = machine.timer(TimerOptions::new(), |_| {});
    let check = |what: &str, absence: u64| {
        for delay in [1, 20, 61, 62, 63, 200, 5_000] {
            let late = lateness(machine, here, &timer, delay);
            let bound = delay * 1_000_000 / 8 + 1_000_000;
            assert!(late <= bound, "{what} {absence} ms, then {delay} ms: late by {late} ns");
        }
    };
    for absence in [0, 600, 5_000, 100_000] {
        let pass = move || machine.clock.freeze(Nanos(machine.now().0 + absence * 1_000_000));
        cpu.turn();
        pass();
        check("no turn for", absence);
        cpu.turn();
        cpu.block_in_place(pass);
        check("after a block of", absence);
        cpu.turn();
        let _ = cpu.enter_idle();
        pass();
        cpu.exit_idle();
        check("after a wait of", absence);
    }
    drop(cpu);
    machine.shutdown();
}

/// Goal: what the end of a callback asks of others is asked before the next callback, which may be long, or
/// before the turn ends. Method: in the first one, of a timer that a stranger armed, its lane is isolated and
/// the timer armed anew: it goes to the other lane, which is kicked. The second one, which stays, looks for
/// that; or there is none, and the test looks.
#[test]
fn others_are_told_between_two_callbacks() {
    assert_eq!(told_after_a_callback(true), Some(true), "the second one has seen it");
    assert_eq!(told_after_a_callback(false), None);
}

fn told_after_a_callback(has_second: bool) -> Option<bool> {
    let lanes = "0-1".parse().expect("a list of CPUs");
    let machine = Machine::builder().lanes(lanes).stall_after(Duration::MAX).start().expect("it starts");
    let (this, other) = (CpuId::default(), CpuId::new(1).expect("below the limit"));
    let mut cpu = Cpu::claim(machine, this).expect("nobody has it");
    let (claimed, is_claimed) = channel();
    let waiting = thread::spawn(move || {
        let mut cpu = Cpu::claim(machine, other).expect("nobody has it");
        claimed.send(()).expect("the test waits");
        while machine.is_running() {
            let _ = cpu.turn();
            cpu.park();
        }
    });
    is_claimed.recv().expect("it begins");
    let due = Nanos(machine.now().0 + 1_000_000);
    machine.clock.freeze(Nanos(due.0 - 1));
    let kicks = move || machine.metrics().cpus[other.index()].kicks;
    let before = Arc::new(AtomicU64::new(u64::MAX));
    let (inside, of_second) = (Arc::clone(&before), Arc::clone(&before));
    let first = machine.timer(TimerOptions::new().precision(Precision::Exact), move |run| {
        let list = "0".parse().expect("a list of CPUs");
        let isolated = machine.set_isolated(&list).expect("the other one is left");
        assert!(isolated.still_running.contains(this), "it is in this callback");
        run.timer().arm_at(Nanos(run.now().0 + 1_000)).expect("it is running");
        inside.store(kicks(), Ordering::Relaxed);
    });
    let (sender, told) = channel();
    let second = machine.timer(TimerOptions::new().deferrable().pinned(), move |_| {
        sender.send(kicks() > of_second.load(Ordering::Relaxed)).expect("the test waits");
    });
    if has_second {
        second.arm_at(due).expect("it is running");
    }
    let arm_as_stranger = || {
        let mut here = rustix::thread::CpuSet::new();
        here.set(this.index());
        rustix::thread::sched_setaffinity(None, &here).expect("the test may run there");
        first.arm_at(due)
    };
    let armed = thread::scope(|scope| scope.spawn(arm_as_stranger).join().expect("no panic"));
    assert_eq!(armed, Ok(false));
    machine.clock.freeze(Nanos(due.0 + 2_000_000));
    assert_eq!(cpu.turn().ran, 1 + u32::from(has_second));
    assert!(kicks() > before.load(Ordering::Relaxed));
    drop(cpu);
    machine.shutdown();
    waiting.join().expect("no panic");
    told.try_recv().ok()
}
