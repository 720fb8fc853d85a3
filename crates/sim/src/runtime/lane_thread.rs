//! The thread at a CPU: turns, waits, blocks, leaves its CPU and comes back.

use super::place::Place;
use super::world::{CLOCK, RuntimeWorld};
use quietcore_core::lane::{IdleUntil, Lane};
use quietcore_core::softirq::LaneSoftirqs;
use quietcore_core::{CpuId, Nanos, RawLock};

const MS: u64 = 1_000_000;

/// Items that one turn runs at most.
const ITEMS: u32 = 16;

/// A thread at its CPU.
struct LaneThread<'a> {
    lane: &'a mut Lane,
    slot: &'a Place,
    softirqs: LaneSoftirqs,
    /// Its last look at the clock, for arms.
    looked: Nanos,
}

impl RuntimeWorld {
    /// Drives `cpu` until the end.
    pub(super) fn drive(&self, cpu: CpuId, is_spare: bool) {
        let slot = self.lanes.slot(cpu).expect("it was made for this thread");
        while self.is_running() {
            assert!(slot.world.claim(), "each CPU has one thread");
            let mut lane = if is_spare {
                Lane::spare(cpu, self.lanes.tick())
            } else {
                self.come_online(cpu);
                Lane::new(cpu, self.lanes.tick())
            };
            let leaves_at = match self.plan.faults.hotplug_every {
                0 => u64::MAX,
                every => self.host.moment() + every / 2 + self.host.random(every),
            };
            let mut state = LaneThread {
                lane: &mut lane,
                slot,
                softirqs: LaneSoftirqs::new(Nanos(self.plan.faults.defer_limit)),
                looked: Nanos(0),
            };
            while self.is_running() {
                self.turn(&mut state);
                if state.lane.turn.has_more() || slot.world.doorbell.get() {
                    continue;
                }
                if !is_spare && !self.drains.get() && self.host.moment() >= leaves_at {
                    break;
                }
                if !is_spare && !self.drains.get() && self.chance(self.plan.faults.blocks) {
                    self.block(&mut state);
                    continue;
                }
                self.park(&mut state);
            }
            if self.is_child() {
                return self.go_on_in_child(&mut state);
            }
            lane.refuse_kicks(slot);
            self.go_offline(&mut lane, slot);
            if !self.is_over.get() {
                self.host.hold(self.host.moment() + self.host.random(5 * MS));
            }
        }
    }

    /// A program may go on with its loop in a child: its lane does nothing any more.
    fn go_on_in_child(&self, driver: &mut LaneThread<'_>) {
        for _ in 0..3 {
            self.turn(driver);
            self.park(driver);
        }
    }

    fn come_online(&self, cpu: CpuId) {
        self.control.lock_remote();
        let now = self.clock();
        if !self.machine.online_cpus().contains(cpu) {
            let online = self.act(|actions| self.machine.online(cpu, now, actions));
            online.expect("it is offline, and a spare keeps house");
        }
        self.act(|actions| self.lanes.handle_claim(&self.machine, cpu, now, actions));
        self.note(|| "is online".to_owned());
        self.control.unlock();
    }

    fn go_offline(&self, lane: &mut Lane, slot: &Place) {
        self.control.lock_remote();
        let now = self.clock();
        let offline = self.act(|actions| {
            self.machine.abandon_turn(&mut lane.turn, now, actions);
            self.machine.offline(slot.cpu(), now, actions)
        });
        self.note(|| format!("CPU {} goes offline: {offline:?}", slot.cpu()));
        if offline.is_ok() {
            // Its pinned timers are on another CPU now.
            for timer in self.timers.borrow_mut().iter_mut().filter(|timer| timer.cpu == Some(slot.cpu())) {
                timer.cpu = None;
            }
        }
        self.lanes.handle_leave(&self.machine, slot.cpu());
        slot.world.release();
        self.control.unlock();
        // It stays, and does what is left.
        self.ask_ksoftirqd(slot.cpu());
    }

