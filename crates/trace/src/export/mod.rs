//! A recording and its explanation in the formats of other tools.
//!
//! [`openmetrics`] writes the figures of a [`Report`](crate::Report) for a monitoring system;
//! [`PerfettoWriter`] turns the events themselves into tracks that a person scrolls through. Both
//! write what they are given to any [`Write`](std::io::Write) and hand its errors back. Not here:
//! files and their atomic replacement (the command line), and the JSON form.

mod labels;
mod openmetrics;
mod packets;
mod perfetto;
mod protobuf;

pub use openmetrics::openmetrics;
pub use perfetto::PerfettoWriter;
