//! What a lane runs, for those who look at it while it is silent. One record per CPU; its driver writes it
//! around each callback, poll and handler, others read it without a lock.
//!
//! The record has a version: odd while it is written, and another one each time. Who finds the same even one
//! before and after reading has read what belongs together. A reader never waits: of a lane that is just
//! writing there is nothing to tell, as it is not stuck. Model: `models.rs`.

#![allow(unsafe_code, reason = "references that last for ever, in a word")]

use crate::words::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use core::fmt;
use core::panic::Location;
use core::ptr::null_mut;

/// A reference to something that is there for ever, or nothing.
#[derive(Debug)]
pub(crate) struct StaticRef<T: 'static>(AtomicPtr<T>);

impl<T: Sync> StaticRef<T> {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// From any thread.
    #[inline]
    pub(crate) fn store(&self, value: Option<&'static T>) {
        let pointer = value.map_or(null_mut(), |value| core::ptr::from_ref(value).cast_mut());
        // Relaxed: what it leads to is part of the program, written before any thread began.
        self.0.store(pointer, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn load(&self) -> Option<&'static T> {
        // Relaxed: see `store`.
        let pointer = self.0.load(Ordering::Relaxed);
        // SAFETY: it is null or was made from a reference that lasts for ever, in `store`; and `T` is `Sync`.
        unsafe { pointer.as_ref() }
    }
}

/// What kind of code a lane runs. One for each closure, and each type of future, that a program has.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    /// Of its type; a function, because the name is not known to the compiler before.
    pub(crate) name: fn() -> &'static str,
    pub(crate) kind: CodeKind,
}

/// What it is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeKind {
    /// A timer: a callback, or wakers.
    Timer,
    /// A task: the type is its future's.
    Task,
    /// Work.
    Work,
    /// A softirq: which, its number says.
    Softirq,
}

impl Callback {
    /// Of a timer's closure.
    pub(crate) const fn of<F>() -> Self {
        Self { name: core::any::type_name::<F>, kind: CodeKind::Timer }
    }

    /// Of a future.
    pub(crate) const fn task<F>() -> Self {
        Self { name: core::any::type_name::<F>, kind: CodeKind::Task }
    }

    /// Of work whose type only the compiler can name.
    pub(crate) const fn work<F>(_: &F) -> &'static Self {
        const { &Self { name: core::any::type_name::<F>, kind: CodeKind::Work } }
    }

    /// Of a [`RawTimer`](crate::timer::RawTimer): all that is known is its function's address.
    pub(crate) const RAW: Self = Self { name: || "a function", kind: CodeKind::Timer };

    /// Of futures.
    pub(crate) const WAKER: Self = Self { name: || "a task's waker", kind: CodeKind::Timer };

    /// Of handlers: the vector says more than a type.
    pub(crate) const SOFTIRQ: Self = Self { name: || "a softirq's handler", kind: CodeKind::Softirq };
}

/// Two are the same if they are at the same place: one and the same name may have several.
impl PartialEq for Callback {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Eq for Callback {}

impl fmt::Debug for Callback {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str((self.name)())
    }
}

/// What a lane runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunningCode {
    pub(crate) callback: &'static Callback,
    /// Address of a timer; a task's priority, 0 for a normal one; a vector's index; 0 for all others.
    pub(crate) subject: usize,
    /// Address of a timer's function; 0 if that is not known.
    pub(crate) function: usize,
    /// Where a timer was armed, or a task started, if that is kept.
    pub(crate) location: Option<&'static Location<'static>>,
}

impl RunningCode {
    /// Wakers of futures; of which tasks is not known.
    pub(crate) const WAKERS: Self = Self::of(&Callback::WAKER, 0, None);

    /// What has no function of its own.
    #[inline]
    pub(crate) const fn of(
        callback: &'static Callback,
        subject: usize,
        location: Option<&'static Location<'static>>,
    ) -> Self {
        Self { callback, subject, function: 0, location }
    }
}

