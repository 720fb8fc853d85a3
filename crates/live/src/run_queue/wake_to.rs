//! Where a task or work goes that was woken.

/// Where a normal task or work is run that was woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WakeTo {
    /// On the lane that it ran on last.
    #[default]
    Last,
    /// On the lane that wakes it; where it ran last if that is no lane.
    Here,
}
