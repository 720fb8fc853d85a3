//! Softirqs of virtual lanes: threads raise vectors, lanes and their ksoftirqds take the core's rounds.
//!
//! What is checked: a vector runs on one thread at a time, and no more often than it was raised anew; what
//! may not leave its lane does not; what was raised is seen by a run soon, unless the threads that could run
//! it were kept from it; and while all threads wait, none of it waits, too. Absent: real handlers, and what
//! stops ksoftirqd for the sake of others (it is a thread like any other here).

use super::oracle::{LONG_CALLBACK, usual};
use super::place::{Place, VirtualParker};
use super::softirq_signs::{RAISED, VirtualSoftirqs};
use super::world::{CLOCK, RuntimeWorld};
use quietcore_core::CpuId;
use quietcore_core::lane::{Kick, Sleeper};
use quietcore_core::run_queue::{Activity, LaneQueue};
use quietcore_core::softirq::{
    Budget, Claims, KsoftirqdRound, KsoftirqdStep, LaneSoftirqs, LaneStep, Raise, Runner, VectorSet,
};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// The longest that a lane waits for its ksoftirqd, and between two looks meanwhile, in ns.
const DONATION: u64 = 2 * MS;
const PAUSE: u64 = 100 * US;

/// A read-modify-write, in ns.
const WORD: u64 = 30;

impl RuntimeWorld {
    /// What is pending for `cpu`, and who runs it.
    fn claims(&self, cpu: CpuId) -> &Claims {
        &self.lanes.slot(cpu).expect("it is a lane's").world.queue.claims
    }

    fn softirqs_of(&self, cpu: CpuId) -> Option<&VirtualSoftirqs> {
        self.softirqs.get(cpu.index())
    }

    /// One of the vectors becomes pending on a random lane. From any thread.
    pub(super) fn raise_somewhere(&self) {
        let count = self.softirqs.len() as u64;
        if count > 0 && !self.is_child() && !self.drains.get() {
            self.raise(CpuId::new(self.host.random(count)).expect("few"), self.host.random(4) as usize);
        }
    }

    fn raise(&self, cpu: CpuId, index: usize) {
        let Some(softirqs) = self.softirqs_of(cpu) else { return };
        softirqs.signs.borrow_mut()[index].is_left = true;
        self.counts.borrow_mut().raises += 1;
        self.host.step(WORD);
        if self.claims(cpu).raise(RAISED[index].into()) == Raise::News {
            let news = {
                let this = &mut softirqs.signs.borrow_mut()[index];
                this.news += 1;
                this.news
            };
            self.note(|| format!("raises {} of CPU {cpu}", RAISED[index]));
            let slot = self.lanes.slot(cpu).expect("it is a lane's");
            self.host.step(WORD);
            slot.world.parker.doorbell.set(true);
            if slot.world.kick() == Kick::Vacant {
                // Its lane does not come to it.
                self.ask_ksoftirqd(cpu);
            }
            let this = &mut softirqs.signs.borrow_mut()[index];
            // Unless it has run since, and was raised anew.
            if this.is_left && this.news == news {
                this.told_at = Some(self.host.moment());
            }
        }
    }

    pub(super) fn ask_ksoftirqd(&self, cpu: CpuId) {
        if let Some(softirqs) = self.softirqs_of(cpu) {
            self.host.step(WORD);
            softirqs.bell.doorbell.set(true);
            let _ = softirqs.bell.kick();
        }
    }

