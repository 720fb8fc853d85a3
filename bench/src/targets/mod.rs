//! The table of targets: what was asked for, what this machine allows, what was measured.

mod found;
mod rows;
mod table;

pub use found::{Found, Round};
pub use rows::{Limit, MEASURES, Origin, PEERS, REFERENCE, TARGETS, Target};
pub use table::{Verdict, markdown, text};
