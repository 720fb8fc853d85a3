//! Traces of Perfetto made long, or made of chance behind a good front.
//!
//! Decided here: what a packet holds. Field numbers are those of Perfetto's published schema, as in
//! `crates/trace/src/binary/perfetto`, whose tests say which is which.

use crate::binary::Contents;
use fastrand::Rng;
use std::io::{self, Write};

/// Events of one packet, which are a millisecond apart; CPUs take turns.
const EVENTS: u64 = 500;
const CPUS: u64 = 4;
/// The length of a packet of chance.
const RANDOM_BYTES: usize = 1 << 16;

/// Bytes of a message.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field * 8);
        self.varint(value);
        self
    }

    fn message(mut self, field: u64, fields: &Self) -> Self {
        self.varint(field * 8 + 2);
        self.varint(fields.0.len() as u64);
        self.0.extend_from_slice(&fields.0);
        self
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.message(field, &Self(text.as_bytes().to_vec()))
    }
}

/// Writes a trace of at least `size` bytes: softirqs and wake-ups on each CPU in turn, or packets of random
/// bytes.
pub(crate) fn write_perfetto(contents: Contents, size: u64, out: &mut dyn Write) -> io::Result<()> {
    let front = Fields::default().message(1, &Fields::default().number(10, 1));
    out.write_all(&front.0)?;
    let (mut written, mut random) = (0, Rng::with_seed(1));
    for number in 0.. {
        if written >= size {
            break;
        }
        let bytes = if contents == Contents::Random {
            let mut bytes = vec![0; RANDOM_BYTES];
            random.fill(&mut bytes);
            Fields::default().message(1, &Fields(bytes)).0
        } else {
            packet(number).0
        };
        out.write_all(&bytes)?;
        written += bytes.len() as u64;
    }
    Ok(())
}

/// What a CPU did in half a second.
fn packet(number: u64) -> Fields {
    let (cpu, begun) = (number % CPUS, number / CPUS * EVENTS * 1_000_000);
    let mut bundle = Fields::default().number(1, cpu);
    for event in 0..EVENTS {
        let fields = Fields::default().number(1, begun + event * 1_000_000 + cpu).number(2, 7 + cpu);
        let vector = Fields::default().number(1, 1);
        let woken = Fields::default().text(1, "worker").number(2, 40 + cpu).number(3, 120).number(5, cpu);
        let fields = match event % 4 {
            0 => fields.message(26, &vector),
            1 => fields.message(24, &vector),
            2 => fields.message(20, &woken),
            _ => fields.message(25, &vector),
        };
        bundle = bundle.message(2, &fields);
    }
    Fields::default().message(1, &Fields::default().number(10, 1).message(1, &bundle))
}
