//! Each rule of run queues by itself.

mod world;

use super::{Activity, ItemQueue, Moved, Unplaced, WakeTo};
use crate::lane::{LaneLook, LaneTable, Role};
use crate::realtime::{Awareness, CpuPriority};
use crate::softirq::{Runner, Vector, VectorSet};
use crate::{CpuId, CpuSet, Settings, StallPolicy};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use world::{Bed, LANES, Piece, SPARE, World, bound, free, priority, realtime};

const NORMAL: Activity = Activity::Normal;

/// Goal: what is bound to a lane goes there, whatever that lane is, wakes it and no other, and is never taken
/// from it. Method: a lane that is marked, closed and busy, beside one that sleeps.
#[test]
fn what_is_bound_stays() {
    let world = World::new();
    world.queues[1].is_open.set(false);
    world.mark(1);
    world.set_busy(1, NORMAL);
    world.sleep(2);
    for name in 0..2 {
        world.enqueue(bound(name, 1));
    }
    world.enqueue(Piece { bound: Some(CpuId(1)), ..realtime(2, 1, 9) });
    assert_eq!((world.waiting(), world.kicks()), (vec![0, 3, 0, 0], vec![0, 3, 0, 0]));
    assert!(!world.must_help(2));
    assert_eq!((world.next(2, Role::Lane), world.next(0, Role::Lane)), (None, None));
    let order: Vec<_> = (0..4).map(|_| world.next(1, Role::Lane)).collect();
    assert_eq!(order, [Some(2), Some(0), Some(1), None]);
}

/// Goal: by `WakeTo` an item goes to where it ran last before the lane that wakes it, or the other way round;
/// from a stranger to where it ran last; never to a lane that is marked or closed if there is another; and to
/// a marked one if all are. Method: one item for each.
#[test]
fn where_normal_items_go() {
    let place = |wake_to, here: Option<u16>, marked: &[u16]| {
        let world = World { wake_to, here: Cell::new(here.map(CpuId)), ..World::new() };
        marked.iter().for_each(|cpu| world.mark(*cpu));
        world.enqueue(free(0, 1));
        world.waiting().iter().position(|waiting| *waiting > 0)
    };
    assert_eq!(place(WakeTo::Last, Some(2), &[]), Some(1), "last before here");
    assert_eq!(place(WakeTo::Here, Some(2), &[]), Some(2), "here before last");
    assert_eq!(place(WakeTo::Here, None, &[]), Some(1), "a stranger is on no lane");
    assert_eq!(place(WakeTo::Last, Some(2), &[1]), Some(2), "the last one is marked");
    assert_eq!(place(WakeTo::Here, Some(2), &[2]), Some(1), "the one that wakes it is marked");
    assert_eq!(place(WakeTo::Last, Some(1), &[0, 1]), Some(2), "neither will do");
    assert_eq!(place(WakeTo::Last, None, &[0, 1, 2]), Some(1), "a gate is open");
}

/// Goal: lanes that will do as well as others are taken in turns. Method: as many items as lanes, from where
/// they ran last, which is marked.
#[test]
fn in_turns() {
    let world = World::new();
    world.mark(1);
    for name in 0..4 {
        world.enqueue(free(name, 1));
    }
    assert_eq!(world.waiting(), [2, 0, 2, 0]);
}

/// Goal: the first item of a lane that is awake wakes no other; one behind it, or behind one that runs, wakes
/// one that sleeps and takes it; one that its own lane wakes, from the second behind it on. Method: kicks.
#[test]
fn who_comes_behind_another_wakes_a_lane() {
    let kicks = |here: Option<u16>, before: u32, activity| {
        let world = World { here: Cell::new(here.map(CpuId)), ..World::new() };
        world.sleep(1);
        world.sleep(2);
        for name in 0..before {
            world.queues[0].items.borrow_mut().push(free(name, 0), true).expect("it is open");
        }
        world.set_busy(0, activity);
        world.enqueue(free(9, 0));
        assert_eq!(world.waiting()[0], before as usize + 1);
        world.kicks()[1..].to_vec()
    };
    let (nobody, one) = ([0, 0, 0], [1, 0, 0]);
    assert_eq!(kicks(None, 0, Activity::None), nobody, "the lane is about to take it");
    assert_eq!(kicks(None, 0, Activity::Softirq), nobody, "those are over soon");
    assert_eq!(kicks(None, 1, Activity::None), one);
    assert_eq!(kicks(None, 0, NORMAL), one);
    assert_eq!(kicks(None, 0, Activity::Realtime(priority(1))), one);
    assert_eq!(kicks(Some(0), 0, NORMAL), nobody, "a task that wakes another one");
    assert_eq!(kicks(Some(0), 1, NORMAL), nobody);
    assert_eq!(kicks(Some(0), 2, NORMAL), one, "from two on");
}

