//! Runs that end late: while a task is about to wait for that, and when their timer is gone.
#![allow(unsafe_code, reason = "a waker whose clone is a call of the test, and a timer that its owner frees")]

use crate::timer::{RawTimer, Run, TimerOptions};
use crate::{Machine, OnPanic};
use core::cell::RefCell;
use core::mem::MaybeUninit;
use core::pin::pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

const PATIENCE: Duration = Duration::from_secs(60);

type Call = Box<dyn FnOnce()>;

thread_local! {
    static AT_CLONE: RefCell<Option<Call>> = const { RefCell::new(None) };
}

const CALLS: RawWakerVTable = RawWakerVTable::new(clone, ignore, ignore, ignore);

fn clone(_: *const ()) -> RawWaker {
    if let Some(call) = AT_CLONE.take() {
        call();
    }
    RawWaker::new(core::ptr::null(), &CALLS)
}

const fn ignore(_: *const ()) {}

/// Goal: a run that ends after a task has looked, and before its waker is known, is not waited for: nothing
/// would wake the task. Method: the waker's clone lets the callback end, and waits until it has.
#[test]
fn a_run_that_ends_before_the_waker_is_known() {
    let machine = Machine::start().expect("it starts");
    let (began, has_begun) = channel();
    let (end, may_end) = channel::<()>();
    let timer = Arc::new(machine.timer(TimerOptions::new(), move |_| {
        began.send(()).expect("the test waits");
        may_end.recv_timeout(PATIENCE).expect("the test goes on");
    }));
    timer.arm_after(Duration::ZERO).expect("it is running");
    has_begun.recv_timeout(PATIENCE).expect("it runs");
    let same = Arc::clone(&timer);
    AT_CLONE.set(Some(Box::new(move || {
        end.send(()).expect("the callback waits");
        while same.is_running() {
            thread::yield_now();
        }
    })));
    // SAFETY: the calls own nothing, and may be made from any thread.
    let waker = unsafe { Waker::from_raw(RawWaker::new(core::ptr::null(), &CALLS)) };
    let polled = pin!(timer.cancel_and_wait()).poll(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Ready(false));
    assert!(AT_CLONE.take().is_none(), "the run has ended in between");
    machine.shutdown();
}

/// Goal: a timer that its callback releases is not touched after that. Method: what was the timer is full of
/// ones when the callback ends, which would be periods, an address, and a state that no timer is in.
#[test]
fn a_released_timer_is_not_touched() {
    struct Own {
        timer: MaybeUninit<RawTimer>,
        released: Sender<()>,
    }
    unsafe fn release(own: *mut (), run: &Run<'_>) {
        run.release();
        // SAFETY: the address of what the test keeps; the timer in it is not used any more.
        let own = unsafe { &mut *own.cast::<Own>() };
        // SAFETY: bytes may be anything there.
        unsafe { own.timer.as_mut_ptr().write_bytes(1, 1) };
        own.released.send(()).expect("the test waits");
    }
    let machine = Machine::builder().on_panic(OnPanic::Continue).start().expect("it starts");
    let (released, is_released) = channel();
    let own = Box::into_raw(Box::new(Own { timer: MaybeUninit::uninit(), released }));
    // SAFETY: `release` is called once with this address, which the test keeps until then.
    unsafe {
        let timer = (*own).timer.write(RawTimer::new(machine, TimerOptions::new(), release, own.cast()));
        RawTimer::at(NonNull::from(timer)).arm_after(Duration::ZERO).expect("it is running");
    }
    is_released.recv_timeout(PATIENCE).expect("it runs");
    machine.shutdown();
    assert_eq!(machine.metrics().sum(|cpu| cpu.panics), 0);
    // SAFETY: no thread uses it any more. What was the timer was overwritten, and has nothing to drop.
    let own = unsafe { Box::from_raw(own) };
    // SAFETY: as many bytes as were written.
    let bytes =
        unsafe { core::slice::from_raw_parts(own.timer.as_ptr().cast::<u8>(), size_of::<RawTimer>()) };
    assert!(bytes.iter().all(|byte| *byte == 1));
}

/// Goal: where a raw timer was armed is kept nowhere: what lies behind it is its owner's. Method: a machine
/// that records locations, and memory behind the timer that is full of ones.
#[test]
fn nothing_is_written_behind_a_raw_timer() {
    #[repr(C)]
    struct Own {
        timer: RawTimer,
        behind: [u8; 64],
    }
    unsafe fn nothing(_: *mut (), _: &Run<'_>) {}
    let machine = Machine::builder().arm_locations().start().expect("it starts");
    // SAFETY: the function does nothing.
    let timer = unsafe { RawTimer::new(machine, TimerOptions::new(), nothing, core::ptr::null_mut()) };
    let own = Box::into_raw(Box::new(Own { timer, behind: [1; 64] }));
    // SAFETY: the timer stays there until it is idle again.
    unsafe {
        let timer = RawTimer::at(NonNull::new_unchecked(own).cast());
        timer.arm_after(PATIENCE).expect("it is running");
        assert_eq!(timer.cancel_sync(), Ok(true));
    }
    // SAFETY: no thread uses it any more.
    let own = unsafe { Box::from_raw(own) };
    assert_eq!(own.behind, [1; 64]);
    machine.shutdown();
}
