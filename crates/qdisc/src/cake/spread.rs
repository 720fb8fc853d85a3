//! Which queue a packet goes to: queues in sets of eight, in which a flow takes any that is free.
//!
//! A flow's number has a home among 1024 queues. If another flow is there, the seven others of the same set
//! are looked at in turn; only when all eight are taken do flows share a queue. Hosts have places of the
//! same kind, where their flows that have a backlog are counted.
//!
//! Source: "Piece of CAKE" (2018), section III.B and C; Linux 6.12 net/sched/sch_cake.c, by behaviour.
//! Deviation: numbers come from one fixed function, where the kernel draws one when it boots.

use crate::{IpHeader, Packet};
use core::net::IpAddr;

/// Queues of a tin.
pub(super) const QUEUES: usize = 1_024;
/// Queues of a set.
const WAYS: usize = 8;

/// The places of the set of `tag`, its home first.
fn ways(tag: u32) -> impl Iterator<Item = usize> + Clone {
    let home = tag as usize % QUEUES;
    let set = home - home % WAYS;
    (0..WAYS).map(move |step| set + (home + step) % WAYS)
}

/// The first place of a set that fits, with how many were passed.
fn found(tag: u32, fits: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
    ways(tag).enumerate().find(|(_, at)| fits(*at))
}

/// What is looked for of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketTags {
    /// Its connection, the same in both directions.
    pub(super) flow: u32,
    /// Where it comes from.
    pub(super) source: u32,
    /// Where it goes.
    pub(super) destination: u32,
}

/// A one-to-one function of 64 bits (the finaliser of MurmurHash3), of which the upper half is kept.
const fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

const fn tag_of(word: u64) -> u32 {
    (mixed(word) >> 32) as u32
}

/// An address in 64 bits.
fn address_word(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            mixed((bits >> 64) as u64) ^ bits as u64
        }
    }
}

impl PacketTags {
    /// Of the headers of a packet; of one without any, of the number of its flow, as if of one host.
    pub(super) fn of(packet: &impl Packet) -> Self {
        let Some(header) = IpHeader::parse(packet.network_bytes()) else {
            return Self { flow: tag_of(packet.flow()), source: 0, destination: 0 };
        };
        let (from, to) = header.ports.filter(|_| !header.fragment).unwrap_or_default();
        let ends = [(header.source, from), (header.destination, to)];
        let [source, destination] = ends.map(|(address, _)| address_word(address));
        let both = ends.map(|(address, port)| mixed(address_word(address)).wrapping_add(u64::from(port)));
        let flow = mixed(both[0]).wrapping_add(mixed(both[1])) ^ u64::from(header.protocol);
        Self { flow: tag_of(flow), source: tag_of(source), destination: tag_of(destination) }
    }
}

/// A place of hosts, of those that send and of those to which is sent.
#[derive(Clone, Copy, Debug, Default)]
struct HostPlace {
    tag: u32,
    /// Flows of it that have a backlog.
    bulk: u16,
}

/// The hosts of one direction.
#[derive(Debug)]
pub(super) struct HostPlaces([HostPlace; QUEUES]);

impl HostPlaces {
    pub(super) const fn new() -> Self {
        Self([HostPlace { tag: 0, bulk: 0 }; QUEUES])
    }

    /// The place of a host: its own, or one without a backlog, or else its home, which it takes over.
    pub(super) fn place(&mut self, tag: u32) -> u16 {
        if let Some((_, at)) = found(tag, |at| self.0[at].tag == tag) {
            return at as u16;
        }
        let free = found(tag, |at| self.0[at].bulk == 0);
        let at = free.map_or(tag as usize % QUEUES, |(_, at)| at);
        self.0[at].tag = tag;
        at as u16
    }

    pub(super) fn bulk(&self, at: u16) -> u16 {
        self.0[usize::from(at)].bulk
    }

    pub(super) fn add(&mut self, at: u16) {
        let bulk = &mut self.0[usize::from(at)].bulk;
        *bulk = (*bulk + 1).min(QUEUES as u16);
    }

    pub(super) fn subtract(&mut self, at: u16) {
        let bulk = &mut self.0[usize::from(at)].bulk;
        *bulk = bulk.saturating_sub(1);
    }
}

