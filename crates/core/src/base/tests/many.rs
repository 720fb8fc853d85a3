//! Arms of many timers together.

use super::{CpuId, Nanos, TICK, TimerRef, add, at, bases, every_base, global};
use crate::base::{Arm, ArmOfMany, Cancelled, ExpiryChange};
use alloc::vec::Vec;

/// Goal: many that are armed together are armed as one after the other, and of those that are another case
/// nothing is known and nothing was done. Method: timers in every state, one of them twice, on two bases that
/// are alike; their results, where they are then, and what the base says.
#[test]
fn many_at_once() {
    let when = |tick: u64| Nanos(tick * TICK);
    let scene = || {
        let mut bases = bases(2);
        let timers: [_; 7] = core::array::from_fn(|payload| add(&mut bases, payload as u32).1);
        let [_, idle, pending, elsewhere, pinned, dead, _] = timers;
        let _ = bases.arm(idle, when(20), global(0), at(1));
        assert_eq!(bases.cancel(idle, at(1)), Cancelled::WasPending);
        let _ = bases.arm(pending, when(20), global(0), at(1));
        let _ = bases.arm(elsewhere, when(20), global(1), at(1));
        let _ = bases.arm(pinned, Arm::at(when(20)).on(CpuId(0)), global(0), at(1));
        assert_eq!(bases.shutdown(dead, at(1)), Cancelled::Idle);
        bases.lock(global(0), None).is_idle = true;
        (bases, timers)
    };
    let moments = [300, 200, 9, 12, 13, 14, 400, 100];
    let [(one, of_one), (many, of_many)] = [scene(), scene()];
    let each = |timers: [_; 7]| {
        let again = [timers[2]];
        timers.into_iter().chain(again).zip(moments.map(when))
    };
    let singly = each(of_one).map(|(timer, expires)| one.arm_fast(timer, expires, global(0), at(5)));
    let (mut change, mut known) = (ExpiryChange::default(), Vec::new());
    for armed in singly {
        known.push(armed.map(|armed| armed.was_pending));
        change = change.and(armed.map(|armed| armed.change).unwrap_or_default());
    }
    assert_eq!(known, [Some(false), Some(false), Some(true), None, None, None, Some(false), Some(true)]);
    assert!(change.must_publish());
    let mut arms: Vec<_> = each(of_many).map(|(timer, expires)| ArmOfMany::new(timer, expires)).collect();
    arms.insert(3, ArmOfMany::none());
    assert_eq!(many.arm_many_fast(&mut arms, global(0), at(5)), change);
    assert_eq!(arms.remove(3).was_pending(), None);
    assert_eq!(arms.iter().map(ArmOfMany::was_pending).collect::<Vec<_>>(), known);
    for id in every_base(2) {
        let [(one, first), (many, same)] = [&one, &many].map(|bases| {
            let mut base = bases.lock(id, None);
            (base.counters, base.next_expiry())
        });
        assert_eq!((one, first), (many, same), "{id:?}");
    }
    let linked = |timers: [TimerRef<u32>; 7]| timers.map(|timer| timer.linked());
    assert_eq!(linked(of_one), linked(of_many));
    many.check();
    // Where all are another case no lock is taken.
    let _held = many.lock(global(0), None);
    let mut elsewhere = [ArmOfMany::new(of_many[3], when(7))];
    assert_eq!(many.arm_many_fast(&mut elsewhere, global(0), at(5)), ExpiryChange::default());
    assert_eq!(elsewhere[0].was_pending(), None);
}
