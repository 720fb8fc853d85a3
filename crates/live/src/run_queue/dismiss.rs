//! Items that no lane will run, as the machine has ended: they are dropped, one after the other.

use super::Item;
use crate::machine::Machine;
use crate::panic::contain;
use crate::timer::{RunKind, RunScope};
use quietcore_core::run_queue::LaneQueue;
use std::cell::RefCell;

impl Machine {
    /// Drops what no thread will run. What only another thread may touch stays where that finds it; a forked
    /// child touches nothing.
    pub(crate) fn dismiss(&self, item: Item) {
        if self.is_forked() {
            core::mem::forget(item);
            return;
        }
        let is_ours = |cpu| self.current_cpu().map(|(here, _)| here) == Some(cpu);
        match item.owner() {
            Some(cpu) if !is_ours(cpu) => {
                let queue = self.lanes.queue(cpu).expect("its lane made it");
                let kept = queue.push(item, &self.lanes.priorities);
                kept.expect("what is of a thread is always taken");
            }
            _ => drop_in_turn(item),
        }
    }
}

thread_local! {
    /// What is to be dropped by this thread, while it drops something.
    static DROPPING: RefCell<Option<Vec<Item>>> = const { RefCell::new(None) };
}

/// Drops `item`. A destructor may wake others who end here, too: those wait for it, so that a chain of them
/// needs no stack.
fn drop_in_turn(item: Item) {
    let outermost = DROPPING.try_with(|list| match &mut *list.borrow_mut() {
        Some(waiting) => {
            waiting.push(item);
            None
        }
        list => {
            *list = Some(Vec::new());
            Some(item)
        }
    });
    // A thread that ends has no list any more; then `item` was dropped by the closure.
    let mut next = outermost.unwrap_or_default();
    while let Some(item) = next {
        let _in_run = RunScope::begin(RunKind::Item);
        // The destructor of user code; the panic hook has printed what it says.
        let _ = contain(|| drop(item));
        next = DROPPING
            .try_with(|list| {
                let mut list = list.borrow_mut();
                let next = list.as_mut().and_then(Vec::pop);
                if next.is_none() {
                    *list = None;
                }
                next
            })
            .unwrap_or_default();
    }
}
