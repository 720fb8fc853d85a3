//! The stage: threads as virtual CPUs, of which exactly one moves; which is next is decided by a policy at
//! each mark.
//!
//! A failed run is given up: the others are unwound where they stand. What a run did is in its [`Trace`], one
//! entry per step, so that a failure can be written down as a script.

use crate::lock::plain;
use crate::search::Search;
use quietcore_core::script::{Site, set_hook};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Where a virtual CPU stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// Has not begun.
    Start,
    /// At a mark of the code.
    At(Site),
    /// Before a lock that has no mark of its own.
    Lock(usize),
    /// Waits for a lock.
    Blocked(usize),
    /// Has just taken a lock.
    Took(usize),
    /// Has just given a lock back.
    GaveBack(usize),
    /// Will not move any more: stopped for ever by the policy.
    Frozen,
    Done,
}

/// Who moved how far.
pub(crate) type Trace = Vec<(usize, Point)>;

/// Who arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mover {
    pub(crate) cpu: usize,
    pub(crate) holds_locks: bool,
}

/// Decides who moves next.
pub(crate) trait Policy: Send {
    /// `mover` arrived at its point (of `points`), holding locks or none; `None` when none can go on.
    ///
    /// # Errors
    /// What is wrong with the run.
    fn next(&mut self, points: &mut [Point], mover: Mover) -> Result<Option<usize>, String>;

    /// Whether a virtual CPU also arrives at a point when it has taken a lock or given one back.
    fn stops_at_locks(&self, _cpu: usize) -> bool {
        false
    }

    /// The search that this is, to go on with.
    fn into_search(self: Box<Self>) -> Option<Search> {
        None
    }
}

/// The threads that can move.
pub(crate) fn ready(points: &[Point]) -> impl Iterator<Item = usize> + '_ {
    let can_move = |point: &Point| !matches!(point, Point::Blocked(_) | Point::Done | Point::Frozen);
    (0..).zip(points).filter(move |(_, point)| can_move(point)).map(|(cpu, _)| cpu)
}

struct State {
    points: Vec<Point>,
    turn: Option<usize>,
    policy: Box<dyn Policy>,
    trace: Trace,
    held: Vec<Vec<usize>>,
    /// A lock that was held, and one that was taken meanwhile.
    nested: BTreeSet<(usize, usize)>,
    failure: Option<String>,
}

struct Shared {
    state: Mutex<State>,
    turns: Vec<Condvar>,
    over: Condvar,
}

/// Ends a virtual CPU that is given up.
struct GivenUp;

