//! `cake` against recordings of a kernel, models that are written from its paper and its manual, and what it
//! promises.

mod priorities;
mod promises;
mod recorded;
mod sharing;

use quietcore_core::Nanos;
use quietcore_qdisc::{Cake, CakeSettings, Dequeued, IpPacket, Packet, Qdisc};

pub(crate) const SECOND: u64 = 1_000_000_000;
/// Bytes of Ethernet's header.
pub(crate) const LINK_HEADER: u16 = 14;

/// A datagram of UDP on Ethernet, with a number.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) number: u32,
    pub(crate) packet: IpPacket,
    pub(crate) priority: u32,
}

/// What a datagram is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Made {
    pub(crate) number: u32,
    /// The last byte of the address of its sender, and of its receiver.
    pub(crate) hosts: (u8, u8),
    pub(crate) port: u16,
    /// On the link, its header included: at least 42.
    pub(crate) bytes: u32,
    pub(crate) traffic_class: u8,
    pub(crate) mark: u32,
}

impl Made {
    pub(crate) fn datagram(self) -> Datagram {
        let length = self.bytes as usize - usize::from(LINK_HEADER);
        let mut bytes = vec![0; length];
        let head = [69, self.traffic_class, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
        bytes[..12].copy_from_slice(&head);
        bytes[12..20].copy_from_slice(&[10, 0, 0, self.hosts.0, 10, 1, 0, self.hosts.1]);
        bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        bytes[20..22].copy_from_slice(&self.port.to_be_bytes());
        bytes[22..24].copy_from_slice(&[0x1b, 0x58]);
        let packet = IpPacket::new(bytes).with_link_header(LINK_HEADER).with_mark(self.mark);
        Datagram { number: self.number, packet, priority: 0 }
    }
}

impl Packet for Datagram {
    fn len(&self) -> u32 {
        self.packet.len()
    }

    fn packets(&self) -> u32 {
        self.packet.packets()
    }

    fn each(&self) -> u32 {
        self.packet.each()
    }

    fn link_header(&self) -> u32 {
        self.packet.link_header()
    }

    fn flow(&self) -> u64 {
        self.packet.flow()
    }

    fn priority(&self) -> u32 {
        self.priority
    }

    fn traffic_class(&self) -> Option<u8> {
        self.packet.traffic_class()
    }

    fn clear_code_point(&mut self) {
        self.packet.clear_code_point();
    }

    fn mark_congestion(&mut self) -> bool {
        self.packet.mark_congestion()
    }

    fn network_bytes(&self) -> &[u8] {
        self.packet.network_bytes()
    }

    fn mark(&self) -> u32 {
        self.packet.mark()
    }
}

/// Numbers that look random.
pub(crate) fn numbers() -> impl FnMut() -> u32 + Send + 'static {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    }
}

pub(crate) fn cake(settings: CakeSettings) -> Cake<Datagram, impl FnMut() -> u32 + Send + 'static> {
    Cake::new(settings, numbers()).expect("settings that can be")
}

/// Takes what leaves until `until`, at the very moments that are told; gives each packet with its moment.
pub(crate) fn run(queue: &mut dyn Qdisc<Datagram>, from: u64, until: u64) -> Vec<(u64, Datagram)> {
    let (mut now, mut left) = (from, Vec::new());
    loop {
        match queue.dequeue(Nanos(now)) {
            Dequeued::Packet(packet) => left.push((now, packet)),
            Dequeued::Throttled(next) if next.0 <= until => {
                assert!(next.0 > now, "throttled until {}, asked at {now}", next.0);
                now = next.0;
            }
            Dequeued::Throttled(_) | Dequeued::Empty => return left,
        }
    }
}
