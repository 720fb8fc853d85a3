//! Which virtual thread runs where, and when: an operating system with few CPUs that stops threads
//! anywhere.
//!
//! A thread that is ready waits for a CPU of the host. It runs from pause to pause; between two of them it
//! may lose its CPU, be stopped for long, or wait. All randomness is the run's.

use super::holders::holds_lock;
use super::switch::{Pause, ThreadId, VirtualThread, pause};
use crate::engine::{EventQueue, SimRandom};
use quietcore_core::Nanos;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// What the operating system does to threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HostFaults {
    /// Of a million steps, so many are followed by a stop.
    pub(super) stops_per_million: u64,
    /// The longest stop.
    pub(super) longest_stop: u64,
    /// Of a hundred steps, so many lose the CPU although the slice is not over.
    pub(super) preemptions: u32,
    /// The latest end of a wait that has a moment.
    pub(super) late_timer: u64,
    /// The latest arrival of a wake-up.
    pub(super) late_wake: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Ready,
    /// On a CPU of the host.
    Running,
    Waiting,
    /// Stopped in the middle of something.
    Stopped,
    Ended,
    /// Its process has forked, and the run goes on with the child, which does not have it.
    Gone,
}

struct ThreadRecord {
    name: String,
    code: Option<VirtualThread>,
    state: ThreadState,
    /// Of its waits: an event of another one is void.
    generation: u32,
    /// Whether its wait ended by time.
    timed_out: bool,
    /// When its wait ends at the latest.
    waits_until: Option<u64>,
    /// Since when it has its CPU.
    since: u64,
    /// Since when it has not run though it wanted to: ready, or stopped.
    held_since: Option<u64>,
    /// Whether it has a lock meanwhile, for which others wait.
    held_in_lock: bool,
    /// The last time that it was held, however short.
    last_held: Option<Held>,
    /// Since when it is in user code that takes long.
    busy_since: Option<u64>,
    /// How many waits of others it has ended by kicks.
    wakes: u64,
}

#[derive(Clone, Copy, Debug)]
enum HostEvent {
    /// The thread's step is over.
    Step(ThreadId),
    /// Its wait is over, by time or by a wake-up.
    Timeout(ThreadId, u32),
    Wake(ThreadId, u32),
    /// Its stop is over.
    Go(ThreadId),
}

impl HostEvent {
    const fn thread(self) -> ThreadId {
        match self {
            Self::Step(thread) | Self::Timeout(thread, _) | Self::Wake(thread, _) | Self::Go(thread) => {
                thread
            }
        }
    }
}

/// A span in which a thread wanted to run and did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) thread: ThreadId,
    pub(super) from: u64,
    pub(super) until: u64,
    /// It had a lock, for which others waited.
    pub(super) in_lock: bool,
    /// It ran user code all the time: nothing kept it from running.
    pub(super) is_busy: bool,
}

/// How long a thread keeps its CPU when others wait for one.
const SLICE: u64 = 1_000_000;

/// To give a CPU to another thread, in ns.
const SWITCH: u64 = 2_000;

/// The host of a run.
pub(super) struct Host {
    now: Cell<u64>,
    current: Cell<Option<ThreadId>>,
    events: Cell<u64>,
    is_child: Cell<bool>,
    /// What a child has touched though it is its parent's.
    touched: Cell<Option<&'static str>>,
    inner: RefCell<HostInner>,
}

struct HostInner {
    threads: Vec<ThreadRecord>,
    ready: VecDeque<ThreadId>,
    cpus: usize,
    free_cpus: usize,
    queue: EventQueue<HostEvent>,
    random: SimRandom,
    faults: HostFaults,
    /// Longer than [`HELD`], newest last.
    held: Vec<Held>,
}

/// A shorter hold is a matter of scheduling, not a stop.
pub(super) const HELD: u64 = 200_000;

thread_local! {
    /// The host whose run this real thread plays.
    static HOST: RefCell<Option<Rc<Host>>> = const { RefCell::new(None) };
}

/// The host whose run this is; for code that has no other way to it.
pub(super) fn host() -> Option<Rc<Host>> {
    HOST.with_borrow(Option::clone)
}

