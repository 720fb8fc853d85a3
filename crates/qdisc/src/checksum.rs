//! The internet checksum (RFC 1071): the sum of 16-bit words in one's complement; and one that is still owed.
//!
//! Where a network card could complete the checksum of TCP or UDP, Linux leaves it to the card, and only the
//! sum of the pseudo-header is in its field (`CHECKSUM_PARTIAL`). Such a packet need not be summed at all
//! before it reaches its receiver, unless its bytes are looked at or changed on the way. Source: the virtio
//! specification (5.1.6, `VIRTIO_NET_HDR_F_NEEDS_CSUM`).

/// The sum of 16-bit words, not yet [folded]; of at most 64 KiB. An odd byte counts as if a zero followed it.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let whole: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    whole + u64::from(u32::from_be_bytes(last))
}

/// A sum in one's complement, in 16 bits. The checksum is its complement.
#[must_use]
pub const fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// A checksum that is still to be completed: its field has the sum of the pseudo-header, not complemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwedChecksum {
    /// Where what it covers begins: the transport's header. It covers all bytes from there.
    pub start: u16,
    /// Where its field is, from there.
    pub offset: u16,
}

impl OwedChecksum {
    /// Whether its field is within so many bytes.
    #[must_use]
    pub const fn fits(self, bytes: usize) -> bool {
        self.start as usize + self.offset as usize + 2 <= bytes
    }

    /// Completes it. Cost: one pass over what it covers.
    ///
    /// # Panics
    /// If it does not [fit](Self::fits).
    pub fn complete(self, bytes: &mut [u8]) {
        let covered = &mut bytes[usize::from(self.start)..];
        let at = usize::from(self.offset);
        let checksum = !folded(sum(covered));
        // 0 is "none" in UDP over IPv4, and another writing of 0xffff everywhere.
        let checksum = if checksum == 0 { u16::MAX } else { checksum };
        covered[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::{OwedChecksum, folded, sum};

    /// Goal: the sum is RFC 1071's. Method: the example of its section 3, and lengths that are no multiple
    /// of a word, each beside the same bytes with zeros behind.
    #[test]
    fn the_sum_is_that_of_the_rfc() {
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(folded(sum(&example)), 0xddf2);
        for length in 0..8 {
            let mut padded = [0; 8];
            padded[..length].copy_from_slice(&example[..length]);
            assert_eq!(sum(&example[..length]) % 0xffff, sum(&padded) % 0xffff, "{length} bytes");
        }
    }

    /// Goal: an owed checksum makes the whole sum to 0xffff, whatever came before its start; where it would
    /// be 0 it is 0xffff. Method: bytes with the sum of a pseudo-header in the field; all 0xff but the
    /// field.
    #[test]
    fn an_owed_checksum_is_completed() {
        let mut bytes = [9, 9, 1, 2, 0x12, 0x34, 5];
        let owed = OwedChecksum { start: 2, offset: 2 };
        owed.complete(&mut bytes);
        let pseudo_header = 0x1234;
        assert_eq!(folded(pseudo_header + sum(&bytes[2..])), 0xffff);
        assert_eq!((&bytes[..4], bytes[6]), (&[9, 9, 1, 2][..], 5));
        let mut ones = [0xff, 0xff, 0, 0];
        OwedChecksum { start: 0, offset: 2 }.complete(&mut ones);
        assert_eq!(ones, [0xff; 4]);
    }

    /// Goal: a field that is not within the bytes does not fit, wherever it is said to be. Method: the last
    /// place that fits, the next one, and the farthest.
    #[test]
    fn a_field_is_within_the_bytes() {
        let fits = |start, offset| OwedChecksum { start, offset }.fits(40);
        assert!(fits(20, 18) && !fits(20, 19) && fits(38, 0) && !fits(39, 0));
        assert!(!fits(u16::MAX, u16::MAX));
    }
}
