//! Per-CPU timer bases: the lock of each timer, when it is due, and the CPU that runs it.
//!
//! Each CPU has four bases ([`BaseKind`]), each with a lock of its own. A [`Base`] is what one lock protects;
//! it knows nothing of other bases, of the hierarchy or of policies. [`Bases`] is all of them with their
//! locks: it finds the lock of a timer, moves timers between bases, and hands out what is due.
//!
//! ```text
//! timer.rs  timers, their kinds, references  word.rs sync.rs  the word beside a timer's links: its base
//! options.rs what is fixed                   tick_length.rs   nanoseconds to ticks and back
//! queues.rs a base's wheel and exact queues  bases.rs         locks
//! runs.rs   what runs right now              arm.rs           arm, cancel, shut down, across bases
//! arena.rs store.rs  timers by number        expire.rs        collect, pop, finish
//! check.rs  W1 to W6                         transfer.rs      adoption, evacuation
//! models.rs what is decided without a lock    cancel_all.rs    all of a base at once
//! ```
//!
//! Invariants (`check.rs` asserts them; the W numbers are those of the wheel):
//! - A timer's links are touched only under the lock of the base that its word names (W5).
//! - Published next expiry is never later than the truth; after a cancel it may be earlier until the
//!   next look.
//! - Collected timers are pending and cancellable. While a runner holds the token they are its business;
//!   while the token is free they are overdue in `next_expiry`.
//! - A timer that runs is on a record of its base and is not handed out again before that run has ended. A
//!   detached one never is.
//! - A timer that was shut down is never armed again (W6).
//!
//! Not here: clocks (`now` is an argument), callbacks, waking a CPU: what an arm or a pop did is returned
//! ([`ExpiryChange`]). Source: Linux 6.12, kernel/time/timer.c. Deviations: expiry has two phases and a token
//! instead of `running_timer`; a base change takes both locks, so that there is no state in between; a fourth
//! base for foreign threads; nanosecond queues in the same bases.

mod arena;
mod arm;
mod arm_many;
mod bases;
mod cancel_all;
mod check;
mod expire;
#[cfg(all(test, loom))]
mod models;
mod options;
mod queues;
mod runs;
mod store;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;
mod tick_length;
mod timer;
mod transfer;
mod word;

pub(crate) use arm::FastArm;
pub use arm::{Arm, ArmMode, ArmTarget, Cancelled};
pub use arm_many::ArmOfMany;
pub(crate) use bases::{BaseGuard, Bases, earliest};
pub(crate) use expire::RunnerToken;
pub use expire::{ExpiredTimer, TimerName};
pub use options::TimerOptions;
pub use store::{ExactId, RemoveError, TimerId};
pub(crate) use store::{Stored, TimerStore};
pub use tick_length::TickLength;
pub(crate) use timer::{EitherRef, Moment};
pub use timer::{ExactKind, ExactRef, ExactTimer, TickKind, Timer, TimerKind, TimerRef};
pub use word::{BaseId, BaseKind};

use crate::time::{NEVER, from_word};
use crate::{CpuId, Nanos};
use queues::BaseQueues;
use runs::Runs;

/// What a call did to the next expiry of a base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "a base that is due earlier must be published when its CPU is idle"]
pub(crate) struct ExpiryChange {
    /// The base is due earlier than was known before.
    pub(crate) is_first: bool,
    /// An exact timer came to the front of the exact ones, maybe behind one of ticks: an idle CPU leaves
    /// those to others, and wakes up for this one.
    pub(crate) is_exact_first: bool,
    /// Its CPU was idle then, and does not look at the base unless it is published.
    pub(crate) was_idle: bool,
    /// The base was evacuated while a timer ran: if that is armed again, it is to go where the others went.
    pub(crate) leaves: bool,
}

impl ExpiryChange {
    /// Both changes together.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            is_first: self.is_first || other.is_first,
            is_exact_first: self.is_exact_first || other.is_exact_first,
            was_idle: self.was_idle || other.was_idle,
            leaves: self.leaves || other.leaves,
        }
    }

    /// Whether the new expiry has to be published.
    #[inline]
    pub(crate) const fn must_publish(self) -> bool {
        (self.is_first || self.is_exact_first) && self.was_idle
    }
}

