//! `codel` and `fq_codel` against recordings of a real kernel: the same packets are dropped and marked.

#[path = "../common/recorded.rs"]
mod player;

use crate::Datagram;
use player::BYTES;
use quietcore_core::Nanos;
use quietcore_qdisc::{Codel, CodelLaw, CodelSettings, FqCodel, FqCodelSettings, Qdisc};

const RECORDED: &str = include_str!("../recorded/codel-linux-6.12.txt");

/// How many packets have another fate than in the recording, and how many were dropped or marked there;
/// flows are of these classes.
fn differences(name: &str, classes: &[u16], inside: impl Qdisc<Datagram> + 'static) -> (usize, usize) {
    let markable = name.starts_with("codel ecn");
    let packet = |number: u32| {
        let class = classes[number as usize % classes.len()];
        Datagram { number, class, bytes: BYTES, markable, ..Datagram::default() }
    };
    let fate = |packet: &Datagram| (packet.number, packet.marks > 0);
    let (other, signals, _) = player::differences((RECORDED, name), packet, fate, inside);
    (other, signals)
}

/// Goal: a real kernel drops and marks what ours does, and lets packets go at the same time. Method: its
/// arrivals. Which of its queues come first, where several are equally long, is told beside each. What tbf
/// has looked at counts for a limit of the kernel's, and not for ours, so ours are one less.
#[test]
fn a_kernel_drops_the_same_packets() {
    let settings = CodelSettings::default();
    assert_eq!(differences("codel", &[1], Codel::new(settings)), (0, 27));
    let law = CodelLaw { ecn: true, ce_threshold: Some(Nanos(20_000_000)), ..settings.law };
    let codel = Codel::new(CodelSettings { limit: 59, law });
    // What comes and goes in the same microseconds makes up for a packet or two of the limit.
    let (other, signals) = differences("codel ecn ce_threshold 20ms limit 60", &[1], codel);
    assert!(other <= 20 && signals == 903, "{other} others of {signals}");
}

/// Goal: the same of fair queues, where drops for want of room come on top. Method: as above.
#[test]
fn a_kernel_drops_from_the_same_queues() {
    let settings = FqCodelSettings { limit: 99, ..FqCodelSettings::default() };
    let queue = FqCodel::new(settings).expect("settings that can be");
    let (other, signals) = differences("fq_codel limit 100, 3 flows", &[1, 3, 2], queue);
    assert!(other <= 2 && signals == 308, "{other} others of {signals}");
    // The kernel's packets took 2304 bytes of memory: 43 were below the limit.
    let memory_limit = 43 * (BYTES + 256) + 100;
    let settings = FqCodelSettings { memory_limit, drop_batch: 8, ..FqCodelSettings::default() };
    let queue = FqCodel::new(settings).expect("settings that can be");
    let name = "fq_codel memory_limit 100000 drop_batch 8 ecn, 3 flows";
    let (other, signals) = differences(name, &[3, 1, 2], queue);
    assert!(other <= 32 && signals == 359, "{other} others of {signals}");
}
