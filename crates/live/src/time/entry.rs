//! The timer of a future: armed at a poll, moved by a reset, let go of by a drop.
//!
//! A [`Slot`] is a timer and the cell with its waker, in memory of the future's. Who may touch it: while it
//! is pending, the machine, and its owner through shared references; else the owner alone. The runner leaves
//! the timer with the store that shows it idle, so an owner that sees it idle may free it at once and takes
//! no lock; an owner that sees it pending cancels it under the lock of its base, which waits for a runner
//! that is just handing it out, and for no wake.
//!
//! Invariants: a timer that was armed stays where it is until its slot is dropped (`Pin`). A slot that is
//! dropped is idle; a slot in [`State::Idle`] is not pending, and its cell is at rest (neither holds in a
//! forked child, whose machine has no lanes). A poll sleeps only if its waker was registered before the timer
//! was taken.
//!
//! Why a [`Precision::Tick`] timer is armed for a nanosecond less: a base runs a timer at the first edge of a
//! tick *after* what it was armed for, so this is the first edge that is not before the deadline. A
//! [`Precision::Coarse`] one can be handed out early when its delay exceeds the wheel's longest (12 days at
//! ticks of 1 ms): then the poll sees it and arms it again.
//! Not here: deadlines, which the callers keep. Source: docs/design/PROTOCOL.md, section 7, and
//! docs/design/PROTOCOL.md, section 8.
#![allow(
    unsafe_code,
    reason = "timers are reached by address, and a pinned future has parts that are pinned"
)]

use super::budget;
use crate::payload::{Payload, WakeEntry};
use crate::words::waker_cell::{Register, WakerCell};
use crate::{Machine, Precision};
use core::fmt;
use core::pin::Pin;
use core::task::{Poll, Waker};
use quietcore_core::{ArmRefusal, ExactKind, Nanos, TickKind, Timer, TimerKind, TimerOptions, TimerRef};

/// The clock that is cheap to read is behind by a tick of the kernel, which is 10 ms at the longest: a
/// deadline within this span of it needs the exact clock. Where the kernel's tick itself is late, a deadline
/// that is over may cost one of ours.
const NEAR: Nanos = Nanos(10_000_000);

/// How far a future's wait has come. Written by the slot's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not armed; the cell is at rest.
    Idle,
    /// Armed. The cell says whether the timer was handed out.
    Armed,
    /// A poll found that the deadline had come, and armed nothing.
    Over,
}

const KNOWN: &str = "timers of futures are reached by address and never shut down";

/// A timer with its waker, and what its owner knows of it.
#[derive(Debug)]
struct Slot<K: TimerKind> {
    entry: WakeEntry<K>,
    state: State,
    precision: Precision,
}

impl<K: TimerKind> Slot<K> {
    fn new(machine: &'static Machine, precision: Precision) -> Self {
        let options = TimerOptions::new().detached().precision(match precision {
            Precision::Coarse => quietcore_core::Precision::Coarse,
            Precision::Tick | Precision::Exact => quietcore_core::Precision::Tick,
        });
        let timer = Timer::of_kind(Payload::wake(machine.reference()), options);
        Self { entry: WakeEntry { timer, cell: WakerCell::new() }, state: State::Idle, precision }
    }

