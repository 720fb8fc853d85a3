//! Keys: what ends one, and what memory may be handed over.

use quietcore_wheel::{Full, Slot, StaleKey, Tick, Timers};

/// Goal: every way to end a timer makes its key stale, and the slot's next key does not revive it.
#[test]
fn a_key_ends_with_its_timer() {
    let mut timers = Timers::new(Tick(0), [const { Slot::new() }; 1]);
    let cancelled = timers.arm(Tick(5), 1).unwrap();
    assert_eq!(timers.cancel(cancelled), Ok(1));
    let expired = timers.arm(Tick(5), 2).unwrap();
    assert_eq!(timers.next_expired(Tick(6)).map(|expired| expired.value), Some(2));
    let living = timers.arm(Tick(15), 3).unwrap();
    for stale in [cancelled, expired] {
        assert_ne!(stale, living);
        assert_eq!(timers.cancel(stale), Err(StaleKey));
        assert_eq!(timers.re_arm(stale, Tick(9)), Err(StaleKey));
        assert_eq!(timers.reduce(stale, Tick(9)), Err(StaleKey));
        assert_eq!((timers.get(stale), timers.expires(stale)), (None, None));
    }
    assert_eq!((timers.get(living), timers.expires(living)), (Some(&3), Some(Tick(15))));
}

/// Goal: a full storage gives the value back and keeps what it has. Method: an array of two.
#[test]
fn a_full_storage_says_so() {
    let mut timers = Timers::new(Tick(0), [const { Slot::new() }; 2]);
    let first = timers.arm(Tick(5), "a").unwrap();
    timers.arm(Tick(6), "b").unwrap();
    assert_eq!(timers.arm(Tick(7), "c"), Err(Full("c")));
    assert_eq!((timers.len(), timers.capacity()), (2, 2));
    timers.cancel(first).unwrap();
    timers.arm(Tick(7), "c").unwrap();
    timers.check();
}

/// Goal: memory can be used again, and keys of its earlier owner are not taken for ours.
#[test]
fn a_storage_can_be_used_again() {
    let mut memory: Vec<Slot<String>> = std::iter::repeat_with(Slot::new).take(3).collect();
    let mut earlier = Timers::new(Tick(0), &mut memory[..]);
    let old = earlier.arm(Tick(5), "left behind".to_owned()).unwrap();
    earlier.arm(Tick(500), "left behind".to_owned()).unwrap();
    let mut timers = Timers::new(Tick(100), &mut memory[..]);
    assert_eq!(timers.cancel(old), Err(StaleKey));
    assert_eq!(timers.next_expired(Tick(1000)), None);
    for count in 0..3 {
        timers.arm(Tick(2000 + count), "new".to_owned()).unwrap();
    }
    timers.check();
    assert_eq!(timers.len(), 3);
    assert_eq!(timers.cancel(old), Err(StaleKey), "its slot is taken again");
}

/// Goal: an empty storage is full, and a growing one grows. Method: both.
#[test]
fn growth() {
    let mut none: Timers<u8, [Slot<u8>; 0]> = Timers::new(Tick(0), []);
    assert_eq!(none.arm(Tick(1), 7), Err(Full(7)));
    let mut timers = Timers::new(Tick(0), Vec::new());
    let count = if cfg!(miri) { 20 } else { 1000 };
    let keys: Vec<_> = (0..count).map(|id| timers.arm_growing(Tick(id % 77), id)).collect();
    assert_eq!(timers.len(), count as usize);
    for (id, key) in keys.into_iter().enumerate() {
        assert_eq!(timers.cancel(key), Ok(id as u64));
    }
    timers.check();
    assert!(timers.is_empty());
}

/// Goal: what next_expired caused may cancel what would have come next. Method: two due together.
#[test]
fn a_collected_timer_can_still_be_cancelled_or_moved() {
    let mut timers = Timers::new(Tick(0), Vec::new());
    let keys = [0, 1, 2].map(|id| timers.arm_growing(Tick(5), id));
    assert_eq!(timers.next_expired(Tick(6)).map(|expired| expired.value), Some(2));
    timers.cancel(keys[1]).unwrap();
    // The bucket 62 ticks on has the number of the one it was collected from: it must move all the same.
    timers.re_arm(keys[0], Tick(7 + 62)).unwrap();
    timers.check();
    assert_eq!(timers.next_expired(Tick(69)), None);
    assert_eq!(timers.next_expired(Tick(70)).map(|expired| expired.value), Some(0));
}

/// Goal: timers can move to another thread, as the front page says. Method: they do, and expire there.
#[test]
fn timers_can_move_to_another_thread() {
    let mut timers = Timers::new(Tick(0), Vec::new());
    timers.arm_growing(Tick(5), "moved");
    let thread = std::thread::spawn(move || timers.next_expired(Tick(6)).map(|expired| expired.value));
    assert_eq!(thread.join().unwrap(), Some("moved"));
}
