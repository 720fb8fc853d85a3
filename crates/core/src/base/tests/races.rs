//! Another thread comes between reading a timer's word and taking the lock that it names.
//!
//! Each test is one interleaving, made with a lock that calls back before it is taken.

use super::super::{Bases, Cancelled};
use super::locks::{InterruptedLock, before_lock, was_interrupted};
use super::{CpuId, Nanos, TickLength, TimerId, TimerOptions, at, every_base, global, local};
use crate::base::TimerRef;
use alloc::rc::Rc;
use quietcore_wheel::Tick;

type Shared = Rc<Bases<InterruptedLock, u32>>;

fn with_timer() -> (Shared, TimerId) {
    let mut bases = Bases::new(3, TickLength::default(), Nanos(0));
    let id = bases.add_timer(TimerOptions::new(), 7);
    (Rc::new(bases), id)
}

fn timer(bases: &Shared, id: TimerId) -> TimerRef<u32> {
    bases.timer(id).expect("in the store")
}

/// Another thread does this before the next lock.
fn interrupt(bases: &Shared, act: impl FnOnce(&Shared) + 'static) {
    let bases = Rc::clone(bases);
    before_lock(move || act(&bases));
}

/// It arms the timer on CPU 1.
fn interrupt_with_arm(bases: &Shared, id: TimerId) {
    interrupt(bases, move |bases| {
        let armed = bases.arm_tick(timer(bases, id), Tick(300), local(1), at(0));
        assert_eq!(armed.base, local(1));
    });
}

/// It shuts the timer down, which was never armed.
fn interrupt_with_shutdown(bases: &Shared, id: TimerId) {
    interrupt(bases, move |bases| assert_eq!(bases.shutdown(timer(bases, id), at(0)), Cancelled::Idle));
}

/// `cpu` goes offline, and `onto` gets its timers.
fn interrupt_with_adoption(bases: &Shared, cpu: u16, onto: u16) {
    interrupt(bases, move |bases| _ = bases.adopt(CpuId(cpu), CpuId(onto), at(0)));
}

fn assert_pending_only_in(bases: &Shared, expected: Option<crate::base::BaseId>) {
    assert!(was_interrupted());
    bases.check();
    for id in every_base(3) {
        let pending = bases.lock(id, None).pending();
        assert_eq!(pending, usize::from(expected == Some(id)), "{id}");
    }
}

/// Goal: an arm that finds its timer moved begins again; of two first arms one is the first. Method: the
/// timer was on the base asked for, on a third one, or never armed.
#[test]
fn an_arm_loses_against_a_move() {
    for (first, onto) in [(Some(global(0)), global(0)), (Some(global(2)), local(0)), (None, local(0))] {
        let (bases, id) = with_timer();
        if let Some(first) = first {
            let _ = bases.arm_tick(timer(&bases, id), Tick(100), first, at(0));
        }
        interrupt_with_arm(&bases, id);
        let armed = bases.arm_tick(timer(&bases, id), Tick(200), onto, at(0));
        assert!(armed.was_pending && armed.base == onto, "{first:?}");
        assert_pending_only_in(&bases, Some(onto));
    }
}

/// Goal: an arm in the usual case that finds its timer moved, or its CPU gone, does nothing and says so.
/// Method: the timer was idle on the base asked for; it is armed elsewhere, or that CPU is adopted.
#[test]
fn a_usual_arm_loses_against_a_move() {
    for is_adopted in [false, true] {
        let (bases, id) = with_timer();
        let _ = bases.arm_tick(timer(&bases, id), Tick(100), global(0), at(0));
        assert_eq!(bases.cancel(timer(&bases, id), at(0)), Cancelled::WasPending);
        if is_adopted {
            interrupt_with_adoption(&bases, 0, 2);
        } else {
            interrupt_with_arm(&bases, id);
        }
        let again = bases.arm_fast(timer(&bases, id), Nanos(200_000_000), global(0), at(0));
        assert!(again.is_none(), "{again:?}");
        assert_pending_only_in(&bases, (!is_adopted).then_some(local(1)));
    }
}

