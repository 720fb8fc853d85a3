//! `Htb` by its public interface.
//!
//! - `model`: what it should do, told in another way: no rows, feeds or wait trees;
//! - `script`: random trees and steps, the model and the discipline side by side;
//! - `bounds`: how much any class sends in any window;
//! - `sharing`: who gets what a link leaves, in numbers;
//! - `classes`: adding, removing, errors, statistics, queues that are throttled.

mod bounds;
mod classes;
mod model;
mod packet;
mod script;
mod sharing;
