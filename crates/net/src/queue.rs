//! One transmit queue: its lock, its timers, and what runs it on which CPU; the run loop itself is
//! [`TxQueue`].
//!
//! A sender enqueues under the lock and runs the queue unless a run is under way. A run takes some packets
//! out under the lock, gives them to the driver without it, and looks again; so senders wait for an enqueue
//! or a batch, never for the driver. Where a driver or a discipline panics, its queue waits as for a driver
//! without room, with the packets that were not taken from it.
//!
//! Two timers: the watchdog for what is throttled, and, for disciplines that have one (`cbq`), the delay
//! timer. Both are armed and cancelled under the lock, so the last call to ask for a moment is the one that
//! counts, and both only put the queue on a list: nothing is taken out by a timer's callback. A moment that
//! has passed when it is asked for goes there at once, without a timer.

use super::driver::Driver;
use super::hook::{HookPoint, Hooked};
use super::memory::MemoryBudget;
use super::network::{Network, Scheduled};
use super::options::Watchdog;
use super::statistics::QueueStatistics;
use super::sync::{ToldWholeness, Wholeness};
use core::fmt::Debug;
use core::time::Duration;
use quietcore_live::{CpuId, Machine, Nanos, Precision, TimerHandle, TimerOptions, softirq::Vector};
use quietcore_qdisc::{Enqueued, Packet, Qdisc, TxQueue, TxTake, TxThen};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

/// Packets that are taken out at a time.
const BATCH: usize = 16;

/// What a queue belongs to.
pub(super) struct QueuePlace {
    pub(super) machine: &'static Machine,
    pub(super) network: Network,
    /// Its number in the device.
    pub(super) number: usize,
    /// The CPU that it belongs to.
    pub(super) home: CpuId,
    pub(super) stays: Watchdog,
    /// Bytes that its packets may take.
    pub(super) memory_max: u64,
}

/// A transmit queue of a device.
pub(super) struct DeviceQueue<P> {
    place: QueuePlace,
    driver: Arc<dyn Driver<P>>,
    watchdog: OnceLock<TimerHandle>,
    /// Made when a discipline needs it.
    delay_timer: OnceLock<TimerHandle>,
    /// As of the last change.
    wholeness: ToldWholeness,
    /// What is asked of packets where they come in, if the other end is known.
    behind: OnceLock<Arc<HookPoint<P>>>,
    state: Mutex<QueueState<P>>,
}

#[derive(Debug)]
struct QueueState<P> {
    tx: TxQueue<P>,
    budget: MemoryBudget,
    /// Its packets go to the device's first queue, which has one discipline for all.
    is_passing_on: bool,
    statistics: QueueStatistics,
}

impl<P: Packet + Debug> QueueState<P> {
    /// To be told without the lock: costs as much as what is inside of the discipline.
    fn wholeness(&self) -> Wholeness {
        match (self.is_passing_on, self.tx.keeps_whole()) {
            (true, _) => Wholeness::AsFirst,
            (false, true) => Wholeness::Whole,
            (false, false) => Wholeness::Cut,
        }
    }

    /// Gives the packet to the discipline, if its bytes have room.
    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        if self.budget.admits(packet.size(), || self.tx.statistics()) {
            return self.tx.enqueue(now, packet);
        }
        self.statistics.over_memory += 1;
        Enqueued::Dropped
    }
}

/// Which queues have a discipline of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// All.
    Each,
    /// The first one, for all.
    First,
}

/// What is left to do after a run.
#[derive(PartialEq, Eq)]
#[must_use = "a queue that is not run again stalls"]
enum Then {
    Nothing,
    /// Another run, soon.
    Again,
}

/// A run of the queue. One that ends by a panic of the driver or of the discipline leaves a queue that can be
/// run.
struct QueueRun<'a, P: Packet + Debug + Send + 'static> {
    queue: &'a Arc<DeviceQueue<P>>,
    /// Nothing while the driver has the packets.
    state: Option<MutexGuard<'a, QueueState<P>>>,
    batch: VecDeque<P>,
    cpu: Option<CpuId>,
    is_over: bool,
}

