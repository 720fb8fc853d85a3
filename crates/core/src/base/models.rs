//! What is decided about a timer without a lock, under every order that the memory orderings allow.
//!
//! The words are the real ones, on loom's atomics; each model asserts which ends were reached, so that it
//! cannot pass by exploring nothing. Runs with `RUSTFLAGS="--cfg loom"` only: `cargo test -p quietcore-core
//! --lib base::models`. Absent: the hierarchy, which has its models in `tests/loom`.

use super::sync::SharedTimerWord;
use super::word::TimerWord;
use super::{BaseId, BaseKind, Bases, Cancelled, TickLength, TimerOptions};
use crate::sync::models::ends;
use crate::{Context, CpuId, Nanos, SequentialLock};
use alloc::collections::BTreeSet;
use loom::cell::UnsafeCell;
use loom::sync::Arc;

/// A timer's word and, for its links and its payload, one cell that loom watches: two who touch it without an
/// order between them, one of them to free it, are a failure.
struct Watched {
    word: SharedTimerWord,
    memory: UnsafeCell<()>,
}

/// How the holder of the base's lock makes a timer idle: it touches it, and its word last.
fn make_idle(timer: &Watched) {
    timer.memory.with(|_| ());
    timer.word.store(timer.word.load().without(TimerWord::PENDING));
}

/// Goal: a thread that sees without a lock that a timer is idle may free it: its runner, or its canceller,
/// touched it before. Method: the owner looks once, at any time; freeing is a write to the cell.
#[test]
fn drop_against_expire() {
    let base = BaseId { cpu: CpuId(0), kind: BaseKind::Global };
    let found = ends(move || {
        let word = SharedTimerWord::new(TimerWord::NOWHERE.at(base).with(TimerWord::PENDING));
        let timer = Arc::new(Watched { word, memory: UnsafeCell::new(()) });
        let owner = loom::thread::spawn({
            let timer = Arc::clone(&timer);
            move || {
                let is_idle = !timer.word.load_idle().has(TimerWord::PENDING);
                if is_idle {
                    timer.memory.with_mut(|_| ());
                }
                is_idle
            }
        });
        make_idle(&timer);
        owner.join().expect("it ends")
    });
    assert_eq!(found, BTreeSet::from([false, true]), "seen pending, and seen idle");
}

/// Goal: what is taken out of a detached timer is taken before its owner can free it. Method: the real base
/// hands a timer out and reads what lies beside it; its owner cancels it meanwhile, and writes there.
#[test]
fn taken_before_it_is_idle() {
    let id = BaseId { cpu: CpuId(0), kind: BaseKind::Guest };
    let context = |cpu: Option<CpuId>, nanos| Context::by(cpu, Nanos(nanos));
    let found = ends(move || {
        let mut bases = Bases::<SequentialLock, u32>::new(1, TickLength::default(), Nanos(0));
        let timer = bases.add_timer(TimerOptions::new().detached(), 7);
        let reference = bases.timer(timer).expect("just made");
        let _ = bases.arm(reference, Nanos(0), id, context(None, 0));
        let shared = Arc::new((bases, UnsafeCell::new(())));
        let owner = loom::thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (bases, memory) = &*shared;
                let timer = bases.timer(timer).expect("in the store");
                let cancelled = bases.cancel(timer, context(None, 0));
                memory.with_mut(|_| ());
                cancelled == Cancelled::WasPending
            }
        });
        let (bases, memory) = &*shared;
        let due = context(Some(CpuId(0)), 2_000_000);
        let token = bases.collect_and_take(id, CpuId(0), due);
        let take = |_, _| memory.with(|_| ());
        let has_run = token.is_some_and(|token| bases.pop_with(&token, due, take).expired.is_some());
        let was_cancelled = owner.join().expect("it ends");
        assert_ne!(has_run, was_cancelled, "one of both, and not both");
        bases.check();
        was_cancelled
    });
    assert_eq!(found, BTreeSet::from([false, true]), "handed out, and cancelled before");
}

/// Goal: of two first arms at once, on two bases, one gives the timer its base, and the second moves it.
/// Method: both take the fast path, and if that is not theirs the slow one, as machines do.
#[test]
fn two_first_arms() {
    let base = |cpu| BaseId { cpu: CpuId(cpu), kind: BaseKind::Guest };
    let context = Context::near(CpuId(0), Nanos(0));
    let arm = move |bases: &Bases<SequentialLock, u32>, timer, onto| {
        let timer = bases.timer(timer).expect("in the store");
        if bases.arm_fast(timer, Nanos(900_000_000), onto, context).is_none() {
            let _ = bases.arm(timer, Nanos(900_000_000), onto, context);
            return false;
        }
        true
    };
    let found = ends(move || {
        let mut bases = Bases::<SequentialLock, u32>::new(2, TickLength::default(), Nanos(0));
        let timer = bases.add_timer(TimerOptions::new(), 7);
        let bases = Arc::new(bases);
        let other = loom::thread::spawn({
            let bases = Arc::clone(&bases);
            move || arm(&bases, timer, base(1))
        });
        let is_first = arm(&bases, timer, base(0));
        let other_is_first = other.join().expect("it ends");
        assert_ne!(is_first, other_is_first, "one of both");
        let pending = [0, 1].map(|cpu| bases.lock(base(cpu), None).pending());
        assert_eq!(pending[0] + pending[1], 1, "it is pending once");
        bases.check();
        is_first
    });
    assert_eq!(found, BTreeSet::from([false, true]), "either is the first");
}

/// Goal: a timer that changes its base never looks idle on the way, to a cancel that asks without a lock.
/// Method: it is moved once, by an arm, while another thread cancels it: before the move or after, it was
/// pending.
#[test]
fn cancel_against_a_move() {
    let base = |cpu| BaseId { cpu: CpuId(cpu), kind: BaseKind::Local };
    let context = Context::near(CpuId(0), Nanos(0));
    let found = ends(move || {
        let mut bases = Bases::<SequentialLock, u32>::new(2, TickLength::default(), Nanos(0));
        let id = bases.add_timer(TimerOptions::new(), 7);
        let timer = bases.timer(id).expect("just made");
        let _ = bases.arm(timer, Nanos(100_000_000), base(0), context);
        let bases = Arc::new(bases);
        let canceller = loom::thread::spawn({
            let bases = Arc::clone(&bases);
            move || bases.cancel(bases.timer(id).expect("in the store"), context)
        });
        let armed = bases.arm(timer, Nanos(900_000_000), base(1), context);
        let cancelled = canceller.join().expect("it ends");
        assert_eq!(cancelled, Cancelled::WasPending, "it was pending all the time");
        assert_eq!(armed.base, base(1));
        assert_eq!(timer.is_pending(), !armed.was_pending, "cancelled before the arm, or after it");
        bases.check();
        armed.was_pending
    });
    assert_eq!(found, BTreeSet::from([false, true]), "cancelled before, and after");
}
