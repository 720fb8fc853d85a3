//! A child that was forked by what a lane or the helper runs: nothing else of the parent's machine runs in
//! it, and it can start a machine of its own.
//!
//! In a process of its own, one after the other: other tests' threads could be inside a lock of the standard
//! library at the fork.
#![allow(unsafe_code, reason = "forks")]

use quietcore_live::isolation::TimerRaise;
use quietcore_live::lane::WaitBy;
use quietcore_live::softirq::{SoftirqRun, Vector, VectorSet};
use quietcore_live::task::WorkOptions;
use quietcore_live::time::{Instant, sleep_until};
use quietcore_live::timer::{CallbackTimer, Cancelled};
use quietcore_live::virtual_time::{IdleOutcome, Participate, TimeError, block_on};
use quietcore_live::{
    Cpu, CpuId, CpuSet, Machine, MachineBuilder, Nanos, Precision, TimerHandle, TimerOptions,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::future::{self, Future};
use std::pin::pin;
use std::process;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

/// For the test that forks.
static ALONE: Mutex<()> = Mutex::new(());

const MILLI: Duration = Duration::from_millis(1);

/// What a child ends with that is as it should be.
const WELL: i32 = 7;

/// What one ends with in which something of the parent's machine has run.
const RAN: i32 = 3;

/// What runs on a machine, several of a kind: the first forks, and in its child no other may run.
#[derive(Default)]
struct Several {
    begun: AtomicU32,
    parent: AtomicU32,
    child: AtomicI32,
}

impl Several {
    fn run(&self) {
        if self.begun.fetch_add(1, Ordering::Relaxed) == 0 {
            self.parent.store(process::id(), Ordering::Relaxed);
            // SAFETY: the child goes on in this thread, and leaves with `_exit`, or as its last thread ends.
            let child = unsafe { libc::fork() };
            assert!(child >= 0, "fork");
            if child > 0 {
                self.child.store(child, Ordering::Relaxed);
            }
        } else if process::id() != self.parent.load(Ordering::Relaxed) {
            exit(RAN);
        }
    }

    /// Waits until `count` have run in this process, and until the child has ended. Says with what, `None` if
    /// it hung and was killed.
    fn outcome(&self, count: u32) -> Option<i32> {
        let mut status = 0;
        let mut is_over = false;
        for _ in 0..20_000 {
            let child = self.child.load(Ordering::Relaxed);
            if child > 0 && !is_over {
                // SAFETY: the pointer is to a local variable.
                is_over = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child;
            }
            if is_over && self.begun.load(Ordering::Relaxed) == count {
                return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            }
            thread::sleep(MILLI);
        }
        let child = self.child.load(Ordering::Relaxed);
        if child > 0 && !is_over {
            // SAFETY: our child, which was not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        None
    }
}

/// Ends this process at once.
fn exit(code: i32) -> ! {
    // SAFETY: nothing that belongs to the parent runs.
    unsafe { libc::_exit(code) }
}

/// A machine whose one lane no thread has claimed yet.
fn start(builder: MachineBuilder) -> &'static Machine {
    builder.lanes("0".parse().expect("a list")).start().expect("threads and timers can be had")
}

/// Lets a thread drive the lane of `machine` until that ends; returns when it has claimed it. In a child the
/// thread tries another machine.
fn drive(machine: &'static Machine) {
    let parent = process::id();
    let (sender, claimed) = channel();
    let _ = thread::spawn(move || {
        let mut cpu = Cpu::claim(machine, CpuId::default()).expect("a free lane");
        sender.send(()).expect("it waits");
        while machine.is_running() {
            if !cpu.turn().has_more {
                cpu.park();
            }
        }
        drop(cpu);
        if process::id() != parent {
            start_another(machine);
            exit(WELL);
        }
    });
    claimed.recv().expect("it was claimed");
}

/// The parent's machine is refused, and the child's own runs a timer.
fn start_another(of_parent: &'static Machine) {
    if of_parent.timer(TimerOptions::new(), |_| ()).arm_after(MILLI).is_ok() {
        exit(4);
    }
    of_parent.shutdown();
    let machine = Machine::start().expect("threads and timers can be had");
    let (sender, receiver) = channel();
    let timer = machine.timer(TimerOptions::new(), move |_| sender.send(()).expect("it waits"));
    timer.arm_after(MILLI).expect("it runs");
    receiver.recv().expect("it was armed");
    machine.shutdown();
}

/// Goal: in a child that a callback, a softirq handler or work has forked nothing of the parent's machine
/// runs, also nothing that was due in the same turn; the thread comes back from its turn, and the child can
/// start another machine. On the helper's thread the child ends. Method: four of a kind, of which the first
/// forks; a child that hangs is noticed by the parent.
#[test]
fn nothing_else_runs_in_a_child() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    const COUNT: u32 = 4;
    let several = || -> &'static Several { Box::leak(Box::default()) };
    let timers = |machine: &'static Machine, state: &'static Several| -> Vec<_> {
        (0..COUNT).map(|_| machine.timer(TimerOptions::new(), |_| state.run())).collect()
    };
    let soon = |machine: &Machine| Nanos(machine.now().0 + 20_000_000);
    let work = |machine: &'static Machine, state: &'static Several| {
        let work = machine.work(WorkOptions::new(), || state.run()).expect("it has a lane");
        assert!(work.queue().expect("it runs"));
    };

    let (machine, state) = (start(Machine::builder()), several());
    drive(machine);
    let armed = timers(machine, state);
    let at = soon(machine);
    armed.iter().for_each(|timer| _ = timer.arm_on(CpuId::default(), at).expect("a lane drives it"));
    assert_eq!(state.outcome(COUNT), Some(WELL), "timers on a lane");
    drop(armed);
    machine.shutdown();

    let (machine, state) = (Machine::start().expect("threads and timers can be had"), several());
    let armed = timers(machine, state);
    let at = soon(machine);
    armed.iter().for_each(|timer| _ = timer.arm_at(at).expect("it runs"));
    assert_eq!(state.outcome(COUNT), Some(0), "timers on the helper, whose thread is the child's last");
    drop(armed);
    machine.shutdown();

    // The first is pending once more.
    let handle = |run: &SoftirqRun<'_>, state: &Several| {
        if state.begun.load(Ordering::Relaxed) == 0 {
            run.raise_again();
        }
        state.run();
    };
    let with_handlers = |vectors: VectorSet, state: &'static Several| {
        let add = |builder: MachineBuilder, vector| builder.softirq(vector, move |run| handle(run, state));
        vectors.iter().fold(Machine::builder(), add)
    };
    let state = several();
    let all = VectorSet::from_iter([Vector::HI, Vector::TASKLET, Vector::SCHED, Vector::RCU]);
    let machine = start(with_handlers(all, state));
    machine.raise(CpuId::default(), all).expect("they have handlers");
    work(machine, state);
    drive(machine);
    assert_eq!(state.outcome(COUNT + 2), Some(WELL), "softirqs on a lane, and work behind them");
    machine.shutdown();

    // No thread drives the lane, so its ksoftirqd runs them.
    let state = several();
    let machine = start(with_handlers(VectorSet::LONG, state));
    machine.raise(CpuId::default(), VectorSet::LONG).expect("they have handlers");
    assert_eq!(state.outcome(COUNT + 1), Some(0), "softirqs on ksoftirqd, whose thread is the child's last");
    machine.shutdown();

    let (machine, state) = (start(Machine::builder()), several());
    (0..COUNT).for_each(|_| work(machine, state));
    drive(machine);
    assert_eq!(state.outcome(COUNT), Some(WELL), "work");
    machine.shutdown();
}

