//! Mutants of netem's tables and of what bytes do not tell, and of disciplines of bands and of deficit round
//! robin.

use super::killer::{Killer, Mutant, Suite};

const DISTRIBUTION: &str = "crates/qdisc/src/distribution.rs";
const ROUND: &str = "crates/qdisc/src/round.rs";
const ETS: &str = "crates/qdisc/src/ets/mod.rs";
const MULTIQ: &str = "crates/qdisc/src/multiq/mod.rs";

const TABLES: &[Killer] =
    &[Killer::Test(Suite::DisciplineUnits, "distribution::tests::quantiles_are_those_of_iproute2")];
const KEPT_TABLES: &[Killer] =
    &[Killer::Test(Suite::DisciplineUnits, "netem::tc::tests::tables_stay_without_their_file")];
const BYTES: &[Killer] = &[Killer::Test(Suite::DisciplineUnits, "fq::tc::tests::what_bytes_do_not_tell")];
const DISCIPLINES: &[Killer] = &[Killer::All(Suite::Disciplines)];
/// Any test of bands and rounds.
const ROUNDS: &[Killer] = &[Killer::All(Suite::Rounds)];

pub(super) const KINDS: &[Mutant] = &[
    Mutant {
        name: "pareto-over-deviation",
        rule: "the table `pareto` is over the variance, as iproute2's is",
        file: DISTRIBUTION,
        right: "- mean) / variance",
        wrong: "- mean) / libm::sqrt(variance)",
        killers: TABLES,
    },
    Mutant {
        name: "normal-at-middles",
        rule: "the table `normal` has the quantiles an eighth behind the begin of each share",
        file: DISTRIBUTION,
        right: "(f64::from(index) + 0.125)",
        wrong: "(f64::from(index) + 0.5)",
        killers: TABLES,
    },
    Mutant {
        name: "netem-change-forgets-slots",
        rule: "a change that names no slot keeps the one that there is, with its table",
        file: "crates/qdisc/src/netem/tc.rs",
        right: "settings.slot.clone_from(&queue.settings().slot);",
        wrong: "settings.slot = None;",
        killers: KEPT_TABLES,
    },
    Mutant {
        name: "netem-reordered-not-requeued",
        rule: "a packet that overtakes is counted as requeued",
        file: "crates/qdisc/src/netem/mod.rs",
        right: "self.statistics.requeues += 1;",
        wrong: "self.statistics.requeues += 0;",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "fq-horizon-of-bytes",
        rule: "a horizon is refused where packets are bytes",
        file: "crates/qdisc/src/fq/tc.rs",
        right: "if origin == PacketOrigin::Program {",
        wrong: "if origin == PacketOrigin::Program || self.horizon.is_some() {",
        killers: BYTES,
    },
    Mutant {
        name: "round-forgets-deficit",
        rule: "what is left of a turn is added to the next quantum",
        file: ROUND,
        right: "(class, deficit + u64::from(quantum))",
        wrong: "(class, u64::from(quantum).max(deficit))",
        killers: ROUNDS,
    },
    Mutant {
        name: "round-wakes-in-front",
        rule: "a class that begins to have packets is behind all others",
        file: ROUND,
        right: "self.row.push_back((class, quantum.into()));",
        wrong: "self.row.push_front((class, quantum.into()));",
        killers: ROUNDS,
    },
    Mutant {
        name: "drr-loses-in-silence",
        rule: "a packet that no class is for is counted as dropped",
        file: "crates/qdisc/src/drr/mod.rs",
        right: "self.own.dropped += 1;",
        wrong: "self.own.dropped += 0;",
        killers: ROUNDS,
    },
    Mutant {
        name: "ets-strict-holds-back",
        rule: "a strict band that waits holds back itself only",
        file: ETS,
        right: "Dequeued::Throttled(until) => first = first.into_iter().chain([until]).min(),",
        wrong: "Dequeued::Throttled(until) => return Dequeued::Throttled(until),",
        killers: ROUNDS,
    },
    Mutant {
        name: "ets-becomes-strict-and-shares",
        rule: "a band that becomes strict leaves the round",
        file: ETS,
        right: "(false, true) => self.round.remove(band),",
        wrong: "(false, true) if band >= self.bands.len() => self.round.remove(band),",
        killers: ROUNDS,
    },
    Mutant {
        name: "multiq-asks-backwards",
        rule: "bands are asked in their order",
        file: MULTIQ,
        right: "self.last = (self.last + 1) % self.bands.len();",
        wrong: "self.last = (self.last + self.bands.len() - 1) % self.bands.len();",
        killers: ROUNDS,
    },
    Mutant {
        name: "pfifo-fast-eight-priorities",
        rule: "the last four bits of a priority choose the band",
        file: "crates/qdisc/src/pfifo_fast/mod.rs",
        right: "packet.priority() as usize % self.priomap.len()",
        wrong: "packet.priority() as usize % 8",
        killers: ROUNDS,
    },
    Mutant {
        name: "ets-drops-all-and-stays",
        rule: "a band whose queue has dropped all to make room leaves the round",
        file: ETS,
        right: "if self.bands[band].is_empty() != was_empty {",
        wrong: "if was_empty && !self.bands[band].is_empty() {",
        killers: ROUNDS,
    },
    Mutant {
        name: "drr-drops-all-and-stays",
        rule: "a class whose queue has dropped all to make room leaves the round",
        file: "crates/qdisc/src/drr/mod.rs",
        right: "(false, true) => self.round.remove(class),",
        wrong: "",
        killers: ROUNDS,
    },
];
