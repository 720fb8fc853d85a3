//! Thresholds for figures: what makes a report fail, as `foreign>0` or `rt_delay_p99>50us`.
//!
//! Decides which figures have names here, what a threshold means where a figure was not recorded (it cannot
//! be told, which is an error and no pass) and where it has no sample (nothing is above or below it).

use crate::figures::{Explanation, Interruption};
use std::fmt;
use std::str::FromStr;

/// A figure, a comparison and a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    figure: &'static NamedFigure,
    /// The figure is divided by the seconds of the recording.
    is_per_second: bool,
    is_above: bool,
    limit: f64,
    text: String,
}

/// What a threshold says of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossing {
    /// The figure is beyond the limit: in counts, or in ns.
    Crossed(f64),
    /// It is not, or there is no sample.
    Within,
    /// The figure was not recorded.
    Unknown,
}

/// A figure that a threshold can name.
#[derive(Debug)]
struct NamedFigure {
    name: &'static str,
    kind: FigureKind,
    value: fn(&Explanation) -> FigureValue,
}

impl PartialEq for NamedFigure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FigureKind {
    Count,
    Span,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FigureValue {
    Known(u64),
    NoSample,
    NotRecorded,
}

impl From<Option<u64>> for FigureValue {
    fn from(figure: Option<u64>) -> Self {
        figure.map_or(Self::NotRecorded, Self::Known)
    }
}

/// Of so many kinds is what takes CPUs away: devices, the processor, softirqs, NMIs.
const SOURCES: usize = 4;

/// All of them, in the order in which they are listed.
static FIGURES: [NamedFigure; 16] = [
    count("foreign", |report| report.foreign.total.into()),
    count("pulled", |report| report.foreign.pulled.into()),
    count("placed", |report| report.foreign.placed.into()),
    count("foreign_hrtimers", |report| report.hrtimers.foreign.into()),
    count("remote", |report| report.remote.total.into()),
    count("ping_pongs", |report| report.ping_pong.count.into()),
    count("watchdogs_off", |report| report.hrtimers.qdisc_watchdog.off_arming_cpu.into()),
    count("empty_softirqs", |report| report.softirq.timer_empty.into()),
    count("rt_behind_softirq", |report| report.rt_wakeups.behind_softirq.into()),
    span("rt_delay_p50", |report| delay(report, report.rt_wakeups.delay_ns.p50)),
    span("rt_delay_p99", |report| delay(report, report.rt_wakeups.delay_ns.p99)),
    span("rt_delay_max", |report| delay(report, report.rt_wakeups.delay_ns.max)),
    count("interruptions", |report| interruptions(report, |rows| rows.iter().map(|row| row.count).sum())),
    span("interruption_p99", |report| longest(report, |row| row.p99_ns)),
    span("interruption_max", |report| longest(report, |row| row.max_ns)),
    count("lost_events", |report| FigureValue::Known(report.lost_events)),
];

const fn count(name: &'static str, value: fn(&Explanation) -> FigureValue) -> NamedFigure {
    NamedFigure { name, kind: FigureKind::Count, value }
}

const fn span(name: &'static str, value: fn(&Explanation) -> FigureValue) -> NamedFigure {
    NamedFigure { name, kind: FigureKind::Span, value }
}

fn delay(report: &Explanation, delay: Option<u64>) -> FigureValue {
    match (report.rt_wakeups.behind_softirq, delay) {
        (None, _) => FigureValue::NotRecorded,
        (Some(_), None) => FigureValue::NoSample,
        (Some(_), Some(delay)) => FigureValue::Known(delay),
    }
}

/// A figure of all rows about what takes CPUs away; no source of them was recorded where none is.
fn interruptions(report: &Explanation, figure: fn(&[Interruption]) -> u64) -> FigureValue {
    let missing = report.not_recorded.iter().filter(|path| path.starts_with("interruptions.")).count();
    if missing == SOURCES {
        return FigureValue::NotRecorded;
    }
    FigureValue::Known(figure(&report.interruptions))
}

fn longest(report: &Explanation, of: fn(&Interruption) -> Option<u64>) -> FigureValue {
    match interruptions(report, |_| 0) {
        FigureValue::Known(_) => {
            let longest = report.interruptions.iter().filter_map(of).max();
            longest.map_or(FigureValue::NoSample, FigureValue::Known)
        }
        unknown => unknown,
    }
}

impl Threshold {
    /// The names of the figures, in order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FIGURES.iter().map(|figure| figure.name)
    }

