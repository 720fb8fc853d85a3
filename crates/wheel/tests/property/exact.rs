//! The exact queue against a sorted list, through both interfaces.

use proptest::prelude::*;
use quietcore_wheel::{
    ExactNode, ExactTimers, Expiry, IntrusiveExactQueue, NodeRef, Slot, SlotKey, StaleKey,
};
use std::pin::Pin;

/// One step; times are absolute and timers small numbers.
#[derive(Clone, Copy, Debug)]
enum Step {
    Arm(usize, Expiry),
    Cancel(usize),
    Pop(u64),
}

/// An exact queue under test.
trait Subject {
    /// Whether it was pending before, and whether it is the first now; `None` where the interface is silent.
    fn arm(&mut self, id: usize, expiry: Expiry) -> Option<(bool, bool)>;
    fn cancel(&mut self, id: usize) -> bool;
    fn pop(&mut self, now: u64) -> Option<usize>;
    fn next_expiry(&self) -> Option<u64>;
    /// How many are pending; asserts all invariants.
    fn check(&self) -> usize;
}

/// Caller-owned nodes.
struct Intrusive {
    queue: IntrusiveExactQueue<usize>,
    nodes: Vec<Pin<Box<ExactNode<usize>>>>,
}

impl Intrusive {
    fn new(count: usize) -> Self {
        let nodes = (0..count).map(|id| Box::pin(ExactNode::new(id))).collect();
        Self { queue: IntrusiveExactQueue::new(), nodes }
    }

    fn node(&self, id: usize) -> NodeRef<ExactNode<usize>> {
        // SAFETY: the nodes are pinned, live as long as the queue, and only this queue gets them.
        unsafe { NodeRef::new((&*self.nodes[id]).into()) }
    }
}

impl Subject for Intrusive {
    fn arm(&mut self, id: usize, expiry: Expiry) -> Option<(bool, bool)> {
        let armed = self.queue.arm(self.node(id), expiry);
        assert_eq!(self.nodes[id].expiry().map(|expiry| expiry.soft), Some(expiry.soft));
        Some((armed.was_pending, armed.is_first))
    }

    fn cancel(&mut self, id: usize) -> bool {
        let was_pending = self.queue.cancel(self.node(id));
        assert!(!self.nodes[id].is_pending());
        was_pending
    }

    fn pop(&mut self, now: u64) -> Option<usize> {
        let first = self.queue.first();
        let node = self.queue.pop_expired(now)?;
        assert_eq!(Some(node), first);
        self.nodes.iter().position(|own| std::ptr::eq(&**own, node.as_ptr().as_ptr()))
    }

    fn next_expiry(&self) -> Option<u64> {
        self.queue.next_expiry()
    }

    fn check(&self) -> usize {
        self.queue.check()
    }
}

/// Values and keys.
struct Keyed {
    timers: ExactTimers<usize, Vec<Slot<usize, quietcore_wheel::ExactLinks<quietcore_wheel::Index>>>>,
    keys: Vec<Option<SlotKey>>,
}

impl Keyed {
    fn new(count: usize) -> Self {
        Self { timers: ExactTimers::new(vec![]), keys: vec![None; count] }
    }
}

impl Subject for Keyed {
    fn arm(&mut self, id: usize, expiry: Expiry) -> Option<(bool, bool)> {
        let living = self.keys[id].filter(|key| self.timers.re_arm(*key, expiry) != Err(StaleKey));
        let key = living.unwrap_or_else(|| self.timers.arm_growing(expiry, id));
        self.keys[id] = Some(key);
        assert_eq!(self.timers.get(key), Some(&id));
        None
    }

    fn cancel(&mut self, id: usize) -> bool {
        self.keys[id].is_some_and(|key| self.timers.cancel(key) == Ok(id))
    }

    fn pop(&mut self, now: u64) -> Option<usize> {
        self.timers.next_expired(now).map(|due| due.value)
    }

    fn next_expiry(&self) -> Option<u64> {
        self.timers.next_expiry()
    }

    fn check(&self) -> usize {
        self.timers.check();
        self.timers.len()
    }
}

