//! Mutants of actions: what filters do with packets, and where what comes in is asked.

use super::killer::{Killer, Mutant, Suite};

const POLICE: &str = "crates/qdisc/src/action/police.rs";
const CLSACT: &str = "crates/net/src/control/clsact.rs";
const QUEUE: &str = "crates/net/src/queue.rs";

/// The model of the two buckets.
const MODEL: &[Killer] = &[Killer::All(Suite::Disciplines)];
/// Any test of lines on devices.
const LINES: &[Killer] = &[Killer::All(Suite::Control)];

pub(super) const ACTIONS: &[Mutant] = &[
    Mutant {
        name: "police-takes-from-exceeding",
        rule: "a packet that exceeds takes nothing from the buckets",
        file: POLICE,
        right: "                if is_enough {",
        wrong: "                if is_enough || held >= 0 {",
        killers: MODEL,
    },
    Mutant {
        name: "police-overflows",
        rule: "a bucket holds a burst at most",
        file: POLICE,
        right: "let held = passed.saturating_add(self.held).min(burst);",
        wrong: "let held = passed.saturating_add(self.held);",
        killers: MODEL,
    },
    Mutant {
        name: "police-peak-fills-in-pauses",
        rule: "of a pause no more than the burst fills the peak rate's bucket",
        file: POLICE,
        right: "let passed = signed(now.since(self.filled)).min(burst);",
        wrong: "let passed = signed(now.since(self.filled));",
        killers: MODEL,
    },
    Mutant {
        name: "police-empty-exceeds",
        rule: "what takes all that a bucket holds conforms",
        file: POLICE,
        right: "held >= 0 && peak_held >= 0",
        wrong: "held > 0 && peak_held >= 0",
        killers: MODEL,
    },
    Mutant {
        name: "police-longest-exceeds",
        rule: "a packet as long as `mtu` conforms",
        file: POLICE,
        right: "let conforms = longest <= mtu",
        wrong: "let conforms = longest < mtu",
        killers: MODEL,
    },
    Mutant {
        name: "reclassified-once-more",
        rule: "a packet is reclassified 16 times, and dropped then",
        file: "crates/net/src/control/filter/mod.rs",
        right: "        'anew: for _ in 0..=RECLASSIFY_MAX {",
        wrong: "        'anew: for _ in 0..RECLASSIFY_MAX {",
        killers: LINES,
    },
    Mutant {
        name: "filter-drop-uncounted",
        rule: "what a filter drops is counted by its discipline",
        file: "crates/net/src/control/node.rs",
        right: "        statistics.dropped += self.filtered;",
        wrong: "        statistics.dropped += 0 * self.filtered;",
        killers: LINES,
    },
    Mutant {
        name: "ingress-drop-uncounted",
        rule: "what comes in and is dropped is counted",
        file: CLSACT,
        right: "if said == Classified::Drop { u64::from(size.packets) } else { 0 };",
        wrong: "if said == Classified::Stolen { u64::from(size.packets) } else { 0 };",
        killers: LINES,
    },
    Mutant {
        name: "ingress-asked-again",
        rule: "packets that came back from the driver are not asked again",
        file: QUEUE,
        right: "match if at < came_back {",
        wrong: "match if at > came_back + 64 {",
        killers: LINES,
    },
    Mutant {
        name: "mirred-round-and-round",
        rule: "a packet comes through no device twice at once",
        file: CLSACT,
        right: "if nest.contains(&Some(address)) {",
        wrong: "if nest.contains(&None) && address == 0 {",
        killers: LINES,
    },
    Mutant {
        name: "action-shared-by-chance",
        rule: "an action that names no number is one of its own",
        file: "crates/net/src/control/action/table.rs",
        right: "let there = named.and_then(|index| self.actions.get(&(kind, index)))",
        wrong: "let there = named.or(Some(4)).and_then(|index| self.actions.get(&(kind, index)))",
        killers: LINES,
    },
];
