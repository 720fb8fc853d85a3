//! Time moves when nobody has anything to do, and only then.

use super::{TimeError, block_on};
use crate::Machine;
use crate::time::{Duration, Instant, sleep_until};
use core::future::Future;
use core::task::{Context, Poll, Waker};

fn paused() -> &'static Machine {
    let machine = Machine::builder().virtual_time().start().expect("starts");
    machine.pause().expect("its time can be paused");
    machine
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Goal: a deadline that was moved is neither early nor late. Method: later, then earlier, jumping past the old
/// one and up to the new one.
#[test]
fn a_deadline_that_was_moved_is_met() {
    let machine = paused();
    let entered = machine.enter();
    let mut context = Context::from_waker(Waker::noop());
    let start = Instant::now();
    let mut sleep = Box::pin(sleep_until(start + ms(600)));
    assert!(sleep.as_mut().poll(&mut context).is_pending());
    machine.advance(ms(100)).expect("it is paused");
    sleep.as_mut().reset(start + ms(701));
    assert!(sleep.as_mut().poll(&mut context).is_pending());
    for step in [550] {
        machine.advance(ms(step)).expect("it is paused");
        assert!(sleep.as_mut().poll(&mut context).is_pending(), "at {:?}", start.elapsed());
    }
    machine.advance(ms(51)).expect("it is paused");
    assert_eq!(sleep.as_mut().poll(&mut context), Poll::Ready(()));
    drop(entered);
    machine.shutdown();
}
