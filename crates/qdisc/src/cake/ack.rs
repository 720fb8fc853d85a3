//! Acknowledgements of TCP that later ones of the same connection say again.
//!
//! One that carries no data, and whose flags and options are plain, may go if a later one acknowledges as
//! much or more. The filter drops the earlier of two such ones that wait before the one that comes; if it
//! is aggressive, also a single one right before that. What marks of congestion tell is kept: where the
//! flags of ECN change between two, the earlier stays.
//!
//! Source: tc-cake(8); "Piece of CAKE" (2018), section III.E; RFC 9293, 2018, 7323 by their formats; Linux
//! 6.12 net/sched/sch_cake.c, by behaviour.

use crate::IpHeader;
use core::net::IpAddr;

const TCP: u8 = 6;
const TCP_HEADER: usize = 20;
/// Bits of the flags of TCP, the four reserved ones left out.
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// ECE and CWR.
const ECN_FLAGS: u8 = 0xc0;
/// The reserved bits beside the length of the header, the one of RFC 3540 included.
const RESERVED: u8 = 0x0f;
/// The most ranges that fit into a header.
const RANGES: usize = 4;

/// What an option of TCP means to the filter.
enum AckOption {
    Padding,
    Timestamp((u32, u32)),
    Ranges,
    Other,
}

/// A segment of TCP that acknowledges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgement {
    ends: [(IpAddr, u16); 2],
    /// What it acknowledges.
    number: u32,
    flags: u8,
    /// Whether it has neither data, nor flags, nor options that would be lost with it.
    is_plain: bool,
    /// Its sender's time, and the one that it echoes.
    timestamp: Option<(u32, u32)>,
    ranges: [(u32, u32); RANGES],
    ranges_len: usize,
}

/// Whether `one` is before `other`, in numbers that wrap.
const fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

impl Acknowledgement {
    /// Reads a packet; nothing if it is none of TCP.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let header = IpHeader::parse(packet)?;
        let (from, to) = header.ports.filter(|_| header.protocol == TCP)?;
        let at = usize::from(header.payload?);
        let tcp = packet.get(at..)?;
        let fixed: &[u8; TCP_HEADER] = tcp.first_chunk()?;
        let length = usize::from(fixed[12] >> 4) * 4;
        let options = tcp.get(TCP_HEADER..length)?;
        let data = segment_bytes(packet, at).checked_sub(length)?;
        let flags = fixed[13];
        let is_alone = flags & !ECN_FLAGS == ACK && fixed[12] & RESERVED == 0;
        let mut read = Self {
            ends: [(header.source, from), (header.destination, to)],
            number: word(tcp, 8)?,
            flags,
            is_plain: is_alone && data == 0,
            timestamp: None,
            ranges: [(0, 0); RANGES],
            ranges_len: 0,
        };
        read.read_options(options);
        Some(read)
    }

    /// An option that is not known, or cut, would be lost.
    fn read_options(&mut self, mut options: &[u8]) {
        while let Some((kind, length)) = next_option(options) {
            let (option, rest) = options.split_at(length);
            match kind {
                AckOption::Padding => {}
                AckOption::Timestamp(value) => self.timestamp = Some(value),
                AckOption::Ranges => {
                    for range in option[2..].chunks_exact(8).take(RANGES) {
                        let ends = (word(range, 0).unwrap_or(0), word(range, 4).unwrap_or(0));
                        self.ranges[self.ranges_len.min(RANGES - 1)] = ends;
                        self.ranges_len = (self.ranges_len + 1).min(RANGES);
                    }
                }
                AckOption::Other => self.is_plain = false,
            }
            options = rest;
        }
    }

    /// Whether it makes others go: a plain one does, and one with data.
    pub(super) const fn triggers(&self) -> bool {
        self.flags & (ACK | SYN) == ACK
    }

    const fn ecn_flags(&self) -> u8 {
        self.flags & ECN_FLAGS
    }

    fn selected(&self) -> &[(u32, u32)] {
        &self.ranges[..self.ranges_len]
    }

    /// Whether all that it says is said again by `later`, with more, or for more.
    fn is_covered_by(&self, later: &Self) -> bool {
        let (time, echo) = later.timestamp.unwrap_or_default();
        let is_older =
            self.timestamp.is_none_or(|(sent, echoed)| !is_before(time, sent) && !is_before(echo, echoed));
        if !self.is_plain || !is_older || is_before(later.number, self.number) {
            return false;
        }
        selects_more(self, later).is_some_and(|more| more || later.number != self.number)
    }
}

/// Bytes from `at` to the end of a datagram of IP, padding of the link left out.
fn segment_bytes(packet: &[u8], at: usize) -> usize {
    let length = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    let end = if packet[0] >> 4 == 4 { length(2) } else { 40 + length(4) };
    end.saturating_sub(at)
}

