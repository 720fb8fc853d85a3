//! Plots of a row: bars for a figure, or two lines for many figures of one unit.
//!
//! Bars begin at 0, and nothing that is measured or simulated is below. A whisker is the smallest and the
//! largest round; of what is simulated, all costs halved and doubled. The noise floor is a dashed line with
//! its value in the margin, where nothing else is.
//! Names stand below the bars for readers who cannot tell colours apart.

use crate::plan::VariantRole;
use crate::report::{FigureReport, RowReport, ScenarioComparison, ScenarioValue, number};
use quietcore_page::{Anchor, AxisScale, Svg, point};

const LEFT: f64 = 58.0;
const RIGHT: f64 = 84.0;
const TOP: f64 = 34.0;
const HEIGHT: f64 = 190.0;
const BOTTOM: f64 = 34.0;
/// Of a bar with the room around it; a name of fourteen letters fits below.
const SLOT: f64 = 100.0;
const BAR: f64 = 44.0;
/// Of a group in the plot with lines.
const GROUP: f64 = 74.0;

struct Bar<'a> {
    name: &'a str,
    class: &'static str,
    value: f64,
    low: f64,
    high: f64,
}

/// One figure of all variants, measured.
pub(crate) fn measured(row: &RowReport, at: usize) -> Option<String> {
    let of = |role: VariantRole| row.variants.iter().filter(move |variant| variant.role == role);
    let floor = of(VariantRole::NoiseFloor).find_map(|variant| variant.figures.get(at)?.median);
    let mut bars = Vec::new();
    for variant in of(VariantRole::Before).chain(of(VariantRole::After)) {
        let figure = variant.figures.get(at)?;
        let (Some(value), Some(low), Some(high)) = (figure.median, figure.smallest, figure.largest) else {
            continue;
        };
        let class = if variant.role == VariantRole::After { "after" } else { "before" };
        bars.push(Bar { name: variant.name, class, value, low, high });
    }
    let figure = row.variants.first()?.figures.get(at)?;
    let title = format!("{}: {}, {}", row.experiment, figure.name, figure.unit);
    (!bars.is_empty()).then(|| bars_of(&title, figure.unit, &bars, floor))
}

pub(crate) fn simulated(row: &RowReport, of: &ScenarioComparison) -> Option<String> {
    let bar = |value: &'static str, from: &ScenarioValue| {
        let now = from.value?;
        let (half, double) = (from.halved.unwrap_or(now), from.doubled.unwrap_or(now));
        let (low, high) = (half.min(double).min(now), half.max(double).max(now));
        Some(Bar { name: from.variant, class: value, value: now, low, high })
    };
    let bars = [bar("before simulated", &of.before)?, bar("after simulated", &of.after)?];
    let title = format!("{}, simulated: {}, {}", row.experiment, of.what, of.unit);
    Some(bars_of(&title, of.unit, &bars, None))
}

