//! Waiting for a moment.
//!
//! A sleep is a deadline and an [`SleepEntry`]. It costs nothing until it is polled; the first poll that
//! has to wait arms its timer, later ones take no lock. Source: tokio 1.54, `tokio::time::Sleep` (names,
//! behaviour). Deviations: the deadline is not rounded up to a millisecond when it is made, but met at the
//! first tick that is not before it; [`Sleep::is_elapsed`] of a sleep that was not polled since it was made
//! or reset is `false`.

use super::entry::SleepEntry;
use super::{Duration, Instant, Precision};
use crate::Machine;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use pin_project_lite::pin_project;

/// Waits for `duration`, counted from this call.
///
/// # Panics
/// When there is no current machine.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    let machine = Machine::current();
    Sleep::on(machine, Instant::from(machine.now()).after(duration))
}

/// Waits until `deadline`.
///
/// # Panics
/// When there is no current machine.
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::on(Machine::current(), deadline)
}

pin_project! {
    /// A future that is ready when its deadline has come, never before. Made by [`sleep`] and
    /// [`sleep_until`].
    ///
    /// It may be polled and dropped on any thread; dropping it cancels it. It is not `Unpin`: pin it
    /// (`core::pin::pin!`, `Box::pin`) to poll it by hand or to use it in a `select!` several times. 96
    /// bytes.
    ///
    /// Polling it panics when the machine was shut down, or in a forked child: the task would never be woken.
    ///
    /// ```
    /// use quietcore::Machine;
    /// use quietcore::time::{Duration, Instant, sleep};
    ///
    /// let machine = Machine::start()?;
    /// let _entered = machine.enter();
    /// futures_executor::block_on(async {
    ///     let mut idle = core::pin::pin!(sleep(Duration::from_secs(60)));
    ///     // Something happened: begin again, with less patience.
    ///     idle.as_mut().reset(Instant::now() + Duration::from_millis(2));
    ///     idle.as_mut().await;
    ///     assert!(idle.is_elapsed());
    /// });
    /// # machine.shutdown();
    /// # Ok::<(), quietcore::StartError>(())
    /// ```
    #[project(!Unpin)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Sleep {
        deadline: Instant,
        #[pin]
        entry: SleepEntry,
    }
}

const _: () = assert!(size_of::<Sleep>() <= 96 && size_of::<Option<Sleep>>() == size_of::<Sleep>());

impl Sleep {
    pub(super) fn on(machine: &'static Machine, deadline: Instant) -> Self {
        Self { deadline, entry: SleepEntry::new(machine, Precision::Tick) }
    }

    /// The same sleep with another precision. Default [`Precision::Tick`]. Cost: for `Exact` an allocation.
    pub fn with_precision(self, precision: Precision) -> Self {
        // It is not pinned, so it was never armed.
        self.renewed(precision)
    }

    /// A sleep for the same deadline that was not polled yet.
    pub(super) fn renewed(&self, precision: Precision) -> Self {
        Self { deadline: self.deadline, entry: SleepEntry::new(self.entry.machine(), precision) }
    }

    /// How much later than its deadline it may be.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.entry.precision()
    }

    /// When it will be ready.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether its timer has expired, or a poll found that the deadline had come. Of one that was not polled
    /// since it was made or reset, the answer is no.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        self.entry.is_over(self.deadline.into())
    }

    /// Gives it another deadline, earlier or later, before or after it was ready. A task that waits for it is
    /// woken at the new deadline, even if it is not polled before; at once, if that is over.
    ///
    /// Cost: while it is pending, a lock, as for arming it; else nothing.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.project();
        *this.deadline = deadline;
        this.entry.reset(deadline.into());
    }

    /// The present moment on its machine's clock, whatever machine is current.
    pub(super) fn now(&self) -> Instant {
        self.entry.machine().now().into()
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        this.entry.poll((*this.deadline).into(), context.waker())
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .field("precision", &self.precision())
            .field("is_elapsed", &self.is_elapsed())
            .finish_non_exhaustive()
    }
}