impl<P: Packet + Debug + Send + 'static> Drop for QueueRun<'_, P> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.state.take().unwrap_or_else(|| self.queue.lock());
        let then = state.tx.abandon(self.queue.place.machine.now(), &mut self.batch);
        let then = self.queue.obey(&mut state, then, self.cpu);
        drop(state);
        if then == Then::Again {
            // Refused when the machine has ended: the next sender runs it.
            let _ = self.queue.enlist(self.cpu.unwrap_or(self.queue.place.home));
        }
    }
}

impl<P: Packet + Debug + Send + 'static> DeviceQueue<P> {
    pub(super) fn new(place: QueuePlace, driver: Arc<dyn Driver<P>>, qdisc: Box<dyn Qdisc<P>>) -> Self {
        let tx = TxQueue::new(qdisc);
        let budget = MemoryBudget::new(place.memory_max);
        let statistics = QueueStatistics::default();
        let state = QueueState { tx, budget, is_passing_on: false, statistics };
        let wholeness = ToldWholeness::new(state.wholeness());
        let (watchdog, delay_timer, state) = (OnceLock::new(), OnceLock::new(), Mutex::new(state));
        Self { place, driver, watchdog, delay_timer, wholeness, behind: OnceLock::new(), state }
    }

    /// Where its packets come in this is asked of them. Only the first call counts.
    pub(super) fn link_to(&self, behind: &Arc<HookPoint<P>>) {
        let _ = self.behind.set(Arc::clone(behind));
    }

    /// Whether anything is.
    pub(super) fn is_filtered_behind(&self) -> bool {
        self.behind.get().is_some_and(|behind| behind.is_set())
    }

    /// Whether it takes several packets of a stream as one; without the lock, so that may be about to change.
    pub(super) fn wholeness(&self) -> Wholeness {
        self.wholeness.get()
    }

    /// The CPU that it belongs to.
    pub(super) const fn home(&self) -> CpuId {
        self.place.home
    }

    /// Makes the watchdog. It holds the queue weakly: both end with the device.
    pub(super) fn watch(self: &Arc<Self>) {
        let timer = self.timer(|queue, state, cpu| {
            state.tx.watchdog_expired();
            state.statistics.watchdogs += 1;
            state.statistics.watchdogs_elsewhere += u64::from(cpu != queue.place.home);
        });
        // There is one device that calls this, once.
        let _ = self.watchdog.set(timer);
    }

    /// A timer that does `due` under the lock, and has the queue run by the softirq of the CPU it ran on.
    fn timer(self: &Arc<Self>, due: fn(&Self, &mut QueueState<P>, CpuId)) -> TimerHandle {
        let weak = Arc::downgrade(self);
        let options = TimerOptions::new().precision(Precision::Exact);
        let options = if self.place.stays == Watchdog::Pinned { options.pinned() } else { options };
        self.place.machine.timer(options, move |run| {
            let Some(queue) = weak.upgrade() else { return };
            let cpu = run.cpu();
            due(&queue, &mut queue.lock(), cpu);
            queue.schedule(cpu);
        })
    }

    /// The lock, and how long it was waited for.
    fn lock(&self) -> MutexGuard<'_, QueueState<P>> {
        let (mut state, waited) = match self.state.try_lock() {
            Ok(state) => (state, None),
            Err(TryLockError::Poisoned(poisoned)) => (poisoned.into_inner(), None),
            Err(TryLockError::WouldBlock) => {
                let began = self.place.machine.now();
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                (state, Some(self.place.machine.now().since(began)))
            }
        };
        state.statistics.locked += 1;
        if let Some(waited) = waited {
            state.statistics.contended += 1;
            state.statistics.waited += Duration::from_nanos(waited.0);
        }
        state
    }

    /// The lock, to look only: not counted.
    fn lock_unseen(&self) -> MutexGuard<'_, QueueState<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a packet from the lane that drives `cpu`, and runs the queue unless a run is under way. Gives it
    /// back if it is the first queue's.
    pub(super) fn send(self: &Arc<Self>, packet: P, cpu: Option<CpuId>) -> Result<Enqueued, P> {
        let mut state = self.lock();
        if state.is_passing_on {
            return Err(packet);
        }
        let verdict = state.enqueue(self.place.machine.now(), packet);
        if verdict == Enqueued::Queued {
            self.run(state, cpu);
        }
        Ok(verdict)
    }

    /// Takes all of them, and runs the queue unless a run is under way; says no, and takes none, if they are
    /// the first queue's.
    pub(super) fn send_all(self: &Arc<Self>, packets: &mut dyn Iterator<Item = P>, cpu: CpuId) -> bool {
        let mut state = self.lock();
        if state.is_passing_on {
            return false;
        }
        let now = self.place.machine.now();
        let mut is_any_queued = false;
        for packet in packets {
            is_any_queued |= state.enqueue(now, packet) == Enqueued::Queued;
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
        state.is_passing_on = sharing == Sharing::First && self.place.number > 0;
        self.put(state, qdisc);
    }

    fn put(&self, mut state: MutexGuard<'_, QueueState<P>>, qdisc: Box<dyn Qdisc<P>>) {
        let before = state.tx.graft(qdisc);
        self.wholeness.tell(state.wholeness());
        // Under the lock: not what is armed for the new discipline.
        for timer in [self.watchdog.get(), self.delay_timer.get()].into_iter().flatten() {
            let _ = timer.cancel();
        }
        drop(state);
        // User code, perhaps: packets' destructors.
        drop(before);
    }

    /// Looks at the discipline, or changes it where no packet may leave earlier then.
    pub(super) fn look<R>(&self, look: impl FnOnce(&mut dyn Qdisc<P>) -> R) -> R {
        look(self.lock_unseen().tx.qdisc_mut())
    }

    /// Changes the discipline; then the softirq of the queue's CPU runs it, which arms its timers anew.
    pub(super) fn change<R>(self: &Arc<Self>, change: impl FnOnce(&mut dyn Qdisc<P>) -> R) -> R {
        let mut state = self.lock();
        let answer = state.tx.change(change);
        self.wholeness.tell(state.wholeness());
        let holds_packets = state.tx.holds_packets();
        drop(state);
        if holds_packets {
            self.schedule(self.place.home);
        }
        answer
    }

    /// The driver has room again.
    pub(super) fn wake(self: &Arc<Self>) {
        let mut state = self.lock();
        state.tx.wake();
        self.run(state, self.place.machine.cpu_here());
    }

    pub(super) fn statistics(&self) -> QueueStatistics {
        let state = self.lock_unseen();
        QueueStatistics { qdisc: state.tx.statistics(), ..state.statistics }
    }

    /// The softirq of `cpu` is to run it.
    fn schedule(self: &Arc<Self>, cpu: CpuId) {
        if !self.enlist(cpu) {
            // The machine has ended: the caller does it.
            let state = self.lock();
            self.run(state, None);
        }
    }

    /// The same; says whether it will.
    fn enlist(self: &Arc<Self>, cpu: CpuId) -> bool {
        if !self.place.machine.is_running() {
            // It may be on a list that no softirq comes to any more.
            return false;
        }
        if !self.lock().tx.schedule() {
            return true;
        }
        let item = Arc::downgrade(self) as Weak<dyn Scheduled>;
        let is_enlisted = self.place.network.schedule(self.place.machine, cpu, Vector::NET_TX, &item);
        if !is_enlisted {
            self.lock().tx.scheduled();
        }
        is_enlisted
    }

    /// Lets go what may go; `cpu` is the one that the caller drives.
    fn run<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, QueueState<P>>, mut cpu: Option<CpuId>) {
        while state.tx.begin() {
            if self.run_once(state, cpu) == Then::Nothing || self.enlist(cpu.unwrap_or(self.place.home)) {
                return;
            }
            (state, cpu) = (self.lock(), None);
        }
    }

    /// Until nothing may go, or others have their turn.
    fn run_once<'a>(self: &'a Arc<Self>, state: MutexGuard<'a, QueueState<P>>, cpu: Option<CpuId>) -> Then {
        let (state, batch) = (Some(state), VecDeque::new());
        let mut run = QueueRun { queue: self, state, batch, cpu, is_over: false };
        let then = run.work();
        run.is_over = true;
        let mut state = run.state.take().unwrap_or_else(|| self.lock());
        self.arm_delay_timer(&mut state, cpu);
        let then = self.obey(&mut state, then, cpu);
        drop(state);
        // Without the lock: packets of a discipline that was replaced meanwhile.
        drop(run);
        then
    }

    /// Where packets were taken out of the discipline.
    fn count(&self, statistics: &mut QueueStatistics, cpu: Option<CpuId>, dequeued: u64) {
        let count = match cpu {
            None => &mut statistics.dequeued_by_strangers,
            Some(cpu) if cpu == self.place.home => &mut statistics.dequeued_at_home,
            Some(_) => &mut statistics.dequeued_elsewhere,
        };
        *count += dequeued;
    }

    /// Arms the watchdog, if it is to be armed.
    fn obey(&self, state: &mut QueueState<P>, then: TxThen, cpu: Option<CpuId>) -> Then {
        match then {
            TxThen::Nothing => Then::Nothing,
            TxThen::Again => Then::Again,
            TxThen::Arm(until) if until <= self.place.machine.now() => {
                // It has passed meanwhile: a softirq, as the timer would have raised it.
                state.tx.watchdog_expired();
                Then::Again
            }
            TxThen::Arm(until) => {
                if let Some(watchdog) = self.watchdog.get() {
                    self.arm_timer(watchdog, until, cpu);
                }
                Then::Nothing
            }
        }
    }

    /// The delay timer is to go off when the discipline says.
    fn arm_delay_timer(self: &Arc<Self>, state: &mut QueueState<P>, cpu: Option<CpuId>) {
        let Some(until) = state.tx.arm_delays() else { return };
        let timer = self.delay_timer.get_or_init(|| {
            self.timer(|queue, state, _| {
                state.statistics.delay_timers += 1;
                state.tx.delays_expired(queue.place.machine.now());
            })
        });
        self.arm_timer(timer, until, cpu);
    }

    /// Under the lock, so that the last call to ask is the last one to arm. Refused when the machine has
    /// ended.
    fn arm_timer(&self, timer: &TimerHandle, until: Nanos, cpu: Option<CpuId>) {
        let stranger = self.place.machine.cpu_here().is_none();
        let _ = match cpu {
            // Its ksoftirqd, which is no lane. A CPU whose ksoftirqd runs is not idle, so timers that may
            // move stay there, too.
            Some(cpu) if stranger => timer.arm_on(cpu, until),
            None if self.place.stays == Watchdog::Pinned => timer.arm_on(self.place.home, until),
            _ => timer.arm_at(until),
        };
    }
}

