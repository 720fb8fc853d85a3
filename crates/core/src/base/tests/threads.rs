//! Threads that arm, cancel, collect, run and take tokens away from each other, with a lock that spins.
//!
//! What is checked cannot depend on timing: a timer is never concurrent with itself, and in the end every
//! pending period has ended in exactly one way.

extern crate std;

use super::super::{Arm, Bases, Cancelled, ExpiredTimer, TimerName};
use super::locks::SpinLock;
use super::{BaseId, BaseKind, Context, CpuId, Nanos, TickLength, TimerId, TimerOptions, every_base};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const CPUS: u16 = 3;
const TIMERS: usize = 12;
const STEPS: u64 = if cfg!(miri) { 40 } else { 300_000 };

/// What happened to a timer, counted by the thread that did it.
#[derive(Debug, Default)]
struct Tally {
    is_running: AtomicBool,
    /// Arms that began a pending period, and what ended one.
    begun: AtomicU64,
    cancelled: AtomicU64,
    ran: AtomicU64,
}

struct World {
    bases: Bases<SpinLock, u32>,
    ids: Vec<TimerId>,
    tallies: Vec<Tally>,
    /// Nanoseconds; goes on with every step of any thread.
    clock: AtomicU64,
}

/// Numbers that look random (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

impl World {
    fn new() -> Self {
        let mut bases = Bases::new(CPUS, TickLength::new(Nanos(10)).expect("not zero"), Nanos(0));
        let options = |number: u32| {
            let options = TimerOptions::new();
            if Self::is_detached(number as usize) { options.detached() } else { options }
        };
        let ids = (0..TIMERS as u32).map(|number| bases.add_timer(options(number), number)).collect();
        let tallies = (0..TIMERS).map(|_| Tally::default()).collect();
        Self { bases, ids, tallies, clock: AtomicU64::new(0) }
    }

    /// A few of them may run again before their run has ended.
    fn is_detached(number: usize) -> bool {
        number % 4 == 3
    }

    fn context(&self, cpu: impl Into<Option<CpuId>>) -> Context {
        Context::by(cpu.into(), Nanos(self.clock.fetch_add(1, Ordering::Relaxed)))
    }

    fn arm(&self, number: usize, cpu: impl Into<Option<CpuId>>, dice: &mut Dice) {
        let kind = BaseKind::ALL[dice.roll(3) as usize];
        let onto = BaseId { cpu: CpuId(dice.roll(CPUS.into()) as u16), kind };
        let context = self.context(cpu);
        let expires = Nanos(context.now().0 + dice.roll(400));
        let timer = self.bases.timer(self.ids[number]).expect("in the store");
        let armed = match dice.roll(6) {
            0 => {
                let armed = self.bases.arm(timer, Arm::mod_pending(expires), onto, context);
                assert!(!armed.is_refused, "nobody shuts timers down");
                return;
            }
            1 => self.bases.arm(timer, Arm::reduce(expires), onto, context),
            2 => self.bases.arm(timer, expires, onto, context),
            _ => self.bases.arm_as_machines_do(timer, expires, onto, context),
        };
        assert!(!armed.is_refused, "nobody shuts timers down");
        self.tallies[number].begun.fetch_add(u64::from(!armed.was_pending), Ordering::Relaxed);
    }

