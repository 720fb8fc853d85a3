//! Taking out all timers of a base that someone chooses, under one hold of its lock.
//!
//! A timer that was taken out may be freed by its owner when the lock is free again, so what the caller needs
//! to know of it is taken before. Nothing is allocated under the lock: there is room for as many as were
//! pending a moment before, and the call says when that was too little. Source: none; DPDK has
//! `rte_timer_stop_all`, which takes them out one by one.

use super::timer::Due;
use super::{BaseId, Bases, TimerName};
use crate::RawLock;
use alloc::vec::Vec;

/// So many more than are pending may be armed before the lock is taken again.
const AT_ONCE: usize = 64;

impl<L: RawLock, T: Copy> Bases<L, T> {
    /// Takes out every pending timer of the base `id` of which `take` makes something, which is put into
    /// `taken`. `take` is called under the lock: it neither arms nor allocates. False when timers are left
    /// that were not looked at, as more were armed meanwhile than there was room for.
    pub(crate) fn cancel_all<R>(
        &self,
        id: BaseId,
        taken: &mut Vec<R>,
        mut take: impl FnMut(T, TimerName<T>) -> Option<R>,
    ) -> bool {
        let pending = self.lock(id, None).pending();
        if pending == 0 {
            return true;
        }
        let room = pending + pending / 8 + AT_ONCE;
        taken.reserve(room);
        let mut found: Vec<Due<T>> = Vec::with_capacity(room);
        let mut base = self.lock(id, None);
        let mut is_whole = true;
        base.for_each_pending(|run| {
            if found.len() == room {
                is_whole = false;
            } else if let Some(kept) = take(run.payload, self.name(run)) {
                found.push(run.due);
                taken.push(kept);
            }
        });
        for due in &found {
            let _ = match *due {
                Due::Tick(timer, _) => base.cancel(timer),
                Due::Exact(timer, _) => base.cancel(timer),
            };
        }
        drop(base);
        is_whole
    }
}
