//! A machine whose time stands still, and wakers that count.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use quietcore_live::time::{Duration, Instant};
use quietcore_live::{EnterGuard, Machine, metrics::Metrics};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::sync::{Arc, Mutex};
use std::task::Wake;

pub(crate) const MILLI: Duration = Duration::from_millis(1);
pub(crate) const MICRO: Duration = Duration::from_micros(1);
pub(crate) const NANO: Duration = Duration::from_nanos(1);

/// A machine in paused time that is current on this thread. Its clock shows an edge of a tick.
pub(crate) struct Stopped {
    pub(crate) machine: &'static Machine,
    _entered: EnterGuard,
}

impl Stopped {
    pub(crate) fn new() -> Self {
        let machine = Machine::builder().virtual_time().start().expect("threads and timers can be had");
        machine.pause().expect("time was running");
        Self { machine, _entered: machine.enter() }
    }

    pub(crate) fn advance(&self, duration: Duration) {
        self.machine.advance(duration).expect("time stands still");
    }

    /// Moves the clock to `moment`, in one jump.
    pub(crate) fn advance_to(&self, moment: Instant) {
        self.advance(moment - Instant::now());
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.machine.shutdown();
    }
}

/// Asserts that each time a timer was pending ended in one way, and that none is pending now.
pub(crate) fn check_books(machine: &Machine) {
    let metrics: Metrics = machine.metrics();
    let armed = metrics.sum(|cpu| cpu.bases.armed);
    let ended = metrics
        .sum(|cpu| cpu.bases.superseded + cpu.bases.cancelled + cpu.bases.ran_here + cpu.bases.ran_elsewhere);
    assert_eq!(armed, ended, "each arm ends once: {:?}", metrics.cpus);
}

/// Counts how often it was woken.
#[derive(Default)]
pub(crate) struct Woken(Mutex<u32>);

impl Woken {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let woken = Arc::new(Self::default());
        (woken.clone(), woken.into())
    }

    pub(crate) fn count(&self) -> u32 {
        *self.0.lock().expect("no panic")
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *self.0.lock().expect("no panic") += 1;
    }
}

pub(crate) fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// The same numbers for the same seed.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }
}