/// On cache lines of its own: its driver writes it all the time.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct RunRecord {
    version: AtomicU64,
    /// Nothing while nothing runs.
    callback: StaticRef<Callback>,
    subject: AtomicU64,
    function: AtomicU64,
    location: StaticRef<Location<'static>>,
    /// The kernel's number of the thread that drives the CPU; 0 for no thread.
    thread: AtomicU32,
    /// The number of the report of this CPU that has no end yet; 0 for none.
    open: AtomicU64,
}

impl RunRecord {
    pub(crate) fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            callback: StaticRef::new(),
            subject: AtomicU64::new(0),
            function: AtomicU64::new(0),
            location: StaticRef::new(),
            thread: AtomicU32::new(0),
            open: AtomicU64::new(0),
        }
    }

    /// The driver begins to run something. Cost: seven stores.
    #[inline]
    pub(crate) fn begin(&self, running: RunningCode) {
        // Relaxed: its own word.
        let version = self.version.load(Ordering::Relaxed);
        // Relaxed, fence: pairs with the fence in `running`: who reads one of the fields below sees this.
        self.version.store(version | 1, Ordering::Relaxed);
        fence(Ordering::Release);
        // Relaxed, all of them: the fences order them.
        self.subject.store(running.subject as u64, Ordering::Relaxed);
        self.function.store(running.function as u64, Ordering::Relaxed);
        self.location.store(running.location);
        self.callback.store(Some(running.callback));
        // Release: pairs with Acquire in `running`: who sees this version sees its fields.
        self.version.store((version | 1) + 1, Ordering::Release);
    }

    /// It has ended. Cost: a store.
    #[inline]
    pub(crate) fn end(&self) {
        self.callback.store(None);
    }

    /// From any thread.
    pub(crate) fn running(&self) -> Option<RunningCode> {
        // Acquire: pairs with Release in `begin`.
        let version = self.version.load(Ordering::Acquire);
        // Relaxed, all of them: see `begin`.
        let running = RunningCode {
            callback: self.callback.load()?,
            subject: self.subject.load(Ordering::Relaxed) as usize,
            function: self.function.load(Ordering::Relaxed) as usize,
            location: self.location.load(),
        };
        // Fence, Relaxed: pairs with the fence in `begin`.
        fence(Ordering::Acquire);
        let is_whole = version & 1 == 0 && self.version.load(Ordering::Relaxed) == version;
        is_whole.then_some(running)
    }

    /// Who drives the CPU from now on.
    pub(crate) fn set_thread(&self, thread: u32) {
        // Relaxed: for people.
        self.thread.store(thread, Ordering::Relaxed);
    }

    pub(crate) fn thread(&self) -> Option<u32> {
        // Relaxed: for people.
        Some(self.thread.load(Ordering::Relaxed)).filter(|thread| *thread != 0)
    }

    /// Whether the driver has to say that it is back. Cost: a load of a line that it writes anyway.
    #[inline]
    pub(crate) fn is_reported(&self) -> bool {
        // Relaxed: a hint; the report is changed under a lock.
        self.open.load(Ordering::Relaxed) != 0
    }

    /// Under the lock of the reports: the number of the report that has no end yet.
    pub(crate) fn report(&self, number: u64) {
        // Relaxed: see `is_reported`.
        self.open.store(number, Ordering::Relaxed);
    }

    /// Under the lock of the reports: forgets it.
    pub(crate) fn take_report(&self) -> u64 {
        // Relaxed: see `is_reported`.
        self.open.swap(0, Ordering::Relaxed)
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{RunRecord, RunningCode};
    use crate::words::sync::Ordering;

    /// Goal: what is only half written is not told, and the next that begins is. Method: a version as in the
    /// middle of a write.
    #[test]
    fn half_a_record_is_none() {
        let record = RunRecord::new();
        assert_eq!(record.running(), None);
        record.begin(RunningCode::WAKERS);
        assert_eq!(record.running(), Some(RunningCode::WAKERS));
        record.version.fetch_add(1, Ordering::Relaxed);
        assert_eq!(record.running(), None, "it is being written");
        record.begin(RunningCode::WAKERS);
        assert_eq!(record.running(), Some(RunningCode::WAKERS));
        record.end();
        assert_eq!(record.running(), None);
    }
}