/// The first option, and its length.
fn next_option(options: &[u8]) -> Option<(AckOption, usize)> {
    match *options {
        [] | [0, ..] => None,
        [1, ..] => Some((AckOption::Padding, 1)),
        [kind, length, ..] => {
            let length = usize::from(length);
            if length < 2 || length > options.len() {
                return Some((AckOption::Other, options.len()));
            }
            let read = match (kind, length) {
                (8, 10) => AckOption::Timestamp((word(options, 2)?, word(options, 6)?)),
                // A signature (RFC 2385) is of its own segment.
                (19, _) => AckOption::Padding,
                (5, 10 | 18 | 26 | 34) => AckOption::Ranges,
                _ => AckOption::Other,
            };
            Some((read, length))
        }
        [_] => Some((AckOption::Other, 1)),
    }
}

/// Whether what `later` selects is more than what `one` does; nothing if a range of that is not within one of
/// it, or reports a duplicate (RFC 2883).
fn selects_more(one: &Acknowledgement, later: &Acknowledgement) -> Option<bool> {
    let bytes = |of: &Acknowledgement| {
        of.selected().iter().fold(0_u32, |sum, (from, to)| sum.wrapping_add(to.wrapping_sub(*from)))
    };
    for (from, to) in one.selected() {
        let is_in = |(first, last): &(u32, u32)| !is_before(*from, *first) && !is_before(*last, *to);
        if is_before(*from, one.number) || !later.selected().iter().any(is_in) {
            return None;
        }
    }
    Some(bytes(later) > bytes(one))
}

/// The search for one that goes, from the first packet of a queue to the last but one.
#[derive(Debug)]
pub(super) struct AckSearch<'a> {
    later: &'a Acknowledgement,
    /// The one that goes if there is another, with its flags of ECN.
    eligible: Option<(u32, u8)>,
    found: usize,
}

impl<'a> AckSearch<'a> {
    pub(super) const fn new(later: &'a Acknowledgement) -> Self {
        Self { later, eligible: None, found: 0 }
    }

    /// Looks at the packet at place `at`; says which one goes, once that is known.
    pub(super) fn look(&mut self, at: u32, packet: &[u8]) -> Option<u32> {
        let one = Acknowledgement::of(packet).filter(|one| one.ends == self.later.ends)?;
        if self.eligible.is_some_and(|(_, flags)| flags != one.ecn_flags()) {
            self.eligible = None;
            self.found -= 1;
        }
        if !one.is_covered_by(self.later) {
            return None;
        }
        let (goes, _) = *self.eligible.get_or_insert((at, one.ecn_flags()));
        self.found += 1;
        (self.found > 1).then_some(goes)
    }

