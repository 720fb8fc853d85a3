//! The queue of deadlines, beside a sorted list.

use crate::scene::{Dice, MILLI, NANO, Stopped, Woken, check_books};
use core::task::{Context, Poll, Waker};
use futures_util::StreamExt;
use quietcore_live::time::delay_queue::Key;
use quietcore_live::time::{DelayQueue, Duration, Instant};
use quietcore_live::virtual_time;

fn take<T>(queue: &mut DelayQueue<T>, waker: &Waker) -> Poll<Option<(T, Instant, Key)>> {
    let expired = queue.poll_expired(&mut Context::from_waker(waker));
    expired
        .map(|expired| expired.map(|expired| (expired.deadline(), expired.key(), expired.into_inner())))
        .map(|expired| expired.map(|(deadline, key, value)| (value, deadline, key)))
}

type Change = fn(&mut DelayQueue<u32>, Key);

/// What a queue holds: value, deadline, key; those of one deadline as they were put there.
#[derive(Default)]
struct Expected(Vec<(u32, Instant, Key)>);

impl Expected {
    fn put(&mut self, value: u32, deadline: Instant, key: Key) {
        let place = self.0.partition_point(|(_, other, _)| *other <= deadline);
        self.0.insert(place, (value, deadline, key));
    }
}

/// Goal: values come out in the order of their deadlines, never early, and keys stay what they are. Method:
/// random inserts, removals, resets, jumps of the clock and compactions on the queue and on a sorted list;
/// keys that were used up are tried, too. Several seeds.
#[test]
fn random_steps() {
    for seed in 0..30 {
        let scene = Stopped::new();
        let (mut dice, mut queue, mut expected) = (Dice::new(seed), DelayQueue::new(), Expected::default());
        let mut used = Vec::new();
        for step in 0..500 {
            let at = format!("seed {seed} step {step}");
            let deadline = Instant::now() - MILLI * 5 + Duration::from_micros(dice.below(50_000));
            match dice.below(10) {
                0..4 => {
                    let key = queue.insert_at(step, deadline);
                    assert!(!used.contains(&key), "{at}: a key comes twice");
                    expected.put(step, deadline, key);
                }
                4..6 if !expected.0.is_empty() => {
                    let (value, _, key) = expected.0.remove(dice.below(expected.0.len() as u64) as usize);
                    queue.reset_at(&key, deadline);
                    expected.put(value, deadline, key);
                }
                6 if !expected.0.is_empty() => {
                    let entry = expected.0.remove(dice.below(expected.0.len() as u64) as usize);
                    let removed = queue.remove(&entry.2);
                    assert_eq!((removed.deadline(), removed.key()), (entry.1, entry.2), "{at}");
                    assert_eq!(removed.into_inner(), entry.0, "{at}");
                    used.push(entry.2);
                }
                7 if dice.below(5) == 0 => {
                    queue.compact();
                    assert_eq!(queue.capacity(), queue.len(), "{at}");
                }
                _ => scene.advance(Duration::from_micros(dice.below(8_000))),
            }
            used.iter().for_each(|key| assert!(queue.try_remove(key).is_none(), "{at}: {key:?}"));
            if dice.below(3) == 0 {
                take_all(&mut queue, &mut expected, &mut used, &at);
            }
            assert_eq!(queue.len(), expected.0.len(), "{at}");
            assert_eq!(queue.peek(), expected.0.first().map(|entry| entry.2), "{at}");
            expected.0.iter().for_each(|entry| assert_eq!(queue.deadline(&entry.2), entry.1, "{at}"));
        }
        drop(queue);
        check_books(scene.machine);
    }
}

fn take_all(queue: &mut DelayQueue<u32>, expected: &mut Expected, used: &mut Vec<Key>, at: &str) {
    loop {
        let due = expected.0.first().is_some_and(|entry| entry.1 <= Instant::now());
        match take(queue, Waker::noop()) {
            Poll::Ready(Some(entry)) => {
                assert!(due, "{at}: {entry:?} is early");
                assert_eq!(entry, expected.0.remove(0), "{at}");
                used.push(entry.2);
            }
            Poll::Ready(None) => return assert!(expected.0.is_empty(), "{at}: not empty"),
            Poll::Pending => return assert!(!due && !expected.0.is_empty(), "{at}: late"),
        }
    }
}

