//! Names as numbers: function names and task names repeat millions of times.
//!
//! At most [`NAMES_MAX`] different names of at most [`NAME_BYTES_MAX`] bytes are kept; later ones
//! share the name `(other)` and are counted, so a hostile trace cannot make the list long.

use std::collections::HashMap;

const NAMES_MAX: usize = 32_768;
const NAME_BYTES_MAX: usize = 96;

/// The number of a name in one [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(u32);

/// See the module.
#[derive(Debug)]
pub(crate) struct Names {
    numbers: HashMap<Box<[u8]>, Name>,
    texts: Vec<Box<[u8]>>,
    last: Name,
    overflowed: u64,
}

impl Names {
    /// The name of everything that found no room.
    pub(crate) const OTHER: Name = Name(0);

    pub(crate) fn new() -> Self {
        let other: Box<[u8]> = b"(other)".as_slice().into();
        Self {
            numbers: HashMap::from([(other.clone(), Name(0))]),
            texts: vec![other],
            last: Name(0),
            overflowed: 0,
        }
    }

    /// The number of `name`, a new one when it is new.
    pub(crate) fn number(&mut self, name: &[u8]) -> Name {
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
                let number = Name(self.texts.len() as u32);
                self.texts.push(name.into());
                self.numbers.insert(name.into(), number);
                number
            }
        };
        self.last
    }

    /// How often a name was replaced by `(other)`.
    pub(crate) fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// The name as text; bytes that are no UTF-8 are replaced.
    pub(crate) fn text(&self, name: Name) -> String {
        String::from_utf8_lossy(&self.texts[name.0 as usize]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES_MAX, Names};

    /// Goal: the list is bounded and early names stay. Method: more names than fit.
    #[test]
    fn the_list_of_names_is_bounded() {
        let mut names = Names::new();
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
