//! Random scripts: delays around every boundary of every level, jumps of every length, and clocks that
//! start where something wraps.

use crate::oracle::Measures;
use crate::script::{Step, play, shortly_before_wrap};
use crate::subject::{Intrusive, Keyed};
use proptest::prelude::*;
use quietcore_wheel::Tick;

const TIMERS: usize = 8;

/// Delays that matter to a wheel of these measures.
fn delay(measures: Measures) -> impl Strategy<Value = i64> {
    let starts: Vec<i64> = (0..measures.levels).map(|level| measures.start(level) as i64).collect();
    let cutoff = measures.cutoff() as i64;
    let top = measures.granularity(measures.levels - 1) as i64;
    prop_oneof![
        4 => (0..starts.len(), -2_i64..=2).prop_map(move |(level, off)| starts[level] + off),
        4 => (0_u32..40, 0..=i64::MAX).prop_map(move |(bits, seed)| seed % (1 << bits) % (cutoff + 2)),
        2 => -3_i64..70,
        1 => (-2_i64..=2).prop_map(move |off| cutoff + off),
        1 => (-2_i64..=2).prop_map(move |off| cutoff - top + off),
        // A timer of tick precision moves once per longest delay, so not too far.
        1 => cutoff..=3 * cutoff,
        1 => -100_000_i64..0,
    ]
}

/// Bounded by the capacity: a timer of tick precision that is armed while the wheel lags moves once per
/// capacity of lag.
fn jump(measures: Measures) -> impl Strategy<Value = u64> {
    let cutoff = measures.cutoff() as u64;
    prop_oneof![
        4 => 0_u64..10,
        4 => (0_u32..34, any::<u64>()).prop_map(move |(bits, seed)| seed % (1 << bits) % (2 * cutoff)),
        1 => (0_u64..=4).prop_map(move |off| cutoff + off - 2),
        1 => cutoff..20 * cutoff,
    ]
}

fn step(measures: Measures) -> impl Strategy<Value = Step> {
    let id = 0..TIMERS;
    prop_oneof![
        6 => (id.clone(), delay(measures)).prop_map(|(id, delay)| Step::Arm(id, delay)),
        1 => (id.clone(), delay(measures)).prop_map(|(id, delay)| Step::Reduce(id, delay)),
        1 => (id.clone(), delay(measures)).prop_map(|(id, delay)| Step::ModPending(id, delay)),
        2 => id.prop_map(Step::Cancel),
        2 => jump(measures).prop_map(Step::Forward),
        2 => jump(measures).prop_map(Step::Expire),
        2 => (jump(measures), 0_usize..3).prop_map(|(ticks, count)| Step::ExpireSome(ticks, count)),
        1 => Just(Step::NextExpiry),
    ]
}

/// Near 0, near 2^32 (where a 32-bit counter would wrap), near 2^64, on edges, anywhere.
fn clock() -> impl Strategy<Value = Tick> {
    prop_oneof![
        (0_u64..100).prop_map(Tick),
        (0_u64..100_000).prop_map(|ticks| shortly_before_wrap(32, ticks)),
        (0_u64..100_000).prop_map(|ticks| shortly_before_wrap(64, ticks)),
        (0_u32..64).prop_map(|bit| Tick(1 << bit)),
        any::<u64>().prop_map(Tick),
    ]
}

fn scripts(measures: Measures) -> impl Strategy<Value = (Tick, Vec<Step>)> {
    (clock(), prop::collection::vec(step(measures), 1..60))
}

/// Goal: the same timers, at the same ticks, in the same order as the list. Method: one script, both
/// interfaces, compared step by step.
macro_rules! random_scripts {
    ($name:ident, $levels:literal, $buckets:literal, $ratio:literal, $cases:literal) => {
        mod $name {
            use super::*;

            const MEASURES: Measures = Measures { levels: $levels, buckets: $buckets, ratio: $ratio };

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { $cases }))]

                #[test]
                fn intrusive((clock, script) in scripts(MEASURES)) {
                    let mut subject = Intrusive::<$levels, $buckets>::new(clock, TIMERS);
                    prop_assert_eq!(play(&mut subject, MEASURES, &script), script.len());
                }

                #[test]
                fn keyed((clock, script) in scripts(MEASURES)) {
                    let mut subject = Keyed::<$levels, $buckets>::new(clock, TIMERS);
                    prop_assert_eq!(play(&mut subject, MEASURES, &script), script.len());
                }
            }
        }
    };
}

random_scripts!(kernel, 9, 64, 8, 3000);
random_scripts!(kernel_with_long_ticks, 8, 64, 8, 1000);
random_scripts!(one_level, 1, 64, 8, 300);
random_scripts!(three_by_eight, 3, 8, 2, 1000);
random_scripts!(four_by_sixteen, 4, 16, 4, 1000);
random_scripts!(two_by_thirtytwo, 2, 32, 4, 500);
random_scripts!(two_by_four, 2, 4, 2, 1000);
