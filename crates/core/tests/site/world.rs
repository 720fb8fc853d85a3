//! The hierarchy with something to look after: a base per CPU, and who was told to wake up when.
//!
//! A base is a list of expiries behind a lock. The calls are the world's half of the protocol: locks in the
//! order base, record, events; `is_idle` written under the base's lock; the CPU that arms an idle one's first
//! timer publishes it. At rest each expiry of an idle or absent CPU is seen by a CPU (`expect_eyes`).

use crate::lock::{LockNumbers, SiteLock, plain, restart_numbers};
use crate::play::Subject;
use crate::stage;
use quietcore_core::script::Site;
use quietcore_core::tmigr::{CpuState, Hierarchy, Pulled, Tree};
use quietcore_core::{CpuId, Nanos, RawLock};
use std::sync::{Mutex, MutexGuard};

#[derive(Debug, Default)]
struct Timers {
    /// Expiries, sorted.
    pending: Vec<u64>,
    is_idle: bool,
    /// Expiries that ran, with the CPU that ran them.
    ran: Vec<(u64, usize)>,
}

impl Timers {
    fn next(&self) -> Option<Nanos> {
        self.pending.first().copied().map(Nanos)
    }

    /// `by` runs what is due.
    fn run(&mut self, by: usize, now: u64) {
        let due = self.pending.partition_point(|&expires| expires <= now);
        self.ran.extend(self.pending.drain(..due).map(|expires| (expires, by)));
    }
}

#[derive(Debug, Default)]
struct Base {
    lock: SiteLock,
    timers: Mutex<Timers>,
}

/// A base that is held.
struct Held<'a>(&'a Base, MutexGuard<'a, Timers>);

impl Base {
    fn hold(&self) -> Held<'_> {
        stage::mark(Site::BeforeBaseLock);
        self.lock.lock_remote();
        Held(self, plain(&self.timers))
    }

    fn try_hold(&self) -> Option<Held<'_>> {
        stage::mark(Site::BeforeBaseLock);
        self.lock.try_lock_remote().then(|| Held(self, plain(&self.timers)))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.lock.unlock();
    }
}

fn lower(alarm: &Mutex<Option<Nanos>>, first: Option<Nanos>) {
    let mut alarm = plain(alarm);
    *alarm = alarm.into_iter().chain(first).min();
}

pub(crate) struct World {
    pub(crate) tree: Hierarchy<SiteLock>,
    bases: Vec<Base>,
    /// What each CPU was told to wake up for, by calls of its own.
    told: Mutex<Vec<Option<Nanos>>>,
    /// What callers were told that a CPU has to wake up for.
    alarm: Mutex<Option<Nanos>>,
    /// The same without what a parked CPU's record says, too.
    alarm_beside_books: Mutex<Option<Nanos>>,
    locks: LockNumbers,
}

/// Two groups; a timer on each CPU, for 10 and its number; `asleep` sleep.
pub(crate) fn two_groups(asleep: &[usize]) -> World {
    World::two_groups().with_timers(&[0, 1, 8, 9], asleep)
}

pub(crate) fn id(cpu: usize) -> CpuId {
    CpuId::new(cpu as u64).expect("a test has few CPUs")
}

impl World {
    /// A machine with these nodes; `joined` are there and awake.
    pub(crate) fn new(nodes: &[u16], joined: &[usize]) -> Self {
        restart_numbers();
        let world = Self {
            tree: Hierarchy::new(nodes),
            locks: LockNumbers::new(nodes.len(), 0, 1),
            bases: nodes.iter().map(|_| Base::default()).collect(),
            told: Mutex::new(vec![None; nodes.len()]),
            alarm: Mutex::default(),
            alarm_beside_books: Mutex::default(),
        };
        joined.iter().for_each(|&cpu| world.join(cpu));
        world
    }

    /// One group: CPUs 0 to `cpus` - 1, all awake.
    pub(crate) fn one_group(cpus: usize) -> Self {
        Self::new(&vec![0; cpus.min(8)], &(0..cpus).collect::<Vec<_>>())
    }

    /// Two nodes of so many CPUs: 8 are one group below the root, 9 two below another; `joined` are awake.
    pub(crate) fn two_nodes(cpus: u16, joined: &[usize]) -> Self {
        let nodes: Vec<u16> = (0..2 * cpus).map(|cpu| cpu / cpus).collect();
        Self::new(&nodes, joined)
    }

    /// Two groups below a root: CPUs 0 and 1, and 8 and 9, all awake.
    pub(crate) fn two_groups() -> Self {
        Self::two_nodes(8, &[0, 1, 8, 9])
    }

    /// Three levels: CPUs 0 and 1 in a group below one of node 0, CPUs 9 and 10 below one of node 1.
    pub(crate) fn three_levels() -> Self {
        Self::two_nodes(9, &[0, 1, 9, 10])
    }