    /// The one that goes although it is the only one: at place `last`, right before the one that came.
    pub(super) fn only(&self, last: u32) -> Option<u32> {
        let (at, flags) = self.eligible?;
        (at == last && flags == self.later.ecn_flags()).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::{AckSearch, Acknowledgement};
    use std::vec;
    use std::vec::Vec;

    /// A segment from port 5 to port 6: its number, flags, options, bytes of data.
    fn segment(number: u32, flags: u8, options: &[u8], data: usize) -> Vec<u8> {
        assert!(options.len().is_multiple_of(4));
        let (header, mut bytes) = (20 + options.len(), vec![0_u8; 40 + options.len() + data]);
        let total = bytes.len() as u16;
        bytes[..20].copy_from_slice(&[69, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes[2..4].copy_from_slice(&total.to_be_bytes());
        bytes[21] = 5;
        bytes[23] = 6;
        bytes[28..32].copy_from_slice(&number.to_be_bytes());
        (bytes[32], bytes[33]) = ((header as u8 / 4) << 4, flags);
        bytes[40..40 + options.len()].copy_from_slice(options);
        bytes
    }

    fn ack(number: u32) -> Vec<u8> {
        segment(number, 0x10, &[], 0)
    }

    fn timed(number: u32, sent: u8, echoed: u8) -> Vec<u8> {
        segment(number, 0x10, &[1, 1, 8, 10, 0, 0, 0, sent, 0, 0, 0, echoed], 0)
    }

    fn selecting(number: u32, ranges: &[(u32, u32)]) -> Vec<u8> {
        let mut options = vec![1, 1, 5, 2 + 8 * ranges.len() as u8];
        for (from, to) in ranges {
            options.extend([from.to_be_bytes(), to.to_be_bytes()].as_flattened());
        }
        segment(number, 0x10, &options, 0)
    }

    /// Which of `queue` goes when the last one comes.
    fn goes(queue: &[Vec<u8>], is_aggressive: bool) -> Option<u32> {
        let (last, earlier) = queue.split_last().expect("there is one");
        let later = Acknowledgement::of(last).filter(Acknowledgement::triggers)?;
        let mut search = AckSearch::new(&later);
        let found = (0..).zip(earlier).find_map(|(at, packet)| search.look(at, packet));
        found.or_else(|| search.only(earlier.len() as u32 - 1).filter(|_| is_aggressive))
    }

    /// Goal: of two that are said again the earlier goes; of one, none, unless the filter is aggressive.
    /// Method: queues of two, three and four, the number at its wrap.
    #[test]
    fn the_earlier_of_two_goes() {
        assert_eq!((goes(&[ack(1), ack(2)], false), goes(&[ack(1), ack(2)], true)), (None, Some(0)));
        assert_eq!(goes(&[ack(u32::MAX), ack(3), ack(4)], false), Some(0));
        assert_eq!(goes(&[ack(5), ack(3), ack(4)], false), None, "one says more");
        assert_eq!(goes(&[ack(5), ack(3), ack(4)], true), Some(1));
        assert_eq!(goes(&[ack(3), ack(5), ack(4)], true), None, "it is not right before");
        assert_eq!(goes(&[ack(3), ack(3)], true), None, "a duplicate is a signal");
        assert_eq!(goes(&[ack(1), ack(2), ack(3), ack(4)], false), Some(0));
    }

    /// Goal: only what would not be lost goes. Method: data, flags, reserved bits, options, another port,
    /// another protocol, each before a later plain one; and what makes others go.
    #[test]
    fn only_plain_ones_go() {
        let plain = [ack(1), ack(9)];
        assert_eq!(goes(&plain, true), Some(0));
        let mut reserved = ack(1);
        reserved[32] |= 1;
        let mut port = ack(1);
        port[21] = 7;
        let mut protocol = ack(1);
        protocol[9] = 17;
        let mss = segment(1, 0x10, &[2, 4, 5, 0xb4], 0);
        let cut = segment(1, 0x10, &[5, 40, 0, 0], 0);
        for (why, packet) in [
            ("data", segment(1, 0x10, &[], 1)),
            ("push", segment(1, 0x18, &[], 0)),
            ("end", segment(1, 0x11, &[], 0)),
            ("synchronise", segment(1, 0x12, &[], 0)),
            ("reserved", reserved),
            ("port", port),
            ("protocol", protocol),
            ("segment size", mss),
            ("an option that is cut", cut),
            ("nothing", vec![]),
        ] {
            assert_eq!(goes(&[packet, ack(9)], true), None, "{why}");
        }
        let signed = segment(1, 0x10, &[19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], 0);
        assert_eq!(goes(&[signed, ack(9)], true), Some(0));
        assert_eq!(goes(&[ack(1), segment(9, 0x18, &[], 500)], true), Some(0), "data makes others go");
        assert_eq!(goes(&[ack(1), segment(9, 0x12, &[], 0)], true), None);
        assert_eq!(goes(&[ack(1), segment(9, 0, &[], 0)], true), None);
    }

    /// Goal: marks of congestion are not lost. Method: flags of ECN that change, between those that wait
    /// and before the one that comes.
    #[test]
    fn marks_are_kept() {
        let echo = |number| segment(number, 0x50, &[], 0);
        assert_eq!(goes(&[echo(1), ack(2), ack(3), ack(4)], false), Some(1), "the mark stays");
        assert_eq!(goes(&[ack(1), echo(2), echo(3)], false), None);
        assert_eq!(goes(&[echo(1), ack(2)], true), None);
        assert_eq!(goes(&[echo(1), echo(2)], true), Some(0));
    }

    /// Goal: times never go back. Method: times and echoes beside later ones, and one that has none.
    #[test]
    fn times_do_not_go_back() {
        assert_eq!(goes(&[timed(1, 5, 3), timed(2, 5, 3)], true), Some(0));
        assert_eq!(goes(&[timed(1, 6, 3), timed(2, 5, 3)], true), None);
        assert_eq!(goes(&[timed(1, 5, 4), timed(2, 5, 3)], true), None);
        assert_eq!(goes(&[timed(1, 5, 3), ack(2)], true), None);
        assert_eq!(goes(&[ack(1), timed(2, 5, 3)], true), Some(0));
    }

    /// Goal: what was selected is selected again, or more of it. Method: ranges that are in others, that
    /// are not, and that report a duplicate.
    #[test]
    fn selections_are_kept() {
        let more = selecting(10, &[(20, 40)]);
        assert_eq!(goes(&[selecting(10, &[(20, 30)]), more.clone()], true), Some(0));
        assert_eq!(goes(&[selecting(10, &[(20, 40)]), more.clone()], true), None, "it says the same");
        assert_eq!(goes(&[selecting(9, &[(20, 40)]), more.clone()], true), Some(0));
        assert_eq!(goes(&[selecting(9, &[(19, 40)]), more.clone()], true), None);
        assert_eq!(goes(&[selecting(9, &[(20, 41)]), more.clone()], true), None);
        assert_eq!(goes(&[selecting(9, &[(20, 21)]), ack(50)], true), None, "none is selected again");
        assert_eq!(
            goes(&[selecting(30, &[(25, 35)]), selecting(31, &[(25, 60)])], true),
            None,
            "a duplicate"
        );
        let two = selecting(10, &[(50, 60), (20, 40)]);
        assert_eq!(goes(&[selecting(10, &[(52, 55), (22, 30)]), two], true), Some(0));
        assert_eq!(goes(&[ack(10), more], true), Some(0));
    }
}