thread_local! {
    static ACTOR: RefCell<Option<(Arc<Shared>, usize)>> = const { RefCell::new(None) };
    /// The last mark stood before a lock, which needs no second one.
    static IS_BEFORE_LOCK: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn actor() -> Option<(Arc<Shared>, usize)> {
    ACTOR.with_borrow(Clone::clone)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        plain(&self.state)
    }

    /// `me` stands at `point`; returns when it may go on.
    fn arrive(&self, me: usize, point: Point) {
        let mut state = self.state();
        if state.failure.is_none() {
            state.points[me] = point;
            state.trace.push((me, point));
            self.choose(&mut state, me);
        }
        self.wait_for_turn(me, state);
    }

    fn wait_for_turn(&self, me: usize, mut state: MutexGuard<'_, State>) {
        while state.turn != Some(me) && state.failure.is_none() {
            state = self.turns[me].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_given_up = state.failure.is_some();
        drop(state);
        if is_given_up && !std::thread::panicking() {
            resume_unwind(Box::new(GivenUp));
        }
    }

    fn choose(&self, state: &mut State, mover: usize) {
        let State { points, policy, held, .. } = &mut *state;
        let holds_locks = held.get(mover).is_some_and(|held| !held.is_empty());
        match policy.next(points, Mover { cpu: mover, holds_locks }) {
            Ok(Some(next)) => {
                state.turn = Some(next);
                if next != mover {
                    self.turns[next].notify_one();
                }
            }
            Ok(None) => {
                let is_stuck = state.points.iter().any(|point| matches!(point, Point::Blocked(_)));
                state.turn = None;
                if is_stuck {
                    let waits = format!("deadlock: {:?}, locks held {:?}", state.points, state.held);
                    self.fail(state, waits);
                }
                self.over.notify_one();
            }
            Err(problem) => self.fail(state, problem),
        }
    }

    fn fail(&self, state: &mut State, problem: String) {
        state.failure.get_or_insert(problem);
        self.turns.iter().for_each(Condvar::notify_one);
        self.over.notify_one();
    }
}

/// A mark of the code was reached.
fn at_site(site: Site) {
    let Some((shared, me)) = actor() else { return };
    let is_lock = matches!(site, Site::BeforeCpuLock | Site::BeforeGroupLock | Site::BeforeBaseLock);
    IS_BEFORE_LOCK.set(is_lock);
    shared.arrive(me, Point::At(site));
}

/// A mark of the test itself.
pub(crate) fn mark(site: Site) {
    at_site(site);
}

pub(crate) fn before_lock(lock: usize) {
    let Some((shared, me)) = actor() else { return };
    if !IS_BEFORE_LOCK.replace(false) {
        shared.arrive(me, Point::Lock(lock));
    }
}

pub(crate) fn blocked_by(lock: usize) {
    let (shared, me) = actor().unwrap_or_else(|| panic!("lock {lock} is held while nobody moves"));
    shared.arrive(me, Point::Blocked(lock));
}

pub(crate) fn took(lock: usize) {
    let Some((shared, me)) = actor() else { return };
    let mut state = shared.state();
    let before: Vec<_> = state.held[me].iter().map(|&held| (held, lock)).collect();
    state.nested.extend(before);
    state.held[me].push(lock);
    stop_at_lock(&shared, me, state, Point::Took(lock));
}

/// Whether virtual CPU `cpu` is in such a lock.
pub(crate) fn is_any_held_by(cpu: usize, is_such: impl Fn(usize) -> bool) -> bool {
    let (shared, _) = actor().expect("asked by a part");
    plain(&shared.state).held[cpu].iter().any(|&lock| is_such(lock))
}

pub(crate) fn gave_back(lock: usize) {
    let Some((shared, me)) = actor() else { return };
    let mut state = shared.state();
    state.held[me].retain(|&held| held != lock);
    for point in &mut state.points {
        if *point == Point::Blocked(lock) {
            *point = Point::Lock(lock);
        }
    }
    stop_at_lock(&shared, me, state, Point::GaveBack(lock));
}

/// Not of a part that is unwound: it only gives its locks back.
fn stop_at_lock(shared: &Shared, me: usize, state: MutexGuard<'_, State>, point: Point) {
    let stops = state.policy.stops_at_locks(me) && !std::thread::panicking();
    drop(state);
    if stops {
        shared.arrive(me, point);
    }
}

/// What a run left.
pub(crate) struct Ended {
    pub(crate) trace: Trace,
    pub(crate) points: Vec<Point>,
    pub(crate) nested: BTreeSet<(usize, usize)>,
    pub(crate) failure: Option<String>,
    pub(crate) policy: Box<dyn Policy>,
}

type Part = Arc<dyn Fn() + Send + Sync>;

/// Threads that play virtual CPUs, one run after the other.
pub(crate) struct Crew {
    parts: Vec<Sender<(Arc<Shared>, Part)>>,
    done: Receiver<()>,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    pub(crate) fn new(size: usize) -> Self {
        let (say_done, done) = channel();
        let mut crew = Self { parts: vec![], done, threads: vec![] };
        for me in 0..size {
            let (sender, parts) = channel::<(Arc<Shared>, Part)>();
            let say_done = say_done.clone();
            crew.parts.push(sender);
            crew.threads.push(std::thread::spawn(move || {
                for (shared, part) in parts {
                    // Each time: a part that was given up inside the hook has lost it.
                    set_hook(Some(Box::new(at_site)));
                    play(&shared, me, &*part);
                    drop((shared, part));
                    // No thread listens any more when the test failed.
                    let _ = say_done.send(());
                }
            }));
        }
        crew
    }

    /// Plays `parts`, one per virtual CPU, as `policy` says.
    pub(crate) fn run(&self, parts: Vec<Part>, policy: Box<dyn Policy>) -> Ended {
        let count = parts.len();
        assert!(count <= self.parts.len(), "the crew is too small");
        let state = State {
            points: vec![Point::Start; count],
            turn: None,
            policy,
            trace: vec![],
            held: vec![vec![]; count],
            nested: BTreeSet::new(),
            failure: None,
        };
        let turns = (0..count).map(|_| Condvar::new()).collect();
        let shared = Arc::new(Shared { state: Mutex::new(state), turns, over: Condvar::new() });
        for (sender, part) in self.parts.iter().zip(parts) {
            sender.send((Arc::clone(&shared), part)).expect("the thread lives as long as its crew");
        }
        let mut state = shared.state();
        shared.choose(&mut state, usize::MAX);
        while state.turn.is_some() && state.failure.is_none() {
            state = shared.over.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let failure = state.failure.clone();
        let points = state.points.clone();
        // A thread that was stopped for ever is unwound now.
        shared.fail(&mut state, "the run is over".to_owned());
        drop(state);
        (0..count).for_each(|_| self.done.recv().expect("every part ends"));
        let state = Arc::into_inner(shared).expect("nobody plays any more").state;
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ended { trace: state.trace, points, nested: state.nested, failure, policy: state.policy }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.parts.clear();
        for thread in self.threads.drain(..) {
            // A part that panicked was reported by its run.
            let _ = thread.join();
        }
    }
}

fn play(shared: &Arc<Shared>, me: usize, part: &(dyn Fn() + Send + Sync)) {
    ACTOR.set(Some((Arc::clone(shared), me)));
    IS_BEFORE_LOCK.set(false);
    let result = catch_unwind(AssertUnwindSafe(|| {
        shared.wait_for_turn(me, shared.state());
        part();
    }));
    ACTOR.set(None);
    let mut state = shared.state();
    match result {
        Ok(()) if state.failure.is_none() => {
            state.points[me] = Point::Done;
            state.trace.push((me, Point::Done));
            shared.choose(&mut state, me);
        }
        Ok(()) => {}
        Err(panic) if panic.is::<GivenUp>() => {}
        Err(panic) => {
            let text = format!("virtual CPU {me}: {}", text_of(&*panic));
            shared.fail(&mut state, text);
        }
    }
}

/// What a panic said.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
