//! Who takes CPUs away from whom: the CPU where a chain of causes began, against the one that was disturbed.

use quietcore_explain::Interruption;
use quietcore_page::{Anchor, Svg, figure, point};
use quietcore_trace::counted;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many CPUs on either side, those with the most.
const CPUS_MAX: usize = 40;
const LEFT: f64 = 120.0;
const TOP: f64 = 52.0;
const CELL_WIDTH: f64 = 40.0;
const CELL: f64 = 22.0;
/// Shades of the style sheet.
const SHADES: f64 = 5.0;
/// Things that are named where the mouse is.
const NAMED_MAX: usize = 5;

/// How often one CPU is where what disturbs another one began, and by what.
#[derive(Default)]
struct Cell<'a> {
    count: u64,
    things: Vec<(u64, &'a Interruption)>,
}

/// The picture, if any cause is known.
pub(super) fn picture(rows: &[&Interruption]) -> Option<String> {
    let mut cells: BTreeMap<(u16, u16), Cell<'_>> = BTreeMap::new();
    let (mut from, mut to) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        for cause in &row.causes {
            let Some(origin) = cause.steps.last() else { continue };
            let cell = cells.entry((origin.cpu, row.cpu)).or_default();
            cell.count += cause.count;
            cell.things.push((cause.count, *row));
            *from.entry(origin.cpu).or_insert(0) += cause.count;
            *to.entry(row.cpu).or_insert(0) += cause.count;
        }
    }
    let most = cells.values().map(|cell| cell.count).max()?;
    let (from, to) = (busiest(&from), busiest(&to));
    let (width, height) = (LEFT + CELL_WIDTH * to.len() as f64 + 12.0, TOP + CELL * from.len() as f64 + 12.0);
    let mut svg = Svg::new(width.max(360.0), height, "Which CPU disturbs which");
    svg.text("unit", point(LEFT, 16.0), Anchor::Start, "disturbed CPU");
    svg.text("unit", point(LEFT - 10.0, TOP - 10.0), Anchor::End, "began on CPU");
    for (number, cpu) in to.iter().enumerate() {
        let x = LEFT + CELL_WIDTH * (number as f64 + 0.5);
        svg.text("value", point(x, TOP - 10.0), Anchor::Middle, &cpu.to_string());
    }
    for (line, origin) in from.iter().enumerate() {
        let y = TOP + CELL * line as f64;
        svg.text("value", point(LEFT - 10.0, y + 16.0), Anchor::End, &origin.to_string());
        for (column, cpu) in to.iter().enumerate() {
            let corner = point(LEFT + CELL_WIDTH * column as f64, y);
            let size = point(CELL_WIDTH - 2.0, CELL - 2.0);
            let Some(cell) = cells.get(&(*origin, *cpu)) else {
                svg.rect("heat-0", corner, CELL_WIDTH - 2.0, CELL - 2.0);
                continue;
            };
            let middle = point(LEFT + CELL_WIDTH * (column as f64 + 0.5) - 1.0, y + 15.0);
            svg.rect(&format!("heat-{}", shade(cell.count, most)), corner, CELL_WIDTH - 2.0, CELL - 2.0);
            svg.text("cell", middle, Anchor::Middle, &short(cell.count));
            svg.rect_with_hint("hint", corner, size, &hint(*origin, *cpu, cell));
        }
    }
    let all: u64 = rows.iter().map(|row| row.count).sum();
    let known: u64 = cells.values().map(|cell| cell.count).sum();
    let below = format!(
        "How often what disturbed a CPU began on another one (or on itself): where its timer was armed, its \
         interrupt sent, its task woken, as far back as the recording shows. {known} of {all} have a cause there."
    );
    Some(figure("long", "Who disturbs whom", &below, &svg.finish()))
}

/// Those with the most, in the order of their numbers.
fn busiest(counts: &BTreeMap<u16, u64>) -> Vec<u16> {
    let mut cpus: Vec<u16> = counts.keys().copied().collect();
    cpus.sort_by_key(|cpu| Reverse(counts[cpu]));
    cpus.truncate(CPUS_MAX);
    cpus.sort_unstable();
    cpus
}

/// From 1 to the number of shades, on a logarithmic scale.
fn shade(count: u64, most: u64) -> u32 {
    let share = (count as f64).ln_1p() / (most as f64).ln_1p().max(f64::MIN_POSITIVE);
    (share * SHADES).ceil().clamp(1.0, SHADES) as u32
}

/// At most four characters.
pub(super) fn short(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => format!("{}k", count / 1_000),
        1_000_000..1_000_000_000 => format!("{}M", count / 1_000_000),
        _ => format!("{}G", count / 1_000_000_000),
    }
}

fn hint(origin: u16, cpu: u16, cell: &Cell<'_>) -> String {
    let mut by_thing: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (count, row) in &cell.things {
        *by_thing.entry((row.source, row.name.as_str())).or_default() += count;
    }
    let mut things: Vec<_> = by_thing.into_iter().collect();
    things.sort_by_key(|(_, count)| Reverse(*count));
    let mut text = format!("{} from CPU {origin} to CPU {cpu}", counted(cell.count, "time", "times"));
    for ((source, name), count) in things.iter().take(NAMED_MAX) {
        text.push_str(&format!("\n{count} {source} {name}"));
    }
    if let Some(more) = things.len().checked_sub(NAMED_MAX).filter(|&more| more > 0) {
        text.push_str(&format!("\nand {more} more"));
    }
    text
}