    /// A lane's round; `was_realtime` says that it ran a real-time task just before.
    pub(super) fn run_softirqs(&self, slot: &Place, of_lane: &mut LaneSoftirqs, was_realtime: bool) {
        let cpu = slot.cpu();
        if self.softirqs_of(cpu).is_none() {
            return;
        }
        self.host.step(WORD);
        let Some(mut round) = of_lane.begin(self.claims(cpu), || self.clock()) else { return };
        loop {
            let now = self.clock();
            let queue = &slot.world.queue;
            let is_held_up = was_realtime || queue.realtime_waiting().is_some();
            let defers = self.plan.awareness.defers() && is_held_up;
            match round.next(defers, now) {
                LaneStep::Donate(vectors) => self.donate(cpu, vectors),
                LaneStep::Run(vectors) => {
                    queue.begin_bound(Activity::Softirq);
                    self.is_doing(cpu);
                    self.run_vectors(cpu, vectors, Runner::Lane);
                    if self.is_child() {
                        return;
                    }
                    queue.end();
                    round.finish(slot.world.queue.realtime_waiting().is_some());
                    self.host.step(WORD);
                }
                LaneStep::End(left) => {
                    self.host.step(WORD);
                    if left.to_ksoftirqd {
                        self.note(|| "leaves softirqs".to_owned());
                        self.ask_ksoftirqd(cpu);
                    }
                    if left.to_lane {
                        slot.world.parker.doorbell.set(true);
                    }
                    return;
                }
            }
        }
    }

    /// Lets ksoftirqd have the CPU until it is done with `vectors`, or for as long as is due to it.
    fn donate(&self, cpu: CpuId, vectors: VectorSet) {
        let end = self.host.moment() + DONATION;
        self.note(|| format!("waits for {vectors}"));
        while !self.claims(cpu).active().intersection(vectors).is_empty()
            && self.host.moment() < end
            && self.is_running()
        {
            self.host.hold(self.host.moment() + PAUSE);
        }
    }

    /// The thread of normal priority beside the lane of `cpu`.
    pub(super) fn run_ksoftirqd(&self, cpu: CpuId) {
        let softirqs = self.softirqs_of(cpu).expect("it was made for this thread");
        softirqs.ksoftirqd.set(self.host.current());
        assert!(softirqs.bell.claim(), "each lane has one");
        while self.is_running() && self.is_ksoftirqd_asked(&softirqs.bell) {
            while self.is_running() && self.ksoftirqd_round(cpu) {
                // Its time is up: what waits for the CPU goes first.
                self.host.step(CLOCK);
            }
        }
    }

    /// Waits to be asked; says whether it was, and not only the machine has ended.
    fn is_ksoftirqd_asked(&self, bell: &VirtualParker) -> bool {
        while !bell.doorbell.replace(false) {
            bell.prepare();
            let ends = !self.is_running();
            if !ends && !bell.doorbell.get() {
                bell.sleep(None);
            }
            bell.finish();
            if ends {
                return false;
            }
        }
        true
    }

    /// One round; says whether there is more that the lane does not just run.
    fn ksoftirqd_round(&self, cpu: CpuId) -> bool {
        let mut round = KsoftirqdRound::begin(self.claims(cpu), Budget::default(), self.clock());
        loop {
            match round.next(self.clock()) {
                KsoftirqdStep::Run(vectors) => {
                    self.run_vectors(cpu, vectors, Runner::Ksoftirqd);
                    if self.is_child() {
                        return false;
                    }
                    round.finish();
                    self.host.step(WORD);
                }
                KsoftirqdStep::Again => return true,
                KsoftirqdStep::Wait => return false,
            }
        }
    }

    /// Runs the handlers of `vectors`. By the runner that has claimed them.
    fn run_vectors(&self, cpu: CpuId, vectors: VectorSet, runner: Runner) {
        for vector in vectors.iter() {
            self.host.step(WORD);
            let index = RAISED.iter().position(|raised| *raised == vector).expect("only these are raised");
            self.begin_handler(cpu, index, runner);
            self.host.compute(self.host.random(self.plan.faults.longest_handler));
            self.may_fork(20);
            if self.is_child() {
                return;
            }
            self.wake_now_and_then(10);
            let softirqs = self.softirqs_of(cpu).expect("it runs some");
            let ran = softirqs.signs.borrow()[index].ran;
            // Now and then a storm, which no round gets to the end of.
            if self.is_busy() && self.chance(if ran % 64 < 32 { 95 } else { 10 }) {
                self.raise(cpu, index);
            }
            softirqs.signs.borrow_mut()[index].runs = None;
        }
    }

