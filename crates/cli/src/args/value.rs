//! Values that can be typed: spans of time, lists of CPUs, policies.

use crate::terminal::Colours;
use clap::ValueEnum;
use quietcore_answers::SweepKey;
use quietcore_core::place::Policy;
use quietcore_core::{CpuError, CpuSet, Nanos};
use quietcore_trace::Question;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Where an unpinned timer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyArg {
    /// It stays where it is armed; a CPU that is awake runs it when its own is idle (6.9 on)
    Pull,
    /// A busy CPU is chosen when it is armed (up to 6.8)
    Push,
    /// It stays where it is armed, and its CPU runs it
    Stay,
}

impl PolicyArg {
    pub(crate) const fn policy(self) -> Policy {
        match self {
            Self::Pull => Policy::Pull,
            Self::Push => Policy::Push,
            Self::Stay => Policy::Stay,
        }
    }
}

/// When there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    Auto,
    Always,
    Never,
}

impl ColorArg {
    /// What was asked for; `None` leaves it to the terminal.
    pub(crate) const fn colours(self) -> Option<Colours> {
        match self {
            Self::Auto => None,
            Self::Always => Some(Colours::On),
            Self::Never => Some(Colours::Off),
        }
    }
}

/// Where metrics are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MetricsPlace {
    /// Written anew at each interval.
    File(PathBuf),
    /// Asked for over HTTP.
    Port(SocketAddr),
}

/// A number is a port of this host alone, `ADDRESS:PORT` one for others, too; anything else is a file.
pub(crate) fn metrics_place(text: &str) -> Result<MetricsPlace, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match (is_number, text.parse::<u16>(), text.parse::<SocketAddr>()) {
        (_, Ok(port), _) => Ok(MetricsPlace::Port(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))),
        (true, Err(_), _) => Err(format!("{text} is no port; the highest is 65535")),
        (_, _, Ok(address)) => Ok(MetricsPlace::Port(address)),
        _ if text.is_empty() => Err("name a file, a port, or ADDRESS:PORT".to_owned()),
        _ => Ok(MetricsPlace::File(PathBuf::from(text))),
    }
}

/// A kernel list, or `none`.
pub(crate) fn cpus(text: &str) -> Result<CpuSet, CpuError> {
    if text == "none" { Ok(CpuSet::new()) } else { text.parse() }
}

/// `1..100`: the first seed and the last.
pub(crate) fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err(format!("{text:?} are no seeds; give the first and the last, as 1..100")),
    }
}

/// `cpus=64,128`: a key of a scenario and its values. CPU lists have `+` between their parts.
pub(crate) fn setting(text: &str) -> Result<SweepKey, String> {
    let parts = text.split_once('=').filter(|(key, values)| !key.is_empty() && !values.is_empty());
    let Some((key, values)) = parts else {
        return Err(format!("{text:?} sets nothing; give a key and its values, as cpus=64,128"));
    };
    let is_list = matches!(key, "isolated" | "nohz_full") || key.ends_with(".cpus");
    let value = |value: &str| if is_list { value.replace('+', ",") } else { value.to_owned() };
    Ok(SweepKey { key: key.to_owned(), values: values.split(',').map(value).collect() })
}

/// A question by its name, or by the number that it had before.
pub(crate) fn question(text: &str) -> Result<Question, String> {
    let numbered = ["000", "001", "002", "003", "004"].iter().position(|number| *number == text);
    numbered.map(|place| Question::ALL[place]).or_else(|| Question::from_name(text)).ok_or_else(|| {
        let names = Question::ALL.map(Question::name).join(", ");
        format!("{text:?} is no question; choose from {names}")
    })
}

/// A table holds two identities at least.
pub(crate) fn identities(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(count) if count >= 2 => Ok(count),
        _ => Err(format!("{text:?} is no count of identities; the smallest is 2")),
    }
}

/// `10s`, `500ms`, `2m`, `1h`: at most a day.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    let millis_per_unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("{text:?} is no time span; use a number and ms, s, m or h, as 10s")),
    };
    let millis = count.parse::<u64>().ok().and_then(|count| count.checked_mul(millis_per_unit));
    match millis {
        Some(millis) if millis <= 86_400_000 => Ok(Duration::from_millis(millis)),
        _ => Err(format!("{text:?} is out of range; the longest span is one day, 24h")),
    }
}

/// `gap>50us`: what ends a recording.
pub(crate) fn trigger(text: &str) -> Result<Nanos, String> {
    let limit = text.strip_prefix("gap").and_then(|rest| rest.trim_start().strip_prefix('>'));
    let Some(limit) = limit else {
        return Err(format!("{text:?} is no condition; the one there is reads as gap>50us"));
    };
    short_span(limit.trim())
}

/// `50us`, `1ms`, `800ns`: at most ten seconds.
pub(crate) fn short_span(text: &str) -> Result<Nanos, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    let nanos_per_unit = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(format!("{text:?} is no short span; use a number and ns, us, ms or s, as 50us")),
    };
    let nanos = count.parse::<u64>().ok().and_then(|count| count.checked_mul(nanos_per_unit));
    match nanos {
        Some(nanos) if nanos <= 10_000_000_000 => Ok(Nanos(nanos)),
        _ => Err(format!("{text:?} is out of range; the longest is 10s")),
    }
}

