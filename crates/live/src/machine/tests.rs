//! The helper expires what threads arm; nothing is left behind.

#![allow(unsafe_code, reason = "its user's half of the promise")]

use super::{ArmError, Machine, StartError};
use crate::Cpu;
use crate::payload::{Payload, WakeEntry};
use crate::words::waker_cell::WakerCell;
use core::task::Waker;
use core::time::Duration;
use quietcore_core::place::Policy;
use quietcore_core::{CpuId, CpuSet, Nanos, Precision, Timer, TimerOptions, TimerRef};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::Wake;

struct Tell(Sender<Nanos>, &'static Machine);

impl Wake for Tell {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(self.1.now());
    }
}

/// Goal: a timer that a thread arms wakes its waker, not before its time, and is counted. Method: one timer
/// each for now, soon, and after the helper has gone to sleep.
#[test]
fn the_helper_wakes_what_is_due() {
    let machine = Machine::start().expect("starts");
    let (sender, receiver) = channel();
    let waker = Waker::from(Arc::new(Tell(sender, machine)));
    let options = TimerOptions::new().detached().precision(Precision::Tick);
    let entry =
        WakeEntry { timer: Timer::new(Payload::wake(machine.reference()), options), cell: WakerCell::new() };
    let entry = Box::pin(entry);
    for after in [0, 300_000, 30_000_000, 5_000_000] {
        entry.cell.reset();
        let _ = entry.cell.register(&waker);
        let now = machine.now();
        let deadline = Nanos(now.0 + after);
        // SAFETY: the entry is pinned, and it is dropped after its last run.
        let timer = unsafe { TimerRef::new(entry.address()) };
        let armed = machine.act(|actions| machine.core.arm(timer, deadline, machine.context(now), actions));
        assert!(!armed.expect("it runs").was_pending);
        let woken = receiver.recv_timeout(Duration::from_secs(20)).expect("it is woken");
        assert!(woken >= deadline, "{woken:?} is before {deadline:?}");
        assert!(!entry.timer.is_pending());
    }
    let metrics = machine.metrics();
    let spare = metrics.cpus.iter().find(|cpu| cpu.is_spare).expect("there is one");
    assert_eq!((spare.ran_for_others, spare.lateness.len()), (4, 4), "{metrics:?}");
    assert_eq!(metrics.sum(|cpu| cpu.bases.ran_elsewhere), 4);
    machine.shutdown();
}

/// Goal: a builder's budget of a turn and its nodes are the machine's, and nodes that cannot be are refused.
/// Method: machines that are asked; lists that name a CPU twice.
#[test]
fn turns_and_nodes_are_as_asked_for() {
    let cpus = |list: &str| list.parse::<CpuSet>().expect("a list");
    let machine = Machine::builder().turn_budget(1, Duration::from_secs(1)).start().expect("starts");
    let settings = machine.core.settings().turn;
    assert_eq!((settings.timers(), settings.time()), (1, Nanos(1_000_000_000)));
    machine.shutdown();
    let machine = Machine::builder().nodes([cpus("1"), cpus("0")]).start().expect("starts");
    let topology = machine.core.topology();
    let node = |number| topology.node_of(CpuId::new(number).expect("few")).expect("it is there").0;
    assert_eq!((topology.node_count(), node(0), node(1)), (2, 1, 0));
    machine.shutdown();
    let refused = Machine::builder().nodes([cpus("0"), cpus("0-1")]).start().expect_err("0 is twice");
    assert!(refused.to_string().starts_with("these nodes cannot be: "), "{refused}");
}

/// Goal: a machine whose helper died refuses instead of taking arms that no thread runs, and can still be
/// shut down. Method: what guards the helper's code, around a panic, before and after a shutdown.
#[test]
fn a_machine_whose_helper_died_says_so() {
    let machine = Machine::start().expect("starts");
    assert_eq!(machine.check_alive(), Ok(()));
    let waits = std::thread::spawn(|| {
        let _entered = machine.enter();
        crate::virtual_time::block_on(crate::time::sleep(Duration::from_secs(86_400)));
    });
    while machine.metrics().sum(|cpu| cpu.bases.armed) == 0 {
        std::thread::yield_now();
    }
    machine.survive(|| panic!("this message belongs to a test"));
    let panic = waits.join().expect_err("its time will not come");
    assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("broke down")));
    assert_eq!(machine.check_alive(), Err(ArmError::Broken));
    assert!(!machine.is_running());
    let timer = machine.timer(crate::TimerOptions::new(), |_| ());
    assert_eq!(timer.arm_after(Duration::ZERO), Err(ArmError::Broken));
    machine.shutdown();
    assert_eq!(machine.check_alive(), Err(ArmError::ShutDown));
    machine.survive(|| panic!("this message belongs to a test"));
    assert_eq!(machine.check_alive(), Err(ArmError::ShutDown));
}

