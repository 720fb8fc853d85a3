//! A lane that hosts a runtime of tokio (`current_thread`), tried out: does it work with hooks alone, how
//! late are timers then, and what does it cost? What was found is in `docs/tokio-lane.md`.
//!
//! The lane is parked where tokio parks: `on_thread_park` goes idle in the books and programs a timer of the
//! kernel for the moment up to which the lane may sleep; tokio's driver waits for that timer and for kicks as
//! for any descriptor. `on_thread_unpark` turns. A lane that never parks turns when the same timer expires,
//! once per tick, which tokio's driver sees every `event_interval` polls.

use quietcore::time::{Instant, Precision, sleep};
use quietcore::{Cpu, CpuId, CpuSet, Machine, WaitBy};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::cell::RefCell;
use std::error::Error;
use std::future::Future;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};

const TICK: Duration = Duration::from_millis(1);

/// What the hooks work on: they run on the lane's own thread.
struct Lane {
    cpu: Cpu,
    alarm: OwnedFd,
}

thread_local! {
    static LANE: RefCell<Option<Lane>> = const { RefCell::new(None) };
}

impl Lane {
    /// Expires once after `delay`; never for `None`.
    fn program(&self, delay: Option<Duration>) {
        let zero = Timespec::default();
        let span = delay.map_or(zero, |delay| {
            Timespec::try_from(delay.max(Duration::from_nanos(1))).expect("no lane sleeps for so long")
        });
        let once = Itimerspec { it_interval: zero, it_value: span };
        timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once).expect("any moment will do");
    }

    fn before_park(&mut self) {
        let idle = self.cpu.enter_idle();
        self.program(idle.timeout(self.cpu.machine().now()));
    }

    /// Says whether more is due.
    fn turn(&mut self) -> bool {
        let has_more = self.cpu.turn().has_more;
        self.program(Some(TICK));
        has_more
    }
}

/// With the lane of this thread, if it has one. Wakers that a turn calls may come back here: not for long.
fn with_lane<R>(act: impl FnOnce(&mut Lane) -> R) -> Option<R> {
    LANE.with(|lane| lane.try_borrow_mut().ok()?.as_mut().map(act))
}

/// A runtime whose worker is the lane of the thread that drives it.
fn runtime(event_interval: u32) -> Result<Runtime, Box<dyn Error>> {
    let mut builder = Builder::new_current_thread();
    builder.enable_io().event_interval(event_interval);
    builder.on_thread_park(|| _ = with_lane(Lane::before_park));
    builder.on_thread_unpark(|| _ = with_lane(Lane::turn));
    Ok(builder.build()?)
}

/// Turns whenever a kick or the timer says so.
#[allow(deprecated, reason = "sound for descriptors that are owned; what replaces it is unsafe")]
async fn keep_turning(kicks: OwnedFd, alarm: OwnedFd) -> Result<(), Box<dyn Error>> {
    let (kicks, alarm) = (AsyncFd::new(kicks)?, AsyncFd::new(alarm)?);
    loop {
        tokio::select! {
            ready = kicks.readable() => ready?.clear_ready(),
            ready = alarm.readable() => ready?.clear_ready(),
        }
        while with_lane(Lane::turn).unwrap_or(false) {
            tokio::task::yield_now().await;
        }
    }
}

/// Runs `main` on a lane of `machine`, which is `cpu`, with all it spawns.
fn host<T: Send + 'static>(
    machine: &'static Machine,
    cpu: CpuId,
    event_interval: u32,
    main: impl Future<Output = T> + Send + 'static,
) -> Receiver<T> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let serve = || -> Result<T, Box<dyn Error>> {
            let cpu = Cpu::claim_with(machine, cpu, WaitBy::KickFd)?;
            let kicks = cpu.kick_fd().expect("it was claimed with one").try_clone_to_owned()?;
            let alarm = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
            let readable = alarm.as_fd().try_clone_to_owned()?;
            LANE.with(|lane| *lane.borrow_mut() = Some(Lane { cpu, alarm }));
            let runtime = runtime(event_interval)?;
            let result = runtime.block_on(async {
                tokio::select! {
                    result = main => Ok(result),
                    Err(error) = keep_turning(kicks, readable) => Err(error),
                }
            });
            drop(runtime);
            LANE.with(|lane| drop(lane.borrow_mut().take()));
            result
        };
        match serve() {
            Ok(result) => _ = sender.send(result),
            Err(error) => eprintln!("a lane gave up: {error}"),
        }
    });
    receiver
}

