//! The run loop of a transmit queue, without its lock, its timers and its driver.
//!
//! A sender enqueues, and runs the queue unless a run is under way. A run takes packets out under the
//! queue's lock, gives them to the driver without it, and looks again. So senders wait for an enqueue or a
//! batch, never for the driver, and a packet that came during a run is found by the run's last look. A run
//! ends when nothing may leave now, when the driver is full, or when [`DEVICE_WEIGHT`] packets have passed.
//!
//! The caller holds the lock, calls the driver, keeps the timers and knows the CPUs. Its order of calls:
//!
//! 1. [`enqueue`](TxQueue::enqueue), or [`wake`](TxQueue::wake), or [`scheduled`](TxQueue::scheduled) when
//!    the list of a CPU reaches the queue; then [`begin`](TxQueue::begin).
//! 2. [`take`](TxQueue::take), the driver, [`transmitted`](TxQueue::transmitted), until a [`TxThen`] says
//!    what comes next; [`abandon`](TxQueue::abandon) in place of that after a panic.
//! 3. [`TxThen::Again`]: the queue goes on a CPU's list, if [`schedule`](TxQueue::schedule) says so.
//!
//! Invariants (tests/tx_queue.rs): one run at a time; packets leave in the order in which the discipline
//! gave them; a queue whose [`TxThen`] was obeyed and that holds packets is being run, on a list, or has its
//! watchdog armed. Source: Linux net/core/dev.c and net/sched/sch_generic.c, by behaviour.

use crate::{DelayTimer, Dequeued, Enqueued, Packet, Qdisc, Statistics};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// Packets that one device sends or takes in before others get the CPU (the kernel's `dev_weight`).
pub const DEVICE_WEIGHT: usize = 64;

/// How long after the driver was full it is asked again, unless it says so itself.
const RETRY: Nanos = Nanos(1_000_000);

/// When a driver that is full at `now` is asked again.
const fn retry(now: Nanos) -> Nanos {
    Nanos(now.0.saturating_add(RETRY.0))
}

/// How many packets of the link these are.
fn packets<'a, P: Packet>(all: impl Iterator<Item = &'a P>) -> usize {
    all.map(|packet| packet.packets() as usize).sum()
}

/// What a run found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "packets that were taken out belong to the driver"]
pub enum TxTake {
    /// The batch has packets for the driver; so many of them come from the discipline now.
    Batch(usize),
    /// Nothing may leave: the run is over.
    Over(TxThen),
}

/// What is left to do after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a queue that is not run again stalls"]
pub enum TxThen {
    /// Nothing, or the watchdog is armed for that moment already.
    Nothing,
    /// The watchdog is armed for this moment; where it has passed meanwhile,
    /// [`watchdog_expired`](TxQueue::watchdog_expired) at once.
    Arm(Nanos),
    /// Another run, soon.
    Again,
}

/// A transmit queue: a discipline, and what of it is on its way to the driver.
#[derive(Debug)]
pub struct TxQueue<P> {
    qdisc: Box<dyn Qdisc<P>>,
    /// Taken out, and the driver had no room: they go first.
    returned: VecDeque<P>,
    /// Packets that the run under way has taken.
    run: Option<usize>,
    is_scheduled: bool,
    /// The driver said that it has room, perhaps before the run knew that it had none.
    is_woken: bool,
    /// Disciplines that it has had, and had when the driver got its packets.
    grafts: u64,
    taken_from: u64,
    /// For when the watchdog is armed.
    armed: Option<Nanos>,
    /// The discipline has a second timer, and for when that is armed.
    has_delays: bool,
    delays_armed: Option<Nanos>,
    requeues: u64,
}

impl<P: Packet + Debug> TxQueue<P> {
    /// A queue that nothing runs.
    #[must_use]
    pub fn new(qdisc: Box<dyn Qdisc<P>>) -> Self {
        let has_delays = qdisc.delays() != DelayTimer::Absent;
        Self {
            qdisc,
            returned: VecDeque::new(),
            run: None,
            is_scheduled: false,
            is_woken: false,
            grafts: 0,
            taken_from: 0,
            armed: None,
            has_delays,
            delays_armed: None,
            requeues: 0,
        }
    }

    /// Its discipline, for looks and changes after which no packet may leave earlier.
    pub fn qdisc_mut(&mut self) -> &mut dyn Qdisc<P> {
        &mut *self.qdisc
    }

    /// Whether several packets of a stream may come as one: changes only where the discipline is changed.
    #[must_use]
    pub fn keeps_whole(&self) -> bool {
        self.qdisc.keeps_whole()
    }

