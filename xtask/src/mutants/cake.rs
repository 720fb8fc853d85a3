//! Mutants of single rules of cake.

use super::killer::{Killer, Mutant, Suite};

const COBALT: &str = "crates/qdisc/src/cake/cobalt.rs";
const FRAMING: &str = "crates/qdisc/src/cake/framing.rs";
const SPREAD: &str = "crates/qdisc/src/cake/spread.rs";
const TIN: &str = "crates/qdisc/src/cake/tin.rs";
const TINS: &str = "crates/qdisc/src/cake/tins.rs";
const SERVE: &str = "crates/qdisc/src/cake/serve.rs";
const QUEUE: &str = "crates/qdisc/src/cake/mod.rs";
const ESTIMATE: &str = "crates/qdisc/src/cake/estimate.rs";
const ACK: &str = "crates/qdisc/src/cake/ack.rs";
const LONGEST: &str = "crates/qdisc/src/cake/longest.rs";

/// Any test of it, and of its neighbours.
const CONTROLLED: &[Killer] = &[Killer::All(Suite::Controlled)];
/// The tests beside the code.
const UNITS: &[Killer] = &[Killer::All(Suite::DisciplineUnits)];

pub(super) const CAKE: &[Mutant] = &[
    Mutant {
        name: "cake-target-is-too-long",
        rule: "the target itself is fine",
        file: COBALT,
        right: "waited > target && waited > turns",
        wrong: "waited >= target && waited > turns",
        killers: UNITS,
    },
    Mutant {
        name: "cake-blue-changes-always",
        rule: "BLUE's probability changes once per target at most",
        file: COBALT,
        right: "now.saturating_sub(self.blue_changed) > law.target as i64",
        wrong: "now.saturating_sub(self.blue_changed) > 0",
        killers: UNITS,
    },
    Mutant {
        name: "cake-first-gap-is-known",
        rule: "a queue that has never dropped has no gap before its first drop",
        file: COBALT,
        right: "            inverse_root: 0,\n            drop_next: NEVER",
        wrong: "            inverse_root: u32::MAX,\n            drop_next: NEVER",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-forgets-at-once",
        rule: "drops are forgotten one by one, by the law by which they were made",
        file: COBALT,
        right: "        self.count -= 1;\n        self.find_root();",
        wrong: "        self.count = 0;\n        self.find_root();",
        killers: UNITS,
    },
    Mutant {
        name: "cake-drops-early-again",
        rule: "a drop that is overdue without being needed is due from now on",
        file: COBALT,
        right: "        } else if overdue > 0 && !fate.is_dropped {\n            self.drop_next = now;",
        wrong: "        } else if overdue > 0 && !fate.is_dropped {",
        killers: UNITS,
    },
    Mutant {
        name: "cake-raw-has-no-header",
        rule: "raw packets count with their link header",
        file: FRAMING,
        right: "if framing.raw { 0 } else { header }",
        wrong: "if framing.raw { header } else { 0 }",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-cells-are-48",
        rule: "a cell takes 53 bytes",
        file: FRAMING,
        right: ".saturating_mul(53)",
        wrong: ".saturating_mul(48)",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-one-way",
        rule: "a flow takes any free queue of its set",
        file: SPREAD,
        right: "(0..WAYS).map(move |step|",
        wrong: "(0..1).map(move |step|",
        killers: UNITS,
    },
    Mutant {
        name: "cake-directions-differ",
        rule: "both directions of a connection are one flow",
        file: SPREAD,
        right: "mixed(both[0]).wrapping_add(mixed(both[1]))",
        wrong: "mixed(both[0]).wrapping_sub(mixed(both[1]))",
        killers: UNITS,
    },
    Mutant {
        name: "cake-hosts-do-not-share",
        rule: "a flow has its part of the busier host's turn",
        file: TIN,
        right: "load = load.max(self.sources.bulk(source));",
        wrong: "load = load.max(1);",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-retired-flows-stay-with-hosts",
        rule: "a queue that is empty no longer counts for its hosts",
        file: TIN,
        right: "                self.bulk -= 1;\n                self.leave_hosts(at, isolation);",
        wrong: "                self.bulk -= 1;",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-woken-flow-stays-behind",
        rule: "a queue that wakes goes before those that have had their turn",
        file: TIN,
        right: "self.rotation.put_last(at, TurnList::New);",
        wrong: "self.rotation.put_last(at, TurnList::Old);",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-bulk-is-a-quarter",
        rule: "bulk has a sixteenth of the rate as its threshold",
        file: TINS,
        right: "let four = [(rate, 1_024), (rate >> 4, 64)",
        wrong: "let four = [(rate, 1_024), (rate >> 2, 64)",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-order-is-rank",
        rule: "tins are shown and named with bulk first",
        file: TINS,
        right: "(Self::Diffserv3 | Self::Diffserv4, 0 | 1) => 1 - number",
        wrong: "(Self::Diffserv3 | Self::Diffserv4, 0 | 1) => number",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-last-packet-is-dropped",
        rule: "the last packet of a queue is never dropped",
        file: SERVE,
        right: "if !is_dropped || queue.packets.len() == 0 {",
        wrong: "if !is_dropped {",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-failsafe-is-the-shaper",
        rule: "dropped packets hold what is sent up by half as much again at most",
        file: SERVE,
        right: "self.failsafe.saturating_add(whole + whole / 2)",
        wrong: "self.failsafe.saturating_add(whole)",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-late-tin-loses",
        rule: "a tin that is late keeps what it is late by",
        file: SERVE,
        right: "            tin.next_packet = tin.next_packet.saturating_add(own);\n        } else",
        wrong: "            tin.next_packet = now.saturating_add(own);\n        } else",
        killers: UNITS,
    },
    Mutant {
        name: "cake-silence-is-saved",
        rule: "a shaper that had nothing to do has no claims",
        file: QUEUE,
        right: "            (self.next_packet, self.failsafe) = (now, now);",
        wrong: "            self.failsafe = now;",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-washes-first",
        rule: "packets are washed once their tin is known",
        file: QUEUE,
        right: "        let tin = self.tin_of(&packet, code_point);\n",
        wrong: "        let tin = self.tin_of(&packet, if self.settings.wash { 0 } else { code_point });\n",
        killers: CONTROLLED,
    },
    Mutant {
        name: "cake-has-all-that-arrives",
        rule: "the shaper has fifteen sixteenths of what arrives",
        file: ESTIMATE,
        right: "(self.peak * 15) >> 4",
        wrong: "(self.peak * 16) >> 4",
        killers: UNITS,
    },
    Mutant {
        name: "cake-ack-marks-are-lost",
        rule: "where the flags of ECN change, the earlier acknowledgement stays",
        file: ACK,
        right: "            self.eligible = None;\n            self.found -= 1;",
        wrong: "            self.found = 1;",
        killers: UNITS,
    },
    Mutant {
        name: "cake-duplicate-acks-go",
        rule: "a duplicate acknowledgement is a signal and stays",
        file: ACK,
        right: "is_some_and(|more| more || later.number != self.number)",
        wrong: "is_some_and(|_| true)",
        killers: UNITS,
    },
    Mutant {
        name: "cake-heap-does-not-sink",
        rule: "a queue that has less than another is not the longest",
        file: LONGEST,
        right: "bytes(*queue) > bytes(self.heap[most])",
        wrong: "bytes(*queue) < bytes(self.heap[most])",
        killers: UNITS,
    },
];
