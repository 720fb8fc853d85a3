//! Timers reached by address, and the memory of those that a machine keeps: lifetimes, sizes, threads.

extern crate std;

use super::{Timer, TimerRef};
use crate::base::tests::locks::SpinLock;
use crate::base::{BaseId, BaseKind, Bases, Cancelled, TickLength, TimerName, TimerOptions};
use crate::{Context, CpuId, Nanos, SequentialLock};
use core::cell::Cell;
use core::ptr::NonNull;
use std::boxed::Box;
use std::sync::{Arc, Mutex};
use std::thread;

const LOCAL: BaseId = BaseId { cpu: CpuId(0), kind: BaseKind::Local };

/// CPU 0 at so many ms.
fn at(millis: u64) -> Context {
    Context::on(CpuId(0), Nanos(millis * 1_000_000))
}

/// Goal: a timer of the caller's needs no store, and its memory is free once it is idle. Method: pinned
/// timers on the heap, dropped after a cancel and after a run.
#[test]
fn timers_of_the_caller() {
    let bases = Bases::<SequentialLock, u32>::new(1, TickLength::default(), Nanos(0));
    for is_cancelled in [true, false] {
        let timer = Box::pin(Timer::new(9_u32, TimerOptions::new()));
        // SAFETY: the timer is pinned, goes to `bases` only, and is idle when it is dropped.
        let reference = unsafe { TimerRef::new((&*timer).into()) };
        let _ = bases.arm(reference, Nanos(1_000_000), LOCAL, at(0));
        assert!(timer.is_pending());
        if is_cancelled {
            assert_eq!(bases.cancel(reference, at(0)), Cancelled::WasPending);
        } else {
            let token = bases.collect_and_take(LOCAL, CpuId(0), at(2)).expect("due");
            let expired = bases.pop(&token, at(2)).expired.expect("due");
            assert_eq!(expired.timer(), TimerName::Timer(reference));
            assert_eq!((expired.payload(), expired.base(), expired.runner()), (9, LOCAL, CpuId(0)));
            let _ = bases.finish(expired, at(2));
            assert!(bases.pop(&token, at(2)).expired.is_none());
        }
        assert!(!timer.is_pending());
        drop(timer);
    }
    bases.check();
}

/// Goal: the memory of a detached timer is free as soon as it is handed out, also for another timer.
/// Method: dropped before the end of its run; one that is not detached gets the same memory, if the
/// allocator gives it, and runs meanwhile.
#[test]
fn a_detached_timer_is_freed_during_its_run() {
    let bases = Bases::<SequentialLock, u32>::new(1, TickLength::default(), Nanos(0));
    let hand_out = |timer: &Timer<u32>, from: u64| {
        // SAFETY: the timer is boxed and goes to `bases` only. It is dropped when its run has ended, or,
        // if it is detached, when it was handed out.
        let reference = unsafe { TimerRef::new(timer.into()) };
        let _ = bases.arm(reference, at(from).now(), LOCAL, at(from));
        let token = bases.collect_and_take(LOCAL, CpuId(0), at(from + 2)).expect("due");
        let expired = bases.pop(&token, at(from + 2)).expired.expect("due");
        assert!(!timer.is_pending() && bases.pop(&token, at(from + 2)).expired.is_none());
        expired
    };
    let detached = Box::new(Timer::new(1, TimerOptions::new().detached()));
    let first = hand_out(&detached, 1);
    drop(detached);
    let ordinary = Box::new(Timer::new(2, TimerOptions::new()));
    let second = hand_out(&ordinary, 10);
    for expired in [first, second] {
        let _ = bases.finish(expired, at(20));
    }
    drop(ordinary);
    assert_eq!(bases.lock(LOCAL, None).counters.ran, 2);
    bases.check();
}

/// What a world may keep: a timer, and beside it what it takes out of it.
#[repr(C)]
struct Entry {
    timer: Timer<u32>,
    target: Cell<Option<Arc<()>>>,
}

const ENTRIES: u64 = if cfg!(miri) { 60 } else { 1_000 };