/// Goal: who was woken for an item is enough; who is woken besides sleeps, is open and not marked; and if
/// lanes do not look after each other, what a lane keeps for itself wakes another one at once. Method: kicks.
#[test]
fn nobody_is_woken_for_nothing() {
    let world = World::new();
    world.set_busy(0, NORMAL);
    (0..3).for_each(|cpu| world.sleep(cpu));
    world.enqueue(free(0, 0));
    assert_eq!(world.kicks(), [1, 0, 0, 0], "its own lane");
    world.queues[1].is_open.set(false);
    world.enqueue(free(1, 0));
    assert_eq!(world.kicks(), [2, 0, 1, 0], "one that is open");
    world.sleep(2);
    world.mark(2);
    world.enqueue(free(2, 0));
    assert_eq!(world.kicks(), [3, 0, 1, 0], "one that is not marked");
    let settings = Settings { stall: StallPolicy::NEVER, ..Settings::default() };
    let table = LaneTable::new(&world.lanes, &CpuSet::new(), &settings, |_| Bed::default());
    let world = World { table, here: Cell::new(Some(CpuId(0))), ..World::new() };
    world.sleep(1);
    world.enqueue(free(0, 0));
    assert_eq!(world.kicks(), [1, 1, 0]);
}

/// Goal: what comes to a lane that is marked, from others or from its own thread in a block, and what such a
/// lane or one that blocks has, wakes one that sleeps; what waits for a lane that turns is offered at each of
/// its looks; what is bound is not. Method: kicks.
#[test]
fn what_waits_is_offered() {
    for here in [None, Some(CpuId(0)), Some(CpuId(1))] {
        let world = World { here: Cell::new(here), ..World::new() };
        (0..LANES).for_each(|cpu| world.mark(cpu));
        world.sleep(LANES);
        world.enqueue(free(0, 0));
        let kicks = world.kicks()[usize::from(LANES)];
        assert_eq!(kicks, 1, "the spare, as all lanes are marked; woken on {here:?}");
    }
    let one = || {
        let world = World::new();
        world.queues[0].items.borrow_mut().push(free(0, 0), true).expect("it is open");
        world.queues[1].items.borrow_mut().push(bound(1, 1), true).expect("it is its own");
        world.sleep(2);
        world
    };
    let looked = LaneLook { looked_around: true, marked: 0 };
    for (cpu, kicks) in [(0, 1), (1, 0)] {
        let world = one();
        world.queues().handle_look(CpuId(cpu), LaneLook::default());
        assert_eq!(world.kicks()[2], 0, "it did not look");
        world.queues().handle_look(CpuId(cpu), looked);
        assert_eq!(world.kicks()[2], kicks, "CPU {cpu} looks around");
        let world = one();
        world.queues().handle_absence(CpuId(cpu));
        assert_eq!(world.kicks()[2], kicks, "CPU {cpu} blocks");
        let world = one();
        world.mark(cpu);
        world.queues().handle_look(CpuId(2), LaneLook { marked: 1, ..looked });
        assert_eq!(world.kicks()[2], kicks, "CPU {cpu} was marked");
        let world = one();
        world.queues().handle_silence();
        assert_eq!(world.kicks()[2], 0, "none was marked");
        world.mark(cpu);
        world.queues().handle_silence();
        assert_eq!(world.kicks()[2], kicks, "CPU {cpu} was marked by the sentinel");
    }
}

