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
    ///
    /// ```
    /// use quietcore_core::{CpuId, Nanos, Precision};
    /// use quietcore_sim::{ScriptEvent, Scenario, ScriptStep, ScriptVerb};
    ///
    /// let text = "duration = \"20ms\"\n[machine]\ncpus = 2\n";
    /// let scenario = Scenario::parse("a.toml".as_ref(), text, &|_| unreachable!("names no costs file"))?;
    /// let verb = ScriptVerb::Arm { expires: Nanos(4_500_000) };
    /// let step = ScriptStep { at: Nanos(1_000_000), cpu: CpuId::default(), timer: 0, verb };
    /// let happened = scenario.play(&[step], Precision::Tick);
    /// assert_eq!((happened.len(), happened[1].what), (2, ScriptEvent::Ran));
    /// assert!(happened[1].at > Nanos(4_500_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn play(&self, steps: &[ScriptStep], precision: Precision) -> Vec<ScriptOccurrence> {
        let plan = self.plans().first().expect("a scenario has a variant");
        let options = RunOptions { hash: false, check: true, ..RunOptions::default() };
        World::new(plan, options, None).play(steps, precision)
    }
}
