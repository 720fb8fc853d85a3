//! A marker without locks, a CPU that comes back and a watcher that completes the mark.

use super::{CpuFlags, FlagsChange};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// A CPU's word, and the machine's count.
struct Cpu {
    flags: CpuFlags,
    pending: AtomicU32,
}

impl Cpu {
    fn follow(&self, change: FlagsChange) {
        // Relaxed: a count; it is compared when all threads have ended.
        self.pending.fetch_add(change.repairs_added().cast_unsigned(), Ordering::Relaxed);
    }

    fn look(&self) {
        let seen = self.flags.load();
        assert!(seen.is_marked() || !seen.is_mark_incomplete(), "an incomplete mark is a mark: {seen:?}");
    }
}

/// Goal: an incomplete mark is a mark for every reader, and the count of repairs is that of the flags.
/// Method: a marker, the marked CPU and a watcher change the word at once; the watcher looks before and
/// after.
#[test]
fn the_count_follows_the_flags() {
    loom::model(|| {
        let cpu = Arc::new(Cpu { flags: CpuFlags::default(), pending: AtomicU32::new(0) });
        let (marker, back) = (Arc::clone(&cpu), Arc::clone(&cpu));
        let threads = [
            thread::spawn(move || marker.follow(marker.flags.transition_to_mark_incomplete())),
            thread::spawn(move || back.follow(back.flags.transition_to_unmarked())),
        ];
        cpu.look();
        if cpu.flags.load().is_mark_incomplete() {
            cpu.follow(cpu.flags.transition_to_mark_complete());
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let left = cpu.flags.load();
        assert_eq!(cpu.pending.load(Ordering::Relaxed), left.repairs(), "{left:?}");
        cpu.look();
    });
}
