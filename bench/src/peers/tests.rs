//! Tests of the adapters: the same random operations on each peer and on a sorted map.

use super::adapters::ENTRIES;
use super::adapters::{
    binary_heap, bitwheel, btree_map, delay_queue, hash_wheel, mio_extras, nexus, quietcore,
};
use super::audit::Audit;
use super::peer::{Answer, Clock, Peer, Role};
use super::plan::{Plan, Sizes, Workload, log_uniform};
use clap::ValueEnum;
use fastrand::Rng;
use std::collections::BTreeMap;

const TIMERS: u32 = 200;

/// What should be pending: per timer when it is due, and the peer's handle.
type Model<P> = BTreeMap<u32, (u64, <P as Peer>::Handle)>;

/// One random operation on a timer.
fn operate<P: Peer>(peer: &mut P, model: &mut Model<P>, tick: u64, random: &mut Rng) {
    let (id, delay) = (random.u32(..TIMERS), log_uniform(random, 1..=5_000));
    let when = peer.when(tick, delay);
    match model.remove(&id) {
        None => {
            model.insert(id, (tick + delay, peer.arm(id, when)));
        }
        Some((_, mut handle)) if random.u8(..3) == 0 => {
            peer.rearm(id, &mut handle, when);
            model.insert(id, (tick + delay, handle));
        }
        Some((_, mut handle)) => {
            assert!(peer.cancel(id, &mut handle), "{}: timer {id}, tick {tick}", P::NAME);
        }
    }
    assert_eq!(peer.pending(), model.len(), "{}: tick {tick}", P::NAME);
}

/// A few thousand ticks with operations in between; what expires must be what is due in the model. Returns
/// how many timers expired.
fn follow_the_model<P: Peer>() -> usize {
    let (mut random, mut peer, mut model) = (Rng::with_seed(7), P::new(TIMERS as usize), Model::<P>::new());
    let (mut expired, mut count) = (Vec::new(), 0);
    for tick in 1..=6_000 {
        peer.advance(peer.now(tick), &mut expired);
        expired.sort_unstable();
        let is_due = |(&id, &(due, _)): (&u32, &(u64, P::Handle))| (due <= tick).then_some(id);
        let due: Vec<u32> = model.iter().filter_map(is_due).collect();
        assert_eq!(expired, due, "{}: tick {tick}", P::NAME);
        count += due.len();
        for id in expired.drain(..) {
            let (_, mut handle) = model.remove(&id).expect("it was found there");
            peer.release(id, &mut handle);
        }
        for _ in 0..random.u8(..4) {
            operate(&mut peer, &mut model, tick, &mut random);
        }
        if P::ANSWER == Answer::Exact {
            let answer = peer.next_expiry().map(|now| peer.tick(now));
            assert_eq!(answer, model.values().map(|&(due, _)| due).min(), "{}: tick {tick}", P::NAME);
        }
    }
    count
}

/// Goal: adapters of structures that are exact to the tick do what their names say. Method: random
/// operations for 6 s, a sorted map beside them; the same number of timers expires in each.
#[test]
fn exact_peers_follow_a_sorted_map() {
    let count = follow_the_model::<btree_map::OrderedMap>();
    assert!(count > 1_000, "only {count} timers expired");
    assert_eq!(follow_the_model::<nexus::Nexus>(), count);
    assert_eq!(follow_the_model::<hash_wheel::HashWheel>(), count);
    assert_eq!(follow_the_model::<delay_queue::Queue>(), count);
    assert_eq!(follow_the_model::<binary_heap::LazyHeap>(), count);
    assert_eq!(follow_the_model::<quietcore::Precise>(), count);
}

/// Arms, cancels and re-arms without time passing, as those workloads do. Returns how many are pending.
fn count_while_time_stands_still<P: Peer>() -> usize {
    let (mut random, mut peer, mut model) = (Rng::with_seed(8), P::new(TIMERS as usize), Model::<P>::new());
    (0..5_000).for_each(|_| operate(&mut peer, &mut model, 0, &mut random));
    peer.pending()
}

/// Goal: the adapters of the others at least lose nothing. Method: as above, without time.
#[test]
fn inexact_peers_count_right() {
    let count = count_while_time_stands_still::<btree_map::OrderedMap>();
    assert!(count > 0, "nothing is pending in the end");
    assert_eq!(count_while_time_stands_still::<bitwheel::Bitwheel>(), count);
    assert_eq!(count_while_time_stands_still::<mio_extras::MioExtras>(), count);
    assert_eq!(count_while_time_stands_still::<quietcore::Intrusive>(), count);
    assert_eq!(count_while_time_stands_still::<quietcore::Keyed>(), count);
}

/// Goal: which peers can be told the time. Method: the one that cannot.
#[test]
fn clocks_are_declared() {
    assert_eq!(mio_extras::MioExtras::CLOCK, Clock::System);
    assert_eq!(nexus::Nexus::CLOCK, Clock::Caller);
}

/// Goal: every workload runs with every peer, all its assertions held, and gives a number. Method: the
/// quick sizes.
#[test]
fn every_workload_runs() {
    for &workload in Workload::value_variants() {
        let plan = Plan::new(workload, &Sizes::QUICK, 1);
        for entry in ENTRIES.iter().filter(|entry| entry.absent(workload).is_none()) {
            let ns = entry.measure(&plan);
            assert!(ns > 0.0 && ns.is_finite(), "{workload:?}, {}: {ns}", entry.name);
        }
    }
}

/// Goal: how exact each peer is where the report says so. Method: audits of the quick sizes.
#[test]
fn audits_find_what_is_known() {
    let expire = Plan::new(Workload::Expire, &Sizes::QUICK, 1);
    let asked = Plan::new(Workload::NextFirst, &Sizes::QUICK, 1);
    for entry in ENTRIES {
        let at_the_tick = Audit::Lateness { early_max: 0, late_max: 0 };
        match (entry.name, entry.audit(&expire)) {
            ("bitwheel", Some(Audit::Lateness { early_max, .. })) => assert!(early_max > 0),
            ("mio-extras", audit) => assert_eq!(audit, None),
            // 200 ticks are on levels 0 and 1.
            ("quietcore" | "quietcore keyed", Some(Audit::Lateness { early_max, late_max })) => {
                assert_eq!(early_max, 0);
                assert!((1..8).contains(&late_max), "{late_max}");
            }
            (name, audit) if entry.role != Role::Baseline => assert_eq!(audit, Some(at_the_tick), "{name}"),
            (name, audit) => assert_eq!(audit, None, "{name}"),
        }
        if entry.answer == Answer::Exact {
            assert_eq!(entry.audit(&asked), Some(Audit::Answers { exact: 1.0 }), "{}", entry.name);
        }
    }
}
