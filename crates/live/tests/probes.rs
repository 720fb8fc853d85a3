//! Probes are in the program: its own file has a note for each of them, whose address is a `nop`.
//!
//! The file is read as an ELF of 64 bits, little-endian; only what is needed. Source: the System V ABI, and
//! SystemTap's UserSpaceProbeImplementation for the notes.

use quietcore_live::{Cpu, CpuId, CpuSet, Machine, TimerOptions};
use std::collections::BTreeMap;
use std::fs;

struct Elf(Vec<u8>);

/// One probe: where it is, and how many arguments it has.
#[derive(Debug)]
struct Probe {
    address: u64,
    arguments: usize,
}

impl Elf {
    fn word(&self, at: usize, bytes: usize) -> u64 {
        self.0[at..at + bytes].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    /// Address, offset and size of each section, by name.
    fn sections(&self) -> BTreeMap<String, (u64, usize, usize)> {
        let (table, length) = (self.word(0x28, 8) as usize, self.word(0x3a, 2) as usize);
        let header = |index: u64| table + index as usize * length;
        let names = self.word(header(self.word(0x3e, 2)) + 0x18, 8) as usize;
        let section = |index| {
            let at = header(index);
            let name = self.text(names + self.word(at, 4) as usize);
            let (offset, size) = (self.word(at + 0x18, 8) as usize, self.word(at + 0x20, 8) as usize);
            (name, (self.word(at + 0x10, 8), offset, size))
        };
        (0..self.word(0x3c, 2)).map(section).collect()
    }

    fn text(&self, at: usize) -> String {
        let bytes = self.0[at..].iter().take_while(|byte| **byte != 0);
        bytes.map(|byte| char::from(*byte)).collect()
    }

    /// The probes of `provider`, by name.
    fn probes(&self, provider: &str) -> BTreeMap<String, Vec<Probe>> {
        let sections = self.sections();
        let (_, mut at, size) = sections[".note.stapsdt"];
        // What the linker moved the program by since the notes were written.
        let base = sections[".stapsdt.base"].0;
        let end = at + size;
        let mut found = BTreeMap::<String, Vec<Probe>>::new();
        while at < end {
            let [name, description, kind] = [0, 4, 8].map(|offset| self.word(at + offset, 4) as usize);
            let start = at + 12 + name.next_multiple_of(4);
            assert_eq!((self.text(at + 12).as_str(), kind), ("stapsdt", 3));
            let address = self.word(start, 8).wrapping_add(base.wrapping_sub(self.word(start + 8, 8)));
            let of = self.text(start + 24);
            let probe = self.text(start + 24 + of.len() + 1);
            let arguments = self.text(start + 24 + of.len() + 1 + probe.len() + 1);
            if of == provider {
                let arguments = arguments.split_whitespace().count();
                found.entry(probe).or_default().push(Probe { address, arguments });
            }
            at = start + description.next_multiple_of(4);
        }
        found
    }
}

/// Goal: each probe is there, with its arguments, and costs a `nop`. Method: this program's own notes, and
/// the instruction that each leads to; a machine that passes by them, so that the linker keeps them all.
#[test]
fn each_probe_has_a_note() {
    let machine = Machine::builder().lanes("0".parse().expect("a list")).start().expect("starts");
    let mut lane = Cpu::claim(machine, CpuId::default()).expect("it is free");
    let timer = machine.timer(TimerOptions::new(), |_| ());
    timer.arm_at(machine.now()).expect("it runs");
    while timer.is_pending() || timer.is_running() {
        lane.park();
        lane.turn();
    }
    machine.set_isolated(&CpuSet::new()).expect("no thread is");
    drop(lane);
    machine.shutdown();

    let elf = Elf(fs::read("/proc/self/exe").expect("this program"));
    let probes = elf.probes("quietcore");
    let expected = [
        ("isolate", 1),
        ("lane_kick", 1),
        ("lane_park", 1),
        ("lane_stall", 1),
        ("lane_unpark", 1),
        ("timer_expire_entry", 3),
        ("timer_expire_exit", 3),
    ];
    let names: Vec<&str> = probes.keys().map(String::as_str).collect();
    assert_eq!(names, expected.map(|(name, _)| name));
    let (text, offset, size) = elf.sections()[".text"];
    for (name, arguments) in expected {
        for probe in &probes[name] {
            assert_eq!(probe.arguments, arguments, "{name}");
            let inside = (probe.address - text) as usize;
            assert!(inside < size, "{name} is at {:#x}", probe.address);
            if cfg!(target_arch = "x86_64") {
                assert_eq!(elf.0[offset + inside], 0x90, "{name} is a nop");
            }
        }
    }
}
