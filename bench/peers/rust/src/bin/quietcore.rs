//! quietcore's runtime (`mode=`, parts joined by `+`).
//!
//! - `helper`: its futures under tokio's executor, whose own timers are off; a helper thread expires them;
//! - `lanes`: the same futures under async-executor on two threads that are lanes and expire them themselves;
//! - `tokio` (with `lanes`): the lanes are `quietcore_tokio`'s, and each hosts a runtime of tokio;
//! - `exact`: the futures are exact to what the system's clock and wake-ups allow, not to a tick;
//! - `callbacks`: timers with callbacks in place of sleeps; those of pairs are made beforehand;
//! - `stuck`: a lane that measures does not turn meanwhile, so it is marked as stuck.

use async_executor::Executor;
use quietcore_live::time::{self, Sleep};
use quietcore_live::{Cpu, CpuId, CpuSet, Machine, Precision, TimerHandle, TimerOptions, lane::WaitBy};
use quietcore_peers::load::{Load, Measure, Place};
use quietcore_peers::runtime::{Runtime, WORKERS, boxed, in_task, poll_once};
use quietcore_peers::sync::{Bell, Count};
use quietcore_tokio::lanes::Lanes;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{read, write};
use rustix::time::Timespec;
use std::cell::RefCell;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

/// What a mode consists of.
const PARTS: &[&str] = &["helper", "lanes", "tokio", "exact", "callbacks", "stuck"];

static EXECUTOR: Executor<'static> = Executor::new();

/// What runs the tasks.
enum Tasks {
    /// tokio's workers, which are no lanes.
    Workers(tokio::runtime::Runtime),
    /// An executor that the lanes share.
    Shared,
    /// A runtime of tokio on each lane.
    Hosted(Lanes),
}

struct Peer {
    machine: &'static Machine,
    tasks: Tasks,
    exact: bool,
    callbacks: bool,
    stuck: bool,
}

thread_local! {
    /// Of the thread of a lane.
    static LANE: RefCell<Option<Cpu>> = const { RefCell::new(None) };
}

/// Calls `step` with the lane of the present thread.
fn on_lane<T>(step: impl FnOnce(&mut Cpu) -> T) -> Option<T> {
    LANE.with_borrow_mut(|lane| lane.as_mut().map(step))
}

/// What a task wakes to be run: the lane that looks for tasks.
struct Look {
    bell: Bell,
    descriptor: OwnedFd,
}

impl Wake for Look {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.bell.ring() {
            write(&self.descriptor, &1u64.to_ne_bytes()).expect("a counter of 64 bits has room");
        }
    }
}

impl Peer {
    fn helper() -> Result<(&'static Machine, Tasks), String> {
        let machine = Machine::start().map_err(|error| error.to_string())?;
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(WORKERS).enable_io();
        let tokio = builder.build().map_err(|error| error.to_string())?;
        Ok((machine, Tasks::Workers(tokio)))
    }

    fn lanes(hosted: bool) -> Result<(&'static Machine, Tasks), String> {
        let allowed = rustix::thread::sched_getaffinity(None).map_err(|error| error.to_string())?;
        let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number));
        let cpus: CpuSet = cpus.filter_map(|number| CpuId::new(number as u64).ok()).take(WORKERS).collect();
        if cpus.iter().count() < WORKERS {
            return Err("lanes have CPUs of their own, and there are not 2".to_owned());
        }
        let machine = Machine::builder().lanes(cpus.clone()).start().map_err(|error| error.to_string())?;
        if hosted {
            let lanes = Lanes::start(machine).map_err(|error| error.to_string())?;
            return Ok((machine, Tasks::Hosted(lanes)));
        }
        let (claimed, ready) = mpsc::channel();
        for cpu in cpus.iter() {
            let claimed = claimed.clone();
            std::thread::spawn(move || serve(machine, cpu, &claimed));
        }
        for _ in 0..WORKERS {
            ready.recv().map_err(|_| "a lane gave up".to_owned())??;
        }
        Ok((machine, Tasks::Shared))
    }

    fn precise(&self, sleep: Sleep) -> Sleep {
        if self.exact { sleep.with_precision(Precision::Exact) } else { sleep }
    }

    /// Of the present thread, if pairs are made with one.
    fn timer(&self) -> Option<TimerHandle> {
        self.callbacks.then(|| self.machine.timer(TimerOptions::new(), |_| panic!("it is far away")))
    }
}