impl Host {
    pub(super) fn new(cpus: usize, faults: HostFaults, seed: u64) -> Rc<Self> {
        let inner = HostInner {
            threads: Vec::new(),
            ready: VecDeque::new(),
            cpus,
            free_cpus: cpus,
            queue: EventQueue::new(seed),
            random: SimRandom::new(seed, 11),
            faults,
            held: Vec::new(),
        };
        let host = Rc::new(Self {
            now: Cell::new(0),
            current: Cell::new(None),
            events: Cell::new(0),
            is_child: Cell::new(false),
            touched: Cell::new(None),
            inner: RefCell::new(inner),
        });
        HOST.with_borrow_mut(|slot| *slot = Some(Rc::clone(&host)));
        host
    }

    /// The run is over.
    pub(super) fn leave(&self) {
        HOST.with_borrow_mut(|slot| *slot = None);
        // Threads that have not ended are unwound here.
        let threads = std::mem::take(&mut self.inner.borrow_mut().threads);
        drop(threads);
    }

    pub(super) fn spawn(&self, name: String, run: impl FnOnce() + 'static) -> ThreadId {
        let mut inner = self.inner.borrow_mut();
        let thread = inner.threads.len();
        inner.threads.push(ThreadRecord {
            name,
            code: Some(VirtualThread::new(run)),
            state: ThreadState::Ready,
            generation: 0,
            timed_out: false,
            waits_until: None,
            since: 0,
            held_since: Some(self.now.get()),
            held_in_lock: false,
            last_held: None,
            busy_since: None,
            wakes: 0,
        });
        inner.ready.push_back(thread);
        thread
    }

    /// The moment, without a step.
    pub(super) fn moment(&self) -> u64 {
        self.now.get()
    }

    pub(super) fn steps(&self) -> u64 {
        self.events.get()
    }

    pub(super) fn random(&self, limit: u64) -> u64 {
        self.inner.borrow_mut().random.below(limit)
    }

    /// From now on nothing is stopped, preempted or late.
    pub(super) fn heal(&self) {
        self.inner.borrow_mut().faults = HostFaults::default();
    }

    /// The thread that runs.
    pub(super) fn current(&self) -> Option<ThreadId> {
        self.current.get()
    }

    pub(super) fn name(&self, thread: ThreadId) -> String {
        self.inner.borrow().threads[thread].name.clone()
    }

    /// Whether `thread` was stopped in the middle of something, or waits for a CPU since long.
    pub(super) fn is_held(&self, thread: ThreadId) -> bool {
        let inner = self.inner.borrow();
        let this = &inner.threads[thread];
        this.state == ThreadState::Stopped
            || this.held_since.is_some_and(|since| self.now.get() - since > HELD)
    }

    /// The calling thread does something that takes a while; anything may happen meanwhile.
    pub(super) fn step(&self, most: u64) {
        let took = 1 + self.random(most);
        pause(Pause::Step(took));
    }

    /// The calling thread computes for `span`.
    pub(super) fn compute(&self, span: u64) {
        let end = self.now.get() + span;
        let is_long = span > HELD / 2;
        let compute = || {
            while self.now.get() < end {
                pause(Pause::Step((end - self.now.get()).min(SLICE / 4)));
            }
        };
        if is_long { self.be_busy(compute) } else { compute() }
    }

    /// The calling thread waits in user code until `until`, whatever others ask of it.
    pub(super) fn hold(&self, until: u64) {
        self.be_busy(|| {
            while self.now.get() < until {
                let _ = self.wait(Some(until));
            }
        });
    }

    /// Notes that the calling thread is in code that takes long and is none of its turns.
    pub(super) fn be_busy(&self, code: impl FnOnce()) {
        let thread = self.current.get().expect("a virtual thread is busy");
        let from = self.now.get();
        self.inner.borrow_mut().threads[thread].busy_since = Some(from);
        code();
        let mut inner = self.inner.borrow_mut();
        inner.threads[thread].busy_since = None;
        inner.held.push(Held { thread, from, until: self.now.get(), in_lock: false, is_busy: true });
    }

    /// The calling thread has ended another one's wait.
    pub(super) fn note_wake(&self) {
        let current = self.current.get();
        current.into_iter().for_each(|thread| self.inner.borrow_mut().threads[thread].wakes += 1);
    }

    /// How many waits the calling thread has ended so far.
    pub(super) fn wakes(&self) -> u64 {
        self.current.get().map_or(0, |thread| self.inner.borrow().threads[thread].wakes)
    }