/// Goal: a cancel finds its timer wherever it went. Method: moved, and cancelled by another thread.
#[test]
fn a_cancel_follows_its_timer() {
    for is_cancelled in [false, true] {
        let (bases, id) = with_timer();
        let _ = bases.arm_tick(timer(&bases, id), Tick(100), global(0), at(0));
        if is_cancelled {
            interrupt(&bases, move |bases| {
                assert_eq!(bases.cancel(timer(bases, id), at(0)), Cancelled::WasPending);
            });
        } else {
            interrupt_with_arm(&bases, id);
        }
        let expected = if is_cancelled { Cancelled::Idle } else { Cancelled::WasPending };
        assert_eq!(bases.cancel(timer(&bases, id), at(0)), expected);
        assert_pending_only_in(&bases, None);
    }
}

/// Goal: the same of an arm in the usual case, against another arm, a shutdown and an adoption: it does
/// nothing and says so. Method: a timer that was never armed.
#[test]
fn a_usual_first_arm_loses() {
    for other_does in ["arm", "shutdown", "adopt"] {
        let (bases, id) = with_timer();
        match other_does {
            "arm" => interrupt_with_arm(&bases, id),
            "shutdown" => interrupt_with_shutdown(&bases, id),
            _ => interrupt_with_adoption(&bases, 0, 2),
        }
        let armed = bases.arm_fast(timer(&bases, id), Nanos(200_000_000), global(0), at(0));
        assert!(armed.is_none(), "{other_does}: {armed:?}");
        assert_pending_only_in(&bases, (other_does == "arm").then_some(local(1)));
    }
}

/// Goal: a shutdown of a timer that was never armed is not undone by a first arm at the same time. Method:
/// each comes between the other's two steps.
#[test]
fn a_first_arm_and_a_shutdown() {
    let (bases, id) = with_timer();
    interrupt_with_shutdown(&bases, id);
    let armed = bases.arm_tick(timer(&bases, id), Tick(200), local(0), at(0));
    assert!(armed.is_refused && !armed.was_pending);
    assert_pending_only_in(&bases, None);
}

/// Goal: an arm for a CPU that goes offline meanwhile goes to its adopter. Method: a new timer, one of that
/// base, and one of another.
#[test]
fn an_arm_loses_against_an_adoption() {
    for first in [None, Some(global(1)), Some(global(2))] {
        let (bases, id) = with_timer();
        if let Some(first) = first {
            let _ = bases.arm_tick(timer(&bases, id), Tick(100), first, at(0));
        }
        interrupt_with_adoption(&bases, 1, 0);
        let armed = bases.arm_tick(timer(&bases, id), Tick(200), global(1), at(0));
        assert_eq!((armed.base, armed.was_pending), (global(0), first.is_some()));
        assert_pending_only_in(&bases, Some(global(0)));
    }
}

/// Goal: a run that ends just when its CPU is back keeps its timer there. Method: adopted during the run,
/// prepared between the two looks that the end of the run takes.
#[test]
fn the_end_of_a_run_loses_against_a_return() {
    let (bases, id) = with_timer();
    let _ = bases.arm_tick(timer(&bases, id), Tick(1), local(1), at(0));
    let later = at(5000);
    let token = bases.collect_and_take(local(1), CpuId(1), later).expect("due");
    let expired = bases.pop(&token, later).expired.expect("due");
    let _ = bases.arm_tick(timer(&bases, id), Tick(90), local(1), later);
    let _ = bases.adopt(CpuId(1), CpuId(0), later);
    interrupt(&bases, move |bases| interrupt(bases, move |bases| bases.prepare(CpuId(1), later)));
    let finished = bases.finish(expired, later);
    assert_eq!((finished.base, finished.change.is_first), (local(1), true));
    assert!(finished.token.is_none());
    assert_pending_only_in(&bases, Some(local(1)));
}