/// Ends a child with [`RAN`] if it is dropped there.
struct OfParent(u32);

impl Drop for OfParent {
    fn drop(&mut self) {
        if process::id() != self.0 {
            exit(RAN);
        }
    }
}

/// Goal: a child that wakes a task of the parent's does not run its destructor. Method: a task that waits,
/// whose waker is called in a child.
#[test]
fn a_task_of_the_parent_is_not_dropped_in_a_child() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = start(Machine::builder());
    drive(machine);
    let (sender, receiver) = channel();
    let of_parent = OfParent(process::id());
    let task = machine.spawn(async move {
        let _of_parent = of_parent;
        future::poll_fn(|context| {
            sender.send(context.waker().clone()).expect("the test waits");
            Poll::<()>::Pending
        })
        .await;
    });
    let waker: Waker = receiver.recv().expect("it was polled");
    thread::sleep(10 * MILLI);
    // SAFETY: the child wakes the task and leaves with `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        waker.wake();
        exit(WELL);
    }
    let state = Several { begun: AtomicU32::new(0), parent: AtomicU32::new(0), child: AtomicI32::new(child) };
    assert_eq!(state.outcome(0), Some(WELL));
    drop(task);
    machine.shutdown();
}

/// Forks; says what a child ends with that does `run`, and then leaves with [`WELL`].
fn in_a_child(run: impl FnOnce()) -> Option<i32> {
    // SAFETY: the child runs what the caller says, on this thread alone, and leaves with `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        run();
        exit(WELL);
    }
    let state = Several { begun: AtomicU32::new(0), parent: AtomicU32::new(0), child: AtomicI32::new(child) };
    state.outcome(0)
}

