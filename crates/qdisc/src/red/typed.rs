//! From what is typed of random early detection to a [`RedCurve`]: what `tc` works out, and what it takes.
//!
//! Source: tc-red(8); iproute2's `tc` by behaviour; the weight is from Floyd and Jacobson (1993), section 4.
//! Nothing here is done for each packet, so there are fractions.

use super::average::{IdleDamping, RedCurve};
use crate::tc::error::TcProblem;
use crate::tc::number::scientific;

use crate::tc::scalar::{Scalar, Show};
use crate::tc::text::general;
use crate::tc::{BitRate, Bytes, TcJson, TcValue};
use core::fmt::{self, Formatter};

/// 2^32: a certain mark.
const CERTAIN: f64 = 4_294_967_296.0;
const DEFAULT_PROBABILITY: f64 = 0.02;
/// What averages fall by in an empty queue, if no line says it.
const DEFAULT_BANDWIDTH: BitRate = BitRate(10_000_000);
const BILLION: u64 = 1_000_000_000;

/// The probability of a mark at the upper limit, in billionths. `tc` takes more than 1, and makes something
/// else of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkProbability(
    /// Billionths.
    pub u64,
);

impl Show for MarkProbability {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {}.{:09}", self.0 / BILLION, self.0 % BILLION)
    }
}

/// As `tc` reads it: what stands behind the number does not matter.
impl Scalar for MarkProbability {
    const ALLOWED: &'static [&'static str] = &["a number from 0 to 1"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let (number, _) = scientific(word).ok_or(TcProblem::Malformed("a probability"))?;
        let range = TcProblem::OutOfRange { low: "0".into(), high: "1".into() };
        u64::try_from(number.scaled(BILLION.into())).map(Self).map_err(|_| range)
    }
}

/// What was typed, or its defaults but for those that follow from the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypedCurve {
    pub(crate) limit: u32,
    pub(crate) min: Option<Bytes>,
    pub(crate) max: Option<Bytes>,
    pub(crate) packet: u32,
    pub(crate) burst: Option<u32>,
    pub(crate) probability: Option<MarkProbability>,
    pub(crate) bandwidth: Option<BitRate>,
}

impl TypedCurve {
    /// The curve.
    ///
    /// # Errors
    /// What it lacks, where `tc` gives up.
    pub(crate) fn told(&self) -> Result<RedCurve, TcProblem> {
        let typed = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0).filter(|bytes| *bytes > 0);
        let default_max = typed(self.min).map_or(self.limit / 4, |min| min.wrapping_mul(3));
        let max = typed(self.max).unwrap_or(default_max);
        let min = typed(self.min).unwrap_or(max / 3);
        let default_burst = min.wrapping_mul(2).wrapping_add(max) / self.packet.saturating_mul(3).max(1);
        let burst = self.burst.filter(|burst| *burst > 0).unwrap_or(default_burst);
        let weight_log = weight_log(min, burst, self.packet).ok_or(TcProblem::Needs {
            option: "burst",
            needs: "more packets than `min` has, and fewer than 2^32",
        })?;
        let billionths = self.probability.map(|typed| typed.0 as f64 / BILLION as f64);
        let probability = probability(min, max, billionths.unwrap_or(DEFAULT_PROBABILITY))?;
        let bandwidth = self.bandwidth.filter(|rate| rate.0 > 0).unwrap_or(DEFAULT_BANDWIDTH);
        let idle = IdleDamping::new(weight_log, self.packet, bandwidth.bytes_per_second())
            .ok_or(TcProblem::Needs { option: "bandwidth", needs: "a higher rate" })?;
        Ok(RedCurve { min, max, weight_log, probability, idle })
    }
}

/// The least weight by which the average stays below `min` while a burst comes at once.
fn weight_log(min: u32, burst: u32, packet: u32) -> Option<u32> {
    let above = f64::from(burst) + 1.0 - f64::from(min) / f64::from(packet);
    if above < 1.0 {
        return None;
    }
    let reached = |log: u32| {
        let weight = 1.0 / (1_u64 << log) as f64;
        (1.0 - libm::pow(1.0 - weight, f64::from(burst))) / weight
    };
    (1..32).find(|log| above <= reached(*log))
}

