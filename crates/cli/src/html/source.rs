//! The kinds of what takes CPUs away, in the order in which pictures stack and list them.

use quietcore_page::{Anchor, Svg, point};

/// Their names are classes of the style sheet, too.
pub(super) const SOURCES: [&str; 8] =
    ["task", "work", "softirq", "timer", "hrtimer", "processor", "device", "nmi"];

/// Squares with the names of those that occur.
pub(super) fn legend(svg: &mut Svg, left: f64, y: f64, occurs: impl Fn(&str) -> bool) {
    let mut x = left;
    for source in SOURCES.into_iter().filter(|source| occurs(source)) {
        svg.rect(source, point(x, y - 11.0), 12.0, 12.0);
        svg.text("name", point(x + 18.0, y), Anchor::Start, source);
        x += 40.0 + 7.5 * source.len() as f64;
    }
}
