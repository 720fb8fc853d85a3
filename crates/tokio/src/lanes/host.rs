//! The thread of a lane that hosts a runtime: where it turns, and where it waits.
//!
//! The runtime is tokio's `current_thread`, and its worker is the lane. What a lane has to do is done in
//! tokio's hooks:
//!
//! - Before the worker waits the lane goes idle in the hierarchy, and its alarm is set for the moment until
//!   which it may sleep. If something is due it turns instead; if that leaves something, the runtime's root
//!   is woken, and the worker goes round once more.
//! - After it waited the lane turns, and sets its alarm for the end of the tick.
//! - A worker that does not wait calls no hooks. But it looks at its driver every `event_interval` polls,
//!   which finds that the alarm expired, and wakes the root, which turns.
//!
//! Kicks arrive at a descriptor that the driver knows: that ends a wait, and it need not be read here. The
//! hooks must be `Send` and a CPU belongs to its thread, so it is in a variable of the thread. Callbacks and
//! wakers run while it is borrowed; what they may call here has to do without (`block_in_place`).
//!
//! Invariant: on a machine that runs, the alarm is set for the end of this tick or earlier whenever tasks
//! run, and no later than the lane may sleep whenever the worker waits.

use super::alarm::LaneAlarm;
use super::descriptor::register;
use super::error::LanesStartError;
use super::settings::LaneSettings;
use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;
use quietcore_live::{Cpu, CpuId, Machine, lane::WaitBy};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{self as real, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// What the thread of a lane is asked to do.
pub(super) enum LaneOrder {
    /// To make a task. Runs no user code.
    Start(Box<dyn FnOnce() + Send>),
    /// To end, and for how long to wait for blocking work; `None` for ever.
    End(Option<Duration>),
}

pub(super) type OrderSender = UnboundedSender<LaneOrder>;

thread_local! {
    static CURRENT_LANE: RefCell<Option<HostedLane>> = const { RefCell::new(None) };
}

/// The lane of a thread. Only that thread has it.
struct HostedLane {
    cpu: Cpu,
    alarm: LaneAlarm,
    /// The root's.
    root: Option<Waker>,
}

impl HostedLane {
    fn machine(&self) -> &'static Machine {
        self.cpu.machine()
    }

    /// The worker is about to wait.
    fn before_wait(&mut self) {
        if !self.machine().is_running() {
            return;
        }
        for _ in 0..2 {
            let idle = self.cpu.enter_idle();
            let now = self.machine().now();
            if idle.until().is_none_or(|until| until > now) {
                self.alarm.set(idle.until(), now);
                return;
            }
            if self.turn() {
                break;
            }
        }
        self.wake_root();
    }

    fn after_wait(&mut self) {
        if self.turn() {
            self.wake_root();
        }
    }

    /// Says whether more is due.
    fn turn(&mut self) -> bool {
        let turned = self.cpu.turn();
        if !self.machine().is_running() {
            return false;
        }
        let now = self.machine().now();
        self.alarm.set(Some(self.cpu.next_turn(now)), now);
        turned.has_more
    }

    /// Has it turn once more before the worker waits.
    fn wake_root(&self) {
        if let Some(root) = &self.root {
            root.wake_by_ref();
        }
    }
}

/// With the lane of this thread, unless there is none, or it turns right now.
fn with_lane<R>(act: impl FnOnce(&mut HostedLane) -> R) -> Option<R> {
    CURRENT_LANE.with(|here| here.try_borrow_mut().ok()?.as_mut().map(act))
}

/// Whether this thread is such a lane.
pub(super) fn is_lane() -> bool {
    CURRENT_LANE.with(|here| here.try_borrow().map_or(true, |here| here.is_some()))
}

/// Runs `block`, which may take long, on a lane: everything that others can do for it they do meanwhile, at
/// once. Its other tasks wait. Elsewhere it just runs `block`.
pub fn block_in_place<R>(block: impl FnOnce() -> R) -> R {
    /// Comes back also when `block` panics.
    struct Absence;

    impl Drop for Absence {
        fn drop(&mut self) {
            let _ = with_lane(|lane| lane.cpu.end_block());
        }
    }

    let absence = with_lane(|lane| lane.cpu.begin_block()).map(|()| Absence);
    let result = block();
    drop(absence);
    result
}

/// Lets go of this thread's lane.
struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        let hosted = CURRENT_LANE.with(|here| here.borrow_mut().take());
        drop(hosted);
    }
}

/// What a thread is started with.
pub(super) struct LaneThread {
    pub(super) machine: &'static Machine,
    pub(super) cpu: CpuId,
    pub(super) settings: LaneSettings,
    pub(super) orders: UnboundedReceiver<LaneOrder>,
    pub(super) started: mpsc::Sender<Result<(), LanesStartError>>,
}