/// The thread of a lane: runs timers and tasks until the process ends.
fn serve(machine: &'static Machine, cpu: CpuId, claimed: &mpsc::Sender<Result<(), String>>) {
    let answer = Cpu::claim_with(machine, cpu, WaitBy::KickFd).map_err(|error| error.to_string());
    match answer {
        Ok(cpu) => LANE.set(Some(cpu)),
        Err(error) => return claimed.send(Err(error)).expect("whoever starts lanes waits for them"),
    }
    let descriptor = eventfd(0, EventfdFlags::NONBLOCK).expect("a descriptor is left");
    let look = Arc::new(Look { bell: Bell::default(), descriptor });
    let waker = Waker::from(Arc::clone(&look));
    let mut tasks = pin!(EXECUTOR.run(std::future::pending::<()>()));
    claimed.send(Ok(())).expect("whoever starts lanes waits for them");
    let _ = look.bell.ring(); // there may be tasks already
    loop {
        let has_more = on_lane(|cpu| cpu.turn().has_more).expect("this thread claimed one");
        if look.bell.answer() {
            // 200 tasks at most; it rings if there are more.
            assert!(tasks.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        } else if !has_more {
            let _ = on_lane(|cpu| rest(cpu, &look));
        }
    }
}

/// Waits until the lane is to turn, or to look for tasks.
fn rest(cpu: &mut Cpu, look: &Look) {
    let idle = cpu.enter_idle();
    if look.bell.fall_asleep() {
        let timeout = idle.timeout(cpu.machine().now());
        let timeout = timeout.map(|span| Timespec::try_from(span).expect("it fits"));
        let kicks = cpu.kick_fd().expect("it was claimed with one");
        let mut both = [
            PollFd::from_borrowed_fd(kicks, PollFlags::IN),
            PollFd::from_borrowed_fd(look.descriptor.as_fd(), PollFlags::IN),
        ];
        // A signal ends the wait, too; the loop comes back.
        let _ = poll(&mut both, timeout.as_ref());
        let rung = !both[1].revents().is_empty();
        if rung {
            let _ = read(&look.descriptor, &mut [0; 8]);
        }
        if look.bell.answer() {
            let _ = look.bell.ring(); // for the loop to answer
        }
    }
    cpu.exit_idle();
}

impl Runtime for Peer {
    type Sleep = Sleep;
    type Moment = time::Instant;

    fn absent(load: &Load) -> Option<&'static str> {
        let measures_on_lanes = load.measure == Measure::ArmCancel && load.place == Place::Home;
        if load.mode.contains("stuck") && !measures_on_lanes {
            return Some("no lane measures there");
        }
        // A lane that hosts a runtime turns between polls, and what measures pairs is one poll.
        if load.mode.contains("tokio")
            && ![Measure::Periodic, Measure::Sleep, Measure::Blocked, Measure::Idle].contains(&load.measure)
        {
            return Some("as for lanes");
        }
        let has = [Measure::ArmCancel, Measure::Expire, Measure::Periodic].contains(&load.measure);
        (load.mode.contains("callbacks") && !has).then_some("as for lanes")
    }

    fn start(load: &Load) -> Result<Self, String> {
        let parts: Vec<&str> = load.mode.split('+').collect();
        if let Some(part) = parts.iter().find(|part| !PARTS.contains(part)) {
            return Err(format!("there is no mode {part}"));
        }
        let is = |mode| parts.contains(&mode);
        let (machine, tasks) = if is("lanes") { Self::lanes(is("tokio"))? } else { Self::helper()? };
        machine.install_default().map_err(|error| error.to_string())?;
        Ok(Self { machine, tasks, exact: is("exact"), callbacks: is("callbacks"), stuck: is("stuck") })
    }

    fn sleep(&self, delay: Duration) -> Sleep {
        self.precise(time::sleep(delay))
    }

    fn moment(&self, at: Instant) -> time::Instant {
        time::Instant::from_std(at)
    }

    fn sleep_until(&self, at: time::Instant) -> Sleep {
        self.precise(time::sleep_until(at))
    }

    fn rearm(&self, sleep: Pin<&mut Sleep>, delay: Duration) {
        sleep.reset(time::Instant::now() + delay);
    }

    fn pair_after(&'static self) -> impl FnMut(Duration) {
        let timer = self.timer();
        move |delay| match &timer {
            None => poll_once(pin!(self.sleep(delay))),
            Some(timer) => {
                timer.arm_after(delay).expect("the machine runs");
                timer.cancel();
            }
        }
    }

    fn pair_at(&'static self) -> impl FnMut(time::Instant) {
        let timer = self.timer();
        move |at| match &timer {
            None => poll_once(pin!(self.sleep_until(at))),
            Some(timer) => {
                timer.arm_at(at).expect("the machine runs");
                timer.cancel();
            }
        }
    }

    fn between_stretches(&self) {
        if !self.stuck {
            let _ = on_lane(|cpu| cpu.turn());
        }
    }

    fn count_at(&'static self, at: time::Instant, waker: &Waker, expired: &Arc<Count>) -> impl Send {
        if !self.callbacks {
            return Err(boxed(self.sleep_until(at), waker));
        }
        let expired = Arc::clone(expired);
        let timer = self.machine.timer(TimerOptions::new(), move |_| expired.add(1));
        timer.arm_at(at).expect("the machine runs");
        Ok(timer)
    }

    fn repeat(
        &'static self,
        worker: usize,
        period: Duration,
        when: Range<Instant>,
        mut beat: impl FnMut(Instant) + Send + 'static,
    ) {
        if !self.callbacks {
            return self.spawn(worker, in_task(self, period, when, beat));
        }
        let mut due = when.start;
        let (give, timer) = mpsc::channel::<TimerHandle>();
        let armed = self.machine.timer(TimerOptions::new().precision(Precision::Tick), move |run| {
            due += period * run.overruns() as u32;
            beat(due);
            due += period;
            if due >= when.end {
                let _ = timer.recv(); // the last handle: the timer ends after this run
            }
        });
        armed.arm_periodic(self.moment(when.start), period).expect("the machine runs");
        give.send(armed).expect("it has not run for the last time");
    }

    fn spawn(&self, worker: usize, task: impl Future<Output = ()> + Send + 'static) {
        match &self.tasks {
            Tasks::Workers(tokio) => drop(tokio.spawn(task)),
            Tasks::Shared => EXECUTOR.spawn(task).detach(),
            Tasks::Hosted(lanes) => {
                let cpu = lanes.cpus().iter().nth(worker).expect("there is a lane per worker");
                drop(lanes.spawn_on(cpu, move || task).expect("the lanes run until the process ends"));
            }
        }
    }
}

fn main() -> ExitCode {
    quietcore_peers::run::<Peer>()
}
