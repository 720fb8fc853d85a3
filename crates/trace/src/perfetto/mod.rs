//! Events as tracks of <https://ui.perfetto.dev>: what begins and ends what (`writer.rs`), what had started
//! it (`starts.rs`), tracks and names (`packets.rs`), the wire format (`protobuf.rs`).

mod packets;
mod protobuf;
mod starts;
mod writer;

#[cfg(test)]
mod tests;

pub use writer::PerfettoWriter;
