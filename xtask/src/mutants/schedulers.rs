//! Mutants of what `tc` means by its units, and of single rules of htb, hfsc, cbq and netem.

use super::killer::{Killer, Mutant, Suite};

const UNIT_TABLES: &str = "crates/qdisc/src/tc/units.rs";
const HTB_NODE: &str = "crates/qdisc/src/htb/node.rs";
const HFSC_SHIFTED: &str = "crates/qdisc/src/hfsc/shifted.rs";
const HFSC_SHARE: &str = "crates/qdisc/src/hfsc/share.rs";
const CBQ_SERVE: &str = "crates/qdisc/src/cbq/serve.rs";
const CBQ_NODE: &str = "crates/qdisc/src/cbq/node.rs";
const NETEM: &str = "crates/qdisc/src/netem/mod.rs";

/// The table of all units.
const QUEUE: &[Killer] =
    &[Killer::Test(Suite::DisciplineUnits, "netem::queue::tests::packets_leave_in_order")];
const UNITS: &[Killer] = &[Killer::Test(Suite::DisciplineUnits, "tc::units::tests::every_unit")];
/// Any test of a discipline.
const DISCIPLINES: &[Killer] = &[Killer::All(Suite::Disciplines)];
/// Any test of hfsc or cbq.
const TREES: &[Killer] = &[Killer::All(Suite::Trees)];

