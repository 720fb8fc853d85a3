//! What an isolated lane that never rests asks of its own bases, by rule.

use crate::scene::{builder, cpu, wait_for};
use quietcore_live::{
    Cpu, Machine, Nanos, Precision, TimerOptions, isolation::TimerRaise, metrics::CpuMetrics,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A machine whose lane 1 is isolated and turns all the time, until it is told to end.
struct Busy {
    machine: &'static Machine,
    is_over: Arc<AtomicBool>,
    lane: JoinHandle<()>,
}

impl Busy {
    fn start(when: TimerRaise) -> Self {
        let builder = builder().timer_raise(when).isolated("1".parse().expect("a list"));
        let machine = builder.start().expect("starts");
        let is_over = Arc::new(AtomicBool::new(false));
        let (until, (sender, turns)) = (Arc::clone(&is_over), channel());
        let lane = thread::spawn(move || {
            let mut lane = Cpu::claim(machine, cpu(1)).expect("a free lane");
            lane.turn();
            sender.send(()).expect("the test waits");
            while !until.load(Ordering::Relaxed) {
                lane.turn();
            }
        });
        wait_for(&turns);
        Self { machine, is_over, lane }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.lane.join().expect("no panic");
        self.machine.shutdown();
    }
}

/// Goal: no arm from elsewhere is missed, and none runs early, by any rule. Method: pinned timers for moments
/// just before, at and after the edges of ticks, one after the other, from another thread.
#[test]
fn remote_arms_across_tick_edges() {
    for when in TimerRaise::ALL {
        let busy = Busy::start(when);
        let (sender, ran) = channel();
        let options = TimerOptions::new().pinned().precision(Precision::Tick);
        let timer = busy.machine.timer(options, move |run| {
            sender.send((run.cpu(), run.scheduled(), run.now())).expect("it waits");
        });
        for number in 0..300_u64 {
            let edge = (busy.machine.now().0 / 1_000_000 + 1) * 1_000_000;
            let at = Nanos(edge + number % 7 * 300 - 900);
            timer.arm_on(cpu(1), at).expect("it has a lane");
            let (ran_on, scheduled, now) = wait_for(&ran);
            assert_eq!(ran_on, cpu(1));
            assert!(now >= scheduled && now >= at, "{when:?}: {number} early");
        }
        busy.end();
    }
}

/// A machine whose lane 1 is isolated; the test's own thread drives it, so that what a turn sees is certain.
struct Own {
    machine: &'static Machine,
    lane: Cpu,
}

impl Own {
    fn start(when: TimerRaise) -> Self {
        let builder = builder().timer_raise(when).isolated("1".parse().expect("a list"));
        let machine = builder.start().expect("starts");
        let mut lane = Cpu::claim(machine, cpu(1)).expect("a free lane");
        lane.turn();
        Self { machine, lane }
    }

    fn tick(&self) -> u64 {
        self.machine.now().0 / 1_000_000
    }

    fn metrics(&self) -> CpuMetrics {
        let mut cpus = self.machine.metrics().cpus.into_iter();
        cpus.find(|metrics| metrics.cpu == cpu(1)).expect("it is there")
    }

    /// Waits for the next tick, and then turns all the time for `count` ticks.
    fn ticks(&mut self, count: u64) -> Ticks {
        let (before, last) = (self.metrics(), self.tick());
        while self.tick() == last {}
        let end = self.tick() + count;
        let (mut certain, mut possible) = (BTreeSet::new(), BTreeSet::new());
        loop {
            let first = self.tick();
            if first >= end {
                break;
            }
            self.lane.turn();
            let last = self.tick();
            possible.extend(first..=last);
            certain.extend((first == last).then_some(first));
        }
        let after = self.metrics();
        let raises = after.timer_raises - before.timer_raises;
        assert_eq!(raises, after.empty_raises - before.empty_raises, "there was nothing to run");
        Ticks { raises, certain: certain.len() as u64, possible: possible.len() as u64 }
    }
}

/// What a lane's turns came to.
#[derive(Debug)]
struct Ticks {
    raises: u64,
    /// Ticks in which a turn began and ended.
    certain: u64,
    /// Ticks that a turn may have seen: this thread may be off its CPU for longer than one.
    possible: u64,
}

impl Ticks {
    /// One raise in each tick that a turn saw.
    fn are_raised(&self) -> bool {
        self.certain > 0 && (self.certain..=self.possible).contains(&self.raises)
    }
}

/// Goal: how often TIMER is raised for nothing: by the old rule in every tick; by the bitmap in every tick
/// while any timer waits, and never while none does; by the next expiry never. Method: nothing armed, then
/// one timer that is far away, armed by another thread; the lane's turns are the test's own.
#[test]
fn raises_for_nothing() {
    for when in TimerRaise::ALL {
        let mut own = Own::start(when);
        own.ticks(1);
        let idle = own.ticks(20);
        let far = own.machine.timer(TimerOptions::new().pinned(), |_| unreachable!("it is far away"));
        let at = Nanos(own.machine.now().0 + 100_000_000_000);
        thread::scope(|scope| scope.spawn(|| far.arm_on(cpu(1), at).expect("it has a lane")).join())
            .expect("no panic");
        own.ticks(1);
        let armed = own.ticks(20);
        let holds = match when {
            TimerRaise::Unconditional => idle.are_raised() && armed.are_raised(),
            TimerRaise::Bitmap => idle.raises == 0 && armed.are_raised(),
            TimerRaise::NextExpiry => idle.raises == 0 && armed.raises == 0,
        };
        assert!(holds, "{when:?}: {idle:?}, with a timer {armed:?}");
        drop(own.lane);
        own.machine.shutdown();
    }
}

/// Goal: by the bitmap's rule only an arm from elsewhere calls an isolated lane; it does not call itself.
/// Method: a tick that does not end meanwhile; the lane arms a timer that is far away, and turns.
#[test]
fn an_isolated_lane_does_not_call_itself() {
    let builder = builder().timer_raise(TimerRaise::Bitmap).isolated("1".parse().expect("a list"));
    let machine = builder.tick(Duration::from_secs(3600)).start().expect("starts");
    let mut own = Own { machine, lane: Cpu::claim(machine, cpu(1)).expect("a free lane") };
    own.lane.turn();
    let before = own.metrics().timer_raises;
    let far = machine.timer(TimerOptions::new().pinned(), |_| unreachable!("it is far away"));
    let _ = far.arm_at(Nanos(machine.now().0 + 100_000_000_000_000)).expect("it runs");
    own.lane.turn();
    assert_eq!(own.metrics().timer_raises, before, "it has called itself");
    drop(own);
    machine.shutdown();
}