/// How often things happened in a base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BaseCounters {
    /// Arms that had an effect.
    pub(crate) armed: u64,
    /// Pending periods that an arm ended.
    pub(crate) superseded: u64,
    /// Pending periods that a cancel ended.
    pub(crate) cancelled: u64,
    /// Timers handed out, and how many of them to another CPU.
    pub(crate) ran: u64,
    pub(crate) ran_remote: u64,
    /// Timers that were due while they still ran.
    pub(crate) waited: u64,
    /// Tokens taken away from their holders.
    pub(crate) revoked: u64,
}

/// What becomes of an arm that comes to a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// It is put there.
    Arms,
    /// The CPU is offline and this one has its timers: it is put there.
    NothingFor(CpuId),
    /// The machine has ended: it is refused, and nothing is handed out any more.
    Nothing,
}

/// What the lock of one base protects.
#[derive(Debug)]
pub(crate) struct Base<T> {
    pub(crate) id: BaseId,
    queues: BaseQueues<T>,
    runs: Runs<T>,
    /// Its CPU does not look at this base by itself.
    pub(crate) is_idle: bool,
    /// The CPU that hands out what was collected, and the number of its token.
    runner: Option<(CpuId, u64)>,
    /// Tokens given so far.
    generation: u64,
    /// What [`BaseGuard`] publishes, in ns.
    published: u64,
    /// `published` may be too early.
    is_stale: bool,
    /// When the first of the collected timers was due, in ns; says nothing when there is none.
    overdue: u64,
    /// Timers that are pending here, in queues and on records.
    pending: usize,
    takes: Takes,
    pub(crate) counters: BaseCounters,
}

impl<T: Copy> Base<T> {
    fn new(id: BaseId, length: TickLength, now: Nanos) -> Self {
        Self {
            id,
            queues: BaseQueues::new(length, now),
            runs: Runs::new(),
            is_idle: false,
            runner: None,
            generation: 0,
            published: NEVER,
            is_stale: false,
            overdue: NEVER,
            pending: 0,
            takes: Takes::Arms,
            counters: BaseCounters::default(),
        }
    }

    /// When a CPU has to look at this base, to the best of what is known; `None` for never.
    pub(crate) fn next_expiry(&mut self) -> Option<Nanos> {
        self.renew();
        (self.published != NEVER).then_some(Nanos(self.published))
    }

    /// When the first of its exact timers is due.
    pub(crate) fn next_exact(&self) -> Option<Nanos> {
        from_word(self.queues.next_exact())
    }

    /// The CPU that has the timers of this one, which is offline.
    fn adopter(&self) -> Option<CpuId> {
        match self.takes {
            Takes::NothingFor(adopter) => Some(adopter),
            Takes::Arms | Takes::Nothing => None,
        }
    }

    /// Whether the machine has ended.
    fn is_closed(&self) -> bool {
        self.takes == Takes::Nothing
    }

    /// Timers that are pending here.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// Runs that have begun here and not ended.
    pub(crate) fn running(&self) -> usize {
        self.runs.running()
    }

    /// Whether a run of one of its timers on `cpu` has not ended.
    pub(crate) fn runs_on(&self, cpu: CpuId) -> bool {
        self.runs.runs_on(cpu)
    }

    /// The CPU that holds the token.
    pub(crate) fn runner(&self) -> Option<CpuId> {
        self.runner.map(|(cpu, _)| cpu)
    }

    /// Takes the wheel's clock to `now`, as far as no bucket is due.
    #[inline]
    pub(crate) fn forward(&mut self, now: Nanos) {
        self.queues.forward(now);
    }

    /// Whether anything may be handed out.
    #[inline]
    pub(crate) fn has_expired(&self) -> bool {
        self.queues.has_collected() || self.runs.has_ready()
    }

    /// Says when the base is due from now on; returns whether that is earlier than was known.
    fn renew(&mut self) -> bool {
        let mut next = self.queues.next_expiry();
        if self.has_expired() {
            if self.runner.is_none() {
                next = next.min(self.overdue);
            }
        } else {
            self.overdue = NEVER;
        }
        self.is_stale = false;
        let is_first = next < self.published;
        self.published = next;
        is_first
    }

    /// The same, as a result.
    fn renewed(&mut self) -> ExpiryChange {
        let is_first = self.renew();
        ExpiryChange { is_first, was_idle: self.is_idle, ..ExpiryChange::default() }
    }

    /// A queue is due at `due`; returns whether the base was due later.
    #[inline]
    fn note(&mut self, due: u64) -> ExpiryChange {
        let is_first = due < self.published;
        if is_first {
            self.published = due;
        }
        ExpiryChange { is_first, was_idle: self.is_idle, ..ExpiryChange::default() }
    }
}
