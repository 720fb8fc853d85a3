//! Playing a script: the first variant's machine, beside its loads and faults, with steps of the caller.

use crate::scenario::Scenario;
use crate::script::{ScriptOccurrence, ScriptStep};
use crate::world::{RunOptions, World};
use quietcore_core::Precision;

impl Scenario {
    /// Plays `steps` on the machine of the first variant, beside its loads and faults, up to the end of its
    /// duration; the machine's invariants are checked after every event. Steps of one CPU are done in the
    /// order of their times; of equal times, in the order given.
    ///
    /// # Panics
    /// When a step names a CPU that the machine does not have, or the core breaks an invariant.
    #[must_use]
    pub fn play(&self, steps: &[ScriptStep], precision: Precision) -> Vec<ScriptOccurrence> {
        let plan = self.plans().first().expect("a scenario has a variant");
        let options = RunOptions { hash: false, check: true, ..RunOptions::default() };
        World::new(plan, options, None).play(steps, precision)
    }
}
