//! A timer for hyper: what its servers and clients wait with.
//!
//! hyper makes a sleep once per connection and moves it for each request, so moving it must not allocate.
//! Its moments are the standard library's, converted without loss. Not here: I/O and executors, which
//! hyper-util has for tokio.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use pin_project_lite::pin_project;
use quietcore_live::time::{self, Instant};
use std::time::Instant as StdInstant;

/// The timer of the machine that is current where hyper sleeps. Give it to the `timer` method of hyper's and
/// hyper-util's builders.
///
/// Precision: a tick. It follows paused time. Cost: an allocation per sleep, none to move one.
///
/// ```
/// use hyper::rt::Timer;
/// use quietcore::time::{Duration, Instant};
///
/// let machine = quietcore::Machine::start()?;
/// let _entered = machine.enter();
/// let timer = quietcore::hyper::HyperTimer::new();
/// // A server: http1::Builder::new().timer(timer).header_read_timeout(Duration::from_secs(10))
/// let started = Instant::now();
/// quietcore::time::block_on(timer.sleep(Duration::from_millis(2)));
/// assert!(started.elapsed() >= Duration::from_millis(2));
/// # machine.shutdown();
/// # Ok::<(), quietcore::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HyperTimer;

impl HyperTimer {
    /// The only one there is.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

pin_project! {
    /// What hyper holds while it waits.
    struct Sleep {
        #[pin]
        inner: time::Sleep,
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.project().inner.poll(context)
    }
}

impl hyper::rt::Sleep for Sleep {}

impl hyper::rt::Timer for HyperTimer {
    /// # Panics
    /// When there is no current machine.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Sleep { inner: time::sleep(duration) })
    }

    /// # Panics
    /// When there is no current machine.
    fn sleep_until(&self, deadline: StdInstant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Sleep { inner: time::sleep_until(Instant::from_std(deadline)) })
    }

    /// The present on the clock of the current machine.
    fn now(&self) -> StdInstant {
        Instant::now().into_std()
    }

    /// Moves a sleep that this timer made; another one is replaced.
    fn reset(&self, sleep: &mut Pin<Box<dyn hyper::rt::Sleep>>, deadline: StdInstant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(ours) => ours.project().inner.reset(Instant::from_std(deadline)),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}
