//! What must come of each call, from a list: which CPUs are awake, what the others published.
//!
//! The rule is one line: with a CPU awake none has to wake up; with none awake one must, for the first expiry
//! of all. The world sees to a returned expiry: here it wakes a CPU at once or remembers it (`alarm`) until
//! one is awake.

use quietcore_core::tmigr::{CpuState, Hierarchy, Pulled};
use quietcore_core::{CpuId, Nanos, SequentialLock};
use std::cell::RefCell;

/// A CPU as the list knows it; `presence` apart from whether it is available.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    has_joined: bool,
    is_available: bool,
    presence: CpuState,
    /// First global expiry of its bases, while it is not awake.
    next: Option<Nanos>,
}

impl Cpu {
    fn is_awake(&self) -> bool {
        self.is_available && self.presence == CpuState::Awake
    }

    fn published(&self) -> Option<Nanos> {
        self.next.filter(|_| self.is_available && self.presence != CpuState::Awake)
    }
}

/// A call. CPUs are numbers modulo the machine's; `next` are moments from now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Connect(usize),
    SetAvailable(usize),
    SetUnavailable(usize),
    Activate(usize),
    TryActivate(usize),
    Deactivate(usize, Option<u64>),
    Publish(usize, Option<u64>),
    GoAbsent(usize, Option<u64>),
    /// Time goes on, then every CPU looks that has a reason to; what a pulled CPU has next.
    Look(u64, Option<u64>),
}

/// Both: the tree and the list.
pub(crate) struct Both {
    tree: Hierarchy<SequentialLock>,
    cpus: Vec<Cpu>,
    now: u64,
    alarm: Option<Nanos>,
    /// Expiries that were pulled, for the test that the scripts do something.
    pub(crate) pulls: usize,
}

impl Both {
    pub(crate) fn new(nodes: &[u16]) -> Self {
        let cpu = Cpu { has_joined: false, is_available: false, presence: CpuState::Awake, next: None };
        Self { tree: Hierarchy::new(nodes), cpus: vec![cpu; nodes.len()], now: 0, alarm: None, pulls: 0 }
    }

    /// Plays one step on both and compares everything.
    pub(crate) fn play(&mut self, step: Step) {
        match step {
            Step::Connect(cpu) => self.connect(cpu),
            Step::SetAvailable(cpu) => self.set_available(cpu),
            Step::SetUnavailable(cpu) => self.set_unavailable(cpu),
            Step::Activate(cpu) => self.activate(cpu, false),
            Step::TryActivate(cpu) => self.activate(cpu, true),
            Step::Deactivate(cpu, next) => self.deactivate(cpu, next),
            Step::Publish(cpu, next) => self.publish(cpu, next),
            Step::GoAbsent(cpu, next) => self.go_absent(cpu, next),
            Step::Look(ticks, next) => self.look(ticks, next),
        }
        self.compare();
    }

    fn id(&self, cpu: usize) -> (usize, CpuId) {
        let cpu = cpu % self.cpus.len();
        (cpu, CpuId::new(cpu as u64).expect("a machine has less than 8192 CPUs"))
    }

    fn later(&self, next: Option<u64>) -> Option<Nanos> {
        next.map(|ticks| Nanos(self.now + ticks))
    }

    /// What a CPU must wake up for: the first of all, if none is awake.
    fn first(&self) -> Option<Nanos> {
        let is_anybody_awake = self.cpus.iter().any(Cpu::is_awake);
        self.cpus.iter().filter_map(Cpu::published).min().filter(|_| !is_anybody_awake)
    }

    fn connect(&mut self, cpu: usize) {
        let (cpu, id) = self.id(cpu);
        let is_first = !std::mem::replace(&mut self.cpus[cpu].has_joined, true);
        assert_eq!(self.tree.connect(id), is_first, "connect({cpu})");
    }

    fn set_available(&mut self, cpu: usize) {
        let (cpu, id) = self.id(cpu);
        if !self.cpus[cpu].has_joined {
            return;
        }
        let is_news = !std::mem::replace(&mut self.cpus[cpu].is_available, true);
        let first = self.tree.set_available(id, self.cpus[cpu].next);
        assert_eq!(first, self.first().filter(|_| is_news), "set_available({cpu})");
        self.owe(first);
    }

    fn set_unavailable(&mut self, cpu: usize) {
        let (cpu, id) = self.id(cpu);
        let is_news = std::mem::replace(&mut self.cpus[cpu].is_available, false);
        let first = self.tree.set_unavailable(id);
        assert_eq!(first, self.first().filter(|_| is_news), "set_unavailable({cpu})");
        self.owe(first);
    }

    fn activate(&mut self, cpu: usize, is_try: bool) {
        let (cpu, id) = self.id(cpu);
        if is_try {
            assert!(self.tree.try_activate(id), "nobody holds the record of {cpu}");
        } else {
            self.tree.activate(id);
        }
        self.cpus[cpu].presence = CpuState::Awake;
    }

    fn deactivate(&mut self, cpu: usize, next: Option<u64>) {
        let (cpu, id) = self.id(cpu);
        let next = self.later(next);
        let was_awake = self.cpus[cpu].is_awake();
        let forecast = self.tree.quick_check(id, next);
        let first = self.tree.deactivate(id, next);
        self.cpus[cpu].presence = CpuState::Parked;
        self.cpus[cpu].next = next;
        if !self.cpus[cpu].is_available {
            assert_eq!((first, forecast), (next, next), "an unavailable CPU {cpu} looks after itself");
            return;
        }
        assert_eq!(first, self.first(), "deactivate({cpu}, {next:?})");
        if was_awake {
            let never = Nanos(u64::MAX);
            assert!(
                forecast.unwrap_or(never) <= first.unwrap_or(never),
                "quick_check({cpu}, {next:?}) said {forecast:?}, going idle {first:?}"
            );
        }
    }

