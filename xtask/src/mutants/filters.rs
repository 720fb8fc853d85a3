//! Mutants of filters: what they look at, in which order they are asked, and what their names are.

use super::killer::{Killer, Mutant, Suite};

const TABLES: &str = "crates/qdisc/src/filter/u32_tables.rs";
const KEYS: &str = "crates/qdisc/src/filter/u32_key.rs";
const FLOWER: &str = "crates/qdisc/src/filter/flower.rs";
const EMATCH: &str = "crates/qdisc/src/filter/ematch.rs";
const CHANGE: &str = "crates/net/src/control/filter/change.rs";

/// Any test of what filters match.
const MATCHING: &[Killer] = &[Killer::All(Suite::Disciplines)];
/// Any test of lines on devices.
const LINES: &[Killer] = &[Killer::All(Suite::Control)];

pub(super) const FILTERS: &[Mutant] = &[
    Mutant {
        name: "u32-cut-packet-goes-on",
        rule: "a packet that ends before a word that a rule looks at is for no rule of its priority",
        file: TABLES,
        right: "            if !key.is_met(search.network, from, search.next)? {",
        wrong: "            if !key.is_met(search.network, from, search.next).unwrap_or(false) {",
        killers: MATCHING,
    },
    Mutant {
        name: "u32-hash-not-moved",
        rule: "the bits that choose a bucket are moved down to the lowest one",
        file: KEYS,
        right: ".checked_shr(self.mask.trailing_zeros())",
        wrong: ".checked_shr(0 * self.mask.trailing_zeros())",
        killers: MATCHING,
    },
    Mutant {
        name: "u32-offset-rounded-down",
        rule: "the next header begins at a whole word, rounded up",
        file: KEYS,
        right: "Some((u32::from(self.plus) + told).next_multiple_of(4))",
        wrong: "Some((u32::from(self.plus) + told) & !3)",
        killers: MATCHING,
    },
    Mutant {
        name: "u32-eaten-twice",
        rule: "a header that was eaten is not counted again where `nexthdr` is looked at",
        file: TABLES,
        right: "Some(from.saturating_add(core::mem::take(&mut self.next)))",
        wrong: "Some(from.saturating_add(self.next))",
        killers: MATCHING,
    },
    Mutant {
        name: "u32-one-link-more",
        rule: "a packet is linked eight times at most",
        file: TABLES,
        right: "if depth == DEPTH_MAX {",
        wrong: "if depth > DEPTH_MAX {",
        killers: MATCHING,
    },
    Mutant {
        name: "u32-linked-table-goes",
        rule: "a table that a rule links to is not removed",
        file: TABLES,
        right: ".any(|rule| rule.link == Some(table.id))",
        wrong: ".any(|rule| rule.link == Some(0))",
        killers: MATCHING,
    },
    Mutant {
        name: "flower-ports-of-fragments",
        rule: "fragments have no ports",
        file: FLOWER,
        right: "ports: header.ports.filter(|_| !header.fragment).unwrap_or_default(),",
        wrong: "ports: header.ports.unwrap_or_default(),",
        killers: MATCHING,
    },
    Mutant {
        name: "flower-range-ends-early",
        rule: "the last port of a range is in it",
        file: FLOWER,
        right: "(low..=high).contains(&port)",
        wrong: "(low..high).contains(&port)",
        killers: MATCHING,
    },
    Mutant {
        name: "flower-reserved-flags",
        rule: "of the fourth word of TCP only flags are looked at, not the header's length",
        file: FLOWER,
        right: "const TCP_FLAGS: u16 = 0x0fff;",
        wrong: "const TCP_FLAGS: u16 = 0xffff;",
        killers: MATCHING,
    },
    Mutant {
        name: "ematch-and-binds-closer",
        rule: "what is true ends a list at `or`, whatever stands behind",
        file: EMATCH,
        right: "Some(EmatchJoin::Or) => is_met,",
        wrong: "Some(EmatchJoin::Or) => false,",
        killers: MATCHING,
    },
    Mutant {
        name: "ematch-not-forgotten",
        rule: "`not` is true of what its match is false of",
        file: EMATCH,
        right: "is_met != self.is_negated",
        wrong: "is_met",
        killers: MATCHING,
    },
    Mutant {
        name: "filter-auto-priority-first",
        rule: "a filter without a priority is behind all that have a low one",
        file: CHANGE,
        right: "const AUTO_FROM: u16 = 0x8000;",
        wrong: "const AUTO_FROM: u16 = 0;",
        killers: LINES,
    },
    Mutant {
        name: "filter-failed-priority-stays",
        rule: "a priority whose first filter is refused is not there",
        file: CHANGE,
        right: "if done.is_err() && place.is_err() {",
        wrong: "if done.is_err() && place.is_ok() {",
        killers: LINES,
    },
    Mutant {
        name: "filter-add-changes",
        rule: "`add` changes no filter that is there",
        file: CHANGE,
        right: "Some(handle) if self.verb == TcVerb::Add => Err(TcFilterError::FilterExists(handle)),",
        wrong: "Some(handle) if self.verb == TcVerb::Delete => Err(TcFilterError::FilterExists(handle)),",
        killers: LINES,
    },
    Mutant {
        name: "flower-asked-by-age",
        rule: "filters that look at the same bits are asked together",
        file: "crates/net/src/control/filter/flower.rs",
        right: "let place = like.map_or(self.filters.len(), |last| last + 1);",
        wrong: "let place = like.map_or(self.filters.len(), |_| self.filters.len());",
        killers: LINES,
    },
    Mutant {
        name: "basic-oldest-first",
        rule: "the newest `basic` is asked first",
        file: "crates/net/src/control/filter/basic.rs",
        right: "self.filters.insert(0, Basic { handle, options: options.clone(), actions: actions.clone() });",
        wrong: "self.filters.push(Basic { handle, options: options.clone(), actions: actions.clone() });",
        killers: LINES,
    },
    Mutant {
        name: "fw-mask-forgotten",
        rule: "only the bits of the mask count in a mark",
        file: "crates/net/src/control/filter/marks.rs",
        right: "marked.mark == mark & self.mask",
        wrong: "marked.mark == mark",
        killers: LINES,
    },
];