/// Goal: a machine has the CPUs and lanes that it was given, and the limit. Method: fewer CPUs than the host
/// has, and more lanes than CPUs.
#[test]
fn a_machine_is_as_it_was_built() {
    let first: CpuSet = "0".parse().expect("a list");
    let builder = Machine::builder().cpus(first).lanes("0-1".parse().expect("a list"));
    let machine = builder.defer_limit(Duration::from_millis(7)).start().expect("starts");
    let shown = format!("{machine:?}");
    assert_eq!(shown, "Machine { cpus: 0, lanes: 0, is_running: true, .. }");
    assert_eq!(machine.defer_limit, Nanos(7_000_000));
    machine.shutdown();
}

/// Goal: foreign threads arm on a CPU while a lane drives it and it is not isolated, and then without a lock.
/// Method: what a thread on CPU 0 reads while this one claims it, isolates it and leaves it.
#[test]
fn foreign_threads_arm_where_a_lane_takes_timers() {
    let machine = Machine::builder().lanes("0-1".parse().expect("a list")).start().expect("starts");
    let first = CpuId::new(0).expect("a CPU");
    let is_near = || machine.hosts.near(0) == first;
    let isolate = |list: &str| machine.set_isolated(&list.parse().expect("a list")).expect("one is left");
    assert!(!is_near(), "no thread drives it");
    let cpu = Cpu::claim(machine, first).expect("it is free");
    assert!(is_near());
    assert_eq!(isolate("0").left, "0".parse().expect("a list"));
    assert!(!is_near(), "it is isolated");
    isolate("");
    assert!(is_near());
    drop(cpu);
    assert!(!is_near(), "its thread has left");
    machine.shutdown();
}

/// Goal: settings that make no sense are refused, those beside them are not. Method: ticks on both sides of a
/// microsecond; placement by lanes with and without lanes.
#[test]
fn settings_on_both_sides_of_a_limit() {
    let tick = |nanos| Machine::builder().tick(Duration::from_nanos(nanos)).start();
    assert!(matches!(tick(999), Err(StartError::Tick { .. })));
    tick(1_000).expect("the shortest").shutdown();
    let first = || "0".parse().expect("a list");
    let policy = |policy, lanes| Machine::builder().policy(policy).cpus(first()).lanes(lanes).start();
    for needs in [Policy::Push, Policy::Stay] {
        let refused = policy(needs, CpuSet::new());
        assert!(matches!(refused, Err(StartError::NeedsLanes { policy }) if policy == needs), "{refused:?}");
        policy(needs, first()).expect("it has a lane").shutdown();
    }
    policy(Policy::Pull, CpuSet::new()).expect("it needs none").shutdown();
}

/// Goal: a machine has a spare at least, with lanes as many as it was given, and without lanes no more than
/// the helper drives. Method: counts.
#[test]
fn spares_are_as_many_as_are_of_use() {
    let first = || -> CpuSet { "0".parse().expect("a list") };
    for (lanes, asked, made) in [(CpuSet::new(), 3, 1), (first(), 0, 1), (first(), 3, 3)] {
        let machine = Machine::builder().lanes(lanes).spare_lanes(asked).start().expect("starts");
        assert_eq!(machine.metrics().sum(|cpu| u64::from(cpu.is_spare)), made, "{asked} on {machine:?}");
        machine.shutdown();
    }
}

/// Goal: a machine whose lanes are chosen for it has some, the last word counts, and time that can be paused
/// has one base for all. Method: the CPUs of each.
#[test]
fn chosen_cpus() {
    let none = Machine::builder().automatic_lanes().lanes(CpuSet::new()).start().expect("starts");
    assert!(none.lanes().is_empty());
    none.shutdown();
    let some = Machine::builder().automatic_lanes().start().expect("starts");
    assert!(!some.lanes().is_empty());
    some.shutdown();
    let paused = Machine::builder().virtual_time().start().expect("starts");
    assert_eq!(paused.cpus.len(), 1);
    paused.shutdown();
}