    fn machine(&self) -> &'static Machine {
        Machine::of(self.entry.timer.payload().machine())
    }

    /// The parts of a slot, for its owner. The entry is borrowed shared even here: the machine may be reading
    /// it.
    fn parts(self: Pin<&mut Self>) -> (&mut State, &WakeEntry<K>) {
        // SAFETY: nothing is moved out: one part is plain, one is shared.
        let slot = unsafe { self.get_unchecked_mut() };
        (&mut slot.state, &slot.entry)
    }

    #[inline]
    fn poll(mut self: Pin<&mut Self>, deadline: Nanos, waker: &Waker) -> Poll<()> {
        match self.state {
            State::Idle => self.start(deadline, waker),
            State::Over => Poll::Ready(()),
            State::Armed => match self.entry.cell.register(waker) {
                Register::Registered => {
                    assert_alive(self.machine());
                    Poll::Pending
                }
                Register::Taken if self.is_early(deadline) => {
                    let _ = self.as_mut().settle();
                    self.start(deadline, waker)
                }
                Register::Taken => Poll::Ready(()),
            },
        }
    }

    /// Arms the timer unless its deadline has come.
    fn start(self: Pin<&mut Self>, deadline: Nanos, waker: &Waker) -> Poll<()> {
        let machine = self.machine();
        let (state, entry) = self.parts();
        let Some(now) = before(machine, deadline) else {
            if !budget::may_be_over() {
                waker.wake_by_ref();
                return Poll::Pending;
            }
            *state = State::Over;
            return Poll::Ready(());
        };
        budget::renew();
        assert_alive(machine);
        debug_assert!(!entry.timer.is_pending() && !entry.cell.is_taken(), "nobody takes an idle timer");
        // SAFETY: a slot in `State::Idle` has an idle timer and a cell at rest, and this is its owner.
        unsafe { entry.cell.register_alone(waker) };
        *state = State::Armed;
        // SAFETY: the slot is pinned, so it stays where it is until it is dropped, which cancels the timer;
        // and `parts` gives out no exclusive reference to the entry.
        if unsafe { arm(entry, deadline, now) } == Arming::Refused {
            assert_alive(machine);
        }
        Poll::Pending
    }

    /// Sets another deadline. A pending timer is moved and keeps its waker; any other is armed by the next
    /// poll.
    fn reset(mut self: Pin<&mut Self>, deadline: Nanos) {
        let machine = self.machine();
        if self.entry.timer.is_pending()
            && !machine.is_forked()
            && let Some(now) = before(machine, deadline)
        {
            let (_, entry) = self.as_mut().parts();
            // SAFETY: as in `start`.
            if unsafe { arm(entry, deadline, now) } == Arming::Moved {
                return;
            }
            // It was handed out at this moment, or the machine ended, so its waker is woken, and that poll
            // arms it, or says so.
        }
        if let Some(waker) = self.settle() {
            waker.wake();
        }
    }

    /// Makes the slot idle. If the timer was pending, the caller gets its waker.
    #[must_use]
    fn settle(self: Pin<&mut Self>) -> Option<Waker> {
        let machine = self.machine();
        let (state, entry) = self.parts();
        *state = State::Idle;
        if machine.is_forked() {
            return None;
        }
        let was_pending = entry.timer.is_pending() && cancel(entry);
        let waker = if was_pending { entry.cell.take() } else { None };
        entry.cell.reset();
        waker
    }

    fn is_over(&self, deadline: Nanos) -> bool {
        match self.state {
            State::Idle => false,
            State::Armed => self.entry.cell.is_taken() && !self.is_early(deadline),
            State::Over => true,
        }
    }

    /// Whether a timer that was handed out has to be armed again: it was far, or the machine ended before its
    /// time.
    #[inline]
    fn is_early(&self, deadline: Nanos) -> bool {
        let may_be = self.precision == Precision::Coarse || !self.machine().is_running();
        may_be && self.machine().clock.now() < deadline
    }
}

impl<K: TimerKind> Drop for Slot<K> {
    /// Takes no lock unless the timer is pending, and none at all in a forked child, where another thread may
    /// have had it at the moment of the fork.
    #[inline]
    fn drop(&mut self) {
        if self.entry.timer.is_pending() && !self.machine().is_forked() {
            cancel(&self.entry);
        }
    }
}

/// What became of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arming {
    /// The timer was not pending before.
    New,
    /// It was.
    Moved,
    /// The machine has ended; nothing changed.
    Refused,
}

impl Arming {
    #[inline]
    const fn of(was_pending: bool) -> Self {
        if was_pending { Self::Moved } else { Self::New }
    }
}

/// Arms the timer of an entry, or moves it.
///
/// # Safety
/// The entry stays where it is, shared, until its timer is idle.
#[inline]
unsafe fn arm<K: TimerKind>(entry: &WakeEntry<K>, deadline: Nanos, now: Nanos) -> Arming {
    let machine = Machine::of(entry.timer.payload().machine());
    let at = K::not_before(deadline, Nanos(0));
    // SAFETY: the caller promises that the entry stays; all references go to the machine in its payload,
    // which no thread writes.
    let timer = unsafe { TimerRef::new(entry.address()) };
    let context = machine.context(now);
    if let Some(was_pending) = machine.arm_usual(timer, at, context) {
        return Arming::of(was_pending); // it is not exact: no lane that dozes has to be told
    }
    match machine.act(|actions| machine.core.arm(timer, at, context, actions)) {
        Ok(armed) => {
            machine.after_arm(armed.base, K::IS_EXACT, deadline);
            Arming::of(armed.was_pending)
        }
        Err(ArmRefusal::ShutDown) => Arming::Refused,
        Err(refusal) => unreachable!("{KNOWN}: {refusal:?}"),
    }
}

/// Takes the timer of an entry out; says whether it was pending.
#[inline(always)]
fn cancel<K: TimerKind>(entry: &WakeEntry<K>) -> bool {
    let machine = Machine::of(entry.timer.payload().machine());
    // SAFETY: the entry is valid and shared during this call, and the reference is not kept.
    let timer = unsafe { TimerRef::new(entry.address()) };
    machine.core.cancel(timer, machine.cancel_context()).expect(KNOWN)
}

/// The present for an arm, perhaps a kernel's tick behind; `None` when `deadline` has come.
#[inline(always)]
fn before(machine: &Machine, deadline: Nanos) -> Option<Nanos> {
    let coarse = machine.clock.coarse();
    if deadline.since(coarse) > NEAR {
        return Some(coarse);
    }
    let now = machine.clock.now();
    (now < deadline).then_some(now)
}

