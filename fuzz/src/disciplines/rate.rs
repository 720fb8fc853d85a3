//! Rates from slow to fast.

use arbitrary::{Result, Unstructured};
use quietcore_qdisc::Rate;

/// Any rate, of all magnitudes.
pub(super) fn rate(u: &mut Unstructured<'_>) -> Result<Rate> {
    let bytes = u.arbitrary::<u64>()? >> u.int_in_range(0..=63_u8)?;
    Ok(Rate::bytes_per_second(bytes.max(1)).expect("not 0"))
}
