//! Tests of the grammar: random commands, random text.

mod filters;
pub(crate) mod random;
mod round_trip;
