//! What happens in a simulated world, and when it is asked for: the events of its queue.

/// What happens. Small, because the queue copies it around; numbers are those of CPUs, tasks or faults.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SimEvent {
    /// The CPU turns for the first time.
    Begin(u16),
    /// What the CPU is doing ends, unless it was interrupted since (other generation).
    Segment(u16, u32),
    Tick(u16, u32),
    /// The alarm that an idle CPU set for itself.
    Wakeup(u16, u32),
    Kick(u16),
    /// A load begins.
    Start(u32),
    /// The alarm that the machine asked the world for.
    Alarm,
    /// Lanes: the sentinel looks whether a lane turns.
    Sentinel,
    StallBegin(u16),
    StallEnd(u16),
    Isolate(u16),
    Plug(u16),
    /// This device interrupts.
    Device(u32),
    /// The interval of this real-time thread is over.
    Interval(u32),
    /// Something may have been held back long enough.
    DeferLimit(u16),
    /// A timer was armed on this CPU from another one.
    Call(u16),
    /// There is something for this transmit queue.
    Frames(u16),
    /// A packet of this queue was dropped a while ago.
    SendAgain(u16),
    /// The moment of this timer, which is an exact one.
    Watchdog(u32),
}
