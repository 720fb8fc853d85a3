//! What is pending, by what it runs.

use super::{CpuId, MS, Machine, Nanos, Precision, TimerOptions};
use crate::time::sleep;
use crate::timer::pending::PendingKinds;
use crate::timer::{PendingTimers, RawTimer};
use core::future::Future;
use core::pin::pin;
use core::ptr::{NonNull, null_mut};
use core::task::{Context, Waker};
use core::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The counts of those whose code has `part` in its name.
fn counts(pending: &[PendingTimers], part: &str) -> Vec<usize> {
    pending.iter().filter(|timers| timers.name.contains(part)).map(|timers| timers.count).collect()
}

/// Goal: every timer is counted, by its closure and where it was armed, with its first and last moment, and
/// no more once it is cancelled or run. Method: closures of two places, exact and of ticks, a raw timer,
/// futures.
#[test]
#[allow(unsafe_code, reason = "a raw timer")]
fn what_is_pending_is_known_by_its_code() {
    let machine = Machine::builder().arm_locations().start().expect("it starts");
    let options = [Precision::Coarse, Precision::Tick, Precision::Exact];
    let many = options.map(|precision| {
        let timer = machine.timer(TimerOptions::new().precision(precision), |_| ());
        timer.arm_at(Nanos(machine.now().0 + 3600 * 1000 * MS)).expect("it runs");
        timer
    });
    let one = machine.timer(TimerOptions::new(), |_| panic!("it never runs"));
    one.arm_after(SECOND * 1800).expect("it runs");
    let raw = |_: *mut (), _: &super::Run<'_>| ();
    // SAFETY: its function does not use its argument.
    let memory = Box::pin(unsafe { RawTimer::new(machine, TimerOptions::new(), raw, null_mut()) });
    // SAFETY: it is pinned, and cancelled below.
    let foreign = unsafe { RawTimer::at(NonNull::from(&*memory)) };
    foreign.arm_after(SECOND * 60).expect("it runs");
    let entered = machine.enter();
    let mut waits = [pin!(sleep(SECOND * 7)), pin!(sleep(SECOND * 9))];
    for wait in &mut waits {
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }

    let pending = machine.pending();
    assert_eq!(machine.pending_count(), 7, "{pending:?}");
    assert_eq!(pending.iter().map(|timers| timers.count).collect::<Vec<_>>(), [3, 2, 1, 1], "{pending:?}");
    assert_eq!(counts(&pending, "what_is_pending_is_known_by_its_code"), [3, 1]);
    assert_eq!((counts(&pending, "waker"), counts(&pending, "a function")), (vec![2], vec![1]));
    let [of_many, futures, ..] = &pending[..] else { unreachable!("four of them") };
    let place = of_many.armed.expect("it is recorded");
    assert!(place.file().ends_with("pending.rs") && futures.armed.is_none(), "{pending:?}");
    let line = of_many.to_string();
    assert!(line.starts_with("3 of ") && line.contains("pending.rs:") && line.contains(" s to "), "{line}");
    let apart = futures.last.0 - futures.first.0;
    assert!(futures.function == 0 && (1..4000 * MS).contains(&apart), "{futures:?}");

    drop(many);
    assert!(foreign.cancel_sync().expect("this is no callback"));
    assert_eq!((counts(&machine.pending(), "_code"), machine.pending_count()), (vec![1], 3));
    drop(entered);
    machine.shutdown();
    assert_eq!((machine.pending(), machine.pending_count()), (vec![], 0));
}

/// Goal: a table that is too small loses nothing. Method: three closures, more than a host of two CPUs
/// has, and room for one each.
#[test]
fn a_small_table_is_made_larger() {
    let machine = Machine::start().expect("it starts");
    let timers = [
        machine.timer(TimerOptions::new(), |_| println!("a")),
        machine.timer(TimerOptions::new(), |_| println!("b")),
        machine.timer(TimerOptions::new(), |_| println!("c")),
    ];
    for timer in &timers {
        timer.arm_at(Nanos(machine.now().0 + 3600 * 1000 * MS)).expect("it runs");
    }
    let cpus: Vec<CpuId> = machine.core.count_pending().map(|(cpu, _)| cpu).collect();
    let kinds: Vec<PendingKinds> = cpus.chunks(4).map(|bases| machine.pending_of(bases[0], 1)).collect();
    let counts: Vec<usize> = kinds.iter().flat_map(PendingKinds::values).map(|timers| timers.count).collect();
    assert_eq!(counts, [1, 1, 1]);
    machine.shutdown();
}