/// Arms one entry after the other on CPU 0's GUEST base and frees each as soon as it is idle; returns how
/// many were not cancelled.
fn arm_and_free(bases: &Bases<SpinLock, u32>, target: &Arc<()>, now: &Mutex<u64>) -> u64 {
    let base = BaseId { cpu: CpuId(0), kind: BaseKind::Guest };
    let mut ran = 0;
    for round in 0..ENTRIES {
        let timer = Timer::new(0, TimerOptions::new().detached());
        let entry = Box::new(Entry { timer, target: Cell::new(Some(Arc::clone(target))) });
        let entry = NonNull::from(Box::leak(entry));
        // SAFETY: the entry, and with it the timer that is its first field, stays where it is until the
        // timer is idle, and is shared until then. It goes to `bases` only.
        let timer = unsafe { TimerRef::new(entry.cast::<Timer<u32>>()) };
        let context = Context::near(CpuId(0), Nanos(*now.lock().expect("nobody panicked")));
        let _ = bases.arm(timer, context.now(), base, context);
        if round % 3 == 0 {
            thread::yield_now();
            ran += u64::from(bases.cancel(timer, context) == Cancelled::Idle);
        } else {
            while timer.is_pending() {
                thread::yield_now();
            }
            ran += 1;
        }
        // SAFETY: `leak` gave it away; the timer is idle, so no other thread has it any more.
        drop(unsafe { Box::from_raw(entry.as_ptr()) });
    }
    ran
}

/// Goal: what lies beside a detached timer is taken out before its owner can see it idle, and freed by
/// its owner without a lock after that; a pointer that came in for the whole struct comes out for it.
/// Method: two threads arm entries, some of which they cancel, and free them; a third takes a count out
/// of each that is due. Every count is given back in the end. Miri watches.
#[test]
fn entries_are_freed_as_soon_as_they_are_idle() {
    let bases = Bases::<SpinLock, u32>::new(1, TickLength::default(), Nanos(0));
    let (target, now, taken) = (Arc::new(()), Mutex::new(0), Mutex::new(0));
    let id = BaseId { cpu: CpuId(0), kind: BaseKind::Guest };
    let ran: u64 = thread::scope(|scope| {
        let owners = [(); 2].map(|()| scope.spawn(|| arm_and_free(&bases, &target, &now)));
        while !owners.iter().all(thread::ScopedJoinHandle::is_finished) {
            let nanos = {
                let mut now = now.lock().expect("nobody panicked");
                *now += 2_000_000;
                *now
            };
            let context = Context::on(CpuId(0), Nanos(nanos));
            let Some(token) = bases.collect_and_take(id, CpuId(0), context) else { continue };
            let take = |_, name| {
                let TimerName::Timer(timer) = name else { panic!("{name:?} is not ours") };
                // SAFETY: under the lock, before the timer is shown idle, it is still there, and it is
                // the first field of an entry, which is what the reference was made of.
                unsafe { timer.as_ptr().cast::<Entry>().as_ref() }.target.take()
            };
            while let Some((expired, target)) = bases.pop_with(&token, context, take).expired {
                assert!(target.is_some(), "somebody else took it");
                *taken.lock().expect("nobody panicked") += 1;
                let _ = bases.finish(expired, context);
            }
        }
        owners.map(|owner| owner.join().expect("it ends")).into_iter().sum()
    });
    assert_eq!((*taken.lock().expect("nobody panicked"), Arc::strong_count(&target)), (ran, 1));
    assert!(ran > ENTRIES, "{ran} of {} ran", 2 * ENTRIES);
    bases.check();
}

/// Goal: pending timers of a machine may be dropped with it. Method: dropped while linked; Miri watches.
#[test]
fn a_machine_is_dropped_with_pending_timers() {
    let mut bases = Bases::<SequentialLock, u64>::new(1, TickLength::default(), Nanos(0));
    let base = BaseId { cpu: CpuId(0), kind: BaseKind::Global };
    for payload in 0..300 {
        let id = bases.add_timer(TimerOptions::new(), payload);
        let timer = bases.timer(id).expect("just made");
        let context = Context::near(CpuId(0), Nanos(0));
        let _ = bases.arm(timer, Nanos(payload * 3_000_000), base, context);
    }
    assert_eq!(bases.lock(base, None).pending(), 300);
    bases.check();
}
