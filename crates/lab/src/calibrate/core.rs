//! What the core itself costs, on one thread.
//!
//! The lock of a world with one thread costs nothing, so an uncontended one is timed apart and added where a
//! lock is taken.

use super::repeats::{Now, REPEATS, SetCost, per_item, summary};
use super::sync::refused_wait;
use quietcore_core::tmigr::Hierarchy;
use quietcore_core::topology::Topology;
use quietcore_core::{
    Actions, Context, CpuId, Machine, Nanos, SequentialLock, Settings, TimerId, TimerOptions, Turn,
};
use quietcore_qdisc::{Dequeued, Netem, NetemDelay, NetemSettings, Packet, Qdisc};
use quietcore_sim::Cost;
use std::hint::black_box;
use std::sync::Mutex;

/// Timers of one repeat.
const TIMERS: u64 = 2_000;
/// Packets that a netem holds meanwhile.
const QUEUED: u64 = 10_000;
/// The tick of the default settings.
const TICK: u64 = 1_000_000;

/// ns per item of what `work` does with `items` of them.
fn timed(now: Now<'_>, items: u64, work: impl FnOnce()) -> f64 {
    let began = now();
    work();
    per_item(now() - began, items)
}

/// Adds an uncontended lock to each repeat.
type WithLock<'a> = &'a dyn Fn(Vec<f64>) -> Vec<f64>;

fn repeated(mut once: impl FnMut() -> f64) -> Vec<f64> {
    once(); // not counted: caches and frequency settle
    (0..REPEATS).map(|_| once()).collect()
}

/// A CPU on its own, with its timers.
struct LoneCpu {
    machine: Machine<SequentialLock, u32>,
    actions: Actions,
    timers: Vec<TimerId>,
    cpu: CpuId,
    now: u64,
}

impl LoneCpu {
    fn new() -> Self {
        let topology = Topology::builder(1).build().expect("a machine with one CPU");
        let mut machine = Machine::new(topology, Settings::default()).expect("nothing is isolated");
        let (mut actions, cpu) = (Actions::new(1), CpuId::default());
        machine.online(cpu, Nanos(0), &mut actions).expect("it was offline");
        let timers =
            (0..TIMERS).map(|number| machine.add_timer(TimerOptions::new(), number as u32)).collect();
        Self { machine, actions, timers, cpu, now: 0 }
    }

    /// All timers, spread over the next `spread` ticks.
    fn arm_all(&mut self, spread: u64) {
        let context = Context::on(self.cpu, Nanos(self.now));
        for (number, timer) in self.timers.iter().enumerate() {
            let expires = self.now + TICK + (number as u64 * 7919 % spread) * TICK;
            let armed = self.machine.arm(*timer, Nanos(expires), context, &mut self.actions);
            black_box(armed.is_ok());
        }
    }

    /// Cancels all timers; says how many were armed.
    fn cancel_all(&mut self) -> u64 {
        let context = Context::on(self.cpu, Nanos(self.now));
        self.timers.iter().map(|timer| u64::from(self.machine.cancel(*timer, context) == Ok(true))).sum()
    }
}

pub(crate) fn measure(now: Now<'_>, set: SetCost<'_>) {
    let lock = lock(now);
    let middle = summary(&lock).map_or(0.0, |(ns, _)| ns);
    let locked = |repeats: Vec<f64>| repeats.into_iter().map(|ns| ns + middle).collect::<Vec<f64>>();
    let mut bench = LoneCpu::new();
    let (mut arms, mut cancels) = (Vec::new(), Vec::new());
    for _ in 0..=REPEATS {
        arms.push(timed(now, TIMERS, || bench.arm_all(1_000)));
        cancels.push(timed(now, TIMERS, || {
            black_box(bench.cancel_all());
        }));
        bench.now += 3 * TICK;
    }
    // The first of each only warmed up.
    set(Cost::Arm, &locked(arms.split_off(1)), "Machine::arm and an uncontended mutex");
    set(Cost::Cancel, &locked(cancels.split_off(1)), "Machine::cancel and an uncontended mutex");
    expiries(&mut bench, now, &locked, set);
    packets(now, &locked, set);
    set(
        Cost::Walk,
        &repeated(|| walk(now)),
        "a level of Hierarchy::deactivate and activate, up a tree of 64 idle CPUs",
    );
    set(
        Cost::IdleEntry,
        &repeated(|| idle_entry(now)),
        "Machine::forecast_idle, enter_idle, exit_idle, and a futex wait that is refused",
    );
}

/// An uncontended lock and unlock.
fn lock(now: Now<'_>) -> Vec<f64> {
    let mutex = Mutex::new(0_u64);
    repeated(|| {
        timed(now, TIMERS, || {
            for _ in 0..TIMERS {
                if let Ok(mut held) = black_box(&mutex).lock() {
                    *held += 1;
                }
            }
        })
    })
}

