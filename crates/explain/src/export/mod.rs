//! The figures of an [`Explanation`](crate::Explanation) in the format of monitoring systems:
//! [`openmetrics`].
//!
//! It writes to any [`Write`](std::io::Write) and hands its errors back. Not here: files and their atomic
//! replacement, and the JSON form (both the command line), and the events as tracks
//! (`quietcore_trace::PerfettoWriter`).

mod labels;
mod openmetrics;

pub use openmetrics::openmetrics;
