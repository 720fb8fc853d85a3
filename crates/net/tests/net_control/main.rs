//! Lines of `tc` and what they do to devices that run.

mod actions;
mod changes;
mod classes;
mod errors;
mod estimates;
mod load;
mod prio;
mod random;
mod script;
mod timers;
mod world;
