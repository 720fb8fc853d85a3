//! Random values of each kind, as far as they can be typed.

use crate::tc::{
    BitRate, Burst, Bytes, Curve, DistributionName, LinkRate, Minor, Percent, Priomap, SlotTiming,
    TrafficClassMatch, TypedChance, TypedDelay, TypedLoss, TypedSlot, Weights,
};
use crate::{CeSelector, ClassId, LinkLayer};
use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;
use quietcore_core::Nanos;

/// Any value that a line can hold.
pub(crate) trait Random: Sized {
    fn random() -> BoxedStrategy<Self>;
}

fn any_of<T: Random>() -> BoxedStrategy<T> {
    T::random()
}

fn maybe<T: Random + core::fmt::Debug + Clone + 'static>() -> BoxedStrategy<Option<T>> {
    proptest::option::of(T::random()).boxed()
}

macro_rules! any_number {
    ($($ty:ty),*) => {$(
        impl Random for $ty {
            fn random() -> BoxedStrategy<Self> {
                let edges = prop_oneof![Just(<$ty>::MIN), Just(<$ty>::MAX)];
                prop_oneof![any::<$ty>(), edges, any::<u8>().prop_map(<$ty>::from)].boxed()
            }
        }
    )*};
}

any_number!(u16, u32, u64, i32);

impl Random for BitRate {
    fn random() -> BoxedStrategy<Self> {
        let round =
            (0..1_000_u64, 0..5_u32).prop_map(|(number, thousands)| number * 1_000_u64.pow(thousands));
        prop_oneof![u64::random(), round].prop_map(Self).boxed()
    }
}

impl Random for Bytes {
    fn random() -> BoxedStrategy<Self> {
        let round = (0..1_024_u32, 0..3_u32).prop_map(|(number, thousands)| number << (10 * thousands));
        prop_oneof![u32::random(), round].prop_map(Self).boxed()
    }
}

impl Random for Nanos {
    fn random() -> BoxedStrategy<Self> {
        let round =
            (0..1_000_u64, 0..4_u32).prop_map(|(number, thousands)| number * 1_000_u64.pow(thousands));
        prop_oneof![0..=i64::MAX.unsigned_abs(), round].prop_map(Self).boxed()
    }
}

impl Random for Percent {
    fn random() -> BoxedStrategy<Self> {
        let round = (0..=100_u64).prop_map(|percent| percent * 1_000_000_000);
        let billionths = prop_oneof![0..=100_000_000_000_u64, round];
        billionths.prop_map(|billionths| Self::from_billionths(billionths).expect("in range")).boxed()
    }
}

impl Random for Minor {
    fn random() -> BoxedStrategy<Self> {
        u16::random().prop_map(Self).boxed()
    }
}

impl Random for ClassId {
    fn random() -> BoxedStrategy<Self> {
        (1..=u16::MAX, any_of::<u16>()).prop_map(|(major, minor)| Self::new(major, minor)).boxed()
    }
}

impl Random for TrafficClassMatch {
    fn random() -> BoxedStrategy<Self> {
        any::<[u8; 2]>().prop_map(|[value, mask]| Self(CeSelector { value, mask })).boxed()
    }
}

impl Random for LinkLayer {
    fn random() -> BoxedStrategy<Self> {
        prop_oneof![Just(Self::Ethernet), Just(Self::Atm)].boxed()
    }
}

impl Random for Burst {
    fn random() -> BoxedStrategy<Self> {
        let cell = proptest::option::of((0..32_u32).prop_map(|power| 1 << power));
        (any_of(), cell).prop_map(|(size, cell)| Self { size, cell }).boxed()
    }
}

impl Random for DistributionName {
    fn random() -> BoxedStrategy<Self> {
        let own = prop_oneof![
            Just(Self::Uniform),
            Just(Self::Normal),
            Just(Self::Pareto),
            Just(Self::ParetoNormal),
        ];
        let table = "[a-z/]{1,9}[.]dist".prop_map(|name| Self::Table(name.into()));
        prop_oneof![4 => own, 1 => table].boxed()
    }
}

impl Random for TypedDelay {
    fn random() -> BoxedStrategy<Self> {
        let jitter = proptest::option::of((any_of(), maybe()));
        (any_of(), jitter)
            .prop_map(|(time, jitter)| {
                let (jitter, correlation) =
                    jitter.map_or((None, None), |(jitter, rest)| (Some(jitter), rest));
                Self { time, jitter, correlation }
            })
            .boxed()
    }
}

impl Random for TypedChance {
    fn random() -> BoxedStrategy<Self> {
        (any_of(), maybe()).prop_map(|(percent, correlation)| Self { percent, correlation }).boxed()
    }
}

/// The first few, then none.
fn first_few<const N: usize>() -> BoxedStrategy<[Option<Percent>; N]> {
    proptest::collection::vec(Percent::random(), 0..=N)
        .prop_map(|values| core::array::from_fn(|at| values.get(at).copied()))
        .boxed()
}

impl Random for TypedLoss {
    fn random() -> BoxedStrategy<Self> {
        prop_oneof![
            any_of().prop_map(Self::Random),
            (any_of(), first_few()).prop_map(|(p13, others)| Self::State { p13, others }),
            (any_of(), first_few()).prop_map(|(p, others)| Self::GeModel { p, others }),
        ]
        .boxed()
    }
}

impl Random for LinkRate {
    fn random() -> BoxedStrategy<Self> {
        let cells = proptest::option::of((any_of(), maybe()));
        let overhead = proptest::option::of((any_of(), cells));
        (any_of(), overhead)
            .prop_map(|(rate, rest)| {
                let (overhead, rest) = rest.map_or((None, None), |(overhead, rest)| (Some(overhead), rest));
                let (cell, cell_overhead) = rest.map_or((None, None), |(cell, rest)| (Some(cell), rest));
                Self { rate, overhead, cell, cell_overhead }
            })
            .boxed()
    }
}

impl Random for TypedSlot {
    fn random() -> BoxedStrategy<Self> {
        let between = (any_of(), maybe()).prop_map(|(min, max)| SlotTiming::Between { min, max });
        let distributed = (any_of(), any_of(), any_of()).prop_map(|(distribution, delay, jitter)| {
            SlotTiming::Distributed { distribution, delay, jitter }
        });
        (prop_oneof![between, distributed], maybe(), maybe())
            .prop_map(|(timing, packets, bytes)| Self { timing, packets, bytes })
            .boxed()
    }
}

impl Random for Priomap {
    fn random() -> BoxedStrategy<Self> {
        proptest::array::uniform16(0..=2_u8).prop_map(Self).boxed()
    }
}

impl Random for Weights {
    fn random() -> BoxedStrategy<Self> {
        proptest::array::uniform3(1..=i32::MAX.unsigned_abs()).prop_map(Self).boxed()
    }
}

impl Random for Curve {
    fn random() -> BoxedStrategy<Self> {
        let slopes = (proptest::option::of((maybe(), any_of())), any_of()).prop_map(|(first, m2)| {
            let (m1, d) = first.map_or((None, None), |(m1, d)| (m1, Some(d)));
            Self::Slopes { m1, d, m2 }
        });
        let work = (proptest::option::of((maybe(), any_of())), any_of()).prop_map(|(first, rate)| {
            let (umax, dmax) = first.map_or((None, None), |(umax, dmax)| (umax, Some(dmax)));
            Self::Work { umax, dmax, rate }
        });
        prop_oneof![slopes, work].boxed()
    }
}
