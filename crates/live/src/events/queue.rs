//! What waits to be told: bounded, so that a subscriber that hangs costs no memory.

use super::found::Found;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What waits at most.
const ROOM: usize = 128;

/// From many threads to one. The lock is held for a few instructions.
#[derive(Debug, Default)]
pub(super) struct FoundQueue {
    waiting: Mutex<QueuedEvents>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct QueuedEvents {
    found: VecDeque<Found>,
    /// Of those that did not fit.
    lost: u64,
    is_over: bool,
}

impl FoundQueue {
    fn waiting(&self) -> MutexGuard<'_, QueuedEvents> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, found: Found) {
        let mut waiting = self.waiting();
        if waiting.found.len() < ROOM && !waiting.is_over {
            waiting.found.push_back(found);
        } else {
            waiting.lost += 1;
        }
        drop(waiting);
        self.news.notify_one();
    }

    /// The next one, and how many were lost since the last; `None` at the end, when nothing waits.
    pub(super) fn next(&self) -> Option<(Found, u64)> {
        let mut waiting = self.waiting();
        loop {
            if let Some(found) = waiting.found.pop_front() {
                return Some((found, core::mem::take(&mut waiting.lost)));
            }
            if waiting.is_over {
                return None;
            }
            waiting = self.news.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn end(&self) {
        self.waiting().is_over = true;
        self.news.notify_one();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Found, FoundQueue, ROOM};
    use quietcore_core::CpuId;

    fn is_panic_on(found: &Found, cpu: CpuId) -> bool {
        matches!(found, Found::Panic(on) if *on == cpu)
    }

    /// Goal: what waits at the end is told, in order; what does not fit or comes later is counted. Method:
    /// one more than there is room for, the end, and another one.
    #[test]
    fn what_waits_at_the_end_is_told() {
        let (queue, cpu) = (FoundQueue::default(), |number: usize| CpuId::new(number as u64).expect("small"));
        (0..=ROOM).for_each(|number| queue.push(Found::Panic(cpu(number))));
        queue.end();
        queue.push(Found::Panic(cpu(0)));
        for number in 0..ROOM {
            let (found, lost) = queue.next().expect("it waits");
            assert!(is_panic_on(&found, cpu(number)));
            assert_eq!(lost, if number == 0 { 2 } else { 0 });
        }
        assert!(queue.next().is_none());
    }
}
