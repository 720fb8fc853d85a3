//! What waits in a queue, and what a lane does when it runs it.

use crate::CpuId;
use crate::realtime::Priority;

/// What a lane is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Nothing, or timers.
    None,
    /// Softirqs.
    Softirq,
    /// A normal task, or work.
    Normal,
    /// A real-time task.
    Realtime(Priority),
}

/// Something that a lane runs once.
pub trait QueueItem {
    /// The lane that it is bound to.
    fn bound_to(&self) -> Option<CpuId>;
    /// Of a real-time task.
    fn priority(&self) -> Option<Priority>;
    /// Where it ran last, or was made.
    fn last(&self) -> CpuId;
    /// Whether only the thread of the lane that it is bound to may touch it, and even drop it.
    fn is_of_thread(&self) -> bool;
}

/// What a lane runs next.
#[derive(Debug)]
pub struct NextItem<I> {
    /// The item.
    pub item: I,
    /// What the lane does when it runs it.
    pub activity: Activity,
    /// Whether it may run on another lane.
    pub is_movable: bool,
}
