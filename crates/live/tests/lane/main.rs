//! Lanes on real threads: timers run on the lane that armed them, on others when it sleeps, blocks or leaves,
//! and no thread is woken for nothing. Nothing here is timed but against hanging: every wait has a deadline
//! of many seconds.

mod claims;
mod embedded;
mod isolation;
mod ready;
mod scene;
mod sharing;
mod stalls;
mod timer_raise;