/// Plays a script on a queue and on a list that is sorted by search, and drains both. Returns how many
/// timers were handed out.
fn play(subject: &mut impl Subject, script: &[Step]) -> usize {
    // Hard and soft expiry, arms so far, timer.
    let mut list: Vec<(u64, u64, usize, usize)> = vec![];
    let mut handed_out = 0;
    let drain = std::iter::repeat_n(Step::Pop(u64::MAX), script.len() + 1);
    for (sequence, step) in script.iter().copied().chain(drain).enumerate() {
        let place = |id| list.iter().position(|timer| timer.3 == id);
        match step {
            Step::Arm(id, expiry) => {
                let first = list.iter().map(|timer| timer.0).min();
                let old = place(id).map(|at| list.remove(at));
                let hard = expiry.hard.max(expiry.soft);
                if let Some((was_pending, is_first)) = subject.arm(id, expiry) {
                    assert_eq!(
                        (was_pending, is_first),
                        (old.is_some(), first.is_none_or(|first| hard < first))
                    );
                }
                list.push((hard, expiry.soft, sequence, id));
            }
            Step::Cancel(id) => {
                let old = place(id).map(|at| list.remove(at));
                assert_eq!(subject.cancel(id), old.is_some(), "cancel {id}");
            }
            Step::Pop(now) => {
                let first = list.iter().min_by_key(|timer| (timer.0, timer.2)).copied();
                let due = first.filter(|timer| timer.1 <= now).map(|timer| timer.3);
                assert_eq!(subject.pop(now), due, "pop at {now}");
                list.retain(|timer| Some(timer.3) != due);
                handed_out += usize::from(due.is_some());
            }
        }
        assert_eq!(subject.next_expiry(), list.iter().map(|timer| timer.0).min(), "after {step:?}");
        assert_eq!(subject.check(), list.len(), "after {step:?}");
    }
    assert!(list.is_empty());
    handed_out
}

fn expiry() -> impl Strategy<Value = Expiry> {
    prop_oneof![
        // Many ties, with slack that lets later ones be ready before earlier ones.
        (0_u64..8, 0_u64..8).prop_map(|(ns, slack)| Expiry::with_slack(ns, slack)),
        (any::<u64>(), any::<u64>()).prop_map(|(ns, slack)| Expiry::with_slack(ns, slack)),
        (0_u64..8, 0_u64..8).prop_map(|(soft, hard)| Expiry { soft, hard }),
    ]
}

fn step(timers: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..timers, expiry()).prop_map(|(id, expiry)| Step::Arm(id, expiry)),
        2 => (0..timers).prop_map(Step::Cancel),
        1 => (0_u64..10).prop_map(Step::Pop),
        1 => any::<u64>().prop_map(Step::Pop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 400 }))]

    /// Goal: the order of the list. Method: long scripts over few and over many timers, both interfaces.
    #[test]
    fn random_scripts_on_few_timers(script in prop::collection::vec(step(6), 0..200)) {
        prop_assert_eq!(play(&mut Intrusive::new(6), &script), play(&mut Keyed::new(6), &script));
    }

    #[test]
    fn random_scripts_on_many_timers(script in prop::collection::vec(step(200), 0..400)) {
        prop_assert_eq!(play(&mut Intrusive::new(200), &script), play(&mut Keyed::new(200), &script));
    }
}

/// Goal: no short script goes wrong. Method: every script of six steps over three timers, two expiries.
#[test]
fn every_short_script() {
    let mut steps = vec![Step::Pop(1)];
    for id in 0..3 {
        steps.extend([Step::Arm(id, Expiry::at(1)), Step::Arm(id, Expiry::at(2)), Step::Cancel(id)]);
    }
    let mut handed_out = 0;
    for number in 0..steps.len().pow(6) {
        let script: Vec<Step> =
            (0..6).map(|place| steps[number / steps.len().pow(place) % steps.len()]).collect();
        handed_out += play(&mut Intrusive::new(3), &script);
    }
    assert!(handed_out > 1_000_000, "{handed_out}");
}

/// Goal: equal expiries come in the order of arming, and whatever the order of arming, timers come sorted.
/// Method: bursts of a thousand, ascending, descending, alternating, equal.
#[test]
fn bursts_come_sorted() {
    const COUNT: u64 = if cfg!(miri) { 20 } else { 1000 };
    let orders: [fn(u64) -> u64; 5] = [
        |at| at,
        |at| COUNT - at,
        |at| if at % 2 == 0 { at } else { 2 * COUNT - at },
        |_| 7,
        |at| at * 619 % 1009,
    ];
    for order in orders {
        let mut timers = ExactTimers::new(vec![]);
        let mut expected: Vec<(u64, u64)> = (0..COUNT).map(|at| (order(at), at)).collect();
        for (ns, at) in &expected {
            timers.arm_growing(Expiry::at(*ns), *at);
        }
        timers.check();
        expected.sort_unstable();
        let came: Vec<(u64, u64)> = std::iter::from_fn(|| timers.next_expired(u64::MAX))
            .map(|due| (due.expiry.hard, due.value))
            .collect();
        assert_eq!(came, expected);
    }
}

/// Goal: ranks stay bounded when nothing is ever handed out. Method: a million re-arms of whatever is the
/// first timer's highest child would be the bad case; random and first-only re-arms stand for it, with the
/// bound (a tree of rank r has Fibonacci(r + 1) nodes) asserted on the way.
#[test]
fn re_arming_for_ever_keeps_ranks_bounded() {
    let mut queue = Intrusive::new(100);
    let mut random: u64 = 88_172_645_463_325_252;
    for round in 0..200_000_u64 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let id = if round % 3 == 0 { 0 } else { (random % 100) as usize };
        queue.arm(id, Expiry::at(round + random % 64));
        if round % 1000 == 0 {
            queue.check();
        }
    }
    assert_eq!(queue.check(), 100);
}
