//! Lanes that a test drives itself, on clocks that stand still: no thread looks after them.

mod isolation;
mod items;
mod looks;
mod marks;
mod softirqs;
mod threads;
mod ticks;
mod turns;
mod waits;

use super::WaitBy;
use crate::{Cpu, CpuId, CpuSet, Machine, MachineBuilder, Nanos, Precision, TimerHandle, TimerOptions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

const TICK: u64 = 1_000_000;

fn cpu(index: u64) -> CpuId {
    CpuId::new(index).expect("a small number")
}

fn list(text: &str) -> CpuSet {
    text.parse().expect("a list")
}

/// Lanes 0 and 1, which no thread finds stuck.
fn quiet() -> MachineBuilder {
    Machine::builder().lanes(list("0-1")).stall_after(Duration::MAX).tick(Duration::from_nanos(TICK))
}

/// A machine whose clock stands at the beginning of a tick.
fn still(builder: MachineBuilder) -> &'static Machine {
    let machine = builder.start().expect("it starts");
    machine.clock.freeze(Nanos((machine.now().0 / TICK + 1) * TICK));
    machine
}

/// Moves a clock that stands.
fn pass(machine: &Machine, span: u64) -> Nanos {
    let now = Nanos(machine.now().0 + span);
    machine.clock.freeze(now);
    now
}

fn claim(machine: &'static Machine, index: u64) -> Cpu {
    Cpu::claim(machine, cpu(index)).expect("a free lane")
}

fn wait_for<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(PATIENCE).expect("it comes")
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not in {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// `number` timers that are due at once on the lane `index`, and how many of them have run.
fn many(machine: &'static Machine, index: u64, number: usize) -> (Vec<TimerHandle>, Arc<AtomicU64>) {
    let ran = Arc::new(AtomicU64::new(0));
    let options = TimerOptions::new().pinned().precision(Precision::Exact);
    let arm = |_| {
        let counts = Arc::clone(&ran);
        let timer = machine.timer(options, move |_| _ = counts.fetch_add(1, Ordering::Relaxed));
        timer.arm_on(cpu(index), machine.now()).expect("it has a lane");
        timer
    };
    ((0..number).map(arm).collect(), ran)
}

type Act = Box<dyn FnOnce(&mut Cpu) + Send>;

/// A lane on a thread of its own, which does what it is told, and else nothing.
struct Other {
    acts: Sender<Act>,
    thread: JoinHandle<()>,
}

impl Other {
    fn claim(machine: &'static Machine, index: u64) -> Self {
        Self::claim_with(machine, index, WaitBy::Park)
    }

    fn claim_with(machine: &'static Machine, index: u64, waits: WaitBy) -> Self {
        let (acts, told) = channel::<Act>();
        let drive = move || {
            let mut lane = Cpu::claim_with(machine, cpu(index), waits).expect("a free lane");
            told.iter().for_each(|act| act(&mut lane));
        };
        let other = Self { acts, thread: thread::spawn(drive) };
        other.act(|_| ());
        other
    }

    /// Lets it begin something.
    fn begin<R: Send + 'static>(&self, act: impl FnOnce(&mut Cpu) -> R + Send + 'static) -> Receiver<R> {
        let (sender, done) = channel();
        // A test that has failed listens no more.
        let act: Act = Box::new(move |lane| _ = sender.send(act(lane)));
        self.acts.send(act).expect("it listens");
        done
    }

    /// Lets it do something.
    fn act<R: Send + 'static>(&self, act: impl FnOnce(&mut Cpu) -> R + Send + 'static) -> R {
        wait_for(&self.begin(act))
    }

    /// It gives its CPU back.
    fn leave(self) {
        drop(self.acts);
        self.thread.join().expect("no panic");
    }
}

/// What happened, in order.
type Log = Arc<Mutex<Vec<u64>>>;

fn note(log: &Log, number: u64) {
    log.lock().expect("no panic").push(number);
}

fn noted(log: &Log) -> Vec<u64> {
    log.lock().expect("no panic").clone()
}
