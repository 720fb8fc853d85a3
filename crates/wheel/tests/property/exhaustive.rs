//! Every script of four steps on the smallest wheel, from every phase of its clock.

use crate::oracle::Measures;
use crate::script::{Play, Step};
use crate::subject::{Intrusive, Keyed, Subject};
use quietcore_wheel::Tick;

const MEASURES: Measures = Measures { levels: 2, buckets: 4, ratio: 2 };
const TIMERS: usize = 2;
const LENGTH: usize = 4;

/// Delays from the past to beyond the capacity (cut-off 6) for both timers (one of each precision), and
/// all other steps with every distance that matters.
fn steps() -> Vec<Step> {
    let mut steps = vec![];
    for id in 0..TIMERS {
        steps.extend((-1..=7).map(|delay| Step::Arm(id, delay)));
        steps.push(Step::Cancel(id));
    }
    steps.extend([1, 2, 5].map(Step::Forward));
    steps.extend([0, 1, 3].map(Step::Expire));
    steps.extend([Step::ExpireSome(2, 1), Step::ExpireSome(1, 0), Step::NextExpiry]);
    steps
}

/// Goal: no short script goes wrong. Method: all of them, each replayed from its beginning, drained.
fn play_all<S: Subject>(new: impl Fn(Tick) -> S) -> usize {
    let steps = steps();
    let mut played = 0;
    // 8 ticks are a full round of the coarse level; the last phases cross the wrap of the counter.
    for phase in (0..8).map(|phase| Tick(u64::MAX - 5).plus(phase)) {
        for script in 0..steps.len().pow(LENGTH as u32) {
            let mut subject = new(phase);
            let mut play = Play::new(&mut subject, MEASURES);
            let mut rest = script;
            for _ in 0..LENGTH {
                play.step(steps[rest % steps.len()]);
                rest /= steps.len();
            }
            play.drain();
            played += 1;
        }
    }
    played
}

#[test]
fn intrusive() {
    assert_eq!(play_all(|clock| Intrusive::<2, 4>::new(clock, TIMERS)), 8 * 29_usize.pow(4));
}

#[test]
fn keyed() {
    assert_eq!(play_all(|clock| Keyed::<2, 4>::new(clock, TIMERS)), 8 * 29_usize.pow(4));
}
