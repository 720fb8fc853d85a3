//! One run of a callback: what the callback may know of it, and what comes after it.

use super::raw::{CallbackTimer, DueCallback, Run};
use super::rearm::RunPlan;
use crate::{CpuId, Machine, Nanos};
use core::cell::Cell;
use core::fmt;
use core::time::Duration;

impl Run<'_> {
    /// The moment that the timer was armed for. It may be rounded up to a tick when another thread armed the
    /// timer while it was being handed out.
    #[must_use]
    pub const fn scheduled(&self) -> Nanos {
        self.scheduled
    }

    /// The moment just before the callback was called, on the machine's clock.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// How late the run is; part of this is due to the timer's [precision](super::Precision).
    #[must_use]
    pub const fn lateness(&self) -> Duration {
        Duration::from_nanos(self.now.since(self.scheduled).0)
    }

    /// Of a periodic timer: how many periods went by since the last run and had none.
    #[must_use]
    pub const fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Which CPU of the machine runs it; one above the host's when the helper or a spare lane does.
    #[must_use]
    pub const fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// The timer itself, to arm it again or to end a period. A callback that kept a
    /// [`TimerHandle`](super::TimerHandle) of its own timer would keep it alive for ever.
    ///
    /// ```
    /// use core::time::Duration;
    /// # use std::sync::mpsc;
    ///
    /// # let machine = quietcore::Machine::start()?;
    /// let (sender, receiver) = mpsc::channel();
    /// let mut left = 3;
    /// let timer = machine.timer(Default::default(), move |run| {
    ///     left -= 1;
    ///     if left > 0 {
    ///         run.timer().arm_after(Duration::from_millis(1)).expect("the machine is running");
    ///     }
    ///     sender.send(left).expect("the program waits");
    /// });
    /// timer.arm_after(Duration::ZERO)?;
    /// assert_eq!(receiver.iter().take(3).collect::<Vec<_>>(), [2, 1, 0]);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn timer(&self) -> &CallbackTimer {
        &self.timer
    }

    /// Cancels the timer, and lets go of it: after this call and the end of the callback the machine does not
    /// touch it again. So the memory of a [`RawTimer`](super::RawTimer) may be freed in its own callback, if
    /// no other thread uses it. Of a [`TimerHandle`](super::TimerHandle) it ends the periods, no more.
    ///
    /// ```
    /// # use core::ptr::NonNull;
    /// # use core::time::Duration;
    /// # use quietcore::{Machine, TimerOptions, timer::{RawTimer, Run}};
    /// # use std::sync::mpsc;
    /// # let machine = Machine::start()?;
    /// /// A timer that ends itself.
    /// struct Own {
    ///     timer: Option<RawTimer>,
    ///     sender: mpsc::Sender<&'static str>,
    /// }
    /// unsafe fn end(own: *mut (), run: &Run<'_>) {
    ///     run.release();
    ///     // SAFETY: it is the address of a box, and the timer in it is not used any more.
    ///     let own = unsafe { Box::from_raw(own.cast::<Own>()) };
    ///     own.sender.send("ended").expect("the program waits");
    /// }
    /// let (sender, receiver) = mpsc::channel();
    /// let own = Box::into_raw(Box::new(Own { timer: None, sender }));
    /// // SAFETY: `end` may be called once with the address of a box; the timer stays there until then.
    /// unsafe {
    ///     let timer = (*own).timer.insert(RawTimer::new(machine, TimerOptions::new(), end, own.cast()));
    ///     RawTimer::at(NonNull::from(timer)).arm_after(Duration::ZERO)?;
    /// }
    /// assert_eq!(receiver.recv()?, "ended");
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release(&self) {
        self.timer.cancel();
        self.plan.set(RunPlan::Released);
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Run")
            .field("scheduled", &self.scheduled)
            .field("lateness", &self.lateness())
            .field("overruns", &self.overruns)
            .field("cpu", &self.cpu)
            .finish_non_exhaustive()
    }
}

impl DueCallback {
    /// What to do with a timer that was due at `expires` by its base.
    pub(crate) fn plan(&self, expires: Nanos, machine: &Machine) -> RunPlan {
        let timer = self.timer.timer();
        let length = (!timer.is_exact()).then(|| machine.core.settings().tick);
        timer.rearm.plan(expires, || machine.clock.now(), length)
    }

    /// Runs the callback, if that was planned. A panic of it passes through.
    pub(crate) fn run(&self, plan: &Cell<RunPlan>, now: Nanos, cpu: CpuId) {
        if let RunPlan::Run { scheduled, overruns } = plan.get() {
            self.call(&Run { timer: CallbackTimer(self.timer), scheduled, now, overruns, cpu, plan });
        }
    }

    /// Arms the timer again, if another run follows, before the machine is told that this run is over.
    #[inline]
    pub(crate) fn follow(&self, plan: RunPlan, now: Nanos) {
        if plan != RunPlan::Released && self.timer.timer().rearm.follows() {
            self.timer.follow(plan, now);
        }
    }
}