/// Goal: a lane whose gate opens is told of what others have and do not get to: a spare that was woken for it
/// has left it to the lane. Method: a lane that blocks with an item, and one that is about to run its own.
#[test]
fn a_lane_that_opens_is_told() {
    let world = World::new();
    world.enqueue(free(0, 0));
    world.sleep(1);
    assert!(world.queues().handle_claim(CpuId(1)).is_empty());
    assert_eq!(world.kicks()[1], 0, "the only one of a lane that turns");
    world.mark(0);
    assert!(world.queues().handle_claim(CpuId(1)).is_empty());
    assert_eq!((world.kicks()[1], world.must_help(LANES)), (1, false));
}

/// Goal: the gate of a lane is open while a thread drives it and it is not isolated; what waited aside for an
/// open one goes there. Method: a claim of a lane that is isolated, of one without a thread, and of one that
/// is neither; then the masks change.
#[test]
fn gates_follow_claims_and_masks() {
    let world = World::new();
    let open = || world.queues.iter().map(|queue| queue.is_open.get()).collect::<Vec<_>>();
    world.queues.iter().for_each(|queue| queue.is_open.set(false));
    world.enqueue(free(0, 0));
    world.claimed.borrow_mut().remove(CpuId(1));
    world.isolated.borrow_mut().insert(CpuId(2));
    for cpu in [1, 2] {
        assert!(world.queues().handle_claim(CpuId(cpu)).is_empty());
    }
    assert_eq!((open(), world.unplaced.borrow().len()), (vec![false; 4], 1));
    let unsettled = world.queues().handle_claim(CpuId(0));
    assert_eq!((open(), unsettled.len()), (vec![true, false, false, false], 1));
    world.queues().settle(unsettled);
    assert_eq!((world.waiting(), world.asked.borrow().len()), (vec![1, 0, 0, 0], 0));
    world.enqueue(bound(1, 0));
    *world.isolated.borrow_mut() = CpuSet::from_iter([CpuId(0)]);
    let unsettled = world.queues().handle_isolation();
    assert_eq!((open(), unsettled.len()), (vec![false, false, true, false], 1), "1 has no thread");
    world.queues().settle(unsettled);
    assert_eq!((world.waiting(), world.asked.borrow().len()), (vec![1, 0, 1, 0], 0));
}

/// Goal: what a lane that is left had besides what is bound to it goes to others, and what is pending there
/// to its ksoftirqd. Method: one item of each kind.
#[test]
fn what_a_lane_that_is_left_had() {
    let world = World::new();
    for item in [free(0, 1), bound(1, 1), realtime(2, 1, 5)] {
        world.queues[1].items.borrow_mut().push(item, true).expect("it is open");
    }
    world.claimed.borrow_mut().remove(CpuId(1));
    let unsettled = world.queues().handle_leave(CpuId(1));
    assert_eq!((unsettled.len(), world.asked.borrow().len()), (2, 0), "under the lock of control");
    world.queues().settle(unsettled);
    let waiting = world.waiting();
    assert_eq!((waiting[0] + waiting[2], waiting[1]), (2, 1));
    assert_eq!((world.queues[1].is_open.get(), &*world.asked.borrow()), (false, &vec![1]));
}

/// Goal: a lane that is about to run its only item keeps it; a second one, or one behind what runs, or on a
/// lane that is marked, is taken by an idle lane, the next lane's first. Method: what the taker gets.
#[test]
fn what_an_idle_lane_takes() {
    let taken = |items: u32, activity, is_marked: bool| {
        let world = World::new();
        for name in 0..items {
            world.enqueue(free(name, 0));
        }
        world.set_busy(0, activity);
        if is_marked {
            world.mark(0);
        }
        let must_help = world.must_help(1);
        let taken = world.next(1, Role::Lane);
        assert_eq!(must_help, taken.is_some());
        let counted = taken.map(|_| (1, Moved::Stolen));
        assert_eq!(*world.moved.borrow(), counted.into_iter().collect::<Vec<_>>());
        taken
    };
    assert_eq!(taken(1, Activity::None, false), None, "its only one");
    assert_eq!(taken(2, Activity::None, false), Some(0));
    assert_eq!(taken(1, NORMAL, false), Some(0));
    assert_eq!(taken(1, Activity::Softirq, false), Some(0));
    assert_eq!(taken(1, Activity::None, true), Some(0));
    let world = World::new();
    for (name, cpu) in [(0, 0), (1, 2)] {
        world.set_busy(cpu, NORMAL);
        world.enqueue(free(name, cpu));
    }
    assert_eq!((world.next(1, Role::Lane), world.next(1, Role::Lane)), (Some(1), Some(0)), "the next lane");
    world.queues[1].is_open.set(false);
    world.enqueue(free(2, 0));
    assert_eq!((world.must_help(1), world.next(1, Role::Lane)), (false, None), "a closed gate");
}