    /// The calling thread forks, and the run goes on with the child: all other threads are gone, wherever
    /// they were, and what they held stays held.
    pub(super) fn fork(&self) {
        let this = self.current.get().expect("a virtual thread forks");
        let mut inner = self.inner.borrow_mut();
        let others = inner.threads.iter_mut().enumerate().filter(|(thread, _)| *thread != this);
        others.for_each(|(_, other)| other.state = ThreadState::Gone);
        inner.ready.clear();
        inner.free_cpus = inner.cpus - 1;
        self.is_child.set(true);
    }

    /// Whether the process is a child.
    pub(super) fn is_child(&self) -> bool {
        self.is_child.get()
    }

    /// A thread is at something of which a child must keep off.
    pub(super) fn touch(&self, what: &'static str) {
        if self.is_child() && self.current.get().is_some() {
            self.touched.set(Some(what));
        }
    }

    /// What a child has touched all the same.
    pub(super) fn touched(&self) -> Option<&'static str> {
        self.touched.get()
    }

    /// Whether every thread waits or has ended: none is about to do something.
    pub(super) fn all_wait(&self) -> bool {
        let inner = self.inner.borrow();
        inner.threads.iter().all(|thread| matches!(thread.state, ThreadState::Waiting | ThreadState::Ended))
    }

    /// Whether `thread` waits.
    pub(super) fn is_waiting(&self, thread: ThreadId) -> bool {
        self.inner.borrow().threads[thread].state == ThreadState::Waiting
    }

    /// When the wait of `thread` ends at the latest, if it waits.
    pub(super) fn waits_until(&self, thread: ThreadId) -> Option<u64> {
        let inner = self.inner.borrow();
        let this = &inner.threads[thread];
        this.waits_until.filter(|_| this.state == ThreadState::Waiting)
    }

    /// A thread that has not ended.
    pub(super) fn not_ended(&self) -> Option<String> {
        let inner = self.inner.borrow();
        let is_over = |state| matches!(state, ThreadState::Ended | ThreadState::Gone);
        let left = inner.threads.iter().find(|thread| !is_over(thread.state))?;
        Some(left.name.clone())
    }

    /// The calling thread waits until it is [woken](Self::wake), or until `until`; says whether that came.
    pub(super) fn wait(&self, until: Option<u64>) -> bool {
        let thread = self.current.get().expect("a virtual thread waits");
        pause(Pause::Wait(until));
        self.inner.borrow().threads[thread].timed_out
    }

    /// Ends the wait of `thread`, a little later; nothing if it does not wait.
    pub(super) fn wake(&self, thread: ThreadId) {
        let mut inner = self.inner.borrow_mut();
        let latest = inner.faults.late_wake;
        let late = inner.random.below(latest + 1);
        let this = &inner.threads[thread];
        if this.state == ThreadState::Waiting {
            let event = HostEvent::Wake(thread, this.generation);
            inner.queue.push(Nanos(self.now.get() + late), event);
        }
    }

    /// Runs until `end`, or until nothing is left that could happen; says whether it was the latter. After
    /// each step of a thread `check` is asked whether to go on.
    pub(super) fn run(&self, end: u64, mut check: impl FnMut() -> bool) -> bool {
        loop {
            self.dispatch();
            let next = self.inner.borrow_mut().queue.pop();
            let Some((at, event)) = next else { return true };
            if at.0 > end {
                self.inner.borrow_mut().queue.push(at, event);
                self.now.set(end);
                return false;
            }
            self.now.set(at.0);
            self.events.set(self.events.get() + 1);
            if self.inner.borrow().threads[event.thread()].state == ThreadState::Gone {
                continue;
            }
            match event {
                HostEvent::Step(thread) => {
                    self.play(thread);
                    if !check() {
                        return false;
                    }
                }
                HostEvent::Timeout(thread, generation) => self.end_wait(thread, generation, true),
                HostEvent::Wake(thread, generation) => self.end_wait(thread, generation, false),
                HostEvent::Go(thread) => self.inner.borrow_mut().make_ready(thread, at.0, false),
            }
        }
    }

    fn end_wait(&self, thread: ThreadId, generation: u32, by_time: bool) {
        let mut inner = self.inner.borrow_mut();
        let this = &mut inner.threads[thread];
        if this.state == ThreadState::Waiting && this.generation == generation {
            this.timed_out = by_time;
            inner.make_ready(thread, self.now.get(), true);
        }
    }

    /// Gives free CPUs to threads that wait for one.
    fn dispatch(&self) {
        let mut inner = self.inner.borrow_mut();
        let now = self.now.get();
        while inner.free_cpus > 0
            && let Some(thread) = inner.ready.pop_front()
        {
            inner.free_cpus -= 1;
            let held = inner.held_now(thread, now);
            let this = &mut inner.threads[thread];
            (this.state, this.since, this.held_since) = (ThreadState::Running, now, None);
            this.last_held = held.or(this.last_held);
            inner.held.extend(held.filter(|held| held.until - held.from > HELD));
            inner.queue.push(Nanos(now + SWITCH), HostEvent::Step(thread));
        }
    }

    /// Lets `thread` run to its next pause.
    fn play(&self, thread: ThreadId) {
        let code = self.inner.borrow_mut().threads[thread].code.take();
        let mut code = code.expect("it runs nowhere else");
        self.current.set(Some(thread));
        let paused = code.resume();
        self.current.set(None);
        let now = self.now.get();
        let mut inner = self.inner.borrow_mut();
        let Some(paused) = paused else {
            inner.threads[thread].state = ThreadState::Ended;
            inner.free_cpus += 1;
            return;
        };
        inner.threads[thread].code = Some(code);
        match paused {
            Pause::Step(took) => inner.after_step(thread, now, took),
            Pause::Wait(until) => inner.begin_wait(thread, now, until),
        }
    }

    /// The spans in which threads were held, longer than [`HELD`], that reach beyond `from`.
    pub(super) fn held_since(&self, from: u64) -> Vec<Held> {
        let inner = self.inner.borrow();
        let now = self.now.get();
        let going_on = inner.threads.iter().enumerate().filter_map(|(thread, record)| {
            let held = inner.held_now(thread, now).filter(|held| now - held.from > HELD);
            let from = held.map(|held| held.from).into_iter().chain(record.busy_since).min()?;
            let is_busy = held.is_none();
            Some(Held { thread, from, until: now, in_lock: record.held_in_lock, is_busy })
        });
        let past = inner.held.iter().rev().take_while(|held| held.until > from).copied();
        past.chain(going_on).collect()
    }
}

