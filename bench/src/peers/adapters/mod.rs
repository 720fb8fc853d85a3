//! The peers: a file each, its `mod` line, and a line in [`ENTRIES`].

pub mod baseline;
pub mod binary_heap;
pub mod bitwheel;
pub mod btree_map;
pub mod delay_queue;
pub mod hash_wheel;
pub mod mio_extras;
pub mod nexus;
pub mod quietcore;

use super::entry::Entry;

/// All rows of the report, in its order.
pub const ENTRIES: &[Entry] = &[
    Entry::of::<quietcore::Intrusive>(),
    Entry::of::<quietcore::Precise>(),
    Entry::of::<quietcore::Keyed>(),
    Entry::of::<nexus::Nexus>(),
    Entry::of::<nexus::Forgetful>(),
    Entry::of::<hash_wheel::HashWheel>(),
    Entry::of::<bitwheel::Bitwheel>(),
    Entry::of::<mio_extras::MioExtras>(),
    Entry::of::<delay_queue::Queue>(),
    Entry::of::<binary_heap::LazyHeap>(),
    Entry::of::<btree_map::OrderedMap>(),
    Entry::of::<baseline::Touch>(),
    Entry::of::<baseline::TouchNeighbours>(),
    Entry::of::<baseline::TouchInTurn>(),
    Entry::of::<baseline::SystemClock>(),
    Entry::of::<baseline::TokioClock>(),
    Entry::of::<baseline::Empty>(),
];

/// Those whose numbers all others are divided by, in order of preference.
pub const REFERENCES: &[&str] = &["quietcore", "nexus-timer"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: names tell the rows apart, and every package is found. Method: the whole table.
    #[test]
    fn names_are_unique_and_versions_known() {
        for (at, entry) in ENTRIES.iter().enumerate() {
            assert!(ENTRIES[..at].iter().all(|other| other.name != entry.name), "{}", entry.name);
            assert_eq!(entry.version().is_some(), entry.package.is_some(), "{}", entry.name);
            assert!(!entry.note.is_empty(), "{}", entry.name);
        }
    }
}
