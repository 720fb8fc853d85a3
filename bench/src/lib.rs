//! What the benchmarks share.
//!
//! - `recording`: the text of the bundled recordings, header and events apart;
//! - `limits`: what the machine itself allows; `targets`: what is held against that;
//! - `binary`, `perfetto`: files of other tools, made long;
//! - `lines`: lines made to be hard to read, at a speed near that of the disk;
//! - `peers`: timer structures side by side, see `src/bin/peers.rs`;
//! - `runtimes`: whole timer runtimes side by side, see `src/bin/runtimes.rs`;
//! - `statistics`, `machine`, `versions`: what rounds amount to, where that was, and with what.

mod binary;
pub mod limits;
pub mod lines;
pub mod machine;
pub mod peers;
mod perfetto;
pub mod recording;
pub mod runtimes;
pub mod statistics;
pub mod targets;
pub mod versions;

/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;