/// So many of 2^32; where a probability is not below 1, what Linux makes of the power of 2 that `tc` tells
/// it besides.
fn probability(min: u32, max: u32, asked: f64) -> Result<u32, TcProblem> {
    let span = max.checked_sub(min).ok_or(TcProblem::Needs { option: "min", needs: "a `max` above it" })?;
    let power = if span == 0 {
        0
    } else {
        let step = asked / f64::from(span);
        let power = (0..32).find(|power| step * (1_u64 << power) as f64 > 1.0);
        power.ok_or(TcProblem::Needs { option: "probability", needs: "a larger share for so many bytes" })?
    };
    let share = libm::trunc(asked * CERTAIN) as u64 as u32;
    Ok(if share > 0 { share } else { (u32::MAX >> power).wrapping_mul(span) })
}

/// A probability as `tc` shows it.
pub(crate) fn shown_probability(probability: u32) -> TcValue {
    let share = f64::from(probability) / CERTAIN;
    TcValue::new(general(share, 6), TcJson::Float(share))
}

#[cfg(test)]
impl crate::tc::tests::random::Random for MarkProbability {
    fn random() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::strategy::Strategy as _;
        (0..=BILLION).prop_map(Self).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::{BitRate, Bytes, MarkProbability, TypedCurve};
    use crate::tc::error::TcProblem;

    const TYPED: TypedCurve = TypedCurve {
        limit: 60_000,
        min: None,
        max: None,
        packet: 500,
        burst: None,
        probability: None,
        bandwidth: None,
    };

    /// Goal: weights, probabilities and steps are those that `tc` of iproute2 6.1 told Linux 6.12. Method:
    /// what it showed of lines: the manual's, LARTC's, and the ends of what can be.
    #[test]
    fn curves_are_as_recorded() {
        let range = |min, max| TypedCurve { min: Some(Bytes(min)), max: Some(Bytes(max)), ..TYPED };
        let bandwidth = |bits| TypedCurve { bandwidth: Some(BitRate(bits)), ..TYPED };
        let chance = |billionths| Some(MarkProbability(billionths));
        let lartc = TypedCurve {
            burst: Some(20),
            packet: 1_000,
            probability: chance(100_000_000),
            ..range(10_240, 51_200)
        };
        let mininet = TypedCurve {
            burst: Some(20),
            packet: 1_500,
            probability: chance(1_000_000_000),
            ..range(30_000, 35_000)
        };
        for (typed, limits, weight_log, probability, step_log) in [
            (TYPED, (5_000, 15_000), 3, 85_899_345, 12),
            (lartc, (10_240, 51_200), 4, 429_496_729, 14),
            (mininet, (30_000, 35_000), 1, 2_621_435_000, 11),
            (TypedCurve { burst: Some(10), ..range(5_000, 20_000) }, (5_000, 20_000), 1, 85_899_345, 10),
            (range(5_000, 5_000), (5_000, 5_000), 1, 85_899_345, 10),
            (
                TypedCurve { probability: chance(1_000_000_000), ..range(5_000, 5_001) },
                (5_000, 5_001),
                1,
                1 << 31,
                10,
            ),
            (TypedCurve { packet: 1, ..TYPED }, (5_000, 15_000), 12, 85_899_345, 0),
            (bandwidth(1_000), (5_000, 15_000), 3, 85_899_345, 25),
            (bandwidth(10_000_000_000), (5_000, 15_000), 3, 85_899_345, 0),
            (bandwidth(0), (5_000, 15_000), 3, 85_899_345, 12),
        ] {
            let told = typed.told().expect("it was taken");
            assert_eq!((told.min, told.max), limits, "{typed:?}");
            let probability_off = told.probability.abs_diff(probability);
            assert!(probability_off <= 1 << 11, "{typed:?}: {}", told.probability);
            assert_eq!((told.weight_log, told.idle.step_log()), (weight_log, step_log), "{typed:?}");
        }
    }

    /// Goal: what `tc` gave up on is not taken. Method: a burst that is too small, one that is too large, a
    /// probability that is too small, limits the wrong way round.
    #[test]
    fn what_cannot_be_is_told() {
        let range = |min, max| TypedCurve { min: Some(Bytes(min)), max: Some(Bytes(max)), ..TYPED };
        for (typed, lacks) in [
            (TypedCurve { burst: Some(1), ..range(5_000, 20_000) }, "burst"),
            (TypedCurve { burst: Some(1_000_000), ..range(5_000, 20_000) }, "burst"),
            (TypedCurve { probability: Some(MarkProbability(1)), ..TYPED }, "probability"),
            (TypedCurve { burst: Some(50), ..range(20_000, 5_000) }, "min"),
        ] {
            match typed.told() {
                Err(TcProblem::Needs { option, .. }) => assert_eq!(option, lacks, "{typed:?}"),
                other => panic!("{typed:?}: {other:?}"),
            }
        }
    }
}
