//! Lanes that host runtimes of tokio.

use proptest::prelude::*;
use quietcore::time::{Duration, Instant, sleep, sleep_until, timeout};
use quietcore::tokio::lanes::{self, LaneJoinHandle, LaneSpawnError, Lanes, LanesStartError};
use quietcore::{
    Cpu, CpuId, CpuSet, LaneThreads, Machine, Precision, TimerOptions, lane::Pinning, machine::OnPanic,
};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(20);

fn start(machine: &'static Machine) -> Lanes {
    Lanes::start(machine).expect("nobody else has its CPUs")
}

/// A machine with as many lanes as this process may have, isolated at first as no kernel says.
fn machine() -> &'static Machine {
    Machine::builder().automatic_lanes().isolated(CpuSet::new()).start().expect("starts")
}

/// The same with one lane.
fn small_machine() -> &'static Machine {
    let lanes = "0".parse().expect("a list");
    Machine::builder().lanes(lanes).isolated(CpuSet::new()).start().expect("starts")
}

fn first(lanes: &Lanes) -> CpuId {
    lanes.cpus().first().expect("there is a lane")
}

fn receive<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(PATIENCE).expect("it comes")
}

/// What a task returns.
fn join<T>(task: LaneJoinHandle<T>) -> T {
    quietcore::time::block_on(task).expect("it neither panics nor is cancelled")
}

/// The CPU that the calling lane drives, by its thread's name.
fn here() -> CpuId {
    let name = thread::current().name().expect("a lane has a name").to_owned();
    let number = name.strip_prefix("quietcore-").and_then(|number| number.parse().ok());
    CpuId::new(number.expect("it ends with the CPU")).expect("a CPU")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Goal: a sleep on a lane ends, and never early; also when it is cancelled and there are others. Method:
    /// random sleeps as tasks of all lanes, each looked at by itself.
    #[test]
    fn sleeps_end_and_never_early(spans in prop::collection::vec((0_u64..6_000, any::<bool>()), 1..60)) {
        let machine = machine();
        let lanes = start(machine);
        let tasks: Vec<_> = spans.iter().map(|&(micros, is_cut)| {
            let span = Duration::from_micros(micros);
            let task = lanes.spawn(move || async move {
                let begin = Instant::now();
                let due = begin + span;
                if is_cut {
                    let is_over = timeout(span, std::future::pending::<()>()).await.is_err();
                    (Instant::now() >= due) == is_over
                } else {
                    sleep(span).await;
                    Instant::now() >= due
                }
            });
            task.expect("no lane is isolated")
        }).collect();
        for (task, span) in tasks.into_iter().zip(&spans) {
            prop_assert!(join(task), "early: {span:?}");
        }
        lanes.shutdown();
        machine.shutdown();
    }
}

