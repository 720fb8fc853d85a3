//! Arms against the handler of a call.

use super::Call;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// The CPU that is called: what was armed, what its handler has seen, and how often it has to run.
struct Cpu {
    call: Call,
    armed: AtomicU32,
    seen: AtomicU32,
    sent: AtomicU32,
}

impl Cpu {
    fn arm(&self, bit: u32) {
        // Relaxed: the call publishes it.
        self.armed.fetch_or(bit, Ordering::Relaxed);
        if self.call.begin() {
            // Release, Acquire: what sends and delivers a call orders it.
            self.sent.fetch_add(1, Ordering::Release);
        }
    }

    /// Handles one call, if one was sent.
    fn handle(&self) -> bool {
        if self.sent.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.sent.fetch_sub(1, Ordering::AcqRel);
        self.call.arrive();
        self.seen.store(self.armed.load(Ordering::Relaxed), Ordering::Relaxed);
        true
    }
}

/// Goal: every arm is seen by a handler that looks after it, whichever of two calls is coalesced into which.
/// Method: two threads arm, the CPU handles calls as they come; in the end all that were sent are handled.
#[test]
fn no_arm_is_missed() {
    loom::model(|| {
        let cpu = Arc::new(Cpu {
            call: Call::new(),
            armed: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            sent: AtomicU32::new(0),
        });
        let arms = [1, 2].map(|bit| {
            let cpu = Arc::clone(&cpu);
            thread::spawn(move || cpu.arm(bit))
        });
        let _ = cpu.handle();
        for arm in arms {
            arm.join().expect("no panic");
        }
        while cpu.handle() {}
        assert_eq!(cpu.seen.load(Ordering::Relaxed), 3, "the last look saw both");
    });
}