/// Goal: what a child asks of its parent's machine waits for no lock of it. Method: what is known of the
/// machine under locks is empty there, and not in the parent.
#[test]
fn nothing_is_known_in_a_child() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = start(Machine::builder().nohz_full("1".parse().expect("a list")));
    let known = || (machine.metrics().cpus.is_empty(), machine.isolated().is_empty());
    let is_wrong = || known() != (true, true) || !machine.notes().is_empty();
    assert_eq!(
        in_a_child(|| if is_wrong() {
            exit(4)
        }),
        Some(WELL)
    );
    assert_eq!(known(), (false, false));
    machine.shutdown();
}

/// Goal: a machine of a child is refused in a child of that, as any other. Method: a child starts one, which
/// another child of it takes for its own if the first fork counts as all there were. Forks count from the
/// first machine on, so the parent has one, too.
#[test]
fn a_machine_of_a_child_is_refused_in_its_child() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = start(Machine::builder());
    let grandchild = in_a_child(|| {
        let machine = Machine::start().expect("threads and timers can be had");
        let armed = || machine.timer(TimerOptions::new(), |_| ()).arm_after(MILLI).is_ok();
        let is_armed = in_a_child(|| {
            if armed() {
                exit(4)
            }
        });
        if !armed() || is_armed != Some(WELL) {
            exit(5);
        }
        machine.shutdown();
    });
    machine.shutdown();
    assert_eq!(grandchild, Some(WELL));
}

/// Goal: a lane in a child runs nothing that is due in the parent. Method: a timer and a task are due before
/// the fork; the child turns, and the parent after it.
#[test]
fn a_turn_in_a_child_runs_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = start(Machine::builder().stall_after(Duration::MAX));
    let mut lane = Cpu::claim(machine, CpuId::default()).expect("a free lane");
    let parent = process::id();
    let run = move || {
        if process::id() != parent {
            exit(RAN);
        }
    };
    let timer = machine.timer(TimerOptions::new().pinned(), move |_| run());
    timer.arm_at(machine.now()).expect("it runs");
    drop(machine.spawn_on(CpuId::default(), async move { run() }).expect("it runs"));
    thread::sleep(2 * MILLI);
    assert_eq!(in_a_child(|| _ = lane.turn()), Some(WELL));
    let stats = lane.turn();
    assert_eq!((stats.ran, stats.items), (1, 1));
    drop(lane);
    machine.shutdown();
}

