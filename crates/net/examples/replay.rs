//! What lines of `tc` do to packets that were sent at known moments: without a device's time, so an hour of
//! packets takes as long as their work does.
//!
//! ```text
//! printf 'tc qdisc add dev v0 root netem delay 10ms\nsend 0 0 100 0 0 -1\n' | \
//!     cargo run -p quietcore-net --example replay -- 2
//! ```
//!
//! Reads lines of `tc` for the device `v0`, then a line of each packet: `send AT FLOW BYTES TOS RATE
//! TXTIME`, with moments in nanoseconds, bytes on the link (14 of Ethernet included), the sender's pacing
//! rate in bytes per second (0 for none), and how long after `AT` it asked for the packet to leave (-1 for
//! not). A packet is of UDP, from 10.9.(FLOW / 64).1, port 5000 + FLOW, to 10.9.0.2, port 7000.
//!
//! Flows from 192 on are of TCP: a segment has RATE as its flags, the packet's number as its own, and
//! acknowledges 1000 bytes more than the one of its flow before, or as many if RATE is 0.
//!
//! Arguments: how many times it is played, with one seed after the other; by how many nanoseconds timers
//! are late, none if that is left out; and the first seed, 1 if that is left out. Writes `@@ seed N`, then
//! `r NUMBER NANOSECONDS TOS DAMAGED` for each packet that leaves, and behind `@@ shown` what `tc -s qdisc
//! show` and `tc -s class show` say in the end. tests/fidelity compares that with a kernel.

use quietcore::net::{Control, Device, DeviceOptions, Driver, Network};
use quietcore::qdisc::{Dequeued, IpPacket, Packet, Qdisc, checksum};
use quietcore::{LaneThreads, Machine, Nanos};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Read as _;
use std::sync::Arc;

/// Bytes of Ethernet's header.
const LINK_HEADER: u16 = 14;
/// Bytes of the headers of IPv4 and UDP.
const HEADERS: usize = 28;
/// The first flow of TCP.
const FIRST_TCP: u16 = 192;
/// Flows of each address that sends.
const HOST_FLOWS: u16 = 64;
/// Nanoseconds from the lines of `tc` to the first packet, so that what they made is idle.
const IDLE: u64 = 1_000_000_000;

/// A packet of a plan.
#[derive(Clone, Debug)]
struct Sent {
    number: u32,
    packet: IpPacket,
    pacing_rate: Option<u64>,
    departure: Option<Nanos>,
}

impl Packet for Sent {
    fn len(&self) -> u32 {
        self.packet.len()
    }

    fn flow(&self) -> u64 {
        self.packet.flow()
    }

    fn departure(&self) -> Option<Nanos> {
        self.departure
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pacing_rate
    }

    fn priority(&self) -> u32 {
        self.packet.priority()
    }

    fn duplicate(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn corrupt(&mut self, byte: u32, bit: u32) {
        self.packet.corrupt(byte, bit);
    }

    fn traffic_class(&self) -> Option<u8> {
        self.packet.traffic_class()
    }

    fn clear_code_point(&mut self) {
        self.packet.clear_code_point();
    }

    fn link_header(&self) -> u32 {
        self.packet.link_header()
    }

    fn mark_congestion(&mut self) -> bool {
        self.packet.mark_congestion()
    }

    fn network_bytes(&self) -> &[u8] {
        self.packet.network_bytes()
    }
}

/// No device: packets are taken out of the discipline itself.
struct Nowhere;

impl Driver<Sent> for Nowhere {
    fn transmit(&self, _: usize, _: Sent) -> Result<(), Sent> {
        Ok(())
    }
}

/// A line of the plan.
struct Planned {
    at: u64,
    bytes: usize,
    flow: u16,
    tos: u8,
    rate: u64,
    txtime: Option<u64>,
    /// Of a segment of TCP.
    acknowledged: u32,
}

impl Planned {
    /// What follows `send` in a line.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let mut number = || words.next()?.parse::<i64>().ok();
        let (at, flow, bytes, tos) = (number()?, number()?, number()?, number()?);
        let (rate, txtime) = (number()?, number()?);
        Some(Self {
            at: u64::try_from(at).ok()?,
            bytes: usize::try_from(bytes)
                .ok()?
                .checked_sub(LINK_HEADER.into())
                .filter(|ip| *ip >= HEADERS)?,
            flow: u16::try_from(flow).ok()?,
            tos: u8::try_from(tos).ok()?,
            rate: u64::try_from(rate).ok()?,
            txtime: u64::try_from(txtime).ok(),
            acknowledged: 0,
        })
    }

