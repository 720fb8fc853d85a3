//! A queue of deadlines per thread: values come out once, at their deadline, or when they are removed.
//!
//! The queue is polled only when its waker was woken: the thread that inserts or resets what becomes the
//! first deadline must wake it. Absent: moving a queue between threads; its timer is a sleep, and
//! `futures.rs` moves those.

use crate::ledger::Fault;
use crate::running::{Lateness, Overdue};
use crate::scene::{Load, Rouser, Scene};
use core::task::{Context, Poll, Waker};
use quietcore_live::Nanos;
use quietcore_live::time::delay_queue::{DelayQueue, Expired, Key};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

/// How many values a queue has at most.
const PLACES: usize = 300;

/// Whether the queue has to be polled.
struct Bell {
    rang: Mutex<bool>,
    rouser: Rouser,
}

impl Bell {
    fn take(&self) -> bool {
        core::mem::take(&mut *self.rang.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rang.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rouser.rouse();
    }
}

/// The queue of one thread. Its values are the places that they have here.
pub(crate) struct Queues {
    queue: DelayQueue<usize>,
    places: Vec<Option<(Key, Nanos)>>,
    bell: Arc<Bell>,
    overdue: Overdue,
}

impl Queues {
    /// To be made and used by one thread: it is the one that is woken.
    pub(crate) fn new(scene: &Scene) -> Self {
        // It must be polled once to know whom to wake.
        let bell = Arc::new(Bell { rang: Mutex::new(true), rouser: scene.rouser.clone() });
        let places = vec![None; PLACES];
        Self { queue: DelayQueue::new(), places, bell, overdue: Overdue::default() }
    }

    /// Takes out what is due, if a thread rang.
    fn poll(&mut self, scene: &mut Scene) {
        if !self.bell.take() {
            return;
        }
        let waker = Waker::from(Arc::clone(&self.bell));
        let mut context = Context::from_waker(&waker);
        while let Poll::Ready(Some(expired)) = self.queue.poll_expired(&mut context) {
            let now = scene.machine.now();
            if let Some(due) = self.left(&expired, scene) {
                scene.tally.ran(due, now);
            }
        }
    }

    /// A value left the queue; when it was due, if it was there.
    fn left(&mut self, expired: &Expired<usize>, scene: &mut Scene) -> Option<Nanos> {
        let known = self.places[*expired.get_ref()].take();
        let due = known.filter(|known| *known == (expired.key(), expired.deadline().into()));
        scene.tally.fault(Fault::Twice, u64::from(due.is_none()), "queue: not what was inserted");
        due.map(|(_, due)| due)
    }

    fn remove(&mut self, key: Key, scene: &mut Scene) {
        match self.queue.try_remove(&key) {
            Some(expired) => {
                scene.tally.cancelled += 1;
                let _ = self.left(&expired, scene);
            }
            None => scene.tally.fault(Fault::Lost, 1, "queue: neither there nor handed out"),
        }
    }

    fn look_at_first(&mut self, scene: &Scene) -> Lateness {
        let first = self.places.iter().flatten().map(|(_, due)| *due).min();
        self.overdue.look(first, scene.now, scene.running)
    }
}

impl Load for Queues {
    fn act(&mut self, scene: &mut Scene) {
        self.poll(scene);
        let place = scene.random.index(PLACES);
        let due = scene.deadline();
        match self.places[place] {
            // Acting on what is due, or almost, would hide that no thread rang.
            Some((_, due)) if due <= scene.machine.now() => {}
            Some((key, _)) if scene.random.below(2) == 0 => self.remove(key, scene),
            Some((key, _)) => {
                self.queue.reset_at(&key, due.into());
                self.places[place] = Some((key, due));
                scene.tally.armed += 1;
                scene.tally.superseded += 1;
            }
            None => {
                let key = self.queue.insert_at(place, due.into());
                self.places[place] = Some((key, due));
                scene.tally.armed += 1;
            }
        }
    }

    fn look(&mut self, scene: &mut Scene) {
        self.poll(scene);
        if self.look_at_first(scene) == Lateness::Lost {
            scene.tally.fault(Fault::Lost, 1, "queue: nobody rang for too long");
            *self = Self::new(scene);
        }
    }

    fn wind_down(&mut self, until: Nanos, scene: &mut Scene) {
        for place in 0..PLACES {
            if let Some((key, _)) = self.places[place].filter(|(_, due)| *due > until) {
                self.remove(key, scene);
            }
        }
    }

    fn open(&self) -> usize {
        self.places.iter().flatten().count()
    }
}
