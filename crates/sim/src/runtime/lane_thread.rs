//! The thread at a CPU: turns, waits, blocks, leaves its CPU and comes back.

use super::lane_signs::LaneWait;
use super::place::Place;
use super::world::{CLOCK, RuntimeWorld};
use quietcore_core::lane::{IdleUntil, Lane, LaneLook};
use quietcore_core::run_queue::Activity;
use quietcore_core::softirq::LaneSoftirqs;
use quietcore_core::{CpuId, Nanos, RawLock};

const MS: u64 = 1_000_000;

/// Items that one turn runs at most.
const ITEMS: u32 = 16;

/// Longest turn, in ns.
const TIME: Nanos = Nanos(2 * MS);

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
            assert!(slot.world.parker.claim(), "each CPU has one thread");
            let mut lane = if is_spare {
                Lane::spare(cpu, self.lanes.tick())
            } else {
                // Lanes that come at the same time wait for each other.
                self.host.be_busy(|| {
                    self.come_online(cpu);
                    self.signs[cpu.index()].is_driven.set(true);
                    self.open_claimed(cpu);
                });
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
                if state.lane.turn.has_more() || slot.world.parker.doorbell.get() {
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
            self.signs[cpu.index()].is_driven.set(false);
            self.is_doing(cpu);
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
            // Its timers are on another CPU now.
            let mut timers = self.timers.borrow_mut();
            timers.iter_mut().for_each(|timer| timer.leave(slot.cpu(), now.0));
        }
        self.lanes.handle_leave(&self.machine);
        slot.world.parker.release();
        let unsettled = self.queues().handle_leave(slot.cpu());
        self.control.unlock();
        self.settle(unsettled);
    }

    fn turn(&self, driver: &mut LaneThread<'_>) {
        let slot = driver.slot;
        let is_quiet = driver.lane.is_quiet(slot) && !slot.world.parker.doorbell.get();
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
        let queues = self.queues();
        let is_helping = driver.lane.take_must_help() && queues.must_help(slot.cpu(), driver.lane.role());
        if slot.world.parker.doorbell.get() || is_helping {
            self.run_items(driver, now);
        }
        self.arm_own(slot.cpu(), driver.looked);
    }

    fn run_items(&self, driver: &mut LaneThread<'_>, mut now: Nanos) {
        let (slot, started, role) = (driver.slot, now, driver.lane.role());
        let (mut ran, mut was_realtime) = (0, false);
        slot.world.parker.doorbell.set(false);
        while self.is_running() {
            self.run_softirqs(slot, &mut driver.softirqs, was_realtime);
            if self.is_child() {
                break;
            }
            self.signs[slot.cpu().index()].looked_at.set(self.host.moment());
            let next = self.queues().next_item(slot.cpu(), &slot.world.queue, role);
            let Some(next) = next else { break };
            was_realtime = next.activity != Activity::Normal;
            self.run_item(slot, next, role);
            if self.is_child() {
                break;
            }
            ran += 1;
            now = self.clock();
            self.machine.keep_alive(slot.cpu(), now);
            self.lives(slot.cpu(), now);
            now = self.run_timers(driver, now);
            if ran >= ITEMS || now.since(started) >= TIME {
                // There may be more.
                slot.world.parker.doorbell.set(true);
                break;
            }
        }
        if ran > 0 {
            driver.lane.handle_work(now);
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
            self.after_look(driver.slot.cpu(), look);
        }
        let must_turn = driver.lane.handle_turn(here, now);
        self.lives(driver.slot.cpu(), now);
        if must_turn {
            let cpu = driver.slot.cpu();
            let (ran, end) = self.take_turn(&mut driver.lane.turn, Some(cpu));
            driver.looked = end;
            if ran > 0 {
                self.is_doing(cpu);
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
            self.after_look(driver.slot.cpu(), look);
        }
    }

    /// The lane of `cpu` has looked around, and the core's actions were carried out.
    fn after_look(&self, cpu: CpuId, look: LaneLook) {
        self.counts.borrow_mut().marks += u64::from(look.marked);
        self.queues().handle_look(cpu, look);
    }

    fn park(&self, driver: &mut LaneThread<'_>) {
        let (now, here, place) = (self.clock(), self.here(driver.slot), &driver.slot.world.parker);
        if self.is_child() {
            return;
        }
        let has_more = || place.doorbell.get() || self.is_over.get();
        let until: IdleUntil = self.act(|actions| driver.lane.handle_idle(here, now, has_more, actions));
        self.note(|| format!("waits: {until:?}"));
        self.is_idle(driver.slot);
        let signs = &self.signs[driver.slot.cpu().index()];
        let (since, until) = (Nanos(self.host.moment()), until.until());
        signs.waits.set(Some(LaneWait { since, until }));
        place.sleep(until);
        signs.waits.set(None);
        self.note(|| "is up".to_owned());
        // A program that waits for other things, too, may do something here.
        self.may_fork(10);
        let now = self.clock();
        self.exit_idle(driver, now);
    }

    fn block(&self, driver: &mut LaneThread<'_>) {
        if !self.is_running() {
            return;
        }
        let signs = &self.signs[driver.slot.cpu().index()];
        let (now, here) = (self.clock(), self.here(driver.slot));
        signs.blocks.set(true);
        self.note(|| "blocks".to_owned());
        self.is_doing(driver.slot.cpu());
        let look = self.act(|actions| driver.lane.handle_block(here, now, actions));
        self.after_look(driver.slot.cpu(), look);
        self.queues().handle_absence(driver.slot.cpu());
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
