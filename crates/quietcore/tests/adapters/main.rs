//! Other projects' own code, waiting for timers of quietcore: a server of hyper, endpoints of quinn, futures
//! of embassy. Time is paused where that is possible, so a deadline is met exactly.

mod clocks;
mod embassy;
mod hyper;
mod quinn;