fn bars_of(title: &str, unit: &str, bars: &[Bar<'_>], floor: Option<f64>) -> String {
    let width = LEFT + SLOT * bars.len() as f64 + if floor.is_some() { RIGHT } else { 12.0 };
    let right = LEFT + SLOT * bars.len() as f64;
    let mut svg = Svg::new(width, TOP + HEIGHT + BOTTOM, title);
    let values = bars.iter().map(|bar| bar.high).chain(floor);
    let scale = AxisScale::holding(values, TOP + HEIGHT, TOP + 14.0);
    axis(&mut svg, &scale, right, unit);
    for (at, bar) in bars.iter().enumerate() {
        let middle = LEFT + SLOT * (at as f64 + 0.5);
        let (base, top) = (scale.at(0.0), scale.at(bar.value));
        svg.rect(bar.class, point(middle - BAR / 2.0, top), BAR, base - top);
        whisker(&mut svg, middle, scale.at(bar.low), scale.at(bar.high));
        let (above, over) = (scale.at(bar.high), scale.at(bar.value));
        // Above the whisker; beside it where that would be far from the bar.
        let (place, anchor) = if over - above < 24.0 {
            (point(middle, above - 6.0), Anchor::Middle)
        } else {
            (point(middle + 6.0, over - 6.0), Anchor::Start)
        };
        svg.text("value", place, anchor, &number(bar.value));
        // A long one, of several axes, in two lines.
        let parts = if bar.name.len() > 14 { bar.name.rsplit_once('/') } else { None };
        let (upper, lower) = parts.unwrap_or((bar.name, ""));
        svg.text("name", point(middle, TOP + HEIGHT + 16.0), Anchor::Middle, upper);
        if !lower.is_empty() {
            svg.text("name", point(middle, TOP + HEIGHT + 28.0), Anchor::Middle, lower);
        }
    }
    if let Some(floor) = floor {
        let y = scale.at(floor);
        svg.line("floor", point(LEFT, y), point(right, y));
        svg.text("floor-label", point(right + 4.0, y - 3.0), Anchor::Start, "noise floor");
        svg.text("floor-label", point(right + 4.0, y + 11.0), Anchor::Start, &number(floor));
    }
    svg.finish()
}

fn axis(svg: &mut Svg, scale: &AxisScale, right: f64, unit: &str) {
    for tick in scale.ticks() {
        let y = scale.at(tick);
        svg.line("grid", point(LEFT, y), point(right, y));
        let text = if tick < 1e6 { number(tick) } else { format!("{}M", number(tick / 1e6)) };
        svg.text("tick", point(LEFT - 6.0, y + 4.0), Anchor::End, &text);
    }
    svg.line("axis", point(LEFT, TOP), point(LEFT, TOP + HEIGHT));
    svg.line("axis", point(LEFT, scale.at(0.0)), point(right, scale.at(0.0)));
    svg.text("unit", point(4.0, 16.0), Anchor::Start, unit);
}

fn whisker(svg: &mut Svg, x: f64, low: f64, high: f64) {
    if low - high < 1.0 {
        return;
    }
    svg.line("whisker", point(x, low), point(x, high));
    svg.line("whisker", point(x - 5.0, low), point(x + 5.0, low));
    svg.line("whisker", point(x - 5.0, high), point(x + 5.0, high));
}

/// Whether the compared figures are many of one unit, which are lines rather than bars.
pub(crate) fn is_series(row: &RowReport) -> bool {
    let unit = row.comparisons.first().map(|one| one.unit);
    row.comparisons.len() > 2
        && row.comparisons.iter().all(|one| Some(one.unit) == unit && shares_name(one.figure))
}

/// `8 pairs`: what differs is a number.
fn shares_name(figure: &str) -> bool {
    figure.starts_with(|char: char| char.is_ascii_digit())
}

/// The compared figures of all variants as lines over the loads.
pub(crate) fn series(row: &RowReport) -> Option<String> {
    let places: Vec<usize> = places(row);
    if places.is_empty() {
        return None;
    }
    let right = LEFT + GROUP * places.len() as f64;
    let unit = row.comparisons.first().map_or("", |one| one.unit);
    let title = format!("{}: {unit} of all variants", row.experiment);
    let mut svg = Svg::new(right + 12.0, TOP + HEIGHT + BOTTOM + 22.0, &title);
    let all = row.variants.iter().flat_map(|variant| &variant.figures);
    let chosen =
        all.filter(|figure| places.iter().any(|at| row.variants[0].figures[*at].name == figure.name));
    let scale = AxisScale::holding(chosen.filter_map(|figure| figure.largest), TOP + HEIGHT, TOP);
    axis(&mut svg, &scale, right, unit);
    for (at, place) in places.iter().enumerate() {
        let name = row.variants[0].figures[*place].name;
        let middle = LEFT + GROUP * (at as f64 + 0.5);
        svg.text("name", point(middle, TOP + HEIGHT + 20.0), Anchor::Middle, name);
    }
    let mut legend = LEFT;
    for (number, variant) in row.variants.iter().enumerate() {
        let class = match variant.role {
            VariantRole::NoiseFloor => "floor",
            VariantRole::Before if row.comparisons.first().is_some_and(|one| one.before == variant.name) => {
                "line-before"
            }
            VariantRole::Before => "line-other",
            VariantRole::After => "line-after",
        };
        // Side by side, so that whiskers do not hide each other.
        let aside = (number as f64 - (row.variants.len() as f64 - 1.0) / 2.0) * 9.0;
        let figures = places.iter().map(|at| &variant.figures[*at]);
        draw(&mut svg, &scale, class, figures, aside);
        let y = TOP + HEIGHT + BOTTOM + 12.0;
        svg.line(class, point(legend, y - 4.0), point(legend + 26.0, y - 4.0));
        svg.text("name", point(legend + 32.0, y), Anchor::Start, variant.name);
        legend += 56.0 + 7.0 * variant.name.len() as f64;
    }
    Some(svg.finish())
}

/// One variant's line, with its whiskers.
fn draw<'a>(
    svg: &mut Svg,
    scale: &AxisScale,
    class: &str,
    figures: impl Iterator<Item = &'a FigureReport>,
    aside: f64,
) {
    let mut points = Vec::new();
    for (at, figure) in figures.enumerate() {
        let x = LEFT + GROUP * (at as f64 + 0.5) + aside;
        let (Some(value), Some(low), Some(high)) = (figure.median, figure.smallest, figure.largest) else {
            continue;
        };
        whisker(svg, x, scale.at(low), scale.at(high));
        points.push(point(x, scale.at(value)));
    }
    svg.polyline(class, &points);
    points.iter().for_each(|point| svg.circle(&format!("{class} point"), *point, 3.0));
}