    /// Takes a packet. One that is queued needs a run.
    pub fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        self.qdisc.enqueue(now, packet)
    }

    /// The driver has room again: the queue is to be run.
    pub const fn wake(&mut self) {
        self.is_woken = true;
    }

    /// Begins a run; says no if one is under way, which then looks again.
    #[must_use = "a run that was begun has to end"]
    pub const fn begin(&mut self) -> bool {
        let begins = self.run.is_none();
        if begins {
            self.run = Some(0);
        }
        begins
    }

    /// Whether a run is under way.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// How many came back from the driver: the first of the next batch.
    #[must_use]
    pub fn returned(&self) -> usize {
        self.returned.len()
    }

    /// Fills `batch`, which is empty, with up to `most` packets for the driver; those that came back from it
    /// are the first.
    pub fn take(&mut self, now: Nanos, batch: &mut VecDeque<P>, most: usize) -> TxTake {
        self.taken_from = self.grafts;
        core::mem::swap(batch, &mut self.returned);
        let came_back = batch.len();
        let mut throttled = None;
        while batch.len() < most {
            match self.qdisc.dequeue(now) {
                Dequeued::Packet(packet) => batch.push_back(packet),
                Dequeued::Throttled(until) => {
                    throttled = Some(until);
                    break;
                }
                Dequeued::Empty => break,
            }
        }
        if batch.is_empty() {
            return TxTake::Over(self.end(throttled));
        }
        self.run = self.run.map(|passed| passed + packets(batch.iter()));
        self.is_woken = false;
        TxTake::Batch(packets(batch.iter().skip(came_back)))
    }

    /// The driver has taken all but what is still in `batch`; `None` if the run looks again.
    ///
    /// What is then left in `batch` is of a discipline that was replaced meanwhile, and is dropped by the
    /// caller, better without the lock: it may have a destructor.
    pub fn transmitted(&mut self, now: Nanos, batch: &mut VecDeque<P>) -> Option<TxThen> {
        if batch.is_empty() {
            return (self.run >= Some(DEVICE_WEIGHT)).then(|| self.end_again());
        }
        self.requeues += if self.taken_from == self.grafts { packets(batch.iter()) as u64 } else { 0 };
        self.keep(batch);
        Some(if self.is_woken { self.end_again() } else { self.end(Some(retry(now))) })
    }

    /// The run ends by a panic of the driver or of the discipline: its packets wait as for a driver that is
    /// full. What is left in `batch` is as in [`transmitted`](Self::transmitted).
    pub fn abandon(&mut self, now: Nanos, batch: &mut VecDeque<P>) -> TxThen {
        self.keep(batch);
        self.end(Some(retry(now)))
    }

    /// The packets go first in the next run, which is the first to take packets out again.
    fn keep(&mut self, batch: &mut VecDeque<P>) {
        if self.taken_from == self.grafts {
            core::mem::swap(&mut self.returned, batch);
        }
    }

    /// The run is over, and nothing may leave before `until`, or before a packet comes.
    fn end(&mut self, until: Option<Nanos>) -> TxThen {
        self.run = None;
        match until.filter(|until| self.armed != Some(*until)) {
            None => TxThen::Nothing,
            Some(until) => {
                self.armed = Some(until);
                TxThen::Arm(until)
            }
        }
    }

    const fn end_again(&mut self) -> TxThen {
        self.run = None;
        TxThen::Again
    }

    /// Whether the queue is to be put on a CPU's list; no if it is on one.
    #[must_use = "a queue that is on no list is not run again"]
    pub const fn schedule(&mut self) -> bool {
        !core::mem::replace(&mut self.is_scheduled, true)
    }

    /// The list has come to the queue, or could not take it.
    pub const fn scheduled(&mut self) {
        self.is_scheduled = false;
    }

    /// Whether it is on a list.
    #[must_use]
    pub const fn is_scheduled(&self) -> bool {
        self.is_scheduled
    }

    /// The watchdog goes off: the queue is to be scheduled.
    pub const fn watchdog_expired(&mut self) {
        self.armed = None;
    }

    /// For when the watchdog is armed.
    #[must_use]
    pub const fn armed(&self) -> Option<Nanos> {
        self.armed
    }

    /// When the delay timer, the second one, is to be armed for, after a run; `None` if it is armed so
    /// already, or if the discipline has none.
    pub fn arm_delays(&mut self) -> Option<Nanos> {
        if !self.has_delays {
            return None;
        }
        let until = self.qdisc.delays().until().filter(|until| self.delays_armed != Some(*until))?;
        self.delays_armed = Some(until);
        Some(until)
    }

    /// The delay timer goes off: the queue is to be scheduled.
    pub fn delays_expired(&mut self, now: Nanos) {
        self.delays_armed = None;
        self.qdisc.end_delays(now);
    }

    /// Another discipline. Both timers are to be cancelled. Gives what the one before held, itself included:
    /// better dropped without the lock.
    pub fn graft(&mut self, qdisc: Box<dyn Qdisc<P>>) -> (Box<dyn Qdisc<P>>, VecDeque<P>) {
        let before = core::mem::replace(&mut self.qdisc, qdisc);
        (self.armed, self.delays_armed, self.requeues) = (None, None, 0);
        self.grafts += 1;
        self.look_for_delays();
        (before, core::mem::take(&mut self.returned))
    }

    /// Changes the discipline; then a queue that holds packets is to be scheduled.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut dyn Qdisc<P>) -> R) -> R {
        let answer = change(&mut *self.qdisc);
        self.look_for_delays();
        answer
    }

    /// Whether the discipline has a second timer changes only when it is told something.
    fn look_for_delays(&mut self) {
        self.has_delays = self.qdisc.delays() != DelayTimer::Absent;
    }

    /// Whether packets wait in it.
    #[must_use]
    pub fn holds_packets(&self) -> bool {
        !self.returned.is_empty() || self.qdisc.statistics().qlen > 0
    }

    /// What its discipline has done; what came back from the driver is queued. It counts as sent, too, as in
    /// the kernel, where a discipline counts what it gives out, and the driver comes after that.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut all = self.qdisc.statistics();
        all.requeues += self.requeues;
        all.qlen += packets(self.returned.iter()) as u64;
        all.backlog += self.returned.iter().map(|packet| u64::from(packet.len())).sum::<u64>();
        all
    }
}
