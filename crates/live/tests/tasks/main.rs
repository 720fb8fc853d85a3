//! Tasks, softirqs and work on real threads. Nothing here is timed but against hanging: every wait has a
//! deadline of many seconds.

mod ends;
mod isolation;
mod realtime;
mod reviewed;
mod rounds;
mod rules;
mod scene;
mod softirqs;
mod spawning;
mod stalls;
mod stuck;
mod work;
