//! A transmit queue: what it holds, what is on its way back to its sender, and whether a CPU runs it.

use crate::engine::{SimRandom, interval};
use crate::scenario::{Arrivals, TransmitQueue};
use quietcore_core::Nanos;
use quietcore_qdisc::{Netem, Packet, TxQueue};
use std::collections::VecDeque;

/// A packet counts as so many bytes: an acknowledgement with a time stamp, in Ethernet.
const BYTES: u32 = 66;

/// A packet: when it may leave, if that is known beforehand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimFrame {
    pub(crate) due: Option<u64>,
}

impl Packet for SimFrame {
    fn len(&self) -> u32 {
        BYTES
    }
}

type Draws = Box<dyn FnMut() -> u32 + Send>;

/// A transmit queue with its discipline and its watchdog.
#[derive(Debug)]
pub(crate) struct SimQueue {
    pub(crate) load: TransmitQueue,
    pub(crate) home: u16,
    pub(crate) tx: TxQueue<SimFrame>,
    /// The number of its timer.
    pub(crate) watchdog: u32,
    /// Its sender, if that is a task.
    pub(crate) task: Option<u32>,
    /// That task runs it.
    pub(crate) is_run_by_task: bool,
    /// When frames arrive, or there is room for a packet, in this order.
    pub(crate) wire: VecDeque<u64>,
    /// An interrupt for them is ahead.
    pub(crate) is_expected: bool,
    /// A handler or task takes them in, or is about to.
    pub(crate) is_polled: bool,
    /// Taken in, and not sent yet.
    pub(crate) in_hand: u64,
    /// Packets that were dropped and will be sent again.
    pub(crate) missed: u64,
    /// All that there were, and those that left for good.
    born: u64,
    gone: u64,
    random: SimRandom,
    next_birth: u64,
}

impl SimQueue {
    /// The queue of `load` at time 0; a window's packets are spread over the time that they are delayed for.
    pub(crate) fn new(load: TransmitQueue, seed: u64, number: u16, watchdog: u32) -> Self {
        let mut draws = SimRandom::new(seed, (1 << 33) + u64::from(number));
        let draws: Draws = Box::new(move || draws.word());
        let netem = Netem::new(load.netem.clone(), draws, Nanos(0)).expect("limit and delay go together");
        let latency = load.netem.delay.latency.0;
        let wire: VecDeque<u64> = match load.arrivals {
            Arrivals::Window(window) => (0..window).map(|packet| latency * packet / window).collect(),
            Arrivals::Every(_) => VecDeque::new(),
        };
        let mut random = SimRandom::new(seed, (1 << 34) + u64::from(number));
        let next_birth = match load.arrivals {
            Arrivals::Window(_) => u64::MAX,
            Arrivals::Every(mean) => interval(&mut random, mean),
        };
        Self {
            home: load.cpu.index() as u16,
            load,
            tx: TxQueue::new(Box::new(netem)),
            watchdog,
            task: None,
            is_run_by_task: false,
            born: wire.len() as u64,
            wire,
            is_expected: false,
            is_polled: false,
            in_hand: 0,
            missed: 0,
            gone: 0,
            random,
            next_birth,
        }
    }

    pub(crate) const fn sent_by(&mut self, task: Option<u32>) {
        self.task = task;
    }

    /// Those that arrive by themselves, up to `now` and the first after that.
    pub(crate) fn generate(&mut self, now: u64) {
        let Arrivals::Every(mean) = self.load.arrivals else { return };
        while self.next_birth <= now || self.wire.is_empty() {
            self.wire.push_back(self.next_birth);
            self.born += 1;
            self.next_birth = self.next_birth.saturating_add(interval(&mut self.random, mean).max(1));
        }
    }

    /// Takes in what has arrived first, if anything has.
    pub(crate) fn take_in(&mut self, now: u64) -> bool {
        self.generate(now);
        let has_one = self.wire.front().is_some_and(|at| *at <= now);
        if has_one {
            self.wire.pop_front();
            self.in_hand += 1;
        }
        has_one
    }

    /// A packet has left at `at`; what it brings is on its way.
    pub(crate) fn left(&mut self, at: u64) {
        match self.load.arrivals {
            Arrivals::Window(_) => self.wire.push_back(at.saturating_add(self.load.wire)),
            Arrivals::Every(_) => self.gone += 1,
        }
    }

    /// A packet was dropped; says whether it will be sent again.
    pub(crate) fn dropped(&mut self) -> bool {
        match self.load.arrivals {
            Arrivals::Window(_) => {
                self.missed += 1;
                true
            }
            Arrivals::Every(_) => {
                self.gone += 1;
                false
            }
        }
    }

    /// A packet that is enqueued at `at`.
    pub(crate) fn frame(&self, at: u64) -> SimFrame {
        let delay = &self.load.netem.delay;
        SimFrame { due: (delay.jitter == Nanos(0)).then(|| at + delay.latency.0) }
    }

    pub(crate) fn qlen(&self) -> u64 {
        self.tx.statistics().qlen
    }

    /// Packets that are nowhere; 0 unless something is wrong.
    pub(crate) fn lost(&self) -> u64 {
        let known = self.wire.len() as u64 + self.in_hand + self.qlen() + self.missed + self.gone;
        self.born.abs_diff(known)
    }
}
