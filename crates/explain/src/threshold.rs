//! Thresholds for figures: what makes a report fail, as `foreign>0` or `rt_delay_p99>50us`.
//!
//! Decides what a threshold means where a figure was not recorded (it cannot be told, which is an error and
//! no pass) and where it has no sample (nothing is above or below it).

use crate::figures::Explanation;
use crate::named_figures::{FIGURES, FigureUnit, FigureValue, ReportFigure};
use std::fmt;
use std::str::FromStr;

/// A figure, a comparison and a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    figure: &'static ReportFigure,
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
            FigureUnit::Span => quietcore_core::Nanos(figure as u64).to_string(),
            FigureUnit::Count if self.is_per_second => format!("{figure:.1} per second"),
            FigureUnit::Count => format!("{figure}"),
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
        if is_per_second && figure.kind == FigureUnit::Span {
            return Err(format!("{name} is a span, which has no rate"));
        }
        let digits = limit.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        let number = number.ok_or_else(|| format!("{limit:?} is no limit; write a number, as 0 or 50us"))?;
        let limit = match (figure.kind, &limit[digits.len()..]) {
            (FigureUnit::Count, "") | (FigureUnit::Span, "ns") => number,
            (FigureUnit::Span, "us") => number * 1e3,
            (FigureUnit::Span, "ms") => number * 1e6,
            (FigureUnit::Span, "s") => number * 1e9,
            (FigureUnit::Count, unit) => {
                return Err(format!("{name} is a count, which has no unit {unit:?}"));
            }
            (FigureUnit::Span, _) => return Err(format!("{name} is a span; write ns, us, ms or s, as 50us")),
        };
        let is_above = text.as_bytes()[at] == b'>';
        Ok(Self { figure, is_per_second, is_above, limit, text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::{Crossing, Explanation, Threshold};
    use crate::figures::Interruption;

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
            own: false,
            count,
            total_ns: None,
            p99_ns,
            max_ns,
            max_at_ns: None,
            max_line: None,
            causes: Vec::new(),
            taken_ns: Vec::new(),
            durations: Vec::new(),
        };
        let part = |source| Interruption { source, ..row(100, Some(1), Some(1)) };
        let own = Interruption { source: "task", own: true, ..row(1_000, Some(1_000), Some(1_000)) };
        report.interruptions =
            vec![row(6, Some(14), Some(2)), row(7, Some(3), Some(15)), row(0, None, None), own];
        report.interruptions.extend(["timer", "hrtimer", "work"].map(part));
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
