//! The real-time tasks that wait on one CPU: by priority, and in the order of arrival within one.
//!
//! A world holds its lock around it, and tells [`CpuPriorities`](super::CpuPriorities) what
//! [`highest`](RealtimeQueue::highest) says when that changes. Invariant: a task is in one queue, once.
//! Absent: the one that runs. Source: Linux 6.12, kernel/sched/rt.c (`enqueue_rt_entity`), by behaviour.

use super::Priority;
use alloc::boxed::Box;
use alloc::collections::VecDeque;

const LEVELS: usize = 99;

/// Tasks of type `T`, each with a priority.
#[derive(Debug)]
pub struct RealtimeQueue<T> {
    levels: Box<[VecDeque<T>]>,
    /// Levels that are not empty: bit `priority`.
    occupied: u128,
    len: usize,
}

impl<T> Default for RealtimeQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> RealtimeQueue<T> {
    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        Self { levels: (0..LEVELS).map(|_| VecDeque::new()).collect(), occupied: 0, len: 0 }
    }

    /// How many wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no task waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The highest priority that waits. Cost: O(1).
    #[must_use]
    pub const fn highest(&self) -> Option<Priority> {
        match self.occupied.checked_ilog2() {
            Some(highest) => Priority::new(highest as u8),
            None => None,
        }
    }

    /// Behind all others of its priority.
    pub fn push(&mut self, priority: Priority, task: T) {
        self.level(priority).push_back(task);
        self.occupied |= 1 << priority.get();
        self.len += 1;
    }

    /// Before all others of its priority: for one that was taken off its CPU by a higher one.
    pub fn push_first(&mut self, priority: Priority, task: T) {
        self.level(priority).push_front(task);
        self.occupied |= 1 << priority.get();
        self.len += 1;
    }

    /// The one that runs next.
    pub fn pop(&mut self) -> Option<(Priority, T)> {
        self.take_first(|_| true)
    }

    /// The one that runs next of those that `may_go`: for another CPU. Others keep their places. Cost: a look
    /// at each that may not.
    pub fn take_first(&mut self, may_go: impl Fn(&T) -> bool) -> Option<(Priority, T)> {
        let mut left = self.occupied;
        while let Some(highest) = left.checked_ilog2() {
            left &= !(1 << highest);
            let priority = Priority::new(highest as u8).expect("a level that is occupied");
            let level = self.level(priority);
            let Some(at) = level.iter().position(&may_go) else { continue };
            let task = level.remove(at).expect("it was found there");
            if level.is_empty() {
                self.occupied &= !(1 << highest);
            }
            self.len -= 1;
            return Some((priority, task));
        }
        None
    }

    /// The one that [`take_first`](Self::take_first) would take, which keeps its place. Cost: likewise.
    #[must_use]
    pub fn first(&self, may_go: impl Fn(&T) -> bool) -> Option<(Priority, &T)> {
        let mut left = self.occupied;
        while let Some(highest) = left.checked_ilog2() {
            left &= !(1 << highest);
            let priority = Priority::new(highest as u8).expect("a level that is occupied");
            let level = &self.levels[usize::from(priority.get()) - 1];
            if let Some(task) = level.iter().find(|task| may_go(task)) {
                return Some((priority, task));
            }
        }
        None
    }

    fn level(&mut self, priority: Priority) -> &mut VecDeque<T> {
        &mut self.levels[usize::from(priority.get()) - 1]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Priority, RealtimeQueue};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(u8),
        PushFirst(u8),
        Pop,
        TakeEven,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (1_u8..=99).prop_map(Step::Push),
            (1_u8..=5).prop_map(Step::Push),
            (1_u8..=5).prop_map(Step::PushFirst),
            Just(Step::Pop),
            Just(Step::TakeEven),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// Goal: the highest priority first, in the order of arrival within one, and no task is lost. Method:
        /// a list that is searched from the front.
        #[test]
        fn like_a_sorted_list(steps in steps()) {
            let mut queue = RealtimeQueue::new();
            let mut list: Vec<(u8, usize)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                let first = |list: &[(u8, usize)], is_wanted: &dyn Fn(usize) -> bool| {
                    let of = list.iter().enumerate().filter(|(_, (_, task))| is_wanted(*task));
                    let best = of.max_by_key(|(at, (priority, _))| (*priority, core::cmp::Reverse(*at)));
                    best.map(|(at, _)| at)
                };
                match step {
                    Step::Push(priority) => {
                        queue.push(Priority::new(priority).expect("1 to 99"), number);
                        list.push((priority, number));
                    }
                    Step::PushFirst(priority) => {
                        queue.push_first(Priority::new(priority).expect("1 to 99"), number);
                        list.insert(0, (priority, number));
                    }
                    Step::Pop => {
                        let expected = first(&list, &|_| true).map(|at| list.remove(at));
                        let popped = queue.pop().map(|(priority, task)| (priority.get(), task));
                        prop_assert_eq!(popped, expected);
                    }
                    Step::TakeEven => {
                        let expected = first(&list, &|task| task % 2 == 0).map(|at| list.remove(at));
                        let shown = queue.first(|task| task % 2 == 0);
                        let shown = shown.map(|(priority, task)| (priority, *task));
                        let taken = queue.take_first(|task| task % 2 == 0);
                        prop_assert_eq!(taken, shown);
                        prop_assert_eq!(taken.map(|(priority, task)| (priority.get(), task)), expected);
                    }
                }
                let highest = list.iter().map(|(priority, _)| *priority).max();
                prop_assert_eq!(queue.highest().map(Priority::get), highest);
                prop_assert_eq!((queue.len(), queue.is_empty()), (list.len(), list.is_empty()));
            }
        }
    }
}
