//! Programs of arms, re-arms and cancels on a few CPUs, and what must come of each.
//!
//! Steps have different moments, none at the edge of a tick, so their order is the same in every world and
//! none meets an expiry. Timers have tick precision: they run at the first edge after their moment.

use quietcore_core::CpuId;
use quietcore_sim::{ScriptEvent, SimRandom};

/// Length of a tick, in ns.
pub(crate) const TICK: u64 = 1_000_000;

/// CPUs of every program.
pub(crate) const CPUS: u16 = 4;

/// A step's verb.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
    /// For so many ns after the step.
    Arm(u64),
    Cancel,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// ns since the beginning.
    pub(crate) at: u64,
    pub(crate) cpu: u16,
    pub(crate) timer: u32,
    pub(crate) verb: Verb,
}

/// What happened to a timer: when (ns since the beginning), which, what. In the order of these.
pub(crate) type Story = Vec<(u64, u32, ScriptEvent)>;

/// Steps in the order of their times, which are all different.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) steps: Vec<Step>,
    /// When it ends, in ticks: what comes later is not reported.
    pub(crate) ticks: u64,
}

impl Program {
    /// From lines `TICK [CPU] arm TIMER DELAY_US` and `TICK [CPU] cancel TIMER`.
    pub(crate) fn parse(text: &str) -> Self {
        let step = |(line, text): (usize, &str)| {
            let mut words = text.split(' ').peekable();
            let tick = words.next().and_then(|word| word.parse::<u64>().ok()).expect("a tick");
            let cpu = words
                .next_if(|word| word.parse::<u16>().is_ok())
                .map_or(0, |cpu| cpu.parse().expect("a CPU"));
            let verb = words.next().expect("a verb");
            let timer = words.next().and_then(|word| word.parse().ok()).expect("a timer");
            let delay = words.next().and_then(|word| word.parse::<u64>().ok());
            let verb = match (verb, delay) {
                ("arm", Some(delay)) => Verb::Arm(delay * 1000),
                ("cancel", None) => Verb::Cancel,
                other => panic!("{other:?} is no step"),
            };
            Step { at: moment_of(tick, line as u64), cpu, timer, verb }
        };
        Self::new(text.lines().enumerate().map(step).collect())
    }

    /// A few hundred steps.
    pub(crate) fn random(seed: u64) -> Self {
        let mut random = SimRandom::new(seed, 7);
        let timers = 1 + random.below(12);
        // Some programs are crowded, some idle.
        let longest = [2, 20, 300][random.below(3) as usize];
        let mut tick = 0;
        let mut step = |line: u64| {
            tick += random.below(longest);
            let longest = [1_000, 10_000, 100_000, 1_000_000, 5_000_000][random.below(5) as usize];
            let delay = 1_000 * (1 + random.below(longest));
            let verb = if random.below(3) == 0 { Verb::Cancel } else { Verb::Arm(delay) };
            let cpu = random.below(u64::from(CPUS)) as u16;
            Step { at: moment_of(tick, line), cpu, timer: random.below(timers) as u32, verb }
        };
        Self::new((0..300).map(&mut step).collect())
    }

    fn new(steps: Vec<Step>) -> Self {
        assert!(steps.is_sorted_by(|a, b| a.at < b.at), "steps are in the order of their times");
        let last = steps.last().map_or(0, |step| step.at);
        Self { steps, ticks: last / TICK + 5_000 }
    }

    /// What must happen, by a list of what is pending.
    pub(crate) fn expected(&self) -> Story {
        let mut story = Story::new();
        let mut pending: Vec<(u64, u32)> = Vec::new();
        for step in &self.steps {
            run(&mut pending, step.at, &mut story);
            let place = pending.iter().position(|(_, timer)| *timer == step.timer);
            if let Some(place) = place {
                pending.remove(place);
            }
            let was_pending = place.is_some();
            let what = match step.verb {
                Verb::Arm(delay) => {
                    pending.push(((step.at + delay) / TICK * TICK + TICK, step.timer));
                    ScriptEvent::Armed { was_pending }
                }
                Verb::Cancel => ScriptEvent::Cancelled { was_pending },
            };
            story.push((step.at, step.timer, what));
        }
        run(&mut pending, self.ticks * TICK, &mut story);
        story.sort();
        story
    }
}

/// When step `number` happens: no step and no delay of whole us after it meets the edge of a tick.
const fn moment_of(tick: u64, number: u64) -> u64 {
    assert!(number < 600, "a tick has room for so many steps");
    tick * TICK + 300_500 + number * 1_000
}

/// What is due by `now` runs.
fn run(pending: &mut Vec<(u64, u32)>, now: u64, story: &mut Story) {
    let due: Vec<_> = pending.extract_if(.., |(at, _)| *at <= now).collect();
    story.extend(due.into_iter().map(|(at, timer)| (at, timer, ScriptEvent::Ran)));
}

/// The number of a CPU as the core's type.
pub(crate) fn cpu(number: u16) -> CpuId {
    CpuId::new(u64::from(number)).expect("a small number")
}
