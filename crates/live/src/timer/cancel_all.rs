//! Every callback of a machine, or of some of its CPUs, taken out at once.
//!
//! A timer may be freed by its owner as soon as the lock of its base is free, and its periods have a lock of
//! their own that comes before those of bases. So under a base's lock that of the periods is only tried;
//! where another thread has it, which is about to arm or cancel that timer, the timer stays, and all of them
//! are looked at again. What the caller is told was taken before. Source: none; DPDK has
//! `rte_timer_stop_all`.

use super::raw::{CancelledTimer, EndedPeriods};
use crate::job::Job;
use crate::{CpuSet, Machine};

impl Machine {
    /// Takes out every callback that is pending on `cpus` (`None`: on all, the helper's and those of spare
    /// lanes among them), delayed work too, and ends its periods. Then calls `told` with each, and says how
    /// many there were. Futures that wait for a time are left: their tasks would wait for ever.
    ///
    /// A run that has begun goes on and is not waited for. Its timer is not pending, so it has its next
    /// period if it has periods, and what it arms stays armed: to end it as well,
    /// [cancel](super::CallbackTimer::cancel) that timer, or call this again when the run has ended. What
    /// other threads arm during this call may be taken out or stay; what `told` arms stays.
    ///
    /// It takes out what other parts of the program have armed, too: the transmit queues of a machine with
    /// devices wait for such timers. To end a machine, [`shutdown`](Self::shutdown) is the call.
    ///
    /// Any thread, also in a callback. Cost: some 10 to 100 ns per timer that is pending; each base is locked
    /// while its timers are taken out. Allocates, by their number. Does nothing in a forked child.
    ///
    /// ```
    /// use core::time::Duration;
    ///
    /// let machine = quietcore::Machine::start()?;
    /// let timer = machine.timer(Default::default(), |_| println!("an hour is over"));
    /// timer.arm_after(Duration::from_secs(3600))?;
    /// assert_eq!(machine.cancel_all(None, |_| ()), 1);
    /// assert!(!timer.is_pending());
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_all(&self, cpus: Option<&CpuSet>, told: impl FnMut(CancelledTimer)) -> usize {
        if self.is_forked() {
            // There the locks may be held for ever.
            return 0;
        }
        let is_of = |cpu| cpus.is_none_or(|cpus| cpus.contains(cpu));
        let mut taken = Vec::new();
        loop {
            let mut is_busy = false;
            let take = |payload, name| match Job::end_periods(payload, name)? {
                EndedPeriods::Ended(timer) => Some(timer),
                EndedPeriods::Busy => {
                    is_busy = true;
                    None
                }
            };
            let is_whole = self.core.cancel_all(is_of, &mut taken, take);
            if is_whole && !is_busy {
                break;
            }
            std::thread::yield_now();
        }
        let count = taken.len();
        taken.into_iter().for_each(told);
        count
    }
}