/// Goal: a lane whose gate opens while it looks takes no normal item before a real-time one that waits
/// behind another. Method: the gate opens after the look for real-time tasks; the next look finds both.
#[test]
fn a_gate_that_opens_during_a_look() {
    let world = World::new();
    world.queues[1].is_open.set(false);
    world.set_busy(0, NORMAL);
    world.enqueue(free(0, 0));
    world.queues[0].items.borrow_mut().push(realtime(1, 0, 5), true).expect("it is open");
    world.queues[1].opens.set(true);
    let looks: Vec<_> = (0..3).map(|_| world.next(1, Role::Lane)).collect();
    assert_eq!(looks, [None, Some(1), Some(0)]);
}

/// Goal: a lane with no real-time task takes the highest that is held up elsewhere before its own normal
/// items, and none of those that run soon where they are. Method: what the taker gets, and softirqs under
/// both awarenesses.
#[test]
fn what_is_pulled() {
    let world = World::new();
    world.enqueue(realtime(0, 0, 5));
    world.enqueue(realtime(1, 2, 7));
    world.enqueue(free(2, 1));
    assert!(!world.must_help(1));
    assert_eq!(world.next(1, Role::Lane), Some(2), "both are about to run");
    world.enqueue(free(2, 1));
    world.set_busy(0, NORMAL);
    assert!(world.must_help(1));
    assert_eq!(world.next(1, Role::Lane), Some(0), "one of them waits");
    world.enqueue(realtime(3, 0, 5));
    world.queues[0].items.borrow_mut().push(realtime(0, 0, 5), true).expect("it is open");
    world.set_busy(2, Activity::Realtime(priority(9)));
    assert_eq!(world.next(1, Role::Lane), Some(1), "the highest");
    assert_eq!(*world.moved.borrow(), [(1, Moved::Pulled), (1, Moved::Pulled)]);
    for (awareness, taken) in [(Awareness::Both, Some(0)), (Awareness::Defer, None)] {
        let world = World { awareness, ..World::new() };
        world.enqueue(realtime(0, 0, 5));
        world.set_busy(0, Activity::Softirq);
        assert_eq!(world.next(1, Role::Lane), taken, "{awareness:?}");
    }
    let world = World::new();
    world.enqueue(realtime(0, 0, 5));
    world.mark(0);
    world.queues[1].items.borrow_mut().push(realtime(1, 1, 3), true).expect("it is open");
    assert_eq!(world.next(1, Role::Lane), Some(1), "its own");
    assert_eq!(world.next(1, Role::Lane), Some(0), "that of a lane that is marked");
}

/// Goal: a real-time task that wakes up stays where it ran unless a normal item, a higher task or long
/// softirqs are in the way; it never goes to a lane that is marked. Method: one for each, beside a lane that
/// is free and one that is busy.
#[test]
fn where_realtime_items_go() {
    let place = |awareness, prepare: &dyn Fn(&World)| {
        let world = World { awareness, ..World::new() };
        world.set_busy(2, NORMAL);
        prepare(&world);
        world.tell();
        let before = world.waiting();
        world.enqueue(realtime(0, 0, 5));
        world.waiting().iter().zip(before).position(|(now, before)| *now > before)
    };
    let runs = |number: u8| {
        move |world: &World| {
            world.set_busy(0, Activity::Realtime(priority(number)));
            world.queues[0].items.borrow_mut().set_running(Some(priority(number)));
        }
    };
    let softirq = |world: &World| {
        let packets = VectorSet::from(Vector::NET_RX);
        let _ = world.queues[0].claims.raise(packets);
        assert_eq!(world.queues[0].claims.claim(Runner::Ksoftirqd, packets), packets);
    };
    assert_eq!(place(Awareness::Both, &|_| ()), Some(0));
    assert_eq!(place(Awareness::Both, &|world| world.set_busy(0, NORMAL)), Some(1));
    assert_eq!(place(Awareness::Both, &runs(5)), Some(1), "behind an equal one");
    assert_eq!(place(Awareness::Both, &runs(4)), Some(0), "that one is pushed on");
    assert_eq!(place(Awareness::Both, &softirq), Some(1));
    assert_eq!(place(Awareness::None, &softirq), Some(0));
    assert_eq!(place(Awareness::Both, &|world| world.mark(0)), Some(1));
    let all_but_last = |world: &World| [0, 1].into_iter().for_each(|cpu| world.mark(cpu));
    assert_eq!(place(Awareness::Both, &all_but_last), Some(2), "busy, and no other is there");
}

