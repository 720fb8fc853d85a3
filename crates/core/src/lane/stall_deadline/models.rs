//! The deadline word and the requested alarm under weak memory: no request is slept through.

use super::{LaneWakeups, StallDeadline};
use crate::sync::models::ends;
use crate::sync::{AtomicU32, Ordering};
use crate::{Actions, Nanos, StallPolicy};
use alloc::collections::BTreeSet;
use core::time::Duration;
use loom::sync::{Arc, Mutex};
use loom::thread;

/// What the tree's locks guard, as far as it matters here: whether it is idle, and the first event that is
/// published.
#[derive(Debug, Default)]
struct Tree {
    is_idle: bool,
    /// The lane was taken out.
    is_isolated: bool,
    event: Option<Nanos>,
}

struct World {
    tree: Mutex<Tree>,
    /// The root's word: a bit for each of two lanes.
    awake: AtomicU32,
    stall_deadline: StallDeadline,
}

/// What a foreign thread arms.
const EVENT: Nanos = Nanos(30);

/// The present, and when silence from now on counts.
const NOW: Nanos = Nanos(10);
const LATEST: Nanos = Nanos(13);

impl World {
    /// The deadline is `deadline`, as a lane has left it.
    fn new(awake: u32, deadline: Nanos) -> Arc<Self> {
        let world = Self {
            tree: Mutex::new(Tree { is_idle: awake == 0, ..Tree::default() }),
            awake: AtomicU32::new(awake),
            stall_deadline: StallDeadline::new(Nanos(1), StallPolicy::after(Duration::from_nanos(2))),
        };
        let _ = world.stall_deadline.word.pull(deadline);
        Arc::new(world)
    }

    fn tree(&self) -> loom::sync::MutexGuard<'_, Tree> {
        self.tree.lock().expect("no thread panicked")
    }

    /// A foreign thread arms the first timer of the tree.
    fn arm(&self) {
        let mut tree = self.tree();
        tree.event = Some(EVENT);
        let is_asked = tree.is_idle;
        drop(tree);
        if is_asked {
            self.stall_deadline.ask(EVENT, &mut Actions::new(2));
        }
    }

    /// The lane with this bit goes idle; returns when it wakes up by itself.
    fn go_idle(&self, bit: u32) -> Option<Nanos> {
        // AcqRel, and Acquire below: as the words of groups.
        let is_last = self.awake.fetch_and(!bit, Ordering::AcqRel) == bit;
        let mut tree = self.tree();
        tree.is_idle |= is_last;
        let until = tree.event.filter(|_| is_last);
        drop(tree);
        if is_last {
            let wakeups = LaneWakeups { first: until, told: until };
            self.stall_deadline.leave(NOW, || wakeups, || self.is_any_awake(), &mut Actions::new(2));
        }
        until
    }

    fn is_any_awake(&self) -> bool {
        self.awake.load(Ordering::Acquire) != 0
    }

    fn wake_up(&self, bit: u32) {
        self.awake.fetch_or(bit, Ordering::AcqRel);
        self.stall_deadline.arm(NOW, || !self.tree().is_isolated, &mut Actions::new(2));
    }

    /// The only lane is isolated: what is published needs an alarm from now on.
    fn isolate(&self) {
        let mut tree = self.tree();
        (tree.is_isolated, tree.is_idle) = (true, true);
        let event = tree.event;
        drop(tree);
        event.into_iter().for_each(|event| self.stall_deadline.ask(event, &mut Actions::new(2)));
    }

    /// A thread is up for the event: the lane by itself, or the sentinel. Returns whether it is the lane.
    fn check(&self, until: Option<Nanos>) -> bool {
        let deadline = self.stall_deadline.word.load();
        let is_met = |moment: Option<Nanos>| moment.is_some_and(|moment| moment <= EVENT);
        assert!(is_met(until) || is_met(deadline), "nobody is up: until {until:?}, deadline {deadline:?}");
        is_met(until)
    }
}

