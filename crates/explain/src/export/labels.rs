//! Label values of metrics: short, printable, and few.
//!
//! Names come from the trace, so they hold any characters and there are any number of them. A
//! monitoring system keeps one time series per value: at most [`TOP_MAX`] names of a figure get
//! one, and the rest are summed under [`OTHER`].

use crate::figures::CountByName;
use quietcore_trace::is_steering;

/// So many names get a series of their own.
pub(super) const TOP_MAX: usize = 20;
/// The label value that all further names share; a name that reads so is counted here too.
pub(super) const OTHER: &str = "other";
/// Where a label's value ends.
pub(super) const NAME_CHARS_MAX: usize = 128;

/// A text without what steers a terminal, but with line feeds, which the formats can escape.
pub(super) fn printable(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| if is_steering(c) && c != '\n' { char::REPLACEMENT_CHARACTER } else { c })
}

/// The most frequent names, largest count first (equal counts by name), then [`OTHER`] if
/// anything is left. Names that would print alike are one: a series must not appear twice.
pub(super) fn top(counts: &CountByName) -> Vec<(String, u64)> {
    let mut printed = CountByName::new();
    for (name, &count) in counts {
        let sum = printed.entry(printable(name).take(NAME_CHARS_MAX).collect()).or_default();
        *sum = sum.saturating_add(count);
    }
    let mut rest = printed.remove(OTHER);
    let mut top: Vec<_> = printed.into_iter().collect();
    top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (_, count) in top.drain(TOP_MAX.min(top.len())..) {
        rest = Some(rest.unwrap_or(0).saturating_add(count));
    }
    top.extend(rest.map(|count| (OTHER.to_owned(), count)));
    top
}

#[cfg(test)]
mod tests {
    use super::{TOP_MAX, top};
    use crate::figures::CountByName;

    /// Goal: the sum stays, the number of values does not. Method: 30 names with counts 1 to 30.
    #[test]
    fn all_but_the_most_frequent_names_are_summed() {
        let counts: CountByName = (1..=30).map(|count| (format!("f{count:02}"), count)).collect();
        let top = top(&counts);
        assert_eq!(top.len(), TOP_MAX + 1);
        assert_eq!((top[0].clone(), top[19].clone()), (("f30".to_owned(), 30), ("f11".to_owned(), 11)));
        assert_eq!(top[20], ("other".to_owned(), (1..=10).sum()));
        assert_eq!(super::top(&CountByName::new()), []);
    }

    /// Goal: no value twice. Method: names that print alike, and one that is called "other".
    #[test]
    fn names_that_print_alike_are_one() {
        let long = "x".repeat(500);
        let names = [("a\u{1}", 1), ("a\u{2}", 2), ("other", 100), (&long, 4), (&(long.clone() + "y"), 8)];
        let counts: CountByName = names.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        let expected = [("x".repeat(128), 12), ("a\u{fffd}".to_owned(), 3), ("other".to_owned(), 100)];
        assert_eq!(top(&counts), expected);
    }
}
