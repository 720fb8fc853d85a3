//! For how long: a histogram of durations per kind of thing.

use super::origins::short;
use super::source::SOURCES;
use quietcore_core::Nanos;
use quietcore_explain::Interruption;
use quietcore_page::{Anchor, Svg, figure, point};

const LEFT: f64 = 96.0;
const TOP: f64 = 8.0;
const COLUMN: f64 = 42.0;
const LINE: f64 = 52.0;
/// The highest bar; its number is above it.
const BAR: f64 = 34.0;

/// The picture, if anything has a duration.
pub(super) fn picture(rows: &[&Interruption]) -> Option<String> {
    let of_source = |source: &'static str| {
        let mut counts: Vec<u64> = Vec::new();
        for row in rows.iter().filter(|row| row.source == source) {
            counts.resize(counts.len().max(row.durations.len()), 0);
            counts.iter_mut().zip(&row.durations).for_each(|(all, count)| *all += count);
        }
        (source, counts)
    };
    let lines: Vec<_> = SOURCES.into_iter().map(of_source).filter(|(_, counts)| !counts.is_empty()).collect();
    let first = |counts: &Vec<u64>| counts.iter().position(|&count| count > 0);
    let from = lines.iter().filter_map(|(_, counts)| first(counts)).min()?;
    let until = lines.iter().map(|(_, counts)| counts.len()).max()?;

    let (right, bottom) = (LEFT + COLUMN * (until - from) as f64, TOP + LINE * lines.len() as f64);
    let mut svg = Svg::new(right.max(360.0) + 40.0, bottom + 26.0, "For how long CPUs were taken away");
    for (number, (source, counts)) in lines.iter().enumerate() {
        let base = TOP + LINE * (number as f64 + 1.0);
        let most = counts.iter().copied().max().unwrap_or(1);
        svg.text("value", point(LEFT - 10.0, base - 6.0), Anchor::End, source);
        svg.line("axis", point(LEFT, base), point(right, base));
        for (power, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let x = LEFT + COLUMN * (power - from) as f64;
            let height = (BAR * (count as f64).ln_1p() / (most as f64).ln_1p()).max(1.0);
            svg.rect(source, point(x + 3.0, base - height), COLUMN - 6.0, height);
            svg.text("count", point(x + COLUMN / 2.0, base - height - 3.0), Anchor::Middle, &short(count));
        }
    }
    for power in (from..=until).step_by(2) {
        let x = LEFT + COLUMN * (power - from) as f64;
        let nanos = 1_u64.checked_shl(power as u32).unwrap_or(u64::MAX);
        svg.text("tick", point(x, bottom + 16.0), Anchor::Middle, &Nanos(nanos).to_string());
    }
    let below = "How many lasted so long, without what was on top of them; each column is twice as long as the one \
                 before, and the height is on a logarithmic scale.";
    Some(figure("long", "For how long", below, &svg.finish()))
}