    /// With a timer on each of `armed`, for 10 and its number; then `asleep` go idle.
    pub(crate) fn with_timers(self, armed: &[usize], asleep: &[usize]) -> Self {
        armed.iter().for_each(|&cpu| self.arm(cpu, 10 + cpu as u64));
        asleep.iter().for_each(|&cpu| self.park(cpu));
        self
    }

    pub(crate) fn join(&self, cpu: usize) {
        self.connect(cpu);
        let mut base = self.bases[cpu].hold();
        let first = self.tree.set_available(id(cpu), base.1.next());
        base.1.is_idle = self.tree.cpu_state(id(cpu)) != CpuState::Awake;
        drop(base);
        self.owe(first);
    }

    /// Joins, and stays unavailable.
    pub(crate) fn connect(&self, cpu: usize) {
        assert!(self.tree.connect(id(cpu)), "CPU {cpu} joins once");
    }

    /// When `cpu`, awake, would have to wake up if it went idle now.
    pub(crate) fn forecast(&self, cpu: usize) -> Option<u64> {
        let next = plain(&self.bases[cpu].timers).next();
        self.tree.quick_check(id(cpu), next).map(Nanos::as_u64)
    }

    fn owe(&self, first: Option<Nanos>) {
        lower(&self.alarm, first);
        lower(&self.alarm_beside_books, first);
    }

    /// `expires` on `cpu`'s base, from any thread.
    pub(crate) fn arm(&self, cpu: usize, expires: u64) {
        let mut base = self.bases[cpu].hold();
        base.1.pending.push(expires);
        base.1.pending.sort_unstable();
        let is_news = base.1.is_idle && base.1.pending[0] == expires;
        drop(base);
        if is_news {
            self.publish(cpu);
        }
    }

    /// Tells the tree what an idle CPU has next. From any thread.
    pub(crate) fn publish(&self, cpu: usize) {
        let base = self.bases[cpu].hold();
        let first = if base.1.is_idle { self.tree.publish(id(cpu), base.1.next()) } else { None };
        let is_in_books = self.cpu_state(cpu) == CpuState::Parked;
        drop(base);
        if is_in_books {
            lower(&self.alarm, first);
        } else {
            self.owe(first);
        }
    }

    /// Goes idle.
    pub(crate) fn park(&self, cpu: usize) {
        let mut base = self.bases[cpu].hold();
        base.1.is_idle = true;
        let first = self.tree.deactivate(id(cpu), base.1.next());
        drop(base);
        plain(&self.told)[cpu] = first;
    }

    /// Leaves idle.
    pub(crate) fn wake(&self, cpu: usize) {
        let mut base = self.bases[cpu].hold();
        base.1.is_idle = false;
        self.tree.activate(id(cpu));
        drop(base);
        plain(&self.told)[cpu] = None;
    }

    /// Leaves idle, and goes back.
    pub(crate) fn wake_and_park(&self, cpu: usize) {
        self.wake(cpu);
        self.park(cpu);
    }

    /// Comes back if neither lock makes it wait; says whether it did.
    pub(crate) fn try_return(&self, cpu: usize) -> bool {
        let Some(mut base) = self.bases[cpu].try_hold() else { return false };
        let has_returned = self.tree.try_activate(id(cpu));
        if has_returned {
            base.1.is_idle = false;
            plain(&self.told)[cpu] = None;
        }
        has_returned
    }

    /// Another CPU marks `cpu` as absent, if its base is to be had; says whether.
    pub(crate) fn mark_absent(&self, cpu: usize) -> bool {
        let Some(mut base) = self.bases[cpu].try_hold() else { return false };
        base.1.is_idle = true;
        let first = self.tree.go_absent(id(cpu), base.1.next());
        drop(base);
        self.owe(first);
        true
    }

    pub(crate) fn set_unavailable(&self, cpu: usize) {
        let base = self.bases[cpu].hold();
        let first = self.tree.set_unavailable(id(cpu));
        drop(base);
        self.owe(first);
    }

    pub(crate) fn set_available(&self, cpu: usize) {
        let base = self.bases[cpu].hold();
        let first = self.tree.set_available(id(cpu), base.1.next());
        drop(base);
        self.owe(first);
    }

    /// What `cpu` does in its tick, or when it wakes up for the tree; says whom it pulled from.
    pub(crate) fn look(&self, cpu: usize, now: u64) -> Vec<usize> {
        let mut pulled = vec![];
        if self.tree.requires_handle_remote(id(cpu), Nanos(now)) {
            self.tree.handle_remote(id(cpu), Nanos(now), &mut |target| {
                pulled.push(target.index());
                self.pull(cpu, target.index(), now)
            });
        }
        if self.tree.cpu_state(id(cpu)) == CpuState::Parked {
            plain(&self.told)[cpu] = self.tree.wakeup(id(cpu));
        }
        pulled
    }

