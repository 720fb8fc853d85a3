//! Counts in sentences.

/// `1 line was` or `2 lines were`: a count with the words that go with it.
///
/// ```
/// use quietcore_trace::counted;
///
/// assert_eq!(counted(1, "line was", "lines were"), "1 line was");
/// assert_eq!(counted(0, "line was", "lines were"), "0 lines were");
/// ```
#[must_use]
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
