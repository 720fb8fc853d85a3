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
