//! Names of functions, which Perfetto writes once and numbers.
//!
//! Each sequence of packets has numbers of its own, and may begin anew. Invariant: so many names of so many
//! sequences are kept at most; a function whose name is not known is printed as its number.

use super::wire::{BrokenMessage, WireFields};
use crate::binary::expression::push_hexadecimal;
use std::collections::HashMap;

/// Sequences with names of functions: one per source of the kernel's events.
const SEQUENCES_MAX: usize = 16;
/// Names of each.
const NAMES_MAX: usize = 8_192;
const NAME_BYTES_MAX: usize = 128;
/// `InternedData.kernel_symbols`.
const KERNEL_SYMBOLS: u32 = 26;

type NumberedNames = HashMap<u64, Box<[u8]>>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct PerfettoSymbols {
    sequences: Vec<(u64, NumberedNames)>,
    /// Whether a function was printed without its name.
    pub(super) is_one_unnamed: bool,
}

/// Those of one sequence.
#[derive(Debug)]
pub(super) struct SequenceSymbols<'a> {
    names: Option<&'a NumberedNames>,
    is_one_unnamed: &'a mut bool,
}

impl PerfettoSymbols {
    /// The sequence begins anew.
    pub(super) fn forget(&mut self, sequence: u64) {
        self.sequences.retain(|(known, _)| *known != sequence);
    }

    /// Takes the names that a packet brings.
    pub(super) fn learn(&mut self, sequence: u64, interned: &[u8]) -> Result<(), BrokenMessage> {
        for field in WireFields::of(interned) {
            let (KERNEL_SYMBOLS, value) = field? else { continue };
            let (mut number, mut name) = (None, None);
            for field in WireFields::of(value.bytes().unwrap_or_default()) {
                match field? {
                    (1, value) => number = value.number(),
                    (2, value) => name = value.bytes(),
                    _ => {}
                }
            }
            if let (Some(number), Some(name)) = (number, name) {
                self.add(sequence, number, &name[..name.len().min(NAME_BYTES_MAX)]);
            }
        }
        Ok(())
    }

    fn add(&mut self, sequence: u64, number: u64, name: &[u8]) {
        let known = self.sequences.iter().position(|(known, _)| *known == sequence);
        let index = known.unwrap_or(self.sequences.len());
        if index == SEQUENCES_MAX {
            return;
        }
        if known.is_none() {
            self.sequences.push((sequence, HashMap::new()));
        }
        let names = &mut self.sequences[index].1;
        if names.len() < NAMES_MAX {
            names.insert(number, name.into());
        }
    }

    pub(super) fn of(&mut self, sequence: u64) -> SequenceSymbols<'_> {
        let names = self.sequences.iter().find(|(known, _)| *known == sequence).map(|(_, names)| names);
        SequenceSymbols { names, is_one_unnamed: &mut self.is_one_unnamed }
    }
}

impl SequenceSymbols<'_> {
    /// Writes the name of function `number`.
    pub(super) fn write(&mut self, number: u64, out: &mut Vec<u8>) {
        match self.names.and_then(|names| names.get(&number)) {
            Some(name) => out.extend_from_slice(name),
            None => {
                *self.is_one_unnamed = true;
                out.extend_from_slice(b"0x");
                push_hexadecimal(number, 1, out);
            }
        }
    }
}