/// Goal: what a foreign thread asks for is not pushed away by the last lane that goes idle. Method: the
/// deadline is earlier than what is asked for, so that the pull changes nothing.
#[test]
fn the_last_one_goes_idle() {
    let found = ends(|| {
        let world = World::new(1, Nanos(20));
        let other = Arc::clone(&world);
        let arming = thread::spawn(move || other.arm());
        let until = world.go_idle(1);
        arming.join().expect("it ends");
        world.check(until)
    });
    assert_eq!(found, BTreeSet::from([false, true]));
}

/// Goal: the same when the lane was asleep, wakes up and goes idle again meanwhile, and so forgets what was
/// asked for. Method: as above, from an idle lane.
#[test]
fn a_lane_wakes_up_and_goes_idle_again() {
    let found = ends(|| {
        let world = World::new(0, Nanos(20));
        let other = Arc::clone(&world);
        let arming = thread::spawn(move || other.arm());
        world.tree().is_idle = false;
        world.wake_up(1);
        let until = world.go_idle(1);
        arming.join().expect("it ends");
        world.check(until)
    });
    assert_eq!(found, BTreeSet::from([false, true]));
}

/// Goal: a look of the sentinel loses nothing that is asked for meanwhile. Method: it takes the deadline
/// before anything is due.
#[test]
fn the_sentinel_looks_while_somebody_asks() {
    let found = ends(|| {
        let world = World::new(0, Nanos(20));
        let other = Arc::clone(&world);
        let arming = thread::spawn(move || other.arm());
        let taken = world.stall_deadline.word.take();
        let is_due = world.stall_deadline.take_due(Nanos(20));
        world.stall_deadline.resume(&mut Actions::new(2));
        arming.join().expect("it ends");
        assert!(!is_due && !world.check(None));
        taken
    });
    assert_eq!(found, BTreeSet::from([Some(Nanos(20))]));
}

/// Goal: a lane that wakes up while the last one goes idle is noticed if it gets stuck at once: the deadline
/// is not behind the moment at which its silence counts. Method: the deadline is such that the pull changes
/// nothing, and such that it does.
#[test]
fn another_one_wakes_up() {
    for deadline in [Nanos(12), Nanos(40)] {
        let found = ends(move || {
            let world = World::new(1, deadline);
            let other = Arc::clone(&world);
            let waking = thread::spawn(move || other.wake_up(2));
            let _ = world.go_idle(1);
            waking.join().expect("it ends");
            let found = world.stall_deadline.word.load();
            assert!(found.is_some_and(|at| at <= LATEST), "{found:?}");
            found
        });
        assert!(found.contains(&Some(deadline.min(LATEST))), "{found:?}");
    }
}

/// Goal: a lane that wakes up, pushes the deadline ahead and goes idle while it is isolated leaves what is
/// asked for because of that. Method: it does not know yet that it is; an earlier request that its waking up
/// voids, or none.
#[test]
fn a_lane_wakes_up_while_it_is_isolated() {
    for earlier in [None, Some(Nanos(20))] {
        let found = ends(move || {
            let world = World::new(1, Nanos(20));
            world.tree().event = Some(EVENT);
            earlier.into_iter().for_each(|at| world.stall_deadline.ask(at, &mut Actions::new(2)));
            let other = Arc::clone(&world);
            let isolating = thread::spawn(move || other.isolate());
            world.wake_up(1);
            let is_in_tree = || !world.tree().is_isolated;
            world.stall_deadline.hold(Nanos(29), is_in_tree, &mut Actions::new(2));
            isolating.join().expect("it ends");
            world.awake.store(0, Ordering::Relaxed);
            let none = LaneWakeups::default();
            world.stall_deadline.leave(NOW, || none, || world.is_any_awake(), &mut Actions::new(2));
            world.check(None)
        });
        assert_eq!(found, BTreeSet::from([false]));
    }
}