    fn turn(&self, driver: &mut LaneThread<'_>) {
        let slot = driver.slot;
        let is_quiet = driver.lane.is_quiet(slot) && !slot.world.doorbell.get();
        if is_quiet && !self.machine.handle_tick(slot.cpu(), Nanos(u64::MAX)) {
            self.host.step(CLOCK);
            return;
        }
        if self.is_child() {
            return;
        }
        let now = self.clock();
        self.exit_idle(driver, now);
        let now = self.run_timers(driver, now);
        if slot.world.doorbell.replace(false) {
            self.run_items(driver, now);
        }
        let _ = driver.lane.take_must_help();
        self.arm_own(slot.cpu(), driver.looked);
    }

    fn run_items(&self, driver: &mut LaneThread<'_>, mut now: Nanos) {
        let slot = driver.slot;
        let (mut ran, mut was_realtime) = (0, false);
        while self.is_running() && ran < ITEMS {
            self.run_softirqs(slot, &mut driver.softirqs, was_realtime);
            if self.is_child() {
                break;
            }
            let Some(item) = slot.world.next_item() else { break };
            was_realtime = item.is_realtime;
            self.host.compute(item.takes);
            ran += 1;
            self.may_fork(50);
            if self.is_child() {
                break;
            }
            now = self.clock();
            self.machine.keep_alive(slot.cpu(), now);
            self.lives(slot.cpu(), now);
            now = self.run_timers(driver, now);
        }
        if ran > 0 {
            driver.lane.handle_work(now);
            let is_left = !slot.world.items.borrow().is_empty();
            slot.world.doorbell.set(is_left || slot.world.doorbell.get());
        }
    }

    fn run_timers(&self, driver: &mut LaneThread<'_>, now: Nanos) -> Nanos {
        driver.looked = now;
        let here = self.here(driver.slot);
        if driver.lane.is_marked(here) {
            self.note(|| "returns from a mark".to_owned());
            self.act(|actions| driver.lane.handle_return(here, now, actions));
        }
        if driver.lane.is_tick_over(now) {
            let look = self.act(|actions| driver.lane.handle_tick(here, now, actions));
            self.counts.borrow_mut().marks += u64::from(look.marked);
        }
        let must_turn = driver.lane.handle_turn(here, now);
        self.lives(driver.slot.cpu(), now);
        if must_turn {
            let cpu = driver.slot.cpu();
            let (ran, end) = self.take_turn(&mut driver.lane.turn, Some(cpu));
            driver.looked = end;
            if ran > 0 {
                driver.lane.handle_work(end);
            }
            return end;
        }
        now
    }

    fn exit_idle(&self, driver: &mut LaneThread<'_>, now: Nanos) {
        if !driver.lane.is_awake() {
            if self.is_child() {
                return driver.lane.abandon();
            }
            let here = self.here(driver.slot);
            let look = self.act(|actions| driver.lane.handle_wake(here, now, actions));
            self.lives(driver.slot.cpu(), now);
            self.counts.borrow_mut().marks += u64::from(look.marked);
        }
    }

    fn park(&self, driver: &mut LaneThread<'_>) {
        let (now, here, place) = (self.clock(), self.here(driver.slot), &driver.slot.world);
        if self.is_child() {
            return;
        }
        let has_more = || place.doorbell.get() || self.is_over.get();
        let until: IdleUntil = self.act(|actions| driver.lane.handle_idle(here, now, has_more, actions));
        self.note(|| format!("waits: {until:?}"));
        place.sleep(until.until());
        self.note(|| "is up".to_owned());
        // A program that waits for other things, too, may do something here.
        self.may_fork(10);
        let now = self.clock();
        self.exit_idle(driver, now);
    }

    fn block(&self, driver: &mut LaneThread<'_>) {
        let signs = &self.signs[driver.slot.cpu().index()];
        let (now, here) = (self.clock(), self.here(driver.slot));
        signs.blocks.set(true);
        self.note(|| "blocks".to_owned());
        let _ = self.act(|actions| driver.lane.handle_block(here, now, actions));
        let span = self.host.random(self.plan.faults.longest_block);
        self.host.hold(self.host.moment() + span);
        self.may_fork(90);
        if self.is_child() {
            return;
        }
        let now = self.clock();
        self.note(|| "returns from a block".to_owned());
        self.act(|actions| driver.lane.handle_return(here, now, actions));
        signs.blocks.set(self.machine.is_marked(driver.slot.cpu()));
    }
}
