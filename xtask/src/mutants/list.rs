//! The mutants: one wrong line each, and who must notice.
//!
//! A mutant undoes one rule of the wheel or the exact queue. Its text must occur exactly once in its
//! file, so that a changed file makes the list fail instead of going stale.

/// Who must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Killer {
    /// The property tests of the crate `quietcore-wheel`.
    Properties,
    /// `quietcore verify` on the recording with timers on all levels.
    Verify,
}

/// One wrong line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mutant {
    pub(super) name: &'static str,
    /// The rule that it breaks.
    pub(super) rule: &'static str,
    pub(super) file: &'static str,
    pub(super) right: &'static str,
    pub(super) wrong: &'static str,
    pub(super) killers: &'static [Killer],
}

const SHAPE: &str = "crates/wheel/src/shape.rs";
const LIST: &str = "crates/wheel/src/list.rs";
const SLOTS: &str = "crates/wheel/src/slots.rs";
const WHEEL: &str = "crates/wheel/src/wheel/mod.rs";
const EXPIRE: &str = "crates/wheel/src/wheel/expire.rs";

const FOREST: &str = "crates/wheel/src/exact/forest.rs";
const EXACT: &str = "crates/wheel/src/exact/mod.rs";

const BOTH: &[Killer] = &[Killer::Properties, Killer::Verify];
const PROPERTIES: &[Killer] = &[Killer::Properties];