/// Goal: real-time tasks that wait behind the one that a lane begins go to lanes where they can run now;
/// what no lane can take, and what is bound, stays. Method: three behind one, with one other lane that is
/// free.
#[test]
fn what_waits_behind_a_realtime_item_is_pushed() {
    let world = World::new();
    world.set_busy(2, NORMAL);
    let mut items = vec![realtime(0, 0, 9), realtime(1, 0, 7), realtime(2, 0, 5)];
    items.push(Piece { bound: Some(CpuId(0)), ..realtime(3, 0, 8) });
    for item in items {
        world.queues[0].items.borrow_mut().push(item, true).expect("it is open");
    }
    world.tell();
    let queue = &world.queues[0];
    let next = world.queues().next_item(CpuId(0), queue, Role::Lane).expect("it has some");
    let begun = world.queues().begin(CpuId(0), queue, next).expect("the gate is open");
    assert_eq!(begun.name, 0);
    assert_eq!(world.queues[0].current.get(), (Activity::Realtime(priority(9)), true));
    assert_eq!(*world.moved.borrow(), [(0, Moved::Pushed), (0, Moved::Pushed)]);
    assert_eq!(world.waiting(), [1, 2, 0, 0], "the bound one is left");
    world.queues().end(queue, Activity::Realtime(priority(9)));
    world.tell();
    assert_eq!(world.queues[0].current.get().0, Activity::None);
    assert_eq!(world.priorities.of(CpuId(0)), CpuPriority::Realtime(priority(8)), "what waits there");
}

/// Goal: a spare runs what waits only while no lane is free, and as a normal item that nothing waits for.
/// Method: a lane that is marked, then all of them.
#[test]
fn a_spare_rescues_only_if_no_lane_is_free() {
    let world = World::new();
    world.mark(0);
    world.queues[0].items.borrow_mut().push(free(0, 0), true).expect("it is open");
    world.queues[0].items.borrow_mut().push(realtime(1, 0, 5), true).expect("it is open");
    assert_eq!((world.must_help(LANES), world.next(LANES, Role::Spare)), (false, None));
    world.mark(1);
    world.queues[2].is_open.set(false);
    assert!(world.must_help(LANES));
    let spare = &world.queues[usize::from(LANES)];
    let next = world.queues().next_item(SPARE, spare, Role::Spare).expect("no lane is free");
    assert_eq!((next.item.name, next.activity, next.is_movable), (1, NORMAL, false));
    assert_eq!(world.queues().begin(SPARE, spare, next).map(|item| item.name), Some(1));
    assert_eq!((world.next(LANES, Role::Spare), world.next(LANES, Role::Spare)), (Some(0), None));
}

/// Goal: what a closed gate refuses is placed anew: at the push, and when it was about to begin; what is
/// bound begins all the same. Method: gates that are closed in between.
#[test]
fn what_a_gate_refuses_goes_elsewhere() {
    let world = World::new();
    world.queues[0].closes.set(true);
    world.enqueue(free(0, 0));
    assert_eq!(world.waiting(), [0, 1, 0, 0]);
    let queue = &world.queues[1];
    let next = world.queues().next_item(CpuId(1), queue, Role::Lane).expect("it has one");
    queue.closes.set(true);
    assert_eq!(world.queues().begin(CpuId(1), queue, next), None);
    assert_eq!((world.waiting(), queue.current.get().0), (vec![0, 0, 1, 0], Activity::None));
    world.enqueue(bound(1, 1));
    let next = world.queues().next_item(CpuId(1), queue, Role::Lane).expect("it has one");
    assert_eq!(world.queues().begin(CpuId(1), queue, next).map(|item| item.name), Some(1));
    assert_eq!(queue.current.get(), (NORMAL, false));
    // A real-time one is not seen to run where it did not begin.
    let world = World::new();
    world.enqueue(realtime(0, 0, 5));
    let queue = &world.queues[0];
    let next = world.queues().next_item(CpuId(0), queue, Role::Lane).expect("it has one");
    queue.closes.set(true);
    assert_eq!(world.queues().begin(CpuId(0), queue, next), None);
    assert_eq!(queue.items.borrow().hints(true).level, CpuPriority::Normal);
    assert_eq!(world.waiting(), [0, 0, 1, 0]);
}

