//! What if: a recording's arms, cancels and awake intervals under another policy.
//!
//! A [`LoadReader`] takes the events of a recording and keeps what does not depend on the policy: the
//! [`RecordedLoad`]. [`answer`] replays it twice through the wheel and the hierarchy of the core: as the
//! recording's kernel did (`before`) and as the [`WhatifQuestion`] asks (`after`). How far `before` agrees
//! with what was recorded is part of the answer, and so is every assumption, as a sentence.
//!
//! Invariants: no decision reads on which CPU the recording's kernel ran a timer; the same load and question
//! give the same answer; memory is bounded by [`INPUTS_MAX`]. Deliberately absent: what tasks would do
//! differently, the time that callbacks take, hrtimers.
//!
//! `docs/reference/whatif.md` has the rules, and what they come to on real kernels.
//!
//! ```
//! use quietcore_core::place::Policy;
//! use quietcore_verify::whatif::{Excluded, LoadFacts, LoadReader, WhatifQuestion, answer};
//! use quietcore_trace::{KernelRelease, TraceReader};
//!
//! // CPU 0 arms a timer and goes idle; CPU 1, isolated and busy, pulls it.
//! let text = "\
//!     a-9 [001] d..2. 1.000000: timer_start: timer=02 function=g expires=9999 [timeout=8999] cpu=1 idx=1 flags=
//!     a-8 [000] d..2. 1.000100: timer_start: timer=01 function=f expires=1009 [timeout=9] cpu=0 idx=1 flags=
//!     b-0 [000] d..2. 1.000200: timer_base_idle: is_idle=1 cpu=0
//!     a-9 [001] d..2. 1.100000: timer_cancel: timer=02
//! ";
//! let mut reader = LoadReader::new();
//! TraceReader::new(text.as_bytes()).read(u64::MAX, &mut |record| reader.take(record))?;
//! let model = KernelRelease::parse("6.12").map(|release| release.timer_model());
//! let load = reader.finish(LoadFacts { hz: Some(250), model, isolated: "1".parse()?, ..LoadFacts::default() })?;
//!
//! let question = WhatifQuestion { excluded: Excluded::These("1".parse()?), ..WhatifQuestion::default() };
//! let answer = answer(&load, &question)?;
//! assert_eq!(answer.before.foreign.total, Some(1));
//! assert_eq!(answer.after.foreign.total, Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assumptions;
mod bases;
mod error;
mod figures;
mod grid;
mod load;
mod machine;
mod question;
mod reader;
mod replay;
mod running;

pub use error::LoadError;
pub use figures::{FigureAgreement, FigureRange, Wakeups, WhatifFigures};
pub use load::{INPUTS_MAX, LoadFacts, RecordedLoad};
pub use question::{Excluded, WhatifQuestion, WhatifQuestionError};
pub use reader::LoadReader;

use quietcore_core::CpuSet;
use quietcore_core::place::Policy;
use replay::TickOrder;
use serde::Serialize;

/// Before and after.
///
/// See the module for an example.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WhatifAnswer {
    /// The replay of what the recording's kernel did.
    pub before: WhatifFigures,
    /// The replay of what was asked.
    pub after: WhatifFigures,
    /// How `before` compares with the recording, expiry by expiry; `None` when no expiry was recorded.
    pub agreement: Option<FigureAgreement>,
    /// What both take for granted.
    pub assumptions: Vec<String>,
}

/// Replays a load as it was recorded and as it is asked for.
///
/// Cost: eight replays, each some microseconds per input.
///
/// # Errors
/// When the question names CPUs that the recording does not have, or leaves no CPU.
pub fn answer(load: &RecordedLoad, question: &WhatifQuestion) -> Result<WhatifAnswer, WhatifQuestionError> {
    question.check(load)?;
    let (before, ran_on) = all_orders(load, &WhatifQuestion::as_recorded(load))?;
    let (after, _) = all_orders(load, question)?;
    let agreement = figures::agreement(load, &ran_on);
    Ok(WhatifAnswer { before, after, agreement, assumptions: assumptions::assumptions(load, question) })
}

/// The figures in the order that is taken for the likeliest one, with the range over all.
fn all_orders(
    load: &RecordedLoad,
    question: &WhatifQuestion,
) -> Result<(WhatifFigures, Vec<(u32, quietcore_core::CpuId)>), WhatifQuestionError> {
    let (mut figures, ran_on) = replay::replay(load, question, TickOrder::OneByOne)?;
    let total = figures.foreign.total.unwrap_or(0);
    let mut range = FigureRange { low: total, high: total };
    for order in TickOrder::OTHERS {
        let total = replay::replay(load, question, order)?.0.foreign.total.unwrap_or(0);
        range = FigureRange { low: range.low.min(total), high: range.high.max(total) };
    }
    figures.foreign_range = range;
    let left_out: CpuSet = figures.excluded.parse().unwrap_or_default();
    let can_pull = question.policy == Policy::Pull && !load.facts.isolated.is_subset(&left_out);
    figures.foreign_expected = if can_pull || range.high > 0 { range.by_chance() } else { range };
    Ok((figures, ran_on))
}