/// Goal: nor does an isolated lane that goes by ticks. Method: a timer of its own is due before the fork.
#[test]
fn a_turn_by_ticks_in_a_child_runs_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let isolated = CpuSet::from_iter([CpuId::default()]);
    let builder = Machine::builder().stall_after(Duration::MAX).isolated(isolated);
    let machine = start(builder.timer_raise(TimerRaise::Unconditional));
    let mut lane = Cpu::claim(machine, CpuId::default()).expect("a free lane");
    let parent = process::id();
    let timer = machine.timer(TimerOptions::new().pinned(), move |_| {
        if process::id() != parent {
            exit(RAN);
        }
    });
    timer.arm_at(machine.now()).expect("it runs");
    thread::sleep(2 * MILLI);
    assert_eq!(in_a_child(|| _ = lane.turn()), Some(WELL));
    assert_eq!(lane.turn().ran, 1);
    drop(lane);
    machine.shutdown();
}

/// Goal: in a child that an item has forked no timer runs that is due after it. Method: a task arms one for
/// now, and forks.
#[test]
fn no_timer_runs_behind_an_item_that_forks() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = start(Machine::builder().stall_after(Duration::MAX));
    let mut lane = Cpu::claim(machine, CpuId::default()).expect("a free lane");
    let (parent, state): (_, &'static Several) = (process::id(), Box::leak(Box::default()));
    let exact = TimerOptions::new().pinned().precision(Precision::Exact);
    let timer = machine.timer(exact, |_| state.run());
    let armed = timer.clone();
    let forks = async move {
        armed.arm_at(machine.now()).expect("it runs");
        state.run();
    };
    drop(machine.spawn_on(CpuId::default(), forks).expect("it runs"));
    lane.turn();
    if process::id() != parent {
        exit(WELL);
    }
    assert_eq!(state.outcome(2), Some(WELL));
    drop((timer, lane));
    machine.shutdown();
}