impl<P: Packet + Debug + Send + 'static> QueueRun<'_, P> {
    /// Asks what is asked where packets come in; of those that came back from the driver it was.
    fn pass_behind(&mut self, came_back: usize) {
        let Some(behind) = self.queue.behind.get() else { return };
        for at in 0..self.batch.len() {
            let Some(packet) = self.batch.pop_front() else { return };
            match if at < came_back { Hooked::On(packet) } else { behind.pass(packet) } {
                Hooked::On(packet) => self.batch.push_back(packet),
                Hooked::Dropped | Hooked::Taken => {}
            }
        }
    }

    /// Asks the discipline and the driver, in turns.
    fn work(&mut self) -> TxThen {
        let queue = self.queue;
        loop {
            let state = self.state.get_or_insert_with(|| queue.lock());
            let came_back = state.tx.returned();
            match state.tx.take(queue.place.machine.now(), &mut self.batch, BATCH) {
                // Found under the lock: a sender that enqueues from now on finds no run under way.
                TxTake::Over(then) => return then,
                TxTake::Batch(dequeued) => queue.count(&mut state.statistics, self.cpu, dequeued as u64),
            }
            self.state = None;
            if queue.is_filtered_behind() {
                self.pass_behind(came_back);
            }
            queue.driver.transmit_batch(queue.place.number, &mut self.batch);
            let state = self.state.insert(queue.lock());
            if let Some(then) = state.tx.transmitted(queue.place.machine.now(), &mut self.batch) {
                return then;
            }
        }
    }
}

impl<P: Packet + Debug + Send + 'static> Scheduled for DeviceQueue<P> {
    fn run_on(self: Arc<Self>, cpu: CpuId) {
        let mut state = self.lock();
        state.tx.scheduled();
        self.run(state, Some(cpu));
    }
}
