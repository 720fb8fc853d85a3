//! What every thread of `run` does: acts at random, keeps books, and at the end waits for what it left.
//!
//! A thread has loads of several kinds; a load is many timers of one kind with their books. Whatever disturbs
//! the process meanwhile, each period of each timer must end as its books say. How a thread waits between its
//! actions is its own business: it sleeps, or it drives a CPU.

use crate::ledger::Tally;
use crate::random::Random;
use crate::running::Running;
use core::time::Duration;
use quietcore_live::{Machine, Nanos, lane::Unparker};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::Thread;

/// Actions per load between two rests.
const ACTIONS: usize = 24;

/// What is further away than this when the experiment ends is cancelled, and not waited for.
const LAST_WAIT: Duration = Duration::from_secs(3);

/// How the thread of a load is made to look at it.
#[derive(Clone, Debug)]
pub(crate) enum Rouser {
    Thread(Thread),
    Lane(Unparker),
}

impl Rouser {
    pub(crate) fn rouse(&self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Lane(unparker) => unparker.unpark(),
        }
    }
}

/// What a load is given: the machine, the time, and where to count.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) machine: &'static Machine,
    pub(crate) random: Random,
    pub(crate) tally: Tally,
    /// Of this thread.
    pub(crate) rouser: Rouser,
    /// As of the last rest.
    pub(crate) now: Nanos,
    /// Running time, as of the last rest.
    pub(crate) running: Nanos,
    clock: Running,
}

impl Scene {
    pub(crate) fn new(machine: &'static Machine, random: Random, rouser: Rouser) -> Self {
        let now = machine.now();
        let (clock, running) = (Running::new(now), Nanos(0));
        Self { machine, random, tally: Tally::default(), rouser, now, running, clock }
    }

    fn look_at_clock(&mut self) {
        self.now = self.machine.now();
        self.running = self.clock.advance(self.now);
    }

    /// A moment in the future, most likely.
    pub(crate) fn deadline(&mut self) -> Nanos {
        let delay = self.random.delay();
        after(self.machine.now(), delay)
    }
}

/// The moment `delay` after `now`.
pub(crate) fn after(now: Nanos, delay: Duration) -> Nanos {
    Nanos(now.0 + delay.as_nanos() as u64)
}

/// Many timers of one kind, and their books.
pub(crate) trait Load {
    /// Does something at random to one of them.
    fn act(&mut self, scene: &mut Scene);

    /// Brings the hierarchy up to date.
    fn look(&mut self, scene: &mut Scene);

    /// Cancels what is due after `until`, and whatever would never end by itself.
    fn wind_down(&mut self, until: Nanos, scene: &mut Scene);

    /// How many are still to run.
    fn open(&self) -> usize;
}

/// Plays with `loads` until `stop` is closed, and then until nothing is left of them.
pub(crate) fn play(
    loads: &mut [Box<dyn Load>],
    scene: &mut Scene,
    stop: &Receiver<()>,
    mut rest: impl FnMut(),
) {
    while stop.try_recv() == Err(TryRecvError::Empty) {
        for load in &mut *loads {
            load.look(scene);
            for _ in 0..ACTIONS {
                load.act(scene);
            }
        }
        rest();
        scene.look_at_clock();
    }
    let until = after(scene.now, LAST_WAIT);
    for load in &mut *loads {
        load.wind_down(until, scene);
    }
    // Ends: what does not run is given up as lost.
    while loads.iter().any(|load| load.open() > 0) {
        rest();
        scene.look_at_clock();
        for load in &mut *loads {
            load.look(scene);
        }
    }
}
