//! A future with a deadline.
//!
//! The timer is armed only after the inner future was polled and is not ready, so a future that is ready at
//! once costs a clock read. Source: tokio 1.54, `tokio::time::Timeout` (names, behaviour).

use super::error::Elapsed;
use super::{Duration, Instant, Precision, Sleep};
use crate::Machine;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use pin_project_lite::pin_project;

/// Gives `future` up after `duration`, counted from this call. A duration that does not fit the clock never
/// ends it.
///
/// # Panics
/// When there is no current machine.
#[track_caller]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    let machine = Machine::current();
    let deadline = Instant::from(machine.now()).checked_add(duration);
    Timeout { value: future.into_future(), delay: deadline.map(|deadline| Sleep::on(machine, deadline)) }
}

/// Gives `future` up at `deadline`.
///
/// # Panics
/// When there is no current machine.
#[track_caller]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout { value: future.into_future(), delay: Some(Sleep::on(Machine::current(), deadline)) }
}

/// Deadlines of futures, as their methods. Source: tokio-util 0.7.20, `tokio_util::future::FutureExt`.
///
/// ```
/// use quietcore::Machine;
/// use quietcore::time::{Duration, FutureExt};
///
/// let machine = Machine::start()?;
/// let _entered = machine.enter();
/// let late = core::future::pending::<()>().timeout(Duration::from_millis(1));
/// assert!(futures_executor::block_on(late).is_err());
/// # machine.shutdown();
/// # Ok::<(), quietcore::StartError>(())
/// ```
pub trait FutureExt: Future {
    /// As [`timeout`].
    ///
    /// # Panics
    /// When there is no current machine.
    #[track_caller]
    fn timeout(self, duration: Duration) -> Timeout<Self>
    where
        Self: Sized,
    {
        timeout(duration, self)
    }

    /// As [`timeout_at`].
    ///
    /// # Panics
    /// When there is no current machine.
    #[track_caller]
    fn timeout_at(self, deadline: Instant) -> Timeout<Self>
    where
        Self: Sized,
    {
        timeout_at(deadline, self)
    }
}

impl<F: Future + ?Sized> FutureExt for F {}

pin_project! {
    /// A future and its deadline. Made by [`timeout`] and [`timeout_at`].
    ///
    /// Ready with what the future gives, or with [`Elapsed`] if the deadline comes first. The future is
    /// polled first, and is dropped with the timeout.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Timeout<T> {
        #[pin]
        value: T,
        #[pin]
        delay: Option<Sleep>,
    }
}

impl<T> Timeout<T> {
    /// The same with another precision. Default [`Precision::Tick`]; `Coarse` spares the wheel the moves of
    /// a timeout that lives long and is cancelled in the end.
    pub fn with_precision(self, precision: Precision) -> Self {
        Self { value: self.value, delay: self.delay.map(|delay| delay.with_precision(precision)) }
    }

    /// The future.
    #[must_use]
    pub const fn get_ref(&self) -> &T {
        &self.value
    }

    /// The future, to be changed.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The future, without its deadline.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T: Future> Future for Timeout<T> {
    type Output = Result<T::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(value) = this.value.poll(context) {
            return Poll::Ready(Ok(value));
        }
        let Some(delay) = this.delay.as_pin_mut() else { return Poll::Pending };
        delay.poll(context).map(|()| Err(Elapsed::new()))
    }
}