/// After against before in percent, a bar per load, up where after is more.
pub(crate) fn differences(row: &RowReport) -> Option<String> {
    let first = row.comparisons.first()?;
    let percent: Vec<(&str, f64)> =
        row.comparisons.iter().filter_map(|one| Some((one.figure, (one.ratio? - 1.0) * 100.0))).collect();
    if percent.is_empty() {
        return None;
    }
    let right = LEFT + GROUP * percent.len() as f64;
    let title = format!("{}: {} against {} in percent", row.experiment, first.after, first.before);
    let mut svg = Svg::new(right + 12.0, TOP + HEIGHT + BOTTOM, &title);
    let scale = AxisScale::holding(percent.iter().map(|(_, value)| *value), TOP + HEIGHT - 16.0, TOP + 16.0);
    axis(&mut svg, &scale, right, &format!("% more with {}", first.after));
    for (at, (name, value)) in percent.iter().enumerate() {
        let middle = LEFT + GROUP * (at as f64 + 0.5);
        let (base, end) = (scale.at(0.0), scale.at(*value));
        svg.rect("after", point(middle - 14.0, end.min(base)), 28.0, (base - end).abs());
        let y = if *value < 0.0 { end + 15.0 } else { end - 6.0 };
        svg.text("value", point(middle, y), Anchor::Middle, &format!("{value:+.1}"));
        svg.text("name", point(middle, TOP + HEIGHT + 24.0), Anchor::Middle, name);
    }
    Some(svg.finish())
}

/// Where the compared figures are that were measured.
fn places(row: &RowReport) -> Vec<usize> {
    let Some(first) = row.variants.first() else { return Vec::new() };
    let is_compared = |figure: &FigureReport| {
        row.comparisons.iter().any(|one| one.figure == figure.name && one.has_sample())
    };
    let all = first.figures.iter().enumerate();
    all.filter(|(_, figure)| is_compared(figure)).map(|(at, _)| at).collect()
}

/// Where a compared figure is.
pub(crate) fn place(row: &RowReport, figure: &str) -> Option<usize> {
    let first = row.variants.first()?;
    first.figures.iter().position(|one| one.name == figure)
}
