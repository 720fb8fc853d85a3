//! The helper thread: without lanes it expires every timer, driving the first spare.
//!
//! It waits on the alarm's timer of the kernel. While nothing is due soon its CPU is idle in the hierarchy,
//! and the thread that arms the first timer of the whole tree moves the alarm (0.5 us); all other arms cost
//! their base's lock. When the next expiry is at most a tick away it dozes: its CPU stays active, and only
//! exact timers are told to it. Source: docs/design/PROTOCOL.md, sections 4 and 6.

use super::Machine;
use super::error::StartError;
use crate::panic::contain;
use crate::slack;
use quietcore_core::{Actions, Nanos};
use std::sync::PoisonError;
use std::thread;

impl Machine {
    pub(super) fn start_helper(&'static self) -> Result<(), StartError> {
        self.start_thread("quietcore-help".to_owned(), move || {
            // A moment is as late as the kernel's timers are; the default slack would add 50 us.
            let _ = slack::take_away();
            let _own = self.join_own_threads();
            self.survive(|| if self.lanes.exist() { self.stand_sentinel() } else { self.help() });
            if !self.is_forked() {
                self.alarm.end();
            }
        })
    }

    /// Runs the helper's code. User code is caught where it is called, so a panic that comes here is a bug of
    /// ours, and its message was printed. No thread would run what is armed from now on, so nothing is.
    pub(super) fn survive(&self, help: impl FnOnce()) {
        if contain(help).is_none() && self.life.break_down() {
            self.core.close();
            self.send_threads_home();
            self.end_waits();
        }
    }

    /// A thread that [`shutdown`](Self::shutdown) waits for.
    pub(crate) fn start_thread(
        &self,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartError> {
        let thread = thread::Builder::new().name(name).spawn(run);
        let thread = thread.map_err(|error| StartError::System { what: "start a thread", error })?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    fn help(&'static self) {
        let _entered = self.enter();
        loop {
            self.alarm.wait();
            // Whatever was asked for until now is looked at below, also whether to end: a pull for that may
            // have found the same moment there, and programmed nothing.
            let _ = self.lanes.table().deadline().take();
            if self.life.is_over() {
                break;
            }
            self.drive_unless_paused();
            if self.is_forked() {
                // A callback has forked this child: the kernel's timer is the parent's, too.
                break;
            }
        }
    }

    /// Plays the spare until nothing is due, and says when it must look again. Returns that.
    pub(crate) fn drive_spare(&self, now: Nanos) -> Option<Nanos> {
        let mut helper = self.spare_turn.lock().unwrap_or_else(PoisonError::into_inner);
        helper.handle_wake(&self.core, now);
        loop {
            self.take_turn(&mut helper.turn);
            if self.is_forked() {
                return None;
            }
            if !helper.turn.has_more() {
                break;
            }
        }
        let until = helper.handle_idle(&self.core, self.clock.now());
        if let Some(until) = until {
            self.act(|actions| actions.set_alarm(until));
        }
        until
    }

    /// A thread that may pull has to be awake at `at`.
    pub(super) fn request_alarm(&self, at: Nanos, actions: &mut Actions) {
        if self.clock.is_paused() {
            self.settle_paused();
            return;
        }
        self.lanes.table().request_alarm(self.clock.to_kernel(at), actions);
    }

    /// The helper, or the sentinel, looks around at once.
    pub(crate) fn wake_helper(&self) {
        if self.lanes.table().deadline().pull(Nanos(1)) {
            self.alarm.follow(self.lanes.table().deadline());
        }
    }

    /// The same, and it ends.
    pub(super) fn end_wait_of_helper(&self) {
        if self.lanes.table().deadline().end() {
            self.alarm.follow(self.lanes.table().deadline());
        }
    }
}