/// How late `count` sleeps of 1 to 5 ms were, in us, sorted.
async fn sleeps(count: u64) -> Vec<u128> {
    let mut late = Vec::new();
    for number in 0..count {
        let due = Instant::now() + Duration::from_micros(1000 + 997 * number % 4000);
        sleep(due - Instant::now()).await;
        late.push((Instant::now() - due).as_micros());
    }
    late.sort_unstable();
    late
}

/// Beside `tasks` that compute for 50 us at a time, and yield.
async fn sleeps_beside(tasks: usize, count: u64) -> Vec<u128> {
    let busy: Vec<_> = (0..tasks)
        .map(|_| {
            tokio::spawn(async {
                loop {
                    let start = std::time::Instant::now();
                    while start.elapsed() < Duration::from_micros(50) {
                        std::hint::spin_loop();
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let late = sleeps(count).await;
    busy.iter().for_each(tokio::task::JoinHandle::abort);
    late
}

/// Microseconds of a round trip: another thread sends, the lane's task answers.
async fn round_trips(count: u32) -> f64 {
    let (to_lane, mut received) = tokio::sync::mpsc::unbounded_channel::<()>();
    let (answer, answered) = channel();
    let stranger = thread::spawn(move || {
        let start = std::time::Instant::now();
        for _ in 0..count {
            to_lane.send(()).expect("the task receives it");
            answered.recv().expect("the task answers");
        }
        start.elapsed().as_micros() as f64 / f64::from(count)
    });
    while received.recv().await.is_some() {
        answer.send(()).expect("the thread waits for it");
    }
    stranger.join().expect("it does not panic")
}

fn quantile(sorted: &[u128], share: f64) -> u128 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

fn show(name: &str, late: &[u128]) {
    let at = |share| quantile(late, share);
    println!("  {name:44} late us p50 {:6} p99 {:6} max {:6}", at(0.5), at(0.99), at(1.0));
}

fn main() -> Result<(), Box<dyn Error>> {
    let machine = Machine::builder().automatic_lanes().start()?;
    let lanes: Vec<CpuId> = machine.lanes().iter().collect();
    let cpu = *lanes.first().ok_or("this process may run nowhere")?;
    println!("lane {cpu} of {}", lanes.iter().copied().collect::<CpuSet>());
    show("sleeps of 1 to 5 ms, nothing else", &host(machine, cpu, 61, sleeps(400)).recv()?);
    for interval in [61, 16, 1] {
        let late = host(machine, cpu, interval, sleeps_beside(4, 400)).recv()?;
        show(&format!("beside 4 tasks of 50 us, event_interval {interval}"), &late);
    }
    let hosted = host(machine, cpu, 61, round_trips(5000)).recv()?;
    let plain = Builder::new_current_thread().enable_io().build()?.block_on(round_trips(5000));
    println!("  round trips with another thread: {hosted:.1} us on a lane, {plain:.1} us without one");
    let (sender, ran) = channel();
    let timer = machine.timer(quietcore::TimerOptions::new().precision(Precision::Exact), move |run| {
        let _ = sender.send((run.cpu(), run.lateness()));
    });
    let (claimed, is_claimed) = channel();
    let ended = host(machine, cpu, 61, async move {
        claimed.send(()).expect("the main thread waits");
        sleeps(200).await
    });
    is_claimed.recv()?;
    let mut late = Vec::new();
    for _ in 0..100 {
        timer.arm_on(cpu, machine.now())?;
        let (on, lateness) = ran.recv()?;
        assert_eq!(on, cpu, "it was armed for this lane");
        late.push(lateness.as_micros());
    }
    late.sort_unstable();
    show("due at once, armed for the lane by a stranger", &late);
    ended.recv()?;
    machine.shutdown();
    Ok(())
}
