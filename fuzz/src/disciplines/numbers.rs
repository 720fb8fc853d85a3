//! Rates from slow to fast, spans, names of classes, and numbers that repeat with their seed.

use arbitrary::{Result, Unstructured};
use quietcore_core::Nanos;
use quietcore_qdisc::{ClassId, Rate};

pub(super) type Random = Box<dyn FnMut() -> u32 + Send>;

/// Any rate, of all magnitudes.
pub(super) fn rate(u: &mut Unstructured<'_>) -> Result<Rate> {
    let bytes = u.arbitrary::<u64>()? >> u.int_in_range(0..=63_u8)?;
    Ok(Rate::bytes_per_second(bytes.max(1)).expect("not 0"))
}

/// A name of one of the few classes there may be.
pub(super) fn class_id(u: &mut Unstructured<'_>) -> Result<ClassId> {
    Ok(ClassId::new(1, u.int_in_range(0..=4)?))
}

/// A time up to 4 s, of all magnitudes.
pub(super) fn span(u: &mut Unstructured<'_>) -> Result<Nanos> {
    Ok(Nanos(u64::from(u.arbitrary::<u32>()?) >> u.int_in_range(0..=31_u8)?))
}

/// Any numbers will do (xorshift64); that they repeat with the seed is what matters.
pub(super) fn numbers(seed: u64) -> impl FnMut() -> u32 + Send {
    let mut state = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    }
}
