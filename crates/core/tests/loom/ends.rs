//! Runs a model and gathers its ends. What the models share: a tree of three CPUs.

use loom::model::Builder;
use loom::sync::Arc;
use quietcore_core::tmigr::Hierarchy;
use quietcore_core::{CpuId, Nanos, SequentialLock};
use std::collections::BTreeSet;
use std::sync::Mutex;

pub(crate) type Tree = Hierarchy<SequentialLock>;

/// A call on a tree; what it returns is part of the end.
pub(crate) type Call = fn(&Tree) -> Option<u64>;

pub(crate) fn id(cpu: usize) -> CpuId {
    CpuId::new(cpu as u64).expect("a model has few CPUs")
}

pub(crate) fn park(tree: &Tree, cpu: usize, next: u64) -> Option<u64> {
    tree.deactivate(id(cpu), Some(Nanos(next))).map(Nanos::as_u64)
}

pub(crate) fn wake(tree: &Tree, cpu: usize) -> Option<u64> {
    tree.activate(id(cpu));
    None
}

pub(crate) fn join(tree: &Tree, cpu: usize) {
    assert!(tree.connect(id(cpu)), "CPU {cpu} joins once");
    let _ = tree.set_available(id(cpu), None);
}

/// CPUs 0 and 1 in a group, 2 in another, a root above both; all awake.
fn two_groups() -> Tree {
    let tree = Tree::new(&[0, 0, 1]);
    (0..3).for_each(|cpu| join(&tree, cpu));
    tree
}

/// The same, and these CPUs have gone idle, each with its first expiry.
pub(crate) fn asleep(cpus: &[(usize, u64)]) -> Tree {
    let tree = two_groups();
    cpus.iter().for_each(|&(cpu, next)| _ = park(&tree, cpu, next));
    tree
}

/// At the end the invariants hold, and a CPU was told of `first`; what each call returned.
pub(crate) fn assert_told(tree: &Tree, returned: &[Option<u64>], first: u64) -> String {
    check(tree, None);
    assert_eq!(returned.iter().flatten().min(), Some(&first), "nobody wakes up for it");
    format!("{returned:?}")
}

/// A model: a tree, calls that race on it, and what must hold when they are over.
pub(crate) struct Model {
    pub(crate) make: fn() -> Tree,
    pub(crate) calls: &'static [Call],
    /// Gets what each call returned; its text is the end.
    pub(crate) end: fn(&Tree, &[Option<u64>]) -> String,
}

/// Runs all calls but the first on threads of their own, in all orders; then exactly these ends were reached.
pub(crate) fn explore(model: Model, expected: &[&str]) {
    let ends = std::sync::Arc::new(Mutex::new((BTreeSet::new(), 0)));
    let gathered = std::sync::Arc::clone(&ends);
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    // Setting a tree up takes more steps than loom expects of a whole model.
    builder.max_branches = 20_000;
    builder.check(move || {
        let tree = Arc::new((model.make)());
        let threads: Vec<_> = model.calls[1..]
            .iter()
            .map(|&call| {
                let tree = Arc::clone(&tree);
                loom::thread::spawn(move || call(&tree))
            })
            .collect();
        let mut returned = vec![model.calls[0](&tree)];
        returned.extend(threads.into_iter().map(|thread| thread.join().expect("a call ends")));
        let mut gathered = gathered.lock().expect("nobody panicked");
        gathered.0.insert((model.end)(&tree, &returned));
        gathered.1 += 1;
    });
    let (ends, runs) = &*ends.lock().expect("nobody panicked");
    println!("explored {runs} orders: {ends:?}");
    let expected: BTreeSet<String> = expected.iter().map(|&end| end.to_owned()).collect();
    assert_eq!(*ends, expected, "the ends that {runs} orders reached");
    assert!(*runs > 3, "{runs} orders");
}

/// The invariants hold; what a CPU has to wake up for besides.
pub(crate) fn check(tree: &Tree, alarm: Option<u64>) {
    tree.check(alarm.map(Nanos), None);
}

/// The root's active mask.
pub(crate) fn root_active(tree: &Tree) -> u8 {
    let root = tree.tree().root().expect("somebody joined");
    tree.group_state(root).expect("the root is there").active()
}