/// Goal: in a child that a waker has forked no other that was due with it is woken. Method: two sleeps of one
/// lane, whose wakers fork.
#[test]
fn no_waker_runs_behind_one_that_forks() {
    struct Forks(&'static Several);

    impl Wake for Forks {
        fn wake(self: Arc<Self>) {
            self.0.run();
        }
    }

    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = start(Machine::builder().stall_after(Duration::MAX));
    let mut lane = Cpu::claim(machine, CpuId::default()).expect("a free lane");
    let (parent, state): (_, &'static Several) = (process::id(), Box::leak(Box::default()));
    let at = Instant::now() + 2 * MILLI;
    let waker = Waker::from(Arc::new(Forks(state)));
    let sleeps = [(); 2].map(|()| {
        let mut sleep = Box::pin(sleep_until(at));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        sleep
    });
    thread::sleep(10 * MILLI);
    lane.turn();
    if process::id() != parent {
        exit(WELL);
    }
    assert_eq!(state.outcome(2), Some(WELL));
    drop((sleeps, lane));
    machine.shutdown();
}

/// Goal: in a child that the end of a callback's closure has forked no other timer runs. Method: two timers
/// that are due at once and whose closures fork when they are dropped, by the lane, as nothing else holds
/// them.
#[test]
fn no_timer_runs_behind_a_drop_that_forks() {
    struct Forks(&'static Several);

    impl Drop for Forks {
        fn drop(&mut self) {
            self.0.run();
        }
    }

    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = start(Machine::builder().stall_after(Duration::MAX));
    let mut lane = Cpu::claim(machine, CpuId::default()).expect("a free lane");
    let (parent, state): (_, &'static Several) = (process::id(), Box::leak(Box::default()));
    for _ in 0..2 {
        let forks = Forks(state);
        let keeper: Arc<Mutex<Option<TimerHandle>>> = Arc::default();
        let kept = Arc::clone(&keeper);
        let timer = machine.timer(TimerOptions::new().pinned(), move |_| {
            let _ = &forks;
            if process::id() != parent {
                exit(RAN);
            }
            drop(kept.lock().expect("no panic").take());
        });
        timer.arm_at(machine.now()).expect("it runs");
        *keeper.lock().expect("no panic") = Some(timer);
    }
    thread::sleep(3 * MILLI);
    lane.turn();
    if process::id() != parent {
        exit(WELL);
    }
    assert_eq!(state.outcome(2), Some(WELL));
    drop(lane);
    machine.shutdown();
}

/// Goal: in a child that a callback has forked no task is told that the callback has returned: those that
/// wait for it are the parent's. Method: the callback registers such a waiter, and forks.
#[test]
fn no_waiter_is_told_behind_a_callback_that_forks() {
    struct OfParentOnly(u32);

    impl Wake for OfParentOnly {
        fn wake(self: Arc<Self>) {
            if process::id() != self.0 {
                exit(RAN);
            }
        }
    }

    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = start(Machine::builder().stall_after(Duration::MAX));
    let mut lane = Cpu::claim(machine, CpuId::default()).expect("a free lane");
    let (parent, state): (_, &'static Several) = (process::id(), Box::leak(Box::default()));
    let timer = machine.timer(TimerOptions::new().pinned(), move |run| {
        let waker = Waker::from(Arc::new(OfParentOnly(parent)));
        let mut waiter = pin!(run.timer().cancel_and_wait());
        assert!(waiter.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(), "it runs");
        state.run();
    });
    timer.arm_at(machine.now()).expect("it runs");
    thread::sleep(3 * MILLI);
    lane.turn();
    if process::id() != parent {
        exit(WELL);
    }
    assert_eq!(state.outcome(1), Some(WELL));
    drop((timer, lane));
    machine.shutdown();
}

/// Goal: a child takes no kick from its parent's lane, whose descriptor is the child's, too. Method: a lane
/// is kicked in its wait; a child does each thing that ends a wait; the parent still finds the kick.
#[test]
fn a_child_takes_no_kick() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_readable = |lane: &Cpu| {
        let fd = lane.kick_fd().expect("it was claimed with one");
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&Timespec::default())).expect("a descriptor") == 1
    };
    let machine = start(Machine::builder().stall_after(Duration::MAX));
    let mut lane = Cpu::claim_with(machine, CpuId::default(), WaitBy::KickFd).expect("a free lane");
    let _ = lane.enter_idle();
    lane.unparker().unpark();
    let ends: [fn(&mut Cpu); 4] = [
        |lane| _ = lane.turn(),
        |lane| _ = lane.enter_idle(),
        |lane| lane.block_in_place(|| ()),
        |lane| lane.exit_idle(),
    ];
    for end in ends {
        assert_eq!(in_a_child(|| end(&mut lane)), Some(WELL));
        assert!(is_readable(&lane));
    }
    lane.exit_idle();
    assert!(!is_readable(&lane));
    drop(lane);
    machine.shutdown();
}

/// Goal: tasks of a lane's thread are not dropped in a child, also if that drops the lane. Method: one that
/// waits, and would tell.
#[test]
fn a_local_task_of_the_parent_is_not_dropped_in_a_child() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = start(Machine::builder());
    let mut lane = Some(Cpu::claim(machine, CpuId::default()).expect("a free lane"));
    let of_parent = OfParent(process::id());
    let task = lane.as_mut().expect("it is there").spawn_local(async move {
        let _of_parent = of_parent;
        future::pending::<()>().await;
    });
    lane.as_mut().expect("it is there").turn();
    assert_eq!(in_a_child(|| drop(lane.take())), Some(WELL));
    drop((task, lane));
    machine.shutdown();
}

/// Goal: a child has no reports of its parent's lanes. Method: a lane that is silent until that is reported.
#[test]
fn a_child_has_no_reports() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = start(Machine::builder());
    let mut lane = Cpu::claim(machine, CpuId::default()).expect("a free lane");
    let timer = machine.timer(TimerOptions::new(), |_| ());
    timer.arm_after(MILLI).expect("it runs");
    lane.turn();
    let is_reported = (0..20_000).any(|_| {
        thread::sleep(MILLI);
        !machine.stalls().is_empty()
    });
    assert!(is_reported, "the sentinel finds it");
    let look = || {
        if !machine.stalls().is_empty() || machine.stalls_dropped() > 0 {
            exit(RAN);
        }
    };
    assert_eq!(in_a_child(look), Some(WELL));
    drop((timer, lane));
    machine.shutdown();
}

