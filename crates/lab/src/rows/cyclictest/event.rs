//! What a task of the row waits for: an interrupt for each cycle, how late its cycles begin, and which it
//! misses. Not here: the interrupts, and the task.

use quietcore_live::Nanos;
use std::task::Waker;

/// What a cycle waits for.
#[derive(Debug, Default)]
pub(super) struct TaskEvent {
    due: Option<Nanos>,
    pub(super) waker: Option<Waker>,
    pub(super) missed: u64,
    /// How late each cycle was, in ns, in their order.
    pub(super) late: Vec<u64>,
}

impl TaskEvent {
    /// The interrupt that was due then; the waker is for it to use. A cycle that has not begun is late from
    /// its own interrupt, and this one is missed.
    pub(super) fn interrupted(&mut self, due: Nanos) -> Option<Waker> {
        self.missed += u64::from(self.due.is_some());
        self.due.get_or_insert(due);
        self.waker.take()
    }

    /// Whether there was an interrupt; the cycle begins then, and it is `now`.
    pub(super) fn begin(&mut self, now: impl FnOnce() -> Nanos) -> bool {
        let due = self.due.take();
        self.late.extend(due.map(|due| now().since(due).0));
        due.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::TaskEvent;
    use quietcore_live::Nanos;

    /// Goal: a cycle is late from its own interrupt, and each that comes before it has begun is missed.
    /// Method: two cycles, the first of which begins after three interrupts; a look without one.
    #[test]
    fn cycles_are_late_or_missed() {
        let mut event = TaskEvent::default();
        assert!(!event.begin(|| unreachable!("there was no interrupt")));
        for due in [1_000, 2_000, 3_000, 4_000] {
            let _ = event.interrupted(Nanos(due));
            if due >= 3_000 {
                assert!(event.begin(|| Nanos(due + 70)));
            }
        }
        assert_eq!((event.missed, event.late), (2, vec![2_070, 70]));
    }
}
