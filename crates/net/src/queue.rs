//! One transmit queue: its discipline under a lock, its watchdog, who runs it, and what that costs.
//!
//! Who sends enqueues under the lock and runs the queue if nobody else does. Whoever runs it takes some
//! packets out under the lock, gives them to the driver without it, and looks again; so senders wait for an
//! enqueue or a batch, never for the driver. A packet that came while somebody runs the queue is found by
//! that one's last look, which is under the same lock. Where a driver or a discipline panics, its queue waits
//! as for a driver without room, with the packets that were not taken from it.
//!
//! Two timers: the watchdog for what is throttled, and, for disciplines that have one (`cbq`), the delay
//! timer. Both are armed and cancelled under the lock, so the last one to ask is the last one to be heard,
//! and both only put the queue on a list: nothing is taken out by a timer's callback. A moment that has
//! passed when it is asked for goes there at once, without a timer.

use super::driver::Driver;
use super::network::{Network, Scheduled};
use super::options::Watchdog;
use super::statistics::QueueStatistics;
use core::fmt::Debug;
use core::time::Duration;
use quietcore_live::{CpuId, Machine, Nanos, Precision, TimerHandle, TimerOptions, softirq::Vector};
use quietcore_qdisc::{Delays, Dequeued, Packet, Qdisc, Verdict};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

/// Packets that are taken out at a time.
const BATCH: usize = 16;
/// Packets that one run lets through before others get the CPU (the kernel's `dev_tx_weight`).
const WEIGHT: usize = 64;
/// After a driver had no room: when it is asked again, unless it says so itself.
const RETRY: Nanos = Nanos(1_000_000);

pub(super) struct Queue<P> {
    pub(super) machine: &'static Machine,
    pub(super) network: Network,
    pub(super) driver: Arc<dyn Driver<P>>,
    /// Its number in the device.
    pub(super) number: usize,
    /// The CPU that it belongs to.
    pub(super) home: CpuId,
    stays: Watchdog,
    pub(super) watchdog: OnceLock<TimerHandle>,
    /// Made when a discipline needs it.
    delay_timer: OnceLock<TimerHandle>,
    state: Mutex<State<P>>,
}

#[derive(Debug)]
struct State<P> {
    qdisc: Box<dyn Qdisc<P>>,
    /// Taken out, and the driver had no room: they go first.
    back: VecDeque<P>,
    /// Somebody runs it, and looks again before it ends.
    is_running: bool,
    /// It is on some CPU's list.
    is_scheduled: bool,
    /// The driver said that it has room, perhaps before who runs the queue knew that it had none.
    is_woken: bool,
    /// Disciplines that it has had.
    grafts: u64,
    /// For when the watchdog is armed.
    armed: Option<Nanos>,
    /// The discipline has a second timer.
    has_delays: bool,
    /// For when that is armed.
    delay_armed: Option<Nanos>,
    /// Its packets go to the device's first queue, which has one discipline for all.
    is_passing_on: bool,
    statistics: QueueStatistics,
    requeues: u64,
}

/// Which queues have a discipline of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// All.
    Each,
    /// The first one, for all.
    First,
}

/// Why a run ends.
enum End {
    Empty,
    Throttled(Nanos),
    /// The driver has no room.
    Full,
    /// The driver had no room, and has.
    Woken,
    /// Others wait for the CPU.
    Weight,
}

/// What is left to do after a run.
#[derive(PartialEq, Eq)]
#[must_use = "a queue that is not run again stalls"]
enum Then {
    Nothing,
    /// Another run, soon.
    Again,
}

/// A run of the queue. One that ends by a panic of who is asked leaves a queue that can be run.
struct Turn<'a, P: Packet + Debug + Send + 'static> {
    queue: &'a Arc<Queue<P>>,
    /// Nothing while the driver has the packets.
    state: Option<MutexGuard<'a, State<P>>>,
    batch: VecDeque<P>,
    cpu: Option<CpuId>,
    is_over: bool,
}

impl<P: Packet + Debug + Send + 'static> Drop for Turn<'_, P> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.state.take().unwrap_or_else(|| self.queue.lock());
        state.is_running = false;
        if !self.batch.is_empty() {
            state.back = core::mem::take(&mut self.batch);
        }
        let then = self.queue.arm(&mut state, self.queue.retry(), self.cpu);
        drop(state);
        if then == Then::Again {
            // Refused when the machine has ended: whoever sends next runs it.
            let _ = self.queue.enlist(self.cpu.unwrap_or(self.queue.home));
        }
    }
}

