//! Words that several rules need: evidence, kernel masks, "up to N of them"; texts that are safe to show.
//!
//! Invariant: `quietcore_trace::shell_word` is what every proposed command passes names of the host through;
//! a cgroup called `$(reboot)` must be harmless when the command is pasted.

use crate::host::{Fact, Facts, printable};
use crate::{Finding, Severity};
use quietcore_core::{CpuId, CpuSet};

/// Longest text of a finding or a row, in characters: a host's own words may be of any length.
const TEXT_CHARS_MAX: usize = 4096;

/// Adds a fact as evidence, if it is known.
pub(super) trait Cite {
    /// Adds the file and its content.
    fn cite<T>(self, fact: Option<&Fact<T>>) -> Self;
}

impl Cite for Finding {
    fn cite<T>(self, fact: Option<&Fact<T>>) -> Self {
        match fact {
            Some(fact) => self.file(fact.path.clone(), fact.text.clone()),
            None => self,
        }
    }
}

/// A warning if some CPU is meant to be quiet, else a note.
pub(super) fn severity(facts: &Facts) -> Severity {
    if facts.isolated().is_empty() { Severity::Note } else { Severity::Warning }
}

/// "CPU 3", or "CPUs 1-7,9".
pub(super) fn cpus(set: &CpuSet) -> String {
    format!("CPU{} {set}", agreed(set, "", "s"))
}

/// The form of a verb for one CPU or for several.
pub(super) fn agreed<'a>(set: &CpuSet, one: &'a str, several: &'a str) -> &'a str {
    if set.len() == 1 { one } else { several }
}

/// A set as the hexadecimal mask that `/proc` and `/sys` take: 32 CPUs per word, highest first.
pub(super) fn mask(set: &CpuSet) -> String {
    let highest = set.iter().last().map_or(0, CpuId::index);
    let mut words = vec![0u32; highest / 32 + 1];
    for cpu in set.iter() {
        words[cpu.index() / 32] |= 1 << (cpu.index() % 32);
    }
    let mut text = String::new();
    for (at, word) in words.iter().rev().enumerate() {
        text += &if at == 0 { format!("{word:x}") } else { format!(",{word:08x}") };
    }
    text
}

/// The first `shown` of `items`, and how many more there are.
pub(super) fn first_of(items: &[String], shown: usize) -> String {
    let head = items.iter().take(shown).cloned().collect::<Vec<_>>().join(", ");
    match items.len().checked_sub(shown) {
        Some(more) if more > 0 => format!("{head} and {more} more"),
        _ => head,
    }
}

/// A text of the host that is short, and printable on a terminal.
pub(super) fn clean(text: &str) -> String {
    let mut clean: String = text.chars().take(TEXT_CHARS_MAX).map(printable).collect();
    if text.chars().nth(TEXT_CHARS_MAX).is_some() {
        clean.push_str(" ...");
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::{TEXT_CHARS_MAX, clean, first_of, mask};
    use quietcore_core::CpuSet;

    /// Goal: the mask is what the kernel reads back. Method: `from_mask` as the oracle.
    #[test]
    fn a_mask_is_read_back_as_the_same_set() {
        for list in ["", "0", "0-3", "31-32", "5,40,64-70"] {
            let set: CpuSet = list.parse().unwrap();
            assert_eq!(CpuSet::from_mask(&mask(&set)), Ok(set.clone()), "list {list:?} as {}", mask(&set));
        }
        assert_eq!(mask(&"0,32".parse().unwrap()), "1,00000001");
    }

    /// Goal: long lists are cut with a count.
    #[test]
    fn a_long_list_says_how_many_more() {
        let items: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
        assert_eq!(first_of(&items, 2), "a, b and 1 more");
        assert_eq!(first_of(&items, 3), "a, b, c");
    }

    /// Goal: texts are bounded and printable, whatever the host says.
    #[test]
    fn texts_are_cleaned() {
        assert_eq!(clean("a\u{7}b"), "a\u{fffd}b");
        assert_eq!(clean(&"x".repeat(TEXT_CHARS_MAX + 1)).chars().count(), TEXT_CHARS_MAX + 4);
    }
}
