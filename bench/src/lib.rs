//! What the benchmark and the generator share: bytes to write, and recordings to repeat.
//!
//! - `recording`: the text of the bundled recordings, header and events apart;
//! - `lines`: lines made to be hard to read, at a speed near that of the disk.

pub mod lines;
pub mod recording;

/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;
