//! What waits for one lane: real-time items by priority, and two queues of normal ones that take turns.
//!
//! The world's lock is held for each call; what others may know without it is in [`QueueHints`], which the
//! world writes down before it gives the lock back.

use super::{Activity, NextItem, QueueItem};
use crate::CpuId;
use crate::realtime::{CpuPriority, Priority, RealtimeQueue};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What is known of a queue without its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueHints {
    /// The highest real-time priority that waits.
    pub realtime: Option<Priority>,
    /// The same of those that may move.
    pub realtime_movable: Option<Priority>,
    /// Normal items that others may take.
    pub free: u32,
    /// The lane's slot among all priorities.
    pub level: CpuPriority,
}

/// A lane's items, without a lock.
#[derive(Debug)]
pub struct ItemQueue<I> {
    cpu: CpuId,
    realtime: RealtimeQueue<I>,
    bound: VecDeque<I>,
    free: VecDeque<I>,
    /// The real-time task that runs.
    running: Option<Priority>,
    /// Which of the two normal queues is next.
    is_free_next: bool,
    /// The machine has ended: nothing is taken any more but what only this lane's thread may drop.
    is_over: bool,
}

impl<I: QueueItem> ItemQueue<I> {
    /// The empty one of `cpu`.
    #[must_use]
    pub fn new(cpu: CpuId) -> Self {
        Self {
            cpu,
            realtime: RealtimeQueue::new(),
            bound: VecDeque::new(),
            free: VecDeque::new(),
            running: None,
            is_free_next: false,
            is_over: false,
        }
    }

    /// Whether the machine has ended.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// How many items wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.realtime.len() + self.bound.len() + self.free.len()
    }

    /// Whether none does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What others may know. `is_open` says so of the lane's gate.
    #[inline]
    #[must_use]
    pub fn hints(&self, is_open: bool) -> QueueHints {
        let highest = self.realtime.highest();
        let movable = highest.and_then(|_| self.realtime.first(is_movable));
        let level = if is_open {
            highest.max(self.running).map_or(CpuPriority::Normal, CpuPriority::Realtime)
        } else {
            CpuPriority::Absent
        };
        QueueHints {
            realtime: highest,
            realtime_movable: movable.map(|(priority, _)| priority),
            free: self.free.len() as u32,
            level,
        }
    }

    /// Puts `item` behind its equals; says how many items already waited.
    ///
    /// # Errors
    /// Gives it back when the gate is not open and it is not bound to this lane, or the machine has ended.
    #[inline]
    pub fn push(&mut self, item: I, is_open: bool) -> Result<usize, I> {
        let is_bound = item.bound_to() == Some(self.cpu);
        if !is_bound && !is_open || self.is_over && !item.is_of_thread() {
            return Err(item);
        }
        let waited = self.len();
        match item.priority() {
            Some(priority) => self.realtime.push(priority, item),
            None if is_bound => self.bound.push_back(item),
            None => self.free.push_back(item),
        }
        Ok(waited)
    }

    /// What the lane runs next: the highest real-time task, or the first of the two normal queues in turns,
    /// so that neither keeps the other waiting.
    #[inline]
    #[must_use]
    pub fn pop(&mut self) -> Option<NextItem<I>> {
        if let Some((priority, item)) = self.realtime.pop() {
            self.running = Some(priority);
            let activity = Activity::Realtime(priority);
            return Some(NextItem { is_movable: is_movable(&item), item, activity });
        }
        let is_free_first = self.is_free_next;
        self.is_free_next = !is_free_first;
        let Self { bound, free, .. } = self;
        let (first, second) = if is_free_first { (free, bound) } else { (bound, free) };
        let item = first.pop_front().or_else(|| second.pop_front());
        item.map(|item| NextItem { is_movable: is_movable(&item), item, activity: Activity::Normal })
    }

    /// The lane runs a real-time task of that priority, or the one that it ran is over for now.
    pub const fn set_running(&mut self, running: Option<Priority>) {
        self.running = running;
    }

    /// The first real-time task that may move, for another lane.
    #[inline]
    #[must_use]
    pub fn take_realtime(&mut self) -> Option<(Priority, I)> {
        self.realtime.take_first(is_movable)
    }

    /// The first normal item that others may take, for another lane.
    #[inline]
    #[must_use]
    pub fn take_free(&mut self) -> Option<I> {
        self.free.pop_front()
    }

    /// The gate is closed: gives all that is not bound to this lane.
    #[must_use]
    pub fn close(&mut self) -> Vec<I> {
        let mut items: Vec<I> = Vec::new();
        while let Some((_, item)) = self.take_realtime() {
            items.push(item);
        }
        items.extend(self.free.drain(..));
        items
    }

    /// Takes what only the calling thread, which is the lane's, may drop.
    #[must_use]
    pub fn take_of_thread(&mut self) -> Vec<I> {
        let (own, others) = self.bound.drain(..).partition(QueueItem::is_of_thread);
        self.bound = others;
        Vec::from(own)
    }

    /// The machine has ended: takes everything that any thread may drop.
    #[must_use]
    pub fn end(&mut self) -> Vec<I> {
        self.is_over = true;
        let mut items: Vec<I> = Vec::new();
        while let Some((_, item)) = self.realtime.pop() {
            items.push(item);
        }
        items.extend(self.free.drain(..));
        let (own, others): (VecDeque<_>, VecDeque<_>) =
            self.bound.drain(..).partition(QueueItem::is_of_thread);
        self.bound = own;
        items.extend(others);
        items
    }
}

fn is_movable<I: QueueItem>(item: &I) -> bool {
    item.bound_to().is_none()
}
