//! Why a CPU is interrupted; bits.

pub(crate) const TICK: u8 = 1;
pub(crate) const KICK: u8 = 2;
pub(crate) const WAKEUP: u8 = 4;
/// A device has work for a softirq.
pub(crate) const DEVICE: u8 = 8;
/// The interval of a real-time task is over.
pub(crate) const HRTIMER: u8 = 16;
/// A softirq has waited for real-time tasks long enough.
pub(crate) const LIMIT: u8 = 32;
/// A timer was armed here from another CPU.
pub(crate) const CALL: u8 = 64;