    /// The bytes of the packet, the `acknowledged` of which a segment of TCP acknowledges.
    fn ip(&self, number: u32, acknowledged: u32) -> Vec<u8> {
        let is_tcp = self.flow >= FIRST_TCP;
        let mut bytes = vec![0; self.bytes];
        let protocol = if is_tcp { 6 } else { 17 };
        bytes[..20].copy_from_slice(&[
            69, self.tos, 0, 0, 0, 0, 64, 0, 64, protocol, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2,
        ]);
        bytes[2..4].copy_from_slice(&(self.bytes as u16).to_be_bytes());
        bytes[14] = (self.flow / HOST_FLOWS) as u8;
        let checksum = !checksum::folded(checksum::sum(&bytes[..20]));
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes[20..22].copy_from_slice(&(5_000 + self.flow).to_be_bytes());
        bytes[22..24].copy_from_slice(&7_000_u16.to_be_bytes());
        if is_tcp {
            bytes[24..28].copy_from_slice(&number.to_be_bytes());
            bytes[28..32].copy_from_slice(&acknowledged.to_be_bytes());
            (bytes[32], bytes[33]) = (5 << 4, if self.rate > 0 { self.rate as u8 } else { 0x10 });
        } else {
            bytes[24..26].copy_from_slice(&((self.bytes - 20) as u16).to_be_bytes());
        }
        bytes
    }

    fn sent(&self, number: u32, at: Nanos) -> Sent {
        Sent {
            number,
            packet: IpPacket::new(self.ip(number, self.acknowledged)).with_link_header(LINK_HEADER),
            pacing_rate: (self.rate > 0 && self.flow < FIRST_TCP).then_some(self.rate),
            departure: self.txtime.map(|later| Nanos(at.0 + later)),
        }
    }
}

/// A play: what was planned, from a moment on, and what left.
struct Play<'a> {
    plan: &'a [Planned],
    begin: Nanos,
    /// Nanoseconds by which a timer is late.
    late: u64,
    left: String,
}

impl Play<'_> {
    /// Takes what leaves at `now`; says when to look again.
    fn take(&mut self, qdisc: &mut dyn Qdisc<Sent>, now: Nanos) -> Option<Nanos> {
        loop {
            match qdisc.dequeue(now) {
                Dequeued::Packet(sent) => {
                    let tos = sent.traffic_class().unwrap_or(0);
                    // A mark of congestion is no damage.
                    let before = Planned { tos, ..self.plan[sent.number as usize] };
                    let damaged =
                        u8::from(sent.network_bytes() != before.ip(sent.number, before.acknowledged));
                    let at = now.0 - self.begin.0;
                    writeln!(self.left, "r {} {at} {tos} {damaged}", sent.number).expect("memory");
                }
                Dequeued::Throttled(until) => return Some(Nanos(until.0 + self.late)),
                Dequeued::Empty => return None,
            }
        }
    }

    fn all(mut self, qdisc: &mut dyn Qdisc<Sent>) -> String {
        let mut next = None;
        for (number, planned) in (0..).zip(self.plan) {
            let now = Nanos(self.begin.0 + planned.at);
            while let Some(until) = next.filter(|until| *until <= now) {
                next = self.take(qdisc, until);
            }
            let _ = qdisc.enqueue(now, planned.sent(number, now));
            next = self.take(qdisc, now);
        }
        while let Some(until) = next {
            next = self.take(qdisc, until);
        }
        self.left
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let number = |at, default| std::env::args().nth(at).map_or(Ok(default), |word| word.parse::<u64>());
    let (seeds, late, first) = (number(1, 1)?, number(2, 0)?, number(3, 1)?);
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let (sends, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("send "));
    let plan = sends.iter().map(|line| {
        Planned::parse(&line[5..]).ok_or_else(|| format!("{line}: not `send AT FLOW BYTES TOS RATE TXTIME`"))
    });
    let mut plan = plan.collect::<Result<Vec<_>, _>>()?;
    let mut acknowledged = [0_u32; 256];
    for planned in plan.iter_mut().filter(|planned| planned.flow >= FIRST_TCP) {
        let all = &mut acknowledged[usize::from(planned.flow) % 256];
        *all += if planned.rate > 0 { 1_000 } else { 0 };
        planned.acknowledged = *all;
    }
    let (network, builder) = Network::new(Machine::builder().lanes("0".parse()?));
    let machine = builder.lane_threads(LaneThreads::new()).start()?;
    for seed in first..first + seeds {
        let device = Arc::new(Device::new(&network, machine, DeviceOptions::new(1), Nowhere)?);
        let control = Control::new(machine, seed);
        control.add_device("v0", Arc::clone(&device))?;
        for line in &lines {
            control.execute_line(line).map_err(|error| format!("{line}: {error}"))?;
        }
        let play = Play { plan: &plan, begin: Nanos(machine.now().0 + IDLE), late, left: String::new() };
        let left = device.with_qdisc(0, |qdisc| play.all(qdisc));
        println!("@@ seed {seed}\n{left}@@ shown");
        print!("{}", control.execute_line("tc -s qdisc show dev v0")?);
        print!("{}", control.execute_line("tc -s class show dev v0")?);
    }
    machine.shutdown();
    Ok(())
}