/// Goal: what no lane takes waits aside; when the machine has ended it is dismissed, and so is what comes
/// then. Method: all gates closed; then the end.
#[test]
fn what_no_lane_takes() {
    let world = World::new();
    world.queues.iter().for_each(|queue| queue.is_open.set(false));
    world.enqueue(free(0, 0));
    world.enqueue(realtime(1, 0, 5));
    assert_eq!(world.unplaced.borrow().len(), 2);
    assert_eq!(world.unplaced.borrow_mut().take(), [free(0, 0), realtime(1, 0, 5)]);
    world.enqueue(free(2, 0));
    world.has_ended.set(true);
    world.enqueue(bound(3, 0));
    assert_eq!(
        (world.unplaced.borrow_mut().end(), world.dismissed.borrow().clone()),
        (vec![free(2, 0)], vec![3])
    );
    assert_eq!(world.unplaced.borrow_mut().hold(free(4, 0), false), Err(free(4, 0)));
    let mut unplaced = Unplaced::default();
    assert_eq!(
        (unplaced.hold(free(5, 0), true), unplaced.is_empty()),
        (Err(free(5, 0)), true),
        "a gate opened"
    );
    assert_eq!(world.waiting(), [0; 4]);
}

/// Goal: normal items take turns, however many real-time tasks run between them. Method: one of those before
/// each of four.
#[test]
fn normal_items_take_turns_beside_real_time_ones() {
    let mut queue = ItemQueue::new(CpuId(0));
    for item in [bound(0, 0), bound(1, 0), free(2, 0), free(3, 0)] {
        queue.push(item, true).expect("it is open");
    }
    let mut next = |item| {
        queue.push(item, true).expect("it is open");
        [(); 2].map(|()| queue.pop().expect("it waits").item.name)
    };
    let order: Vec<_> = (0..4).map(|_| next(realtime(9, 0, 2))).collect();
    assert_eq!(order, [[9, 0], [9, 2], [9, 1], [9, 3]]);
}

/// Goal: normal items that are bound and those that are not take turns; a queue that closes gives back what
/// is not bound and takes no more of that; at the end it gives all but what only its thread may drop, which
/// it goes on taking. Method: one queue, by hand.
#[test]
fn one_queue() {
    let mut queue = ItemQueue::new(CpuId(0));
    let own = Piece { is_of_thread: true, ..bound(6, 0) };
    let bound_realtime = Piece { bound: Some(CpuId(0)), ..realtime(5, 0, 3) };
    let fill = |queue: &mut ItemQueue<Piece>| {
        for item in [bound(0, 0), bound(1, 0), free(2, 0), free(3, 0), realtime(4, 0, 2), bound_realtime, own]
        {
            let waited = queue.len();
            assert_eq!(queue.push(item, true), Ok(waited));
        }
    };
    fill(&mut queue);
    let hints = queue.hints(true);
    assert_eq!((hints.realtime, hints.realtime_movable), (Some(priority(3)), Some(priority(2))));
    assert_eq!((hints.free, hints.level), (2, CpuPriority::Realtime(priority(3))));
    assert_eq!(queue.hints(false).level, CpuPriority::Absent);
    let order: Vec<_> = core::iter::from_fn(|| queue.pop().map(|next| next.item.name)).collect();
    assert_eq!(order, [5, 4, 0, 2, 1, 3, 6]);
    assert_eq!(queue.hints(true).level, CpuPriority::Realtime(priority(2)), "the last one still runs");
    queue.set_running(None);
    assert_eq!(queue.hints(true).level, CpuPriority::Normal);
    fill(&mut queue);
    assert_eq!(queue.close().iter().map(|item| item.name).collect::<Vec<_>>(), [4, 2, 3]);
    assert_eq!(queue.push(free(7, 0), false), Err(free(7, 0)));
    assert_eq!(queue.push(bound(7, 0), false), Ok(4));
    assert!(!queue.is_over());
    assert_eq!(queue.end().iter().map(|item| item.name).collect::<Vec<_>>(), [5, 0, 1, 7]);
    assert_eq!(queue.push(bound(8, 0), false), Err(bound(8, 0)));
    assert_eq!((queue.push(own, false), queue.is_over()), (Ok(1), true));
    assert_eq!((queue.take_of_thread(), queue.is_empty()), (vec![own, own], true));
}

