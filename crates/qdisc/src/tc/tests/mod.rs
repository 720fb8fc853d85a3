//! Tests of the grammar: random commands, random text.

pub(crate) mod random;
mod round_trip;