/// The same, long enough for a few timers and short enough to wait for.
pub(crate) fn lab_span(text: &str) -> Result<Duration, String> {
    let allowed = Duration::from_millis(10)..=Duration::from_secs(600);
    let span = span(text)?;
    if allowed.contains(&span) { Ok(span) } else { Err("from 10ms to 10m".to_owned()) }
}

/// The same, as long as a scenario may be.
pub(crate) fn simulated_span(text: &str) -> Result<Duration, String> {
    let allowed = Duration::from_millis(1)..=Duration::from_secs(3600);
    let span = span(text)?;
    if allowed.contains(&span) { Ok(span) } else { Err("from 1ms to 1h".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::{
        MetricsPlace, metrics_place, question, seeds, setting, short_span, simulated_span, span, trigger,
    };
    use quietcore_core::Nanos;
    use quietcore_trace::Question;
    use std::time::Duration;

    /// Goal: spans and their refusals.
    #[test]
    fn a_span_has_a_unit_and_a_limit() {
        assert_eq!(span("25s"), Ok(Duration::from_secs(25)));
        assert_eq!(span("1440m"), Ok(Duration::from_secs(86_400)));
        assert_eq!(span("24h"), Ok(Duration::from_secs(86_400)));
        for bad in ["", "s", "10", "10d", "25h", "1441m", "-1s", "99999999999999999999s"] {
            assert!(span(bad).is_err(), "{bad:?}");
        }
        assert_eq!(["1ms", "1h"].map(|text| simulated_span(text).is_ok()), [true, true]);
        assert_eq!(["0s", "3601s"].map(|text| simulated_span(text).is_ok()), [false, false]);
    }

    /// Goal: a number is a port of this host alone, an address with a port one for others, all else a file;
    /// what can be neither is refused. Method: some of each.
    #[test]
    fn metrics_go_to_a_file_or_a_port() {
        let port = |text: &str| match metrics_place(text) {
            Ok(MetricsPlace::Port(address)) => address.to_string(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(port("9100"), "127.0.0.1:9100");
        assert_eq!(port("0.0.0.0:9100"), "0.0.0.0:9100");
        assert_eq!(port("[::1]:9100"), "[::1]:9100");
        for file in ["a.prom", "/run/9100", "9100.prom", "host:9100"] {
            assert_eq!(metrics_place(file), Ok(MetricsPlace::File(file.into())), "{file}");
        }
        for bad in ["", "65536", "99999999999999999999"] {
            assert!(metrics_place(bad).is_err(), "{bad:?}");
        }
    }

    /// Goal: a condition is a limit for gaps. Method: with and without spaces; other words, no limit.
    #[test]
    fn a_condition_is_a_limit_for_gaps() {
        for text in ["gap>50us", "gap > 50us"] {
            assert_eq!(trigger(text), Ok(Nanos(50_000)), "{text}");
        }
        for bad in ["", "gap", "gap<50us", "gap>", "gap>50", "foreign>0", "50us"] {
            assert!(trigger(bad).is_err(), "{bad:?}");
        }
    }

    /// Goal: short spans, and their refusals.
    #[test]
    fn a_short_span_has_a_unit_and_a_limit() {
        for (text, nanos) in [("800ns", 800), ("50us", 50_000), ("10s", 10_000_000_000)] {
            assert_eq!(short_span(text), Ok(Nanos(nanos)), "{text}");
        }
        for bad in ["", "us", "50", "11s", "1m", "-1us"] {
            assert!(short_span(bad).is_err(), "{bad:?}");
        }
    }

    /// Goal: names and old numbers are taken, in the same order. Method: both lists, and what is neither.
    #[test]
    fn a_question_has_a_name_and_an_old_number() {
        for (place, of) in Question::ALL.into_iter().enumerate() {
            assert_eq!((question(of.name()), question(&format!("00{place}"))), (Ok(of), Ok(of)));
        }
        for bad in ["", "005", "0", "Isolation"] {
            let refused = format!(
                "{bad:?} is no question; choose from packet-timers, isolation, placement, real-time, \
                 empty-softirqs"
            );
            assert_eq!(question(bad), Err(refused));
        }
    }

    /// Goal: seeds are those from the first to the last. Method: both ends, one alone, what is none.
    #[test]
    fn seeds_are_from_the_first_to_the_last() {
        assert_eq!((seeds("1..100"), seeds("7")), (Ok(1..=100), Ok(7..=7)));
        for text in ["", "..", "1..", "9..1", "1-9", "-1..2"] {
            assert!(seeds(text).expect_err(text).ends_with("as 1..100"), "{text}");
        }
    }

    /// Goal: a key has its values in order, and a list of CPUs stays one. Method: each, and what is none.
    #[test]
    fn a_setting_has_a_key_and_values() {
        let set = |text: &str| setting(text).map(|key| (key.key, key.values.join("|")));
        assert_eq!(set("cpus=64,128"), Ok(("cpus".to_owned(), "64|128".to_owned())));
        assert_eq!(set("isolated=1-3+5,7"), Ok(("isolated".to_owned(), "1-3,5|7".to_owned())));
        assert_eq!(set("load.busy.cpus=1+3"), Ok(("load.busy.cpus".to_owned(), "1,3".to_owned())));
        for text in ["cpus", "cpus=", "=3"] {
            assert!(set(text).expect_err(text).ends_with("as cpus=64,128"), "{text}");
        }
    }
}
