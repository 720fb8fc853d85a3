//! A child that was forked has its parent's sleeps and none of its threads: it may drop them, and takes no
//! lock.
//!
//! In a process of its own: other tests' threads could be inside a lock of the standard library at the fork.
#![allow(unsafe_code, reason = "forks")]

use core::future::Future;
use core::task::{Context, Poll, Waker};
use quietcore_live::Machine;
use quietcore_live::time::{Instant, Precision, Sleep, sleep};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

const MILLI: Duration = Duration::from_millis(1);

fn poll(nap: Pin<&mut Sleep>) -> Poll<()> {
    nap.poll(&mut Context::from_waker(Waker::noop()))
}

/// What the child does; says whether all was well.
fn child(naps: Vec<Pin<Box<Sleep>>>) -> bool {
    let mut is_well = true;
    for (number, mut nap) in naps.into_iter().enumerate() {
        if number % 3 == 1 {
            nap.as_mut().reset(Instant::now() + MILLI);
        }
        if number % 3 == 2 {
            let polled = catch_unwind(AssertUnwindSafe(|| poll(nap.as_mut())));
            is_well &= polled.is_err();
        }
        drop(nap);
    }
    is_well
}

/// For ever, a thread arms and cancels, and now and then gives sleeps away that wait on the CPU that it is
/// on.
fn arm(machine: &'static Machine, give: &SyncSender<Vec<Pin<Box<Sleep>>>>) {
    let _entered = machine.enter();
    loop {
        let naps = (0..10).map(|number| {
            let precision = [Precision::Coarse, Precision::Tick, Precision::Exact][number as usize % 3];
            let mut nap = Box::pin(sleep(MILLI * (60_000 + number)).with_precision(precision));
            assert_eq!(poll(nap.as_mut()), Poll::Pending);
            nap
        });
        if let Err(TrySendError::Disconnected(_)) = give.try_send(naps.collect()) {
            return;
        }
    }
}

/// Goal: in a forked child sleeps are dropped, reset and refused, even when the fork came while a lock was
/// held. Method: many forks while other threads arm and cancel all the time; a child that hangs is noticed
/// by the parent.
#[test]
fn a_child_may_drop_what_it_has() {
    let machine = Machine::start().expect("threads and timers can be had");
    let _entered = machine.enter();
    let (give, naps) = sync_channel(1);
    let busy: Vec<_> = (0..3)
        .map(|_| {
            let give = give.clone();
            thread::spawn(move || arm(machine, &give))
        })
        .collect();
    drop(give);
    for round in 0..100 {
        let naps: Vec<_> = (0..3).flat_map(|_| naps.recv().expect("they give for ever")).collect();
        // SAFETY: the child allocates nothing that could wait for a lock of the parent's allocator (glibc
        // keeps its allocator usable in children), and leaves with `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork");
        if pid == 0 {
            std::panic::set_hook(Box::new(|_| {}));
            let is_well = child(naps);
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(if is_well { 7 } else { 1 }) };
        }
        assert_eq!(wait_for(pid), Some(7), "round {round}");
    }
    drop(naps);
    busy.into_iter().for_each(|thread| thread.join().expect("no panic"));
    machine.shutdown();
}

/// The exit code of the child; `None` if it hung, and was killed, or died.
fn wait_for(pid: libc::pid_t) -> Option<i32> {
    let mut status = 0;
    for _ in 0..20_000 {
        // SAFETY: the pointer is to a local variable.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == pid {
            return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        }
        thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: our child, which was not waited for.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, &raw mut status, 0);
    }
    None
}
