//! How a ksoftirqd is asked, and waits to be.
//!
//! Race 14 of core's [lane/README.md](../../../core/src/lane/README.md): who asks rings first and kicks then,
//! and the thread looks at its bell again after it has said that it waits; model: `models.rs`.

use crate::words::park::Parker;
use crate::words::run_queue::Doorbell;

/// Where the thread of one lane waits.
#[derive(Debug)]
pub(crate) struct Ksoftirqd {
    asked: Doorbell,
    parker: Parker,
}

impl Ksoftirqd {
    pub(crate) fn new() -> Self {
        Self { asked: Doorbell::new(), parker: Parker::futex() }
    }

    /// Something is pending that the lane leaves.
    pub(crate) fn ask(&self) {
        self.asked.ring_then(|| self.wake());
    }

    /// So that it looks whether the machine has ended.
    pub(crate) fn wake(&self) {
        let _ = self.parker.unpark();
    }

    /// Waits to be asked; says whether it was, and not only the machine has ended.
    pub(crate) fn wait(&self, mut is_running: impl FnMut() -> bool) -> bool {
        while !self.asked.answer() {
            self.parker.prepare();
            if !is_running() {
                let _ = self.parker.finish();
                return false;
            }
            if self.asked.is_rung() {
                let _ = self.parker.finish();
            } else {
                let _ = self.parker.wait(None);
            }
        }
        true
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Ksoftirqd;
    use std::cell::Cell;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    /// Goal: the end of a machine ends the wait, whenever it comes. Method: it comes right after each look.
    #[test]
    fn the_end_is_not_missed() {
        let (sender, ended) = channel();
        let wait = move || {
            let (ksoftirqd, is_running) = (Ksoftirqd::new(), Cell::new(true));
            let was_asked = ksoftirqd.wait(|| {
                let was_running = is_running.replace(false);
                ksoftirqd.wake();
                was_running
            });
            sender.send(was_asked).expect("the test waits");
        };
        thread::spawn(wait);
        assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Ok(false));
    }
}
