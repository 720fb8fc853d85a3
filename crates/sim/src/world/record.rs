//! What is remembered of a run as it happens: the hash, and the events for Perfetto.

use super::World;

/// What the machine saw or did. The numbers are part of every hash: never change one, only add.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum What {
    Tick = 1,
    Stay = 2,
    Sleep = 3,
    Wakeup = 4,
    Awake = 5,
    Kick = 6,
    Alarm = 7,
    Arm = 8,
    Cancel = 9,
    Turn = 10,
    Expire = 11,
    Finish = 12,
    Marked = 13,
    Stall = 14,
    Isolate = 15,
    Online = 16,
    Offline = 17,
    /// A device raised a vector.
    Raise = 18,
    /// A handler begins.
    Handler = 19,
    /// A real-time thread runs.
    Thread = 20,
    Called = 21,
    /// A packet leaves its queue.
    Packet = 22,
    /// A queue's watchdog has gone off.
    Watchdog = 23,
}

impl World<'_> {
    /// Feeds the hash: when, what, on which CPU, and one number more.
    #[inline]
    pub(super) fn note(&mut self, what: What, cpu: u16, value: u64) {
        // A tick only looks; the others have nothing to do with timers.
        let is_apart = matches!(
            what,
            What::Tick
                | What::Raise
                | What::Handler
                | What::Thread
                | What::Called
                | What::Packet
                | What::Watchdog
        );
        self.is_touched |= !is_apart;
        if self.options.hash {
            self.hash.feed(self.now);
            self.hash.feed((what as u64) << 16 | u64::from(cpu));
            self.hash.feed(value);
        }
    }
}