impl<P: Packet + Debug + Send + 'static> Queue<P> {
    pub(super) fn new(
        (machine, network): (&'static Machine, Network),
        driver: Arc<dyn Driver<P>>,
        (number, home, stays): (usize, CpuId, Watchdog),
        qdisc: Box<dyn Qdisc<P>>,
    ) -> Self {
        let state = State {
            qdisc,
            back: VecDeque::new(),
            is_running: false,
            is_scheduled: false,
            is_woken: false,
            grafts: 0,
            armed: None,
            has_delays: false,
            delay_armed: None,
            is_passing_on: false,
            statistics: QueueStatistics::default(),
            requeues: 0,
        };
        let (watchdog, delay_timer, state) = (OnceLock::new(), OnceLock::new(), Mutex::new(state));
        let queue = Self { machine, network, driver, number, home, stays, watchdog, delay_timer, state };
        queue.lock().look_for_delays();
        queue
    }

    /// Makes the watchdog. It holds the queue weakly: who drops the device ends both.
    pub(super) fn watch(self: &Arc<Self>) {
        let timer = self.timer(|queue, state, cpu| {
            state.armed = None;
            state.statistics.watchdogs += 1;
            state.statistics.watchdogs_elsewhere += u64::from(cpu != queue.home);
        });
        // There is one device that calls this, once.
        let _ = self.watchdog.set(timer);
    }

    /// A timer that does `due` under the lock, and has the queue run by the softirq of the CPU it ran on.
    fn timer(self: &Arc<Self>, due: fn(&Self, &mut State<P>, CpuId)) -> TimerHandle {
        let weak = Arc::downgrade(self);
        let options = TimerOptions::new().precision(Precision::Exact);
        let options = if self.stays == Watchdog::Pinned { options.pinned() } else { options };
        self.machine.timer(options, move |run| {
            let Some(queue) = weak.upgrade() else { return };
            let cpu = run.cpu();
            due(&queue, &mut queue.lock(), cpu);
            queue.schedule(cpu);
        })
    }

    /// The lock, and how long it was waited for.
    fn lock(&self) -> MutexGuard<'_, State<P>> {
        let (mut state, waited) = match self.state.try_lock() {
            Ok(state) => (state, None),
            Err(TryLockError::Poisoned(poisoned)) => (poisoned.into_inner(), None),
            Err(TryLockError::WouldBlock) => {
                let began = self.machine.now();
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                (state, Some(self.machine.now().since(began)))
            }
        };
        state.statistics.locked += 1;
        if let Some(waited) = waited {
            state.statistics.contended += 1;
            state.statistics.waited += Duration::from_nanos(waited.0);
        }
        state
    }

    /// The lock, of who only looks on: not counted.
    fn lock_unseen(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a packet from who plays `cpu`, and runs the queue if nobody does. Gives it back if it is the
    /// first queue's.
    pub(super) fn send(self: &Arc<Self>, packet: P, cpu: Option<CpuId>) -> Result<Verdict, P> {
        let mut state = self.lock();
        if state.is_passing_on {
            return Err(packet);
        }
        let verdict = state.qdisc.enqueue(self.machine.now(), packet);
        if verdict == Verdict::Queued {
            self.run(state, cpu);
        }
        Ok(verdict)
    }

    /// Takes all of them, and runs the queue if nobody does; says no, and takes none, if they are the first
    /// queue's.
    pub(super) fn send_all(self: &Arc<Self>, packets: &mut dyn Iterator<Item = P>, cpu: CpuId) -> bool {
        let mut state = self.lock();
        if state.is_passing_on {
            return false;
        }
        let now = self.machine.now();
        let mut is_any_queued = false;
        for packet in packets {
            is_any_queued |= state.qdisc.enqueue(now, packet) == Verdict::Queued;
        }
        if is_any_queued {
            self.run(state, Some(cpu));
        }
        true
    }

    /// Another discipline; what the one before held is dropped.
    pub(super) fn graft(self: &Arc<Self>, qdisc: Box<dyn Qdisc<P>>) {
        let state = self.lock();
        self.put(state, qdisc);
    }

    /// The same, and whether packets go on to the first queue from now on.
    pub(super) fn graft_as(self: &Arc<Self>, qdisc: Box<dyn Qdisc<P>>, sharing: Sharing) {
        let mut state = self.lock();
        state.is_passing_on = sharing == Sharing::First && self.number > 0;
        self.put(state, qdisc);
    }

    fn put(&self, mut state: MutexGuard<'_, State<P>>, qdisc: Box<dyn Qdisc<P>>) {
        let before = core::mem::replace(&mut state.qdisc, qdisc);
        let back = core::mem::take(&mut state.back);
        (state.armed, state.delay_armed, state.requeues) = (None, None, 0);
        state.grafts += 1;
        state.look_for_delays();
        // Under the lock: not what somebody arms for the new one.
        for timer in [self.watchdog.get(), self.delay_timer.get()].into_iter().flatten() {
            let _ = timer.cancel();
        }
        drop(state);
        // User code, perhaps: packets' destructors.
        drop((before, back));
    }

    /// Looks at the discipline, or changes what nobody who waits for a packet notices.
    pub(super) fn look<R>(&self, look: impl FnOnce(&mut dyn Qdisc<P>) -> R) -> R {
        look(&mut *self.lock_unseen().qdisc)
    }

    /// Changes the discipline; then the softirq of the queue's CPU runs it, which arms its timers anew.
    pub(super) fn change<R>(self: &Arc<Self>, change: impl FnOnce(&mut dyn Qdisc<P>) -> R) -> R {
        let mut state = self.lock();
        let answer = change(&mut *state.qdisc);
        state.look_for_delays();
        let holds = state.qdisc.statistics().qlen > 0 || !state.back.is_empty();
        drop(state);
        if holds {
            self.schedule(self.home);
        }
        answer
    }

    /// The driver has room again.
    pub(super) fn wake(self: &Arc<Self>) {
        let mut state = self.lock();
        state.is_woken = true;
        self.run(state, self.machine.cpu_here());
    }

    pub(super) fn statistics(&self) -> QueueStatistics {
        let state = self.lock_unseen();
        let mut statistics = state.statistics;
        statistics.qdisc = state.qdisc.statistics();
        statistics.qdisc.requeues += state.requeues;
        statistics.qdisc.qlen += state.back.len() as u64;
        statistics.qdisc.backlog += state.back.iter().map(|packet| u64::from(packet.len())).sum::<u64>();
        statistics
    }

    /// The softirq of `cpu` is to run it.
    fn schedule(self: &Arc<Self>, cpu: CpuId) {
        if !self.enlist(cpu) {
            // The machine has ended: whoever asks does it.
            let state = self.lock();
            self.run(state, None);
        }
    }

    /// The same; says whether it will.
    fn enlist(self: &Arc<Self>, cpu: CpuId) -> bool {
        if core::mem::replace(&mut self.lock().is_scheduled, true) {
            return true;
        }
        let (place, item) = ((cpu, Vector::NET_TX), Arc::downgrade(self) as Weak<dyn Scheduled>);
        let is_enlisted = self.network.schedule(self.machine, place, &item);
        if !is_enlisted {
            self.lock().is_scheduled = false;
        }
        is_enlisted
    }

    /// Lets go what may go; `cpu` is the one that the caller plays.
    fn run<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State<P>>, mut cpu: Option<CpuId>) {
        loop {
            if core::mem::replace(&mut state.is_running, true) {
                // That one looks again.
                return;
            }
            if self.run_once(state, cpu) == Then::Nothing || self.enlist(cpu.unwrap_or(self.home)) {
                return;
            }
            (state, cpu) = (self.lock(), None);
        }
    }

    /// Until nothing may go, or others have their turn.
    fn run_once<'a>(self: &'a Arc<Self>, state: MutexGuard<'a, State<P>>, cpu: Option<CpuId>) -> Then {
        let mut turn = Turn { queue: self, state: Some(state), batch: VecDeque::new(), cpu, is_over: false };
        let end = turn.work();
        turn.is_over = true;
        let mut state = turn.state.take().unwrap_or_else(|| self.lock());
        state.is_running = false;
        self.arm_delay_timer(&mut state, cpu);
        match end {
            End::Empty => Then::Nothing,
            End::Throttled(until) => self.arm(&mut state, until, cpu),
            End::Full => self.arm(&mut state, self.retry(), cpu),
            End::Woken | End::Weight => Then::Again,
        }
    }

    /// Up to a batch; and why it is empty, if it is.
    fn take_batch(&self, state: &mut State<P>, batch: &mut VecDeque<P>, cpu: Option<CpuId>) -> End {
        core::mem::swap(batch, &mut state.back);
        let mut end = End::Empty;
        let now = self.machine.now();
        while batch.len() < BATCH {
            match state.qdisc.dequeue(now) {
                Dequeued::Packet(packet) => {
                    batch.push_back(packet);
                    let count = match cpu {
                        None => &mut state.statistics.dequeued_by_strangers,
                        Some(cpu) if cpu == self.home => &mut state.statistics.dequeued_at_home,
                        Some(_) => &mut state.statistics.dequeued_elsewhere,
                    };
                    *count += 1;
                }
                Dequeued::Throttled(until) => {
                    end = End::Throttled(until);
                    break;
                }
                Dequeued::Empty => break,
            }
        }
        end
    }

    /// When a driver without room is asked again.
    fn retry(&self) -> Nanos {
        Nanos(self.machine.now().0.saturating_add(RETRY.0))
    }

    /// The watchdog is to go off at `until`, armed by who plays `cpu`. The same moment again costs nothing.
    fn arm(&self, state: &mut State<P>, until: Nanos, cpu: Option<CpuId>) -> Then {
        if state.armed == Some(until) {
            return Then::Nothing;
        }
        if until <= self.machine.now() {
            // It has passed meanwhile: a softirq, as the timer would have raised it.
            state.armed = None;
            return Then::Again;
        }
        state.armed = Some(until);
        if let Some(watchdog) = self.watchdog.get() {
            self.arm_timer(watchdog, until, cpu);
        }
        Then::Nothing
    }

    /// The delay timer is to go off when the discipline says.
    fn arm_delay_timer(self: &Arc<Self>, state: &mut State<P>, cpu: Option<CpuId>) {
        if !state.has_delays {
            return;
        }
        let Some(until) = state.qdisc.delays().until().filter(|until| state.delay_armed != Some(*until))
        else {
            return;
        };
        state.delay_armed = Some(until);
        let timer = self.delay_timer.get_or_init(|| {
            self.timer(|queue, state, _| {
                state.delay_armed = None;
                state.statistics.delay_timers += 1;
                state.qdisc.end_delays(queue.machine.now());
            })
        });
        self.arm_timer(timer, until, cpu);
    }

    /// Under the lock, so that the last one to ask is the last one to arm. Refused when the machine has
    /// ended.
    fn arm_timer(&self, timer: &TimerHandle, until: Nanos, cpu: Option<CpuId>) {
        let stranger = self.machine.cpu_here().is_none();
        let _ = match cpu {
            // Its ksoftirqd, which is no lane. A CPU whose ksoftirqd runs is not idle, so timers that may
            // move stay there, too.
            Some(cpu) if stranger => timer.arm_on(cpu, until),
            None if self.stays == Watchdog::Pinned => timer.arm_on(self.home, until),
            _ => timer.arm_at(until),
        };
    }
}

