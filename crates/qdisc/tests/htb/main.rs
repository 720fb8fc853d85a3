//! `Htb` by its public interface.
//!
//! - `model`: what it should do, told in another way: no rows, feeds or wait trees;
//! - `script`: random trees and steps, the model and the discipline side by side;
//! - `bounds`: how much any class sends in any window;
//! - `sharing`: who gets what a link leaves, in numbers;
//! - `classes`: adding, removing, errors, statistics, queues that are throttled.

mod bounds;
mod busy;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod model;
mod script;
mod sharing;