/// Goal: what is bound to a lane waits for its next thread when its thread leaves; only what that thread
/// alone may drop goes with it. Method: both in one queue, in both orders.
#[test]
fn what_is_bound_outlives_the_thread() {
    let mut queue = ItemQueue::new(CpuId(0));
    let own = |name| Piece { is_of_thread: true, ..bound(name, 0) };
    for item in [bound(0, 0), own(1), bound(2, 0), own(3)] {
        assert!(queue.push(item, true).is_ok());
    }
    assert_eq!(queue.take_of_thread(), [own(1), own(3)]);
    let left: Vec<_> = core::iter::from_fn(|| queue.pop().map(|next| next.item.name)).collect();
    assert_eq!(left, [0, 2]);
}

/// Goal: an item for which no lane was found is given back if one has opened meanwhile, and waits aside only
/// if none has. Method: one lane is open, then none.
#[test]
fn what_is_to_wait_aside_is_given_back_to_an_open_lane() {
    let world = World::new();
    for cpu in [0, 1] {
        world.queues[cpu].is_open.set(false);
    }
    assert_eq!(world.queues().hold_unplaced(free(0, 0)), Err(free(0, 0)));
    world.queues[2].is_open.set(false);
    assert_eq!(world.queues().hold_unplaced(free(0, 0)), Ok(()));
    assert_eq!(world.unplaced.borrow().len(), 1);
}

/// Goal: a lane that is to be woken for an item and wakes up for something else already is passed over for
/// one that sleeps. Method: two lanes wait, the first of which has been kicked before.
#[test]
fn a_lane_that_wakes_up_already_is_not_enough() {
    let world = World::new();
    world.set_busy(0, NORMAL);
    [1, 2].into_iter().for_each(|cpu| world.sleep(cpu));
    world.table.slot(CpuId(1)).expect("it has a slot").world.wakes_up.set(true);
    world.enqueue(free(0, 0));
    assert_eq!(world.kicks(), [1, 1, 1, 0]);
}

/// Goal: where every lane is marked, an item waits on one of them all the same, as one may return. Method: a
/// real-time task and a normal one.
#[test]
fn what_comes_while_all_are_marked_waits() {
    let world = World::new();
    (0..4).for_each(|index| world.mark(index));
    for (number, item) in [realtime(0, 0, 5), free(1, 0)].into_iter().enumerate() {
        world.enqueue(item);
        assert_eq!(world.waiting().iter().sum::<usize>(), number + 1);
    }
    assert_eq!(world.unplaced.borrow().len(), 0);
}

/// Goal: a lane that was marked in its sleep waits for its CPU, and its kick is no wake-up: a spare, or a
/// lane that sleeps as it should, is woken, too; it alone is kicked if there is none. Method: kicks.
#[test]
fn a_marked_sleeper_is_not_enough() {
    let world = World::new();
    (0..LANES).for_each(|cpu| world.mark(cpu));
    world.sleep(1);
    world.sleep(LANES);
    world.enqueue(free(0, 0));
    assert_eq!(world.kicks(), [0, 1, 0, 1], "for what comes to it");
    for (is_asleep, kicks) in [(true, [0, 0, 1, 0]), (false, [1, 0, 1, 1])] {
        let world = World::new();
        world.queues[1].items.borrow_mut().push(free(0, 1), true).expect("it is open");
        world.mark(0);
        world.mark(1);
        world.sleep(0);
        if is_asleep {
            world.sleep(2);
        }
        world.queues().handle_absence(CpuId(1));
        assert_eq!(world.kicks(), kicks, "for what another one has that blocks");
    }
}