    /// Holds it against a report. Any thread.
    #[must_use]
    pub fn check(&self, report: &Explanation) -> Crossing {
        let figure = match (self.figure.value)(report) {
            FigureValue::Known(figure) => figure as f64,
            FigureValue::NoSample => return Crossing::Within,
            FigureValue::NotRecorded => return Crossing::Unknown,
        };
        let figure = match (self.is_per_second, report.duration_ns) {
            (false, _) => figure,
            (true, Some(nanos)) if nanos > 0 => figure * 1e9 / nanos as f64,
            (true, _) => return Crossing::Unknown,
        };
        let is_crossed = if self.is_above { figure > self.limit } else { figure < self.limit };
        if is_crossed { Crossing::Crossed(figure) } else { Crossing::Within }
    }

    /// A figure in the words of the threshold: a count, a rate or a span.
    #[must_use]
    pub fn shown(&self, figure: f64) -> String {
        match self.figure.kind {
            FigureKind::Span => quietcore_core::Nanos(figure as u64).to_string(),
            FigureKind::Count if self.is_per_second => format!("{figure:.1} per second"),
            FigureKind::Count => format!("{figure}"),
        }
    }
}

/// As it was written.
impl fmt::Display for Threshold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// `FIGURE>LIMIT` or `FIGURE<LIMIT`: a count as `foreign>0`, a rate as `foreign/s>1.5`, a span as
/// `rt_delay_p99>50us` (ns, us, ms, s).
impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let at = text.find(['>', '<']).ok_or_else(|| {
            format!("{text:?} compares nothing; write FIGURE>LIMIT or FIGURE<LIMIT, as foreign>0")
        })?;
        let (name, limit) = (text[..at].trim_end(), text[at + 1..].trim_start());
        let (name, is_per_second) = name.strip_suffix("/s").map_or((name, false), |name| (name, true));
        let figure = FIGURES.iter().find(|figure| figure.name == name).ok_or_else(|| {
            let names: Vec<_> = Self::names().collect();
            format!("{name:?} is no figure; these are: {}", names.join(", "))
        })?;
        if is_per_second && figure.kind == FigureKind::Span {
            return Err(format!("{name} is a span, which has no rate"));
        }
        let digits = limit.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        let number = number.ok_or_else(|| format!("{limit:?} is no limit; write a number, as 0 or 50us"))?;
        let limit = match (figure.kind, &limit[digits.len()..]) {
            (FigureKind::Count, "") | (FigureKind::Span, "ns") => number,
            (FigureKind::Span, "us") => number * 1e3,
            (FigureKind::Span, "ms") => number * 1e6,
            (FigureKind::Span, "s") => number * 1e9,
            (FigureKind::Count, unit) => {
                return Err(format!("{name} is a count, which has no unit {unit:?}"));
            }
            (FigureKind::Span, _) => return Err(format!("{name} is a span; write ns, us, ms or s, as 50us")),
        };
        let is_above = text.as_bytes()[at] == b'>';
        Ok(Self { figure, is_per_second, is_above, limit, text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::{Crossing, Explanation, Interruption, Threshold};

    fn threshold(text: &str) -> Threshold {
        text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    /// A report in which no two figures are the same.
    fn report() -> Explanation {
        let mut report =
            Explanation { duration_ns: Some(2_000_000_000), lost_events: 16, ..Explanation::default() };
        report.foreign.total = Some(1);
        report.foreign.pulled = Some(2);
        report.foreign.placed = Some(3);
        report.hrtimers.foreign = Some(4);
        report.remote.total = Some(5);
        report.ping_pong.count = Some(6);
        report.hrtimers.qdisc_watchdog.off_arming_cpu = Some(7);
        report.softirq.timer_empty = Some(8);
        report.rt_wakeups.behind_softirq = Some(9);
        report.rt_wakeups.delay_ns.p50 = Some(10);
        report.rt_wakeups.delay_ns.p99 = Some(11);
        report.rt_wakeups.delay_ns.max = Some(12);
        let row = |count, p99_ns, max_ns| Interruption {
            cpu: 1,
            source: "softirq",
            name: "TIMER".to_owned(),
            count,
            total_ns: None,
            p99_ns,
            max_ns,
            max_at_ns: None,
            max_line: None,
        };
        report.interruptions = vec![row(6, Some(14), Some(2)), row(7, Some(3), Some(15)), row(0, None, None)];
        report
    }

    /// Goal: each name is its own figure. Method: a report in which they are 1 to 16, in the order of the
    /// names.
    #[test]
    fn each_name_is_its_own_figure() {
        let report = report();
        for (index, name) in Threshold::names().enumerate() {
            let number = index as f64 + 1.0;
            let unit = if name.contains("delay") || name.contains("on_p99") || name.contains("on_max") {
                "ns"
            } else {
                ""
            };
            let above = threshold(&format!("{name}>{}{unit}", number - 1.0));
            assert_eq!(above.check(&report), Crossing::Crossed(number), "{name}");
            assert_eq!(
                threshold(&format!("{name}>{number}{unit}")).check(&report),
                Crossing::Within,
                "{name}"
            );
            assert_eq!(
                threshold(&format!("{name}<{number}{unit}")).check(&report),
                Crossing::Within,
                "{name}"
            );
            let below = threshold(&format!("{name}<{}{unit}", number + 1.0));
            assert_eq!(below.check(&report), Crossing::Crossed(number), "{name}");
        }
    }

    /// Goal: rates are per second of the recording, and spans have units; both are shown as they are read.
    #[test]
    fn rates_and_spans_have_units() {
        let report = report();
        let rate = threshold(" foreign/s > 0.4 ");
        assert_eq!(
            (rate.check(&report), rate.to_string()),
            (Crossing::Crossed(0.5), "foreign/s > 0.4".to_owned())
        );
        assert_eq!(
            (rate.shown(0.5), threshold("foreign>0").shown(26.0)),
            ("0.5 per second".into(), "26".into())
        );
        for (limit, crossed) in [("0.01us", true), ("0.011us", false), ("0.00001ms", true), ("1s", false)] {
            let span = threshold(&format!("rt_delay_p99>{limit}"));
            assert_eq!(span.check(&report) == Crossing::Crossed(11.0), crossed, "{limit}");
            assert_eq!(span.shown(50_000.0), "50 us");
        }
    }

    /// Goal: what was not recorded cannot be told, and what has no sample is beyond no limit. Method: an
    /// empty report; one with wake-ups and no wait; one without a clock.
    #[test]
    fn what_was_not_recorded_cannot_be_told() {
        let mut empty = Explanation::default();
        for name in ["foreign>0", "rt_delay_p99>1us", "foreign/s>0"] {
            assert_eq!(threshold(name).check(&empty), Crossing::Unknown, "{name}");
        }
        empty.not_recorded = vec![
            "interruptions.device",
            "interruptions.processor",
            "interruptions.softirq",
            "interruptions.nmi",
        ];
        for name in ["interruptions>0", "interruption_max>1us"] {
            assert_eq!(threshold(name).check(&empty), Crossing::Unknown, "{name}");
        }
        empty.not_recorded.pop();
        empty.rt_wakeups.behind_softirq = Some(0);
        for name in ["interruptions>0", "interruption_max>1us", "interruption_max<1us", "rt_delay_p99<1s"] {
            assert_eq!(threshold(name).check(&empty), Crossing::Within, "{name}");
        }
        (empty.foreign.total, empty.duration_ns) = (Some(5), Some(0));
        assert_eq!(threshold("foreign/s>0").check(&empty), Crossing::Unknown);
    }

    /// Goal: what is no threshold says what is wrong. Method: each part missing or of another kind.
    #[test]
    fn what_is_no_threshold_says_why() {
        let why = |text: &str| text.parse::<Threshold>().expect_err("it is none");
        assert_eq!(
            why("foreign"),
            "\"foreign\" compares nothing; write FIGURE>LIMIT or FIGURE<LIMIT, as foreign>0"
        );
        assert!(why("forein>0").starts_with("\"forein\" is no figure; these are: foreign, pulled, placed, "));
        assert_eq!(why("foreign>"), "\"\" is no limit; write a number, as 0 or 50us");
        assert_eq!(why("foreign>-1"), "\"-1\" is no limit; write a number, as 0 or 50us");
        assert_eq!(why("foreign>inf"), "\"inf\" is no limit; write a number, as 0 or 50us");
        assert_eq!(why("foreign>5us"), "foreign is a count, which has no unit \"us\"");
        assert_eq!(why("rt_delay_max>5"), "rt_delay_max is a span; write ns, us, ms or s, as 50us");
        assert_eq!(why("rt_delay_max/s>5us"), "rt_delay_max is a span, which has no rate");
    }
}