impl<P: Packet> State<P> {
    /// Whether the discipline has a second timer changes only when it is told something.
    fn look_for_delays(&mut self) {
        self.has_delays = self.qdisc.delays() != Delays::Absent;
    }
}

impl<P: Packet + Debug + Send + 'static> Turn<'_, P> {
    /// Asks the discipline and the driver, in turns.
    fn work(&mut self) -> End {
        let (queue, mut passed) = (self.queue, 0);
        loop {
            let state = self.state.get_or_insert_with(|| queue.lock());
            let end = queue.take_batch(state, &mut self.batch, self.cpu);
            if self.batch.is_empty() {
                // Found under the lock: whoever enqueues from now on finds nobody who runs it.
                return end;
            }
            passed += self.batch.len();
            state.is_woken = false;
            let grafts = state.grafts;
            self.state = None;
            queue.driver.transmit_batch(queue.number, &mut self.batch);
            let mut back = core::mem::take(&mut self.batch);
            let state = self.state.insert(queue.lock());
            if !back.is_empty() {
                let end = if state.is_woken { End::Woken } else { End::Full };
                if state.grafts == grafts {
                    state.requeues += back.len() as u64;
                    // Nobody else has taken packets out meanwhile.
                    core::mem::swap(&mut state.back, &mut back);
                } else {
                    // Another discipline's, and dropped as what that one held; without the lock.
                    self.state = None;
                    drop(back);
                }
                return end;
            }
            if passed >= WEIGHT {
                return End::Weight;
            }
        }
    }
}

impl<P: Packet + Debug + Send + 'static> Scheduled for Queue<P> {
    fn run_on(self: Arc<Self>, cpu: CpuId) {
        let mut state = self.lock();
        state.is_scheduled = false;
        self.run(state, Some(cpu));
    }
}