impl LaneThread {
    /// Drives the CPU until the order to end; first sends whether it could begin.
    pub(super) fn drive(self) {
        let Self { machine, cpu, settings, orders, started } = self;
        let leave = Leave;
        match prepare(machine, cpu, &settings) {
            Ok((runtime, sources)) => {
                // The caller of `start` waits for it.
                let _ = started.send(Ok(()));
                drop(started);
                let patience = runtime.block_on(take_orders(orders, sources));
                // Tasks go before the lane that their timers are on.
                match patience {
                    Some(patience) => runtime.shutdown_timeout(patience),
                    None => drop(runtime),
                }
            }
            Err(error) => _ = started.send(Err(error)),
        }
        drop(leave);
    }
}

/// What the driver waits for on behalf of the lane.
struct Sources {
    alarm: AsyncFd<OwnedFd>,
    _kicks: AsyncFd<OwnedFd>,
}

/// Makes the calling thread the lane, and its runtime.
fn prepare(
    machine: &'static Machine,
    cpu: CpuId,
    settings: &LaneSettings,
) -> Result<(LocalRuntime, Sources), LanesStartError> {
    let failed = |what| move |error| LanesStartError::System { cpu, what, error };
    let lane = Cpu::claim_with(machine, cpu, WaitBy::KickFd)?;
    let kicks = lane.kick_fd().expect("it was claimed with one").try_clone_to_owned();
    let kicks = kicks.map_err(failed("copy a descriptor"))?;
    let alarm = LaneAlarm::new().map_err(failed("make a timer"))?;
    let readable = alarm.descriptor().map_err(failed("copy a descriptor"))?;
    let before = rustix::thread::sched_getaffinity(None).ok();
    let before = before.filter(|_| lane.pin_thread(settings.pinning));
    CURRENT_LANE.with(|here| *here.borrow_mut() = Some(HostedLane { cpu: lane, alarm, root: None }));
    let runtime = build(machine, settings, before).map_err(failed("make a runtime"))?;
    let entered = runtime.enter();
    let register = |descriptor| register(descriptor).map_err(failed("watch a descriptor"));
    let sources = Sources { alarm: register(readable)?, _kicks: register(kicks)? };
    drop(entered);
    Ok((runtime, sources))
}

/// `free` is where its other threads may run, if that is not where the calling one may.
fn build(
    machine: &'static Machine,
    settings: &LaneSettings,
    free: Option<rustix::thread::CpuSet>,
) -> io::Result<LocalRuntime> {
    let mut builder = real::Builder::new_current_thread();
    let _ = builder.enable_all().event_interval(settings.event_interval);
    settings.change.apply(&mut builder);
    let _ = builder
        .on_thread_start(move || {
            // A thread for blocking work has what is current here from its start to its end, and no lane.
            core::mem::forget(machine.enter());
            if let Some(free) = &free {
                let _ = rustix::thread::sched_setaffinity(None, free);
            }
        })
        .on_thread_park(|| _ = with_lane(HostedLane::before_wait))
        .on_thread_unpark(|| _ = with_lane(HostedLane::after_wait));
    builder.build_local(LocalOptions::default())
}

/// The root: makes tasks as they are ordered, and turns whenever it is polled, which is when
/// the alarm expired, a turn left something, or there is an order. tokio polls the root right after the
/// driver, before any task.
async fn take_orders(mut orders: UnboundedReceiver<LaneOrder>, sources: Sources) -> Option<Duration> {
    poll_fn(|context| {
        note_root(context.waker());
        watch(&sources.alarm, context);
        if with_lane(HostedLane::turn) == Some(true) {
            // After the next tasks.
            context.waker().wake_by_ref();
        }
        loop {
            match ready!(orders.poll_recv(context)) {
                Some(LaneOrder::Start(start)) => start(),
                Some(LaneOrder::End(patience)) => return Poll::Ready(patience),
                None => return Poll::Ready(None),
            }
        }
    })
    .await
}

fn note_root(waker: &Waker) {
    let _ = with_lane(|lane| {
        if !lane.root.as_ref().is_some_and(|root| root.will_wake(waker)) {
            lane.root = Some(waker.clone());
        }
    });
}

/// Wakes the root when the alarm expires again.
fn watch(alarm: &AsyncFd<OwnedFd>, context: &mut Context<'_>) {
    // Pending: it is woken when it expires, or at once if its budget is used up. An error: the runtime ends.
    while let Poll::Ready(Ok(mut guard)) = alarm.poll_read_ready(context) {
        guard.clear_ready();
    }
}
