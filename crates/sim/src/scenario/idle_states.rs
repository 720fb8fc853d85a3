//! The idle states of a machine's CPUs: what it costs to get there and back, and which one a CPU chooses.
//!
//! A CPU chooses the deepest state that fits into the time until the first event that it knows of: its next
//! timer, or its tick while that is on. What wakes it earlier makes that choice too deep.

use super::error::ScenarioProblem;
use super::raw::RawIdleState;
use super::value::{Span, span_within};
use toml::Spanned;

/// Kernels have ten at most.
const STATES_MAX: usize = 10;
const NAME_BYTES_MAX: usize = 16;
/// The longest span: a second.
const SPAN_MAX: u64 = 1_000_000_000;

/// A state that an idle CPU can be in, all spans in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdleState {
    pub(crate) name: String,
    /// From the decision until the CPU is in it, on top of [`Cost::IdleEntry`](super::Cost::IdleEntry).
    pub(crate) entry: u64,
    /// From the wake-up until it is out, on top of [`Cost::IdleExit`](super::Cost::IdleExit).
    pub(crate) exit: u64,
    /// The target residency: after a shorter one the CPU had better been in the state before.
    pub(crate) residency: u64,
}

impl IdleState {
    /// The deepest of `states` for a CPU that will be woken in `span`, or has no reason to wake up; the first
    /// one if none fits.
    pub(crate) fn deepest(states: &[Self], span: Option<u64>) -> usize {
        let fits = |state: &Self| span.is_none_or(|span| state.entry.saturating_add(state.residency) <= span);
        states.iter().rposition(fits).unwrap_or(0)
    }
}

/// The states of a machine, the shallowest first.
pub(super) fn resolve(raw: &[Spanned<RawIdleState>]) -> Result<Vec<IdleState>, ScenarioProblem> {
    if let Some(entry) = raw.get(STATES_MAX) {
        return Err(ScenarioProblem::at(entry, format!("there are more than {STATES_MAX} idle states")));
    }
    let mut states: Vec<IdleState> = Vec::new();
    for entry in raw {
        let state = entry.get_ref();
        let name = state.name.get_ref();
        let is_word = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !is_word(name) {
            let allowed = format!("must be 1 to {NAME_BYTES_MAX} letters, digits and hyphens");
            return Err(ScenarioProblem::at(&state.name, allowed));
        }
        if states.iter().any(|known| known.name == *name) {
            return Err(ScenarioProblem::at(&state.name, format!("{name} is the name of two idle states")));
        }
        let residency = span_within(&state.residency, 0, SPAN_MAX)?;
        if states.last().is_some_and(|before| before.residency >= residency) {
            let order = "must be longer than that of the state before; the deepest one comes last";
            return Err(ScenarioProblem::at(&state.residency, order));
        }
        let cost =
            |span: &Option<Spanned<Span>>| span.as_ref().map_or(Ok(0), |span| span_within(span, 0, SPAN_MAX));
        let (entry, exit) = (cost(&state.entry)?, cost(&state.exit)?);
        states.push(IdleState { name: name.clone(), entry, exit, residency });
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use super::IdleState;

    /// Goal: the deepest state that fits is chosen, its way in included. Method: both sides of each bound,
    /// and no wake-up at all; states of which the deepest costs most to enter.
    #[test]
    fn the_deepest_state_that_fits_is_chosen() {
        let state = |entry, residency| IdleState { name: String::new(), entry, exit: 7, residency };
        let states = [state(1, 5), state(10, 90), state(100, 900)];
        for (span, expected) in [(0, 0), (6, 0), (99, 0), (100, 1), (999, 1), (1_000, 2), (u64::MAX, 2)] {
            assert_eq!(IdleState::deepest(&states, Some(span)), expected, "{span}");
        }
        assert_eq!(IdleState::deepest(&states, None), 2);
        assert_eq!(IdleState::deepest(&states[..1], Some(0)), 0);
    }
}