    fn publish(&mut self, cpu: usize, next: Option<u64>) {
        let (cpu, id) = self.id(cpu);
        let next = self.later(next);
        let first = self.tree.publish(id, next);
        if self.cpus[cpu].presence == CpuState::Awake {
            assert_eq!(first, None, "publish({cpu}) of a CPU that is awake");
            return;
        }
        let is_news = self.cpus[cpu].is_available && self.cpus[cpu].next != next;
        self.cpus[cpu].next = next;
        assert_eq!(first, self.first().filter(|_| is_news), "publish({cpu}, {next:?})");
        if self.cpus[cpu].presence == CpuState::Parked && is_news {
            assert_eq!(self.tree.wakeup(id), first, "the wake-up of {cpu} after publish");
        } else {
            self.owe(first);
        }
    }

    fn go_absent(&mut self, cpu: usize, next: Option<u64>) {
        let (cpu, id) = self.id(cpu);
        self.cpus[cpu].next = self.later(next);
        self.cpus[cpu].presence = CpuState::Absent;
        let first = self.tree.go_absent(id, self.cpus[cpu].next);
        assert_eq!(first, self.first().filter(|_| self.cpus[cpu].is_available), "go_absent({cpu})");
        self.owe(first);
    }

    /// The caller sees to what no CPU in the tree will wake up for.
    fn owe(&mut self, first: Option<Nanos>) {
        self.alarm = self.alarm.into_iter().chain(first).min();
    }

    /// A tick for every CPU at `now + ticks`. With none awake, the one that has to wakes up, or the alarm
    /// wakes one.
    fn look(&mut self, ticks: u64, next: Option<u64>) {
        self.now += ticks;
        let now = Nanos(self.now);
        let is_due = |when: Option<Nanos>| when.is_some_and(|when| when <= now);
        if is_due(self.alarm) && self.first().is_some() {
            let parked =
                self.cpus.iter().position(|cpu| cpu.is_available && cpu.presence == CpuState::Parked);
            let Some(cpu) = parked else { return };
            self.activate(cpu, false);
        }
        for cpu in 0..self.cpus.len() {
            let (_, id) = self.id(cpu);
            if self.tree.requires_handle_remote(id, now) {
                self.pull_all(id, now, next);
            }
        }
        let missed = self.cpus.iter().position(|cpu| is_due(cpu.published()));
        assert_eq!(missed, None, "nobody pulled that CPU's timers, due by {now:?}");
    }

    fn pull_all(&mut self, cpu: CpuId, now: Nanos, next: Option<u64>) {
        // A CPU that has timers left has them later than now.
        let next = next.map(|ticks| Nanos(now.0 + 1 + ticks));
        let (cpus, pulls) = (RefCell::new(&mut self.cpus), RefCell::new(&mut self.pulls));
        self.tree.handle_remote(cpu, now, &mut |target| {
            let mut cpus = cpus.borrow_mut();
            let puller = cpus[cpu.index()];
            assert!(puller.is_available, "T4: {cpu} is unavailable and pulls {target}");
            let target = (&mut cpus[target.index()], target);
            assert!(target.0.is_available, "T4: {cpu} pulls {}, which is unavailable", target.1);
            if target.0.published().is_none_or(|expires| expires > now) {
                return Pulled::Left;
            }
            **pulls.borrow_mut() += 1;
            target.0.next = next;
            let _ = self.tree.publish(target.1, next);
            Pulled::Published
        });
    }

    fn compare(&mut self) {
        if self.cpus.iter().any(Cpu::is_awake) {
            self.alarm = None;
        }
        self.tree.check(self.alarm, None);
        for cpu in 0..self.cpus.len() {
            let (cpu, id) = self.id(cpu);
            let known = self.cpus[cpu];
            let expected = if known.is_available { known.presence } else { CpuState::Unavailable };
            assert_eq!(self.tree.cpu_state(id), expected, "CPU {cpu}");
        }
        self.expect_eyes();
    }

    /// T3 and more: for each expiry that is published there is an awake CPU that polls it, or one that wakes
    /// up for it.
    fn expect_eyes(&self) {
        let wakeups = (0..self.cpus.len()).filter_map(|cpu| self.tree.wakeup(self.id(cpu).1));
        let wakeup = wakeups.chain(self.alarm).min();
        let awake: Vec<CpuId> =
            (0..self.cpus.len()).filter(|&cpu| self.cpus[cpu].is_awake()).map(|cpu| self.id(cpu).1).collect();
        let polls = |expires: Nanos| awake.iter().any(|&cpu| self.tree.requires_handle_remote(cpu, expires));
        for (cpu, expires) in (0..).zip(&self.cpus).filter_map(|(cpu, known)| Some((cpu, known.published()?)))
        {
            let is_seen = wakeup.is_some_and(|wakeup| wakeup <= expires) || polls(expires);
            assert!(
                is_seen,
                "CPU {cpu} published {expires:?}: nobody of {awake:?} polls it; {wakeup:?} is next"
            );
        }
    }
}