/// Goal: the task that polled is woken at the first deadline, and before that when there is another first one
/// or none. Method: each change, with the clock a nanosecond before the deadline and at it.
#[test]
fn whom_a_change_wakes() {
    let scene = Stopped::new();
    let changes: [(&str, Change, bool); 8] = [
        ("nothing", |_, _| {}, false),
        ("a later insert", |queue, _| _ = queue.insert(2, MILLI * 30), false),
        (
            "the removal of a later one",
            |queue, _| {
                let later = queue.insert(2, MILLI * 30);
                queue.remove(&later);
            },
            false,
        ),
        (
            "a reset of a later one",
            |queue, _| {
                let later = queue.insert(2, MILLI * 30);
                queue.reset(&later, MILLI * 40);
            },
            false,
        ),
        ("an earlier insert", |queue, _| _ = queue.insert(2, MILLI * 10), true),
        ("an insert in the past", |queue, _| _ = queue.insert_at(2, Instant::now() - MILLI), true),
        ("a reset", |queue, key| queue.reset(&key, MILLI * 25), true),
        ("the removal of the last", |queue, key| _ = queue.remove(&key), true),
    ];
    for (name, change, wakes) in changes {
        let (woken, waker) = Woken::new();
        let mut queue = DelayQueue::new();
        let key = queue.insert(1, MILLI * 20);
        assert!(take(&mut queue, &waker).is_pending());
        change(&mut queue, key);
        assert_eq!(woken.count(), u32::from(wakes), "{name}");
        let Some(first) = queue.peek() else { continue };
        let deadline = queue.deadline(&first);
        let before = woken.count();
        if deadline > Instant::now() {
            assert!(take(&mut queue, &waker).is_pending(), "{name}");
            scene.advance_to(deadline - NANO);
            assert_eq!(woken.count(), before, "{name}");
            scene.advance_to(deadline);
            assert_eq!(woken.count(), before + 1, "{name}");
        }
        let Poll::Ready(Some((_, due, key))) = take(&mut queue, &waker) else { panic!("{name}: late") };
        assert_eq!((due, key), (deadline, first), "{name}");
    }
}

/// Goal: a queue that went to another task wakes that one. Method: two tasks poll, one after the other; then
/// an earlier insert, and the removal of the last.
#[test]
fn the_last_that_polled_is_woken() {
    let _scene = Stopped::new();
    let ((first, first_waker), (last, last_waker)) = (Woken::new(), Woken::new());
    let mut queue = DelayQueue::new();
    let keys = [queue.insert(1, MILLI * 20)];
    assert!(take(&mut queue, &first_waker).is_pending());
    assert!(take(&mut queue, &last_waker).is_pending());
    let earlier = queue.insert(2, MILLI * 10);
    assert_eq!((first.count(), last.count()), (0, 1));
    assert!(take(&mut queue, &last_waker).is_pending());
    for key in [earlier, keys[0]] {
        queue.remove(&key);
    }
    assert_eq!((first.count(), last.count()), (0, 2));
}

/// Goal: a queue waits with one timer, which is armed once for each first deadline, and let go of when
/// nothing is left. Method: polls that wait; then the last value is removed or cleared, and the moment
/// passes.
#[test]
fn nothing_is_left_of_an_empty_queue() {
    let scene = Stopped::new();
    let changes: [(Change, u32); 2] =
        [(|queue, key| _ = queue.remove(&key), 1), (|queue, _| queue.clear(), 1)];
    for (number, (change, wakes)) in changes.into_iter().enumerate() {
        let (woken, waker) = Woken::new();
        let mut queue = DelayQueue::new();
        let key = queue.insert(1, MILLI * 20);
        for _ in 0..3 {
            assert!(take(&mut queue, &waker).is_pending());
        }
        assert_eq!(scene.machine.metrics().sum(|cpu| cpu.bases.armed), number as u64 + 1);
        change(&mut queue, key);
        assert_eq!(woken.count(), wakes);
        if number == 0 {
            assert!(matches!(take(&mut queue, &waker), Poll::Ready(None)));
        }
        scene.advance(MILLI * 30);
        assert_eq!(woken.count(), wakes, "it was woken for nothing");
    }
}

/// Goal: clearing a queue that is empty wakes no task. Method: its task has seen that it is empty.
#[test]
fn clearing_nothing_wakes_nobody() {
    let _scene = Stopped::new();
    let (woken, waker) = Woken::new();
    let mut queue: DelayQueue<()> = DelayQueue::new();
    assert!(matches!(take(&mut queue, &waker), Poll::Ready(None)));
    queue.clear();
    assert_eq!(woken.count(), 0);
}

/// Goal: room is made for what has none, and given back by shrinking. Method: less than there is room for,
/// and more.
#[test]
fn room() {
    let _scene = Stopped::new();
    let mut queue = DelayQueue::with_capacity(8);
    queue.insert((), MILLI);
    for (additional, capacity) in [(0, 8), (7, 8), (9, 10)] {
        queue.reserve(additional);
        assert_eq!(queue.capacity(), capacity, "for {additional} more");
    }
    queue.shrink_to_fit();
    assert_eq!((queue.capacity(), queue.len()), (1, 1));
}

