//! Timer structures side by side.
//!
//! - `peer`: what each must be able to do;
//! - `adapters`: the peers, a file each; to add one is its file and its lines in `adapters/mod.rs`;
//! - `plan`: which operations a workload consists of, made once from a seed, the same for all peers;
//! - `measure`: carries them out, with a stopwatch;
//! - `audit`: carries them out again without one, and says how exact the answers were;
//! - `entry`: a peer, its type forgotten; `report`: numbers in, tables or JSON out.
//!
//! Not here: structures for several threads, and whole runtimes.

pub mod adapters;
pub mod audit;
pub mod entry;
pub mod measure;
pub mod peer;
pub mod plan;
pub mod report;
#[cfg(test)]
mod tests;