    fn pull(&self, by: usize, target: usize, now: u64) -> Pulled {
        let Some(mut base) = self.bases[target].try_hold() else { return Pulled::Left };
        if !base.1.is_idle || self.cpu_state(target) == CpuState::Unavailable {
            return Pulled::Left;
        }
        base.1.run(by, now);
        stage::mark(Site::BeforeRepublish);
        let first = self.tree.publish(id(target), base.1.next());
        drop(base);
        // A parked puller reads afterwards what is left to wake up for.
        if self.tree.cpu_state(id(by)) != CpuState::Parked {
            self.owe(first);
        }
        Pulled::Published
    }

    /// An awake CPU runs what is due on its own base.
    pub(crate) fn run_own(&self, cpu: usize, now: u64) {
        self.bases[cpu].hold().1.run(cpu, now);
    }

    /// Which of `cpu`'s timers ran where, in order.
    pub(crate) fn ran(&self, cpu: usize) -> Vec<(u64, usize)> {
        self.bases.get(cpu).map_or(vec![], |base| plain(&base.timers).ran.clone())
    }

    pub(crate) fn cpu_state(&self, cpu: usize) -> CpuState {
        self.tree.cpu_state(id(cpu))
    }

    /// The same; `None` when the machine has no such CPU.
    pub(crate) fn book_or_none(&self, cpu: usize) -> Option<CpuState> {
        (cpu < self.bases.len()).then(|| self.cpu_state(cpu))
    }

    /// What `cpu` was told to wake up for.
    pub(crate) fn told(&self, cpu: usize) -> Option<u64> {
        plain(&self.told).get(cpu).copied().flatten().map(Nanos::as_u64)
    }

    pub(crate) fn alarm(&self) -> Option<u64> {
        plain(&self.alarm).map(Nanos::as_u64)
    }

    /// Everything that must hold when no walk is under way: the tree's invariants, and for each expiry of a
    /// CPU that is not awake a CPU that polls it, was told to wake up for it, or can be woken by the alarm.
    fn expect_eyes(&self) {
        self.tree.check(*plain(&self.alarm_beside_books), None);
        let cpus = 0..self.bases.len();
        let awake: Vec<usize> = cpus.clone().filter(|&cpu| self.cpu_state(cpu) == CpuState::Awake).collect();
        let told = plain(&self.told).iter().flatten().copied().chain(*plain(&self.alarm)).min();
        for cpu in cpus.filter(|&cpu| matches!(self.cpu_state(cpu), CpuState::Parked | CpuState::Absent)) {
            let Some(expires) = plain(&self.bases[cpu].timers).next() else { continue };
            let is_polled = awake.iter().any(|&eye| self.tree.requires_handle_remote(id(eye), expires));
            let is_told = told.is_some_and(|told| told <= expires);
            assert!(
                is_polled || is_told,
                "CPU {cpu} has a timer for {expires:?}: nobody of {awake:?} polls it, first wake-up {told:?}"
            );
        }
    }

    /// Time goes to the end: every awake CPU looks, one that was told wakes up, the alarm wakes one more;
    /// then all due timers have run.
    pub(crate) fn expect_all_run(&self, now: u64) {
        for cpu in 0..self.bases.len() {
            match self.cpu_state(cpu) {
                CpuState::Awake => self.run_own(cpu, now),
                CpuState::Parked if self.told(cpu).is_some_and(|told| told <= now) => {}
                _ => continue,
            }
            self.look(cpu, now);
        }
        let parked = (0..self.bases.len()).find(|&cpu| self.cpu_state(cpu) == CpuState::Parked);
        if let Some(cpu) = parked.filter(|_| self.alarm().is_some_and(|alarm| alarm <= now)) {
            self.wake(cpu);
            self.run_own(cpu, now);
            self.look(cpu, now);
        }
        for (cpu, base) in (0..).zip(&self.bases) {
            let left = plain(&base.timers).pending.iter().filter(|&&expires| expires <= now).count();
            let is_served = left == 0 || self.cpu_state(cpu) == CpuState::Unavailable;
            assert!(is_served, "CPU {cpu} has {left} timers that nobody ran by {now}");
        }
    }
}

/// No moment of a test is later.
const LAST: u64 = 100;

impl Subject for World {
    fn locks(&self) -> (LockNumbers, Tree) {
        (self.locks, self.tree.tree())
    }

    fn expect_rest(&self) {
        self.expect_eyes();
    }

    fn expect_served(&self) {
        self.expect_all_run(LAST);
    }
}