/// Goal: a cleared queue is as a new one, its keys are stale, its task is woken. Method: before and after
/// compaction.
#[test]
fn clear() {
    let scene = Stopped::new();
    for is_compacted in [false, true] {
        let (woken, waker) = Woken::new();
        let mut queue = DelayQueue::with_capacity(8);
        let keys: Vec<_> = (0..5).map(|value| queue.insert(value, MILLI * value)).collect();
        if is_compacted {
            queue.compact();
        }
        queue.reserve(7);
        assert!(queue.capacity() >= 12);
        queue.remove(&keys[0]);
        assert!(take(&mut queue, &waker).is_pending());
        queue.clear();
        assert_eq!((woken.count(), queue.len(), queue.peek()), (1, 0, None));
        assert!(keys.iter().all(|key| queue.try_remove(key).is_none()));
        assert!(matches!(take(&mut queue, &waker), Poll::Ready(None)));
        queue.insert(9, Duration::ZERO);
        assert!(matches!(take(&mut queue, &waker), Poll::Ready(Some((9, ..)))));
    }
    check_books(scene.machine);
}

/// Goal: a task that has found the queue empty is told of what comes then. Method: a queue that was always
/// empty, and one that has handed out its last value.
#[test]
fn an_insert_wakes_who_found_it_empty() {
    let _scene = Stopped::new();
    for was_used in [false, true] {
        let ((woken, waker), mut queue) = (Woken::new(), DelayQueue::new());
        if was_used {
            queue.insert(1, Duration::ZERO);
            assert!(matches!(take(&mut queue, &waker), Poll::Ready(Some((1, ..)))));
        }
        assert!(matches!(take(&mut queue, &waker), Poll::Ready(None)));
        queue.insert(2, MILLI);
        assert_eq!(woken.count(), 1, "{was_used}");
    }
}

/// Goal: a stale key is refused. Method: each call that panics, with a key that was handed out.
#[test]
fn stale_keys_panic() {
    let _scene = Stopped::new();
    let mut queue = DelayQueue::new();
    let key = queue.insert((), Duration::ZERO);
    let Poll::Ready(Some(_)) = take(&mut queue, Waker::noop()) else { panic!("it is due") };
    let calls: [fn(&mut DelayQueue<()>, Key); 3] = [
        |queue, key| _ = queue.remove(&key),
        |queue, key| queue.reset(&key, MILLI),
        |queue, key| assert!(queue.deadline(&key) > Instant::now()),
    ];
    for call in calls {
        let run = std::panic::AssertUnwindSafe(|| call(&mut queue, key));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}

/// Goal: as a stream it ends when it is empty. Method: time runs by itself.
#[test]
fn as_a_stream() {
    let _scene = Stopped::new();
    let mut queue: DelayQueue<u32> = DelayQueue::default();
    for value in [30, 10, 20] {
        queue.insert(value, MILLI * value);
    }
    let values = virtual_time::block_on(queue.map(|expired| expired.into_inner()).collect::<Vec<_>>());
    assert_eq!(values, [10, 20, 30]);
}

/// Goal: a queue that was polled goes by the clock of its own machine, whichever thread uses it. Method: on a
/// machine whose time was moved, a thread without a machine gives one value another deadline, and leaves one.
#[test]
fn the_clock_is_its_machines() {
    let scene = Stopped::new();
    let start = Instant::now();
    let mut queue = DelayQueue::new();
    let key = queue.insert("moved", MILLI * 100_000);
    assert!(take(&mut queue, Waker::noop()).is_pending());
    scene.advance_to(start + MILLI * 47_000);
    let elsewhere = || {
        queue.reset(&key, MILLI * 5_000);
        let new = queue.insert("left", MILLI * 6_000);
        [&key, &new].map(|key| queue.deadline(key))
    };
    let deadlines = std::thread::scope(|scope| scope.spawn(elsewhere).join().expect("no panic"));
    assert_eq!(deadlines, [52_000, 53_000].map(|millis| start + MILLI * millis));
}

/// Goal: a queue of values that may go to another thread, but not be shared, is shared itself. Method: the
/// compiler; two threads look at one at once.
#[test]
fn it_is_sync() {
    let _scene = Stopped::new();
    let mut queue = DelayQueue::new();
    let deadline = Instant::now() + MILLI;
    let key = queue.insert_at(core::cell::Cell::new(7), deadline);
    let look = || (queue.peek(), queue.deadline(&key), queue.len());
    let seen = std::thread::scope(|scope| {
        let other = scope.spawn(look);
        [look(), other.join().expect("no panic")]
    });
    assert_eq!(seen, [(Some(key), deadline, 1); 2]);
}
