//! NameTable as numbers: function names and task names repeat millions of times.
//!
//! At most [`NAMES_MAX`] different names of at most [`NAME_BYTES_MAX`] bytes are kept; later ones
//! share the name `(other)` and are counted, so a hostile trace cannot make the list long.

use std::collections::HashMap;

const NAMES_MAX: usize = 32_768;
const NAME_BYTES_MAX: usize = 96;

/// The number of a name in one [`NameTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(u32);

impl NameId {
    /// The number itself: another one for each name.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Names and their numbers, bounded as the module says.
#[derive(Debug)]
pub struct NameTable {
    numbers: HashMap<Box<[u8]>, NameId>,
    texts: Vec<Box<[u8]>>,
    last: NameId,
    overflowed: u64,
}

impl Default for NameTable {
    fn default() -> Self {
        Self::new()
    }
}

impl NameTable {
    /// The name of everything that found no room.
    pub const OTHER: NameId = NameId(0);

    /// A table with one name, [`NameTable::OTHER`].
    #[must_use]
    pub fn new() -> Self {
        let other: Box<[u8]> = b"(other)".as_slice().into();
        Self {
            numbers: HashMap::from([(other.clone(), NameId(0))]),
            texts: vec![other],
            last: NameId(0),
            overflowed: 0,
        }
    }

    /// The number of `name`, a new one when it is new.
    pub fn number(&mut self, name: &[u8]) -> NameId {
        let name = &name[..name.len().min(NAME_BYTES_MAX)];
        if *self.texts[self.last.0 as usize] == *name {
            return self.last; // the same timer function mostly comes in runs
        }
        self.last = match self.numbers.get(name) {
            Some(&number) => number,
            None if self.texts.len() >= NAMES_MAX => {
                self.overflowed += 1;
                Self::OTHER
            }
            None => {
                let number = NameId(self.texts.len() as u32);
                self.texts.push(name.into());
                self.numbers.insert(name.into(), number);
                number
            }
        };
        self.last
    }

    /// How often a name was replaced by `(other)`.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// The name as text; bytes that are no UTF-8 are replaced.
    #[must_use]
    pub fn text(&self, name: NameId) -> String {
        String::from_utf8_lossy(&self.texts[name.0 as usize]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES_MAX, NameTable};

    /// Goal: the list is bounded and early names stay. Method: more names than fit.
    #[test]
    fn the_list_of_names_is_bounded() {
        let mut names = NameTable::new();
        let first = names.number(b"process_timeout");
        for number in 0..2 * NAMES_MAX {
            names.number(format!("f{number}").as_bytes());
        }
        assert_eq!(names.texts.len(), NAMES_MAX);
        assert_eq!(names.number(b"process_timeout"), first);
        let late = names.number(b"too late");
        assert_eq!(names.text(late), "(other)");
        assert_eq!(names.overflowed(), NAMES_MAX as u64 + 3, "each of them, and the late one");
    }
}
