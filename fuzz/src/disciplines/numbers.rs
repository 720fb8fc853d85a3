//! Rates from slow to fast, and numbers that repeat with their seed.

use arbitrary::{Result, Unstructured};
use quietcore_qdisc::Rate;

/// Any rate, of all magnitudes.
pub(super) fn rate(u: &mut Unstructured<'_>) -> Result<Rate> {
    let bytes = u.arbitrary::<u64>()? >> u.int_in_range(0..=63_u8)?;
    Ok(Rate::bytes_per_second(bytes.max(1)).expect("not 0"))
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