/// Where a flow was found, or put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CakePlace {
    /// It is there, so many queues from its home.
    Known { at: usize, passed: usize },
    /// It is not; this is the first queue that is free.
    Free(usize),
    /// All eight are taken; this is its home, which it shares.
    Shared(usize),
}

/// Finds the queue of a flow; `has` says whether a queue was last one of this flow's, `is_used` whether it
/// takes turns.
pub(super) fn place_of(tag: u32, has: impl Fn(usize) -> bool, is_used: impl Fn(usize) -> bool) -> CakePlace {
    if let Some((passed, at)) = found(tag, has) {
        return CakePlace::Known { at, passed };
    }
    let free = found(tag, |at| !is_used(at));
    free.map_or(CakePlace::Shared(tag as usize % QUEUES), |(_, at)| CakePlace::Free(at))
}

#[cfg(test)]
mod tests {
    use super::{CakePlace, HostPlaces, PacketTags, QUEUES, place_of};
    use crate::IpPacket;
    use std::vec::Vec;

    /// Goal: a flow takes its home, then the others of its set in turn, then shares its home. Method: nine
    /// flows with one home in the middle of a set.
    #[test]
    fn a_set_has_eight_places() {
        let home = 8 * 5 + 6;
        let mut tags: Vec<Option<u32>> = std::vec![None; QUEUES];
        let mut places = Vec::new();
        for number in 0..9 {
            let tag = home + number * QUEUES as u32;
            let place = place_of(tag, |at| tags[at] == Some(tag), |at| tags[at].is_some());
            if let CakePlace::Free(at) = place {
                tags[at] = Some(tag);
                places.push(at);
                let passed = (at + 8 - home as usize) % 8;
                let known = place_of(tag, |at| tags[at] == Some(tag), |at| tags[at].is_some());
                assert_eq!(known, CakePlace::Known { at, passed });
            } else {
                assert_eq!((number, place), (8, CakePlace::Shared(home as usize)));
            }
        }
        assert_eq!(places, [46, 47, 40, 41, 42, 43, 44, 45]);
    }

    /// Goal: hosts with a backlog keep their place, others lose it, and the ninth of a set takes its home
    /// over. Method: nine hosts of one home.
    #[test]
    fn hosts_with_a_backlog_keep_their_places() {
        let mut hosts = HostPlaces::new();
        let tag = |number: u32| 3 + number * QUEUES as u32;
        assert_eq!((hosts.place(tag(1)), hosts.place(tag(2))), (3, 3), "nothing is queued of the first");
        for number in 1..=8 {
            let at = hosts.place(tag(number));
            assert_eq!(u32::from(at), [3, 4, 5, 6, 7, 0, 1, 2][number as usize - 1]);
            hosts.add(at);
            assert_eq!((hosts.place(tag(number)), hosts.bulk(at)), (at, 1));
        }
        assert_eq!((hosts.place(tag(9)), hosts.bulk(3)), (3, 1));
        hosts.subtract(3);
        hosts.subtract(3);
        assert_eq!(hosts.bulk(3), 0);
    }

    /// A datagram of UDP.
    fn datagram(from: (u8, u16), to: (u8, u16)) -> PacketTags {
        let mut bytes = std::vec![0_u8; 28];
        bytes[..20]
            .copy_from_slice(&[69, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from.0, 10, 0, 0, to.0]);
        bytes[20..22].copy_from_slice(&from.1.to_be_bytes());
        bytes[22..24].copy_from_slice(&to.1.to_be_bytes());
        PacketTags::of(&IpPacket::new(bytes))
    }

    /// Goal: both directions of a connection are one flow, of hosts that change places; ports are flows of
    /// the same hosts. Method: a datagram, its answer, and others.
    #[test]
    fn directions_are_one_flow() {
        let (there, back) = (datagram((1, 5), (2, 7)), datagram((2, 7), (1, 5)));
        assert_eq!(there.flow, back.flow);
        assert_eq!((there.source, there.destination), (back.destination, back.source));
        let other = datagram((1, 6), (2, 7));
        assert_ne!(other.flow, there.flow);
        assert_eq!((other.source, other.destination), (there.source, there.destination));
        assert_ne!(datagram((1, 7), (2, 5)).flow, there.flow, "ports belong to their hosts");
        assert_ne!(datagram((3, 5), (2, 7)).source, there.source);
    }
}
