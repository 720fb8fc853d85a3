//! Virtual threads: code that can be left at any step and taken up again. Each has a stack of its own.
//!
//! All of them run on one real thread, one at a time. Code that runs in one calls [`pause`] wherever another
//! may come in; outside of a virtual thread that does nothing. Source of the switch itself: the crate
//! `corosensei`.
#![allow(unsafe_code, reason = "the running thread's way back is found from its depths")]

use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::ptr;

/// A virtual thread, by number.
pub(super) type ThreadId = usize;

/// Why a virtual thread was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// A step that takes so long, in ns.
    Step(u64),
    /// It waits: until it is woken, or this moment.
    Wait(Option<u64>),
}

type WayBack = Yielder<(), Pause>;

thread_local! {
    /// Of the virtual thread that runs; null outside.
    static WAY_BACK: Cell<*const WayBack> = const { Cell::new(ptr::null()) };
}

/// The code of one virtual thread.
pub(super) struct VirtualThread(Coroutine<(), Pause, ()>);

impl VirtualThread {
    pub(super) fn new(run: impl FnOnce() + 'static) -> Self {
        Self(Coroutine::new(move |way_back: &WayBack, ()| {
            WAY_BACK.set(way_back);
            run();
        }))
    }

    /// Goes on to its next pause; `None` when it has ended.
    pub(super) fn resume(&mut self) -> Option<Pause> {
        let result = self.0.resume(());
        WAY_BACK.set(ptr::null());
        match result {
            CoroutineResult::Yield(pause) => Some(pause),
            CoroutineResult::Return(()) => None,
        }
    }
}

/// Leaves the virtual thread that runs, until it is resumed. Outside of one, or while it unwinds, nothing.
pub(super) fn pause(why: Pause) {
    let way_back = WAY_BACK.get();
    if way_back.is_null() || std::thread::panicking() {
        return;
    }
    // SAFETY: it was set by the virtual thread that runs, whose closure has it as a reference until it ends;
    // `resume` makes it null whenever no virtual thread runs, and below it is set again.
    unsafe { &*way_back }.suspend(why);
    WAY_BACK.set(way_back);
}

/// Whether a virtual thread runs.
pub(super) fn is_inside() -> bool {
    !WAY_BACK.get().is_null()
}

#[cfg(test)]
mod tests {
    use super::{Pause, VirtualThread, is_inside, pause};
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Goal: two threads take turns at their pauses, from the depths of calls; each ends once; what a thread
    /// owns is dropped with it. Method: both write into one list.
    #[test]
    fn threads_take_turns() {
        fn deep(list: &RefCell<Vec<u32>>, number: u32, depth: u32) {
            if depth > 0 {
                return deep(list, number, depth - 1);
            }
            list.borrow_mut().push(number);
            pause(Pause::Step(u64::from(number)));
            list.borrow_mut().push(number + 10);
        }
        let list = Rc::new(RefCell::new(Vec::new()));
        let mut threads = [1, 2].map(|number| {
            let list = Rc::clone(&list);
            VirtualThread::new(move || deep(&list, number, 5))
        });
        assert!(!is_inside());
        pause(Pause::Wait(None)); // nothing happens
        assert_eq!(threads[0].resume(), Some(Pause::Step(1)));
        assert_eq!(threads[1].resume(), Some(Pause::Step(2)));
        assert_eq!((threads[0].resume(), threads[1].resume()), (None, None));
        assert_eq!(*list.borrow(), [1, 2, 11, 12]);
        let never_ended = Rc::clone(&list);
        let mut third = VirtualThread::new(move || deep(&never_ended, 3, 2));
        let _ = third.resume();
        drop((third, threads));
        assert_eq!(Rc::strong_count(&list), 1);
    }
}