impl HostInner {
    /// The span for which `thread` is held by now, if it is. Who runs for a moment only, between two times of
    /// waiting that are longer, did not get to run.
    fn held_now(&self, thread: ThreadId, now: u64) -> Option<Held> {
        let this = &self.threads[thread];
        let (since, in_lock) = (this.held_since?, this.held_in_lock);
        let before =
            this.last_held.filter(|last| last.in_lock == in_lock && since - last.until < now - since);
        let from = before.map_or(since, |last| last.from);
        Some(Held { thread, from, until: now, in_lock, is_busy: false })
    }

    fn make_ready(&mut self, thread: ThreadId, now: u64, is_new: bool) {
        let this = &mut self.threads[thread];
        this.state = ThreadState::Ready;
        this.generation = this.generation.wrapping_add(1);
        if is_new {
            (this.held_since, this.held_in_lock) = (Some(now), holds_lock(thread));
        }
        self.ready.push_back(thread);
    }

    fn after_step(&mut self, thread: ThreadId, now: u64, took: u64) {
        let faults = self.faults;
        if faults.stops_per_million > 0 && self.random.below(1_000_000) < faults.stops_per_million {
            let stop = 1 + self.random.below(faults.longest_stop);
            let this = &mut self.threads[thread];
            (this.state, this.held_since) = (ThreadState::Stopped, Some(now));
            this.held_in_lock = holds_lock(thread);
            self.free_cpus += 1;
            self.queue.push(Nanos(now + stop), HostEvent::Go(thread));
            return;
        }
        let is_over = now - self.threads[thread].since >= SLICE;
        let must_leave = is_over || self.random.chance(faults.preemptions);
        if must_leave && !self.ready.is_empty() {
            self.free_cpus += 1;
            self.make_ready(thread, now, true);
            return;
        }
        self.queue.push(Nanos(now + took), HostEvent::Step(thread));
    }

    fn begin_wait(&mut self, thread: ThreadId, now: u64, until: Option<u64>) {
        self.free_cpus += 1;
        let late = self.faults.late_timer;
        let late = self.random.below(late + 1);
        let this = &mut self.threads[thread];
        this.state = ThreadState::Waiting;
        this.generation = this.generation.wrapping_add(1);
        this.timed_out = false;
        this.waits_until = until;
        if let Some(until) = until {
            let event = HostEvent::Timeout(thread, this.generation);
            self.queue.push(Nanos(until.max(now).saturating_add(late)), event);
        }
    }
}