/// All of them.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "boundary-64",
        rule: "a level gives up its last bucket: it ends at 63, not 64",
        file: SHAPE,
        right: "_ => Self::POSITIONS << (Self::SHIFT * (level as u32 - 1)),",
        wrong: "_ => (Self::POSITIONS + 1) << (Self::SHIFT * (level as u32 - 1)),",
        killers: BOTH,
    },
    Mutant {
        name: "no-granule",
        rule: "a coarse timer gets one granule more",
        file: SHAPE,
        right: "Precision::Coarse => (expires >> shift).wrapping_add(1),",
        wrong: "Precision::Coarse => expires >> shift,",
        killers: BOTH,
    },
    Mutant {
        name: "no-level-adjust",
        rule: "the next level's granule is rounded up",
        file: EXPIRE,
        right: "(granule >> shift).wrapping_add(u64::from(granule & below_edge != 0));",
        wrong: "granule >> shift;",
        killers: BOTH,
    },
    Mutant {
        name: "late-tick-precision",
        rule: "tick precision takes the last edge that is not too late",
        file: SHAPE,
        right: "Precision::Tick => expires.wrapping_add(1) >> shift,",
        wrong: "Precision::Tick => (expires >> shift).wrapping_add(1),",
        killers: PROPERTIES,
    },
    Mutant {
        name: "early-tick-precision",
        rule: "tick precision is handed out after its tick, not at it",
        file: EXPIRE,
        right: "expires.plus(1).is_before(self.clock)",
        wrong: "expires.is_before(self.clock)",
        killers: PROPERTIES,
    },
    Mutant {
        name: "no-clip",
        rule: "a delay beyond the capacity is clipped to the longest",
        file: SHAPE,
        right: "Self::place_at(clock.plus(Self::LONGEST).0, LEVELS as u32 - 1, precision)",
        wrong: "Self::place_at(clock.plus(Self::CUTOFF).0, LEVELS as u32 - 1, precision)",
        killers: PROPERTIES,
    },
    Mutant {
        name: "past-is-next",
        rule: "a timer for the past is due at the clock, not a tick later",
        file: SHAPE,
        right: "return Placement { bucket: (clock.0 & Self::POSITIONS) as u32, expiry: clock };",
        wrong: "return Self::place_at(clock.0, 0, precision);",
        killers: PROPERTIES,
    },
    Mutant {
        name: "same-bucket-while-collected",
        rule: "a collected timer has left its bucket, whatever number it remembers",
        file: WHEEL,
        right: "if place.bucket == links.bucket() && self.expired.first.is_none() {",
        wrong: "if place.bucket == links.bucket() {",
        killers: PROPERTIES,
    },
    Mutant {
        name: "always-requeue",
        rule: "a move within a bucket leaves the timer where it is",
        file: WHEEL,
        right: "if place.bucket == links.bucket() && self.expired.first.is_none() {",
        wrong: "if false && self.expired.first.is_none() {",
        killers: PROPERTIES,
    },
    Mutant {
        name: "reduce-delays",
        rule: "reduce only makes earlier",
        file: WHEEL,
        right: "if links.is_pending() && !expires.is_before(links.expires()) {",
        wrong: "if links.is_pending() && expires.is_before(links.expires()) {",
        killers: PROPERTIES,
    },
    Mutant {
        name: "stale-unnoticed",
        rule: "a cancel that empties a bucket makes the next expiry uncertain",
        file: WHEEL,
        right: "            self.is_stale = true;\n",
        wrong: "",
        killers: PROPERTIES,
    },
    Mutant {
        name: "bit-left-behind",
        rule: "a bit is set exactly while its bucket is in use",
        file: WHEEL,
        right: "            self.occupied[number / BUCKETS] ^= 1 << (number % BUCKETS);\n",
        wrong: "",
        killers: PROPERTIES,
    },
    Mutant {
        name: "forward-past-a-bucket",
        rule: "the clock never passes a bucket in use",
        file: EXPIRE,
        right: "            self.clock = self.next_expiry;\n",
        wrong: "            self.clock = now;\n",
        killers: PROPERTIES,
    },
    Mutant {
        name: "stop-a-granule-early",
        rule: "a coarser bucket can be due before the finer level's first one",
        file: EXPIRE,
        right: "if distance <= granule.wrapping_neg() & below_edge {",
        wrong: "if distance <= (granule.wrapping_neg() & below_edge) + 1 {",
        killers: PROPERTIES,
    },
    Mutant {
        name: "one-level-too-few",
        rule: "a tick on an edge of several levels collects from all of them",
        file: EXPIRE,
        right: "(self.clock.0.trailing_zeros() / shift).min(LEVELS as u32 - 1);",
        wrong: "(self.clock.0.trailing_zeros() / shift).min(LEVELS as u32 - 1).saturating_sub(1);",
        killers: PROPERTIES,
    },
    Mutant {
        name: "finest-first",
        rule: "the coarsest level runs first",
        file: EXPIRE,
        right: "for level in (0..=coarsest).rev() {",
        wrong: "for level in 0..=coarsest {",
        killers: BOTH,
    },
    Mutant {
        name: "clock-stays",
        rule: "after a tick was collected the clock is one past it",
        file: EXPIRE,
        right: "        self.clock = self.clock.plus(1);\n",
        wrong: "",
        killers: PROPERTIES,
    },
    Mutant {
        name: "end-forgotten",
        rule: "joined lists end where the second one ends",
        file: LIST,
        right: "                ours.previous.set(last);\n",
        wrong: "                let _ = last;\n",
        killers: PROPERTIES,
    },
    Mutant {
        name: "wrong-list-end",
        rule: "the last timer of a list is taken out of the list that ends with it",
        file: LIST,
        right: "None if likely.ends_with(nodes, node) => likely.first,",
        wrong: "None if likely.first.is_some() => likely.first,",
        killers: PROPERTIES,
    },
    Mutant {
        name: "generation-stays",
        rule: "a slot's generation goes up when its timer ends",
        file: SLOTS,
        right: "        slot.generation = slot.generation.wrapping_add(1);\n        if slot.generation != u32::MAX {",
        wrong: "        if slot.generation != u32::MAX {",
        killers: PROPERTIES,
    },
    Mutant {
        name: "cancelled-holds-back",
        rule: "a bucket whose timers were all cancelled does not hold the clock back",
        file: EXPIRE,
        right: "        } else if self.is_stale {\n",
        wrong: "        } else if false {\n",
        killers: PROPERTIES,
    },
    Mutant {
        name: "key-of-an-earlier-owner",
        rule: "a key of a storage's earlier owner stays stale when its slot is taken",
        file: SLOTS,
        right: "            slot.generation = slot.generation.wrapping_add(1);\n        }",
        wrong: "        }",
        killers: PROPERTIES,
    },
    Mutant {
        name: "exact-no-lending",
        rule: "a full sibling lends its first child to the gap beside it",
        file: FOREST,
        right: "                        Self::lend_first_child(nodes, sibling);\n",
        wrong: "",
        killers: PROPERTIES,
    },
    Mutant {
        name: "exact-thin-root",
        rule: "a root that loses its first child falls in rank",
        file: FOREST,
        right: "                        links.set_rank(links.rank() - 1);\n                        self.add(nodes, parent);",
        wrong: "                        self.add(nodes, parent);",
        killers: PROPERTIES,
    },
    Mutant {
        name: "exact-thin-sibling",
        rule: "a thin sibling falls in rank and passes the gap on",
        file: FOREST,
        right: "                    links.set_rank(links.rank() - 1);\n                    let Some(previous)",
        wrong: "                    let Some(previous)",
        killers: PROPERTIES,
    },
    Mutant {
        name: "exact-last-of-equals",
        rule: "of equal expiries the first armed is the first",
        file: EXACT,
        right: "is_none_or(|first| hard < first) {",
        wrong: "is_none_or(|first| hard <= first) {",
        killers: PROPERTIES,
    },
    Mutant {
        name: "exact-hard-only",
        rule: "a timer may run from its soft expiry on",
        file: EXACT,
        right: "if now < self.nodes.exact_links(node).expiry().soft {",
        wrong: "if now < self.nodes.exact_links(node).expiry().hard {",
        killers: PROPERTIES,
    },
    Mutant {
        name: "exact-first-forgotten",
        rule: "when the first timer leaves, the next one is looked for",
        file: EXACT,
        right: "self.first = self.forest.search(&self.nodes);",
        wrong: "self.first = None;",
        killers: PROPERTIES,
    },
];