/// Goal: in a child every timer of the parent's is idle, also the one whose callback has forked it, and
/// neither is cancelled for the child. Method: what each verb says there.
#[test]
fn timers_of_the_parent_are_idle_in_a_child() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = Machine::start().expect("threads and timers can be had");
    let pending = machine.timer(TimerOptions::new(), |_| exit(RAN));
    let far = Nanos(machine.now().0 + 1_000_000_000_000);
    pending.arm_periodic(far, MILLI).expect("it runs");
    let (sender, forked) = channel();
    let same = pending.clone();
    let forking = machine.timer(TimerOptions::new(), move |run| {
        // SAFETY: the child leaves with `_exit`.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork");
        if child > 0 {
            return sender.send(child).expect("the test waits");
        }
        let is_idle = |timer: &CallbackTimer| {
            !timer.is_running()
                && !timer.cancel()
                && timer.try_cancel() == Cancelled::Idle
                && timer.cancel_sync() == Ok(false)
                && !timer.shutdown()
                && timer.period().is_none()
        };
        exit(if is_idle(run.timer()) && is_idle(&same) { WELL } else { RAN });
    });
    forking.arm_after(MILLI).expect("it runs");
    let child = forked.recv().expect("it runs");
    let state = Several { begun: AtomicU32::new(0), parent: AtomicU32::new(0), child: AtomicI32::new(child) };
    assert_eq!(state.outcome(0), Some(WELL));
    assert!(pending.cancel(), "the parent's is pending still");
    machine.shutdown();
}

/// One that is asked for its backlog, under the lock of time, and answers when it is told to.
struct Asked(Mutex<Sender<()>>, Mutex<Receiver<()>>);

impl Participate for Asked {
    fn has_backlog(&self) -> bool {
        self.0.lock().expect("no panic").send(()).expect("the test waits");
        self.1.lock().expect("no panic").recv().is_ok()
    }

    fn look_again(&self) {}
}

/// Goal: in a child paused time is the parent's: who takes part there waits for no lock, and it is not moved.
/// Method: another thread holds the lock of time at the fork; the child does what can be done to time, and
/// blocks on a future.
#[test]
fn paused_time_is_not_a_childs() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = Machine::builder().virtual_time().start().expect("threads and timers can be had");
    machine.pause().expect("it can be paused");
    let ((sender, asked), (answer, receiver)) = (channel(), channel());
    let participant = machine.participate(Arc::new(Asked(Mutex::new(sender), Mutex::new(receiver))));
    let idle = thread::spawn(move || (participant.idle(), participant));
    asked.recv().expect("it is asked");
    let child = || {
        let (hold, other) = (machine.hold(), machine.participate(Arc::new(Nothing)));
        other.wake();
        let (begun, idle) = (other.begin(), other.idle());
        drop((hold, other));
        let refused = [machine.pause(), machine.resume(), machine.advance(MILLI)];
        let _entered = machine.enter();
        let answer = block_on(async { 42 });
        if (begun, idle, answer) != (true, IdleOutcome::Wait, 42) || refused != [Err(TimeError::Refused); 3] {
            exit(RAN);
        }
    };
    let outcome = in_a_child(child);
    answer.send(()).expect("it waits");
    let (idle, participant) = idle.join().expect("no panic");
    assert_eq!((outcome, idle), (Some(WELL), IdleOutcome::Wait));
    drop((answer, participant));
    machine.shutdown();
}

/// Takes part, and is never asked.
struct Nothing;

impl Participate for Nothing {
    fn look_again(&self) {}
}