    fn begin_handler(&self, cpu: CpuId, index: usize, runner: Runner) {
        let softirqs = self.softirqs_of(cpu).expect("it runs some");
        let vector = RAISED[index];
        self.note(|| format!("{vector} of CPU {cpu} runs, by {runner:?}"));
        self.counts.borrow_mut().softirqs += 1;
        let mut signs = softirqs.signs.borrow_mut();
        let this = &mut signs[index];
        this.ran += 1;
        let what = if let Some(other) = this.runs {
            Some(format!("runs by {other:?} already"))
        } else if this.ran > this.news {
            Some(format!("was raised {} times and runs for the {}th time", this.news, this.ran))
        } else if runner == Runner::Ksoftirqd && !VectorSet::MOVABLE.contains(vector) {
            Some("has left its lane".to_owned())
        } else if self.is_child() {
            Some("runs in a child".to_owned())
        } else {
            this.told_at.and_then(|since| self.is_late(cpu, softirqs, since))
        };
        (this.runs, this.is_left, this.told_at) = (Some(runner), false, None);
        if let Some(what) = what {
            self.violate(format!("{vector} of CPU {cpu} {what}"));
        }
    }

    /// Why a run now comes too late for a raise at `since`: for long the lane and its ksoftirqd could have
    /// run it.
    fn is_late(&self, cpu: CpuId, softirqs: &VirtualSoftirqs, since: u64) -> Option<String> {
        let faults = &self.plan.faults;
        let callback = if faults.long_callbacks > 0 { LONG_CALLBACK } else { 0 };
        let span = usual(&self.plan)
            + 2 * (DONATION + MS * 2 + faults.longest_handler + callback + faults.longest_item)
            + faults.defer_limit
            + self.plan.tick;
        let now = self.host.moment();
        let runners = [self.drivers.borrow()[cpu.index()], softirqs.ksoftirqd.get()];
        let held = self.host.held_since(since);
        let kept: Vec<_> =
            held.iter().filter(|held| held.in_lock || runners.contains(&Some(held.thread))).collect();
        let begins = kept.iter().map(|held| held.until).filter(|until| *until > since);
        let from = std::iter::once(since).chain(begins).find(|begin| {
            begin + span < now && !kept.iter().any(|held| held.until > *begin && held.from < begin + span)
        })?;
        Some(format!("runs {} ns after its raise; it could have run from {from} on", now - since))
    }

    /// What is pending on a lane that sleeps, or that no thread drives, though no thread will look: asked
    /// when all threads wait.
    pub(super) fn is_softirq_forgotten(&self) -> Option<String> {
        self.softirqs.iter().enumerate().find_map(|(number, softirqs)| {
            let cpu = CpuId::new(number as u64).expect("few");
            let slot = self.lanes.slot(cpu).expect("it is a lane's");
            let lane = &slot.world.parker;
            // It found something before it slept, and its wait is over at once.
            let comes = self.comes_at(slot);
            let is_about = lane.doorbell.get() && comes.is_some_and(|comes| comes <= self.host.moment());
            let pending = match (lane.is_waiting() && !is_about, lane.is_vacant()) {
                (true, _) => self.claims(cpu).pending(),
                (_, true) => self.claims(cpu).pending().intersection(VectorSet::MOVABLE),
                // It is in user code, and looks when it comes back.
                _ => VectorSet::EMPTY,
            };
            let is_left = !pending.is_empty() && softirqs.bell.is_waiting();
            is_left.then(|| format!("{pending} of CPU {cpu} is pending, and all threads wait"))
        })
    }

    /// What was raised and is not seen by any run, at the end.
    pub(super) fn is_softirq_lost(&self) -> Option<String> {
        self.softirqs.iter().enumerate().find_map(|(cpu, softirqs)| {
            let signs = softirqs.signs.borrow();
            let lost = signs.iter().zip(RAISED).find(|(signs, _)| signs.is_left);
            lost.map(|(signs, vector)| format!("{vector} of CPU {cpu} was lost: {signs:?}"))
        })
    }
}
