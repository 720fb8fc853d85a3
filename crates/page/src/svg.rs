//! The few elements of SVG that the plots need, written by hand.
//!
//! Invariants: every text and attribute is escaped; elements are closed by who opened them; a coordinate
//! that is no number becomes 0, so that a figure that was not measured cannot break the picture. Colours are
//! classes of the page's style sheet, so that the same picture is right in the dark.

use std::fmt::Write;

/// Text as it may stand between tags and in quotes, of HTML and of SVG.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            char if char.is_control() && !matches!(char, '\n' | '\t') => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
    out
}

/// Which part of a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Where it begins.
    Start,
    /// Its middle.
    Middle,
    /// Where it ends.
    End,
}

/// A place in a picture: to the right and down from its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SvgPoint {
    x: f64,
    y: f64,
}

/// The place so far to the right and down.
#[must_use]
pub const fn point(x: f64, y: f64) -> SvgPoint {
    SvgPoint { x, y }
}

/// A picture that is being drawn; what comes later lies above.
#[derive(Clone, Debug)]
pub struct Svg(String);

impl Svg {
    /// An empty one; `title` is what a reader who does not see it is told.
    #[must_use]
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let (w, h) = (coordinate(width), coordinate(height));
        let title = escaped(title);
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             role=\"img\"><title>{title}</title>\n"
        ))
    }

    /// From `corner` to the right and down.
    pub fn rect(&mut self, class: &str, corner: SvgPoint, width: f64, height: f64) {
        let [x, y, width, height] = [corner.x, corner.y, width.max(0.0), height.max(0.0)].map(coordinate);
        let class = escaped(class);
        let _ = writeln!(
            self.0,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    /// The same, with a text that a browser shows where the mouse is.
    pub fn rect_with_hint(&mut self, class: &str, corner: SvgPoint, size: SvgPoint, hint: &str) {
        let [x, y, width, height] = [corner.x, corner.y, size.x.max(0.0), size.y.max(0.0)].map(coordinate);
        let (class, hint) = (escaped(class), escaped(hint));
        let _ = writeln!(
            self.0,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\">\
             <title>{hint}</title></rect>"
        );
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: SvgPoint, to: SvgPoint) {
        let [x1, y1, x2, y2] = [from.x, from.y, to.x, to.y].map(coordinate);
        let class = escaped(class);
        let _ = writeln!(self.0, "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
    }

    /// Straight lines from each point to the next.
    pub fn polyline(&mut self, class: &str, points: &[SvgPoint]) {
        let points: Vec<String> =
            points.iter().map(|point| format!("{},{}", coordinate(point.x), coordinate(point.y))).collect();
        let _ = writeln!(self.0, "<polyline class=\"{}\" points=\"{}\"/>", escaped(class), points.join(" "));
    }

    /// A circle around `centre`.
    pub fn circle(&mut self, class: &str, centre: SvgPoint, radius: f64) {
        let [x, y, radius] = [centre.x, centre.y, radius].map(coordinate);
        let _ =
            writeln!(self.0, "<circle class=\"{}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>", escaped(class));
    }

    /// A text whose baseline is at the place's height.
    pub fn text(&mut self, class: &str, place: SvgPoint, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let [x, y] = [place.x, place.y].map(coordinate);
        let (class, text) = (escaped(class), escaped(text));
        let _ = writeln!(
            self.0,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// The whole element.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// At most two decimals.
fn coordinate(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Values from the bottom to the top of a plot, with round numbers beside them.
#[derive(Clone, Debug)]
pub struct AxisScale {
    bottom: f64,
    top: f64,
    step: f64,
    /// Where `bottom` and `top` are in the picture.
    low_place: f64,
    high_place: f64,
}

impl AxisScale {
    /// Holds 0 and all `values`; their places are those of the bottom and the top in the picture.
    #[must_use]
    pub fn holding(values: impl Iterator<Item = f64>, low_place: f64, high_place: f64) -> Self {
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for value in values.filter(|value| value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        let step = round_step((high - low) / 4.0);
        // A little more from the arithmetic is no further step.
        let (bottom, top) = ((low / step + 1e-6).floor() * step, (high / step - 1e-6).ceil() * step);
        let top = if top > bottom { top } else { bottom + step };
        Self { bottom, top, step, low_place, high_place }
    }

    /// Where a value is in the picture.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let share = (value - self.bottom) / (self.top - self.bottom);
        self.low_place + share * (self.high_place - self.low_place)
    }

    /// The round numbers from the bottom to the top.
    #[must_use]
    pub fn ticks(&self) -> Vec<f64> {
        let count = ((self.top - self.bottom) / self.step).round() as u32;
        (0..=count).map(|at| self.bottom + f64::from(at) * self.step).collect()
    }
}

/// 1, 2 or 5 times a power of ten, not below `step`; 1 of nothing.
fn round_step(step: f64) -> f64 {
    if step <= 0.0 || !step.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(step.log10().floor());
    let found = [1.0, 2.0, 5.0, 10.0].into_iter().find(|times| times * power >= step * 0.999_999);
    found.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::{Anchor, AxisScale, Svg, coordinate, escaped, point, round_step};

    /// Goal: no text of a host becomes markup. Method: every special character, in a text, a
    /// class and a title.
    #[test]
    fn texts_and_attributes_are_escaped() {
        let hostile = "<script>\"'&\u{1b}[2J</script>";
        let safe = "&lt;script&gt;&quot;&#39;&amp;\u{fffd}[2J&lt;/script&gt;";
        assert_eq!(escaped(hostile), safe);
        assert_eq!(escaped("Core:\t 7\n\u{0}"), "Core:\t 7\n\u{fffd}");
        let mut svg = Svg::new(10.0, 10.0, hostile);
        svg.text(hostile, point(1.0, 2.0), Anchor::Start, hostile);
        svg.rect(hostile, point(0.0, 0.0), 1.0, 1.0);
        svg.line(hostile, point(0.0, 0.0), point(1.0, 1.0));
        svg.circle(hostile, point(0.0, 0.0), 1.0);
        svg.polyline(hostile, &[point(0.0, 0.0)]);
        let text = svg.finish();
        assert_eq!(text.matches(safe).count(), 7, "{text}");
        assert!(!text.contains("<script"), "{text}");
        assert_eq!(text.matches('<').count(), text.matches('>').count(), "{text}");
    }

    /// Goal: coordinates are short, and always numbers.
    #[test]
    fn coordinates_are_numbers() {
        for (value, text) in [
            (1.0, "1"),
            (0.126, "0.13"),
            (-0.001, "0"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
            (120.5, "120.5"),
        ] {
            assert_eq!(coordinate(value), text);
        }
        let mut svg = Svg::new(1.0, 1.0, "");
        svg.rect("", point(0.0, f64::NAN), -3.0, f64::INFINITY);
        assert!(svg.finish().contains("y=\"0\" width=\"0\" height=\"0\""));
    }

    /// Goal: a scale holds 0 and all values between round numbers. Method: magnitudes, negatives, nothing.
    #[test]
    fn a_scale_holds_its_values() {
        for values in
            [vec![], vec![0.0], vec![97_025.0, 2_080.0], vec![0.31], vec![-7.0, 4.0], vec![f64::NAN]]
        {
            let scale = AxisScale::holding(values.iter().copied(), 200.0, 0.0);
            let ticks = scale.ticks();
            assert!((2..=8).contains(&ticks.len()), "{values:?}: {ticks:?}");
            for value in values.iter().copied().chain([0.0]).filter(|value| value.is_finite()) {
                assert!((-0.01..=200.01).contains(&scale.at(value)), "{values:?}: {value}");
            }
        }
        let scale = AxisScale::holding([100.0].into_iter(), 200.0, 0.0);
        assert_eq!(scale.ticks(), [0.0, 50.0, 100.0]);
        assert_eq!((scale.at(0.0), scale.at(100.0)), (200.0, 0.0));
        let [below, both] = [vec![-3.0, -1.0], vec![4.0, -7.0, 1.0]].map(|values| {
            let scale = AxisScale::holding(values.into_iter(), 200.0, 0.0);
            (scale.ticks(), scale.at(0.0).round())
        });
        assert_eq!(below, (vec![-3.0, -2.0, -1.0, 0.0], 0.0));
        assert_eq!(both, (vec![-10.0, -5.0, 0.0, 5.0], 67.0));
        for (step, round) in [
            (0.3, 0.5),
            (1.0, 1.0),
            (1.5, 2.0),
            (2.1, 5.0),
            (6.0, 10.0),
            (0.0, 1.0),
            // A little more from the arithmetic is not more.
            (2.000_001, 2.0),
        ] {
            assert_eq!(round_step(step), round, "{step}");
        }
    }
}
