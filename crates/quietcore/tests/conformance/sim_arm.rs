//! A program on the simulator's CPUs, which sleep from step to step.

use super::body::{CPUS, Program, Story, TICK, Verb, cpu};
use quietcore_core::{Nanos, Precision};
use quietcore_sim::{Scenario, ScriptStep};

/// What happens, from the beginning to the end of the program.
pub(crate) fn run(program: &Program) -> Story {
    // Ticks of all CPUs at the same moment: an expiry is then reported at the edge of its tick. One tick
    // more, so that what is due at the end is still reported.
    let micros = (program.ticks * TICK + TICK / 10) / 1000;
    let text = format!("duration = \"{micros}us\"\n[machine]\ncpus = {CPUS}\nskew = false\n");
    let scenario =
        Scenario::parse("program.toml".as_ref(), &text, &|_| unreachable!("it names no costs file"));
    let steps: Vec<ScriptStep> = program.steps.iter().map(step).collect();
    let happened = scenario.expect("a scenario").play(&steps, Precision::Tick);
    let mut story: Story = happened.iter().map(|one| (one.at.0, one.timer, one.what)).collect();
    story.sort();
    story
}

fn step(step: &super::body::Step) -> ScriptStep {
    let verb = match step.verb {
        Verb::Arm(delay) => quietcore_sim::ScriptVerb::Arm { expires: Nanos(step.at + delay) },
        Verb::Cancel => quietcore_sim::ScriptVerb::Cancel,
    };
    ScriptStep { at: Nanos(step.at), cpu: cpu(step.cpu), timer: step.timer, verb }
}
