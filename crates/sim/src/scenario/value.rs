//! The small values of a scenario: spans of time, and CPUs by list or by name.

use quietcore_core::{CpuId, CpuSet, Nanos};
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use super::error::ScenarioProblem;

/// A span of time as `100ms`: a whole number of ns, us, ms or s, at most an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) u64);

/// The longest span: an hour.
const SPAN_MAX: u64 = 3_600_000_000_000;

impl Span {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (count, unit) = text.split_at(digits);
        let nanos_per_unit: u64 = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            _ => {
                return Err(format!(
                    "{text:?} is no span of time; use a number and ns, us, ms or s, as 100ms"
                ));
            }
        };
        match count.parse::<u64>().ok().and_then(|count| count.checked_mul(nanos_per_unit)) {
            Some(nanos) if nanos <= SPAN_MAX => Ok(Self(nanos)),
            _ => Err(format!("{text:?} is out of range; the longest span is 3600s")),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(source)?).map_err(de::Error::custom)
    }
}

/// Which CPUs a load or fault is about: a list, or `all`, `isolated`, `housekeeping`; resolved per variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CpuChoice {
    All,
    Isolated,
    Housekeeping,
    Listed(CpuSet),
}

impl<'de> Deserialize<'de> for CpuChoice {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = String::deserialize(source)?;
        Ok(match text.as_str() {
            "all" => Self::All,
            "isolated" => Self::Isolated,
            "housekeeping" => Self::Housekeeping,
            list => Self::Listed(list.parse().map_err(|error| {
                de::Error::custom(format!("{error}; or use \"all\", \"isolated\" or \"housekeeping\""))
            })?),
        })
    }
}

/// Every `every`-th CPU of `cpus` (the fourth, the eighth ..) on a machine with these CPUs; an error if there
/// is none, or one too many.
pub(crate) fn resolve(
    cpus: &Spanned<CpuChoice>,
    every: Option<&Spanned<usize>>,
    all: &CpuSet,
    isolated: &CpuSet,
) -> Result<Vec<CpuId>, ScenarioProblem> {
    let chosen = match cpus.get_ref() {
        CpuChoice::All => all.clone(),
        CpuChoice::Isolated => isolated.clone(),
        CpuChoice::Housekeeping => all.difference(isolated),
        CpuChoice::Listed(list) => list.clone(),
    };
    if let Some(stranger) = chosen.difference(all).first() {
        let problem = format!("CPU {stranger} does not exist; the machine has the CPUs {all}");
        return Err(ScenarioProblem::at(cpus, problem));
    }
    if chosen.is_empty() {
        return Err(ScenarioProblem::at(cpus, "no CPU is meant; name at least one"));
    }
    let step = match every {
        Some(every) if *every.get_ref() == 0 => return Err(ScenarioProblem::at(every, "must be at least 1")),
        Some(every) => *every.get_ref(),
        None => 1,
    };
    let chosen: Vec<CpuId> = chosen.iter().skip(step - 1).step_by(step).collect();
    if chosen.is_empty() {
        return Err(ScenarioProblem::at(
            cpus,
            format!("no CPU is meant: there are fewer than every = {step}"),
        ));
    }
    Ok(chosen)
}

/// `value` if it is within `least..=most`.
pub(crate) fn within<T>(value: &Spanned<T>, least: T, most: T) -> Result<T, ScenarioProblem>
where
    T: Copy + PartialOrd + std::fmt::Display,
{
    let number = *value.get_ref();
    if number < least || number > most {
        return Err(ScenarioProblem::at(
            value,
            format!("{number} is out of range; allowed are {least} to {most}"),
        ));
    }
    Ok(number)
}

/// The nanoseconds of a span within `least..=most`.
pub(crate) fn span_within(value: &Spanned<Span>, least: u64, most: u64) -> Result<u64, ScenarioProblem> {
    let nanos = value.get_ref().0;
    if nanos < least || nanos > most {
        let problem =
            format!("{} is out of range; allowed are {} to {}", Nanos(nanos), Nanos(least), Nanos(most));
        return Err(ScenarioProblem::at(value, problem));
    }
    Ok(nanos)
}

#[cfg(test)]
mod tests {
    use super::Span;

    /// Goal: spans and their refusals. Method: each unit, each kind of mistake, both sides of the limit.
    #[test]
    fn a_span_has_a_unit_and_a_limit() {
        for (text, nanos) in
            [("0s", 0), ("7ns", 7), ("3us", 3_000), ("4ms", 4_000_000), ("3600s", 3_600_000_000_000)]
        {
            assert_eq!(Span::parse(text), Ok(Span(nanos)), "{text}");
        }
        for bad in ["", "s", "10", "10h", "-1s", "3601s", "99999999999999999999ns", "1.5ms"] {
            assert!(Span::parse(bad).is_err(), "{bad:?}");
        }
    }
}
