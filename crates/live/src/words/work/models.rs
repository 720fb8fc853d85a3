//! The word of work under weak memory.

use super::{QueueDuty, WorkState};
use crate::words::sync::models::ends;
use crate::words::sync::{AtomicU32, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::collections::BTreeSet;

struct World {
    state: WorkState,
    /// Entries in queues.
    queued: Mutex<u32>,
    /// Left by the queueing thread for the run.
    left: AtomicU32,
    /// Runs now.
    inside: AtomicU32,
    seen: AtomicU32,
    runs: AtomicU32,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: WorkState::new(),
            queued: Mutex::new(0),
            left: AtomicU32::new(0),
            inside: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            runs: AtomicU32::new(0),
        })
    }

    fn enqueue(&self) {
        *self.queued.lock().expect("no panic") += 1;
    }

    fn queue(&self) {
        if self.state.queue() == QueueDuty::Enqueue {
            self.enqueue();
        }
    }

    /// A lane that takes what waits, until nothing does.
    fn work(&self) {
        loop {
            let mut queued = self.queued.lock().expect("no panic");
            let Some(less) = queued.checked_sub(1) else { return };
            *queued = less;
            drop(queued);
            if !self.state.begin() {
                continue;
            }
            // Relaxed, all: what the model is about is that the word orders them.
            assert_eq!(self.inside.fetch_add(1, Ordering::Relaxed), 0, "it runs twice at a time");
            self.seen.store(self.left.load(Ordering::Relaxed), Ordering::Relaxed);
            self.runs.store(self.runs.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            self.inside.fetch_sub(1, Ordering::Relaxed);
            if self.state.end() {
                self.enqueue();
            }
        }
    }
}

/// Goal: work that is queued runs afterwards, alone, and sees what was left for it. Method: it is queued
/// while a lane runs an earlier round; both lanes take what waits.
#[test]
fn work_that_is_queued_runs_once() {
    let ends = ends(|| {
        let world = World::new();
        world.queue();
        let lane = Arc::clone(&world);
        let lane = thread::spawn(move || lane.work());
        world.left.store(1, Ordering::Relaxed);
        world.queue();
        world.work();
        lane.join().expect("no panic");
        world.work();
        assert!(!world.state.is_pending() && !world.state.is_running());
        assert_eq!(world.seen.load(Ordering::Relaxed), 1, "the last run saw what was left");
        world.runs.load(Ordering::Relaxed)
    });
    assert_eq!(ends, BTreeSet::from([1, 2]));
}

/// Goal: after a cancel and another queueing it still never runs twice at a time. Method: the cancelled entry
/// stays in its queue while another one is made.
#[test]
fn cancelled_and_queued_again() {
    let ends = ends(|| {
        let world = World::new();
        world.queue();
        let lane = Arc::clone(&world);
        let lane = thread::spawn(move || lane.work());
        let was_pending = world.state.cancel();
        world.queue();
        world.work();
        lane.join().expect("no panic");
        world.work();
        assert!(!world.state.is_pending() && !world.state.is_running());
        (was_pending, world.runs.load(Ordering::Relaxed))
    });
    assert_eq!(ends, BTreeSet::from([(false, 2), (true, 1)]));
}