/// Goal: the end of a machine is the end of its own threads. Method: how many are kept to be waited for.
#[test]
fn a_shutdown_waits_for_the_threads_of_the_machine() {
    let machine = Machine::builder().lanes("0".parse().expect("a list")).start().expect("starts");
    let threads = || machine.threads.lock().expect("no panic").len();
    assert!(threads() >= 2, "the sentinel and a spare");
    machine.shutdown();
    assert_eq!(threads(), 0);
}

/// Goal: wakers that are taken together are counted one by one. Method: three futures of one thread that are
/// due together; the thread drives a lane.
#[test]
fn each_waker_is_counted() {
    let lanes = "0".parse().expect("a list");
    let machine = Machine::builder().lanes(lanes).stall_after(Duration::MAX).start().expect("starts");
    let start = Nanos(machine.now().0 + 1_000_000_000);
    machine.clock.freeze(start);
    let mut cpu = Cpu::claim(machine, CpuId::default()).expect("it is free");
    let mut context = core::task::Context::from_waker(Waker::noop());
    let mut naps = [(); 3].map(|()| Box::pin(crate::time::sleep(Duration::from_millis(5))));
    for nap in &mut naps {
        assert!(nap.as_mut().poll(&mut context).is_pending());
    }
    machine.clock.freeze(Nanos(start.0 + 50_000_000));
    assert_eq!(cpu.turn().ran, 3);
    let counted = &machine.metrics().cpus[0];
    assert_eq!((counted.ran_own, counted.lateness.len()), (3, 3), "{counted:?}");
    drop(naps);
    drop(cpu);
    machine.shutdown();
}

/// Goal: a callback that blocks is told at once that it must not, as what it waits for may wait for it; a
/// task may. Method: one on a helper and one on a lane block on what is ready, and a task on that lane; both
/// machines go on.
#[test]
fn a_callback_that_blocks_says_so() {
    use crate::virtual_time::block_on;
    let helper = Machine::builder().start().expect("starts");
    let lanes = Machine::builder().lanes("0".parse().expect("a list"));
    let lanes = lanes.lane_threads(crate::LaneThreads::new()).start().expect("starts");
    let (sender, receiver) = std::sync::mpsc::channel();
    for machine in [helper, lanes] {
        let sender = sender.clone();
        let timer = machine.timer(crate::TimerOptions::new(), move |_| {
            let panic = std::panic::catch_unwind(|| block_on(async { 7 })).expect_err("it panics");
            let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
            sender.send(text).expect("the test waits");
        });
        for _ in 0..2 {
            timer.arm_after(Duration::ZERO).expect("it runs");
            let text = receiver.recv().expect("it is told").expect("it is a text");
            assert!(text.contains("in a callback") && text.contains("spawn a task"), "{text}");
        }
    }
    let task = lanes.spawn(async { block_on(async { 7 }) }).expect("there is a lane");
    assert_eq!(block_on(task).expect("it ends"), 7);
    for machine in [helper, lanes] {
        machine.shutdown();
    }
}

/// Goal: what is pending when a machine ends is pending no more. Method: one-shot, periodic, exact and far
/// timers with callbacks, and one of a lane.
#[test]
fn nothing_is_pending_after_the_end() {
    let lanes = Machine::builder().lanes("0".parse().expect("a list")).start().expect("starts");
    let helper = Machine::builder().start().expect("starts");
    for machine in [helper, lanes] {
        let timers =
            [crate::Precision::Coarse, crate::Precision::Tick, crate::Precision::Exact].map(|precision| {
                let options = crate::TimerOptions::new().precision(precision);
                let [once, again, far] = [0; 3].map(|_| machine.timer(options, |_| panic!("it never runs")));
                let day = Duration::from_secs(86_400);
                once.arm_after(day).expect("it runs");
                again.arm_periodic(Nanos(machine.now().0 + day.as_nanos() as u64), day).expect("it runs");
                far.arm_after(day * 500).expect("it runs");
                [once, again, far]
            });
        let pending = || timers.iter().flatten().filter(|timer| timer.is_pending()).count();
        assert_eq!(pending(), 9);
        machine.shutdown();
        assert_eq!(pending(), 0);
        for timer in timers.iter().flatten() {
            assert!(!timer.cancel());
            assert_eq!(timer.arm_after(Duration::ZERO), Err(ArmError::ShutDown));
        }
    }
}