fn expiries(bench: &mut LoneCpu, now: Now<'_>, locked: WithLock<'_>, set: SetCost<'_>) {
    let callback: Box<dyn Fn(u32) -> u32> = Box::new(|payload| payload.wrapping_mul(3));
    let (mut collects, mut dispatches) = (Vec::new(), Vec::new());
    for _ in 0..=REPEATS {
        bench.arm_all(8);
        bench.now += 12 * TICK;
        let mut ran = 0;
        let mut turn = Turn::new(bench.cpu);
        let (mut collecting, mut running) = (0, 0);
        while ran < TIMERS {
            let began = now();
            bench.machine.begin_turn(&mut turn, Nanos(bench.now));
            let collected = now();
            collecting += collected - began;
            while let Some(expired) =
                bench.machine.next_expired(&mut turn, Nanos(bench.now), &mut bench.actions)
            {
                black_box(black_box(&callback)(expired.payload()));
                bench.machine.finish(&mut turn, expired, Nanos(bench.now), &mut bench.actions);
                ran += 1;
            }
            running += now() - collected;
            bench.now += TICK;
        }
        collects.push(per_item(collecting, ran));
        dispatches.push(per_item(running, ran));
    }
    set(
        Cost::Collect,
        &locked(collects.split_off(1)),
        "Machine::begin_turn per timer, and an uncontended mutex",
    );
    set(Cost::Dispatch, &dispatches.split_off(1), "Machine::next_expired, an empty callback, finish");
}

/// A packet that is no bytes.
#[derive(Debug)]
struct Frame;

impl Packet for Frame {
    fn len(&self) -> u32 {
        66
    }
}

/// Packets through a netem that holds [`QUEUED`] of them.
fn packets(now: Now<'_>, locked: WithLock<'_>, set: SetCost<'_>) {
    let delay = NetemDelay { latency: Nanos(10_000_000), ..NetemDelay::default() };
    let settings = NetemSettings { delay, limit: u32::MAX, ..NetemSettings::default() };
    let Ok(mut netem) = Netem::new(settings, (|| 0) as fn() -> u32, Nanos(0)) else { return };
    let apart = 10_000_000 / QUEUED;
    let mut arrived = 0;
    let mut enqueue = |netem: &mut Netem<Frame, fn() -> u32>, count: u64| {
        for _ in 0..count {
            arrived += apart;
            black_box(netem.enqueue(Nanos(arrived), Frame).is_accepted());
        }
        arrived
    };
    let mut left = enqueue(&mut netem, QUEUED);
    let (mut enqueues, mut dequeues) = (Vec::new(), Vec::new());
    for _ in 0..=REPEATS {
        enqueues.push(timed(now, TIMERS, || left = enqueue(&mut netem, TIMERS)));
        dequeues.push(timed(now, TIMERS, || {
            // The last look finds that the next has to wait.
            while let Dequeued::Packet(frame) = netem.dequeue(Nanos(left)) {
                black_box(frame);
            }
        }));
    }
    set(
        Cost::PacketEnqueue,
        &locked(enqueues.split_off(1)),
        "Netem::enqueue among 10,000 packets, and an uncontended mutex",
    );
    set(
        Cost::PacketDequeue,
        &locked(dequeues.split_off(1)),
        "Netem::dequeue among 10,000 packets, and an uncontended mutex",
    );
}

/// One level: a tree of 64 CPUs has two, and the only CPU that is awake changes both.
fn walk(now: Now<'_>) -> f64 {
    let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0; 64]);
    let cpus: Vec<CpuId> = (0..64).filter_map(|cpu| CpuId::new(cpu).ok()).collect();
    for cpu in &cpus {
        hierarchy.connect(*cpu);
        hierarchy.set_available(*cpu, None);
    }
    for cpu in &cpus[1..] {
        let _ = hierarchy.deactivate(*cpu, Some(Nanos(900)));
    }
    timed(now, TIMERS * 4, || {
        for round in 0..TIMERS {
            let _ = black_box(hierarchy.deactivate(cpus[0], Some(Nanos(500 + round % 2))));
            hierarchy.activate(cpus[0]);
        }
    })
}

fn idle_entry(now: Now<'_>) -> f64 {
    let bench = LoneCpu::new();
    timed(now, TIMERS, || {
        for _ in 0..TIMERS {
            let _ = black_box(bench.machine.forecast_idle(bench.cpu, Nanos(0)));
            let _ = black_box(bench.machine.enter_idle(bench.cpu, Nanos(0)));
            refused_wait();
            bench.machine.exit_idle(bench.cpu, Nanos(0));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{LoneCpu, REPEATS, TIMERS, measure};
    use crate::calibrate::repeats::summary;
    use std::cell::Cell;

    /// Goal: each cost is the time of its own work by how much of it there was, an uncontended lock is in
    /// those that take one, and warming up is not counted. Method: a clock whose readings are 0, 1, 4, 9, 16
    /// us and so on, so that every piece of work takes another time. The 15 locks that count take 5, 9 ... 61
    /// us, so one is 33 us by 2000; the arms take 73, 81 ... 185 us, the cancels 4 us more each.
    #[test]
    fn every_cost_is_of_its_own_work() {
        thread_local! { static COUNT: Cell<u64> = const { Cell::new(0) } }
        let now = || COUNT.replace(COUNT.get() + 1).pow(2) * 1_000;
        let mut lines = Vec::new();
        measure(&now, &mut |cost, repeats, what| {
            assert_eq!(repeats.len(), REPEATS, "{}", cost.name());
            let (ns, spread) = summary(repeats).expect("it has repeats");
            lines.push(format!(
                "{:<14} {:>7.1} {:>7.1} {ns:>7.1}  {what}",
                cost.name(),
                spread[0],
                spread[1]
            ));
        });
        insta::assert_snapshot!("core-costs", lines.join("\n"));
    }

    /// Goal: what is timed is what is done: all timers are armed, and cancelled.
    #[test]
    fn all_timers_are_armed_and_cancelled() {
        let mut bench = LoneCpu::new();
        bench.arm_all(8);
        assert_eq!([bench.cancel_all(), bench.cancel_all()], [TIMERS, 0]);
    }
}
