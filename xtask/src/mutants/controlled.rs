//! Mutants of single rules of codel, fq_codel, sfq and random early detection.

use super::killer::{Killer, Mutant, Suite};

const CONTROL: &str = "crates/qdisc/src/codel/control.rs";
const FQ_CODEL: &str = "crates/qdisc/src/fq_codel/mod.rs";
const FLOWS: &str = "crates/qdisc/src/fq_codel/flows.rs";
const SFQ: &str = "crates/qdisc/src/sfq/mod.rs";
const SFQ_FLOWS: &str = "crates/qdisc/src/sfq/flows.rs";
const AVERAGE: &str = "crates/qdisc/src/red/average.rs";
const POOL: &str = "crates/qdisc/src/pooled.rs";

/// Any test of them.
const CONTROLLED: &[Killer] = &[Killer::All(Suite::Controlled)];
const POOLS: &[Killer] = &[Killer::Test(Suite::DisciplineUnits, "pooled::tests::queues_do_not_mix")];

pub(super) const CONTROLLED_QUEUES: &[Mutant] = &[
    Mutant {
        name: "codel-drops-at-the-moment",
        rule: "what is exactly at the end of the interval is not yet over it",
        file: CONTROL,
        right: "now > *self.first_above",
        wrong: "now >= *self.first_above",
        killers: CONTROLLED,
    },
    Mutant {
        name: "codel-one-packet-is-a-queue",
        rule: "nothing is dropped while no more than a packet's bytes wait",
        file: CONTROL,
        right: "|| backlog <= u64::from(law.mtu)",
        wrong: "|| backlog < u64::from(law.mtu)",
        killers: CONTROLLED,
    },
    Mutant {
        name: "codel-newton-halves-twice",
        rule: "a step of Newton's method keeps the root's size",
        file: CONTROL,
        right: ".wrapping_mul(root) >> 31;",
        wrong: ".wrapping_mul(root) >> 32;",
        killers: CONTROLLED,
    },
    Mutant {
        name: "codel-forgets-its-pace",
        rule: "a queue that is bad again soon goes on near its pace",
        file: CONTROL,
        right: "const INTERVALS_REMEMBERED: u64 = 16;",
        wrong: "const INTERVALS_REMEMBERED: u64 = 1;",
        killers: CONTROLLED,
    },
    Mutant {
        name: "codel-empty-queue-stays-above",
        rule: "an empty queue ends what was above the target",
        file: CONTROL,
        right: "let Some(Waited { packet, arrived, backlog }) = queue.take() else {\n            self.state.first_above = None;",
        wrong: "let Some(Waited { packet, arrived, backlog }) = queue.take() else {",
        killers: CONTROLLED,
    },
    Mutant {
        name: "fq-codel-new-flows-rest-at-once",
        rule: "a new flow that has nothing left waits for a turn of the others",
        file: FQ_CODEL,
        right: "if is_new && !self.old.is_empty() {",
        wrong: "if is_new && self.old.len() > 1 {",
        killers: CONTROLLED,
    },
    Mutant {
        name: "fq-codel-drops-the-last-of-the-longest",
        rule: "of several longest queues the first makes room",
        file: FLOWS,
        right: ".then(other.0.cmp(&one.0));",
        wrong: ".then(one.0.cmp(&other.0));",
        killers: CONTROLLED,
    },
    Mutant {
        name: "fq-codel-keeps-its-count",
        rule: "what a queue drops for want of room counts for CoDel",
        file: FLOWS,
        right: "state.count = state.count.wrapping_add(dropped);",
        wrong: "state.count = state.count.wrapping_add(0 * dropped);",
        killers: CONTROLLED,
    },
    Mutant {
        name: "pool-forgets-the-last-place",
        rule: "a queue that has become empty has no last place",
        file: POOL,
        right: "None => queue.last = NOWHERE,",
        wrong: "None => {}",
        killers: POOLS,
    },
    Mutant {
        name: "sfq-turns-of-nothing",
        rule: "a flow whose turn is used up waits for the others",
        file: SFQ,
        right: "if queue.allot <= 0 {",
        wrong: "if queue.allot < 0 {",
        killers: CONTROLLED,
    },
    Mutant {
        name: "sfq-drops-of-the-next",
        rule: "the longest flow makes room, not the next one",
        file: SFQ_FLOWS,
        right: "if self.longest > 1 {",
        wrong: "if self.longest > 2 {",
        killers: CONTROLLED,
    },
    Mutant {
        name: "sfq-keeps-its-places",
        rule: "flows are spread anew after a period",
        file: SFQ,
        right: "self.key = draw_key(&mut self.random);\n        while",
        wrong: "while",
        killers: CONTROLLED,
    },
    Mutant {
        name: "red-first-packet-is-marked",
        rule: "the first packet between the limits draws, and is not marked",
        file: AVERAGE,
        right: "if count > 0 { RedVerdict::Early } else { RedVerdict::Pass }",
        wrong: "RedVerdict::Early",
        killers: CONTROLLED,
    },
    Mutant {
        name: "red-at-the-upper-limit",
        rule: "an average at the upper limit is too high",
        file: AVERAGE,
        right: "if self.bytes >= max << curve.weight_log {",
        wrong: "if self.bytes > max << curve.weight_log {",
        killers: CONTROLLED,
    },
    Mutant {
        name: "red-empty-queue-remembers",
        rule: "an empty queue's average falls",
        file: AVERAGE,
        right: "return average >> halves;",
        wrong: "return average >> 1;",
        killers: CONTROLLED,
    },
    Mutant {
        name: "red-adapts-to-the-limits",
        rule: "the probability follows the middle fifth between the limits",
        file: AVERAGE,
        right: "u64::from(curve.min) + 3 * fifth);",
        wrong: "u64::from(curve.min) + 4 * fifth);",
        killers: CONTROLLED,
    },
    Mutant {
        name: "red-marks-in-spite-of-harddrop",
        rule: "with harddrop packets above the upper limit are dropped",
        file: "crates/qdisc/src/red/mod.rs",
        right: "RedVerdict::Forced => ecn && !harddrop,",
        wrong: "RedVerdict::Forced => ecn,",
        killers: CONTROLLED,
    },
    Mutant {
        name: "sfq-drops-the-first-of-none",
        rule: "of a flow that holds none, the packet that comes is the first that can be dropped",
        file: "crates/qdisc/src/sfq/mod.rs",
        right: "if self.settings.headdrop && self.flows.get(flow).packets.len() > 0 {",
        wrong: "if self.settings.headdrop {",
        killers: CONTROLLED,
    },
];