/// Goal: what is tokio's works on a lane: sleeps, TCP, blocking work, both kinds of spawning. Method: an echo
/// over loopback between two tasks, with each of them in it.
#[test]
fn tokio_works_unchanged() {
    let machine = machine();
    let lanes = start(machine);
    let echoed = lanes.run(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            let mut word = [0; 5];
            stream.read_exact(&mut word).await?;
            tokio::time::sleep(Duration::from_millis(2)).await;
            stream.write_all(&word).await
        });
        let word = tokio::task::spawn_blocking(|| {
            assert!(Machine::try_current().is_some(), "a blocking thread has the machine, too");
            *b"hello"
        });
        let client = tokio::task::spawn_local(async move {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(&word.await?).await?;
            let mut echo = [0; 5];
            stream.read_exact(&mut echo).await?;
            std::io::Result::Ok(echo)
        });
        server.await??;
        client.await?
    });
    assert_eq!(echoed.expect("not isolated").expect("loopback works"), *b"hello");
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: a task is woken by foreign threads, however often, and finds the lane's own timers on time after
/// it. Method: round trips through a channel of tokio, with sleeps in between.
#[test]
fn foreign_threads_wake_tasks() {
    let machine = machine();
    let lanes = start(machine);
    let (to_task, mut received) = tokio::sync::mpsc::unbounded_channel::<u32>();
    let (answer, answered) = channel();
    let task = lanes.spawn(move || async move {
        while let Some(number) = received.recv().await {
            if number % 50 == 0 {
                sleep(Duration::from_millis(2)).await;
            }
            answer.send(number).expect("somebody waits for it");
        }
    });
    for number in 0..1000 {
        to_task.send(number).expect("the task lives");
        assert_eq!(receive(&answered), number);
    }
    drop(to_task);
    join(task.expect("no lane is isolated"));
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: futures need not be `Send`, and stay on the lane that was named. Method: an `Rc` across waits, and
/// the thread's name before and after.
#[test]
fn futures_stay_where_they_are_made() {
    let machine = machine();
    let lanes = start(machine);
    for cpu in lanes.cpus().iter() {
        let task = lanes.spawn_on(cpu, move || async move {
            let count = Rc::new(Cell::new(0));
            for _ in 0..3 {
                assert_eq!(here(), cpu);
                sleep(Duration::from_millis(1)).await;
                count.set(count.get() + 1);
            }
            count.get()
        });
        assert_eq!(join(task.expect("it is a lane")), 3);
    }
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: an isolated lane gets what names it and nothing else, from the moment of its isolation to its end.
/// Method: who runs many tasks, before, while, and after; also with every lane isolated.
#[test]
fn isolated_lanes_are_left_out() {
    let machine = machine();
    let lanes = start(machine);
    let users = || {
        let tasks: Vec<_> = (0..20).map(|_| lanes.spawn(|| async { here() })).collect();
        tasks.into_iter().map(|task| join(task.expect("a lane is left"))).collect::<CpuSet>()
    };
    assert_eq!(users(), lanes.cpus(), "all take their turn");
    let isolated: CpuSet = lanes.cpus().iter().skip(1).collect();
    if machine.set_isolated(&isolated).is_ok() {
        assert_eq!(users(), lanes.cpus().difference(&isolated));
        for cpu in isolated.iter() {
            assert_eq!(join(lanes.spawn_on(cpu, || async { here() }).expect("it is a lane")), cpu);
        }
        machine.set_isolated(&CpuSet::new()).expect("none");
        assert_eq!(users(), lanes.cpus());
    }
    lanes.shutdown();
    let isolated = lanes_of_an_isolated_machine();
    assert_eq!(isolated, Err(LaneSpawnError::AllIsolated));
    machine.shutdown();
}

/// What spawning says where the only lane is isolated; `Ok` where this process has one CPU only.
fn lanes_of_an_isolated_machine() -> Result<(), LaneSpawnError> {
    let zero: CpuSet = "0".parse().expect("a list");
    let builder = Machine::builder().lanes(zero.clone()).isolated(zero);
    let Ok(machine) = builder.start() else { return Err(LaneSpawnError::AllIsolated) };
    let lanes = start(machine);
    let named = lanes.spawn_on(first(&lanes), || async { 7 }).expect("it is named");
    assert_eq!(join(named), 7);
    let result = lanes.spawn(|| async {}).map(drop);
    lanes.shutdown();
    machine.shutdown();
    result
}

/// Goal: lanes end while tasks are pending: those are dropped, their handles say so, and nothing is started
/// any more. Method: tasks that sleep, wait for a socket, and were never polled.
#[test]
fn shutdown_drops_what_is_pending() {
    struct Dropped(std::sync::mpsc::Sender<()>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let machine = machine();
    let lanes = start(machine);
    let (sender, dropped) = channel();
    let mut tasks = Vec::new();
    for number in 0..30 {
        let token = Dropped(sender.clone());
        let task = lanes.spawn(move || async move {
            let _token = token;
            match number % 3 {
                0 => sleep(Duration::from_secs(3600)).await,
                1 => tokio::time::sleep(Duration::from_secs(3600)).await,
                _ => drop(TcpListener::bind("127.0.0.1:0").await.expect("bound").accept().await),
            }
        });
        tasks.push(task.expect("no lane is isolated"));
    }
    let handle = lanes.handle().clone();
    lanes.shutdown_timeout(PATIENCE);
    drop(sender);
    assert_eq!(dropped.iter().count(), 30);
    for task in tasks {
        assert!(quietcore::time::block_on(task).expect_err("it never ends").is_cancelled());
    }
    assert_eq!(handle.spawn(|| async {}).expect_err("too late"), LaneSpawnError::ShutDown);
    assert_eq!(handle.run(|| async {}), Err(LaneSpawnError::ShutDown));
    let again = start(machine);
    assert_eq!(again.run(|| async { 7 }), Ok(7), "its CPUs are free again");
    again.shutdown();
    machine.shutdown();
}

/// Goal: a task that panics, in its making or later, leaves its lane alive. Method: both, then a sleep on
/// the same lane; also what `run` makes of it.
#[test]
fn a_panic_leaves_the_lane_alive() {
    let machine = small_machine();
    let lanes = start(machine);
    let cpu = first(&lanes);
    let early = lanes.spawn_on(cpu, || -> std::future::Ready<()> { panic!("in the making") });
    let late = lanes.spawn_on(cpu, || async {
        sleep(Duration::from_millis(1)).await;
        panic!("in the task");
    });
    for (task, word) in [(early, "in the making"), (late, "in the task")] {
        let error = quietcore::time::block_on(task.expect("it is a lane")).expect_err("it panics");
        assert!(error.is_panic() && !error.is_cancelled());
        let panic = error.try_into_panic().expect("it is one");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&word));
    }
    let run = std::panic::AssertUnwindSafe(|| lanes.run(|| async { panic!("in a run") }));
    assert!(std::panic::catch_unwind(run).is_err());
    let asleep = lanes.spawn_on(cpu, || async { sleep(Duration::from_millis(1)).await });
    join(asleep.expect("it is a lane"));
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: a kick ends a lane's wait: an exact timer that another thread arms for it runs there, though it
/// sleeps with nothing to wake up for. Method: many, on every lane, each after the lane went idle.
#[test]
fn kicks_end_a_wait() {
    let machine = machine();
    let lanes = start(machine);
    let (sender, ran) = channel();
    // One each: a timer that still runs is armed where it runs.
    let timer = |cpu| {
        let sender = sender.clone();
        let options = TimerOptions::new().precision(Precision::Exact);
        let timer = machine.timer(options, move |run| _ = sender.send((run.cpu(), here())));
        (cpu, timer)
    };
    let timers: Vec<_> = lanes.cpus().iter().map(timer).collect();
    for number in 0..40 {
        for (cpu, timer) in &timers {
            let cpu = *cpu;
            thread::sleep(Duration::from_millis(number % 4));
            timer.arm_on(cpu, machine.now()).expect("its lane is there");
            assert_eq!(receive(&ran), (cpu, cpu));
        }
    }
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: a lane that never waits still turns. Method: tasks that are always ready, beside a sleep and a timer
/// of a foreign thread, with several event intervals.
#[test]
fn a_busy_lane_turns() {
    let machine = small_machine();
    for interval in [1, 16, 61] {
        let lanes = Lanes::builder(machine).event_interval(interval).start().expect("starts");
        let (cpu, is_over) = (first(&lanes), Arc::new(tokio::sync::Notify::new()));
        for _ in 0..3 {
            let is_over = Arc::clone(&is_over);
            let busy = lanes.spawn_on(cpu, move || async move {
                let end = is_over.notified();
                let spin = async {
                    loop {
                        // Woken by itself, so tokio looks at its driver only every `interval` polls.
                        std::future::poll_fn(|context| {
                            context.waker().wake_by_ref();
                            std::task::Poll::<()>::Pending
                        })
                        .await;
                    }
                };
                tokio::select! { () = end => {}, () = spin => {} }
            });
            drop(busy.expect("it is a lane"));
        }
        let (sender, ran) = channel();
        let timer = machine.timer(TimerOptions::new(), move |_| sender.send(here()).expect("waited for"));
        for _ in 0..5 {
            timer.arm_on(cpu, machine.now()).expect("its lane is there");
            assert_eq!(receive(&ran), cpu);
            let due = Instant::now() + Duration::from_millis(2);
            join(lanes.spawn_on(cpu, move || async move { sleep_until(due).await }).expect("a lane"));
            assert!(Instant::now() >= due);
        }
        is_over.notify_waiters();
        lanes.shutdown();
    }
    machine.shutdown();
}

/// Goal: more than a turn's budget is run at once, not a tick later each; no sleep is forgotten. Method: a
/// thousand sleeps that are due together.
#[test]
fn many_that_are_due_together_all_run() {
    let machine = small_machine();
    let lanes = start(machine);
    let count = lanes.run(|| async {
        let due = Instant::now() + Duration::from_millis(20);
        let tasks: Vec<_> = (0..1000).map(|_| tokio::spawn(sleep_until(due))).collect();
        let mut count = 0;
        for task in tasks {
            task.await.expect("no panic");
            count += 1;
        }
        (count, Instant::now() >= due)
    });
    assert_eq!(count, Ok((1000, true)));
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: a task is aborted wherever it is; one that is done stays done. Method: before its lane came to it,
/// in a wait, and after its end.
#[test]
fn tasks_are_aborted() {
    let machine = small_machine();
    let lanes = start(machine);
    let cpu = first(&lanes);
    let (sender, is_blocked) = channel();
    let (release, released) = channel::<()>();
    let blocker = lanes.spawn_on(cpu, move || async move {
        sender.send(()).expect("waited for");
        receive(&released);
        7
    });
    receive(&is_blocked);
    let queued = lanes.spawn_on(cpu, || async { unreachable!("it was aborted before") });
    let queued: LaneJoinHandle<()> = queued.expect("a lane");
    queued.abort();
    release.send(()).expect("the lane waits for it");
    assert!(quietcore::time::block_on(queued).expect_err("aborted").is_cancelled());
    let waiting = lanes.spawn_on(cpu, std::future::pending::<()>).expect("a lane");
    lanes.run(|| async {}).expect("not isolated");
    waiting.abort();
    assert!(quietcore::time::block_on(waiting).expect_err("aborted").is_cancelled());
    let blocker = blocker.expect("a lane");
    lanes.run(|| async {}).expect("not isolated");
    blocker.abort();
    assert_eq!(join(blocker), 7);
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: what a lane cannot run because it blocks others run. Method: a callback that is not pinned, armed
/// on the lane before it blocks until that ran.
#[test]
fn others_run_what_a_blocked_lane_left() {
    let machine = small_machine();
    let lanes = start(machine);
    let ran_on = lanes.run(|| async {
        let (sender, ran) = channel();
        let timer = Machine::current().timer(TimerOptions::new(), move |_| {
            let _ = sender.send(thread::current().id());
        });
        timer.arm_after(Duration::from_millis(2)).expect("the machine runs");
        let own = thread::current().id();
        lanes::block_in_place(|| receive(&ran) != own)
    });
    assert_eq!(ran_on, Ok(true), "a spare did");
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: lanes outlive their machine: tasks go on with tokio's own time. Method: shut the machine down first.
#[test]
fn lanes_outlive_their_machine() {
    let machine = small_machine();
    let lanes = start(machine);
    lanes.run(|| async { sleep(Duration::from_millis(1)).await }).expect("not isolated");
    machine.shutdown();
    let word = lanes.run(|| async {
        tokio::time::sleep(Duration::from_millis(2)).await;
        tokio::spawn(async { 7 }).await.expect("no panic")
    });
    assert_eq!(word, Ok(7));
    lanes.shutdown();
}

/// Goal: a callback that panics on a lane is the machine's business, and the lane goes on. Method: one, then
/// a sleep.
#[test]
fn a_callback_that_panics_leaves_the_lane_alive() {
    let zero = "0".parse().expect("a list");
    let builder = Machine::builder().lanes(zero).isolated(CpuSet::new()).on_panic(OnPanic::Continue);
    let machine = builder.start().expect("starts");
    let lanes = start(machine);
    let timer = machine.timer(TimerOptions::new(), |_| panic!("in a callback"));
    timer.arm_on(first(&lanes), machine.now()).expect("its lane is there");
    while machine.metrics().sum(|cpu| cpu.panics) == 0 {
        lanes.run(|| async { sleep(Duration::from_millis(1)).await }).expect("not isolated");
    }
    assert_eq!(lanes.run(|| async { 7 }), Ok(7));
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: who cannot have its CPUs gets none of them. Method: a machine without lanes, one whose own threads
/// have them, and one where another thread has one.
#[test]
fn starting_is_all_or_nothing() {
    let without = Machine::start().expect("starts");
    assert!(matches!(Lanes::start(without), Err(LanesStartError::NoLanes)));
    without.shutdown();
    let taken = Machine::builder().automatic_lanes().lane_threads(LaneThreads::new()).start();
    let taken = taken.expect("starts");
    assert!(matches!(Lanes::start(taken), Err(LanesStartError::Claim(_))));
    taken.shutdown();
    let machine = machine();
    let last = machine.lanes().iter().last().expect("there is one");
    let cpu = Cpu::claim(machine, last).expect("it is free");
    assert!(matches!(Lanes::start(machine), Err(LanesStartError::Claim(_))));
    drop(cpu);
    let lanes = Lanes::builder(machine).pinning(Pinning::Always).start().expect("all are free again");
    assert_eq!(
        lanes.spawn_on(CpuId::new(4000).expect("a CPU"), || async {}).expect_err("no lane").to_string(),
        "CPU 4000 is no lane with a runtime"
    );
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: a pinned lane's blocking work is not pinned. Method: where each may run.
#[test]
fn blocking_work_runs_anywhere() {
    let machine = machine();
    let lanes = Lanes::builder(machine).pinning(Pinning::Always).start().expect("starts");
    let count = || rustix::thread::sched_getaffinity(None).map(|set| set.count()).unwrap_or_default();
    let (on_lane, elsewhere) = lanes
        .run(move || async move { (count(), tokio::task::spawn_blocking(count).await.expect("no panic")) })
        .expect("not isolated");
    assert_eq!(elsewhere, count(), "as the test's own thread");
    assert!(on_lane == 1 || !machine.notes().is_empty());
    lanes.shutdown();
    machine.shutdown();
}

/// Goal: a task that is never made, because its lane ends first, was cancelled and did not panic. Method: a
/// task ends its lanes, then starts another: the order to end is ahead in the queue.
#[test]
fn what_is_never_made_was_cancelled() {
    let machine = small_machine();
    let lanes = start(machine);
    let handle = lanes.handle().clone();
    let (sender, never_made) = channel();
    let task = handle.clone().spawn(move || async move {
        drop(lanes);
        sender.send(handle.spawn(|| async { unreachable!("its lane has ended") })).expect("waited for");
    });
    let task: LaneJoinHandle<()> = task.and(receive(&never_made)).expect("the lane takes orders still");
    let error = quietcore::time::block_on(task).expect_err("it never began");
    assert!(error.is_cancelled() && !error.is_panic(), "{error:?}");
    assert_eq!(error.to_string(), "the task was cancelled before it began");
    machine.shutdown();
}

/// Goal: the last to let go of the lanes may be one of their tasks. Method: one that drops them.
#[test]
fn a_task_may_end_its_lanes() {
    let machine = small_machine();
    let lanes = start(machine);
    let handle = lanes.handle().clone();
    let (sender, is_over) = channel();
    let task = handle.spawn(move || async move {
        drop(lanes);
        sender.send(()).expect("waited for");
    });
    receive(&is_over);
    drop(task);
    // It takes no orders from the end of that poll on.
    while handle.spawn(|| async {}).is_ok() {
        thread::yield_now();
    }
    assert_eq!(handle.spawn(|| async {}).expect_err("too late"), LaneSpawnError::ShutDown);
    machine.shutdown();
}