/// A future that will not be woken must not sleep.
#[inline]
fn assert_alive(machine: &Machine) {
    if let Err(error) = machine.check_alive() {
        panic!("a future waits for a time that will not come: {error}");
    }
}

/// The timer of one future. An exact timer is larger, so it is boxed.
#[derive(Debug)]
enum Place {
    Here(Slot<TickKind>),
    Elsewhere(Pin<Box<Slot<ExactKind>>>),
}

/// What a future waits with.
pub(super) struct SleepEntry(Place);

impl SleepEntry {
    pub(super) fn new(machine: &'static Machine, precision: Precision) -> Self {
        Self(match precision {
            Precision::Coarse | Precision::Tick => Place::Here(Slot::new(machine, precision)),
            Precision::Exact => Place::Elsewhere(Box::pin(Slot::new(machine, precision))),
        })
    }

    pub(super) fn machine(&self) -> &'static Machine {
        match &self.0 {
            Place::Here(slot) => slot.machine(),
            Place::Elsewhere(slot) => slot.machine(),
        }
    }

    pub(super) fn precision(&self) -> Precision {
        match &self.0 {
            Place::Here(slot) => slot.precision,
            Place::Elsewhere(slot) => slot.precision,
        }
    }

    /// Whether the deadline has come and it was noticed.
    pub(super) fn is_over(&self, deadline: Nanos) -> bool {
        match &self.0 {
            Place::Here(slot) => slot.is_over(deadline),
            Place::Elsewhere(slot) => slot.is_over(deadline),
        }
    }

    fn place(self: Pin<&mut Self>) -> PinnedPlace<'_> {
        // SAFETY: what is pinned is not moved out: a slot that is here is pinned again, a boxed one is
        // behind a pointer of its own.
        match unsafe { &mut self.get_unchecked_mut().0 } {
            // SAFETY: the slot is a part of what is pinned, and is only ever reached through here.
            Place::Here(slot) => PinnedPlace::Here(unsafe { Pin::new_unchecked(slot) }),
            Place::Elsewhere(slot) => PinnedPlace::Elsewhere(slot.as_mut()),
        }
    }

    /// Ready from `deadline` on; it must be the one of all calls since the last reset.
    #[inline]
    pub(super) fn poll(self: Pin<&mut Self>, deadline: Nanos, waker: &Waker) -> Poll<()> {
        match self.place() {
            PinnedPlace::Here(slot) => slot.poll(deadline, waker),
            PinnedPlace::Elsewhere(slot) => slot.poll(deadline, waker),
        }
    }

    /// Waits for `deadline` from now on. A task that waits is woken then, or at once if that moment is over.
    pub(super) fn reset(self: Pin<&mut Self>, deadline: Nanos) {
        match self.place() {
            PinnedPlace::Here(slot) => slot.reset(deadline),
            PinnedPlace::Elsewhere(slot) => slot.reset(deadline),
        }
    }
}

/// A pinned [`Place`].
enum PinnedPlace<'a> {
    Here(Pin<&'a mut Slot<TickKind>>),
    Elsewhere(Pin<&'a mut Slot<ExactKind>>),
}

impl fmt::Debug for SleepEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::time::{Duration, Precision, sleep};
    use crate::{Cpu, CpuId, Machine, Nanos, TimerOptions};
    use core::future::Future;
    use core::task::{Context, Waker};
    use quietcore_core::lane::Sleeper;
    use std::thread;

    /// Goal: a lane that dozes is woken for an exact sleep that ends before its doze. Method: a lane by hand,
    /// in time that stands still: it dozes for a timer of its own, and a stranger on its CPU polls a sleep.
    #[test]
    fn an_exact_sleep_ends_a_doze() {
        let builder = Machine::builder().lanes("0".parse().expect("a list")).stall_after(Duration::MAX);
        let machine = builder.start().expect("it starts");
        let mut cpu = Cpu::claim(machine, CpuId::default()).expect("no thread has it");
        let now = Nanos(machine.now().0.next_multiple_of(1_000_000) + 1_000);
        machine.clock.freeze(now);
        cpu.turn();
        let own = machine.timer(TimerOptions::new().precision(Precision::Exact), |_| {});
        own.arm_at(Nanos(now.0 + 900_000)).expect("it runs");
        let _ = cpu.enter_idle();
        let slot = machine.lanes.table().slot(CpuId::default()).expect("it is a lane");
        assert!(slot.dozes() && slot.world.is_waiting());
        let poll_as_stranger = || {
            let mut here = rustix::thread::CpuSet::new();
            here.set(0);
            rustix::thread::sched_setaffinity(None, &here).expect("the test may run there");
            let _entered = machine.enter();
            let mut nap = Box::pin(sleep(Duration::from_micros(100)).with_precision(Precision::Exact));
            assert!(nap.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            nap
        };
        let nap = thread::scope(|scope| scope.spawn(poll_as_stranger).join().expect("no panic"));
        assert!(!slot.world.is_waiting(), "the lane sleeps on");
        cpu.exit_idle();
        drop((nap, cpu));
        machine.shutdown();
    }
}
