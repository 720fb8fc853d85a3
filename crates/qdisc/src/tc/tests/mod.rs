//! Tests of the grammar: random commands, random text.

pub(super) mod random;
mod round_trip;