pub(super) const SCHEDULERS: &[Mutant] = &[
    Mutant {
        name: "netem-nothing-overtakes",
        rule: "a packet that may leave before those that came earlier leaves before them",
        file: "crates/qdisc/src/netem/queue.rs",
        right: "is_some_and(|first| first < *list) {",
        wrong: "is_some_and(|first| first.0 < list.0 && self.list.len() > 1) {",
        killers: QUEUE,
    },
    Mutant {
        name: "netem-equal-moments-swap",
        rule: "packets that may leave at the same moment leave in the order in which they came",
        file: "crates/qdisc/src/netem/queue.rs",
        right: "let key = (at, self.arrived);",
        wrong: "let key = (at, u64::MAX - self.arrived);",
        killers: QUEUE,
    },
    Mutant {
        name: "size-mbit-decimal",
        rule: "a size of 1mbit is 2^20 bits",
        file: UNIT_TABLES,
        right: "(\"mbit\", MEBI / 8)",
        wrong: "(\"mbit\", MEGA / 8)",
        killers: UNITS,
    },
    Mutant {
        name: "size-kb-decimal",
        rule: "a size of 1kb is 1024 bytes",
        file: UNIT_TABLES,
        right: "(\"kb\", KIBI),\n    (\"m\", MEBI)",
        wrong: "(\"kb\", KILO),\n    (\"m\", MEBI)",
        killers: UNITS,
    },
    Mutant {
        name: "size-gbit-bytes",
        rule: "a size of 1gbit is an eighth of 2^30 bytes",
        file: UNIT_TABLES,
        right: "(\"gbit\", GIBI / 8)",
        wrong: "(\"gbit\", GIBI)",
        killers: UNITS,
    },
    Mutant {
        name: "rate-mibit-decimal",
        rule: "a rate of 1mibit is 2^20 bits per second",
        file: UNIT_TABLES,
        right: "(\"mibit\", MEBI)",
        wrong: "(\"mibit\", MEGA)",
        killers: UNITS,
    },
    Mutant {
        name: "rate-bytes-as-bits",
        rule: "a rate in bps is in bytes",
        file: UNIT_TABLES,
        right: "(\"gbps\", 8 * GIGA)",
        wrong: "(\"gbps\", GIGA)",
        killers: UNITS,
    },
    Mutant {
        name: "time-without-unit",
        rule: "a time without a unit is in microseconds",
        file: UNIT_TABLES,
        right: "    (\"\", KILO),",
        wrong: "    (\"\", MEGA),",
        killers: UNITS,
    },
    Mutant {
        name: "htb-lender-pays-nothing",
        rule: "who borrows is paid for by the lender's tokens",
        file: HTB_NODE,
        right: "if self.level >= lender",
        wrong: "if self.level > lender",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "htb-bucket-without-bottom",
        rule: "a bucket never holds more than its burst",
        file: HTB_NODE,
        right: "tokens.saturating_add(elapsed).min(depth)",
        wrong: "tokens.saturating_add(elapsed)",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "htb-ceil-after-rate",
        rule: "a class above its ceil may not borrow",
        file: HTB_NODE,
        right: "if ctokens < 0 {",
        wrong: "if ctokens < 0 && self.counted.tokens < 0 {",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "htb-direct-last",
        rule: "packets of no class go first",
        file: "crates/qdisc/src/htb/serve.rs",
        right: "direct.or_else(|| self.dequeue_class(now))",
        wrong: "direct.xor(self.dequeue_class(now))",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "hfsc-convex-eligible-late",
        rule: "a convex guarantee is built up by the line of its second rate",
        file: "crates/qdisc/src/hfsc/realtime.rs",
        right: "ServiceCurve::linear(curve.m2));",
        wrong: "curve);",
        killers: TREES,
    },
    Mutant {
        name: "hfsc-line-left-behind",
        rule: "what a line gives is counted from where it began anew",
        file: HFSC_SHIFTED,
        right: "old.first.saturating_add(line(self.shape.m1, passed))",
        wrong: "old.first",
        killers: TREES,
    },
    Mutant {
        name: "hfsc-second-line-left-behind",
        rule: "of a curve of two pieces both lines are",
        file: HFSC_SHIFTED,
        right: "begun.second.saturating_add(second)",
        wrong: "begun.second.saturating_add(first)",
        killers: TREES,
    },
    Mutant {
        name: "hfsc-eligible-too-early",
        rule: "a leaf that is not eligible yet has to wait",
        file: "crates/qdisc/src/hfsc/realtime.rs",
        right: "if realtime.eligible <= now {",
        wrong: "if realtime.eligible <= now || !self.waiting.is_empty() {",
        killers: TREES,
    },
    Mutant {
        name: "hfsc-deadline-of-beginning",
        rule: "a deadline is when the curve reaches the packet's end",
        file: "crates/qdisc/src/hfsc/realtime.rs",
        right: "self.deadline_curve.reaches(bytes + u64::from(length))",
        wrong: "self.deadline_curve.reaches(bytes)",
        killers: TREES,
    },
    Mutant {
        name: "hfsc-join-at-least",
        rule: "a class that becomes backlogged begins at the mean of its siblings",
        file: HFSC_SHARE,
        right: "u128::midpoint(self.floor.max(*least), self.floor.max(*greatest))",
        wrong: "self.floor.max(*least)",
        killers: TREES,
    },
    Mutant {
        name: "hfsc-limit-not-counted",
        rule: "what was sent counts against the upper limit",
        file: HFSC_SHARE,
        right: "moment(curve.reaches(total)));",
        wrong: "moment(curve.reaches(0)));",
        killers: TREES,
    },
    Mutant {
        name: "cbq-bounded-borrows",
        rule: "a bounded class does not borrow",
        file: CBQ_SERVE,
        right: "if node.settings.bounded { None }",
        wrong: "if node.settings.bounded && node.level > 0 { None }",
        killers: TREES,
    },
    Mutant {
        name: "cbq-isolated-shares",
        rule: "an isolated class counts for itself alone",
        file: CBQ_SERVE,
        right: "if node.settings.isolated { None } else { node.parent }",
        wrong: "node.parent",
        killers: TREES,
    },
    Mutant {
        name: "cbq-idle-not-bounded",
        rule: "idle time is saved up to a bound",
        file: CBQ_NODE,
        right: "average.clamp(self.min_idle, self.max_idle)",
        wrong: "average.max(self.min_idle)",
        killers: TREES,
    },
    Mutant {
        name: "cbq-weights-ignored",
        rule: "classes of a priority send by their quanta",
        file: CBQ_SERVE,
        right: "node.deficit -= i64::from(bytes);",
        wrong: "node.deficit -= 1;",
        killers: TREES,
    },
    Mutant {
        name: "netem-reorder-gap",
        rule: "every gap-th packet overtakes",
        file: NETEM,
        right: "self.since_reordered < settings.gap - 1",
        wrong: "self.since_reordered < settings.gap",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "netem-copy-of-copy",
        rule: "a copy is not duplicated again",
        file: NETEM,
        right: "let _ = self.take(now, copy, Copies::Made);",
        wrong: "let _ = self.take(now, copy, Copies::Allowed);",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "netem-slot-bytes",
        rule: "a slot is over when its bytes are used up",
        file: NETEM,
        right: "if self.slot.packets == 0 || self.slot.bytes == 0 {",
        wrong: "if self.slot.packets == 0 {",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "htb-waits-for-none",
        rule: "a class whose queue has dropped all to make room is not waited for",
        file: "crates/qdisc/src/htb/mod.rs",
        right: "self.tree.deactivate(leaf);\n        } else if",
        wrong: "} else if",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "netem-inside-is-asked-early",
        rule: "all that is due comes to what is inside before that is asked",
        file: NETEM,
        right: "let _ = inner.enqueue(now, packet);\n",
        wrong: "let _ = inner.enqueue(now, packet);\n                    return inner.dequeue(now);\n",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "netem-inside-is-asked-once",
        rule: "what is inside is asked twice while a packet waits",
        file: NETEM,
        right: "if due.is_some() && !matches!(next, Dequeued::Packet(_)) {",
        wrong: "if false {",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "hfsc-classes-above-send",
        rule: "what is shown as sent is a leaf's own",
        file: "crates/qdisc/src/hfsc/inner.rs",
        right: "if self.inner(class).is_some() { told }",
        wrong: "if true { told }",
        killers: TREES,
    },
];