    fn cancel(&self, number: usize, cpu: impl Into<Option<CpuId>>) {
        let timer = self.bases.timer(self.ids[number]).expect("in the store");
        if self.bases.cancel(timer, self.context(cpu)) == Cancelled::WasPending {
            self.tallies[number].cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A run: no other thread may be in one of the same timer, unless that is detached.
    fn run(&self, expired: &ExpiredTimer<u32>, cpu: CpuId, dice: &mut Dice) {
        let number = expired.payload() as usize;
        assert_eq!(expired.timer(), TimerName::Id(self.ids[number]));
        let tally = &self.tallies[number];
        let was_running = tally.is_running.swap(true, Ordering::Relaxed);
        assert_eq!(expired.is_detached(), Self::is_detached(number));
        assert!(!was_running || expired.is_detached(), "timer {number} is concurrent with itself");
        tally.ran.fetch_add(1, Ordering::Relaxed);
        match dice.roll(4) {
            0 => self.arm(number, cpu, dice),
            1 => self.arm(dice.roll(TIMERS as u64) as usize, cpu, dice),
            2 => thread::yield_now(),
            _ => {}
        }
        tally.is_running.store(false, Ordering::Relaxed);
    }

    /// Runs what is due in `id`, as long as the token lasts.
    fn turn(&self, id: BaseId, cpu: CpuId, dice: &mut Dice) {
        let Some(mut token) = self.bases.collect_and_take(id, cpu, self.context(cpu)) else { return };
        let mut next = self.bases.pop(&token, self.context(cpu)).expired;
        while let Some(mut expired) = next {
            self.run(&expired, cpu, dice);
            if dice.roll(2) == 0 {
                match self.bases.finish_and_pop(expired, &token, self.context(cpu)) {
                    Ok(popped) => {
                        next = popped.expired;
                        continue;
                    }
                    Err(back) => expired = back,
                }
            }
            if let Some(fresh) = self.bases.finish(expired, self.context(cpu)).token {
                token = fresh;
            }
            if dice.roll(8) == 0 {
                let _ = self.bases.release(token, self.context(cpu));
                return;
            }
            next = self.bases.pop(&token, self.context(cpu)).expired;
        }
    }

    fn live(&self, cpu: CpuId, can_transfer: bool) {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ u64::from(cpu.0 + 1));
        for _ in 0..STEPS {
            let other = CpuId(dice.roll(CPUS.into()) as u16);
            let id = BaseId { cpu: other, kind: BaseKind::ALL[dice.roll(3) as usize] };
            match dice.roll(20) {
                0..8 => self.arm(dice.roll(TIMERS as u64) as usize, cpu, &mut dice),
                8..10 => self.cancel(dice.roll(TIMERS as u64) as usize, cpu),
                10..17 => self.turn(id, cpu, &mut dice),
                17 => {
                    let _ = self.bases.lock(id, Some(cpu)).revoke();
                }
                18 if can_transfer && dice.roll(4) == 0 => self.hotplug(&mut dice),
                19 if other != CpuId(0) => {
                    let _ = self.bases.evacuate(other, CpuId(0), 5, self.context(cpu));
                }
                _ => {
                    let _ = self.bases.next_global(other);
                }
            }
        }
    }

    /// A thread of no CPU.
    fn visit(&self) {
        let mut dice = Dice(77);
        for _ in 0..STEPS {
            let number = dice.roll(TIMERS as u64) as usize;
            match dice.roll(3) {
                0 => self.cancel(number, None),
                _ => self.arm(number, None, &mut dice),
            }
        }
    }

    /// CPU 1 or 2 goes away and comes back. CPU 0 always stays, so that evacuation has somewhere to go.
    fn hotplug(&self, dice: &mut Dice) {
        let dead = CpuId(1 + dice.roll(2) as u16);
        let _ = self.bases.adopt(dead, CpuId(0), self.context(CpuId(0)));
        for _ in 0..dice.roll(20) {
            self.arm(dice.roll(TIMERS as u64) as usize, CpuId(0), dice);
        }
        self.bases.prepare(dead, self.context(CpuId(0)));
    }

    /// Ends what is left, and counts.
    fn settle(&self) {
        self.clock.fetch_add(1_000_000, Ordering::Relaxed);
        let mut dice = Dice(1);
        let is_pending = |id: &TimerId| self.bases.timer(*id).is_some_and(|timer| timer.is_pending());
        for _ in 0..1_000 {
            for id in every_base(CPUS) {
                let _ = self.bases.lock(id, None).revoke();
                self.turn(id, id.cpu, &mut dice);
            }
            self.clock.fetch_add(1_000, Ordering::Relaxed);
            // Callbacks arm again now and then.
            if !cfg!(miri) {
                self.bases.check();
            }
            if !self.ids.iter().any(is_pending) {
                break;
            }
        }
        for (number, tally) in self.tallies.iter().enumerate() {
            let [begun, cancelled, ran] =
                [&tally.begun, &tally.cancelled, &tally.ran].map(|count| count.load(Ordering::Relaxed));
            assert_eq!(begun, cancelled + ran, "timer {number}: {tally:?}");
            assert!(ran > 0 || cfg!(miri), "timer {number} never ran");
        }
        for id in every_base(CPUS) {
            let base = self.bases.lock(id, None);
            assert_eq!((base.pending(), base.running()), (0, 0), "{id}");
        }
    }
}

/// Goal: never concurrent with itself, never lost, never twice, whatever threads do at the same time
/// (interleavings I2, I3, I4). Method: a thread per CPU and a foreign one, in disorder; then everything is
/// counted.
#[test]
fn threads_agree_on_every_timer() {
    let world = World::new();
    thread::scope(|scope| {
        for cpu in 0..CPUS {
            let world = &world;
            scope.spawn(move || world.live(CpuId(cpu), cpu == 0));
        }
        scope.spawn(|| world.visit());
    });
    let begun: u64 = world.tallies.iter().map(|tally| tally.begun.load(Ordering::Relaxed)).sum();
    assert!(begun > STEPS / 8, "{begun} periods began");
    world.settle();
}
