//! The internet checksum: the sum of 16-bit words in one's complement (RFC 1071).

/// The sum of 16-bit words, not yet folded; of at most 64 KiB.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let whole: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    whole + u64::from(u32::from_be_bytes(last))
}

/// In one's complement, in 16 bits.
pub(super) fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}
